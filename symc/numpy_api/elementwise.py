"""Elementwise functions: every ufunc of the table, and NumPy's functions that are elementwise without being ufuncs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, SymbolicValueError
from symc.ir.dtypes import finfo
from symc.ir.op import Op, all_ops, lookup, splat
from symc.ir.types import DTYPES, as_dtype
from symc.ir.value import Value
from symc.numpy_api.promotion import (
    broadcast_shape,
    check_range,
    common_dtype,
    loop_dtypes,
    no_out,
    rows,
    stretch,
    together,
)
from symc.numpy_api.ufuncs import UFUNCS, choose, truth
from symc.tensors.convert import as_operand, as_tensor, convert, default_float, inexact_dtype
from symc.tensors.public import API, called, public
from symc.tensors.sizes import integer
from symc.tensors.tensor import Tensor

_COMPARISONS = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})


def apply_ufunc(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None, casting: str = "same_kind") -> Any:
    """The result of an elementwise ufunc, a tensor or a tuple of tensors."""
    tensors = [as_operand(o) for o in operands]
    if ufunc in _COMPARISONS:
        tensors = _widen(tensors)
    types = loop_dtypes(ufunc, tensors, None if dtype is None else as_dtype(dtype), casting)
    if ufunc is np.power:
        _check_power(tensors, types[0])
    for t, d in zip(tensors, types[: ufunc.nin], strict=True):
        check_range(t, d, ufunc.__name__, tensors)
    weak = all(t.weak for t in tensors)
    shape = broadcast_shape(tensors, ufunc.__name__)
    values = [stretch(convert(t.value, d), shape) for t, d in zip(tensors, types[: ufunc.nin], strict=True)]
    results = UFUNCS[ufunc](*values)
    if isinstance(results, tuple):
        return tuple(Tensor(convert(r, d), weak) for r, d in zip(results, types[ufunc.nin:], strict=True))
    return Tensor(convert(results, types[-1]), weak and types[-1].kind != "b")


def _widen(tensors: list[Tensor]) -> list[Tensor]:
    """A comparison with a Python integer outside the other side's range is decided in a dtype that holds both."""
    strong = [t for t in tensors if not t.weak and t.dtype.kind in "iu"]
    if len(strong) != 1 or len(tensors) != 2:
        return tensors
    out = []
    for t in tensors:
        try:
            check_range(t, strong[0].dtype, "")
            out.append(t)
        except DTypeError:
            number = int(t.value.data)  # type: ignore[arg-type]  # it is a Python number
            out.append(as_tensor(np.asarray(number, np.min_scalar_type(number))))
    return out


def _check_power(tensors: list[Tensor], dtype: np.dtype) -> None:
    exponent = tensors[1].value
    if dtype.kind in "iu" and exponent.data is not None and np.any(exponent.data < 0):
        raise DTypeError(
            "power: integers have no negative powers",
            values=rows(tensors),
            help="cast first: x.astype('float64') ** -1",
        )


def _register(ufunc: np.ufunc) -> None:
    def call(*operands: Any, out: None = None, where: Any = True, casting: str = "same_kind", dtype: Any = None) -> Any:
        if len(operands) == ufunc.nin + ufunc.nout:
            *operands, out = operands[: ufunc.nin + 1]  # type: ignore[assignment]
        if len(operands) != ufunc.nin:
            raise TypeError(f"{ufunc.__name__} takes {ufunc.nin} operand{'s' * (ufunc.nin != 1)}, not {len(operands)}")
        no_out(out, ufunc.__name__)
        if where is not True and where is not None:
            raise SymbolicValueError(
                f"{ufunc.__name__}(where=) without out is not defined where the mask does not hold",
                values=rows([t for t in operands if isinstance(t, Tensor)]),
                help=f"sc.where(mask, sc.{ufunc.__name__}(...), other) says what is there",
            )
        return apply_ufunc(ufunc, operands, dtype, casting)
    public(name=ufunc.__name__, memory="ufunc")(called(
        call, ufunc.__name__, f"NumPy's ``{ufunc.__name__}``, elementwise with broadcasting and promotion."))


for _ufunc in UFUNCS:
    _register(_ufunc)
for _alias, _name in {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_not": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "mod": "remainder",
    "pow": "power",
    "true_divide": "divide",
}.items():
    API[_alias] = API[_name]


@public()
def operator_pow(x: Any, y: Any) -> Tensor:
    """``x ** y``: as NumPy's operator, small constant powers of floats are products, roots and quotients."""
    x = as_tensor(x)
    if isinstance(y, int | float) and not isinstance(y, bool | np.generic):
        if y == 2:
            return API["square"](x if isinstance(y, int) or x.dtype.kind in "fc" else API["multiply"](x, 1.0))
        if x.dtype.kind in "fc" and y in (0.5, -1.0):
            return API["sqrt"](x) if y == 0.5 else API["reciprocal"](x)
    return API["power"](x, y)


# --- choosing ---------------------------------------------------------------------------------------------------------


