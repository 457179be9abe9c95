"""Distributions of whole numbers and truth values. They have no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError
from symc.ir.op import splat
from symc.ir.ops.arithmetic import maximum, neg
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import ge, gt, le, lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import and_, shr, where
from symc.ir.ops.math import ceil, log1p
from symc.ir.ops.random import below, binomial_draw, gamma_draw, poisson_draw
from symc.ir.types import DTYPE_NAMES, DTYPES, TensorType, as_dtype
from symc.ir.value import Value
from symc.numpy_api.promotion import check_range, stretch
from symc.random.core import F64, I64, U64, Draw, distribution, integer_dtype, known_data, more, prepare
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API
from symc.tensors.tensor import Tensor


def _prepare(name: str, key: Any, shape: Any, **parameters: tuple[Any, str]) -> Draw:
    """Counts are computed in float64 whatever the parameters are."""
    return prepare(name, key, shape, None, F64, **parameters)


def _counts(v: Value, dtype: Any, name: str) -> Tensor:
    return Tensor(convert(v, integer_dtype(dtype, name)))


@distribution
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Tensor:
    """True with probability ``p``."""
    d = _prepare("bernoulli", key, shape, p=(p, "probability"))
    return Tensor(lt(d.unit("unit_uniform", F64), d.parameters[0]))


@distribution
def rademacher(key: Any, shape: Any = (), dtype: Any = "int64") -> Tensor:
    """-1 or 1, each equally likely."""
    d = prepare("rademacher", key, shape, None)
    one = splat(1, TensorType(DTYPES["i64"], d.shape))
    return Tensor(convert(where(lt(d.bits(), 2**63), neg(one), one), _number_dtype(dtype)))


def _number_dtype(dtype: Any) -> np.dtype:
    d = as_dtype(dtype)
    if d.kind not in "if":
        raise DTypeError(f"rademacher gives signed numbers, not {DTYPE_NAMES[d]}")
    return d


@distribution
def poisson(key: Any, lam: Any = 1.0, shape: Any = None, dtype: Any = None) -> Tensor:
    """Counts with mean ``lam``; -1 where it is negative or nan."""
    d = _prepare("poisson", key, shape, lam=(lam, "nonnegative"))
    return _counts(poisson_draw(d.bits(), d.parameters[0]), dtype, "poisson")


@distribution
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Successes in ``n`` trials of probability ``p``; -1 where there is no such distribution."""
    d = _prepare("binomial", key, shape, n=(n, "count"), p=(p, "probability"))
    return _counts(binomial_draw(d.bits(), *d.parameters), dtype, "binomial")


@distribution
def negative_binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Failures before success number ``n``, which need not be whole, in trials of probability ``p``."""
    d = _prepare("negative_binomial", key, shape, n=(n, "positive"), p=(p, "chance"))
    n_, p_ = d.parameters
    bits = d.bits()
    return _counts(poisson_draw(more(bits, 0), gamma_draw(bits, n_) * ((1 - p_) / p_)), dtype, "negative_binomial")


@distribution
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Trials of probability ``p`` up to the first success, at least 1; -1 where there is no such distribution."""
    d = _prepare("geometric", key, shape, p=(p, "chance"))
    (p_,) = d.parameters
    trials = maximum(ceil(d.unit("unit_exponential", F64) / neg(log1p(neg(p_)))), 1)
    legal = and_(gt(p_, 0), le(p_, 1))
    return _counts(cast(where(legal, trials, like(trials, -1)), dtype=I64), dtype, "geometric")


