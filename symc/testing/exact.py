"""Graphs of real numbers computed to any precision by mpmath: what results are compared with.

Movements, choices and integers are computed by the references of their ops, on arrays of mpmath's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from symc.ir.ops.effect import quiet
from symc.ir.reference import apply
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value


class NotReal(Exception):
    """A graph that is not computed: it has an op without an exact meaning here."""


@cache
def _scalar_ops() -> Mapping[str, Any]:
    """What elementwise ops mean for one number. Those not listed have mpmath's name."""
    import mpmath as mp

    return {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
        "mulz": lambda x, y: x * y, "neg": lambda x: -x, "pow": lambda x, y: x**y, "abs": abs,
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "log1mexp": lambda x: mp.log(1 - mp.exp(x)), "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        "log1p": lambda x: mp.log(1 + x), "expm1": lambda x: mp.exp(x) - 1, "maximum": max, "minimum": min,
        "fmax": max, "fmin": min, "exp2": lambda x: mp.mpf(2) ** x, "log2": lambda x: mp.log(x, 2),
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x), "hypot": lambda x, y: mp.sqrt(x * x + y * y),
        "lgamma": lambda x: mp.loggamma(abs(x)) if x > 0 else mp.log(abs(mp.gamma(x))),
        "digamma": mp.digamma, "trigamma": lambda x: mp.psi(1, x), "rint": mp.nint, "trunc": lambda x: mp.mpf(int(x)),
        "cbrt": lambda x: mp.cbrt(x) if x >= 0 else -mp.cbrt(-x), "atan2": mp.atan2, "mod": lambda x, y: x % y,
        "log_cosh": lambda x: mp.log(mp.cosh(x)), "spherical_j0": mp.sinc,
        "spherical_j1": lambda x: (mp.sin(x) / x - mp.cos(x)) / x if x else x,
        "sign": mp.sign, "where": lambda c, x, y: x if c else y, "stop_gradient": lambda x: x,
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y, "isnan": lambda x: False, "isinf": lambda x: mp.isinf(x),
        "isfinite": lambda x: not mp.isinf(x), "assume": lambda x, *_: x,
    }  # fmt: skip


#: Reductions: (of an array of numbers along axes).
def _reductions() -> Mapping[str, Any]:
    import mpmath as mp

    exp = np.frompyfunc(mp.exp, 1, 1)

    def lse(x: Any, axes: Any) -> Any:
        return np.frompyfunc(mp.log, 1, 1)(np.sum(exp(x), axis=axes))

    return {
        "sum": lambda x, axes: np.sum(x, axis=axes), "prod": lambda x, axes: np.prod(x, axis=axes),
        "max": lambda x, axes: np.max(x, axis=axes), "min": lambda x, axes: np.min(x, axis=axes),
        "sup": lambda x, axes: np.max(x, axis=axes), "logsumexp": lse,
        "norm": lambda x, axes: np.frompyfunc(mp.sqrt, 1, 1)(np.sum(x * x, axis=axes)),
        "softmax": lambda x, axes: exp(x) / np.sum(exp(x), axis=axes, keepdims=True),
    }  # fmt: skip


#: What costs nothing, of numbers of any size.
CHEAP = {"add", "sub", "mul", "div", "mulz", "neg", "abs", "log", "log1p", "sqrt", "hypot", "maximum", "minimum",
         "where", "eq", "ne", "lt", "le", "gt", "ge", "sign", "fmax", "fmin", "cbrt", "log2", "log10"}  # fmt: skip


def to_exact(a: np.ndarray) -> np.ndarray:
    """Floats as mpmath's numbers; all else as it is."""
    import mpmath as mp

    if a.dtype.kind != "f":
        return a
    out = np.empty(a.shape, object)
    for place in np.ndindex(a.shape):
        out[place] = mp.mpf(float(a[place]))
    return out


