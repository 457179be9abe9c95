"""Labels of axes: names that tensors carry beside their values, for errors, dumps, ``axis=`` and xarray.

Values know nothing of labels. What a function does to those of its arguments follows from the graph it made, and what
an op does from its record: axis j of an operand that is read with axis i of the result alone has its label there.
Where that is not so, or not known, an axis has none.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from symc.errors import InputError, ShapeError
from symc.ir.dim import product
from symc.ir.op import Decompose, Element, Fold, Running, Sorting, Update, View
from symc.ir.ops.effect import IDENTITY
from symc.ir.order import postorder
from symc.ir.traverse import region_params
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value, fresh_input
from symc.tensors.callsite import XARRAY, asking
from symc.tensors.leaves import leaf_of
from symc.tensors.public import PROTOCOLS, located
from symc.tensors.tensor import Tensor

Label = str | None
Labels = tuple[Label, ...]
#: Parameters that name axes, which take labels as well.
AXIS_PARAMETERS = ("axis", "axes", "axis1", "axis2", "source", "destination")


def checked(dims: Any, shape: Sequence[Any], what: str) -> Labels:
    """Labels for axes, as a user gives them. Raises InputError for what is none."""
    given = (dims,) if isinstance(dims, str) else tuple(dims)
    if any(d is not None and not isinstance(d, str) for d in given):
        raise InputError(f"{what}: a label of an axis is a string or None, not {given!r}")
    if len(given) != len(shape):
        raise InputError(f"{what} is {len(shape)}-dimensional, {given!r} labels {len(given)}",
                         help="one label an axis, None for an axis without one")
    named = [d for d in given if d is not None]
    if len(set(named)) < len(named):
        raise InputError(f"{what}: a label is given twice in {given!r}", help="each axis has a label of its own")
    if named:
        PROTOCOLS.update(label=label_results, named_axes=named_axes)
    return given


# --- of tensors -------------------------------------------------------------------------------------------------------


def dims_of(t: Tensor) -> Labels:
    """The labels of the axes of a tensor, None where there is none."""
    found = t.labels if t.labels is not None else leaf_of(t.value).dims
    return found or (None,) * t.ndim


def with_dims(t: Tensor, dims: Labels) -> Tensor:
    """The same value with other labels."""
    out = Tensor(t.value, t.weak)
    out.labels = dims
    return out


def rename(t: Tensor, names: Mapping[Any, Any] | None = None, **more: Any) -> Tensor:
    """The same value with labels replaced: ``x.rename(feature="hidden")``, ``x.rename({"feature": "hidden"})``; an axis
    without a label by its position, ``x.rename({0: "batch"})``."""
    old = list(dims_of(t))
    new = list(old)
    for key, name in {**(names or {}), **more}.items():
        new[axis_of(key, old, t, "rename")] = name
    return with_dims(t, checked(new, t.shape, "rename: the value"))


def drop_dims(t: Tensor) -> Tensor:
    """The same value without labels."""
    return with_dims(t, (None,) * t.ndim)


def axis_of(key: Any, dims: Sequence[Label], t: Tensor, name: str) -> int:
    """The axis of a label, or of a position."""
    if not isinstance(key, str) and -len(dims) <= key < len(dims):
        return int(key) % len(dims)
    if key in dims:
        return list(dims).index(key)
    known = ", ".join(map(repr, filter(None, dims))) or "none"
    raise ShapeError(f"{name}: there is no axis {key!r}", values=[t.describe()],
                     help=f"the labels of its axes: {known}")


def named_axes(fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call, with numbers for labels of axes: those of its first tensor."""
    parameters = _axis_parameters(fn)
    places = {k for k in parameters.values() if k < len(args) and _names_axes(args[k])}
    found = {n for n in parameters if n in kwargs and _names_axes(kwargs[n])}
    t = next(tensors_in((args, kwargs)), None) if places or found else None
    if t is None:
        return args, kwargs
    dims = dims_of(t)

    def number(item: Any) -> Any:
        if isinstance(item, list | tuple):
            return type(item)(map(number, item))
        return axis_of(item, dims, t, fn.__name__) if isinstance(item, str) else item

    args = tuple(number(a) if k in places else a for k, a in enumerate(args))
    return args, {n: number(a) if n in found else a for n, a in kwargs.items()}


