"""``sc.lint(expr)``: expressions that lose digits and that no rule repairs, float64 among float32, Python in loops.

The expression is optimized, then computed on sampled inputs twice: in its own dtype, and by mpmath. A value is blamed
if it is far from exact although its operands were exact up to one rounding, and if a result suffers. Bodies of loops
and branches are looked at on sampled operands of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.driver.build import build
from symc.driver.built import Built
from symc.driver.measured import chain_of
from symc.errors import InputError, SymcError, named_packages
from symc.ir.function import Function
from symc.ir.location import Loc
from symc.ir.op import in_python, is_builtin
from symc.ir.ops.effect import quiet
from symc.ir.record import dataclass
from symc.ir.reference import apply
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.notebook import Shown, table, text
from symc.opt import optimize
from symc.opt.engine.pipelines import UNFUSED
from symc.opt.engine.regions import every_function
from symc.opt.why.history import named
from symc.tensors.callsite import at_caller, caller
from symc.tensors.deferred import contains_deferred
from symc.tensors.pytree import flatten
from symc.tools.lint_dtypes import arising_doubles
from symc.tools.precise import PRECISION, NotPrecise, precise_step, to_precise, ulps
from symc.tools.sampling import Sample, chain_samples, leaves_of, samples, sizes_in

#: Named ops stay what they are: rules know them, and so does the reader. So do promises, which samples must keep.
PIPELINE = UNFUSED.split(",forget_assumptions")[0]
#: A value with a larger error, from operands that were right, is looked at; in units in the last place.
LOCAL = 64.0
#: A result with a larger error suffers.
SUFFERS = 256.0


@dataclass(frozen=True)
class Finding:
    """One value that loses digits, gains some that nobody asked for, or calls Python in a loop.

    ``digits``: how many decimal digits are wrong at worst; ``at``: for which inputs (empty where that is all).
    """

    value: Value
    expression: str
    lines: tuple[Loc, ...]
    what: str
    digits: float
    at: str

    def __str__(self) -> str:
        where = f"    {', '.join(map(str, self.lines))}" if self.lines else ""
        return f"{self.expression}{where}\n  {self.what}{f', for inputs {self.at}' if self.at else ''}"


class LintReport(Shown, list[Finding]):
    """The findings, worst first; ``str`` of it is text for people."""

    def _html_(self) -> str:
        if not self:
            return text(str(self))
        return table(["expression", "what", "for inputs", "lines"],
                     [(x.expression, x.what, x.at, ", ".join(map(str, x.lines))) for x in self])

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing found that loses digits"


def lint(outputs: Any) -> LintReport:
    """Say which expressions of ``outputs`` (a value, or any nest of values) lose digits, and how.

    What a rule repairs is not reported: it is computed in another way. Where all arguments are float32 (or narrower),
    it is also said where float64 arises.
    """
    loc = caller()
    if contains_deferred([flatten(outputs)[0]]):
        raise InputError("lint: the types of these expressions are not known before a call", where=[loc],
                         help="use inputs with a dtype and a shape: sc.input, sc.vector, sc.matrix")
    with at_caller():
        functions, counts = _functions(outputs, loc)
        drawn = chain_samples(functions, counts) if counts else [list(samples(functions[0]))]
        every = [x for written, given in zip(functions, drawn, strict=True) for x in _found_in(written, given)]
    return LintReport(sorted(every, key=lambda x: (-x.digits, x.expression)))


def _functions(outputs: Any, loc: Loc) -> tuple[list[Function], list[int]]:
    """The function of the outputs; or those of a chain if sizes are data, and how many sizes each but the last finds.
    """
    made: list[Function] = []

    def note(built: Built, options: Any) -> Any:
        made.append(built.function)

    options = {"name": "lint", "max_bytes": None, "split": (), "specialize": None}
    chain = chain_of(outputs, None, None, None, (), options, loc, note)
    if chain is None:
        return [build(outputs, None, None, None, (), "lint", loc).function], []
    return made, [s.sizes for s in chain[1]]


def _found_in(written: Function, given: Sequence[Sample]) -> list[Finding]:
    with named_packages():
        import mpmath as mp

    f = optimize(written, PIPELINE).function
    found: dict[Value, Finding] = {}
    with mp.workprec(PRECISION):
        for k, part in enumerate(every_function(f)):
            for s in samples(part) if k else given:
                _look(part, s, found)
    doubles = [_widened(written, *pair) for pair in arising_doubles(written)]
    return [*found.values(), *doubles, *_called_in_loops(f)]


def _widened(f: Function, v: Value, user: Value | None) -> Finding:
    """A value that is float64 although no argument is, shown where it is used."""
    shown = [x for x in (v, user) if x is not None]
    lines = next((tuple(at) for x in shown for part in every_function(f) if (at := part.locations(x))), ())
    of = named(f, v.operands[0] if v.operands else v, 3)
    what = f"float64 arises here, where all arguments are narrower: {of} is {v.dtype}"
    if v.operands:
        what = f"float64 arises here, where all arguments are narrower: {of} is converted from {v.operands[0].dtype}"
    return Finding(v, named(f, v if user is None else user, 4), lines, what, 0.0, "")


def _called_in_loops(f: Function) -> Iterator[Finding]:
    """Ops in loops and branches that call Python in every step."""
    for part in list(every_function(f))[1:]:
        for v in part.values():
            if in_python(v) and "effect" not in v.op.traits:
                help = "" if is_builtin(v.op) else ": numba= or expression= of sc.op makes native code of it"
                yield Finding(v, named(part, v, 4), tuple(part.locations(v)),
                              f"{v.op.name} runs in Python, in every step of a loop{help}", 0.0, "")


def _look(f: Function, s: Sample, found: dict[Value, Finding]) -> None:
    """Compute every value of ``f`` both ways, and blame those that lose digits."""
    sizes = sizes_in(f, s.arrays)
    got: dict[Value, Any] = leaves_of(f, s.arrays)
    exact: dict[Value, Any] = {}
    blamed: list[tuple[Value, float]] = []
    try:
        for p, a in got.items():
            exact[p] = to_precise(a)
        for v in f.values():
            if v not in got:
                _step(v, got, exact, sizes, blamed)
    except (SymcError, NotPrecise):
        return  # the sample is none for this function, or complex
    suffering = any(
        np.max(ulps(got[r], exact[r], r.dtype), initial=0.0) > SUFFERS
        for r in f.body.results
        if isinstance(r.type, TensorType) and r.dtype.kind == "f"
    )
    if suffering:
        for v, error in blamed:
            digits = _digits(error, v.dtype)
            if v not in found or digits > found[v].digits:
                what = _what(f, v, [exact[o] for o in v.operands], exact[v], digits)
                found[v] = Finding(v, named(f, v, 4), tuple(f.locations(v)), what, digits, s.label)


def _step(v: Value, got: dict[Value, Any], exact: dict[Value, Any], sizes: Any, blamed: list) -> None:
    """One value, in its dtype and exactly. What has no exact counterpart is exact by definition."""
    with quiet(), np.errstate(all="ignore"):
        got[v] = apply(v, [got[o] for o in v.operands], sizes, False, None)
    if not isinstance(v.type, TensorType):
        return
    known = all(o in exact for o in v.operands)
    try:
        exact[v] = precise_step(v, [exact[o] for o in v.operands], sizes) if known else to_precise(got[v])
    except NotPrecise:
        known, exact[v] = False, to_precise(got[v])
    if known and v.dtype.kind == "f" and v.operands:
        rounded = [_rounded(exact[o], o) for o in v.operands]
        with quiet(), np.errstate(all="ignore"):
            local = apply(v, rounded, sizes, False, None)
        error = float(np.max(ulps(local, exact[v], v.dtype), initial=0.0))
        if error > LOCAL:
            blamed.append((v, error))


def _rounded(x: np.ndarray, o: Value) -> np.ndarray:
    """Exact numbers in the dtype of the value they are."""
    if o.dtype.kind != "f":
        return np.asarray(x, o.dtype)
    with np.errstate(all="ignore"):
        return np.asarray([float(e) for e in x.ravel()], np.float64).reshape(x.shape).astype(o.dtype)


def _digits(error: float, dtype: np.dtype) -> float:
    """Decimal digits that an error of so many ulps makes wrong."""
    most = np.finfo(dtype).precision + 1
    return float(most if np.isinf(error) else min(most, np.log10(error)))


def _what(f: Function, v: Value, operands: Sequence[np.ndarray], result: np.ndarray, digits: float) -> str:
    """Words for what happens."""
    lost = f"{digits:.0f} of {np.finfo(v.dtype).precision + 1} digits are lost"
    largest, smallest = float(np.finfo(v.dtype).max), float(np.finfo(v.dtype).tiny)
    for o, x in zip(v.operands, operands, strict=True):
        if o.dtype.kind == "f" and any(abs(e) > largest for e in x.ravel() if e == e):
            return f"{named(f, o, 3)} overflows although the result need not: {lost}"
    for o, x in zip(v.operands, operands, strict=True):
        if o.dtype.kind == "f" and any(0 < abs(e) < smallest for e in x.ravel() if e == e):
            return f"{named(f, o, 3)} underflows although the result need not: {lost}"
    if v.op.name in ("add", "sub", "sum", "dot"):
        return f"its terms cancel: {lost}"
    return f"it magnifies the rounding of its operands: {lost}"
