"""An index of NumPy's, parsed: integers, slices, ellipsis, new axes, integer arrays, masks, and mixtures.

``Parsed`` says what happens to every axis of x and where the axes of the result come from. Indices that can be seen to
be out of bounds are errors here; symbolic ones wrap once if negative, and are checked in a call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import IndexingError
from symc.ir.dim import Size, ceildiv, known_different, known_equal, known_nonnegative
from symc.ir.op import lookup
from symc.ir.ops.ensure import ensured
from symc.ir.ops.leaf import array, scalar
from symc.ir.record import dataclass, field
from symc.ir.size_extremes import maximum, minimum
from symc.ir.size_values import FAR
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.numpy_api.manipulation import ravel
from symc.numpy_api.promotion import broadcast_shape, rows, stretch
from symc.tensors.constants import known_array
from symc.tensors.convert import as_tensor, convert
from symc.tensors.sizes import formula_of, size_of, size_of_value
from symc.tensors.tensor import Tensor


@dataclass
class Parsed:
    """``start``, ``size``, ``step`` of every axis of x; ``dropped`` axes have an integer; ``arrays`` are (axis, index).

    ``layout``: where result axes come from, in order: an axis of x, None for a new axis, "arrays" for the axes that all
    index arrays have together.
    """

    start: list[Size]
    size: list[Size]
    step: list[int]
    dropped: list[int] = field(default_factory=list)
    arrays: list[tuple[int, Value]] = field(default_factory=list)
    layout: list[Any] = field(default_factory=list)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(a for a, _ in self.arrays)


def parse(t: Tensor, index: Any) -> Parsed:
    """An index of ``t``. Raises IndexingError for one that has no meaning or is out of bounds."""
    items = _expanded(t, index)
    n = t.ndim
    out = Parsed([0] * n, list(t.value.shape), [1] * n)
    places: list[int] = []  # positions in the layout of integers and arrays, which NumPy places together
    raw: list[tuple[int, Value]] = []
    axis = 0
    for item in items:
        if item is None or item is Ellipsis:
            out.layout.append(item)
        elif isinstance(item, slice):
            out.start[axis], out.size[axis], out.step[axis] = _slice(item, t.value.shape[axis], t)
            out.layout.append(axis)
            axis += 1
        elif isinstance(item, Tensor | _Mask):
            item = item.checked(t, axis) if isinstance(item, _Mask) else item
            raw.append((axis, wrapped_index(item, t, axis)))
            places.append(len(out.layout))
            axis += 1
        else:
            out.start[axis], out.size[axis] = _integer(item, t, axis), 1
            out.dropped.append(axis)
            places.append(len(out.layout))
            axis += 1
    if raw:
        shape = broadcast_shape([Tensor(v) for _, v in raw], "index arrays")
        out.arrays = [(a, stretch(v, shape)) for a, v in raw]
        # together where they stand side by side, else in front
        together = places[0] == places[-1]
        out.layout.insert(places[0] if together else 0, "arrays")
    out.layout = [entry for entry in out.layout if entry is not Ellipsis]
    return out


# --- the items of an index --------------------------------------------------------------------------------------------


def _expanded(t: Tensor, index: Any) -> list[Any]:
    """One item an axis or new axis: None, a slice, an integer (int or Dim), or an integer tensor.

    An ellipsis stays in front of the slices that it stands for: it separates index arrays even when there are none.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    items = [i for item in items for i in _read(item, t)]
    used = sum(1 for i in items if i is not None and i is not Ellipsis)
    if used > t.ndim:
        raise IndexingError(f"too many indices: {used} for {t.ndim} axes", values=rows([t]))
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexingError("an index can have only one ellipsis (...)", values=rows([t]))
    k = dots[0] if dots else len(items)
    return [*items[:k], *[Ellipsis] * len(dots), *[slice(None)] * (t.ndim - used), *items[k + 1:]]


def _read(item: Any, t: Tensor) -> list[Any]:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return [item]
    size = None if isinstance(item, np.ndarray | Tensor | list | tuple) else size_of(item)
    if size is not None:
        return [size]
    if isinstance(item, np.ndarray) and not item.ndim and item.dtype.kind in "iu":
        return [int(item)]
    if isinstance(item, str | float) or not isinstance(item, Tensor | np.ndarray | list | tuple):
        raise IndexingError(f"{item!r} is not an index", values=rows([t]),
                            help="indices are integers, slices, ..., None, arrays of integers and masks")
    if isinstance(item, list | tuple) and not len(item):
        item = np.zeros(0, np.int64)
    i = as_tensor(item)
    if i.dtype.kind == "b":
        return _mask(i, t)
    if i.dtype.kind not in "iu":
        raise IndexingError(
            f"an index array must hold integers, not {i.dtype}", values=rows([t, i]), help="i.astype('int64')"
        )
    return [Tensor(convert(i.value, DTYPES["i64"]))]


