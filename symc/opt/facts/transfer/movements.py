"""Facts of leaves, of what moves elements about, of choices and of conversions."""

from __future__ import annotations

import math

import numpy as np

from symc.ir.dim import Dim, known_nonnegative
from symc.ir.dtypes import finfo
from symc.ir.op import picks
from symc.ir.size_extremes import if_any
from symc.ir.text import splat_of
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.facts.fact import UNKNOWN, End, Fact, at_least, at_most, both, either, transfer
from symc.opt.facts.transfer.ends import INF, ends, ranged


@transfer("constant")
def _constant(v: Value, _: list[Fact]) -> Fact:
    data = v.attrs["value"].data
    kind = data.dtype.kind
    if not data.size:
        return Fact(0, 0, False, False, False, True)
    zero = bool((data == 0).any())
    if kind == "c":
        return Fact(None, None, bool(np.isnan(data).any()), bool(np.isinf(data).any()), zero)
    if kind in "iub":
        return Fact(int(data.min()), int(data.max()), False, False, zero, True)
    numbers = data[~np.isnan(data)]
    if not numbers.size:
        return Fact(None, None, True, False, False, True)
    finite = numbers[np.isfinite(numbers)]
    return Fact(
        float(numbers.min()),
        float(numbers.max()),
        numbers.size < data.size,
        finite.size < numbers.size,
        zero,
        bool((finite == np.trunc(finite)).all()),
    )


@transfer("size", "check_index", "bounded")
def _size(v: Value, given: list[Fact]) -> Fact:
    return Fact(*ranged(v, given))


@transfer("iota")
def _iota(v: Value, _: list[Fact]) -> Fact:
    if not counts_exactly(v):
        return Fact(*ranged(v, [])) if v.dtype.kind in "iu" else Fact(0.0, None, False, True, integer=True)
    n = if_any(v.shape[v.attrs["axis"]])
    if v.dtype.kind == "f":
        return Fact(0.0, float(n - 1), False, False, integer=True)  # type: ignore[arg-type]
    return Fact(0, n - 1)


def counts_exactly(v: Value) -> bool:
    """True if the dtype of an iota holds all the numbers in it."""
    n = v.shape[v.attrs["axis"]]
    if v.dtype.kind == "f":
        return isinstance(n, int) and n < 1 / finfo(v.dtype).eps
    return v.dtype == DTYPES["i64"] or (isinstance(n, int) and v.dtype.kind in "iu" and n <= np.iinfo(v.dtype).max)


@transfer("argsort", "argmax", "argmin", "places")
def _places(v: Value, given: list[Fact]) -> Fact:
    return Fact(*ranged(v, given))


@transfer("picks")
def _movement(v: Value, given: list[Fact]) -> Fact:
    """Elements of operands of this dtype (indices and starts are others, or come after the first)."""
    if v.op.name == "gather" and v.operands[0].op.name == "cholesky" and is_diagonal(v):
        return Fact(0.0, None, False, True, False)
    found = given[: picks(v.op)]
    return either(found) if len(found) > 1 else found[0]


def is_diagonal(v: Value) -> bool:
    """True if a gather takes the diagonal of matrices in the last two axes: both places are the same."""
    n = v.operands[0].ndim
    return v.attrs["axes"][-2:] == (n - 2, n - 1) and v.operands[-1] is v.operands[-2]


@transfer("where")
def _where(v: Value, given: list[Fact]) -> Fact:
    test, x, y = given
    if at_least(test.low, 1):
        return x
    if at_most(test.high, 0):
        return y
    x, y = _refined(v, x, 1, True), _refined(v, y, 2, False)
    out = either([x, y])
    if v.dtype.kind in "iu":
        low, high = ranged(v, given)
        out = Fact(out.low if low is None else low, out.high if high is None else high, zero=out.zero)
    return out


