"""FileCheck for IR: run a pipeline on text, compare the text that comes out with CHECK lines. A small part of LLVM's
tool.

A case is::

    // RUN: canonicalize,stabilize
    func @f(%x: f64[n]) -> (f64[n]) { ... }
    // CHECK:      func @f
    // CHECK-NEXT: [[A:%\\w+]] = log1p %x

``CHECK`` finds the next line that has the text, ``CHECK-NEXT`` wants it on the line after, ``CHECK-SAME`` further along
the same line, ``CHECK-DAG`` anywhere after the last ordered match, ``CHECK-NOT`` not before the next ordered match.
``{{...}}`` is a regular expression, ``[[NAME:regex]]`` binds what it matches, ``[[NAME]]`` wants it again. Runs of
blanks match any blanks. Comments in the output do not count, except for patterns with ``//`` in them. A pipeline that
ends in ``plan`` gives the text of the plan, ``plan(lanes=4)`` of one with lanes. ``// expected-error: text`` wants the
run to fail with that text. Cases are separated by ``// -----``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from symc.errors import SymcError
from symc.ir.function import Function
from symc.ir.record import dataclass

_DIRECTIVE = re.compile(r"//\s*(CHECK(?:-NEXT|-SAME|-DAG|-NOT)?):\s?(.*)$")
_PLAN = re.compile(r"plan(?:\(lanes=(\d+)\))?")
_PARTS = re.compile(r"\{\{(.*?)\}\}|\[\[(\w+)(?::(.*?))?\]\]")


class CheckError(AssertionError):
    """Text does not have what a CHECK line wants."""


@dataclass(frozen=True)
class Case:
    """One case of a file: ``line`` is where it starts."""

    text: str
    run: str
    errors: tuple[str, ...]
    line: int


def cases(text: str) -> list[Case]:
    """The cases of a file. A case without its own RUN line takes that of the case before."""
    out: list[Case] = []
    run, line = "", 1
    for part in re.split(r"^// -----.*\n", text, flags=re.M):
        found = re.search(r"^//\s*RUN:(.*)$", part, re.M)
        run = found[1].strip() if found else run
        errors = tuple(m.strip() for m in re.findall(r"//\s*expected-error:(.*)$", part, re.M))
        if part.strip():
            out.append(Case(part, run, errors, line))
        line += part.count("\n") + 1
    return out


def run_pipeline(text: str, pipeline: str) -> str:
    """Parse, run a pipeline (verified after every pass; "" or "print" runs none), and print."""
    from symc.ir.parse import parse_module
    from symc.ir.text import print_function
    from symc.opt import optimize

    functions = parse_module(text)
    passes = [] if pipeline in ("", "print") else [p.strip() for p in pipeline.split(",")]
    planning = _PLAN.fullmatch(passes[-1]) if passes else None
    wanted = ",".join(passes[:-1] if planning else passes)
    done = [optimize(f, wanted, strict=True, verify=True).function for f in functions]
    return "\n".join(_planned(f, int(planning[1] or 1)) if planning else print_function(f) for f in done)


def _planned(f: Function, lanes: int) -> str:
    """The text of the function's plan, which is checked."""
    from symc.codegen.plan.check_plan import check_plan
    from symc.codegen.plan.planner import make_plan
    from symc.codegen.plan.text import print_plan

    plan = make_plan(f, lanes=lanes)
    check_plan(plan)
    return print_plan(plan)


def check_case(case: Case, run: Callable[[str, str], str] = run_pipeline) -> None:
    """Run a case. Raises CheckError with the text that came out."""
    try:
        got = run(case.text, case.run)
    except SymcError as e:
        missing = [w for w in case.errors if w not in str(e)]
        if missing or not case.errors:
            raise CheckError(
                f"case at line {case.line}: failed with {type(e).__name__}: {e}\nexpected: {list(case.errors)}"
            ) from e
        return
    if case.errors:
        raise CheckError(f"case at line {case.line}: expected an error with {list(case.errors)}, got\n{got}")
    check_text(got, case.text, f"case at line {case.line}")


