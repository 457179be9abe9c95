"""Joining, splitting, repeating and reordering along axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import Dim, Size, known_equal
from symc.ir.op import lookup
from symc.ir.ops.ensure import at_least, axis_ensured, ensured
from symc.ir.ops.shape import in_shape, rolled, slice_along
from symc.ir.size_extremes import minimum
from symc.ir.types import DTYPES, as_dtype
from symc.ir.value import Value
from symc.numpy_api.manipulation import along, expanded, normal_axes, normal_axis, with_axes
from symc.numpy_api.promotion import check_times, rows, same_dtype
from symc.tensors.constants import known_array
from symc.tensors.convert import as_operand, as_tensor, convert
from symc.tensors.public import API, called, public
from symc.tensors.sizes import as_size, entries, holds_entries, integer, size_of, user_size
from symc.tensors.tensor import Tensor


def sequence(items: Any, make: Callable[[Any], Tensor] = as_tensor) -> list[Tensor]:
    """The parts to join: of a list or tuple its items, of one tensor its rows."""
    return [make(i) for i in (list(items) if isinstance(items, list | tuple) else list(as_tensor(items)))]


def _as_rows(items: Any, more: Mapping[int, tuple[int, ...]] = MappingProxyType({})) -> Tensor | None:
    """The tensor whose rows are the parts to join, if that was given in place of a list: of any number but none.
    ``more``: the axes that are put in, by the number of axes there are."""
    if isinstance(items, list | tuple) or not (t := as_tensor(items)).ndim:
        return None
    return Tensor(expanded(at_least(t.value, 0, 1), more.get(t.ndim, ())))


def _agree(tensors: list[Tensor], axis: int, name: str) -> list[Value]:
    """The values with all axes but one made equal; ShapeError for axes known to differ."""
    first = tensors[0].value
    out = []
    for t in tensors:
        if t.ndim != first.ndim:
            raise ShapeError(f"{name}: the numbers of axes differ: {first.ndim} and {t.ndim}", values=rows(tensors))
        want = []
        for i, (n, m) in enumerate(zip(t.value.shape, first.shape, strict=True)):
            if i != axis and known_equal(n, m) is False:
                raise ShapeError(f"{name}: axis {i} differs: {m} and {n}", values=rows(tensors),
                                 help=f"all axes but the joined one ({axis}) must be equal")
            want.append(n if i == axis else m)
        out.append(ensured(t.value, want))
    return out


def within(t: Tensor, dtype: Any, casting: str, name: str) -> Tensor:
    """A part in the dtype asked for, if one is and ``casting`` allows that."""
    if dtype is None:
        return t
    if not np.can_cast(t.dtype, as_dtype(dtype), casting):  # type: ignore[arg-type]
        raise DTypeError(f"{name}: casting={casting!r} does not allow {t.dtype} to become {as_dtype(dtype)}",
                         values=rows([t]), help="x.astype(dtype), or casting='unsafe'")
    return Tensor(convert(t.value, as_dtype(dtype)))


def _parts(arrays: Any, dtype: Any, casting: str, name: str) -> list[Tensor]:
    """The parts to join, of one dtype."""
    tensors = sequence(arrays, as_operand)
    if not tensors:
        raise ShapeError(f"{name}: there is nothing to join")
    return same_dtype(tensors, name) if dtype is None else [within(t, dtype, casting, name) for t in tensors]


# --- joining ----------------------------------------------------------------------------------------------------------


@public(np.concatenate, aliases=("concat",))
def concatenate(arrays: Any, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """The arrays one after another along ``axis`` (raveled for None). One array stands for its rows."""
    if (whole := _as_rows(arrays)) is not None and (whole.ndim > 1 or axis is None):
        return _rows_joined(within(whole, dtype, casting, "concatenate"), axis)
    tensors = _parts(arrays, dtype, casting, "concatenate")
    if axis is not None and not all(t.ndim for t in tensors):
        raise ShapeError(
            "concatenate: values without axes cannot be joined", values=rows(tensors), help="use sc.stack or sc.hstack"
        )
    if axis is None:
        tensors, axis = [API["ravel"](t) for t in tensors], 0
    axis = normal_axis(axis, tensors[0].ndim, "concatenate", tensors[0])
    values = _agree(tensors, axis, "concatenate")
    return Tensor(values[0] if len(values) == 1 else lookup("concat")(*values, axis=axis))


def _rows_joined(t: Tensor, axis: int | None) -> Tensor:
    """The rows of a tensor one after another, which needs no list of them."""
    if axis is None:
        return API["ravel"](t)
    axis = normal_axis(axis, t.ndim - 1, "concatenate", t)
    v = API["moveaxis"](t, 0, axis).value
    return Tensor(in_shape(v, (*v.shape[:axis], v.shape[axis] * v.shape[axis + 1], *v.shape[axis + 2 :])))


@public(np.stack)
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """The arrays, all of one shape, along a new axis. One array stands for its rows."""
    if (whole := _as_rows(arrays)) is not None:
        axis = normal_axis(axis, whole.ndim, "stack")
        return API["moveaxis"](within(whole, dtype, casting, "stack"), 0, axis)
    tensors = _parts(arrays, dtype, casting, "stack")
    axis = normal_axis(axis, tensors[0].ndim + 1, "stack")
    values = _agree(tensors, -1, "stack")
    raised = [expanded(v, (axis,)) for v in values]
    return Tensor(raised[0] if len(raised) == 1 else lookup("concat")(*raised, axis=axis))


@public(np.vstack, aliases=("row_stack",))
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Rows one below another."""
    whole = _as_rows(tup, {1: (1, 2), 2: (1,)})
    parts = [API["atleast_2d"](t) for t in sequence(tup)] if whole is None else whole
    return concatenate(parts, 0, dtype=dtype, casting=casting)