def _names_axes(item: Any) -> bool:
    return isinstance(item, str) or isinstance(item, list | tuple) and any(isinstance(a, str) for a in item)


@functools.cache
def _axis_parameters(fn: Callable[..., Any]) -> dict[str, int]:
    """The parameters of a function that name axes, with their places."""
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return {}
    return {n: k for k, n in enumerate(names) if n in AXIS_PARAMETERS}


def tensors_in(item: Any) -> Iterator[Tensor]:
    """The tensors in nests of containers."""
    if isinstance(item, Tensor):
        yield item
    elif isinstance(item, dict):
        for x in item.values():
            yield from tensors_in(x)
    elif isinstance(item, list | tuple):
        for x in item:
            yield from tensors_in(x)


def label_results(fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any], out: Any) -> None:
    """Give the results of a call their labels. Raises ShapeError where axes with different labels meet."""
    given: dict[Value, Labels] = {}
    for t in tensors_in((args, kwargs)):
        dims = dims_of(t)
        before = given.get(t.value, dims)
        given[t.value] = tuple(a if a == b else None for a, b in zip(before, dims, strict=True))
    made = [t for t in tensors_in(out) if t.labels is None and t.value not in given and t.ndim]
    walk = _Walk(given, getattr(fn, "__name__", "vmap"), [t for t in tensors_in((args, kwargs)) if any(dims_of(t))])
    for t in made:
        dims = walk.of(t.value)
        if any(dims):
            t.labels = dims


# --- of values --------------------------------------------------------------------------------------------------------


def kept_labels(roots: Sequence[Value]) -> list[Labels]:
    """The labels of inputs along axes of results whose places are theirs: nothing was moved or left out."""
    walk = _Walk({}, still=True)
    return [walk.of(r) for r in roots]


