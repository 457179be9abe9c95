"""Computing again, as passes: ``inline`` puts the regions of checkpoints in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, Inside, Locs, merge_inside
from symc.ir.ops.leaf import get
from symc.ir.traverse import every_value, postorder, region_params
from symc.ir.types import TupleType
from symc.ir.value import Region, Value, make


def inline(f: Function) -> Function:
    """Checkpoints, once they are differentiated, are what their regions compute: the same values as without them."""
    if not _holds_inline(f.body):
        return f
    run = _Inline(dict(f.inside))
    hints: Hints = {}
    results = run.values(f.body.results, {p: p for p in f.params}, f.hints, hints)
    hints.update((p, f.hints[p]) for p in f.params if p in f.hints)
    return replace(f, body=Region(f.body.params, results), hints=hints, inside=run.inside)


def _holds_inline(region: Region) -> bool:
    return any("inline" in v.op.traits for v in every_value(region))


class _Inline:
    """One run; ``inside`` are the lines in regions, for new regions too."""

    def __init__(self, inside: Inside):
        self.inside = inside
        self.done: dict[Region, Region] = {}

    def values(self, roots: Sequence[Value], leaves: Mapping[Value, Value], known: Mapping[Value, Locs],
               hints: Hints) -> list[Value]:
        """The roots on other leaves, without checkpoints. ``known`` are the lines of old values, ``hints`` of new."""
        done: dict[Value, Value] = dict(leaves)
        parts: dict[Value, list[Value]] = {}
        for v in postorder(roots, stop=leaves.__contains__):
            if v in done:
                continue
            if "inline" in v.op.traits:
                body = v.regions[0]
                operands = dict(zip(region_params(body), [done[o] for o in v.operands], strict=True))
                parts[v] = self.values(body.results, operands, self.inside.get(body, {}), hints)
                if isinstance(v.type, TupleType):
                    continue
                done[v] = parts[v][0]
            elif v.op is get and v.operands[0] in parts:
                done[v] = parts[v.operands[0]][v.attrs["index"]]
            else:
                regions = [self.region(r) for r in v.regions]
                done[v] = make(v.op, [done[o] for o in v.operands], v.attrs, regions)
            if v in known:
                hints[done[v]] = hints.get(done[v], NOWHERE) | known[v]
        return [done[r] for r in roots]

    def region(self, region: Region) -> Region:
        found = self.done.get(region)
        if found is None:
            found = region
            if _holds_inline(region):
                lines: Hints = {}
                own = {p: p for p in region_params(region)}
                found = Region(region.params, self.values(region.results, own, self.inside.get(region, {}), lines))
                merge_inside(self.inside, {found: lines})
            self.done[region] = found
        return found
