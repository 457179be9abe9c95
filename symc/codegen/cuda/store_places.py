"""Places where the steps of an update put things: which indices of the loops tell the places of two steps apart."""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.cuda.nests import emit_ready, enter, params_of
from symc.codegen.cuda.writer import Env, Kernel, Writer
from symc.codegen.kernel.index_splitting import size_of
from symc.ir.dim import Size
from symc.ir.ops.kernel import projection
from symc.ir.record import dataclass
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Region, Value


@dataclass(frozen=True)
class Store:
    """``value``: the op, in the innermost region; ``result``: what it changes, and its shape."""

    value: Value
    result: int
    kind: str
    shape: tuple[Size, ...]


@dataclass(frozen=True)
class Nest:
    """Loops over ``space``, one in another. ``elements``: results that have an element for each step. ``apart``: the
    axes of the space of which steps with different indices put at different places. ``rows``: how many axes of the
    space come before those along which the last axes of a place run, and ``picked``: how many axes of the place come
    before; ``owned``: whether those before depend on nothing else. ``terms``: of each index of the place, see ``Form``.
    """

    levels: tuple[Value, ...]
    space: tuple[Size, ...]
    stores: tuple[Store, ...]
    elements: dict[int, Value]
    apart: frozenset[int]
    rows: int
    picked: int
    owned: bool
    terms: tuple[tuple[tuple[int, int], ...] | None, ...] = ()


@dataclass(frozen=True)
class Form:
    """Form of an index: the axis of the loops of which it is the index (``exact``), or by which it differs from step to
    step, if there is one; the axes on which it depends; and, where it is a sum of multiples of indices, the axes and
    the factors of these."""

    axis: int | None
    exact: bool
    axes: frozenset[int]
    terms: tuple[tuple[int, int], ...] | None = None


_UNIFORM = Form(None, False, frozenset())


def held(w: Writer, p: Store, position: str) -> str:
    """Text of an element that the result of a store holds before."""
    start = w.kernel.loops.starts[p.result]
    if isinstance(start, Region):
        return filled(w, start, position)
    return w.read(f"{f'o{p.result}' if p.result in w.kernel.over else f'a{start}'}[{position}]", p.value.dtype)


def filled(w: Writer, start: Region, position: str) -> str:
    """Text of an element of what a result is made to hold before."""
    env = params_of(start)
    emit_ready(w, start, env, 1)
    (v,) = start.results
    if v.op.name == "generate":
        env = enter(w, v, w.unravel(position, v.attrs["shape"], 1), env)
        emit_ready(w, v.regions[0], env, 1)
        v = v.regions[0].results[0]
    return w.expression(v, env)


def nest_of(kernel: Kernel) -> Nest | None:
    """The loops of a kernel of updates; None for one that is something else."""
    found = levels_of(kernel)
    if found is None:
        return None
    levels, space, finals, forms = found
    stores = [Store(r, k, r.attrs["kind"], r.attrs["shape"]) for k, r in enumerate(finals) if r.op.name == "store"]
    elements = {k: r for k, r in enumerate(finals) if r.op.name != "store"}
    ends = any(r.op.name.startswith(("store", "insert")) for r in elements.values())
    if ends or not stores or {p.result for p in stores} != set(kernel.loops.starts):
        return None
    return _nest(levels, space, stores, elements, forms)