class _Walk:
    """The labels of the values between arguments and results. ``name`` and ``operands`` are for errors; without a name
    labels that differ are dropped. ``still``: so are those of axes along which elements move."""

    def __init__(self, given: Mapping[Value, Labels], name: str = "", operands: Sequence[Tensor] = (),
                 still: bool = False):
        self.found: dict[Value, Any] = dict(given)
        self.name, self.operands, self.still = name, operands, still

    def of(self, root: Value) -> Labels:
        """The labels of a value with one result."""
        for v in postorder([root], stop=self.found.__contains__):
            if v not in self.found:
                self.found[v] = self._one(v)
        found: Labels = self.found[root]
        return found

    def _one(self, v: Value) -> Any:
        """The labels of a value; a list of them, of one with several results."""
        if v.op.name == "get":
            return self.found[v.operands[0]][v.attrs["index"]]
        types = v.types
        none = [(None,) * t.ndim for t in types]
        if not v.operands or not any(any(d or ()) for o in v.operands for d in self._each(o)):
            dims = leaf_of(v).dims if v.op.name == "input" else None
            return none if isinstance(v.type, TupleType) else dims or none[0]
        if v.regions:
            found = self._regions(v)
            return found if isinstance(v.type, TupleType) else found[0]
        return none if isinstance(v.type, TupleType) else _distinct(self._simple(v) or none[0])

    def _each(self, o: Value) -> Sequence[Labels]:
        return self.found[o] if isinstance(o.type, TupleType) else [self.found[o]]

    def _simple(self, v: Value) -> Labels | None:
        """Labels by the record of an op."""
        op, lowering, first = v.op, v.op.lowering, self.found[v.operands[0]]
        if "elementwise" in op.traits:
            return self._merged(v, [self.found[o] for o in v.operands])
        if isinstance(lowering, Sorting) and self.still:
            return tuple(None if a == v.attrs["axis"] else d for a, d in enumerate(first))
        if op.derivative is IDENTITY or isinstance(lowering, Update | Sorting):
            return first  # type: ignore[no-any-return]
        if isinstance(lowering, View):
            return regrouped(v.operands[0].shape, first, v.shape)
        if isinstance(lowering, Fold):
            return tuple(d for a, d in enumerate(first) if a not in v.attrs["axes"])
        if op.facts.meets is not None:
            return self._product(v)
        if isinstance(lowering, Running):
            return self._merged(v, [self.found[o] for o in v.operands])
        if isinstance(lowering, Element) and lowering.f is not None and "searches" not in op.traits:
            return self._read(v, lowering.f)
        if isinstance(lowering, Decompose):
            inner = lowering.f(v)
            if isinstance(inner, Value) and inner is not v:
                return _Walk(self.found, still=self.still).of(inner)
        if isinstance(v.attrs.get("axis"), int) and v.operands[0].ndim == v.ndim:
            sizes = zip(first, v.operands[0].shape, v.shape, strict=True)
            same = [d if n == m else None for d, n, m in sizes]
            return tuple(None if self.still and a == v.attrs["axis"] else d for a, d in enumerate(same))
        return None

    def _merged(self, v: Value, labels: Sequence[Labels], free: int | None = None) -> Labels:
        """The labels that operands agree on; ``free``: an axis where they need not."""
        out: list[Label] = []
        for a in range(v.ndim):
            names = list(dict.fromkeys(d[a] for d in labels if d[a] is not None))
            if len(names) > 1 and a != free:
                self._differ(f"axis {a} is", names)
            out.append(names[0] if len(names) == 1 else None)
        return tuple(out)

    def _differ(self, where: str, names: Sequence[Label]) -> None:
        if self.name:
            raise ShapeError(
                f"{self.name}: {where} {names[0]!r} in one operand and {names[1]!r} in another",
                values=[t.describe(f"operand {k}") for k, t in enumerate(self.operands)],
                help="axes are aligned by position: transpose one, x.rename(old='new') where both are meant to be the "
                "same, or x.drop_dims()")

    def _product(self, v: Value) -> Labels:
        out: list[Label] = [None] * v.ndim
        (a, b), (left, right) = (self.found[o] for o in v.operands), v.attrs["contract"]
        for i, j in zip(left, right, strict=True):
            if None not in (a[i], b[j]) and a[i] != b[j]:
                self._differ("the axis that is summed over is", [a[i], b[j]])
        for k, dims in enumerate((a, b)):
            for i, j in zip(*v.op.facts.meets(v, k), strict=True):  # type: ignore[misc]
                if None not in (dims[i], out[j]) and dims[i] != out[j]:
                    self._differ(f"axis {j} is", [out[j], dims[i]])
                out[j] = out[j] or dims[i]
        return tuple(out)

    def _read(self, v: Value, f: Callable[..., Value]) -> Labels:
        """Labels of axes that the result reads with one of its own axes alone."""
        index = [fresh_input(TensorType("i64", ())) for _ in range(v.ndim)]
        reads: list[tuple[int, list[Value]]] = []
        data: dict[Value, Sequence[Value]] = {}

        def at(k: int, where: Sequence[Value]) -> Value:
            reads.append((k, list(where)))
            leaf = fresh_input(TensorType(v.operands[k].dtype, ()))
            data[leaf] = where
            return leaf

        f(v, index, at)
        axes = {x: a for a, x in enumerate(index)}
        none: list[Label] = [None] * v.ndim
        straight, by_data = [none], [none]
        for k, where in reads:
            dims = self.found[v.operands[k]]
            own = [_sources(x, data) for x in where]
            for j, (used, indirect) in enumerate(own):
                shared = sum(bool(used & other) for other, _ in own) > 1
                if len(used) == 1 and not shared and dims[j]:
                    axis = axes[next(iter(used))]
                    if self.still and (where[j] is not index[axis] or v.shape[axis] != v.operands[k].shape[j]):
                        continue
                    row = [*none]
                    row[axis] = dims[j]
                    (by_data if indirect else straight).append(row)
        free = v.attrs.get("axis")
        direct = self._merged(v, [tuple(r) for r in straight], free if isinstance(free, int) else None)
        other = _Walk({})._merged(v, [tuple(r) for r in by_data])
        return tuple(a or b for a, b in zip(direct, other, strict=True))

    def _regions(self, v: Value) -> list[Labels]:
        """Loops, branches and blocks: the labels of what their bodies give."""
        regions = v.regions[:1] if "inline" in v.op.traits else v.regions[-1:] if "max_steps" in v.attrs else v.regions
        dims: list[Labels] = [self.found[o] for o in v.operands[len(v.operands) - len(regions[0].params):]]
        carries = v.attrs.get("carry", 0)
        rows = range(carries, carries + v.attrs.get("xs", 0))
        step: Label = next((dims[k][0] for k in rows if dims[k][0]), None)
        inside = [d[1:] if k in rows else d for k, d in enumerate(dims)]
        while True:
            bodies = [self._body(r, inside) for r in regions]
            found = [_agreed(each) for each in zip(*bodies, strict=True)]
            lasting = [tuple(a if a in (None, b) else None for a, b in zip(old, new, strict=True))
                       for old, new in zip(inside[:carries], found[:carries], strict=True)]
            if lasting == inside[:carries]:
                break
            inside[:carries] = lasting  # a later step has another label there
        out = [(step, *d) if "length" in v.attrs and k >= carries else d for k, d in enumerate(found)]
        return [*out, ()] if "max_steps" in v.attrs else out

    def _body(self, region: Region, inside: Sequence[Labels]) -> list[Labels]:
        walk = _Walk(dict(zip(region_params(region), inside, strict=True)), still=self.still)
        return [walk.of(r) for r in region.results]


