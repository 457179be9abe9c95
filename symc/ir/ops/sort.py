"""Sorting along one axis. Sorts are stable, and nan comes last, as in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size
from symc.ir.dtypes import ARITHMETIC, is_narrow
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, Sorting, register
from symc.ir.ops.cumulative import check_axis
from symc.ir.ops.elementwise import check_kind, like
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.leaf import iota, size
from symc.ir.ops.shape import broadcast, flip, in_order, slice_
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value

ORDERED = "biuf"


def _infer(name: str, dtype: np.dtype | None = None):
    def infer(t: TensorType, axis: int) -> TensorType:
        check_kind(name, t, ORDERED)
        check_axis(name, t, axis)
        return t if dtype is None else t.with_dtype(dtype)

    return infer


def _samples() -> Iterator[tuple[tuple, dict]]:
    for dtype in ARITHMETIC:
        if dtype.kind in ORDERED:
            x = (np.arange(12).reshape(3, 4) * 7 % 5).astype(dtype)
            yield (x,), dict(axis=0)
            yield (x,), dict(axis=1)
    yield (np.array([2, np.nan, -np.inf, 0.0, -0.0, np.nan, np.inf, 1]),), dict(axis=0)
    yield (np.ones((2, 0)),), dict(axis=1)
    yield (np.ones((3, 1)),), dict(axis=1)


def _places(order: Value, axis: int) -> list[Value]:
    """Index arrays for every axis: ``order`` along ``axis``, each element's own place along the others."""
    return [order if a == axis else iota(shape=order.shape, axis=a, dtype=order.dtype) for a in range(order.ndim)]


def _sort_jvp(tangents, v):
    x, axis = v.operands[0], v.attrs["axis"]
    return sorted_places(tangents[0], argsort(x, axis=axis), axis)


def _sort_vjp(g, v):
    x, axis = v.operands[0], v.attrs["axis"]
    return (scatter(like(x, 0), g, *_places(argsort(x, axis=axis), axis), axes=tuple(range(x.ndim)), mode="add"),)


sort = register(Op(
    "sort", _infer("sort"), lambda x, axis: np.sort(x, axis, kind="stable"), Custom(_sort_jvp, _sort_vjp),
    Sorting(places=False), samples=_samples, doc="The elements along `axis` from least to greatest.",
    facts=Facts(kinds=ORDERED, rounding="none", picks=1),
))  # fmt: skip
argsort = register(Op(
    "argsort", _infer("argsort", DTYPES["i64"]), lambda x, axis: np.argsort(x, axis, kind="stable").astype(np.int64),
    None, Sorting(places=True), frozenset({"positions"}), samples=_samples, facts=Facts(kinds=ORDERED),
    doc="The places, as i64, that the sorted elements along `axis` come from; equals keep their order.",
))  # fmt: skip



#: So many are kept in order while a line is read; of more, the line is sorted.
FEW = 32


def _top_infer(t: TensorType, axis: int, k: Size, least: bool) -> TensorType:
    check_kind("top_places", t, ORDERED)
    check_axis("top_places", t, axis)
    if t.dtype == np.float16:
        raise DTypeError("top_places is not defined for f16", help="sort, and take what is wanted")
    n = t.shape[axis]
    if isinstance(k, int) and (k < 1 or isinstance(n, int) and n < k):
        raise ShapeError(f"top_places: there are no {k} greatest of {n} elements")
    return TensorType("i64", (*t.shape[:axis], k, *t.shape[axis + 1 :]))


def _top_reference(x: np.ndarray, axis: int, k: int, least: bool) -> np.ndarray:
    if x.shape[axis] < k:
        raise ShapeError(f"top_places: there are no {k} greatest of {x.shape[axis]} elements")
    if least:
        order = np.argsort(x, axis, kind="stable")
    else:  # equals keep their order: turned, sorted, turned back
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return np.ascontiguousarray(np.take(order, range(k), axis), np.int64)


