"""Reductions over axes, and running reductions along one axis."""

from __future__ import annotations

from builtins import max as max_number
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import known_nonnegative, product
from symc.ir.dtypes import computed
from symc.ir.op import Op, all_ops, lookup
from symc.ir.ops.shape import in_shape
from symc.ir.size_extremes import maximum
from symc.ir.types import DTYPES, as_dtype, real_dtype
from symc.ir.value import Value
from symc.numpy_api.elementwise import float_value
from symc.numpy_api.manipulation import along, expanded, normal_axes, normal_axis
from symc.numpy_api.promotion import broadcast_shape, rows
from symc.numpy_api.ufuncs import truth
from symc.tensors.convert import as_tensor, convert, default_float, inexact_dtype, placed
from symc.tensors.public import API, called, public
from symc.tensors.sizes import SymbolicSize, user_size
from symc.tensors.tensor import Tensor

Axis = int | Sequence[int] | None


def reduce(name: str, v: Value, axis: Axis, keepdims: bool, t: Tensor | None = None) -> Tensor:
    """Op ``name`` over ``axis`` (None: all)."""
    axes = tuple(sorted(normal_axes(axis, v.ndim, name, t)))
    try:
        out = lookup(name)(v, axes=axes)
    except ShapeError as e:
        e.attach(rows([t]) if t is not None else (), ())
        e.help = e.help or "where elements may be missing, choose with sc.where or give the axis a size"
        raise
    return Tensor(expanded(out, axes) if keepdims else out)


def _wide(t: Tensor, dtype: Any) -> Value:
    """The operand in the dtype in which NumPy sums: small integers and bool in 64 bits."""
    if dtype is not None:
        return convert(t.value, as_dtype(dtype))
    if t.dtype.kind in "bi":
        return convert(t.value, DTYPES["i64"])
    return convert(t.value, DTYPES["u64"]) if t.dtype.kind == "u" else t.value


def masked(t: Tensor, where: Any, fill: Any, name: str) -> Tensor:
    """``t`` where a mask holds, and ``fill`` elsewhere, which then does not count. No mask: ``t``."""
    if where is None or where is True:
        return t
    mask = as_tensor(where)
    if mask.dtype.kind != "b":
        raise DTypeError(f"{name}: where is a mask of bool, not of {mask.dtype}", values=rows([mask]),
                         help="compare: x != 0")
    shape = broadcast_shape([t, mask], f"{name}: where")
    if mask.ndim > t.ndim or [n for n, m in zip(shape, t.value.shape, strict=True) if m == 1 != n]:
        raise ShapeError(f"{name}: where does not broadcast to the shape of the value", values=rows([t, mask]))
    return API["where"](mask, t, Tensor(placed(fill, t.dtype, name)))


@public(np.sum)
def sum(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True) -> Tensor:
    """The sum over ``axis`` of the elements ``where`` a mask holds; integers narrower than 64 bits are summed in 64."""
    if dtype is not None and as_dtype(dtype).kind == "b":
        flag = any(a, axis, keepdims, where=where)
        return flag if initial is None else API["logical_or"](flag, _first(bool(initial), flag, "sum"))
    t = masked(as_tensor(a), where, 0, "sum")
    out = reduce("sum", _wide(t, dtype), axis, keepdims, t)
    return out if initial is None else API["add"](out, _first(initial, out, "sum"))


@public(np.prod)
def prod(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
         where: Any = True) -> Tensor:
    """The product over ``axis`` of elements ``where`` a mask holds; integers narrower than 64 bits become 64."""
    if dtype is not None and as_dtype(dtype).kind == "b":
        flag = all(a, axis, keepdims, where=where)
        return flag if initial is None else API["logical_and"](flag, _first(bool(initial), flag, "prod"))
    t = masked(as_tensor(a), where, 1, "prod")
    out = reduce("prod", _wide(t, dtype), axis, keepdims, t)
    return out if initial is None else API["multiply"](out, _first(initial, out, "prod"))


def _first(initial: Any, out: Tensor, name: str) -> Tensor:
    """``initial`` in the dtype of the result, as NumPy does."""
    first = Tensor(placed(initial, out.dtype, name))
    if first.ndim:
        raise ShapeError(f"{name}: initial is one number", values=rows([first]))
    return first


