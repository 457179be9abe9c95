"""Regions put in the place of checkpoints and blocks: the passes ``inline`` and ``open_blocks``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, Inside, Locs, add_lines, merge_inside
from symc.ir.ops.leaf import get
from symc.ir.record import replace
from symc.ir.traverse import every_value, postorder, region_params
from symc.ir.types import TupleType
from symc.ir.value import Region, Value, make
from symc.opt.engine.pass_registry import standard_pass

Wanted = Callable[[Value], bool]


@standard_pass(
    records=False, on=("inline",),
)
def inline(f: Function) -> Function:
    """Checkpoints and blocks become what their regions compute.

    So is every op with trait "inline", but for blocks that are opaque.
    """
    return _inlined(f, lambda v: "inline" in v.op.traits and not v.attrs.get("opaque"))


@standard_pass(
    after=("chains",),
    why="nothing before may look across the border of an opaque block; kernels may",
    records=False, on=("inline",),
)
def open_blocks(f: Function) -> Function:
    """Opaque blocks become what their regions compute."""
    return _inlined(f, lambda v: "inline" in v.op.traits)


def _inlined(f: Function, wanted: Wanted) -> Function:
    if not _holds(f.body, wanted):
        return f
    run = _Inline(dict(f.inside), wanted)
    hints: Hints = {}
    results = run.values(f.body.results, {p: p for p in f.params}, f.hints, hints)
    hints.update((p, f.hints[p]) for p in f.params if p in f.hints)
    return replace(f, body=Region(f.body.params, results), hints=hints, inside=run.inside)


def _holds(region: Region, wanted: Wanted) -> bool:
    return any(v.regions and wanted(v) for v in every_value(region))


class _Inline:
    """One run; ``inside`` are the lines in regions, for new regions too. ``wanted``: what is replaced."""

    def __init__(self, inside: Inside, wanted: Wanted):
        self.inside, self.wanted = inside, wanted
        self.done: dict[Region, Region] = {}

    def values(self, roots: Sequence[Value], leaves: Mapping[Value, Value], known: Mapping[Value, Locs],
               hints: Hints) -> list[Value]:
        """The roots on other leaves, after replacing. ``known`` are the lines of old values, ``hints`` of new."""
        done: dict[Value, Value] = dict(leaves)
        parts: dict[Value, list[Value]] = {}
        for v in postorder(roots, stop=leaves.__contains__):
            if v in done:
                continue
            if v.regions and self.wanted(v):
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
            add_lines(hints, done[v], known.get(v, NOWHERE))
        return [done[r] for r in roots]

    def region(self, region: Region) -> Region:
        found = self.done.get(region)
        if found is None:
            found = region
            if _holds(region, self.wanted):
                lines: Hints = {}
                own = {p: p for p in region_params(region)}
                found = Region(region.params, self.values(region.results, own, self.inside.get(region, {}), lines))
                merge_inside(self.inside, {found: lines})
            self.done[region] = found
        return found