def levels_of(kernel: Kernel) -> tuple[list[Value], tuple[Size, ...], list[Value], dict[Value, Form]] | None:
    """Loops over elements, one in another: the loops, what they run over together, what the innermost one makes for
    each result of the kernel, and what its values are as indices. None for a kernel that is something else."""
    region, levels = kernel.loops.region, []
    space: tuple[Size, ...] = ()
    forms: dict[Value, Form] = {}
    while nests := [v for v in postorder(region.results) if v.regions]:
        if len(nests) != 1 or nests[0].op.name != "generate":
            return None
        outside = _forms(region, forms, space)
        (nest,) = nests
        levels.append(nest)
        params, shape = region_params(nest.regions[0]), nest.attrs["shape"]
        forms = {p: _index(len(space) + k) for k, p in enumerate(params[: len(shape)])}
        forms |= {p: outside.get(o, _UNIFORM) for p, o in zip(params[len(shape) :], nest.operands, strict=True)}
        space, region = (*space, *shape), nest.regions[0]
    finals = []
    for r in kernel.loops.region.results:
        for _ in levels:
            v, number = projection(r)
            if v.op.name != "generate":
                return None
            r = v.regions[0].results[number]
        finals.append(r)
    return (levels, space, finals, _forms(region, forms, space)) if levels else None


def step(w: Writer, levels: Sequence[Value], index: Sequence[str], depth: int) -> Env:
    """Write the scalars of one step of loops in one another; the names that the innermost region sees, and its own."""
    env = params_of(w.kernel.loops.region)
    emit_ready(w, w.kernel.loops.region, env, depth)
    at = 0
    for level in levels:
        rank = len(level.attrs["shape"])
        env = enter(w, level, index[at : at + rank], env)
        at += rank
        values = postorder(level.regions[0].results)
        w.emit([v for v in values if not v.regions and not v.op.name.startswith("store") and v.op.name != "get"], env,
               depth)
    return env


def _nest(levels: list[Value], space: tuple[Size, ...], stores: list[Store], elements: dict[int, Value],
          forms: dict[Value, Form]) -> Nest:
    places = [[forms.get(i, _UNIFORM) for i in p.value.operands[1:]] for p in stores]
    apart = frozenset.intersection(*[frozenset(f.axis for f in place if f.axis is not None) for place in places])
    tail = 0  # so many of the last axes of the place are the last indices of the loops
    place, shape = places[0], stores[0].shape
    while tail < min(len(place), len(space)) and place[-1 - tail].exact and (
            place[-1 - tail].axis == len(space) - 1 - tail and shape[-1 - tail] == space[-1 - tail]):
        tail += 1
    rows, picked = len(space) - tail, len(place) - tail
    owned = rows > 0 and picked > 0 and all(a < rows for f in place[:picked] for a in f.axes)
    terms = tuple(f.terms for f in place)
    return Nest(tuple(levels), space, tuple(stores), elements, apart, rows, picked, owned, terms)


def _index(axis: int) -> Form:
    return Form(axis, True, frozenset([axis]), ((axis, 1),))


def _forms(region, known: dict[Value, Form], space: tuple[Size, ...]) -> dict[Value, Form]:
    """Form of each value of a region as an index."""
    found = dict(known)
    for v in postorder(region.results):
        if v not in found:
            found[v] = _form(v, [found.get(o, _UNIFORM) for o in v.operands], space)
    return found


def _form(v: Value, operands: list[Form], space: tuple[Size, ...]) -> Form:
    axes = frozenset(a for f in operands for a in f.axes)
    if not axes:
        return _UNIFORM
    name = v.op.name
    if name == "cast" and v.dtype == v.operands[0].dtype:
        return operands[0]
    if len(operands) == 2:
        (f, other), number = operands, size_of(v.operands[1])
        if name == "maximum" and f.exact and number == 0:
            return f  # what is never negative
        if name == "minimum" and f.exact and f.axis is not None and number == space[f.axis] - 1:
            return f
        if name == "mul" and f.terms and number is not None:
            return Form(None, False, axes, tuple((a, c * number) for a, c in f.terms)) if isinstance(number, int) else (
                Form(None, False, axes))
        if name == "add" and f.terms and other.terms:
            return Form(None, False, axes, f.terms + other.terms)
        lines = [g for g in (f, other) if g.axis is not None]
        if name in ("add", "sub") and len(lines) == 1 and not (f if lines[0] is other else other).axes:
            return Form(lines[0].axis, False, axes)
    return Form(None, False, axes)
