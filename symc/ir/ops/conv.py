"""Convolution, and its two transposes: each is linear in both operands, and differentiating any gives the other two.

Layouts are x: [samples, channels, *sizes], w: [filters, channels / groups, *window], y: [samples, filters, *counts].
Filters are not flipped. Where windows lie is said as in `windows`: padding is a `pad` before. With ``groups``, the
channels and the filters fall into that many parts, and each part of the filters sees its part of the channels.

For a backend that has nothing better, each is a loop over samples of one product of matrices: the windows of one sample
are copied side by side (and stay in the cache), then multiplied. So memory does not grow with the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, floordiv, product
from symc.ir.dtypes import is_narrow
from symc.ir.facts import Facts
from symc.ir.op import Decompose, Multilinear, Op, register, splat
from symc.ir.ops.arithmetic import add, conjugate, mul
from symc.ir.ops.cast import cast
from symc.ir.ops.control import scan
from symc.ir.ops.conv_reference import conv_reference, filter_reference, input_reference, samples_of
from symc.ir.ops.elementwise import check_arity, check_kind
from symc.ir.ops.leaf import scalar
from symc.ir.ops.linalg import dot
from symc.ir.ops.logic import where
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, flip, in_order, pad, reshape, slice_
from symc.ir.ops.windows import (
    WRITTEN_OUT,
    Steps,
    Window,
    add_windows,
    check_steps,
    counts,
    fits,
    slices,
    span,
    windows,
)
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Region, Value, param

Sizes = tuple[Size, ...]

# --- types ------------------------------------------------------------------------------------------------------------


def _check(name: str, types: Sequence[TensorType], rank: int, groups: int, **steps: Window) -> None:
    check_arity(name, types, 2)
    check_steps(name, rank, **steps)
    for t in types:
        check_kind(name, t, "iufc")
        if t.ndim != rank + 2:
            raise ShapeError(f"{name}: {t} has {t.ndim} axes, not {rank + 2}")
        if t.dtype != types[0].dtype:
            raise DTypeError(f"{name}: operands are {types[0]} and {t}")
    if groups < 1:
        raise ShapeError(f"{name}: {groups} groups")


def _same(name: str, what: str, have: Sequence[Size], want: Sequence[Size]) -> None:
    if tuple(have) != tuple(want):
        raise ShapeError(f"{name}: {what} {tuple(map(str, have))} is not {tuple(map(str, want))}")


def _part(n: Size, groups: int) -> Size:
    part = floordiv(n, groups)
    if part * groups != n:
        raise ShapeError(f"conv: {n} channels or filters cannot be taken in {groups} groups")
    return part


def _conv_infer(*types: TensorType, stride: Steps, dilation: Steps, groups: int) -> TensorType:
    _check("conv", types, len(stride), groups, stride=stride, dilation=dilation)
    x, w = types
    _same("conv: channels of", "a group", (_part(x.shape[1], groups),), (w.shape[1],))
    _part(w.shape[0], groups)
    return x.with_shape((x.shape[0], w.shape[0], *counts("conv", x.shape[2:], w.shape[2:], stride, dilation)))


def _input_infer(*types: TensorType, size: Sizes, stride: Steps, dilation: Steps, groups: int) -> TensorType:
    _check("conv_input", types, len(size), groups, stride=stride, dilation=dilation)
    g, w = types
    _same("conv_input", "filters", (g.shape[1],), (w.shape[0],))
    _same("conv_input", "windows", g.shape[2:], counts("conv_input", size, w.shape[2:], stride, dilation))
    _part(w.shape[0], groups)
    return g.with_shape((g.shape[0], w.shape[1] * groups, *size))


def _filter_infer(*types: TensorType, window: Window, stride: Steps, dilation: Steps, groups: int) -> TensorType:
    _check("conv_filter", types, len(window), groups, window=window, stride=stride, dilation=dilation)
    x, g = types
    _same("conv_filter", "samples", (x.shape[0],), (g.shape[0],))
    _same("conv_filter", "windows", g.shape[2:], counts("conv_filter", x.shape[2:], window, stride, dilation))
    _part(g.shape[1], groups)
    return x.with_shape((g.shape[1], _part(x.shape[1], groups), *window))


# --- as products with windows -----------------------------------------------------------------------------------------
#
# For one sample, or for all in one: ``lead`` is how many axes of samples there are, 0 or 1. The axes of a product are
# [group], then filters or channels and window, then windows.


def _grouped(x: Value, axis: int, groups: int) -> Value:
    """An axis as groups and parts."""
    if groups == 1:
        return x
    return reshape(x, shape=(*x.shape[:axis], groups, _part(x.shape[axis], groups), *x.shape[axis + 1 :]))


def _columns(x: Value, lead: int, window: Window, stride: Steps, dilation: Steps, groups: int) -> Value:
    """[samples, group, channels, *window, *windows]"""
    return _grouped(windows(x, window=window, stride=stride, dilation=dilation), lead, groups)


def _front(x: Value, axis: int) -> Value:
    """``x`` with an axis moved to the front."""
    return in_order(x, (axis, *[a for a in range(x.ndim) if a != axis]))


def _plain_conv(x: Value, w: Value, lead: int, groups: int, stride: Steps, dilation: Steps) -> Value:
    m, group = len(stride), int(groups > 1)
    columns = _columns(x, lead, w.shape[2:], stride, dilation, groups)
    inner = _run(1 + group, m + 1)
    y = dot(_grouped(w, 0, groups), columns, contract=(inner, _run(lead + group, m + 1)),
            batch=((0,), (lead,)) if group else ((), ()))
    # [group], filters, [samples], windows
    if lead:
        y = _front(y, 1 + group)
    return reshape(y, shape=(*y.shape[:lead], w.shape[0], *y.shape[lead + 1 + group :])) if group else y


def _plain_input(g: Value, w: Value, lead: int, groups: int, size: Sizes, stride: Steps, dilation: Steps) -> Value:
    m, group = len(stride), int(groups > 1)
    columns = dot(_grouped(w, 0, groups), _grouped(g, lead, groups), contract=((group,), (lead + group,)),
                  batch=((0,), (lead,)) if group else ((), ()))
    # [group], channels, window, [samples], windows
    if lead:
        columns = _front(columns, group + 1 + m)
    rest = columns.shape[lead + group + 1 :]
    if group:
        columns = reshape(columns, shape=(*columns.shape[:lead], groups * w.shape[1], *rest))
    zero = splat(0, TensorType(g.dtype, (*columns.shape[: lead + 1], *size)))
    return add_windows(zero, columns, window=w.shape[2:], stride=stride, dilation=dilation)


def _plain_filter(x: Value, g: Value, lead: int, groups: int, window: Window, stride: Steps, dilation: Steps) -> Value:
    m, group = len(stride), int(groups > 1)
    columns = _columns(x, lead, window, stride, dilation, groups)
    own, other = _run(lead + group + 1, m), _run(lead + group + 1 + m, m)
    if lead:
        own, other = (0, *own), (0, *other)
    w = dot(_grouped(g, lead, groups), columns, contract=(own, other), batch=((lead,), (lead,)) if group else ((), ()))
    return reshape(w, shape=(groups * w.shape[1], *w.shape[2:])) if group else w


def _run(first: int, n: int) -> tuple[int, ...]:
    return tuple(range(first, first + n))


# --- a filter for each channel ----------------------------------------------------------------------------------------
#
# There is no product of matrices to be had: what one sample gives is one kernel, in which nothing is copied. ``lead``
# is -1 where there are axes neither of samples nor of channels.

def is_depthwise(v: Value) -> bool:
    """One channel and one filter a group. (Their transposes with steps are made of products.)"""
    channels = v.operands[0].shape[1]
    filters = v.shape[0] if v.op is conv_filter else v.operands[1].shape[0]
    steps = v.attrs["stride"] if v.op is conv_input else ()
    return channels == filters == v.attrs["groups"] and set(steps) <= {1}


def _is_small(window: Window) -> bool:
    """Tests whether the elements of a window are written out."""
    count = product(window)
    return isinstance(count, int) and count <= WRITTEN_OUT


def _each_conv(x: Value, w: Value, lead: int, groups: int, stride: Steps, dilation: Steps) -> Value:
    """Slices of a sample, times a number of the filter each; of large windows, sums of products that are not copied."""
    window: Any = w.shape[2:]
    if not _is_small(window):
        return _summed(windows(x, window=window, stride=stride, dilation=dilation), w, lead)
    total: Value | None = None
    for at, part in zip(np.ndindex(*window), slices(x, window, stride, dilation), strict=True):
        number = slice_(w, start=(0, 0, *at), size=(w.shape[0], *[1] * (w.ndim - 1)), step=(1,) * w.ndim)
        front = (lead,) if lead >= 0 else ()
        number = broadcast(reshape(number, shape=w.shape[: len(front)]), axes=front, shape=part.shape)
        total = mul(part, number) if total is None else add(total, mul(part, number))
    assert total is not None
    return total


def _each_input(g: Value, w: Value, lead: int, groups: int, size: Sizes, stride: Steps, dilation: Steps) -> Value:
    """The convolution of what is padded with zeros with flipped filters, without products with those zeros."""
    window = w.shape[2:]
    wide = tuple(span(k, d) - 1 for k, d in zip(window, dilation, strict=True))
    around: Any = dict(low=(*[0] * (lead + 1), *wide), high=(*[0] * (lead + 1), *wide), interior=(0,) * g.ndim)
    turned = flip(w, tuple(range(2, w.ndim)))
    x = pad(g, scalar(0, g.dtype), **around)
    if _is_small(window) and len(window) > 1:  # slices; along one axis a mask costs nothing
        return _each_conv(x, turned, lead, groups, stride, dilation)
    steps: Any = dict(window=window, stride=stride, dilation=dilation)
    inside = pad(splat(True, TensorType("bool", g.shape)), scalar(False, "bool"), **around)
    return _summed(windows(x, **steps), turned, lead, windows(inside, **steps))


def _summed(own: Value, w: Value, lead: int, inside: Value | None = None) -> Value:
    """Sums of the products of windows (those that are ``inside``) with the filter of their channel."""
    window = w.shape[2:]
    taps = reshape(w, shape=(*w.shape[: lead >= 0], *window))
    taps = broadcast(taps, axes=_run(max(lead, 0), taps.ndim), shape=own.shape)
    products = mul(own, taps)
    if inside is not None:
        products = where(inside, products, splat(0, products.type))
    return sum_(products, axes=_run(lead + 1, len(window)))


def _each_filter(x: Value, g: Value, lead: int, groups: int, window: Window, stride: Steps, dilation: Steps) -> Value:
    """Sums of products with windows that are not copied."""
    m = len(window)
    own = windows(x, window=window, stride=stride, dilation=dilation)
    other = broadcast(g, axes=(*_run(0, lead + 1), *_run(lead + m + 1, m)), shape=own.shape)
    w = sum_(mul(other, own), axes=(*_run(0, lead), *_run(lead + m + 1, m)))
    return reshape(w, shape=(*w.shape[: lead >= 0], 1, *w.shape[lead >= 0 :]))


def _alone(form: Callable[..., Value], v: Value) -> Value:
    """One sample of one channel with one filter."""
    x, w = v.operands
    x = reshape(x, shape=x.shape[2:])
    w = reshape(w, shape=w.shape[2:]) if v.op is conv_filter else w
    return reshape(form(x, w, lead=-1, **v.attrs), shape=v.shape)


# --- one sample after another -----------------------------------------------------------------------------------------


def _each_sample(plain: Callable[..., Value], each: Callable[..., Value]) -> Callable[[Value], Value]:
    """A loop that makes the result of each sample from the first operand's; the filter is the same for all. ``each``:
    its form with a filter for each channel."""

    def parts(v: Value) -> Value:
        if is_narrow(v.dtype):
            return _in_single(v)
        form: Callable[..., Value] = each if is_depthwise(v) else plain
        x, w = v.operands
        if x.shape[0] == 1:
            return _alone(form, v) if form is each and v.attrs["groups"] == 1 else form(x, w, lead=1, **v.attrs)
        row = TensorType(x.dtype, x.shape[1:])
        body = Region((row, w.type), [form(param(0, row), param(1, w.type), lead=0, **v.attrs)])  # type: ignore[arg-type]
        return scan(x, w, carry=0, xs=1, length=x.shape[0], reverse=False, regions=(body,))

    return parts


def _one_by_one(v: Value) -> Value:
    """A loop that adds up what each sample gives for the filter."""
    if is_narrow(v.dtype):
        return _in_single(v)
    form: Callable[..., Value] = _each_filter if is_depthwise(v) else _plain_filter
    if v.operands[0].shape[0] == 1:
        single = form is _each_filter and v.attrs["groups"] == 1
        return _alone(form, v) if single else form(*v.operands, lead=1, **v.attrs)
    types = (v.type, *[TensorType(o.dtype, o.shape[1:]) for o in v.operands])
    total, x, g = (param(k, t) for k, t in enumerate(types))
    body = Region(types, [add(total, form(x, g, lead=0, **v.attrs))])  # type: ignore[arg-type]
    n = v.operands[0].shape[0]
    return scan(splat(0, v.type), *v.operands, carry=1, xs=2, length=n, reverse=False, regions=(body,))


def _in_single(v: Value) -> Value:
    """Sums are not rounded to half precision on the way."""
    return cast(v.op(*[cast(o, dtype=DTYPES["f32"]) for o in v.operands], **v.attrs), dtype=v.dtype)


# --- all samples at once ----------------------------------------------------------------------------------------------


def _lower_batched(plain: Callable[..., Value], each: Callable[..., Value]) -> Callable[[Value], Value]:
    """One product (or, of a filter for each channel, one sum) for all samples."""

    def whole(v: Value) -> Value:
        if is_narrow(v.dtype):
            return cast(whole(v.op(*[cast(o, dtype=DTYPES["f32"]) for o in v.operands], **v.attrs)), dtype=v.dtype)
        form = each if is_depthwise(v) else plain
        return form(*v.operands, lead=1, **v.attrs)

    return whole


# --- batches ----------------------------------------------------------------------------------------------------------


def _batch(plain: Callable[..., Value], merge: bool) -> Callable:
    """Batching of an op over one more axis: its samples become more samples where only they differ (``merge``), else
    the products with windows gain an axis."""
    def rule(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
        from symc.ir.batch import batch_graph

        if merge and not flags[1]:
            x = operands[0]
            flat = v.op(reshape(x, shape=(n * x.shape[1], *x.shape[2:])), operands[1], **v.attrs)
            return reshape(flat, shape=(n, *v.shape))
        whole = plain(*v.operands, lead=1, **v.attrs)
        leaves = {o: (b, f) for o, b, f in zip(v.operands, operands, flags, strict=True)}
        return batch_graph([whole], leaves, n)[0][0]

    return rule


# --- the ops ----------------------------------------------------------------------------------------------------------


def _steps(v: Value) -> dict:
    return {name: v.attrs[name] for name in ("stride", "dilation", "groups")}


def _size(x: Value) -> dict:
    return {"size": x.shape[2:]}


def _window(w: Value) -> dict:
    return {"window": w.shape[2:]}


#: One window after another, of neighbours, in one group: one step an axis after those of samples and channels.
STEPS: dict[str, Any] = dict.fromkeys(("stride", "dilation"), lambda *types: (1,) * (types[0].ndim - 2)) | {"groups": 1}

conv: Op = register(Op(
    "conv", _conv_infer, conv_reference,
    Multilinear((lambda g, v: conv_input(g, conjugate(v.operands[1]), **_size(v.operands[0]), **_steps(v)),
                 lambda g, v: conv_filter(conjugate(v.operands[0]), g, **_window(v.operands[1]), **_steps(v)))),
    Decompose(_each_sample(_plain_conv, _each_conv)), frozenset({"contraction"}),
    samples_of(lambda x, w, g: ((x, w), {})),
    "For each sample and filter w, the sum of products with every window of x.",
    Facts(kinds="iufc", lower_batched=_lower_batched(_plain_conv, _each_conv), batch=_batch(_plain_conv, merge=True),
          fits=lambda v: fits(v, v.operands[0].shape[2:], v.operands[1].shape[2:])),
    defaults=STEPS,
))  # fmt: skip

conv_input: Op = register(Op(
    "conv_input", _input_infer, input_reference,
    Multilinear((lambda g, v: conv(g, conjugate(v.operands[1]), **_steps(v)),
                 lambda g, v: conv_filter(g, conjugate(v.operands[0]), **_window(v.operands[1]), **_steps(v)))),
    Decompose(_each_sample(_plain_input, _each_input)), frozenset({"contraction"}),
    samples_of(lambda x, w, g: ((g, w), {"size": x.shape[2:]})),
    "The transpose of `conv` by its first operand, which has sizes `size`: a transposed convolution.",
    Facts(kinds="iufc", lower_batched=_lower_batched(_plain_input, _each_input), batch=_batch(_plain_input, merge=True),
          fits=lambda v: [(n, 1) for o in v.operands for n in o.shape[2:]]),
    defaults=STEPS,
))  # fmt: skip

conv_filter: Op = register(Op(
    "conv_filter", _filter_infer, filter_reference,
    Multilinear((lambda g, v: conv_input(conjugate(v.operands[1]), g, **_size(v.operands[0]), **_steps(v)),
                 lambda g, v: conv(conjugate(v.operands[0]), g, **_steps(v)))),
    Decompose(_one_by_one), frozenset({"contraction"}),
    samples_of(lambda x, w, g: ((x, g), {"window": w.shape[2:]})),
    "The transpose of `conv` by its second operand, which has the sizes `window`: x with a cotangent of the result.",
    Facts(kinds="iufc", lower_batched=_lower_batched(_plain_filter, _each_filter),
          batch=_batch(_plain_filter, merge=False)),
    defaults=STEPS,
))  # fmt: skip