def directives(text: str) -> list[tuple[str, str]]:
    """The CHECK lines in a text: (kind, pattern)."""
    return [(m[1], m[2].strip()) for line in text.splitlines() if (m := _DIRECTIVE.search(line))]


def check_text(got: str, checks: str, where: str = "") -> None:
    """Compare a text with the CHECK lines in ``checks``. Raises CheckError, also when there are none."""
    wanted = directives(checks)
    if not wanted:
        raise CheckError(f"{where}: no CHECK lines")
    _Checker(got, where).run(wanted)


class _Checker:
    def __init__(self, got: str, where: str):
        self.got, self.where = got, where
        self.full = got.splitlines()
        self.lines = [line.split("//")[0].rstrip() for line in self.full]
        self.bound: dict[str, str] = {}
        self.at, self.column = -1, 0
        self.forbidden: list[str] = []

    def fail(self, what: str) -> CheckError:
        shown = "\n".join(f"{'>' if k == self.at else ' '} {line}" for k, line in enumerate(self.lines))
        return CheckError(f"{self.where}: {what}\nthe text is\n{shown}")

    def run(self, wanted: list[tuple[str, str]]) -> None:
        last_dag = -1
        for kind, pattern in wanted:
            if kind == "CHECK-NOT":
                self.forbidden.append(pattern)
            elif kind == "CHECK-DAG":
                last_dag = max(last_dag, self.find(pattern, self.at + 1, len(self.lines), kind))
            else:
                if last_dag >= 0:
                    self.at, last_dag = last_dag, -1
                self.ordered(kind, pattern)
        self.forbid(self.at + 1, len(self.lines))

    def ordered(self, kind: str, pattern: str) -> None:
        if kind == "CHECK-SAME":
            m = self.regex(pattern).search(self.lines[self.at], self.column) if self.at >= 0 else None
            if m is None:
                raise self.fail(f"CHECK-SAME: {pattern}: not on the line")
            self.accept(m)
            return
        first = self.at + 1
        last = first + 1 if kind == "CHECK-NEXT" else len(self.lines)
        found = self.find(pattern, first, last, kind)
        self.forbid(first, found)
        self.at = found

    def find(self, pattern: str, first: int, last: int, kind: str) -> int:
        regex = self.regex(pattern)
        lines = self.full if "//" in pattern else self.lines
        for k in range(first, min(last, len(lines))):
            m = regex.search(lines[k])
            if m:
                self.accept(m)
                return k
        raise self.fail(f"{kind}: {pattern}: not found")

    def forbid(self, first: int, last: int) -> None:
        for pattern in self.forbidden:
            lines = self.full if "//" in pattern else self.lines
            for k in range(first, last):
                if self.regex(pattern).search(lines[k]):
                    self.at = k
                    raise self.fail(f"CHECK-NOT: {pattern}: found")
        self.forbidden = []

    def accept(self, m: re.Match) -> None:
        self.column = m.end()
        self.bound.update({k: v for k, v in m.groupdict().items() if v is not None})

    def regex(self, pattern: str) -> re.Pattern:
        out, at, named = "", 0, set()
        for m in _PARTS.finditer(pattern):
            out += _literal(pattern[at : m.start()])
            at = m.end()
            if m[1] is not None:
                out += f"(?:{m[1]})"
            elif m[3] is not None:
                out += f"(?P<{m[2]}>{m[3]})"
                named.add(m[2])
            elif m[2] in named:
                out += f"(?P={m[2]})"
            elif m[2] in self.bound:
                out += re.escape(self.bound[m[2]]) + (r"\b" if self.bound[m[2]][-1:].isalnum() else "")
            else:
                raise self.fail(f"[[{m[2]}]] is not bound")
        return re.compile(out + _literal(pattern[at:]))


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(part) for part in re.split(r"[ \t]+", text))
