"""Blame for a wrong result: the pass and the firing of a rule in it, the kernel, or the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.kernel.names import kernel_name
from symc.driver.backend import Settings
from symc.errors import LinAlgError, SymcError
from symc.ir.function import Function
from symc.ir.location import Loc
from symc.ir.op import PackedConcat
from symc.ir.ops.kernel import results_of
from symc.ir.ops.leaf import UNCOMPUTED
from symc.ir.record import dataclass, field
from symc.ir.text import print_function
from symc.ir.types import TupleType
from symc.ir.value import Value, fresh_input
from symc.opt import optimize
from symc.opt.why.history import named
from symc.opt.why.replay import has_rules, replay
from symc.tools.debugging.native import ON_CPU, Native, run_native
from symc.tools.debugging.observe import evaluate, every_array
from symc.tools.debugging.sample import Sample, walk_down
from symc.tools.debugging.shrink import shrink
from symc.tools.debugging.tolerance import Difference, Oracle

#: Errors that a wrong pass or kernel may make of a function that was right.
BROKEN = (SymcError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError)


@dataclass
class Blame:
    """The one to blame, and the smallest function that shows it.

    ``kind``: "nothing", "program" (the function as written does not give what was expected), "pass", "kernel", "plan"
    or "backend" (no kernel alone). ``name``: of the pass, kernel or op. ``firing``: which firing of ``rule`` in the
    pass it is, from 1; ``step``: which of all firings in it.
    """

    kind: str = "nothing"
    name: str = ""
    rule: str = ""
    firing: int = 0
    step: int = 0
    change: str = ""
    difference: Difference | None = None
    error: str = ""
    pipeline: str = ""
    value: str = ""
    lines: list[Loc] = field(default_factory=list)
    sample: Sample | None = None

    @property
    def said(self) -> str:
        """The difference, or the error; empty where nothing is wrong."""
        return self.error if self.difference is None else str(self.difference)

    def headline(self) -> str:
        """One sentence."""
        if self.kind == "pass":
            rule = f", by rule {self.rule} (its firing {self.firing}, firing {self.step} of the pass)"
            return f"pass {self.name!r} makes it wrong{rule if self.rule else ''}"
        return {
            "nothing": "nothing is wrong",
            "program": "the function itself does not give what was expected; every pass and the backend agree with it",
            "kernel": f"the backend is wrong: {self.name} computes it wrongly, every pass is right",
            "plan": f"the memory plan is wrong: {self.name}; every pass and every kernel is right",
            "backend": "the backend is wrong; every pass and every kernel alone is right",
        }.get(self.kind, f"check {self.name!r} fails")


def modifiers(pipeline: str) -> str:
    """Part of a pipeline that leaves out and lets in."""
    return "".join("," + t.strip() for t in pipeline.split(",") if t.strip()[:1] in ("-", "+"))


def base_name(stage: str) -> str:
    """The pass that made a stage: ``simplify`` of ``simplify.2``."""
    return stage.partition(".")[0]


def wrong_stage(stages: Mapping[str, Function], oracle: Oracle) -> tuple[str, Function, Difference | str] | None:
    """The first stage that gives something else, the function before it, and what is different or the error."""
    before, seen = next(iter(stages.values())), set()
    for name, f in stages.items():
        if f.body not in seen:
            seen.add(f.body)
            found = attempt(lambda f=f: evaluate(f, oracle.arrays), oracle)  # type: ignore[misc]
            if found is not None:
                return name, before, found
        before = f
    return None


def attempt(run: Callable[[], Sequence[Any]], oracle: Oracle) -> Difference | str | None:
    """Error in the results of ``run``: a difference, or the text of an error."""
    try:
        return oracle.difference(run())
    except BROKEN as e:
        if isinstance(e, LinAlgError) and oracle.may_refuse:
            return None
        return f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"


def blame_pass(stage: str, before: Function, found: Difference | str, oracle: Oracle, pipeline: str,
               seconds: float = 10.0) -> Blame:
    """The firing in a pass that makes results wrong, and the smallest function of which the pass makes a wrong one."""
    name = base_name(stage)
    alone = name + modifiers(pipeline)
    blame = Blame("pass", name, pipeline=alone)
    _note(blame, found)
    whole = Sample(before, tuple(oracle.arrays))
    start = whole
    if has_rules(name):
        n, firings = _firing_to_blame(name, before, pipeline, oracle)
        if n:
            last = firings[n - 1]
            blame.rule, blame.step = last.rule, n
            blame.firing = sum(f.rule == last.rule for f in firings[:n])
            blame.change = f"{named(before, last.old, 3)} -> {named(before, last.new, 3)}"
            blame.lines = sorted(last.lines)
            try:
                start = whole.with_results([last.old])
            except (SymcError, ValueError, TypeError, LookupError):
                start = whole  # a value of a body

    def fails(s: Sample) -> bool:
        return pass_is_wrong(alone, s) is not None

    blame.sample = next((shrink(s, fails, seconds) for s in (start, whole) if _holds(fails, s)), whole)
    _describe(blame, whole, fails)
    return blame


def pass_is_wrong(pipeline: str, s: Sample) -> Difference | str | None:
    """Difference of a function after some passes from itself before."""
    oracle = Oracle(s.function, s.arrays)
    return attempt(lambda: evaluate(optimize(s.function, pipeline).function, s.arrays), oracle)


def _holds(fails: Callable[[Sample], bool], s: Sample) -> bool:
    try:
        return fails(s)
    except BROKEN:
        return False


def _firing_to_blame(name: str, before: Function, pipeline: str, oracle: Oracle) -> tuple[int, Sequence[Any]]:
    """The number n of a firing such that after n - 1 firings the function is right and after n it is wrong; 0 if the
    rules alone do nothing wrong."""

    def wrong(n: int) -> bool:
        return attempt(lambda: evaluate(replay(name, before, pipeline, n)[0], oracle.arrays), oracle) is not None

    _, firings = replay(name, before, pipeline)
    low, high = 0, len(firings)
    if not high or not wrong(high):
        return 0, firings
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong(middle) else (middle, high)
    return high, replay(name, before, pipeline, high)[1]


def _note(blame: Blame, found: Difference | str) -> None:
    if isinstance(found, str):
        blame.error = found
    else:
        blame.difference = found


def _describe(blame: Blame, whole: Sample, fails: Callable[[Sample], bool]) -> None:
    """The first wrong value of the user's, with its lines."""
    first = walk_down(whole.as_plain(), lambda s: _holds(fails, s))
    (value,) = first.function.body.results[:1]
    blame.value = f"{named(first.function, value)} : {value.type}"
    blame.lines = blame.lines or first.function.locations(value)