def _mask(i: Tensor, t: Tensor) -> list[Any]:
    if not i.ndim:
        raise IndexingError("True and False are no indices here", values=rows([t]))
    return [_Mask(i, k) for k in range(i.ndim)]


@dataclass(frozen=True)
class _Mask:
    """One axis of a mask."""

    mask: Tensor
    axis: int

    def checked(self, t: Tensor, axis: int) -> Tensor:
        """The places along this axis, an axis of ``t`` that must have the size of the mask's."""
        m, n = self.mask.value, t.value.shape[axis]
        if known_equal(n, m.shape[self.axis]) is False:
            raise IndexingError(f"a mask of size {m.shape[self.axis]} does not fit axis {axis} of size {n}",
                                values=rows([t, self.mask]))
        data = known_array(m)
        if data is not None:
            found = array(np.nonzero(data)[self.axis])
            if n == m.shape[self.axis]:
                return Tensor(found)
            every = ensured(lookup("iota")(shape=(n,), axis=0, dtype=DTYPES["i64"]), m.shape[self.axis:][:1])
            return Tensor(lookup("gather")(every, found, axes=(0,)))
        shape = t.value.shape[axis - self.axis:][:m.ndim]
        if known_different(shape, m.shape):
            raise IndexingError("a mask does not fit", values=rows([t, self.mask]))
        return coordinates(Tensor(ensured(m, shape)))[self.axis]


def coordinates(mask: Tensor) -> list[Tensor]:
    """The coordinates where a mask is true: one vector an axis."""
    place, found = places(ravel(mask)).value, []
    for n in mask.value.shape[:0:-1]:
        size = stretch(lookup("size")(value=n), place.shape)
        found.append(Tensor(lookup("mod")(place, size)))
        place = lookup("floordiv")(place, size)
    return [Tensor(place), *found[::-1]]


def places(mask: Tensor) -> Tensor:
    """The places where a vector of booleans is true."""
    data = known_array(mask.value)
    if data is not None:
        return Tensor(array(np.flatnonzero(data)))
    count = size_of_value(lookup("sum")(convert(mask.value, DTYPES["i64"]), axes=(0,)))
    return Tensor(lookup("places")(mask.value, size=count))


def _integer(item: Size, t: Tensor, axis: int) -> Size:
    """An integer index counted from the front."""
    n = t.value.shape[axis]
    if isinstance(item, int) and isinstance(n, int):
        if not -n <= item < n:
            raise IndexingError(f"index {item} is out of bounds for axis {axis} of size {n}", values=rows([t]))
        return item % n
    place = wrapped_size(item, n)
    if known_nonnegative(place - n) or (isinstance(item, int) and abs(item) > FAR):
        raise IndexingError(f"index {item} is out of bounds for axis {axis} of size {n}", values=rows([t]))
    return place  # whether it is in bounds is seen in a call (``symc.ir.requires``)


def wrapped_size(a: Size, n: Size) -> Size:
    """An index or bound counted from the front; differences such as n - 1 are taken as not negative."""
    if isinstance(a, int):
        return a if a >= 0 else a + n
    if any(c > 0 for monomial, c in a.terms if monomial):
        return a
    return a + n * minimum(1, maximum(-a, 0))  # -k counts from the end unless k is 0


def _bound(item: Any, t: Tensor) -> Size | None:
    if item is None:
        return None
    size = formula_of(item.value) if isinstance(item, Tensor) else size_of(item)
    if size is None:
        raise IndexingError(
            f"a bound of a slice must be an int or a size, not {item!r}",
            values=rows([t]),
            help="sc.dynamic_slice(x, starts, sizes) takes a window whose place is data; sc.where masks",
        )
    return size


