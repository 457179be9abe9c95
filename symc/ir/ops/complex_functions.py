"""Special functions of complex numbers, by scipy.special's ufuncs: an op for those of an order and one for others.

An attribute names the function. The last operand is the complex number; functions of an order have it, a real number,
before that. Partials: DLMF 7.9, 7.10, 5.4, 6.2, 10.6, 10.29 and 4.13; those by orders are not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from symc.errors import DTypeError, GradientError, ShapeError
from symc.ir.facts import Facts
from symc.ir.op import Elementwise, Extern, Op, Unknown, register
from symc.ir.ops.elementwise import batch_leading, like
from symc.ir.ops.math import exp
from symc.ir.ops.matrix import Sample
from symc.ir.types import TensorType, real_dtype
from symc.ir.value import Value

_ROOT = 2 / math.sqrt(math.pi)


def _f(name: str, *operands: Value) -> Value:
    return (complex_function_of_order if name in OF_ORDER else complex_function)(*operands, name=name)


def _between(name: str, sign: float) -> Callable[..., Value]:
    """The derivative of a Bessel function: half of that of one order less, and of one order more times a sign."""
    return lambda out, v, z: 0.5 * _f(name, v - 1, z) + 0.5 * sign * _f(name, v + 1, z)


def _scaled(name: str, turn: complex) -> Callable[..., Value]:
    inner = _between(name, -1)
    return lambda out, v, z: inner(out, v, z) + like(z, turn) * out


#: The derivative of each function by its last operand, given the result and the operands.
PARTIALS: dict[str, Callable[..., Value]] = {
    "erf": lambda out, z: _ROOT * exp(-z * z),
    "erfc": lambda out, z: -_ROOT * exp(-z * z),
    "erfi": lambda out, z: _ROOT * exp(z * z),
    "erfcx": lambda out, z: 2 * z * out - _ROOT,
    "wofz": lambda out, z: like(z, 1j * _ROOT) - 2 * z * out,
    "dawsn": lambda out, z: 1 - 2 * z * out,
    "gamma": lambda out, z: out * _f("digamma", z),
    "rgamma": lambda out, z: -out * _f("digamma", z),
    "loggamma": lambda out, z: _f("digamma", z),
    "expi": lambda out, z: exp(z) / z,
    "exp1": lambda out, z: -exp(-z) / z,
    "jv": _between("jv", -1),
    "yv": _between("yv", -1),
    "iv": _between("iv", 1),
    "kv": lambda out, v, z: -0.5 * (_f("kv", v - 1, z) + _f("kv", v + 1, z)),
    "hankel1": _between("hankel1", -1),
    "hankel2": _between("hankel2", -1),
    "hankel1e": _scaled("hankel1e", -1j),
    "hankel2e": _scaled("hankel2e", 1j),
    "lambertw": lambda out, k, z: out / (z * (1 + out)),
}
#: Functions without a derivative here.
OTHERS = ("digamma",)
NAMES = (*PARTIALS, *OTHERS)
#: Those of an order, or a branch.
OF_ORDER = ("jv", "yv", "iv", "kv", "hankel1", "hankel2", "hankel1e", "hankel2e", "lambertw")


def _infer(*types: TensorType, name: str) -> TensorType:
    z = types[-1]
    if name not in NAMES or len(types) != 1 + (name in OF_ORDER) or z.dtype.kind != "c":
        raise DTypeError(f"no function {name!r} of {', '.join(map(str, types))}")
    if len(types) > 1 and types[0] is not TensorType(real_dtype(z.dtype), z.shape):
        raise ShapeError(f"{name}: the order is {types[0]}, not as {z}")
    return z


def _reference(*arrays: np.ndarray, name: str) -> np.ndarray:
    import scipy.special

    z = arrays[-1]
    with np.errstate(all="ignore"):
        if name == "lambertw":
            return np.asarray(scipy.special.lambertw(z, np.nan_to_num(arrays[0]).astype(np.int64))).astype(z.dtype)
        return np.asarray(getattr(scipy.special, name)(*arrays)).astype(z.dtype, copy=False)


def _partial(out: Value, *operands: Value) -> Value:
    name = out.attrs["name"]
    if name in OTHERS:
        raise GradientError(f"{name} of complex numbers has no derivative here")
    return PARTIALS[name](out, *operands)


def _samples(of_order: bool) -> Iterator[Sample]:
    z = np.array([0.3 + 0.4j, -1.2 + 0.7j, 1.5 - 0.6j, 0.8 + 1.1j])
    for name in NAMES:
        if (name in OF_ORDER) == of_order:
            orders = (np.zeros(4) if name == "lambertw" else np.array([0.0, 1.0, 1.5, 2.0]),) if of_order else ()
            single = name in OTHERS  # in a precision in which nobody looks at derivatives
            yield (*orders, z.astype("c8") if single else z), dict(name=name)
    name, shape = ("jv", (2, 0)) if of_order else ("erf", (0, 2))
    yield (*(np.zeros(shape),) * of_order, np.zeros(shape, "c16")), dict(name=name)


def _registered(name: str, of_order: bool, doc: str) -> Op:
    partials = (Unknown("the order"), _partial) if of_order else (_partial,)
    return register(Op(
        name, _infer, _reference, Elementwise(partials), Extern(name), frozenset({"python"}),
        lambda: _samples(of_order), doc, Facts(kinds="c", batch=batch_leading, rounding="each")))


complex_function = _registered(
    "complex_function", False, "The special function of complex numbers that SciPy has under this name.")
complex_function_of_order = _registered(
    "complex_function_of_order", True, "The same of an order, a real number, and a complex number.")