def _agreed(labels: Sequence[Labels]) -> Labels:
    """The labels that all of them have."""
    return tuple(d[0] if len(set(d)) == 1 else None for d in zip(*labels, strict=True))


def _sources(x: Value, data: Mapping[Value, Sequence[Value]]) -> tuple[set[Value], bool]:
    """The indices that an index is made of, and whether some of them through numbers of an operand."""
    used: set[Value] = set()
    waiting, indirect = [x], False
    while waiting:
        for u in postorder([waiting.pop()]):
            if u in data:
                waiting += data[u]
                indirect = True
            elif u.op.name == "input":
                used.add(u)
    return used, indirect


def _distinct(dims: Sequence[Label]) -> Labels:
    """Labels without those that are there twice."""
    return tuple(d if dims.count(d) == 1 else None for d in dims)


def regrouped(old: Sequence[Any], dims: Labels, new: Sequence[Any]) -> Labels:
    """The labels after a reshape, of axes that it leaves as they are."""
    out: list[Label] = [None] * len(new)
    a = [k for k, s in enumerate(old) if s != 1]
    b = [k for k, s in enumerate(new) if s != 1]
    while a and b and old[a[0]] == new[b[0]] and product([old[k] for k in a]) == product([new[k] for k in b]):
        out[b.pop(0)] = dims[a.pop(0)]
    while a and b and old[a[-1]] == new[b[-1]]:
        out[b.pop()] = dims[a.pop()]
    return dims if tuple(old) == tuple(new) else tuple(out)


def typed(t: TensorType, dims: Labels) -> str:
    """A type with the labels of its axes: ``f32[batch: n, feature: 784]``."""
    text = str(t)
    if not any(dims):
        return text
    inner = ", ".join(f"{d}: {s}" if d else str(s) for d, s in zip(dims, t.shape, strict=True))
    return f"{text[:text.index('[')]}[{inner}]"


def _public_dims(t: Tensor) -> Labels:
    """Labels for users, and not for xarray, which would take values for arrays of its own."""
    if asking(XARRAY):
        raise AttributeError("dims")
    return dims_of(t)


Tensor.dims = property(_public_dims)  # type: ignore[attr-defined]
Tensor.rename, Tensor.drop_dims = located(rename), located(drop_dims)  # type: ignore[attr-defined]
PROTOCOLS["typed"] = lambda t: typed(t.value.type, dims_of(t))
