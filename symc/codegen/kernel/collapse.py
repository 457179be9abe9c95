"""Fewer loops: neighbouring axes that a kernel always treats alike become one.

A region whose ops are elementwise, broadcasts and folds does not care how its space is cut into axes, as long as every
broadcast and fold keeps or drops a run of axes as a whole. Slices and concatenations keep the axes along which they cut
or join; the others are whole in all that they read. Operands are contiguous, so their memory does not change: only
their types do.
"""

from __future__ import annotations

from symc.ir.dim import Size, product
from symc.ir.op import Fold, PackedConcat, make
from symc.ir.ops.leaf import constant
from symc.ir.ops.shape import broadcast, concat, slice_
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, param
from symc.opt.fusion.column_folds import column_folds

Place = tuple[int, ...]  # which axes of the space a value's axes are


def collapse(region: Region) -> Region:
    """The same region over fewer axes; itself where nothing can be merged."""
    places = _places(region)
    if places is None:
        return region
    rank = max((len(p) for p in places.values()), default=0)
    runs = _runs(rank, set(places.values()), {places[v][a] for v in places for a in _own_axes(v)})
    if len(runs) == rank:
        return region
    return _Collapsed(places, runs).region(region)


def _places(region: Region) -> dict[Value, Place] | None:
    """The place of every value, found from the results down; None if an op or a second reading gets in the way."""
    values = postorder(region.results)
    space = max((v.operands[0].ndim if isinstance(v.op.lowering, Fold) else v.ndim for v in values), default=0)
    columns = column_folds(region)
    rows = next((_kept(space, v.attrs["axes"]) for v in values
                 if isinstance(v.op.lowering, Fold) and v not in columns), None)
    places: dict[Value, Place] = {}
    for r in region.results:
        full = r.ndim == space and not isinstance(r.op.lowering, Fold)
        place = tuple(range(space)) if full else _kept(space, r.attrs["axes"]) if r in columns else rows
        if place is None or r.ndim != len(place) or not _put(places, r, place):
            return None
    loose: set[Value] = set()  # what single numbers are taken from: it keeps its axes
    for v in reversed(values):
        if v in loose or places.get(v) == () and "movement" in v.op.traits:
            if v.ndim and v in loose and v in places or isinstance(v.op.lowering, Fold):
                return None
            loose.update(v.operands)
            continue
        if v.ndim and not v.operands and v.op.name != "param" and "row_major" not in v.op.traits:
            return None  # an index along an axis (iota): it would not survive the merging of axes
        for o, place in zip(v.operands, _operand_places(v, places.get(v), space), strict=True):
            if place is None or not _put(places, o, place):
                return None
    return places


def _kept(space: int, axes: tuple[int, ...]) -> Place:
    return tuple(a for a in range(space) if a not in axes)


def _put(places: dict[Value, Place], v: Value, place: Place | None) -> bool:
    return place is not None and places.setdefault(v, place) == place


def _operand_places(v: Value, place: Place | None, space: int) -> list[Place | None]:
    if place is None:
        return [None] * len(v.operands)
    if isinstance(v.op.lowering, Fold):
        whole = tuple(range(space))
        return [whole if v.operands[0].ndim == space and place == _kept(space, v.attrs["axes"]) else None]
    if v.op is broadcast:
        return [tuple(place[a] for a in v.attrs["axes"])]
    return [place if "elementwise" in v.op.traits or _is_along(v) else None] * len(v.operands)


def _is_along(v: Value) -> bool:
    """True for a movement that leaves all axes but some as they are."""
    return v.op is slice_ or v.op is concat or isinstance(v.op.lowering, PackedConcat)


def _own_axes(v: Value) -> list[int]:
    """The axes along which a slice cuts or a concatenation joins."""
    if not _is_along(v):
        return []
    if v.op is not slice_:
        return [v.attrs["axis"]]
    whole = zip(v.attrs["start"], v.attrs["step"], v.shape, v.operands[0].shape, strict=True)
    return [a for a, (start, step, n, size) in enumerate(whole) if start != 0 or step != 1 or n != size]


def _runs(rank: int, places: set[Place], own: set[int]) -> list[tuple[int, ...]]:
    """Maximal runs of axes that every place contains whole, side by side, or not at all; ``own`` ones are alone."""
    runs: list[tuple[int, ...]] = []
    for a in range(rank):
        joined = bool(runs) and own.isdisjoint((a - 1, a)) and all((a in p) == (a - 1 in p) for p in places)
        runs = [*runs[:-1], (*runs[-1], a)] if joined else [*runs, (a,)]
    return runs


class _Collapsed:
    """Values with one axis for each run of axes, which the first of them stands for."""

    def __init__(self, places: dict[Value, Place], runs: list[tuple[int, ...]]):
        self.places, self.length = places, {run[0]: len(run) for run in runs}

    def region(self, region: Region) -> Region:
        params = region_params(region)
        types = [TensorType(p.dtype, self.shape(p) if p in self.places else p.shape) for p in params]
        done: dict[Value, Value] = {p: param(i, t) for i, (p, t) in enumerate(zip(params, types, strict=True))}
        for v in postorder(region.results):
            if v not in done:
                done[v] = self.value(v, [done[o] for o in v.operands])
        return Region(types, [done[r] for r in region.results])

    def heads(self, v: Value) -> list[int]:
        return [a for a in self.places[v] if a in self.length]

    def shape(self, v: Value) -> tuple[Size, ...]:
        first = [(self.places[v].index(a), self.length[a]) for a in self.heads(v)]
        return tuple(product(v.shape[at : at + n]) for at, n in first)

    def value(self, v: Value, operands: list[Value]) -> Value:
        if v.op is constant:
            return v
        if v not in self.places or self.places[v] == () and "movement" in v.op.traits:
            return make(v.op, operands, v.attrs)
        own = self.heads(v)
        if v.op is broadcast:
            axes = tuple(own.index(a) for a in self.heads(v.operands[0]))
            return broadcast(operands[0], axes=axes, shape=self.shape(v)) if own != list(axes) else operands[0]
        if isinstance(v.op.lowering, Fold):
            return v.op(*operands, axes=tuple(k for k, a in enumerate(self.heads(v.operands[0])) if a not in own))
        if "row_major" in v.op.traits:
            return v.op(shape=self.shape(v))
        if v.op is slice_:  # along the axes of a run that it does not cut it starts at 0
            kept = [self.places[v].index(a) for a in own]
            start, step = (tuple(v.attrs[key][a] for a in kept) for key in ("start", "step"))
            return slice_(*operands, start=start, size=self.shape(v), step=step)
        if _is_along(v):
            return v.op(*operands, axis=own.index(self.places[v][v.attrs["axis"]]))
        return make(v.op, operands, v.attrs)