def _refined(v: Value, f: Fact, k: int, holds: bool) -> Fact:
    """The fact of answer ``k`` of a `where`, refined if the condition compares it with a number."""
    test, x = v.operands[0], v.operands[k]
    name = test.op.name
    if name == "not":
        test, holds = test.operands[0], not holds
        name = test.op.name
    if not (test.op.facts.mirror or name in ("isnan", "isfinite")) or test.operands[0] is not x:
        return f
    if name == "isnan":
        return f if holds else Fact(f.low, f.high, False, f.inf, f.zero, f.integer)
    if name == "isfinite":
        return Fact(f.low, f.high, False, False, f.zero, f.integer) if holds else f
    number = splat_of(test.operands[1])
    if number is None or number.dtype.kind not in "iuf" or number != number:
        return f
    n = number.item()
    if name in ("ne", "eq"):
        apart = (name == "ne") == holds
        return Fact(f.low, f.high, f.nan, f.inf, f.zero and not (apart and n == 0), f.integer)
    upper = (name in ("lt", "le")) == holds
    strict = name in ("lt", "gt") if holds else name in ("le", "ge")
    zero = f.zero and not (strict and n == 0)
    nan = f.nan and not holds
    low = f.low if upper or at_least(f.low, n) else n
    high = f.high if not upper or at_most(f.high, n) else n
    return Fact(low, high, nan, f.inf, zero, f.integer)


@transfer("cast")
def _cast(v: Value, given: list[Fact]) -> Fact:
    (f,) = given
    source, target = v.operands[0].dtype, v.dtype
    if target.kind == "b":
        return Fact(0 if f.zero else 1, 1)
    if target.kind in "iu":
        if source.kind == "f":
            low, high = ends(f)
            info = np.iinfo(target)
            if f.nan or low < info.min or high > 2.0**52 or high > info.max:
                return UNKNOWN
            return Fact(math.trunc(low), math.trunc(high))
        low_, high_ = ranged(v, given)
        if low_ is None and isinstance(f.low, int) and isinstance(f.high, int) and source.kind in "iu":
            info = np.iinfo(target)
            if info.min <= f.low and f.high <= info.max:
                low_, high_ = f.low, f.high
        return Fact(low_, high_, zero=f.zero or not np.can_cast(source, target, "safe"))
    if target.kind == "f":
        if source.kind == "c":
            return UNKNOWN
        low, high = _as_float(f.low, -INF), _as_float(f.high, INF)
        if source.kind == "f":
            top = float(finfo(target).max)
            widened = np.can_cast(source, target, "safe")
            inf = f.inf or not (widened or -top <= low and high <= top)
            zero = f.zero or not widened  # a small number may vanish
            return Fact(_rounded(low, target), _rounded(high, target), f.nan, inf, zero, f.integer)
        inf = target.itemsize == 2 and not (abs(low) < 65504 and abs(high) < 65504)
        return Fact(_rounded(low, target), _rounded(high, target), False, inf, f.zero, True)
    same = source.kind == "c" and target.itemsize >= source.itemsize
    return Fact(nan=f.nan, inf=f.inf, zero=f.zero) if same else UNKNOWN


def _as_float(end: End, otherwise: float) -> float:
    """An end as a float; of a formula of sizes, only whether it is negative is known (and that none is 2**52)."""
    if end is None:
        return otherwise
    if isinstance(end, Dim):
        return 0.0 if otherwise < 0 and known_nonnegative(end) else 2.0**52 if otherwise > 0 else otherwise
    return float(end)


def _rounded(x: float, dtype: np.dtype) -> float:
    """x rounded to the dtype, as a conversion of an element does."""
    with np.errstate(all="ignore"):
        return float(dtype.type(x))



#: What no matrix with an infinity or a nan is.
FINITE = frozenset({"psd", "pd", "orthogonal", "permutation", "identity"})


@transfer("assume", "check_assumption")
def _assume(v: Value, given: list[Fact]) -> Fact:
    return both(given[0], promises(v))


def promises(v: Value) -> Fact:
    """The promise of an `assume`, without what is known besides; its structure is stated in ``structures``."""
    a = v.attrs
    finite = a["finite"] or not FINITE.isdisjoint(a["structure"])
    said = a["low"] is not None or a["high"] is not None or finite or a["integer"]
    return Fact(a["low"], a["high"], not said, not finite, not a["nonzero"], a["integer"])