# --- the backend ------------------------------------------------------------------------------------------------------


def blame_backend(final: Function, found: Difference | str, oracle: Oracle, donated: frozenset[int],
                  seconds: float = 10.0, settings: Settings = ON_CPU) -> Blame:
    """The kernel or call of a function that is wrong alone; else the plan; the backend, if there is none."""
    blame = Blame("backend")
    _note(blame, found)
    blame.sample = whole = Sample(final, tuple(oracle.arrays), donated)
    if not settings.backend.plans:
        return blame
    for v, s in steps_alone(whole):
        wrong = backend_is_wrong(s, settings)
        if wrong is not None:
            blame.kind, blame.name = "kernel", step_name(v)
            blame.lines = final.locations(v)
            blame.value = f"{named(final, v, 3)} : {v.type}"
            blame.sample = shrink(s, lambda x: backend_is_wrong(x, settings) is not None, seconds, 150)
            return blame
    if attempt(lambda: run_native(final, whole.arrays, donated, False, settings), oracle) is None:
        blame.kind, blame.name = "plan", "results of steps overwrite one another"
    elif attempt(lambda: run_native(final, whole.arrays, settings=settings), oracle) is None:
        blame.kind, blame.name = "plan", "a donated input is overwritten too early"
    return blame


def step_name(v: Value) -> str:
    """Name of what runs a value of a fused function: a kernel by its name, or an op."""
    if v.op.lowering is None and v.regions or isinstance(v.op.lowering, PackedConcat):
        try:
            return f"kernel {kernel_name(v)}"
        except SymcError:
            pass
    return f"op {v.op.name}"


def steps_alone(s: Sample) -> list[tuple[Value, Sample]]:
    """Every value of a fused function that is a step of its own, as a function of what it reads."""
    f, arrays = s.function, every_array(s.function, s.arrays)
    out = []
    for v in f.values():
        if v.op in UNCOMPUTED or v.op.name == "reshape" or not v.operands:
            continue
        leaves = {o: fresh_input(o.type) for o in dict.fromkeys(v.operands)
                  if not isinstance(o.type, TupleType) and o.op.name != "constant"}
        if len(leaves) < sum(o.op.name != "constant" for o in dict.fromkeys(v.operands)):
            continue
        (new,) = _on(v, leaves)
        out.append((v, s.with_results(results_of(new), {leaf: arrays[o] for o, leaf in leaves.items()})))
    return out


def _on(v: Value, leaves: Mapping[Value, Value]) -> list[Value]:
    from symc.ir.traverse import rebuild

    return [rebuild(v, [leaves.get(o, o) for o in v.operands])]


def backend_is_wrong(s: Sample, settings: Settings) -> Difference | str | None:
    """Difference of a lowered function, run natively, from its reference."""
    oracle = Oracle(s.function, s.arrays)
    made: list[Native] = []

    def run() -> list[np.ndarray]:
        if not made:
            made.append(Native(s.function, s.donated, settings=settings))
        return made[0].run(s.arrays)

    return attempt(run, oracle) or attempt(run, oracle)


def text_of(s: Sample) -> str:
    """The text of a function, with what it is called on as comments."""
    lines = [print_function(s.function).rstrip("\n")]
    for i, a in zip(s.function.inputs, s.arrays, strict=True):
        shown = np.array2string(a, threshold=12, separator=", ").replace("\n", "")
        lines.append(f"// %{i.name} = {shown}")
    return "\n".join(lines) + "\n"
