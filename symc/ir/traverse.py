"""Walking and rebuilding graphs with explicit stacks: linear time at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from symc.ir.attrs import EMPTY, Attrs
from symc.ir.dim import Dim, Size
from symc.ir.location import Inside, merge_inside
from symc.ir.order import postorder as postorder
from symc.ir.size_values import substitute
from symc.ir.types import TensorType, substitute_type
from symc.ir.value import Region, Value, make, param


def users(values: Iterable[Value]) -> dict[Value, list[Value]]:
    """Users of each value, among ``values``; a user that uses it twice is listed once."""
    out: dict[Value, list[Value]] = {}
    for v in values:
        out.setdefault(v, [])
        for o in dict.fromkeys(v.operands):
            out.setdefault(o, []).append(v)
    return out


def use_counts(values: Sequence[Value], results: Iterable[Value]) -> dict[Value, int]:
    """The number of times that each value is an operand or a result."""
    out = dict.fromkeys(values, 0)
    for o in (*[o for v in values for o in v.operands], *results):
        out[o] += 1
    return out


def rebuild(v: Value, operands: Sequence[Value]) -> Value:
    """``v`` with other operands (of the same types, or types the op can infer from)."""
    operands = tuple(operands)
    return v if operands == v.operands else make(v.op, operands, v.attrs, v.regions)


def replace(
    roots: Sequence[Value], mapping: Mapping[Value, Value], on_new: Callable[[Value, Value], None] | None = None
) -> list[Value]:
    """The roots with values replaced. What replaces a value is not searched again.

    ``on_new(old, new)`` is called for every value that had to be rebuilt (to carry locations over).
    """
    done: dict[Value, Value] = dict(mapping)
    for v in postorder(roots, stop=lambda v: v in mapping):
        if v not in done:
            new = done[v] = rebuild(v, [done[o] for o in v.operands])
            if on_new and new is not v:
                on_new(v, new)
    return [done[r] for r in roots]


def resolve(roots: Sequence[Value], mapping: Mapping[Value, Value], on_new: Callable[[Value, Value], None],
            ) -> dict[Value, Value] | None:
    """Resolves replacements of values, in what replaces them too: what each becomes; None if one is made of itself."""
    done: dict[Value, Value] = {}
    begun: set[Value] = set()
    stack = list(roots)[::-1]
    while stack:
        v = stack[-1]
        below = () if v in done else (mapping[v],) if v in mapping else v.operands
        waiting = [o for o in below if o not in done]
        if waiting:
            if v in begun:
                return None
            begun.add(v)
            stack += waiting[::-1]
            continue
        stack.pop()
        if v in mapping:
            done[v] = done[mapping[v]]
        elif v not in done:
            new = done[v] = rebuild(v, [done[o] for o in v.operands])
            if new is not v:
                on_new(v, new)
    return done


def close(inputs: Sequence[Value], results: Sequence[Value]) -> tuple[Region, list[Value]]:
    """Make ``results`` a region over ``inputs``; free leaves it uses besides become further params.

    Returns the region and the captured leaves, in the order of their params (after the inputs).
    """
    given = dict.fromkeys(inputs)
    captured = [v for v in postorder(results, stop=given.__contains__) if v not in given and is_free_leaf(v)]
    return close_over([*inputs, *captured], results), captured


def close_over(inputs: Sequence[Value], results: Sequence[Value]) -> Region:
    """A region whose params stand for ``inputs``, which must cut every path to a free leaf."""
    mapping = {v: param(i, v.type) for i, v in enumerate(inputs)}
    return Region([v.type for v in inputs], replace(results, mapping))


def dependent(values: Iterable[Value], leaves: Iterable[Value]) -> set[Value]:
    """The leaves, and those of ``values`` (operands first) that are made of them."""
    out = set(leaves)
    for v in values:
        if not out.isdisjoint(v.operands):
            out.add(v)
    return out


def every_region(region: Region) -> list[Region]:
    """A region and all regions inside it, each once, in an order that depends on the text alone."""
    out = {region: None}
    pending = [region]
    while pending:
        inner = [r for v in pending.pop().values if v.regions for r in v.regions if r not in out]
        out.update(dict.fromkeys(inner))
        pending.extend(dict.fromkeys(inner))
    return list(out)


def every_value(region: Region) -> list[Value]:
    """All values of a region and of the regions inside it, operands first; a body that occurs twice is listed once."""
    return list(dict.fromkeys(v for r in every_region(region) for v in r.values))


def with_inner(values: Sequence[Value]) -> Sequence[Value]:
    """Values of a graph, then those of the regions inside them."""
    inner = [x for v in values if v.regions for r in v.regions for x in every_value(r)]
    return list(dict.fromkeys([*values, *inner])) if inner else values


def is_free_leaf(v: Value) -> bool:
    """A leaf that a region must not reach: an ``input``, or a ``param`` of the region being taken apart."""
    return v.op.name in ("input", "param")


def free_inputs(roots: Sequence[Value]) -> list[Value]:
    """The ``input`` values that graphs are made of, as they are met."""
    return [v for v in postorder(roots) if v.op.name == "input"]


def oldest_first(inputs: Iterable[Value]) -> list[Value]:
    """Free leaves in the order of their creation."""
    return sorted(inputs, key=lambda v: v.attrs["serial"])


def region_params(region: Region) -> list[Value]:
    """The param values of a region."""
    return list(region.leaves)


def inline(
    region: Region, operands: Sequence[Value], on_new: Callable[[Value, Value], None] | None = None
) -> list[Value]:
    """The results of a region with its params replaced by ``operands``."""
    return replace(region.results, dict(zip(region_params(region), operands, strict=True)), on_new)


class Substitution:
    """Size names replaced in every attribute and type of graphs, and of the regions inside them.

    ``entries``: attributes that some values have instead of their own. ``regions``: what became of each region, and of
    its values that had to be rebuilt.
    """

    def __init__(self, sizes: Mapping[str, Size], entries: Mapping[Value, Mapping[str, Any]] | None = None):
        self.sizes, self.entries = dict(sizes), dict(entries or {})
        self.regions: dict[Region, tuple[Region, dict[Value, Value]]] = {}
        self._swapped: dict[Dim | TensorType | Attrs, Any] = {}

    def __bool__(self) -> bool:
        return bool(self.sizes or self.entries)

    def values(
        self,
        roots: Sequence[Value],
        leaves: Mapping[Value, Value],
        on_new: Callable[[Value, Value], None] | None = None,
    ) -> list[Value]:
        """The roots; ``leaves`` says what their leaves become."""
        done: dict[Value, Value] = dict(leaves)
        for v in postorder(roots, stop=leaves.__contains__):
            if v not in done:
                attrs = EMPTY if v.attrs is EMPTY else self._attrs(v)
                regions = [self.region(r) for r in v.regions] if v.regions else ()
                new = done[v] = make(v.op, [done[o] for o in v.operands], attrs, regions)
                if on_new and new is not v:
                    on_new(v, new)
        return [done[r] for r in roots]

    def region(self, region: Region) -> Region:
        """The region."""
        if region not in self.regions:
            params = [self.swap(t) for t in region.params]
            leaves = {old: param(i, t) for i, (old, t) in enumerate(zip(region_params(region), params, strict=True))}
            new: dict[Value, Value] = {}
            self.regions[region] = Region(params, self.values(region.results, leaves, new.__setitem__)), new
        return self.regions[region][0]

    def inside(self, lines: Inside) -> Inside:
        """The lines in regions, of what these became."""
        out: Inside = {}
        for region, own in lines.items():
            other = self.region(region)
            new = self.regions[region][1]
            merge_inside(out, {other: {new.get(v, v): locs for v, locs in own.items()}})
        return out

    def _attrs(self, v: Value) -> Attrs:
        found = self._swapped.get(v.attrs)
        if found is None:
            found = self._swapped[v.attrs] = v.attrs.replaced(self.swap)
        return found if v not in self.entries else Attrs({**found, **self.entries[v]})

    def swap(self, item: Any) -> Any:
        """A size or a type; anything else as it is."""
        if not isinstance(item, Dim | TensorType):
            return item
        found = self._swapped.get(item)
        if found is None:
            new = substitute(item, self.sizes) if isinstance(item, Dim) else substitute_type(item, self.sizes)
            found = self._swapped[item] = item if new == item else new
        return found
