"""``vmap``: a function of single values becomes one of batches, without a loop.

The function is called once, on free leaves of the types that its arguments have without the batch axis; what it builds
is then rewritten op by op (``symc.grad.vmap``). Values that it uses from outside have no batch axis and get none.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError, SymcError
from symc.grad import vmap as vmap_values
from symc.ir import location
from symc.ir.dim import Size, known_equal
from symc.ir.ops.ensure import ensured
from symc.ir.ops.shape import transpose
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, first_line, fresh_input
from symc.numpy_api.manipulation import normal_axis
from symc.tensors.callsite import caller, user_code
from symc.tensors.convert import as_tensor
from symc.tensors.deferred import contains_deferred
from symc.tensors.labels import dims_of
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.public import API, located
from symc.tensors.pytree import Nest, flatten, unflatten
from symc.tensors.tensor import Tensor

Axis = int | None


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that applies ``fn`` to every entry of its arguments along an axis, all entries at once.

    ``in_axes``: which axis of the arguments counts the entries. An int for all of them, or a tuple with one item an
    argument: an int, None for an argument that every entry gets whole, or a nest of these in the structure of the
    argument (an item stands for everything below it). Keyword arguments are batched along axis 0.
    ``out_axes``: where the axis of the entries goes in the results: an int, or a nest of ints in the structure of the
    result; None for a result that is the same for every entry. Axes may be negative.

    The number of entries may be symbolic. Values that ``fn`` uses from outside are the same for every entry.
    Raises ShapeError for arguments of different sizes, InputError for axes and arguments that do not fit.

    >>> A, v = sc.tensor3("A"), sc.matrix("v")
    >>> sc.compile(sc.vmap(lambda a, b: a @ b)(A, v))(np.stack([np.eye(2), 2 * np.eye(2)]), np.ones((2, 2)))
    array([[1., 1.],
           [2., 2.]])
    """
    if isinstance(fn, Tensor) or not callable(fn):
        raise InputError(f"vmap takes a function, not {type(fn).__name__}", where=[caller()])
    call = located(functools.partial(_call, fn, in_axes, out_axes))
    return functools.update_wrapper(call, fn)


API["vmap"] = vmap


@located
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """``func1d`` of every line along ``axis``, which the axes of its results replace; of all at once, as ``vmap``."""
    t = as_tensor(arr)
    at = normal_axis(axis, t.ndim, "apply_along_axis", t)
    one: Callable[[Any], Any] = lambda line: as_tensor(func1d(line, *args, **kwargs))
    for _ in range(t.ndim - 1):
        one = vmap(one)
    lines = one(API["moveaxis"](t, at, -1))
    more = lines.ndim - (t.ndim - 1)
    return API["moveaxis"](lines, tuple(range(-more, 0)), tuple(range(at, at + more))) if more else lines


def _call(fn: Callable[..., Any], in_axes: Any, out_axes: Any, /, *args: Any, **kwargs: Any) -> Any:
    leaves, structure = flatten((args, kwargs))
    axes = _in_axes(in_axes, structure)
    names = _names(fn, structure)
    batched = [k for k, axis in enumerate(axes) if axis is not None]
    tensors = {k: _argument(leaves[k], axes[k], names[k]) for k in batched}
    if not tensors:
        raise InputError("vmap: no argument has a batch axis", help="in_axes must name an axis of one at least")
    size, batches = _one_size([tensors[k] for k in batched], [axes[k] for k in batched], [names[k] for k in batched])
    inputs = [fresh_input(TensorType(b.dtype, b.shape[1:])) for b in batches]
    filled = list(leaves)
    for k, v in zip(batched, inputs, strict=True):
        outside = tensors[k].value
        known = leaf_of(outside)
        dims = list(dims_of(tensors[k]))
        del dims[axes[k] or 0]
        register_leaf(v, Leaf(known.name or names[k], known.loc or first_line(outside), "body", dims=tuple(dims)))
        filled[k] = Tensor(v, tensors[k].weak)
    args, kwargs = unflatten(structure, filled)
    with user_code():
        found = fn(*args, **kwargs)
    return _results(found, out_axes, inputs, batches, size)


# --- arguments --------------------------------------------------------------------------------------------------------