def _slice(s: slice, n: Size, t: Tensor) -> tuple[Size, Size, int]:
    """start, size, step of a slice of an axis of size n, as Python clips it."""
    step = 1 if s.step is None else _bound(s.step, t)
    if any(isinstance(b, Tensor) and formula_of(b.value) is None for b in (s.start, s.stop)):
        return _measured_slice(s, step, n, t)
    first, last = _bound(s.start, t), _bound(s.stop, t)
    if not isinstance(step, int) or step == 0:
        raise IndexingError(f"the step of a slice must be a number other than 0, not {s.step!r}", values=rows([t]))
    first, last, step = _near(first), _near(last), _near(step)
    if all(x is None or isinstance(x, int) for x in (first, last)) and isinstance(n, int):
        numbers = range(*slice(first, last, step).indices(n))
        return (numbers.start if numbers else 0), len(numbers), step
    if step > 0:
        start = _low(first, n)
        stop = n if last is None else minimum(_end(last, n, 2), n) if _counts_up(last) else wrapped_size(last, n)
        size = ceildiv(maximum(stop - start, 0), step)
        if isinstance(size, int) or known_nonnegative(start):
            return start, size, step  # a call makes sure that so many elements are there (``build``)
        start = maximum(_end(start, n), 0)
        return start, ceildiv(maximum(stop - start, 0), step), step
    start = n - 1 if first is None else minimum(
        _end(first, n) if _counts_up(first) else wrapped_size(first, n), n - 1)
    stop = -1 if last is None else _end(last, n) if _counts_up(last) else maximum(wrapped_size(last, n), -1)
    size = ceildiv(maximum(start - stop, 0), -step)
    if isinstance(size, int) or known_nonnegative(stop + 1):
        return start, size, step
    return start, ceildiv(maximum(start - maximum(stop, -1), 0), -step), step


def _measured_slice(s: slice, step: Any, n: Size, t: Tensor) -> tuple[Size, Size, int]:
    """start, size, step of a slice whose bounds are data: sizes that a call computes."""
    if not isinstance(step, int) or not step:
        raise IndexingError(f"the step of a slice must be a number other than 0, not {s.step!r}", values=rows([t]))
    total = scalar(n, DTYPES["i64"]) if isinstance(n, int) else lookup("size")(value=n)
    least = scalar(0 if step > 0 else -1, DTYPES["i64"])
    most = total + least
    ends = []
    for bound, default in zip((s.start, s.stop), (least, most) if step > 0 else (most, least), strict=True):
        if bound is None:
            ends.append(default)
            continue
        b = as_tensor(bound)
        if b.ndim or b.dtype.kind not in "iu":
            raise IndexingError("a bound of a slice must be an integer scalar", values=rows([t, b]),
                                help="i.astype('int64')")
        v = convert(b.value, DTYPES["i64"])
        v = lookup("where")(lookup("lt")(v, 0), v + total, v)
        ends.append(lookup("maximum")(lookup("minimum")(v, most), least))
    first, last = ends
    length = last - first if step > 0 else first - last
    count = lookup("maximum")(lookup("floordiv")(length + (abs(step) - 1), abs(step)), 0)
    start, size = map(size_of_value, (lookup("maximum")(first, 0), count))
    assert start is not None and size is not None
    return start, size, step


def _end(a: Size, n: Size, spare: int = 1) -> Size:
    """A bound that counts from the front where it is not negative, such as ``n // 2 - 3``; else from the end.

    Nothing is left of an axis below ``n - 1``, nor up to ``n - 2``, if that is negative, however it is counted.
    """
    if known_nonnegative(a) or known_nonnegative(a - n + spare):
        return a
    return a + n * minimum(1, maximum(-a, 0))


def _near(bound: Any) -> Any:
    """A bound or step that is further away than any element, such as ``sys.maxsize``, at a place that still is."""
    return max(-FAR, min(bound, FAR)) if isinstance(bound, int) else bound


def _low(first: Size | None, n: Size) -> Size:
    if first is None:
        return 0
    return first if _counts_up(first) else maximum(wrapped_size(first, n), 0)


def _counts_up(a: Size) -> bool:
    """True if a bound may count from the front: all but ``-n // 2`` and its like, which are not above 0."""
    return a >= 0 if isinstance(a, int) else not known_nonnegative(-a)


def wrapped_index(i: Tensor, t: Tensor, axis: int) -> Value:
    """An index array with negative indices counted from the end."""
    n = t.value.shape[axis]
    v = i.value
    data = v.data
    if data is not None:
        if isinstance(n, int):
            wrong = data[(data < -n) | (data >= n)]
            if wrong.size:
                where = f"axis {axis} of size {n}"
                raise IndexingError(f"index {int(wrong.flat[0])} is out of bounds for {where}", values=rows([t]))
            return array(np.where(data < 0, data + n, data))
        if not data.size or data.min() >= 0:
            return v
    end = stretch(lookup("size")(value=n), v.shape)
    return lookup("where")(lookup("lt")(v, 0), v + end, v)
