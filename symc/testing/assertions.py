"""Assertions about what a function became: its text, kernels, calls and memory, and the rules that fired in it.

Each raises CheckError (an AssertionError) with what there is instead. ``f`` is a compiled function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import PipelineError, did_you_mean
from symc.ir.function import Function
from symc.ir.traverse import oldest_first
from symc.ir.value import Value
from symc.opt import UNFUSED, Optimized, lookup_rule, optimize
from symc.opt.engine.pass_registry import find_pass
from symc.opt.engine.provenance import expression
from symc.testing.filecheck import CheckError, check_text
from symc.tools.inspection import notes


def assert_dump(f: Any, checks: str, stage: str | None = None) -> None:
    """The text of a compiled function (or IR function) has what the CHECK lines in ``checks`` want."""
    check_text(f.dump(stage=stage) if hasattr(f, "dump") else str(f), checks, getattr(f, "name", ""))


def assert_kernels(f: Any, count: int) -> None:
    """A compiled function runs exactly this many generated kernels."""
    kernels = list(f.kernels)
    if len(kernels) != count:
        raise CheckError(
            f"{getattr(f, 'name', f)} has {len(kernels)} kernels, not {count}:\n"
            + "\n".join(map(str, kernels))
            + _asked(f, "fuse")
        )


def assert_no_alloc(f: Any) -> None:
    """The plan of a compiled function allocates nothing but results."""
    plan = str(f.plan)
    found = re.findall(r"^\s*alloc (?!.*\(result\)).*$", plan, re.M)
    if found:
        raise CheckError(f"{getattr(f, 'name', f)} allocates:\n" + "\n".join(found) + f"\nits plan is\n{plan}")


def assert_in_place(f: Any, name: str) -> None:
    """The new value of the state, or what is made of the argument, ``name`` is written over it."""
    plan = str(f.plan)
    if not re.search(rf"%{re.escape(name)}\b.* <- .*in place", plan):
        raise CheckError(f"nothing is written over {name} in place; the plan is\n{plan}")


def assert_calls(f: Any, **counts: int) -> None:
    """A compiled function calls each of these library routines so often, and no routine that is not named.

    ``assert_calls(f, gemm=1)``; ``assert_calls(f)``: none at all. What is in a loop counts once.
    """
    found = f.calls
    wanted = {n: k for n, k in counts.items() if k}
    if found != wanted:
        asked = "".join(_asked(f, n) for n in wanted if found.get(n, 0) < wanted[n] and n == "gemm")
        raise CheckError(f"{f.name} calls {_counts(found)}, not {_counts(wanted)}{asked}")


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{n} {k} time{'s' * (k != 1)}" for n, k in sorted(found.items())) or "nothing"


def assert_fires(f: Any, name: str, times: int | None = None) -> None:
    """The rule or pass ``name`` changed something (exactly ``times`` times, if given)."""
    count = fired(f, name)
    if count == 0 or (times is not None and count != times):
        want = "" if times is None else f", not {times} times"
        raise CheckError(f"{name} fired {count} times{want}{_asked(f, name)}")


def assert_not_fires(f: Any, name: str) -> None:
    """The rule or pass ``name`` changed nothing."""
    found = [x for x in _optimized(f).provenance.firings if name in (x.rule, x.pass_name)]
    fired(f, name)  # the name must be known
    if found:
        raise CheckError(f"{name} fired {len(found)} times:\n" + "\n".join(f"  {x}" for x in found[:5]))


def fired(f: Any, name: str) -> int:
    """Number of times a rule fired, or of changes of a pass. Raises PipelineError for an unknown name."""
    out = _optimized(f)
    if find_pass(name) is None:
        lookup_rule(name)
        return out.provenance.count(name)
    return sum(s.fired for s in out.report if s.name == name)


def _optimized(f: Any) -> Optimized:
    return f if isinstance(f, Optimized) else notes(f)


def _asked(f: Any, name: str) -> str:
    return "\n" + f.why_not(name) if hasattr(f, "why_not") else ""


def assert_rewrites(before: Any, arrow: str, after: Any, pipeline: str = UNFUSED) -> None:
    """Asserts that the left side ends as what is written on the right: ``assert_rewrites(before, "->", after)``.

    Both are values (tensors) of the same inputs, or functions of tensors; the right side is only made canonical. With
    ``"!->"`` they must stay different, and with ``"<->"`` both sides end as one value.
    """
    from symc.testing.rule_uses import as_function, free_leaves

    if arrow not in ("->", "!->", "<->"):
        raise PipelineError(f"assert_rewrites: {arrow!r} is no arrow", help=did_you_mean(arrow, ("->", "!->", "<->")))
    left, right = (v.value if not isinstance(v, Value) else v for v in (before, after))
    leaves = oldest_first({*free_leaves(left), *free_leaves(right)})
    tidy = pipeline if arrow == "<->" else "canonicalize"
    ends = [
        optimize(as_function(v, leaves=leaves), p, strict=True).function.body.results[0]
        for v, p in ((left, pipeline), (right, tidy))
    ]
    if (ends[0] is ends[1]) == (arrow == "!->"):
        what = "ends as" if arrow != "!->" else "must not end as"
        raise CheckError(
            f"{expression(left)} {what}\n  {expression(ends[0])}\n"
            + ("" if arrow == "!->" else f"not as\n  {expression(ends[1])}")
        )


# --- passes of users --------------------------------------------------------------------------------------------------


def check_pass(run: str | Callable[[Function], Function], programs: int = 60, seed: int = 0) -> None:
    """A pass, by name or as a function, keeps its promises on random programs.

    What it gives is valid IR with the same interface; it computes the same numbers; run twice it changes nothing more;
    and what it makes has the user lines of what it replaces.
    """
    from symc.testing.fuzz import random_arrays, random_function

    p = find_pass(run) if isinstance(run, str) else None
    if isinstance(run, str) and p is None:
        raise PipelineError(f"no pass is called {run!r}", help=did_you_mean(run, [q.name for q in _passes()]))
    apply = (lambda f: optimize(f, run, strict=True).function) if isinstance(run, str) else run
    name = run if isinstance(run, str) else getattr(run, "__name__", "the pass")
    for k in range(seed, seed + programs):
        f = _with_lines(random_function(k))
        g = apply(f)
        _check_interface(name, f, g)
        _check_same_numbers(name, f, g, [random_arrays(f, k + j) for j in range(2)])
        again = apply(g)
        if again.body is not g.body:
            raise CheckError(f"{name} changes what it has changed already:\n{g}\nbecomes\n{again}")
        _check_lines(name, f, g)


def _passes() -> Sequence[Any]:
    from symc.opt import all_passes

    return all_passes()


def _with_lines(f: Function) -> Function:
    """Every value on a line of its own."""
    from symc.ir.location import Loc
    from symc.ir.record import replace

    values = [v for v in f.values() if v.operands]
    return replace(f, hints={v: frozenset([Loc("program.py", k)]) for k, v in enumerate(values, 1)})


def _check_interface(name: str, f: Function, g: Any) -> None:
    from symc.errors import InternalError
    from symc.ir.verify import verify

    if not isinstance(g, Function):
        raise CheckError(f"{name} gives a {type(g).__name__}, not a Function")
    try:
        verify(g)
    except InternalError as e:
        raise CheckError(f"{name} makes IR that is not valid: {e.what}\n{g}") from e
    types = [[v.type for v in h.body.results] for h in (f, g)]
    if types[0] != types[1] or f.inputs != g.inputs or f.updates != g.updates:
        raise CheckError(f"{name} changes the interface:\n{f}\nbecomes\n{g}")


def _check_same_numbers(name: str, f: Function, g: Function, samples: Sequence[Any]) -> None:
    import numpy as np

    from symc.ir.reference import evaluate_function
    from symc.testing.rule_examples import near

    for arrays in samples:
        with np.errstate(all="ignore"):
            expected, got = (evaluate_function(h, arrays) for h in (f, g))
        for k, (a, b) in enumerate(zip(expected, got, strict=True)):
            if not near(np.asarray(a), np.asarray(b), 1.0):
                raise CheckError(f"{name} changes result {k} from {a} to {b}:\n{f}\nbecomes\n{g}")


def _check_lines(name: str, f: Function, g: Function) -> None:
    known = {v for v in f.values()}
    lost = [v for v in g.body.results if v.operands and v not in known and not g.hints.get(v)]
    if lost:
        raise CheckError(f"{name} loses the user's lines of {expression(lost[0])}: with_results(.., hints) notes them")