def _by_sorting(v: Value) -> Value:
    (x,), axis = v.operands, v.attrs["axis"]
    if v.attrs["least"]:
        order = argsort(x, axis=axis)
    else:
        order = from_the_end(flip(argsort(flip(x, (axis,)), axis=axis), (axis,)), x.shape[axis])
    return slice_(order, start=(0,) * x.ndim, size=v.shape, step=(1,) * x.ndim)


def from_the_end(places: Value, n: Size) -> Value:
    """The places of a line of n elements, for places counted from its end."""
    return broadcast(size(value=n - 1), axes=(), shape=places.shape) - places


def _top_samples() -> Iterator[tuple[tuple, dict]]:
    for (x,), attrs in _samples():
        if x.shape[attrs["axis"]] and x.dtype != np.float16:
            for least in (False, True):
                yield (x,), {**attrs, "k": max(1, x.shape[attrs["axis"]] - 1), "least": least}
    yield (np.ones((0, 3)),), dict(axis=1, k=2, least=False)


top_places = register(Op(
    "top_places", _top_infer, _top_reference, None, Extern("top_places"), frozenset({"positions"}), _top_samples,
    "The places, as i64, of the `k` greatest elements along `axis`, greatest first, or of the `least`, least first; "
    "nan is the greatest, and equals keep their order.",
    Facts(kinds=ORDERED, lower_batched=_by_sorting), defaults={"least": False},
))  # fmt: skip


def _selected_infer(t: TensorType, places: TensorType, axis: int) -> TensorType:
    check_kind("order_statistics", t, ORDERED)
    check_axis("order_statistics", t, axis)
    if is_narrow(t.dtype):
        raise DTypeError(f"order_statistics is not defined for {t.dtype}", help="sort, and take what is wanted")
    if places.ndim != 1 or places.dtype != DTYPES["i64"]:
        raise DTypeError(f"order_statistics: places are a vector of i64, not {places}")
    return t.with_shape((*t.shape[:axis], *places.shape, *t.shape[axis + 1 :]))


def _selected_reference(x: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    return np.ascontiguousarray(np.take(np.sort(x, axis, kind="stable"), places, axis))


def _selected_samples() -> Iterator[tuple[tuple, dict]]:
    for (x,), attrs in _samples():
        if x.shape[attrs["axis"]] and not is_narrow(x.dtype):
            yield (x, np.array([x.shape[attrs["axis"]] - 1, 0, 0])), attrs


def _selected_jvp(tangents, v):
    (x, places), axis = v.operands, v.attrs["axis"]
    order = gather(argsort(x, axis=axis), places, axes=(axis,))  # its first axis goes where it belongs
    return sorted_places(tangents[0], in_order(order, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim))), axis)


def _selected_by_sorting(v: Value) -> Value:
    (x, places), axis = v.operands, v.attrs["axis"]
    return sorted_places(sort(x, axis=axis), broadcast(places, axes=(axis,), shape=v.shape), axis)


def _selected_batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    (x, places), axis = operands, v.attrs["axis"] + 1
    if not flags[1]:
        return order_statistics(x, places, axis=axis)
    if not flags[0]:
        x = broadcast(x, axes=tuple(range(1, x.ndim + 1)), shape=(n, *x.shape))
    order = broadcast(places, axes=(0, axis), shape=(*x.shape[:axis], places.shape[1], *x.shape[axis + 1 :]))
    return sorted_places(sort(x, axis=axis), order, axis)


order_statistics = register(Op(
    "order_statistics", _selected_infer, _selected_reference, Custom(_selected_jvp), Extern("order_statistics"),
    samples=_selected_samples, facts=Facts(
        kinds=ORDERED, rounding="none", picks=1, batch=_selected_batch, lower_batched=_selected_by_sorting),
    doc="The elements that lines along `axis` have at `places`, if they are sorted.",
))  # fmt: skip


def sorted_places(x: Value, order: Value, axis: int) -> Value:
    """The elements of lines at the places ``order`` has for them."""
    return gather(x, *_places(order, axis), axes=tuple(range(x.ndim)))
