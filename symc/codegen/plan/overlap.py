"""Buffers of a plan that share bytes, or may for some sizes."""

from __future__ import annotations

from symc.codegen.plan.check_arena import Order
from symc.ir.dim import Size
from symc.ir.plan import Plan

#: Where something lies in the arena: its first byte and how many it has.
Place = tuple[Size, Size]


def overlaps(plan: Plan) -> dict[str, frozenset[str]]:
    """For every buffer those that it does not lie apart from, for all sizes; itself too."""
    found = {n: frozenset([n]) for n in plan.buffers}
    there: dict[Place, list[str]] = {}
    for n, at in plan.offsets.items():
        there.setdefault((at, plan.buffers[n].nbytes), []).append(n)
    for place, others in _near(plan, list(there)).items():
        names = frozenset(n for p in others for n in there[p])
        for n in there[place]:
            found[n] |= names
    return found


def _near(plan: Plan, places: list[Place]) -> dict[Place, list[Place]]:
    """For every place those that it is not known to lie apart from, itself too unless it has no bytes."""
    order = Order([b.nbytes for b in plan.buffers.values()], [at for at, _ in places])
    at: dict[int, list[Place]] = {}
    for p in places:
        at.setdefault(order.rank[p[0]], []).append(p)
    near: dict[Place, list[Place]] = {p: [p] for p in places if p[1] != 0}
    for p in near:
        first = order.rank[p[0]]
        same = [q for q in at[first] if q != p and q in near]
        near[p] += same  # each of the two finds the other
        for q in (q for k in _reach(order, *p) for q in at[k] if q in near):
            if not order.before(*q, p[0]):
                near[p].append(q)
                near[q].append(p)
    return near


def _reach(order: Order, start: Size, nbytes: Size) -> list[int]:
    """The places further on at which something may start before ``nbytes`` bytes from ``start`` on are over."""
    end, first = start + nbytes, order.rank[start]
    beyond: int | None = None  # what is known to come after a place that lies apart lies apart, too
    out = []
    for k in range(first + 1, len(order.starts)):
        if beyond is not None and order.run[k] == beyond:
            if order.run[-1] == beyond:
                break
        elif order.known(order.starts[k], end):
            beyond = order.run[k]
        else:
            out.append(k)
    return out
