"""Batching of loops and branches over one more leading axis.

A scan stays one scan: the carries that differ between entries get the axis, rows have it behind the axis of the steps.
A while loop whose condition is the same for all entries does too. One whose condition differs runs while it holds for
any entry; an entry that is done keeps its carry. A cond whose choice differs computes all branches, and each entry
picks its own; one choice for all entries stays lazy.

Every rule takes the value, its operands, which of them have the axis, its size, and what batches the values of a body;
it gives each result, and whether it has the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from symc.ir.bodies import cond_of_leaves, make_scan, make_while, open_body
from symc.ir.closure_scope import ClosureScope
from symc.ir.dim import Size
from symc.ir.op import Op
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import le
from symc.ir.ops.control import BOOL, COUNT, cond, scan, while_
from symc.ir.ops.elementwise import spread
from symc.ir.ops.kernel import results_of
from symc.ir.ops.leaf import scalar
from symc.ir.ops.logic import where
from symc.ir.ops.reduce import any_
from symc.ir.ops.shape import broadcast, transpose
from symc.ir.traverse import dependent, postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input

Flags = Sequence[bool]
#: A value, and whether it has the batch axis in front.
Part = tuple[Value, bool]
#: What ``symc.ir.batch.batch_graph`` is.
Graph = Callable[[Sequence[Value], Mapping[Value, Part], Size], list[Part]]
Rule = Callable[[Value, Sequence[Value], Flags, Size, Graph], list[Part]]


class Body:
    """A loop's leaves without and with the axis. Captured values are leaves of a scope that the loop is built in."""

    def __init__(self, region: Region, scope: ClosureScope, operands: Sequence[Value], flags: Flags, own: int, n: Size,
                 graph: Graph):
        self.n, self.flags, self.graph = n, list(flags), graph
        self.leaves = [fresh_input(p.type) for p in region_params(region)]
        self.outside = scope.leaves(operands)
        self.own = own  # how many of the leaves are carries and rows

    def batched(self) -> list[Value]:
        """The leaves as the flags say now: carries and rows are new leaves, captured values those outside."""
        new = [fresh_input(batched(x.type, self.n) if f else x.type)
               for x, f in zip(self.leaves[: self.own], self.flags[: self.own], strict=True)]
        return [*new, *self.outside[self.own :]]

    def run(self, values: Sequence[Value], leaves: Sequence[Value]) -> list[Part]:
        """``values`` of the body, on leaves with the axis where the flags say so."""
        pairs = zip(leaves, self.flags, strict=True)
        return self.graph(values, dict(zip(self.leaves, pairs, strict=True)), self.n)

    def settle(self, new: Sequence[Value], also: Collection[Value] = ()) -> None:
        """Flag the carries that come to differ between entries; ``new`` is what they are after a step."""
        order = postorder([*new, *also])
        while True:
            differs = dependent(order, [x for x, f in zip(self.leaves, self.flags, strict=True) if f])
            more = [k for k, v in enumerate(new) if v in differs and not self.flags[k]]
            if not more:
                return
            for k in more:
                self.flags[k] = True


def batched(t: TensorType, n: Size) -> TensorType:
    """The type with one more axis in front."""
    return TensorType(t.dtype, (n, *t.shape))


def _swap(x: Value) -> Value:
    """The first two axes exchanged."""
    return transpose(x, perm=(1, 0, *range(2, x.ndim)))


def _left(scope: ClosureScope, parts: Sequence[Part]) -> list[Part]:
    values = scope.leave([v for v, _ in parts])
    return [(v, f) for v, (_, f) in zip(values, parts, strict=True) if v is not None]


# --- scan -------------------------------------------------------------------------------------------------------------


def batch_scan(v: Value, operands: Sequence[Value], flags: Flags, n: Size, graph: Graph) -> list[Part]:
    """A scan over the steps of all entries."""
    scope, (nc, nx) = ClosureScope(), (v.attrs["carry"], v.attrs["xs"])
    body = Body(v.regions[0], scope, operands, flags, nc + nx, n, graph)
    results = open_body(v, 0, body.leaves)
    body.settle(results[:nc])
    leaves = body.batched()
    made = body.run(results, leaves)
    new = [spread(x, f, n) if body.flags[k] else x for k, (x, f) in enumerate(made[:nc])]
    starts = [spread(x, flags[k], n) if body.flags[k] else x for k, x in enumerate(body.outside[:nc])]
    xs = [_swap(x) if flags[nc + k] else x for k, x in enumerate(body.outside[nc : nc + nx])]
    out = make_scan(starts, xs, v.attrs["length"], v.attrs["reverse"], leaves[: nc + nx],
                    [*new, *[y for y, _ in made[nc:]]])
    parts = results_of(out)
    stacks = [(_swap(y), True) if f else (y, False) for y, (_, f) in zip(parts[nc:], made[nc:], strict=True)]
    return _left(scope, [*zip(parts[:nc], body.flags[:nc], strict=True), *stacks])


