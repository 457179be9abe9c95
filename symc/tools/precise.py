"""Values of graphs with as many digits as wanted, by mpmath: what rounding is measured against.

Arrays hold mpmath numbers as objects; integers and booleans are Python's. An op means the real function it is named
after: no rounding, no overflow, no signed zeros. Where there is no real value (log of a negative number, 0 / 0), or one
far beyond the range of any dtype would take more digits than are there (sin of 1e300), there is a nan. Ops with parts
of their own (logsumexp) are computed by them; loops, draws and ops of users are not covered. The caller says with how
many digits: ``with mp.workprec(PRECISION)``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.attrs import EMPTY
from symc.ir.op import Decompose, Fold, Op, Sorting, Update, is_lossless, lookup
from symc.ir.ops.effect import IDENTITY
from symc.ir.ops.linalg import free_axes
from symc.ir.ops.reduce import identity
from symc.ir.reference import apply
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value

#: Bits that are enough wherever a float64 comes out: 1 + 1e-200 is not 1.
PRECISION = 900
#: Numbers above two to this power are beyond the range of every dtype, whatever they are.
BEYOND = 1200

class NotPrecise(SymcError, NotImplementedError):
    """A graph has an op whose value is not known beyond its reference."""


def to_precise(array: Any) -> np.ndarray:
    """An array of NumPy numbers as exact ones."""
    import mpmath as mp

    array = np.asarray(array)
    convert: Callable[[Any], Any] = {"f": lambda x: mp.mpf(float(x)), "b": bool}.get(array.dtype.kind, int)
    if array.dtype.kind == "c":
        raise NotPrecise("complex numbers are not covered")
    return _map(convert, array)


def precise_values(roots: Sequence[Value], env: dict[Value, Any], sizes: Mapping[str, int]) -> list[np.ndarray]:
    """Evaluate ``roots`` given arrays for their leaves; ``env`` gains every value. Raises NotPrecise for other ops."""
    for v in postorder(roots, stop=env.__contains__):
        if v not in env:
            env[v] = precise_step(v, [env[o] for o in v.operands], sizes)
    return [env[r] for r in roots]


def precise_step(v: Value, operands: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """The result of one op on exact operands."""
    op = v.op
    if op.name == "constant":
        return to_precise(v.attrs["value"].data)
    if op.derivative is IDENTITY:
        return operands[0]
    if not any(_is_real(x) for x in (v, *v.operands)):
        return _moved(v, operands, sizes)
    if isinstance(op.lowering, Fold) and lookup(op.lowering.kind).facts.exact is not None:
        return _folded(op.lowering.kind, operands[0], v.attrs["axes"])
    if op.name == "cast":
        return _cast(v, operands[0])
    if op.name == "dot":
        return _dot(v, *operands)
    if op.name == "pad":
        return _pad(v, operands, sizes)
    if op.facts.exact is not None:
        return _map(exact_function(op, v.attrs), *operands)
    moves = is_lossless(op) and not isinstance(op.lowering, Sorting | Update) and "elementwise" not in op.traits
    if moves and not v.regions:  # references move objects, too
        return _moved(v, operands, sizes)
    if isinstance(op.lowering, Decompose):
        env = dict(zip(v.operands, operands, strict=True))
        parts = op.lowering.f(v)
        found = precise_values([parts] if isinstance(parts, Value) else parts, env, sizes)
        return found[0] if isinstance(parts, Value) else tuple(found)
    raise NotPrecise(f"{op.name} has no exact counterpart")


def _is_real(v: Value) -> bool:
    return isinstance(v.type, TensorType) and v.dtype.kind == "f"


def _map(f: Callable, *arrays: Any) -> np.ndarray:
    """``f`` of every element, as an array of objects of that shape."""
    first = np.asarray(arrays[0], object)
    out = np.empty(first.shape, object)
    columns = [np.asarray(a, object).ravel() for a in arrays]
    flat = out.ravel() if out.ndim else None
    if flat is None:
        out[()] = f(*[c[0] for c in columns])
        return out
    for k in range(first.size):
        flat[k] = f(*[c[k] for c in columns])
    return flat.reshape(first.shape)


def exact_function(op: Op, attrs: Mapping[str, Any] = EMPTY) -> Callable[..., Any]:
    """The real function of an op, or nan where it has no real value or one that is not worth its digits."""
    import mpmath as mp

    exact = op.facts.exact
    assert exact is not None
    f = getattr(mp, exact.f) if isinstance(exact.f, str) else functools.partial(exact.f, mp, **attrs)

    def guarded(*xs: Any) -> Any:
        reals = [x for x in xs if isinstance(x, mp.mpf)]
        if not exact.far and any(mp.isfinite(x) and x and mp.mag(x) > BEYOND for x in reals):
            return mp.nan
        try:
            found = f(*xs)
        except (ZeroDivisionError, ValueError, OverflowError, TypeError, mp.libmp.NoConvergence):
            return mp.nan
        return mp.nan if isinstance(found, mp.mpc) else found

    return guarded


def _moved(v: Value, operands: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    arrays = [
        np.asarray(x, o.dtype) if isinstance(o.type, TensorType) and o.dtype.kind in "biu" else x
        for x, o in zip(operands, v.operands, strict=True)
    ]
    found = apply(v, arrays, sizes, False, None)
    if isinstance(found, tuple):
        return found
    found = np.asarray(found)
    return found if found.dtype == object else to_precise(found)


def _pad(v: Value, operands: Sequence[Any], sizes: Mapping[str, int]) -> np.ndarray:
    """The places are found by padding numbers of elements."""
    x, filler = operands
    places = np.arange(1, x.size + 1).reshape(x.shape)
    found = v.op.reference(places, np.array(0), **v.attrs.concrete(sizes))
    table = np.concatenate([np.asarray(filler, object).reshape(1), x.ravel()])
    return table[found]


def _cast(v: Value, x: np.ndarray) -> np.ndarray:
    import mpmath as mp

    if v.dtype.kind == "f":
        return _map(lambda a: mp.mpf(a), x)
    if v.dtype.kind == "b":
        return _map(bool, x)
    return to_precise(np.asarray(_map(lambda a: int(a) if mp.isfinite(a) else 0, x), v.dtype))


def _dot(v: Value, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (contract_a, contract_b), (batch_a, batch_b) = v.attrs["contract"], v.attrs["batch"]
    free_a, free_b = (
        free_axes(o, c, g) for o, c, g in zip(v.operands, (contract_a, contract_b), (batch_a, batch_b), strict=True)
    )
    left = a.transpose((*batch_a, *free_a, *contract_a))
    right = b.transpose((*batch_b, *free_b, *contract_b))
    n, p, q = len(batch_a), len(free_a), len(free_b)
    left = left.reshape((*left.shape[: n + p], *(1,) * q, *left.shape[n + p :]))
    right = right.reshape((*right.shape[:n], *(1,) * p, *right.shape[n:]))
    product = np.asarray(left * right, object)
    return _folded("add", product, tuple(range(n + p + q, product.ndim)))


def _folded(kind: str, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """A fold, from the identity of its kind on; what starts from an infinity has no value for no elements."""
    import mpmath as mp

    kept = [a for a in range(x.ndim) if a not in axes]
    rows = x.transpose((*kept, *axes)).reshape((*[x.shape[a] for a in kept], math.prod(x.shape[a] for a in axes)))
    first = mp.mpf(float(identity(kind, np.dtype(float))))
    combine = exact_function(lookup(kind))
    out = np.empty(rows.shape[:-1], object)
    for index in np.ndindex(*out.shape):
        row = list(rows[index])
        if mp.isfinite(first):
            row.insert(0, first)
        out[index] = functools.reduce(combine, row) if row else mp.nan
    return out


def ulps(got: Any, exact: Any, dtype: np.dtype) -> np.ndarray:
    """Distances from exact numbers in units in the last place of ``dtype``, as floats.

    0 where neither exists (nan) and where both are beyond the range of the dtype with one sign; inf where only one is.
    """
    import mpmath as mp

    info = np.finfo(dtype)
    largest, tiny = mp.mpf(float(info.max)), float(info.smallest_subnormal)

    def one(g: Any, x: Any) -> float:
        g = mp.mpf(float(g))
        if mp.isnan(x) or mp.isnan(g):
            return 0.0 if mp.isnan(x) and mp.isnan(g) else float("inf")
        if abs(x) > largest * (1 + mp.mpf(float(info.eps)) / 4) or mp.isinf(g):
            beyond = abs(x) >= largest * (1 + mp.mpf(float(info.eps)) / 4) and mp.isinf(g) and (x > 0) == (g > 0)
            return 0.0 if beyond else float("inf")
        exponent = mp.frexp(x)[1] - info.nmant - 1 if x else -(10**6)
        unit = max(mp.ldexp(mp.mpf(1), exponent), mp.mpf(tiny))
        return float(abs(g - x) / unit)

    with mp.workprec(PRECISION):
        found = _map(one, np.asarray(got, object), np.asarray(exact, object))
    return np.asarray(found, float)