@distribution
def multinomial(key: Any, n: Any, pvals: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Number of times each of the categories of the last axis of ``pvals`` occurs in ``n`` trials.

    ``shape`` is that of the draws: the result has one axis more, whose length must be a number.
    """
    p = as_tensor(pvals)
    length = p.shape[-1] if p.ndim else None
    if not isinstance(length, int):
        raise InputError("multinomial: the last axis of pvals must have a length that is known",
                         values=[p.describe("pvals")])  # fmt: skip
    data = known_data(p)
    if data is not None and (np.any(data < 0) or np.any(np.sum(data, -1) > 1 + 1e-6)):
        raise InputError("multinomial: pvals must not be negative, and their sum must be at most 1")
    columns = [API["getitem"](p, (..., k)) for k in range(length)]
    d = _prepare("multinomial", key, shape, n=(n, "count"), **{f"pvals_{k}": (c, "probability")
                                                              for k, c in enumerate(columns)})  # fmt: skip
    left, *chances = d.parameters
    bits, rest = d.bits(), like(left, 1)
    out = []
    for k, chance in enumerate(chances):
        share = where(gt(rest, chance), chance / rest, like(rest, 1)) if k < length - 1 else like(rest, 1)
        found = binomial_draw(more(bits, k), left, where(ge(share, 0), share, like(share, 0)))
        out.append(Tensor(found))
        left, rest = left - cast(found, dtype=F64), rest - chance
    return API["astype"](API["stack"](out, -1), integer_dtype(dtype, "multinomial"))


# --- integers of a range ----------------------------------------------------------------------------------------------


@distribution
def integers(key: Any, low: Any, high: Any = None, shape: Any = None, dtype: Any = None,
             endpoint: bool = False) -> Tensor:
    """Integers from ``low`` up to, not including, ``high`` (or including it: ``endpoint``), each equally likely.

    With one bound they start at 0. Where a range that is not known before the call is empty, the result is ``low``.
    """
    if high is None:
        low, high = 0, low
    d = integer_dtype(dtype, "integers")
    if isinstance(high, int) and not isinstance(high, bool) and not endpoint:
        high, endpoint = high - 1, True  # so that the end of the dtype's range can be given
    ends = {"low": _bound(low, "low", d), "high": _bound(high, "high", d)}
    draw = prepare("integers", key, shape, None, F64, **{label: (t, "any") for label, t in ends.items()})
    a, b = (stretch(convert(t.value, U64), draw.shape) for t in ends.values())  # negative ones wrap, and wrap back
    first, last = (known_data(t) for t in ends.values())
    if first is not None and last is not None:
        span = np.asarray(last.astype(object) - first.astype(object) + bool(endpoint))
        if np.any(span < 1):
            raise InputError("integers: there is no integer from low to high, which are constants",
                             values=[t.describe(label) for label, t in ends.items()],
                             help="high is not among the integers, unless endpoint=True")  # fmt: skip
        if span.size and np.all(span == span.ravel()[0]):
            return Tensor(cast(a + _below_number(draw, int(span.ravel()[0])), dtype=d))
    return Tensor(cast(a + _below_any(draw, a, b, d, endpoint), dtype=d))


@distribution
def randint(key: Any, shape: Any, low: Any, high: Any, dtype: Any = None) -> Tensor:
    """``integers`` with the arguments in JAX's order."""
    return integers(key, low, high, shape, dtype)


def _bound(item: Any, label: str, dtype: np.dtype) -> Tensor:
    t = as_tensor(item)
    if t.dtype.kind not in "iu":
        raise DTypeError(f"integers: {label} is {DTYPE_NAMES[t.dtype]}, not an integer", values=[t.describe(label)])
    check_range(t, dtype, f"integers: {label}")
    return t


def _below_number(draw: Draw, span: int) -> Value:
    """Integers below a number. Up to 2**32 by a product of which the upper half is kept: each integer has its
    probability up to a share of 2**-32, and nothing branches."""
    bits = draw.bits()
    if span == 2**64:
        return bits
    if span > 2**32:
        return below(bits, splat(span, bits.type))
    high, low = shr(bits, 32), and_(bits, 2**32 - 1)
    return shr(high * span + shr(low * span, 32), 32)


def _below_any(draw: Draw, a: Value, b: Value, dtype: np.dtype, endpoint: bool) -> Value:
    """Integers below b - a, for each element its own; 0 where there are none."""
    order = lambda v: v if dtype == U64 else cast(v, dtype=I64)
    full = draw.bits()
    span = b - a + 1 if endpoint else b - a
    legal = le(order(a), order(b)) if endpoint else lt(order(a), order(b))
    return where(legal, below(full, span), like(full, 0))