@public(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, else y. No gradient and no nan arrives from the branch not taken."""
    if x is None and y is None:
        return API["nonzero"](condition)
    if x is None or y is None:
        raise TypeError("where takes a condition and both x and y")
    c, x, y = as_tensor(condition), as_operand(x), as_operand(y)
    c = Tensor(truth(c.value))
    weak = x.weak and y.weak
    dtype = common_dtype([x, y])
    for t in (x, y):
        check_range(t, dtype, "where", (x, y))
    shape = broadcast_shape([c, x, y], "where")
    return Tensor(
        choose(
            stretch(c.value, shape), stretch(convert(x.value, dtype), shape), stretch(convert(y.value, dtype), shape)
        ),
        weak,
    )


@public(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """For each element the choice that goes with the first condition that holds, else ``default``."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise TypeError("select takes as many choices as conditions, at least one")
    wrong = [t for t in map(as_tensor, condlist) if t.dtype.kind != "b"]
    if wrong:
        raise DTypeError("select: conditions are booleans", values=rows(wrong), help="compare: x != 0")
    out = as_operand(default)
    dtype = common_dtype([*map(as_operand, choicelist), out])
    out = Tensor(convert(out.value, dtype))
    for c, x in zip(condlist[::-1], choicelist[::-1], strict=True):
        out = API["where"](c, Tensor(convert(as_operand(x).value, dtype)), out)
    return out


@public(np.clip)
def clip(a: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Tensor:
    """a limited to the interval from ``min`` to ``max`` (or ``a_min`` to ``a_max``); None is no limit."""
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise InputError("clip: a bound is given twice, as a_min or a_max and as min or max")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    t = as_operand(a)
    if t.dtype.kind in "iu":  # a Python integer that no number of the dtype passes is no bound
        low = None if type(low) is int and low <= np.iinfo(t.dtype).min else low
        high = None if type(high) is int and high >= np.iinfo(t.dtype).max else high
    if low is None and high is None:
        return API["positive"](t)
    bounds = [as_operand(b) for b in (low, high) if b is not None]
    types = loop_dtypes(_CLIP, [t, *bounds, *bounds][:3])
    out = Tensor(convert(t.value, types[0]))
    if low is not None:
        out = API["maximum"](out, low, dtype=types[-1])
    return out if high is None else API["minimum"](out, high, dtype=types[-1])


_CLIP: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]


@public(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """x with nan, inf and -inf replaced: by default 0 and the greatest and least finite numbers."""
    t = as_tensor(x)
    if t.dtype.kind == "c":
        parts = (nan_to_num(API[p](t), copy, nan, posinf, neginf) for p in ("real", "imag"))
        return make_complex(*parts)
    if t.dtype.kind != "f":
        return t
    info, v = finfo(t.dtype), t.value
    inf = lookup("isinf")(v)
    for sign, number in (
        (lookup("gt"), info.max if posinf is None else posinf),
        (lookup("lt"), info.min if neginf is None else neginf),
    ):
        v = choose(lookup("and")(inf, sign(t.value, 0)), splat(float(number), v.type), v)
    fill = as_operand(nan)
    if fill.dtype.kind == "c":
        raise DTypeError("nan_to_num: a complex number cannot be put into real ones", values=rows([t, fill]))
    return API["where"](API["isnan"](t), Tensor(convert(fill.value, t.dtype)), Tensor(v))


# --- complex numbers --------------------------------------------------------------------------------------------------


@public(np.real, memory="view")
def real(val: Any) -> Tensor:
    """The real part."""
    t = as_tensor(val)
    return Tensor(lookup("real")(t.value)) if t.dtype.kind == "c" else t


@public(np.imag, memory="view")
def imag(val: Any) -> Tensor:
    """The imaginary part; zeros for real dtypes."""
    t = as_tensor(val)
    return Tensor(lookup("imag")(t.value) if t.dtype.kind == "c" else splat(0, t.type))


@public(np.angle)
def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of complex numbers in radians, or degrees."""
    t = as_tensor(z)
    out = API["arctan2"](API["imag"](t) if t.dtype.kind == "c" else 0, API["real"](t))
    return API["degrees"](out) if deg else out


@public()
def make_complex(re: Any, im: Any) -> Tensor:
    """The complex numbers with these real and imaginary parts."""
    a, b = as_tensor(re), as_tensor(im)
    dtype = common_dtype([a, b])
    if dtype.kind != "f" or dtype.itemsize < 4:
        dtype = np.promote_types(dtype, np.float32) if dtype.kind == "f" else default_float()
    return Tensor(lookup("complex")(*together([a, b], "make_complex", dtype)))


@public(np.real_if_close, memory="view")
def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """a itself, unless it is constant: whether imaginary parts vanish is data, and a dtype cannot depend on data."""
    t = as_tensor(a)
    return t if t.value.data is None else as_tensor(np.real_if_close(t.value.data, tol))


@public(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """True if the dtype is complex."""
    return as_tensor(x).dtype.kind == "c"


@public(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """True if the dtype is not complex."""
    return as_tensor(x).dtype.kind != "c"


@public(np.iscomplex)
def iscomplex(x: Any) -> Tensor:
    """True where the imaginary part is not zero."""
    return API["not_equal"](API["imag"](x), 0)


@public(np.isreal)
def isreal(x: Any) -> Tensor:
    """True where the imaginary part is zero."""
    return API["equal"](API["imag"](x), 0)


# --- rounding and comparing -------------------------------------------------------------------------------------------


@public(np.round, np.around, aliases=("around",))
def round(a: Any, decimals: int = 0) -> Tensor:
    """a rounded to a number of decimals; halves go to the even neighbour."""
    t = as_tensor(a)
    if t.dtype.kind == "c":
        return make_complex(round(real(t), decimals), round(imag(t), decimals))
    count = integer(decimals, "round: decimals")
    if (t.dtype.kind in "iu" and count >= 0) or (t.dtype.kind == "b" and count == 0):
        return Tensor(convert(t.value, DTYPES["f16"])) if t.dtype.kind == "b" else t
    if t.dtype.kind == "b":
        raise DTypeError("round: a bool has no decimals", values=rows([t]), help="NumPy's neither; cast first")
    if count == 0:
        return API["rint"](t)
    if abs(count) > sys.float_info.max_10_exp:
        raise InputError(f"round: decimals, {count!r:.40}, must be an int of magnitude up to "
                         f"{sys.float_info.max_10_exp}", values=rows([t]))
    scale = 10.0 ** abs(count)
    if t.dtype.kind in "iu":
        return API["multiply"](API["rint"](API["divide"](t, scale)), scale).astype(t.dtype)  # type: ignore[attr-defined]
    first, last = ("multiply", "divide") if count > 0 else ("divide", "multiply")
    return API[last](API["rint"](API[first](t, scale)), scale)


@public(np.fix)
def fix(x: Any) -> Tensor:
    """x rounded towards zero."""
    return API["trunc"](x)


@public(np.isclose)
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|a - b| <= atol + rtol * |b|; infinities are close to themselves only."""
    a, b = as_operand(a), as_operand(b)
    # as NumPy: integers neither wrap nor overflow
    b = Tensor(convert(b.value, common_dtype([b, as_operand(1.0)])), weak=b.weak)
    near = API["less_equal"](
        API["absolute"](API["subtract"](a, b)), API["add"](atol, API["multiply"](rtol, API["absolute"](b)))
    )
    out = API["logical_or"](API["logical_and"](near, API["isfinite"](b)), API["equal"](a, b))
    return API["logical_or"](out, API["logical_and"](API["isnan"](a), API["isnan"](b))) if equal_nan else out


@public(np.allclose)
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """True if all elements are close, as a symbolic bool."""
    return API["all"](isclose(a, b, rtol, atol, equal_nan))


@public(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """True if shapes and elements are equal, as a symbolic bool."""
    a, b = as_tensor(a1), as_tensor(a2)
    if a.ndim != b.ndim or any(
        isinstance(i, int) and isinstance(j, int) and i != j for i, j in zip(a.shape, b.shape, strict=True)
    ):
        return as_tensor(np.bool_(False))
    same = API["equal"](a, b)
    return API["all"](API["logical_or"](same, API["isnan"](a) & API["isnan"](b)) if equal_nan else same)


# --- small functions --------------------------------------------------------------------------------------------------


@public(np.sinc)
def sinc(x: Any) -> Tensor:
    """sin(pi*x) / (pi*x), and 1 at 0."""
    y = API["multiply"](math.pi, x)
    zero = API["equal"](y, 0)
    safe = API["where"](zero, 1.0, y)
    # near 0 the series carries all derivatives; the quotient would lose them
    small = API["less"](API["absolute"](y), 1e-2 if y.dtype.itemsize > 4 else 0.1)
    z = API["square"](API["where"](small, y, 0.0))
    series = 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72)))
    return API["where"](small, series, API["divide"](API["sin"](safe), safe))


@public()
def relu(x: Any) -> Tensor:
    """max(x, 0)."""
    return API["maximum"](x, 0)


def _register_op(op: Op) -> None:
    """Make an op callable that NumPy has not."""
    def one(x: Any) -> Tensor:
        return Tensor(op(float_value(x, op.name)))

    def two(x: Any, y: Any) -> Tensor:
        return Tensor(op(*float_values([x, y], op.name)))
    call: Callable[..., Tensor] = one if op.facts.arity == 1 else two
    public()(called(call, op.name, op.doc))


def float_value(x: Any, name: str) -> Value:
    """An operand in a floating dtype: integers in the default float."""
    return float_values([x], name)[0]


def float_values(items: Sequence[Any], name: str) -> list[Value]:
    """Operands in one floating dtype and one shape."""
    tensors = [as_operand(i) for i in items]
    dtype = common_dtype(tensors)
    if dtype.kind == "c":
        raise DTypeError(f"{name} is not defined for complex numbers", values=rows(tensors))
    return together(tensors, name, inexact_dtype(dtype))


for _op in all_ops():
    if _op.facts.public and "elementwise" in _op.traits:
        _register_op(_op)