@public(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Columns side by side; one-dimensional values one after another."""
    if (whole := _as_rows(tup, {1: (1,)})) is not None:
        return concatenate(whole, int(whole.ndim > 2), dtype=dtype, casting=casting)
    tensors = [API["atleast_1d"](t) for t in sequence(tup)]
    return concatenate(tensors, 0 if tensors and tensors[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@public(np.dstack)
def dstack(tup: Any) -> Tensor:
    """Values along the third axis."""
    whole = _as_rows(tup, {1: (1, 2, 3), 2: (1, 3), 3: (3,)})
    return concatenate([API["atleast_3d"](t) for t in sequence(tup)] if whole is None else whole, 2)


@public(np.column_stack)
def column_stack(tup: Any) -> Tensor:
    """One-dimensional values as columns, others side by side."""
    if (whole := _as_rows(tup, {1: (1, 2), 2: (2,)})) is not None:
        return concatenate(whole, 1)
    tensors = sequence(tup)
    return concatenate(
        [
            Tensor(in_shape(t.value, (*t.value.shape, 1)[-2:] if t.ndim else (1, 1))) if t.ndim < 2 else t
            for t in tensors
        ],
        1,
    )


@public(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """``values`` after ``arr`` (both raveled for axis None)."""
    return concatenate([arr, values], axis)


# --- splitting --------------------------------------------------------------------------------------------------------


def _cuts(n: Size, indices_or_sections: Any, name: str, exact: bool) -> list[tuple[Size, Size] | slice]:
    """(start, size) of every piece of an axis of size n, or what it is a slice of where that depends on sizes."""
    if holds_entries(indices_or_sections):
        points = [as_size(i, f"{name}: an index") for i in entries(indices_or_sections)]
        if isinstance(n, int) and all(isinstance(p, int) for p in points):
            return [_interval(n, a, b) for a, b in zip([0, *points], [*points, None], strict=True)]
        return [_piece(n, a, b) for a, b in zip([0, *points], [*points, None], strict=True)]
    k = size_of(indices_or_sections)
    if not isinstance(k, int) or k <= 0:
        raise ShapeError(f"{name}: the number of pieces must be a positive int, not {indices_or_sections!r}")
    check_times(k, f"{name}: the number of pieces")
    whole, extra = n // k, n % k
    if isinstance(extra, int) and extra and exact:
        raise ShapeError(
            f"{name}: an axis of size {n} does not divide into {k} equal pieces",
            help="sc.array_split takes pieces that differ",
        )
    ends = [i * whole + (0 if exact else minimum(i, extra)) for i in range(k + 1)]
    return [(a, b - a) for a, b in itertools.pairwise(ends)]


def _piece(n: Size, a: Size, b: Size | None) -> tuple[Size, Size] | slice:
    """The piece from one cut to the next. Numbers are taken to lie within: a call raises otherwise."""
    if not isinstance(a, int) or isinstance(b, Dim):
        return slice(user_size(a), b if b is None else user_size(b))
    first, last = (n if p is None else p + n if p < 0 else p for p in (a, b))
    return first, last - first


def _interval(n: int, a: Any, b: Any) -> tuple[int, int]:
    first, last, _ = slice(a, b).indices(n)
    return first, max(last - first, 0)


def _split(name: str, function: Callable, exact: bool) -> Callable[..., list[Tensor]]:
    def call(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
        t = as_tensor(ary)
        axis = normal_axis(axis, t.ndim, name, t)
        head, n, k = (slice(None),) * axis, t.value.shape[axis], size_of(indices_or_sections)
        if exact and isinstance(k, int) and k > 0 and isinstance(n % k, Dim):  # a call raises where k does not divide n
            t = Tensor(lookup("ensure_shape")(t.value, shape=(*t.value.shape[:axis], n // k * k,
                                                              *t.value.shape[axis + 1:])))
        return [
            API["getitem"](t, (*head, cut)) if isinstance(cut, slice) else Tensor(slice_along(t.value, axis, *cut))
            for cut in _cuts(t.value.shape[axis], indices_or_sections, name, exact)
        ]
    return public(function, memory="view")(called(
        call, name, "A list of pieces along ``axis``: so many, or cut at the indices given."))


split = _split("split", np.split, True)
array_split = _split("array_split", np.array_split, False)


@public(np.vsplit, memory="view")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Pieces along the first axis of at least two."""
    return split(with_axes(ary, 2, "vsplit"), indices_or_sections, 0)


@public(np.hsplit, memory="view")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Pieces along the second axis, or the only one."""
    return split(ary, indices_or_sections, 0 if as_tensor(ary).ndim == 1 else 1)


@public(np.dsplit, memory="view")
def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Pieces along the third axis."""
    return split(with_axes(ary, 3, "dsplit"), indices_or_sections, 2)


@public(np.unstack if hasattr(np, "unstack") else np.vsplit, name="unstack", memory="view")
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The values along an axis whose size is known."""
    return tuple(API["moveaxis"](x, axis, 0))


# --- reordering -------------------------------------------------------------------------------------------------------


@public(np.flip, memory="view")
def flip(m: Any, axis: Any = None) -> Tensor:
    """The order of elements reversed along ``axis`` (None: all)."""
    from symc.ir.ops.shape import flip as flip_value

    t = as_tensor(m)
    axes = normal_axes(axis, t.ndim, "flip", t)
    return Tensor(flip_value(t.value, axes)) if axes else t


@public(np.flipud, memory="view")
def flipud(m: Any) -> Tensor:
    """Reversed along the first axis."""
    return flip(m, 0)


@public(np.fliplr, memory="view")
def fliplr(m: Any) -> Tensor:
    """Reversed along the second axis."""
    return flip(m, 1)


@public(np.rot90, memory="view")
def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotated by k quarter turns in the plane of two axes."""
    t = as_tensor(m)
    if len(entries(axes)) != 2:
        raise InputError(f"rot90: a plane has two axes, not {axes}", values=rows([t]))
    a, b = normal_axes(axes, t.ndim, "rot90", t)
    k = integer(k, "rot90: k") % 4
    if k == 0:
        return t
    if k == 2:
        return flip(t, (a, b))
    return API["swapaxes"](flip(t, b), a, b) if k == 1 else flip(API["swapaxes"](t, a, b), b)


@public(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Elements moved along ``axis`` by ``shift``; those that leave one end enter at the other.

    Several shifts and several axes broadcast to pairs; what is moved twice along an axis is moved by the sum.
    """
    t = as_tensor(a)
    if axis is None:
        return API["reshape"](roll(API["ravel"](t), shift, 0), t.shape)
    axes, shifts = _several(axis, t, "axis"), _several(shift, t, "shift")
    if len(axes) != len(shifts):
        if 1 not in (len(axes), len(shifts)):
            raise ShapeError(f"roll: {len(shifts)} shifts along {len(axes)} axes", values=rows([t]))
        axes, shifts = (x * len(y) if len(x) == 1 else x for x, y in ((axes, shifts), (shifts, axes)))
    v = t.value
    for k, ax in zip(shifts, axes, strict=True):
        v = _rolled(v, normal_axis(ax, t.ndim, "roll", t), k)
    return Tensor(v)


def _several(given: Any, t: Tensor, name: str) -> list[Any]:
    """The entries of a sequence or vector, or one number."""
    if getattr(given, "ndim", 0) > 1:
        raise ShapeError(f"roll: {name} is a number or a sequence of numbers", values=rows([t]))
    return list(entries(given))


def _rolled(v: Value, axis: int, shift: Any) -> Value:
    n = v.shape[axis]
    k = size_of(shift)
    if k is None:  # the distance is data
        distance = as_tensor(shift)
        if distance.ndim or distance.dtype.kind not in "biu":
            raise DTypeError(f"roll: a shift is an integer, not {shift!r}", values=rows([Tensor(v), distance]))
        place = API["remainder"](
            API["subtract"](API["arange"](n), API["astype"](distance, "int64")), Tensor(lookup("size")(value=n))
        )
        return API["take"](Tensor(v), Tensor(convert(place.value, DTYPES["i64"])), axis=axis).value
    return rolled(v, axis, as_size(k, "roll: a shift"))


# --- repeating --------------------------------------------------------------------------------------------------------


def _count_of(item: Any) -> Size | None:
    """The number of repetitions, if it is a size. Raises ShapeError for a negative one."""
    k = size_of(item)
    if isinstance(k, int) and k < 0:
        raise ShapeError(f"repeat: nothing repeats {k} times")
    return k


def _repeated(t: Tensor, counts: Tensor, axis: int) -> Tensor:
    """Each slice along an axis as often as ``counts`` says: an integer vector, one number a slice (or one for all)."""
    if counts.dtype.kind not in "biu" or counts.ndim != 1:
        error = ShapeError if counts.dtype.kind in "biu" else DTypeError
        raise error("repeat: how often must be an integer, or a vector of integers", values=rows([t, counts]))
    counts = API["broadcast_to"](API["astype"](counts, "int64"), (t.shape[axis],))
    counts = Tensor(lookup("check_index")(counts.value, size=2**62))
    starts = API["subtract"](API["cumsum"](counts), counts)
    total = as_size(API["sum"](counts), "repeat: the length")
    marks = API["zeros"](user_size(total + 1), "int64").at[starts].add(1)
    source = API["getitem"](API["cumsum"](marks), slice(None, user_size(total))) - 1
    return API["take"](t, source, axis)


@public(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Every element ``repeats`` times (a size, or numbers, one an element) along ``axis`` (None: raveled)."""
    t, axis = along(a, axis, "repeat")
    if isinstance(repeats, Tensor) and repeats.ndim and (known := known_array(repeats.value)) is not None:
        repeats = known
    one = not isinstance(repeats, Tensor) and holds_entries(repeats) and np.shape(repeats) == (1,)
    k = _count_of(repeats[0] if one else repeats)
    data = as_tensor(repeats) if k is None and isinstance(repeats, Tensor) else None
    if data is not None and not data.ndim:
        k = as_size(API["astype"](data, "int64") if data.dtype.kind == "b" else data, "repeat: the number")
    elif data is not None:
        return _repeated(t, data, axis)
    if k is None:
        counts = np.asarray(repeats)
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise DTypeError("repeat: how often must be a size or constant integers, not negative", values=rows([t]))
        if counts.ndim > 1 or known_equal(t.value.shape[axis], counts.size) is False:
            raise ShapeError(f"repeat: {counts.size} numbers for axis {axis} of size {t.shape[axis]}", values=rows([t]))
        t = Tensor(axis_ensured(t.value, axis, counts.size))
        return API["take"](t, np.repeat(np.arange(len(counts)), counts), axis=axis)
    v, n = t.value, t.value.shape[axis]
    wide = lookup("broadcast")(v, axes=tuple(i if i <= axis else i + 1 for i in range(v.ndim)),
                               shape=(*v.shape[: axis + 1], k, *v.shape[axis + 1:]))
    return Tensor(in_shape(wide, (*v.shape[:axis], n * k, *v.shape[axis + 1:])))


@public(np.tile)
def tile(A: Any, reps: Any) -> Tensor:
    """The whole value ``reps`` times along each axis."""
    t = as_tensor(A)
    counts: list[Size] = [as_size(r, "tile: a count") for r in entries(reps)]
    negative = [k for k in counts if isinstance(k, int) and k < 0]
    if negative:
        raise ShapeError(f"tile: nothing repeats {negative[0]} times", values=rows([t]))
    counts = [*[1] * (t.ndim - len(counts)), *counts]
    v = in_shape(t.value, (1,) * (len(counts) - t.ndim) + t.value.shape)
    inner = [s for s, k in zip(v.shape, counts, strict=True) for s in (k, s)]
    wide = lookup("broadcast")(v, axes=tuple(range(1, 2 * v.ndim, 2)), shape=tuple(inner)) if v.ndim else v
    return Tensor(in_shape(wide, [s * k for s, k in zip(v.shape, counts, strict=True)]))
