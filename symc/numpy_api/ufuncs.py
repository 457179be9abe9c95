"""NumPy's ufuncs: what each one is in ops of the IR. One table; the dtypes come from NumPy's own type resolution.

``UFUNCS[ufunc]`` builds the result (or results) from values that already have one shape and the dtypes of the loop
that NumPy would choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import DTypeError
from symc.ir.dtypes import computed, finfo
from symc.ir.op import lookup, splat
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.tensors.convert import convert

Build = Callable[..., Any]
BOOL = DTYPES["bool"]


def op(name: str) -> Build:
    """The op called ``name``, found when it is used."""
    return lambda *values: lookup(name)(*values)


def _by_kind(**builders: str | Build) -> Build:
    """One builder per letter of dtype kinds of the first operand; ``other`` for the rest."""
    table = {
        k: (op(b) if isinstance(b, str) else b)
        for letters, b in builders.items()
        if letters != "other"
        for k in letters
    }
    other = builders.get("other")
    rest = op(other) if isinstance(other, str) else other

    def build(x: Value, *more: Value) -> Value:
        chosen = table.get(x.dtype.kind, rest)
        if chosen is None:
            raise DTypeError(f"this function is not defined for {x.dtype}")
        return chosen(x, *more)
    return build


def _itself(x: Value) -> Value:
    return x


def _false(x: Value) -> Value:
    return splat(False, x.type.with_dtype(BOOL))


def _true(x: Value) -> Value:
    return splat(True, x.type.with_dtype(BOOL))


def truth(x: Value) -> Value:
    """x != 0, as a bool."""
    return x if x.dtype.kind == "b" else lookup("ne")(x, 0)


def choose(c: Value, x: Value, y: Value) -> Value:
    """x where c holds, else y."""
    return lookup("where")(c, x, y)


# --- comparisons ------------------------------------------------------------------------------------------------------


def _compare(name: str) -> Build:
    def build(x: Value, y: Value) -> Value:
        if x.dtype != y.dtype:  # int64 with uint64, which have no common integer dtype
            return _compare_signs(name, x, y)
        if x.dtype.kind == "c" and name not in ("eq", "ne"):  # complex numbers are ordered by real, then imaginary part
            a, b = lookup("real")(x), lookup("real")(y)
            strict = {"le": "lt", "ge": "gt"}.get(name, name)
            tie = lookup(name)(lookup("imag")(x), lookup("imag")(y))
            return lookup("or")(lookup(strict)(a, b), lookup("and")(lookup("eq")(a, b), tie))
        return lookup(name)(x, y)
    return build


def _compare_signs(name: str, x: Value, y: Value) -> Value:
    """Compare int64 with uint64: a negative number is less than all, otherwise both are uint64."""
    signed, flipped = (x, False) if x.dtype.kind == "i" else (y, True)
    negative = lookup("lt")(signed, 0)
    answer = bool(lookup(name).reference(*map(np.asarray, (0, -1) if flipped else (-1, 0))))
    unsigned = DTYPES["u64"]
    plain = lookup(name)(convert(x, unsigned), convert(y, unsigned))
    return choose(negative, splat(answer, plain.type), plain)


def _lexicographic(name: str) -> Build:
    """maximum and minimum; of complex numbers in the order of the comparisons, a nan winning."""
    def build(x: Value, y: Value) -> Value:
        if x.dtype.kind != "c":
            return lookup(name)(x, y)
        first = _compare("ge" if name == "maximum" else "le")(x, y)
        nan = lookup("isnan")
        return choose(lookup("or")(nan(x), lookup("and")(first, lookup("not")(nan(y)))), x, y)
    return build


def _present(name: str) -> Build:
    """fmax and fmin: as maximum and minimum, but a nan counts as missing."""
    def build(x: Value, y: Value) -> Value:
        if x.dtype.kind != "c":
            return lookup(name)(x, y)
        nan = lookup("isnan")
        return choose(nan(x), y, choose(nan(y), x, _lexicographic(name)(x, y)))
    return build


# --- composed functions -----------------------------------------------------------------------------------------------


def _logical(name: str) -> Build:
    return lambda *values: lookup(name)(*map(truth, values))


def _square(x: Value) -> Value:
    return lookup("mul")(x, x)


def _reciprocal(x: Value) -> Value:
    if x.dtype.kind in "fc":
        return lookup("div")(splat(1, x.type), x)
    one = convert(
        lookup("trunc")(lookup("div")(splat(1, x.type.with_dtype("f64")), convert(x, DTYPES["f64"]))), x.dtype
    )
    return choose(lookup("eq")(x, 0), splat(0, x.type), one)


def _scale(factor: float) -> Build:
    return lambda x: lookup("mul")(x, factor)


def _heaviside(x: Value, h: Value) -> Value:
    zero, one = splat(0, x.type), splat(1, x.type)
    step = choose(lookup("lt")(x, 0), zero, choose(lookup("gt")(x, 0), one, h))
    return choose(lookup("isnan")(x), x, step)


def _single(x: Value) -> Value:
    """Half precision in float32, for a formula of several steps."""
    return convert(x, computed(x.dtype))


def _logaddexp2(x: Value, y: Value) -> Value:
    ln2 = math.log(2)
    return convert(lookup("logaddexp")(_single(x) * ln2, _single(y) * ln2) * (1 / ln2), x.dtype)


def _ldexp(x: Value, n: Value) -> Value:
    """x * 2**n, rounded once: a normal number is multiplied by what is left of the power."""
    x_ = _single(x)
    info = finfo(x_.dtype)
    low, most = int(info.minexp), int(info.maxexp - info.minexp + info.nmant + 3)
    limited = lookup("minimum")(lookup("maximum")(convert(n, DTYPES["i64"]), -most), most)
    e = lookup("exponent")(x_) + convert(limited, x_.dtype)
    first = lookup("minimum")(lookup("maximum")(e, low + 1), int(info.maxexp) - 2)
    scaled = lookup("significand")(x_) * lookup("exp2")(first) * lookup("exp2")(e - first)
    plain = lookup("and")(lookup("isfinite")(x_), lookup("ne")(x_, 0))
    return convert(choose(plain, scaled, x_), x.dtype)


def _modf(x: Value) -> tuple[Value, Value]:
    whole = lookup("trunc")(x)
    part = choose(lookup("isinf")(x), splat(0, x.type), x - whole)
    return lookup("copysign")(part, x), whole


def _frexp(x: Value) -> tuple[Value, Value]:
    return lookup("significand")(x), convert(lookup("exponent")(x), DTYPES["i32"])


def _spacing(x: Value) -> Value:
    away = choose(lookup("lt")(x, 0), splat(-np.inf, x.type), splat(np.inf, x.type))
    return lookup("nextafter")(x, away) - x


def _bit_count(x: Value) -> Value:
    """Ones in |x|, by adding neighbours in place, as compilers know it: processors have an instruction for it."""
    magnitude = lookup("abs")(x) if x.dtype.kind == "i" else x
    wide = DTYPES["u64" if x.dtype.itemsize > 4 else "u32"]
    word = convert(convert(magnitude, np.dtype(f"u{x.dtype.itemsize}")), wide)
    bits = 8 * word.dtype.itemsize

    def every(byte: int) -> Value:
        return splat(word.dtype.type(byte * (2**bits // 255)), word.type)

    def moved(x: Value, places: int) -> Value:
        return lookup("shr")(x, splat(word.dtype.type(places), word.type))

    both = lookup("and")
    word = word - both(moved(word, 1), every(0x55))
    word = both(word, every(0x33)) + both(moved(word, 2), every(0x33))
    word = both(word + moved(word, 4), every(0x0F)) * every(0x01)
    return convert(moved(word, bits - 8), DTYPES["u8"])


def _lcm(x: Value, y: Value) -> Value:
    if x.dtype.kind == "i":  # the magnitude of the least integer is unsigned
        d = np.dtype(f"u{x.dtype.itemsize}")
        return convert(_lcm(convert(lookup("abs")(x), d), convert(lookup("abs")(y), d)), x.dtype)
    return lookup("mul")(lookup("floordiv")(x, lookup("gcd")(x, y)), y)  # 0 // 0 is 0


def _divmod(x: Value, y: Value) -> tuple[Value, Value]:
    return lookup("floordiv")(x, y), lookup("mod")(x, y)


def _rint_parts(z: Value) -> Value:
    return lookup("complex")(*[lookup("rint")(lookup(part)(z)) for part in ("real", "imag")])


def _rounding(name: str) -> Build:
    """Integers are whole already."""
    return _by_kind(biu=_itself, f=name)


UFUNCS: dict[np.ufunc, Build] = {
    # arithmetic
    np.add: op("add"),
    np.subtract: op("sub"),
    np.multiply: op("mul"),
    np.divide: op("div"),
    np.floor_divide: op("floordiv"),
    np.remainder: op("mod"),
    np.fmod: op("fmod"),
    np.divmod: _divmod,
    np.power: op("pow"),
    np.float_power: op("pow"),
    np.negative: op("neg"),
    np.positive: _itself,
    np.absolute: _by_kind(bu=_itself, ifc="abs"),
    np.fabs: op("abs"),
    np.sign: op("sign"),
    np.square: _square,
    np.reciprocal: _reciprocal,
    np.copysign: op("copysign"),
    np.nextafter: op("nextafter"),
    np.spacing: _spacing,
    np.ldexp: _ldexp,
    np.frexp: _frexp,
    np.modf: _modf,
    np.heaviside: _heaviside,
    np.hypot: op("hypot"),
    np.conjugate: _by_kind(c="conj", biuf=_itself),
    np.maximum: _lexicographic("maximum"),
    np.minimum: _lexicographic("minimum"),
    np.fmax: _by_kind(f="fmax", other=_present("maximum")),
    np.fmin: _by_kind(f="fmin", other=_present("minimum")),
    # exponentials and logarithms
    np.exp: op("exp"),
    np.exp2: op("exp2"),
    np.expm1: op("expm1"),
    np.log: op("log"),
    np.log2: op("log2"),
    np.log10: op("log10"),
    np.log1p: op("log1p"),
    np.sqrt: op("sqrt"),
    np.cbrt: op("cbrt"),
    np.logaddexp: op("logaddexp"),
    np.logaddexp2: _logaddexp2,
    # trigonometric and hyperbolic
    np.sin: op("sin"),
    np.cos: op("cos"),
    np.tan: op("tan"),
    np.arcsin: op("asin"),
    np.arccos: op("acos"),
    np.arctan: op("atan"),
    np.arctan2: op("atan2"),
    np.sinh: op("sinh"),
    np.cosh: op("cosh"),
    np.tanh: op("tanh"),
    np.arcsinh: op("asinh"),
    np.arccosh: op("acosh"),
    np.arctanh: op("atanh"),
    np.deg2rad: _scale(math.pi / 180),
    np.radians: _scale(math.pi / 180),
    np.rad2deg: _scale(180 / math.pi),
    np.degrees: _scale(180 / math.pi),
    # rounding
    np.floor: _rounding("floor"),
    np.ceil: _rounding("ceil"),
    np.trunc: _rounding("trunc"),
    np.rint: _by_kind(f="rint", c=_rint_parts),
    # comparisons and tests
    np.equal: _compare("eq"),
    np.not_equal: _compare("ne"),
    np.less: _compare("lt"),
    np.less_equal: _compare("le"),
    np.greater: _compare("gt"),
    np.greater_equal: _compare("ge"),
    np.isnan: _by_kind(fc="isnan", biu=_false),
    np.isinf: _by_kind(fc="isinf", biu=_false),
    np.isfinite: _by_kind(fc="isfinite", biu=_true),
    np.signbit: op("signbit"),
    # logic and bits
    np.logical_and: _logical("and"),
    np.logical_or: _logical("or"),
    np.logical_xor: _logical("xor"),
    np.logical_not: _logical("not"),
    np.bitwise_and: op("and"),
    np.bitwise_or: op("or"),
    np.bitwise_xor: op("xor"),
    np.invert: op("not"),
    np.gcd: op("gcd"),
    np.lcm: _lcm,
    np.left_shift: op("shl"),
    np.right_shift: op("shr"),
    np.bitwise_count: _bit_count,
}
