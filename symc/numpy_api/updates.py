"""``x.at[i].set(v)`` and its relatives: x with some elements changed. Values never change; the result is another value.

Slices and integers become pads and selects, which fuse; index arrays become one scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, known_equal, product
from symc.ir.op import lookup, splat
from symc.ir.ops.ensure import at_least
from symc.ir.ops.index import combining
from symc.ir.ops.leaf import scalar
from symc.ir.ops.reduce import identity
from symc.ir.ops.shape import flip, in_order, in_shape, inverse_permutation
from symc.ir.size_extremes import maximum
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.numpy_api.indexing import getitem, read, result_axes, truths, with_new_axes
from symc.numpy_api.parsed_index import Parsed, parse
from symc.numpy_api.promotion import check_range, rows, stretch
from symc.numpy_api.ufuncs import choose
from symc.tensors.callsite import active
from symc.tensors.convert import as_operand, convert
from symc.tensors.labels import dims_of, with_dims
from symc.tensors.public import API, PROTOCOLS, located
from symc.tensors.tensor import Tensor


class At:
    """``x.at``; index it."""

    __slots__ = ("x",)

    def __init__(self, x: Tensor):
        self.x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self.x, index)


class Place:
    """``x.at[index]``: each method gives x changed at the index. ``v`` broadcasts to the shape of ``x[index]``.

    Where index arrays name a place twice, ``set`` keeps the last value and the others take all of them into account.
    """

    __slots__ = ("index", "x")

    def __init__(self, x: Tensor, index: Any):
        self.x, self.index = x, index

    def get(self) -> Tensor:
        """``x[index]``."""
        return getitem(self.x, self.index)

    def set(self, v: Any) -> Tensor:
        """x with v at the index."""
        return _update(self.x, self.index, v, "set")

    def add(self, v: Any) -> Tensor:
        """x with v added at the index."""
        return _update(self.x, self.index, v, "add")

    def subtract(self, v: Any) -> Tensor:
        """x with v subtracted at the index."""
        return _update(self.x, self.index, _negated(v), "add")

    def multiply(self, v: Any) -> Tensor:
        """x multiplied by v at the index."""
        return _update(self.x, self.index, v, "mul")

    mul = multiply

    def divide(self, v: Any) -> Tensor:
        """x divided by v at the index."""
        return _update(self.x, self.index, _inverse(self.x, v), "mul")

    def max(self, v: Any) -> Tensor:
        """The greater of x and v at the index."""
        return _update(self.x, self.index, v, "max")

    def min(self, v: Any) -> Tensor:
        """The lesser of x and v at the index."""
        return _update(self.x, self.index, v, "min")

    def power(self, v: Any) -> Tensor:
        """x to the power v at the index; index arrays must not name a place twice."""
        return _update(self.x, self.index, _powered(self.x, self.index, v), "set")


@located
def _negated(v: Any) -> Tensor:
    return API["negative"](v)


@located
def _inverse(x: Tensor, v: Any) -> Tensor:
    if x.dtype.kind not in "fc":
        raise DTypeError("at[].divide is not defined for integers", values=rows([x]), help="x.astype('float64')")
    return API["divide"](1, v)


@located
def _powered(x: Tensor, index: Any, v: Any) -> Tensor:
    return API["astype"](API["power"](getitem(x, index), v), x.dtype)


@located
def _update(x: Tensor, index: Any, v: Any, mode: str) -> Tensor:
    t, index = truths(x, index)
    p = parse(t, index)
    u = as_operand(v)
    check_range(u, x.dtype, f"at[].{mode}", (x, u))
    if u.dtype.kind == "c" and x.dtype.kind != "c":
        raise DTypeError(
            "complex numbers cannot be put into a real value", values=rows([x, u]), help="x.astype('complex128')"
        )
    shape = tuple(_result_shape(p))
    placed = _spread(Tensor(convert(u.value, x.dtype)), shape, x)
    new = (_scatter if p.arrays else insert)(within(t.value, p), p, placed, mode)
    return with_dims(Tensor(in_shape(new, x.value.shape)), dims_of(x))


def within(x: Value, p: Parsed) -> Value:
    """``x``, of which a call makes sure that it has the places that integers name."""
    for a, (n, start) in enumerate(zip(x.shape, p.start, strict=True)):
        if p.size[a] == 1 and a not in p.axes:
            x = at_least(at_least(x, a, start + 1), a, n - start)
    return x


def _result_shape(p: Parsed) -> list[Size]:
    """The shape of ``x[index]``."""
    kept, order = result_axes(p)
    own = [*(p.arrays[0][1].shape if p.arrays else ()), *[p.size[a] for a in kept]]
    return with_new_axes(p, [own[i] for i in order])


def _spread(u: Tensor, shape: tuple[Size, ...], x: Tensor) -> Value:
    have = u.value.shape
    while len(have) > len(shape) and have[0] == 1:  # NumPy drops leading axes of size 1 when it assigns
        have = have[1:]
    value = in_shape(u.value, have)
    want = shape[len(shape) - len(have):] if len(have) <= len(shape) else None
    if want is None or any(h != 1 and known_equal(h, w) is False for h, w in zip(have, want, strict=True)):
        raise ShapeError(
            f"the update does not broadcast to the shape ({', '.join(map(str, shape))}) of the place",
            values=rows([x, u]),
        )
    return stretch(value, shape)


def _without_placement(p: Parsed, u: Value) -> Value:
    """Back from the layout of the result to (array axes, axes of x that stay)."""
    _, order = result_axes(p)
    rest = [s for s, new in zip(u.shape, _is_new(p), strict=True) if not new]
    return in_order(in_shape(u, rest), inverse_permutation(tuple(order)))


def _is_new(p: Parsed) -> list[bool]:
    depth = p.arrays[0][1].ndim if p.arrays else 0
    out: list[bool] = []
    for entry in p.layout:
        out += [False] * depth if entry == "arrays" else [entry is None]
    return out


def insert(x: Value, p: Parsed, u: Value, mode: str = "set") -> Value:
    """Change a box of elements, evenly spaced along each axis."""
    u = in_shape(_without_placement(p, u), p.size)
    down = tuple(a for a, s in enumerate(p.step) if s < 0)
    u = flip(u, down) if down else u
    first = tuple(a + (n - 1) * s if s < 0 else a for a, n, s in zip(p.start, p.size, p.step, strict=True))
    if mode == "set" and all(abs(s) == 1 for s in p.step):
        starts = [lookup("size")(value=a) if not isinstance(a, int) else scalar(a, "i64") for a in first]
        return lookup("dynamic_update_slice")(x, u, *starts)
    gap = tuple(abs(s) - 1 for s in p.step)

    def widened(v: Value, fill: Any) -> Value:
        extent = [k if q == 0 else maximum((k - 1) * (q + 1) + 1, 0) for k, q in zip(p.size, gap, strict=True)]
        high = tuple(n - a - e for n, a, e in zip(x.shape, first, extent, strict=True))
        return lookup("pad")(v, scalar(fill, v.dtype), low=first, high=high, interior=gap)

    if mode == "set":
        chosen = widened(splat(True, u.type.with_dtype(DTYPES["bool"])), False)
        return choose(chosen, widened(u, 0), x)
    combine = combining(mode)
    assert combine is not None
    return combine(x, widened(u, identity(combine.name, x.dtype)))


def _scatter(x: Value, p: Parsed, u: Value, mode: str) -> Value:
    """Change the elements that index arrays name."""
    full = all(a in p.axes or (p.start[a] == 0 and p.step[a] == 1 and p.size[a] == x.shape[a]) for a in range(x.ndim))
    if full:
        # an axis of size 1 that an integer drops is whole, too
        shape = (*p.arrays[0][1].shape, *[n for a, n in enumerate(p.size) if a not in p.axes])
        u = in_shape(_without_placement(p, u), shape)
        return lookup("scatter")(x, u, *[i for _, i in p.arrays], axes=p.axes, mode=mode)
    # slices besides the arrays: find every element's place in row-major order, and scatter there
    total = product(x.shape)
    places = in_shape(lookup("iota")(shape=(total,), axis=0, dtype=DTYPES["i64"]), x.shape)
    return in_shape(lookup("scatter")(in_shape(x, (total,)), u, read(places, p), axes=(0,), mode=mode), x.shape)


# --- methods that write -----------------------------------------------------------------------------------------------


def _writer(name: str, function: bool) -> Callable[..., Any]:
    """A method that writes to the array; outside of traces the ``function`` of that name, if it is one."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if active() is None and function:
            return API[name](self, *args, **kwargs)
        return PROTOCOLS["write_by"](name, self, args, kwargs)

    call.__name__ = name
    call.__doc__ = f"``{name}`` in place, in a traced function; elsewhere values never change."
    return call


for _name, _function in {"fill": False, "put": False, "sort": True, "partition": True}.items():
    setattr(Tensor, _name, _writer(_name, _function))
