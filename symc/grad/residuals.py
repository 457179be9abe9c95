"""Residuals that the backward pass of a loop reads again: for every value of a step, save it or compute it again.

Saving costs memory (written once, read once, for every step); computing again costs arithmetic. Products of matrices,
reductions, transcendental functions, loops and whatever is not known to be cheap is never computed again. Cheap
elementwise ops and movements are, where that saves bytes, and loops that keep places of one without a bound: the values
to save are a minimum cut, weighted with bytes, between what is expensive and what the backward body uses (as in the
min-cut partitioner of PyTorch's AOTAutograd). Of cuts that weigh the same the one nearest to the uses is taken, which
computes least again. A body of more than ``LIMIT`` such values is not cut: what the backward body uses is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from symc.grad.mincut import INFINITE, Network
from symc.ir.op import Element, Op
from symc.ir.ops.control import while_
from symc.ir.ops.leaf import get
from symc.ir.ops.remat import again
from symc.ir.size_values import number
from symc.ir.traverse import every_value, postorder
from symc.ir.types import TensorType, Type
from symc.ir.value import Value

LIMIT = 4000

def size_in_bytes(t: Type) -> int:
    """The bytes of a value, with symbolic sizes at their nominal number."""
    if not isinstance(t, TensorType):
        return INFINITE
    count = t.dtype.itemsize
    for s in t.shape:
        count *= max(number(s), 0)
    return count


def is_cheap(v: Value) -> bool:
    """True if computing ``v`` again costs no more than reading it."""
    return "movement" in v.op.traits or is_cheap_op(v.op)


def is_cheap_op(op: Op) -> bool:
    """True for a few instructions an element (draws of random numbers are more), and for names of what is there."""
    few = not op.facts.kernel or op.facts.kernel == "cheap" and bool(op.facts.result)
    plain = isinstance(op.lowering, Element) and "elementwise" in op.traits and "checks" not in op.traits
    return few and plain or op in (get, again)


def keeps_places(v: Value) -> bool:
    """True for a loop around one without a bound, as those that keep places of such a loop are: were what it keeps
    saved for every step of loops around it, each level would take 64 times the memory."""
    return v.op is while_ and any(x.op is while_ and x.attrs["max_steps"] is None for x in every_value(v.regions[1]))


def read_again(ends: Sequence[Value], varying: Collection[Value], later: Collection[Value],
               carries: Collection[Value], free: Collection[Value]) -> list[Value]:
    """Residuals that the backward body, which gives ``ends``, reads of the forward one: saved values and ``free`` ones.

    ``varying``: what differs between steps; ``later``: what is known in the backward pass only.
    """
    order = postorder(ends)
    early = {v for v in order if v in varying and v not in later}
    used = [v for v in ends if v in early]
    used += [o for v in order if v in later for o in v.operands if o in early]
    known = {*choose(order, early, used, carries, free), *free}
    made_of = set(postorder(used, stop=known.__contains__))
    return [v for v in order if v in known and v in made_of]


def choose(values: Sequence[Value], inside: Collection[Value], used: Sequence[Value], carries: Collection[Value],
           free: Collection[Value]) -> list[Value]:
    """The values to save, in the order of ``values`` (operands first).

    ``inside``: those of ``values`` that differ between steps and can be had before the backward pass; ``used``: what
    the backward body is made of. ``carries`` must be saved to be known; ``free`` are known anyway, with every row.
    """
    order = [v for v in values if v in inside and v not in free]
    wanted = [v for v in dict.fromkeys(used) if v not in free]
    if len(order) > LIMIT:
        return [v for v in order if v in set(wanted)]
    return cheapest(order, wanted, lambda v: max(size_in_bytes(v.type), 1),
                    lambda v: v in carries or not (is_cheap(v) or keeps_places(v)))


def cheapest(order: Sequence[Value], wanted: Sequence[Value], weight: Callable[[Value], int],
             made_once: Callable[[Value], bool]) -> list[Value]:
    """The values of least weight that ``wanted`` can be computed from without what is ``made_once``; all are of
    ``order``, operands first."""
    place = {v: k for k, v in enumerate(order)}
    network = Network([weight(v) for v in order])
    for v in wanted:  # paths run backwards, because the cut nearest to their beginning is found
        network.source(place[v])
    for v, k in place.items():
        if made_once(v):
            network.sink(k)
        else:
            for o in dict.fromkeys(v.operands):
                if o in place:
                    network.edge(k, place[o])
    return [order[k] for k in network.cut()]
