"""Checks that must hold of every program: all ways to run it give what the reference gives.

A check takes a trial (a function, sets of arrays, what a call may overwrite) and gives None, or a ``Blame`` with the
smallest function it found. Whatever the reference itself refuses (an index out of bounds, a singular matrix) is not
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from symc.driver.backends import by_name
from symc.driver.built import Built
from symc.driver.finish import compile_built
from symc.driver.function import CompiledFunction
from symc.driver.read_saved import unpack
from symc.driver.save import pack
from symc.driver.signature import Slot
from symc.errors import DeviceError, ExecutionError
from symc.ir.function import Function
from symc.ir.parse import parse
from symc.ir.record import dataclass, field
from symc.ir.reference import evaluate_function
from symc.ir.text import print_function
from symc.ir.verify import verify
from symc.opt import DEFAULT, FAST_COMPILE, Optimized, optimize
from symc.opt.engine.pipelines import ON_CUDA
from symc.tensors.pytree import LEAF, Nest
from symc.tensors.state import Cell
from symc.testing.bounds import at_the_end
from symc.tools.debugging.blame import (
    Blame,
    attempt,
    blame_backend,
    blame_pass,
    wrong_stage,
)
from symc.tools.debugging.native import Native, OnDevice, lowered
from symc.tools.debugging.observe import evaluate
from symc.tools.debugging.sample import Sample
from symc.tools.debugging.shrink import shrink
from symc.tools.debugging.tolerance import Difference, Oracle

Arrays = tuple[np.ndarray, ...]
#: How long a failing program may be made smaller.
SECONDS = 20.0


@dataclass
class Trial:
    """A function on sets of arrays. What several checks need is computed once."""

    function: Function
    data: Sequence[Arrays]
    donated: frozenset[int] = field(default_factory=frozenset)
    seconds: float = SECONDS

    @cached_property
    def oracles(self) -> list[Oracle]:
        """The reference, for every set of arrays that it accepts."""
        out = []
        for arrays in self.data:
            try:
                evaluate_function(self.function, [a.copy() for a in arrays], check=True)
                out.append(Oracle(self.function, arrays))
            except REFUSED:
                continue
        return out

    @cached_property
    def optimized(self) -> Optimized:
        return optimize(self.function, DEFAULT, strict=True, verify=True)

    @cached_property
    def fast(self) -> Optimized:
        return optimize(self.function, FAST_COMPILE, strict=True, verify=True)

    def sample(self, arrays: Sequence[np.ndarray]) -> Sample:
        return Sample(self.function, tuple(arrays), self.donated)


#: What a reference says of operands for which an op has no meaning.
REFUSED = (ExecutionError, ValueError, IndexError, np.linalg.LinAlgError, ZeroDivisionError, OverflowError, MemoryError)
Check = Callable[[Trial], Blame | None]
CHECKS: dict[str, Check] = {}
#: Checks that compile kernels, which takes a hundred times as long.
NATIVE: set[str] = set()


def check(name: str, native: bool = False) -> Callable[[Check], Check]:
    def declare(c: Check) -> Check:
        CHECKS[name] = c
        if native:
            NATIVE.add(name)
        return c

    return declare


def run(name: str, t: Trial) -> Blame | None:
    """One check; an error that it raises, whatever it is, is a failure of its own, and made small as well."""
    try:
        return CHECKS[name](t)
    except Exception as e:
        blame, error = of_error(name, e), _error(e)
        blame.sample = _smaller(t, t.data[0], lambda s: _error_of(name, s) == error) if t.data else None
        return blame


def of_error(name: str, e: Exception) -> Blame:
    """An error that something called ``name`` raised."""
    return Blame("check", name, error=f"{_error(e)}: {_brief(e)}")


def _error(e: BaseException) -> str:
    return type(e).__name__ + " in " + _place(e)


def _place(e: BaseException) -> str:
    """The function of symc that raised, so that shrinking keeps the same error."""
    tb = e.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb.tb_frame.f_code.co_name if tb is not None else ""


def _brief(e: BaseException) -> str:
    return str(e).strip().partition("\n")[0][:300]


def _error_of(name: str, s: Sample) -> str:
    try:
        CHECKS[name](Trial(s.function, [s.arrays], s.donated, 0.0))
    except Exception as e:
        return _error(e)
    return ""


def _smaller(t: Trial, arrays: Sequence[np.ndarray], fails: Callable[[Sample], bool]) -> Sample:
    def same(s: Sample) -> bool:
        try:
            return fails(s)
        except Exception:  # another mistake than the one that is made small
            return False

    return shrink(t.sample(arrays), same, t.seconds)


def simple(name: str, t: Trial, arrays: Sequence[np.ndarray], found: Difference | str,
           fails: Callable[[Sample], bool]) -> Blame:
    """A failure of a check that no pass or kernel is known to be guilty of."""
    blame = Blame("check", name, sample=_smaller(t, arrays, fails) if t.seconds else t.sample(arrays))
    if isinstance(found, str):
        blame.error = found
    else:
        blame.difference = found
    return blame


def first_wrong(name: str, t: Trial, wrong: Callable[[Sample], Difference | str | None], most: int = 1) -> Blame | None:
    """A failure on the first set of arrays (of the first ``most``) of which ``wrong`` finds something."""
    for oracle in t.oracles[:most]:
        found = wrong(Sample(t.function, tuple(oracle.arrays)))
        if found:
            return simple(name, t, oracle.arrays, found, lambda s: bool(wrong(s)))
    return None


@check("reference")
def reference(t: Trial) -> Blame | None:
    """The references give numbers, or refuse operands in so many words."""
    list(t.oracles)
    return None


# --- passes -----------------------------------------------------------------------------------------------------------


def _stages(t: Trial, stages: dict[str, Function], pipeline: str) -> Blame | None:
    for oracle in t.oracles:
        found = wrong_stage(stages, oracle)
        if found is not None:
            return blame_pass(*found, oracle, pipeline, t.seconds)
    return None


@check("passes")
def passes(t: Trial) -> Blame | None:
    """Every prefix of the default pipeline, by the reference."""
    return _stages(t, t.optimized.stages, DEFAULT)


@check("fast_passes")
def fast_passes(t: Trial) -> Blame | None:
    """Every prefix of the pipeline of ``mode="fast_compile"``."""
    return _stages(t, t.fast.stages, FAST_COMPILE)


@check("again")
def again(t: Trial) -> Blame | None:
    """Checks that the whole pipeline makes the same again; optimizing it once more keeps its meaning."""
    if optimize(t.function, DEFAULT).function.body is not t.optimized.function.body:
        return simple("again", t, t.data[0], "two runs of the pipeline give two functions", lambda s: False)
    before = t.optimized.stages.get("simplify", t.function)
    stages = optimize(before, DEFAULT).stages
    return _stages(Trial(before, [tuple(x.arrays) for x in t.oracles[:1]], seconds=t.seconds), stages, DEFAULT)


# --- text and files ---------------------------------------------------------------------------------------------------


@check("text")
def text(t: Trial) -> Blame | None:
    """The text of every stage reads back as the same object."""
    for f in dict.fromkeys(t.optimized.stages.values()):
        wrong = _text_is_wrong(f)
        if wrong:
            return simple("text", Trial(f, t.data, t.donated, t.seconds), t.data[0], wrong,
                          lambda s: bool(_text_is_wrong(s.function)))
    return None


def _text_is_wrong(f: Function) -> str:
    back = parse(print_function(f))
    verify(back)
    if back.body is f.body:
        return ""
    return "" if print_function(back, locations=False) == print_function(f, locations=False) and _nans(f) else (
        "the text does not give the function back")


def _nans(f: Function) -> bool:
    """True if the function has constants that are not compared bit for bit in text."""
    from symc.ir.attrs import Array

    return any(isinstance(a, Array) and a.data.dtype.kind in "fc" and np.isnan(a.data).any()
               for v in f.values() for a in v.attrs.values())


@check("files")
def files(t: Trial) -> Blame | None:
    """A saved function computes the same when it is loaded."""
    return first_wrong("files", t, _file_is_wrong, 2)


def compiled(f: Function, mode: str = "reference", pipeline: str | None = None,
             backend: str | None = None, states: Sequence[np.ndarray] = ()) -> CompiledFunction:
    """A function object of an IR function; ``states`` are the arrays of its last inputs, at first."""
    slots = tuple(Slot(i.name) for i in f.inputs if i.role == "arg")
    kept = [i for i in f.inputs if i.role == "state"]
    cells = tuple(Cell(a.copy(), i.type, i.name) for i, a in zip(kept, states, strict=True))
    built = Built(f, Nest("tuple", (LEAF,) * len(f.outputs)), slots, cells, frozenset())
    options = dict(mode=mode, pipeline=pipeline, name=f.name, threads=None, max_bytes=None,
                   backend=backend)
    return compile_built(built, options)


def _file_is_wrong(s: Sample) -> Difference | str | None:
    if s.function.updates:
        return None
    oracle = Oracle(s.function, s.arrays)
    return attempt(lambda: list(unpack(pack(compiled(s.function), True))(*s.arrays)), oracle)


# --- the backend ------------------------------------------------------------------------------------------------------


class _Bounded(Native):
    """A function on arrays that end where a process may touch no memory."""

    copied = staticmethod(at_the_end)


def _natively(t: Trial, final: Function, backend: str = "llvm") -> Blame | None:
    programs: dict[bool, Native] = {}
    for oracle in t.oracles:
        def run(oracle: Oracle = oracle) -> list[np.ndarray]:
            if not programs:
                programs[True] = _Bounded(final, t.donated, settings=by_name(backend))
            return programs[True].run(oracle.arrays)

        found = attempt(run, oracle) or attempt(run, oracle)
        if found is not None:
            before = attempt(lambda oracle=oracle: evaluate(final, oracle.arrays), oracle)  # type: ignore[misc]
            if before is not None:
                continue  # a pass is wrong: another check says which
            return blame_backend(final, found, oracle, t.donated, t.seconds, by_name(backend))
    return None


@check("native", native=True)
def native(t: Trial) -> Blame | None:
    """The default pipeline, plan and kernels; every call twice."""
    return _natively(t, t.optimized.function)


@check("fast_native", native=True)
def fast_native(t: Trial) -> Blame | None:
    """``mode="fast_compile"``."""
    return _natively(t, t.fast.function)


@check("plain_native", native=True)
def plain_native(t: Trial) -> Blame | None:
    """Kernels of the function as it is written."""
    return _natively(t, lowered(t.function))


@check("by_numba", native=True)
def by_numba(t: Trial) -> Blame | None:
    """The default pipeline and plan, with kernels by Numba; every call twice."""
    return _natively(t, t.optimized.function, "numba")


@check("on_device", native=True)
def on_device(t: Trial) -> Blame | None:
    """The pipeline, plan and kernels of a CUDA device, emulated; every call three times, the last as a graph."""
    return first_wrong("on_device", t, _device_is_wrong, 2)


def _device_is_wrong(s: Sample) -> Difference | str | None:
    oracle, final = Oracle(s.function, s.arrays), optimize(s.function, ON_CUDA, strict=True).function
    try:
        program = OnDevice(final)
    except DeviceError:
        return None
    found = [attempt(lambda: program.run(oracle.arrays), oracle) for _ in range(3)]
    wrong = next((x for x in found if x is not None), None)
    if wrong is None or attempt(lambda: evaluate(final, oracle.arrays), oracle) is not None:
        return None  # or a pass is wrong: another check says which
    return wrong


@check("memory", native=True)
def memory(t: Trial) -> Blame | None:
    """Checks that where values lie does not matter: not a bit is different without reuse of memory or donation."""
    final = t.optimized.function
    programs = [_Bounded(final, t.donated), Native(final, t.donated, reuse=False), Native(final)]
    for oracle in t.oracles[:2]:
        first, *others = [p.run(oracle.arrays) for p in programs]
        for results in others:
            for k, (a, b) in enumerate(zip(first, results, strict=True)):
                if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                    return Blame("plan", f"result {k} depends on where values lie",
                                 sample=Sample(final, tuple(oracle.arrays), t.donated))
    return None


