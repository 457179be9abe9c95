"""Convolution and pooling, under PyTorch's names and in its order of arguments and axes.

Arrays are [samples, channels, *sizes], filters [filters, channels / groups, *window], for any number of sizes; those of
samples and the sizes may be symbolic. ``conv``, ``conv_transpose``, ``max_pool`` and ``avg_pool`` are in ``sc`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, ceildiv, floordiv, known_equal, known_nonnegative
from symc.ir.op import lookup, splat
from symc.ir.ops.ensure import axis_ensured
from symc.ir.ops.leaf import scalar
from symc.ir.ops.windows import span
from symc.ir.size_extremes import maximum
from symc.ir.types import DTYPE_NAMES
from symc.ir.value import Value
from symc.numpy_api.promotion import rows, same_dtype
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import called, located
from symc.tensors.sizes import holds_entries, size_of
from symc.tensors.tensor import Tensor

Widths = list[tuple[Size, Size]]
Steps = dict[str, Any]  # what an op is told about its windows

# --- arguments --------------------------------------------------------------------------------------------------------


def _numbers(given: Any, rank: int, name: str, what: str, least: int, among: Sequence[Tensor]) -> tuple[int, ...]:
    """One number for all axes, or one an axis."""
    numbers = tuple(given) if holds_entries(given) else (given,) * rank
    if len(numbers) != rank:
        raise ShapeError(f"{name}: {what}={given} has {len(numbers)} entries", values=rows(among),
                         help=f"give one number, or one for each of the last {rank} axes")
    for k in numbers:
        if not isinstance(size_of(k), int):
            raise ShapeError(f"{name}: {what}={given!r} is not made of whole numbers", values=rows(among))
        if k < least:
            raise ShapeError(f"{name}: {what}={given} must be at least {least}", values=rows(among))
    return tuple(int(k) for k in numbers)


def _steps(rank: int, name: str, among: Sequence[Tensor], **given: Any) -> Steps:
    """Positive numbers, one for each of ``rank`` axes."""
    return {what: _numbers(numbers, rank, name, what, 1, among) for what, numbers in given.items()}


def _padding(given: Any, shape: Sequence[Size], window: tuple[Size, ...], stride: tuple[int, ...],
             dilation: tuple[int, ...], name: str, among: Sequence[Tensor]) -> Widths:
    """Numbers of elements that are put before and after each axis."""
    if isinstance(given, str):
        if given.lower() == "valid":
            return [(0, 0)] * len(shape)
        if given.lower() == "same":
            spans = [span(k, d) for k, d in zip(window, dilation, strict=True)]
            totals = [maximum((ceildiv(n, s) - 1) * s + w - n, 0) if s > 1 else w - 1
                      for n, w, s in zip(shape, spans, stride, strict=True)]
            return [(t // 2, t - t // 2) for t in totals]
        raise ShapeError(f"{name}: padding={given!r}", values=rows(among),
                         help='"valid" pads nothing, "same" so that with stride 1 the sizes stay')
    if holds_entries(given) and any(map(holds_entries, given)):
        if len(given) != len(shape) or any(np.shape(p) != (2,) for p in given):
            raise ShapeError(f"{name}: padding={given} is not a pair for each of the last {len(shape)} axes",
                             values=rows(among))
        return [_numbers(p, 2, name, "padding", 0, among) for p in given]  # type: ignore[misc]
    return [(p, p) for p in _numbers(given, len(shape), name, "padding", 0, among)]


def _padded(v: Value, widths: Widths, fill: float) -> Value:
    """``v`` with more elements around its last axes."""
    if all(w == 0 for pair in widths for w in pair):
        return v
    lead = (0,) * (v.ndim - len(widths))
    number = splat(fill, scalar(0, v.dtype).type)
    return lookup("pad")(v, number, low=(*lead, *[a for a, _ in widths]), high=(*lead, *[b for _, b in widths]),
                         interior=(0,) * v.ndim)


def _check_fit(shape: Sequence[Size], window: tuple[Size, ...], dilation: tuple[int, ...], name: str,
               among: Sequence[Tensor]) -> None:
    lead = among[0].ndim - len(shape)
    for a, (n, k, d) in enumerate(zip(shape, window, dilation, strict=True)):
        if known_nonnegative(span(k, d) - 1 - n):
            more = f" (dilation {d})" if d > 1 else ""
            raise ShapeError(f"{name}: a window of {k}{more} does not fit axis {lead + a}, of size {n} with padding",
                             values=rows(among), help="a smaller window, or more padding")


def _operands(x: Any, w: Any, name: str) -> tuple[list[Tensor], tuple[Size, ...]]:
    """An array and filters in one float dtype, and the window."""
    tensors = same_dtype([x, w], name)
    a, b = tensors
    if a.dtype.kind != "f":
        raise DTypeError(f"{name} is not defined for {DTYPE_NAMES[a.dtype]}", values=rows(tensors),
                         help="cast to float32 or float64 first: x.astype('float32')")
    if b.ndim < 3 or a.ndim != b.ndim:
        one = "; x[None] adds the axis of samples" if b.ndim >= 3 and a.ndim == b.ndim - 1 else ""
        raise ShapeError(f"{name}: x has {a.ndim} axes and w {b.ndim}", values=rows(tensors),
                         help=f"x is [samples, channels, *sizes], w [filters, channels, *window]{one}")
    window = b.value.shape[2:]
    if 0 in window:
        raise ShapeError(f"{name}: the window has no elements", values=rows(tensors))
    return tensors, window


def _check_groups(groups: Any, sizes: Sequence[Size], name: str, among: Sequence[Tensor]) -> int:
    (number,) = _numbers(groups, 1, name, "groups", 1, among)
    if number > 1 and any(isinstance(n, int) and n % number for n in sizes):
        raise ShapeError(f"{name}: {' and '.join(map(str, sizes))} cannot be taken in {number} groups",
                         values=rows(among), help="they must be multiples of groups")
    return number


def _agree(v: Value, axis: int, want: Size) -> Value:
    """``v`` with an axis of size ``want``, which a call checks if it is not known."""
    return axis_ensured(v, axis, want)


def _with_bias(y: Value, bias: Any, name: str, among: Sequence[Tensor]) -> Tensor:
    if bias is None:
        return Tensor(y)
    b = as_tensor(bias)
    v = convert(b.value, y.dtype)
    if v.ndim != 1 or known_equal(v.shape[0], y.shape[1]) is False:
        raise ShapeError(f"{name}: the bias has not one number for each of {y.shape[1]} channels of the result",
                         values=[*rows(among), b.describe("bias")])
    return Tensor(y + lookup("broadcast")(_agree(v, 0, y.shape[1]), axes=(1,), shape=y.shape))


# --- convolution ------------------------------------------------------------------------------------------------------


@located
def conv(x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
         groups: int = 1) -> Tensor:
    """The convolution of [samples, channels, *sizes] with [filters, channels / groups, *window]; nothing is flipped.

    ``padding``: zeros around the sizes, a number, one an axis, a pair (before, after) an axis, "valid" or "same".
    """
    tensors, window = _operands(x, w, "conv")
    a, b = (t.value for t in tensors)
    rank = len(window)
    steps = _steps(rank, "conv", tensors, stride=stride, dilation=dilation)
    number = _check_groups(groups, (a.shape[1], b.shape[0]), "conv", tensors)
    b = _agree(b, 0, floordiv(b.shape[0], number) * number)
    if known_equal(a.shape[1], b.shape[1] * number) is False:
        more = f" (times groups={number})" if number > 1 else ""
        raise ShapeError("conv: the channels differ", values=rows(tensors),
                         help=f"axis 1 of x ({a.shape[1]}) must equal axis 1 of w ({b.shape[1]}){more}")
    widths = _padding(padding, a.shape[2:], window, **steps, name="conv", among=tensors)
    whole = _padded(_agree(a, 1, b.shape[1] * number), widths, 0)
    _check_fit(whole.shape[2:], window, steps["dilation"], "conv", tensors)
    return _with_bias(lookup("conv")(whole, b, groups=number, **steps), bias, "conv", tensors)


@located
def conv_transpose(x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                   groups: int = 1, dilation: Any = 1) -> Tensor:
    """The transposed convolution: the derivative of ``conv`` by its input, for filters [channels, out/groups, *window].

    ``padding`` takes elements off the result, and ``output_padding`` makes it longer at the end.
    """
    name = "conv_transpose"
    tensors, window = _operands(x, w, name)
    a, b = (t.value for t in tensors)
    rank = len(window)
    steps = _steps(rank, name, tensors, stride=stride, dilation=dilation)
    off = _numbers(padding, rank, name, "padding", 0, tensors)
    more = _numbers(output_padding, rank, name, "output_padding", 0, tensors)
    number = _check_groups(groups, (a.shape[1],), name, tensors)
    b = _agree(b, 0, floordiv(b.shape[0], number) * number)
    if known_equal(a.shape[1], b.shape[0]) is False:
        raise ShapeError(f"{name}: the channels differ", values=rows(tensors),
                         help=f"axis 1 of x ({a.shape[1]}) must equal axis 0 of w ({b.shape[0]})")
    size = tuple((n - 1) * s + span(k, d)
                 for n, k, s, d in zip(a.shape[2:], window, steps["stride"], steps["dilation"], strict=True))
    y = lookup("conv_input")(_agree(a, 1, b.shape[0]), b, size=size, groups=number, **steps)
    y = _padded(y, [(0, max(m - p, 0)) for m, p in zip(more, off, strict=True)], 0)
    kept = tuple(n - p - max(p - m, 0) for n, p, m in zip(y.shape[2:], off, more, strict=True))
    if any(known_nonnegative(-n) for n in kept):
        raise ShapeError(f"{name}: padding={padding} leaves nothing of the result", values=rows(tensors))
    if kept != y.shape[2:]:
        y = lookup("slice")(y, start=(0, 0, *off), size=(*y.shape[:2], *kept), step=(1,) * y.ndim)
    return _with_bias(y, bias, name, tensors)


# --- pooling ----------------------------------------------------------------------------------------------------------


def _pool(name: str, x: Any, window: Any, stride: Any, padding: Any, dilation: Any, fill: float | None,
          kinds: str) -> tuple[Value, Widths, Steps]:
    """The padded array, the padding, and where the windows are."""
    t = as_tensor(x)
    if t.dtype.kind not in kinds:
        raise DTypeError(f"{name} is not defined for {DTYPE_NAMES[t.dtype]}", values=rows([t]))
    rank = len(window) if holds_entries(window) else t.ndim - 2
    if rank < 1 or rank > t.ndim:
        raise ShapeError(f"{name}: no axes for a window {window}", values=rows([t]),
                         help="x is [samples, channels, *sizes]; a tuple is a window over as many last axes")
    steps = _steps(rank, name, [t], window=window, stride=window if stride is None else stride, dilation=dilation)
    widths = _padding(padding, t.value.shape[t.ndim - rank :], **steps, name=name, among=[t])
    if fill is None:
        fill = -np.inf if t.dtype.kind == "f" else False if t.dtype.kind == "b" else np.iinfo(t.dtype).min
    whole = _padded(t.value, widths, fill)
    _check_fit(whole.shape[t.ndim - rank :], steps["window"], steps["dilation"], name, [t])
    return whole, widths, steps


@located
def max_pool(x: Any, window: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The greatest element of each window over the last axes: all but two for a number, else one for each entry.

    ``stride`` is the window by default, so that windows tile. What is padded never is the greatest. The gradient goes
    to the first of equals.
    """
    whole, _, steps = _pool("max_pool", x, window, stride, padding, dilation, None, "biuf")
    return Tensor(lookup("max_pool")(whole, **steps))