# --- while ------------------------------------------------------------------------------------------------------------


def batch_while(v: Value, operands: Sequence[Value], flags: Flags, n: Size, graph: Graph) -> list[Part]:
    """A loop that runs while any entry does."""
    scope, nc = ClosureScope(), v.attrs["carry"]
    body = Body(v.regions[1], scope, operands, flags, nc, n, graph)
    (condition,), results = open_body(v, 0, body.leaves), open_body(v, 1, body.leaves)
    body.settle(results, [condition])
    differs = dependent(postorder([condition]), [x for x, f in zip(body.leaves, body.flags, strict=True) if f])
    if condition in differs:
        body.flags[:nc] = [True] * nc
        return _left(scope, _masked_while(v, body, condition, results, flags))
    leaves = body.batched()
    new = [spread(x, f, n) if body.flags[k] else x for k, (x, f) in enumerate(body.run(results, leaves))]
    ((go, _),) = body.run([condition], leaves)
    starts = [spread(x, flags[k], n) if body.flags[k] else x for k, x in enumerate(body.outside[:nc])]
    out = make_while(starts, v.attrs["max_steps"], leaves[:nc], go, new)
    return _left(scope, list(zip(results_of(out), [*body.flags[:nc], False], strict=True)))


def _masked_while(v: Value, body: Body, condition: Value, results: Sequence[Value], flags: Flags) -> list[Part]:
    """Beside the carries go which entries are not done, and their numbers of steps.

    An entry that is done keeps its carry, so the condition stays false for it.
    """
    n, nc, captured = body.n, v.attrs["carry"], body.outside[body.own :]

    def holds(carries: Sequence[Value]) -> Value:
        ((go, f),) = body.run([condition], [*carries, *captured])
        return spread(go, f, n)

    starts = [spread(x, f, n) for x, f in zip(body.outside[:nc], flags, strict=False)]
    carries = [fresh_input(s.type) for s in starts]
    going, count = fresh_input(batched(BOOL, n)), fresh_input(batched(COUNT, n))
    made = [spread(x, f, n) for x, f in body.run(results, [*carries, *captured])]
    new = [where(broadcast(going, axes=(0,), shape=x.shape), x, old) for x, old in zip(made, carries, strict=True)]
    out = make_while(
        [*starts, holds(starts), broadcast(scalar(0, COUNT.dtype), axes=(), shape=(n,))],
        v.attrs["max_steps"],
        [*carries, going, count],
        any_(going, axes=(0,)),
        [*new, holds(new), count + cast(going, dtype=COUNT.dtype)],
    )
    parts = results_of(out)
    return [(x, True) for x in [*parts[:nc], parts[nc + 1]]]


# --- cond -------------------------------------------------------------------------------------------------------------


def batch_cond(v: Value, operands: Sequence[Value], flags: Flags, n: Size, graph: Graph) -> list[Part]:
    """A choice for all entries, or one for each."""
    scope = ClosureScope()
    which, *outside = scope.leaves(operands)
    leaves = [fresh_input(o.type) for o in v.operands[1:]]
    inside = dict(zip(leaves, zip(outside, flags[1:], strict=True), strict=True))
    branches = [graph(open_body(v, k, leaves), inside, n) for k in range(len(v.regions))]
    if flags[0]:
        every = [[spread(x, f, n) for x, f in branch] for branch in branches]
        return _left(scope, [(_pick(which, list(rows)), True) for rows in zip(*every, strict=True)])
    differs = [any(f for _, f in rows) for rows in zip(*branches, strict=True)]
    results = [[spread(x, f, n) if d else x for (x, f), d in zip(branch, differs, strict=True)] for branch in branches]
    return _left(scope, list(zip(results_of(cond_of_leaves(which, results)), differs, strict=True)))


def _pick(which: Value, rows: Sequence[Value]) -> Value:
    """For every entry the row of its own choice."""
    def mask(x: Value) -> Value:
        return broadcast(x, axes=(0,), shape=rows[0].shape)

    if which.dtype == BOOL.dtype:
        return where(mask(which), rows[0], rows[1])
    out = rows[-1]
    for k in range(len(rows) - 2, -1, -1):
        out = where(mask(le(which, k)), rows[k], out)
    return out


CONTROL: dict[Op, Rule] = {scan: batch_scan, while_: batch_while, cond: batch_cond}
