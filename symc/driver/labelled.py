"""Arguments and results with labelled axes: xarray's arrays, which are taken by name and come back.

xarray is not imported here: who gives its arrays has it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.function import Function
from symc.ir.record import replace
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.tensors.labels import Labels, checked, dims_of, kept_labels
from symc.tensors.leaves import leaf_of
from symc.tensors.pytree import flatten
from symc.tensors.tensor import Tensor

#: Types of arguments that are neither arrays of xarray's nor hold any.
_plain: weakref.WeakSet[type] = weakref.WeakSet()
#: Of each result: the labels of its axes, and of axes whose places are those of an argument the label there.
Results = tuple[tuple[Labels, Labels], ...]


def of_outputs(items: Sequence[Any], roots: Sequence[Value], leaves: Sequence[Value]) -> Results:
    """The labels of outputs, as users hold them; () where no input has any."""
    if not any(leaf_of(v).dims for v in leaves):
        return ()
    kept = kept_labels(roots)
    return tuple((dims_of(t) if isinstance(t, Tensor) else (None,) * v.ndim, k)
                 for t, v, k in zip(items, roots, kept, strict=True))


def to_json(f: Function, results: Results) -> Any:
    """The labels of a function's inputs and results, for a file."""
    return {"inputs": [i.dims for i in f.inputs], "outputs": results}


def from_json(f: Function, data: Any) -> tuple[Function, Results]:
    """A function with the labels that a file has, and those of its results; older files have none."""
    if data is None:
        return f, ()
    dims = [None if d is None else _labels(d, i.type) for i, d in zip(f.inputs, data["inputs"], strict=True)]
    inputs = tuple(replace(i, dims=d) for i, d in zip(f.inputs, dims, strict=True))
    results = tuple((_labels(own, v.type), _labels(kept, v.type)) for v, (own, kept) in zip(
        f.outputs, data["outputs"], strict=True)) if data["outputs"] else ()
    return replace(f, inputs=inputs), results


def _labels(given: Any, t: TensorType) -> Labels:
    if not isinstance(given, list) or len(given) != t.ndim or any(not isinstance(d, str | None) for d in given):
        raise InputError(f"the labels {given!r:.60} are not of {t}")
    return checked(given, t.shape, "a value")


def is_labelled(item: Any) -> bool:
    """True of an array of xarray's."""
    return type(item).__module__.partition(".")[0] == "xarray" and hasattr(item, "coords") and hasattr(item, "dims")


def labelled_in(args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
    """The arrays of xarray's among the arguments of a call."""
    if "xarray" not in sys.modules:
        return []
    asked = [x for x in (*args, *kwargs.values()) if type(x) not in _plain]
    if not asked:
        return []
    leaves = flatten(asked)[0]
    _plain.update(type(x) for x in asked if not is_labelled(x) and any(x is leaf for leaf in leaves))
    return [x for x in leaves if is_labelled(x)]


def in_order(item: Any, dims: Labels | None, label: str) -> np.ndarray:
    """The numbers of an array of xarray's, with the axes in the order of ``dims``, where there are labels.

    Raises ShapeError for an array whose axes are called otherwise.
    """
    have = tuple(item.dims)
    if dims and any(dims):
        if None not in dims and set(have) == set(dims):
            item = item.transpose(*dims)
        elif len(have) != len(dims) or any(d is not None and d != h for d, h in zip(dims, have, strict=True)):
            raise ShapeError(f"{label} has the axes {_names(dims)}, an array with the axes {_names(have)} was given",
                             help="a.rename(old='new') gives axes the labels that were declared")
    return np.asarray(item.values)


def _names(dims: Sequence[Any]) -> str:
    return "(" + ", ".join(str(d) if d is not None else "?" for d in dims) + ")"


def filler(fill: Callable[[list[Any]], Any], results: Results, given: Sequence[Any]) -> Callable[[list[Any]], Any]:
    """Results as arrays of xarray's, with the coordinates of the arguments along axes whose places are theirs."""
    from xarray import DataArray

    coords = _coordinates(given)

    def labelled(arrays: list[Any]) -> Any:
        out = []
        for a, (dims, kept) in zip(arrays, results or [((None,) * np.ndim(a),) * 2 for a in arrays], strict=True):
            names = [d or f"dim_{k}" for k, d in enumerate(dims)]
            own = {n: (n, coords[k].values) for n, k, size in zip(names, kept, np.shape(a), strict=True)
                   if k in coords and coords[k].size == size}
            out.append(DataArray(a, dims=names, coords=own))
        return fill(out)

    return labelled


def _coordinates(given: Sequence[Any]) -> dict[Any, Any]:
    """The coordinates along each axis. Raises InputError where two arguments differ in them."""
    out: dict[Any, Any] = {}
    for item in given:
        for name, c in item.coords.items():
            if c.dims == (name,) and not out.setdefault(name, c).equals(c):
                raise InputError(f"two arguments have different coordinates along {name!r}",
                                 help="xarray.align(a, b) gives what both have; a.drop_vars(name) leaves them out")
    return out