@located
def avg_pool(x: Any, window: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = True) -> Tensor:
    """The mean of each window over the last axes: all but two for a number, else one for each entry of ``window``.

    ``stride`` is the window by default. Zeros of the padding are counted unless ``count_include_pad`` is False.
    """
    whole, widths, steps = _pool("avg_pool", x, window, stride, padding, 1, 0, "f")
    total = lookup("sum_pool")(whole, **steps)
    if count_include_pad or all(w == 0 for pair in widths for w in pair):
        return Tensor(total / splat(int(np.prod(steps["window"])), total.type))
    sizes = as_tensor(x).value.shape
    ones = _padded(splat(1, total.type.with_shape(sizes[len(sizes) - len(widths) :])), widths, 0)
    count = lookup("sum_pool")(ones, **steps)
    lead = total.ndim - len(widths)
    return Tensor(total / lookup("broadcast")(count, axes=tuple(range(lead, total.ndim)), shape=total.shape))


# --- for one number of axes -------------------------------------------------------------------------------------------


def _of_rank(fn: Callable[..., Tensor], rank: int) -> Callable[..., Tensor]:
    name = f"{fn.__name__}{rank}d"

    def call(x: Any, *args: Any, **kwargs: Any) -> Tensor:
        t = as_tensor(x)
        if t.ndim != rank + 2:
            raise ShapeError(f"{name}: x has {t.ndim} axes, not {rank + 2}", values=rows([t]),
                             help="x is [samples, channels, *sizes]")
        return fn(t, *args, **kwargs)

    return located(called(call, name, f"``{fn.__name__}`` over {rank} ax{'i' if rank == 1 else 'e'}s."))


conv1d, conv2d, conv3d = (_of_rank(conv, k) for k in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_of_rank(conv_transpose, k) for k in (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = (_of_rank(max_pool, k) for k in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_of_rank(avg_pool, k) for k in (1, 2, 3))

__all__ = ["avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", "conv", "conv1d", "conv2d", "conv3d", "conv_transpose",
           "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "max_pool", "max_pool1d", "max_pool2d",
           "max_pool3d"]