def _extreme(name: str, *numpy_functions: Callable) -> Callable[..., Tensor]:
    def call(a: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Tensor:
        t = as_tensor(a)
        if where is not True and where is not None and initial is None:
            raise InputError(f"{name}: with a mask (where=) a number of no elements is needed", values=rows([t]),
                             help="give initial=")
        t = masked(t, where, initial, name)
        if initial is not None:
            initial = _first(initial, t, name)
            if not normal_axes(axis, t.ndim, name, t):
                return API[f"{name}imum"](t, initial)
            t = _with_initial(t, axis, initial)
        if t.dtype.kind == "c":
            return _complex_extreme(name, t, axis, keepdims)
        out = reduce(name, t.value, axis, keepdims, t)
        return out if initial is None else API[f"{name}imum"](out, initial)
    what = "greatest" if name == "max" else "least"
    return public(*numpy_functions, getattr(np, f"a{name}"), aliases=(f"a{name}",))(called(
        call, name, f"The {what} element over ``axis``; nan if one is nan. Ties share the derivative evenly."))


def _with_initial(t: Tensor, axis: Axis, initial: Any) -> Tensor:
    """One more element along axes that may have none, so that the reduction of none has a value."""
    axes = normal_axes(axis, t.ndim, "max", t)
    extra = [(0, int(i in axes and not known_nonnegative(n - 1))) for i, n in enumerate(t.value.shape)]
    return API["pad"](t, extra, constant_values=initial)


def _complex_extreme(name: str, t: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """Lexicographic: the extreme real part, and among those the extreme imaginary part; nan if a part of one is nan."""
    re, im, missing = API["real"](t), API["imag"](t), API["isnan"](t)
    best = API["equal"](re, API[name](API["where"](missing, np.nan, re), axis, keepdims=True))
    worst = -np.inf if name == "max" else np.inf
    chosen = API["logical_and"](best, API["equal"](im, API[name](API["where"](best, im, worst), axis, keepdims=True)))
    count = API["astype"](API["sum"](chosen, axis, keepdims=keepdims), re.dtype)
    # parts are divided by themselves, as an infinity by a complex number is nan
    real, imag = (API["divide"](API["sum"](API["where"](chosen, v, 0.0), axis, keepdims=keepdims), count)
                  for v in (re, im))
    return API["make_complex"](real, imag)


max = _extreme("max", np.max)
min = _extreme("min", np.min)


def _logical(name: str, function: Callable) -> Callable[..., Tensor]:
    def call(a: Any, axis: Axis = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
        t = as_tensor(a)
        flags = masked(Tensor(truth(t.value)), where, name == "all", name)
        return reduce(name, flags.value, axis, keepdims, t)
    return public(function)(called(
        call, name, f"Whether {'some element is' if name == 'any' else 'all elements are'} true over ``axis``."))


any = _logical("any", np.any)
all = _logical("all", np.all)


def _place(name: str, function: Callable) -> Callable[..., Tensor]:
    def call(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        t = as_tensor(a)
        if t.dtype.kind == "c":
            extreme = API["equal"](t, API[name.removeprefix("arg")](t, axis, keepdims=True))
            return argmax(API["logical_or"](extreme, API["isnan"](t)), axis, keepdims=keepdims)
        if axis is None:
            flat = reduce(name, in_shape(t.value, (product(t.value.shape),)), 0, False, t)
            return Tensor(in_shape(flat.value, (1,) * t.ndim)) if keepdims else flat
        return reduce(name, t.value, normal_axis(axis, t.ndim, name, t), keepdims, t)
    what = "greatest" if name == "argmax" else "least"
    return public(function)(called(
        call, name, f"The place of the first {what} element along ``axis`` (of the raveled value for None)."))


argmax = _place("argmax", np.argmax)
argmin = _place("argmin", np.argmin)


@public(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero."""
    return sum(Tensor(truth(as_tensor(a).value)), axis, keepdims=keepdims)


# --- means ------------------------------------------------------------------------------------------------------------


def count_along(t: Tensor, axis: Axis, name: str) -> Any:
    """The number of elements over ``axis``, which promotes like a Python int."""
    sizes = [t.shape[i] for i in normal_axes(axis, t.ndim, name, t)]
    total: Any = 1
    for s in sizes:
        total = total * s
    return total


def _inexact(t: Tensor, dtype: Any) -> tuple[Tensor, np.dtype]:
    """The operand in the dtype in which NumPy averages, and the dtype of the result."""
    out = inexact_dtype(t.dtype) if dtype is None else as_dtype(dtype)
    wide = computed(out) if dtype is None else out
    return Tensor(convert(t.value, wide)), out


def _count(t: Tensor, axis: Axis, name: str, keepdims: bool, where: Any) -> Any:
    """The number of elements over ``axis`` that count: of a mask in the default float."""
    if where is None or where is True:
        return count_along(t, axis, name)
    ones = API["ones_like"](t, dtype=default_float())
    return reduce("sum", masked(ones, where, 0, name).value, axis, keepdims, t)


def _quotient(total: Tensor, count: Any, out: np.dtype) -> Tensor:
    return Tensor(convert(API["divide"](total, count).value, out))


@public(np.mean)
def mean(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """The mean over ``axis`` of the elements ``where`` a mask holds; of integers in the default float."""
    t = as_tensor(a)
    x, out = _inexact(t, dtype)
    total = reduce("sum", masked(x, where, 0, "mean").value, axis, keepdims, t)
    return _quotient(total, _count(t, axis, "mean", keepdims, where), out)


def _deviations(t: Tensor, axis: Axis, dtype: Any, mean: Any, where: Any, name: str) -> tuple[Tensor, np.dtype]:
    """x - mean over ``axis``, 0 where no element counts, and the dtype of a variance."""
    x, out = _inexact(t, dtype)
    if t.dtype.kind == "c" and out.kind != "c":
        raise DTypeError(f"{name} of complex numbers in {out}", values=rows([t]), help="take x.real, or abs(x)")
    if mean is None:
        total = reduce("sum", masked(x, where, 0, name).value, axis, True, t)
        mean = _quotient(total, _count(t, axis, name, True, where), x.dtype)
    return masked(API["subtract"](x, mean), where, 0, name), real_dtype(out) if dtype is None else out


def degrees(n: Any, ddof: Any) -> Any:
    """Degrees of freedom, by which the sum of squares is divided; 0 rather than negative, as NumPy does."""
    left = n - ddof
    if isinstance(left, int | float):
        return max_number(left, 0)
    if isinstance(left, SymbolicSize):
        return user_size(maximum(left.dim, 0))
    return API["maximum"](left, 0)


def one_ddof(ddof: Any, correction: Any, name: str) -> Any:
    """The same number has two names. One of NumPy's becomes one of Python's, of which differences are exact."""
    if correction is not None and ddof:
        raise InputError(f"{name}: ddof={ddof} and correction={correction} are two names of one number")
    given = ddof if correction is None else correction
    given = given.item() if isinstance(given, np.generic) else given
    return given if isinstance(given, Number | SymbolicSize) else as_tensor(given)


@public(np.var)
def var(a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, mean: Any = None,
        correction: float | None = None, where: Any = True) -> Tensor:
    """The mean of |x - mean|**2 over ``axis``, with ``ddof`` (or ``correction``) taken from the number of elements."""
    t = as_tensor(a)
    d, out = _deviations(t, axis, dtype, mean, where, "var")
    if d.dtype.kind == "c":
        square = API["add"](API["square"](API["real"](d)), API["square"](API["imag"](d)))
    else:
        square = API["square"](d)
    total = reduce("sum", square.value, axis, keepdims, t)
    n = _count(t, axis, "var", keepdims, where)
    return _quotient(total, degrees(n, one_ddof(ddof, correction, "var")), out)


@public(np.std)
def std(a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, mean: Any = None,
        correction: float | None = None, where: Any = True) -> Tensor:
    """The square root of the variance. Where all elements are equal its derivative is 0, as that of a norm."""
    t = as_tensor(a)
    d, out = _deviations(t, axis, dtype, mean, where, "std")
    length = reduce("norm", d.value, axis, keepdims, t)
    n = _count(t, axis, "std", keepdims, where)
    return _quotient(length, API["sqrt"](degrees(n, one_ddof(ddof, correction, "std"))), out)


@public(np.ptp)
def ptp(a: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest minus the least element."""
    return API["subtract"](max(a, axis, keepdims), min(a, axis, keepdims))


# --- exponentials -----------------------------------------------------------------------------------------------------


@public()
def logsumexp(a: Any, axis: Axis = None, keepdims: bool = False, b: Any = None) -> Tensor:
    """log(sum(exp(a))), without overflow; with weights b, log(sum(b * exp(a)))."""
    t = as_tensor(a)
    if b is None:
        return reduce("logsumexp", float_value(t, "logsumexp"), axis, keepdims, t)
    b, t = API["broadcast_arrays"](b, Tensor(float_value(t, "logsumexp")))
    top = reduce("sup", API["where"](API["equal"](b, 0), -np.inf, t).value, axis, True, t)
    top = Tensor(lookup("stop_gradient")(API["where"](API["isfinite"](top), top, 0).value))
    total = sum(API["multiply"](b, API["exp"](API["where"](API["equal"](b, 0), top, t) - top)), axis, keepdims=keepdims)
    return API["log"](total) + (top if keepdims else API["sum"](top, axis))


def _along(name: str, x: Any, axis: Axis) -> Tensor:
    """Softmax or its logarithm: an op that keeps the shape."""
    t = as_tensor(x)
    v = float_value(t, name)
    return Tensor(lookup(name)(v, axes=tuple(sorted(normal_axes(axis, v.ndim, name, t)))))


@public()
def softmax(x: Any, axis: Axis = None) -> Tensor:
    """exp(x) / sum(exp(x)) over ``axis``, without overflow."""
    return _along("softmax", x, axis)


@public()
def log_softmax(x: Any, axis: Axis = None) -> Tensor:
    """x - logsumexp(x), the logarithm of softmax, accurate for large x."""
    return _along("log_softmax", x, axis)


# --- running ----------------------------------------------------------------------------------------------------------


def _running(name: str, *functions: Callable) -> Callable[..., Tensor]:
    def call(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        t, axis = along(a, axis, name)
        return Tensor(lookup(name)(_wide(t, dtype), axis=axis, reverse=False))
    what = "sum" if name == "cumsum" else "product"
    return public(*functions)(called(
        call, name, f"The running {what} along ``axis`` (of the raveled value for None)."))


cumsum = _running("cumsum", np.cumsum)
cumprod = _running("cumprod", np.cumprod)


@public()
def logcumsumexp(a: Any, axis: int | None = None) -> Tensor:
    """log(cumsum(exp(a))) along ``axis`` (of the raveled value for None), without overflow."""
    t, axis = along(a, axis, "logcumsumexp")
    return Tensor(lookup("logcumsumexp")(float_value(t, "logcumsumexp"), axis=axis, reverse=False))


def _cumulative(name: str, function: Callable | None, first: int) -> Callable[..., Tensor]:
    def call(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
        t = as_tensor(x)
        if axis is None:
            if t.ndim != 1:
                raise ShapeError(f"{name}: axis is needed for {t.ndim} axes", values=rows([t]))
            axis = 0
        axis = normal_axis(axis, t.ndim, name, t)
        out = API[name.replace("ulative_", "")](t, axis, dtype)
        return (
            API["pad"](out, [(1 if i == axis else 0, 0) for i in range(t.ndim)], constant_values=first)
            if include_initial
            else out
        )
    return public(*([function] if function else []))(called(
        call, name, "The running result along ``axis``, optionally with the value of no elements in front."))


cumulative_sum = _cumulative("cumulative_sum", getattr(np, "cumulative_sum", None), 0)
cumulative_prod = _cumulative("cumulative_prod", getattr(np, "cumulative_prod", None), 1)


def _register(op: Op) -> None:
    """Make a reduction callable that NumPy has not."""
    def call(a: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
        t = as_tensor(a)
        return reduce(op.name, float_value(t, op.name) if "f" in op.facts.kinds else t.value, axis, keepdims, t)
    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.doc.replace("`axes`", "``axis``")
    public()(call)


for _op in all_ops():
    if _op.facts.public and "reduction" in _op.traits:
        _register(_op)
