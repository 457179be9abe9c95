"""Maps from all of space onto what parameters are constrained to, with the logarithm of |det J|: what a sampler or an
optimizer without constraints needs. Forms as in the Stan reference manual, *Constraint Transforms*.

``forward(y)`` is constrained, ``inverse(x)`` is free, ``log_det(y)`` is the logarithm of the absolute determinant of
the derivative of ``forward``: an element each for maps of numbers, and one number a vector or matrix for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from symc import numpy_api as xp
from symc import special as S
from symc.errors import ShapeError
from symc.ir.record import dataclass
from symc.numpy_api.promotion import rows
from symc.tensors.public import located
from symc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Transform:
    """A map, its inverse, and the logarithm of how it stretches volumes at a free point."""

    forward: Callable[[Any], Tensor]
    inverse: Callable[[Any], Tensor]
    log_det: Callable[[Any], Tensor]


def _transform(forward: Callable[[Any], Any], inverse: Callable[[Any], Any],
               log_det: Callable[[Any], Any]) -> Transform:
    public = [located(lambda v, f=f: f(xp.asarray(v))) for f in (forward, inverse, log_det)]
    return Transform(*public)


def above(low: Any) -> Transform:
    """Numbers above ``low``: low + exp(y)."""
    return _transform(lambda y: low + xp.exp(y), lambda x: xp.log(x - low), lambda y: y)


def below(high: Any) -> Transform:
    """Numbers below ``high``: high - exp(y)."""
    return _transform(lambda y: high - xp.exp(y), lambda x: xp.log(high - x), lambda y: y)


def interval(low: Any, high: Any) -> Transform:
    """Numbers between ``low`` and ``high``, by the logistic function."""
    span = xp.asarray(high) - low
    return _transform(lambda y: low + span * S.expit(y), lambda x: xp.log(x - low) - xp.log(high - x),
                      lambda y: xp.log(span) - S.softplus(y) - S.softplus(-y))


#: Numbers above 0: exp(y).
positive = _transform(xp.exp, xp.log, lambda y: y)
#: Numbers between 0 and 1: the logistic function.
unit_interval = _transform(S.expit, S.logit, lambda y: -S.softplus(y) - S.softplus(-y))


def _sticks(y: Any) -> tuple[Any, Any]:
    """The logarithms of the parts that are broken off, and of what is left after each."""
    y = y - xp.log(xp.arange(y.shape[-1], 0, -1, dtype=y.dtype))
    return -S.softplus(-y), xp.cumsum(-S.softplus(y), axis=-1)


def _with_zero(v: Any, at_end: bool = False) -> Any:
    zero = xp.zeros_like(v[..., :1])
    return xp.concatenate([v, zero] if at_end else [zero, v], axis=-1)


def _simplex(y: Any) -> Any:
    part, left = _sticks(y)
    return xp.exp(_with_zero(part, at_end=True) + _with_zero(left))


def _simplex_inverse(x: Any) -> Any:
    left = xp.flip(xp.cumsum(xp.flip(x, -1), axis=-1), -1)[..., 1:]
    return xp.log(x[..., :-1]) - xp.log(left) + xp.log(xp.arange(left.shape[-1], 0, -1, dtype=x.dtype))


def _simplex_log_det(y: Any) -> Any:
    part, left = _sticks(y)
    return xp.sum(part + left, axis=-1)


#: Probabilities along the last axis that sum to 1, one more than free numbers: sticks broken in turn.
simplex = _transform(_simplex, _simplex_inverse, _simplex_log_det)
#: Increasing numbers along the last axis.
ordered = _transform(lambda y: xp.cumsum(xp.concatenate([y[..., :1], xp.exp(y[..., 1:])], axis=-1), axis=-1),
                     lambda x: xp.concatenate([x[..., :1], xp.log(x[..., 1:] - x[..., :-1])], axis=-1),
                     lambda y: xp.sum(y[..., 1:], axis=-1))


def _triangle(y: Any) -> Any:
    """Free numbers as the strictly lower triangle of a matrix, row by row."""
    m = y.shape[-1] if y.ndim else None
    p = (1 + math.isqrt(1 + 8 * m)) // 2 if isinstance(m, int) else 0
    if not isinstance(m, int) or p * (p - 1) // 2 != m:
        raise ShapeError("correlation: p * (p - 1) / 2 free numbers for a matrix of p rows", values=rows([y]))
    at = [i * (i - 1) // 2 + j if j < i else m for i in range(p) for j in range(p)]
    return xp.reshape(xp.take(_with_zero(y, at_end=True), xp.asarray(at), axis=-1), (*y.shape[:-1], p, p))


def _rests(y: Any) -> tuple[Any, Any]:
    """log(1 - tanh(y)**2), and for each element of a row the logarithm of the root of what those before it leave."""
    grow = 2 * (math.log(2) - y - S.softplus(-2 * y))
    return grow, 0.5 * (xp.cumsum(grow, axis=-1) - grow)


def _correlation(y: Any) -> Any:
    y = _triangle(y)
    return (xp.tanh(y) + xp.eye(y.shape[-1], dtype=y.dtype)) * xp.tril(xp.exp(_rests(y)[1]))


def _correlation_inverse(x: Any) -> Any:
    p = x.shape[-1]
    squares = xp.flip(xp.cumsum(xp.flip(x * x, -1), axis=-1), -1)
    at = [i * p + j for i in range(p) for j in range(i)]
    flat = lambda v: xp.take(xp.reshape(v, (*x.shape[:-2], p * p)), xp.asarray(at, dtype="int64"), axis=-1)
    return xp.arctanh(flat(x) / xp.sqrt(flat(squares)))


def _correlation_log_det(y: Any) -> Any:
    grow, rest = _rests(_triangle(y))
    return xp.sum(xp.tril(grow + rest, -1), axis=(-2, -1))


#: Lower triangular L for which L @ L.T is a matrix of correlations: rows of length 1.
cholesky_correlation = _transform(_correlation, _correlation_inverse, _correlation_log_det)
