"""Functions at sizes that are numbers."""

from __future__ import annotations

from collections.abc import Mapping

from symc.ir.function import Function, Guard
from symc.ir.record import replace
from symc.ir.size_values import substitute
from symc.ir.traverse import Substitution


def at_sizes(f: Function, sizes: Mapping[str, int]) -> Function:
    """The function with these numbers for sizes, by their names; its guards are those that are left."""
    changed = Substitution(sizes)
    body = changed.region(f.body)
    new = changed.regions[f.body][1]
    inputs = [replace(i, type=changed.swap(i.type)) for i in f.inputs]
    guards = [Guard(substitute(g.left, sizes), substitute(g.right, sizes), g.locs, g.least) for g in f.guards]
    return replace(f, body=body, inputs=tuple(inputs), hints={new.get(v, v): h for v, h in f.hints.items()},
                   inside=changed.inside(f.inside), guards=tuple(g for g in guards if g.left != g.right))