def exact_values(v: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray], sizes: Mapping[str, int]) -> Any:
    """``v`` as an array of mpmath's numbers, nan where there is no real one; NotReal for a graph of other ops."""
    env: dict[Value, Any] = {x: to_exact(np.asarray(a)) for x, a in zip(leaves, arrays, strict=True)}
    try:
        for x in postorder([v], stop=env.__contains__):
            if x not in env:
                env[x] = _value(x, [env[o] for o in x.operands], sizes)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError, AttributeError, IndexError) as e:
        raise NotReal(str(e)) from e
    return np.asarray(env[v])


def _value(x: Value, operands: list[Any], sizes: Mapping[str, int]) -> Any:
    import mpmath as mp

    if not isinstance(x.type, TensorType) or x.type.dtype.kind == "c" or x.regions:
        raise NotReal(f"{x.op.name} is not computed exactly")
    floats = any(isinstance(o, np.ndarray) and o.dtype == object for o in operands)
    name = x.op.name
    if not floats:
        with quiet():
            return to_exact(np.asarray(apply(x, operands, sizes, False, None, None)))
    if name in _reductions():
        return np.asarray(_reductions()[name](operands[0], x.attrs["axes"]), object)
    if name == "dot":
        return np.asarray(_dot(operands[0], operands[1], x.attrs["contract"], x.attrs["batch"]), object)
    if name == "cast":
        if x.type.dtype.kind != "f":
            raise NotReal("a conversion to another kind")
        return operands[0]
    if "elementwise" in x.op.traits:
        f = _scalar_ops().get(name) or getattr(mp, name)
        out = np.asarray(np.frompyfunc(_guarded(name, f), len(operands), 1)(*operands), object)
        return out.astype(bool) if x.type.dtype.kind == "b" else out
    if name not in MOVEMENTS:
        raise NotReal(f"{name} is not computed exactly")
    return np.asarray(x.op.reference(*operands, **x.attrs.concrete(sizes)), object)


def _guarded(name: str, f: Any) -> Any:
    """``f``, whose results are nan where it has no real value."""
    import mpmath as mp

    def guarded(*numbers: Any) -> Any:
        reals = [n for n in numbers if isinstance(n, mp.mpf)]
        if name != "where" and any(map(mp.isnan, reals)):
            return mp.nan
        if name not in CHEAP and any(mp.isfinite(n) and n and mp.mag(n) > 200 for n in reals):
            return mp.nan  # mpmath would compute as many digits
        try:
            out = f(*numbers)
        except (ZeroDivisionError, ValueError, OverflowError):
            return mp.nan
        return mp.nan if isinstance(out, mp.mpc) else out

    return guarded


#: Ops whose references move elements, whatever these are.
MOVEMENTS = {
    "broadcast", "reshape", "transpose", "slice", "concat", "pad", "gather", "ensure_shape", "again", "after",
    "bounded", "dynamic_slice",
}  # fmt: skip


def _dot(a: Any, b: Any, contract: Any, batch: Any) -> Any:
    """A product of arrays of any numbers."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = [next(letters) for _ in range(a.ndim)], [next(letters) for _ in range(b.ndim)]
    for i, k in [*zip(*contract, strict=True), *zip(*batch, strict=True)]:
        right[k] = left[i]
    shared, summed = [left[i] for i in batch[0]], [left[i] for i in contract[0]]
    free = [c for c in left if c not in shared + summed], [c for c in right if c not in shared + summed]
    order = [*shared, *free[0], *free[1], *summed]
    spread = []
    for x, names in ((a, left), (b, right)):
        present = [c for c in order if c in names]
        x = np.transpose(x, [names.index(c) for c in present])
        shape = iter(x.shape)
        spread.append(x.reshape([next(shape) if c in names else 1 for c in order]))
    product = spread[0] * spread[1]
    return np.sum(product, axis=tuple(range(len(order) - len(summed), len(order))))
