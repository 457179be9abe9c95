"""Values of graphs with as many digits as wanted, by mpmath: what rounding is measured against.

Arrays hold mpmath numbers as objects; integers and booleans are Python's. An op means the real function it is named
after: no rounding, no overflow, no signed zeros. Where there is no real value (log of a negative number, 0 / 0), or one
far beyond the range of any dtype would take more digits than are there (sin of 1e300), there is a nan. Ops with parts
of their own (logsumexp) are computed by them; loops, draws and ops of users are not covered. The caller says with how
many digits: ``with mp.workprec(PRECISION)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.op import Decompose
from symc.ir.ops.linalg import free_axes
from symc.ir.reference import apply
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value

#: Bits that are enough wherever a float64 comes out: 1 + 1e-200 is not 1.
PRECISION = 900
#: Numbers above two to this power are beyond the range of every dtype, whatever they are.
BEYOND = 1200
#: Ops whose references only move elements, or compare and select them: they are right for objects as they are.
MOVING = frozenset({
    "reshape", "transpose", "broadcast", "slice", "concat", "gather", "dynamic_slice", "ensure_shape", "where", "iota",
    "size", "again", "check_index", "bounded", "assume", "get", "constant",
})  # fmt: skip
#: Ops that give their first operand.
IDENTITIES = frozenset({"stop_gradient", "grad_scale", "grad_clip", "after", "print", "assert", "breakpoint"})


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
    name = v.op.name
    if name == "constant":
        return to_precise(v.attrs["value"].data)
    if name in IDENTITIES:
        return operands[0]
    if name in _REDUCED:
        return _reduce(_REDUCED[name], operands[0], v.attrs["axes"])
    if name == "cast":
        return _cast(v, operands[0])
    if name == "dot":
        return _dot(v, *operands)
    if name in MOVING or not any(_is_real(x) for x in (v, *v.operands)):
        return _moved(v, operands, sizes)
    if name == "pad":
        return _pad(v, operands, sizes)
    if "elementwise" in v.op.traits and name in _functions() and not v.attrs:
        return _map(_guarded(name, _functions()[name]), *operands)
    if isinstance(v.op.lowering, Decompose):
        env = dict(zip(v.operands, operands, strict=True))
        parts = v.op.lowering.f(v)
        found = precise_values([parts] if isinstance(parts, Value) else parts, env, sizes)
        return found[0] if isinstance(parts, Value) else tuple(found)
    raise NotPrecise(f"{name} has no exact counterpart")


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


#: What costs nothing, of numbers of any size.
CHEAP = frozenset({
    "add", "sub", "mul", "div", "mulz", "neg", "abs", "log", "log1p", "sqrt", "hypot", "maximum", "minimum", "fmax",
    "fmin", "eq", "ne", "lt", "le", "gt", "ge", "sign", "cbrt", "log2", "log10",
})  # fmt: skip


def _guarded(name: str, f: Callable) -> Callable:
    """``f``, or nan where it has no real value or one that is not worth its digits."""
    import mpmath as mp

    def guarded(*xs: Any) -> Any:
        reals = [x for x in xs if isinstance(x, mp.mpf)]
        if name not in CHEAP and any(mp.isfinite(x) and x and mp.mag(x) > BEYOND for x in reals):
            if name == "exp":
                return mp.inf if xs[0] > 0 else mp.mpf(0)
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
    return _reduce("sum", product, tuple(range(n + p + q, product.ndim)))


_REDUCED = {"sum": "sum", "prod": "prod", "max": "max", "min": "min", "sup": "max", "all": "all", "any": "any"}


def _reduce(kind: str, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    import mpmath as mp

    kept = [a for a in range(x.ndim) if a not in axes]
    rows = x.transpose((*kept, *axes)).reshape((*[x.shape[a] for a in kept], math.prod(x.shape[a] for a in axes)))
    functions: dict[str, Callable] = {"sum": mp.fsum, "prod": mp.fprod, "max": max, "min": min, "all": all, "any": any}
    out = np.empty(rows.shape[:-1], object)
    for index in np.ndindex(*out.shape):
        row = list(rows[index])
        if kind in ("max", "min") and (not row or any(mp.isnan(e) for e in row)):
            out[index] = mp.nan
        else:
            out[index] = functions[kind](row)
    return out


@cache
def _functions() -> dict[str, Callable]:
    """Elementwise ops as functions of exact numbers."""
    import mpmath as mp

    def power(x: Any, y: Any) -> Any:
        return x ** (int(y) if y == mp.floor(y) and abs(y) < 2**31 else y)

    def sign(x: Any) -> Any:
        return x if mp.isnan(x) else mp.mpf((x > 0) - (x < 0))

    def ordered(f: Callable) -> Callable:
        return lambda x, y: mp.nan if mp.isnan(x) or mp.isnan(y) else f(x, y)

    def inverse_normal(p: Any) -> Any:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)

    own: dict[str, Callable] = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
        "div": lambda x, y: mp.mpf(x) / y, "mulz": lambda x, y: x * y if x else mp.mpf(0), "neg": lambda x: -x,
        "pow": power, "abs": abs, "sign": sign, "maximum": ordered(max), "minimum": ordered(min),
        "fmax": max, "fmin": min, "floor": mp.floor, "ceil": mp.ceil, "rint": mp.nint,
        "trunc": lambda x: mp.floor(x) if x > 0 else mp.ceil(x), "mod": lambda x, y: x - y * mp.floor(x / y),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "log1mexp": lambda x: mp.log(1 - mp.exp(x)), "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        "log1p": lambda x: mp.log(1 + x), "expm1": lambda x: mp.exp(x) - 1, "exp2": lambda x: mp.mpf(2) ** x,
        "log2": lambda x: mp.log(x) / mp.log(2), "log10": lambda x: mp.log(x) / mp.log(10),
        "cbrt": lambda x: sign(x) * mp.root(abs(x), 3), "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "lgamma": lambda x: mp.log(abs(mp.gamma(x))), "digamma": mp.digamma, "trigamma": lambda x: mp.psi(1, x),
        "normal_inverse": inverse_normal, "hypot": lambda x, y: mp.sqrt(x * x + y * y), "real": lambda x: x,
        "conj": lambda x: x, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y, "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "not": lambda x: not x,
        "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
        "isnan": lambda x: bool(mp.isnan(x)), "isinf": lambda x: bool(mp.isinf(x)),
        "isfinite": lambda x: bool(mp.isfinite(x)), "signbit": lambda x: x < 0, "below": lambda x, y: x < y,
        "copysign": lambda x, y: abs(x) * (-1 if y < 0 else 1), "floordiv": lambda x, y: x // y,
    }  # fmt: skip
    same = ("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
            "acosh", "atanh", "erf", "erfc", "erfinv")  # fmt: skip
    return own | {name: getattr(mp, name) for name in same}


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
