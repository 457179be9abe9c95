"""Loop nests whose outermost steps know each other, but those of an inner axis do not: which axis threads may share.

A running sum down the rows, sorting along the first axis, an update of whole rows: each column is a matter of its own.
Every thread then runs all outer loops, for its own step of the inner one, in the order that the reference has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from symc.codegen.cpu.chunks import Chunks
from symc.codegen.kernel.index_splitting import cut
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.kernel.user_functions import is_users
from symc.ir.dim import Size
from symc.ir.ops.store import insert, insert_place, store, store_running
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Region, Value


def inner_chunks(loops: Loops) -> tuple[int, Chunks | None]:
    """The longest axis whose steps are apart from one another, and chunks along it; None where there is none."""
    extents: list[Size] = []
    axes: dict[Value, int] = {}  # the indices that a region knows, by its params
    region = loops.region
    while True:
        nests = [v for v in postorder(region.results) if v.regions]
        if not nests:
            break
        (nest, *others) = nests
        made = all((r.operands[0] if r.op.name == "get" else r) is nest for r in region.results)
        if others or nest.op.name != "generate" or not made or len(nest.attrs["shape"]) != 1 or cut(nest) is not None:
            return 0, None
        params = region_params(nest.regions[0])
        axes = {params[0]: len(extents), **{p: axes[o] for p, o in zip(params[1:], nest.operands, strict=True)
                                            if o in axes}}
        extents += nest.attrs["shape"]
        region = nest.regions[0]
    if _calls_users(region):
        return 0, None
    found = [a for a in range(1, len(extents)) if all(_is_apart(r, a, axes) for r in region.results)]
    if not found:
        return 0, None
    axis = max(found, key=lambda a: (_steps(extents[a]), a))
    return axis, Chunks(extents[axis], 1, 0)


def _steps(extent: Size) -> float:
    """The number of steps of an axis; one of unknown size counts as many."""
    return extent if isinstance(extent, int) else math.inf


def _is_apart(r: Value, axis: int, axes: Mapping[Value, int]) -> bool:
    """True if a result is written, along an axis, where no other step writes."""
    if r.op in (store_running, insert, insert_place):
        return r.attrs["axis"] != axis
    return r.op is not store or any(axes.get(place) == axis for place in r.operands[1:])


def _calls_users(region: Region) -> bool:
    return any(is_users(v.op.name) for v in postorder(region.results))