def _names(fn: Callable[..., Any], structure: Nest) -> list[str]:
    """Name of each leaf of the arguments in messages: by its parameter, where that is known."""
    positional, keyword = structure.children
    try:
        parameters = [p.name for p in inspect.signature(fn).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    except (TypeError, ValueError):  # some functions written in C
        parameters = []
    out: list[str] = []
    for k, child in enumerate(positional.children):
        out += child.paths(parameters[k] if k < len(parameters) else f"argument {k}")
    for name, child in zip(keyword.keys, keyword.children, strict=True):
        out += child.paths(name)
    return out


def _in_axes(in_axes: Any, structure: Nest) -> list[Axis]:
    """The axis of every leaf of the arguments."""
    positional, keyword = structure.children
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != len(positional.children):
            raise InputError(
                f"vmap: in_axes has {len(in_axes)} items for {len(positional.children)} positional arguments",
                help="one item an argument, or one int for all; keyword arguments are batched along axis 0",
            )
        whole = in_axes
    else:
        whole = [in_axes] * len(positional.children)
    out: list[Axis] = []
    for k, (item, child) in enumerate(zip(whole, positional.children, strict=True)):
        out += spread_axes(item, child, f"in_axes[{k}]" if isinstance(in_axes, tuple | list) else "in_axes")
    return [*out, *[0] * keyword.count]


def spread_axes(axes: Any, structure: Nest, what: str) -> list[Axis]:
    """One axis for every leaf of a structure, from a nest of axes in which an item stands for all that is below it."""
    if axes is None or (isinstance(axes, int | np.integer) and not isinstance(axes, bool)):
        return [None if axes is None else int(axes)] * structure.count
    items = _items(axes, structure)
    if items is None:
        raise InputError(f"vmap: {what} must be an int, None, or have the structure {structure}, not {axes!r:.60}")
    out: list[Axis] = []
    for k, (item, child) in enumerate(zip(items, structure.children, strict=True)):
        out += spread_axes(item, child, what + structure._step(k))
    return out


def _items(axes: Any, structure: Nest) -> list[Any] | None:
    """The parts of a container of axes that belong to the children of a structure; None if it is another container."""
    if structure.kind == "dict":
        same = isinstance(axes, dict) and set(axes) == set(structure.keys)
        return [axes[key] for key in structure.keys] if same else None
    if structure.kind in ("tuple", "list"):
        same = isinstance(axes, tuple | list) and len(axes) == len(structure.children)
        return list(axes) if same else None
    if structure.kind in ("namedtuple", "dataclass"):
        return [getattr(axes, key) for key in structure.keys] if isinstance(axes, structure.cls or ()) else None
    return None


def _argument(item: Any, axis: Axis, name: str) -> Tensor:
    """A batched argument, which must have the axis."""
    try:
        t = as_tensor(item)
    except SymcError:
        raise InputError(f"vmap: {name} is not a tensor but {type(item).__name__} {item!r:.40}".rstrip(),
                         help="an argument that is the same for every entry has None in in_axes") from None  # fmt: skip
    assert axis is not None
    if not -t.ndim <= axis < t.ndim:
        raise ShapeError(
            f"vmap: {name} has no axis {axis}, it is {t.ndim}-dimensional",
            values=[t.describe(name)],
            help="an argument that is the same for every entry has None in in_axes"
            if t.ndim == 0
            else f"in_axes counts from {-t.ndim} to {t.ndim - 1} here",
        )
    return t


def _one_size(tensors: Sequence[Tensor], axes: Sequence[Axis], names: Sequence[str]) -> tuple[Size, list[Value]]:
    """The number of entries, and the arguments with the axis of the entries in front."""
    fronts = [move(t.value, axis or 0, 0) for t, axis in zip(tensors, axes, strict=True)]
    sizes = [v.shape[0] for v in fronts]
    size = next((s for s in sizes if isinstance(s, int)), sizes[0])
    for k, s in enumerate(sizes):
        if known_equal(s, size) is False:
            other = sizes.index(size)
            first, second = sorted((k, other))
            raise ShapeError(
                f"vmap: {names[first]} has {sizes[first]} entries, {names[second]} has {sizes[second]}",
                values=[tensors[j].describe(names[j]) for j in (first, second)],
                help="batched arguments have the same size along their axes in in_axes",
            )
    same = [ensured(v, (size, *v.shape[1:])) for v in fronts]
    return size, same


# --- results ----------------------------------------------------------------------------------------------------------


def _results(found: Any, out_axes: Any, inputs: Sequence[Value], batches: Sequence[Value], size: Size) -> Any:
    items, structure = flatten(found)
    if not items:
        raise InputError("vmap: the function returns no tensors")
    if contains_deferred(items):
        raise InputError("vmap: the function uses a variable without a type",
                         help="give it as an argument, with None in in_axes if every entry gets it whole")  # fmt: skip
    tensors = [_output(item, path) for item, path in zip(items, structure.paths(), strict=True)]
    axes = spread_axes(out_axes, structure, "out_axes")
    made = vmap_values([t.value for t in tensors], inputs, batches, size)
    own = set(inputs)
    out = []
    for t, v, axis, path in zip(tensors, made, axes, structure.paths(), strict=True):
        if axis is None:
            if not own.isdisjoint(postorder([t.value])):
                raise InputError(f"vmap: result{path} differs between entries, so that out_axes cannot be None for it",
                                 values=[t.describe("result" + path)])  # fmt: skip
            out.append(t)
            continue
        if not -v.ndim <= axis < v.ndim:
            raise ShapeError(f"vmap: result{path} of {v.ndim} axes has no axis {axis}",
                             values=[Tensor(v).describe("result" + path)],
                             help=f"out_axes counts from {-v.ndim} to {v.ndim - 1} here")  # fmt: skip
        out.append(Tensor(move(v, 0, axis), t.weak))
    return unflatten(structure, out)


def _output(item: Any, path: str) -> Tensor:
    try:
        return as_tensor(item)
    except SymcError:
        raise InputError(f"vmap: result{path} is not a tensor but {type(item).__name__} {item!r:.40}".rstrip(),
                         where=location.in_order(location.here())) from None  # fmt: skip


def move(v: Value, source: int, target: int) -> Value:
    """``v`` with axis ``source`` in place ``target``; both may be negative."""
    source, target = source % v.ndim, target % v.ndim
    if source == target:
        return v
    order = [a for a in range(v.ndim) if a != source]
    order.insert(target, source)
    return transpose(v, perm=tuple(order))
