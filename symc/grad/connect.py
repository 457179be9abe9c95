"""Values between inputs and outputs of a derivative, and where a connection is lost."""

from __future__ import annotations

from collections.abc import Sequence

from symc.grad.varying import connections, differentiable_operands, varies
from symc.ir import location
from symc.ir.bodies import is_loop_or_branch, open_body
from symc.ir.op import Regional
from symc.ir.ops.kernel import projection
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TupleType
from symc.ir.value import Value, fresh_input


def between(outputs: Sequence[Value], wrt: Sequence[Value], cut: bool = True) -> tuple[list[Value], set[Value]]:
    """All values that ``outputs`` are made of, operands first, and the set of those that vary with ``wrt``.

    ``cut``: what ``wrt`` themselves are made of is left out.
    """
    starts = {w for w in wrt if varies(w.type)}
    order = postorder(outputs, stop=starts.__contains__ if cut else None)
    active: set[Value] = set()
    for v in order:
        if v in starts or any(o in active for o in differentiable_operands(v)):
            active.add(v)
    return order, active


def connected(outputs: Sequence[Value], wrt: Sequence[Value], cut: bool = True) -> list[bool]:
    """Flags of those of ``wrt`` that have a derivative, zero perhaps, to some output."""
    order, active = between(outputs, wrt, cut)
    reached = {o for o in outputs if o in active}
    ends = set(wrt) if cut else set()
    for v in reversed(order):
        if v in reached and v not in ends:
            reached.update(o for o in differentiable_operands(v) if o in active)
    return [w in reached for w in wrt]


Path = list[tuple[Value, list[location.Loc]]]


def disconnection(outputs: Sequence[Value], wrt: Value) -> Path:
    """The path from ``wrt`` towards ``outputs`` up to and including the value where derivatives stop, with user lines.

    It leads into loops and branches. Only ``wrt`` itself when the outputs are not made of it; empty when it is
    connected after all.
    """
    if connected(outputs, [wrt])[0]:
        return []
    order = [v for v in postorder(outputs) if not _is_several(v)]
    if wrt not in set(order):
        return [_lines(wrt)]
    parent: dict[Value, Value | None] = {wrt: None}
    ends: list[tuple[Value, Value]] = []  # (value on a path, user where the path stops)
    for v in order:  # operands come first, so one sweep follows every path
        passes = set(differentiable_operands(v))
        for o in dict.fromkeys(_made_of(v)):
            if o in parent and v not in parent and o in passes:
                parent[v] = o
            elif o in parent and o not in passes:
                ends.append((o, v))
    place = {v: k for k, v in enumerate(order)}
    for last, user in sorted(ends, key=lambda end: place[end[0]]):
        stop = _stop(last, user)
        if len(stop) == 1 and stop[0][0].op.name == "scan":
            continue  # the loop makes this result of other things
        path: list[Value] = []
        at: Value | None = last
        while at is not None:
            path.append(at)
            at = parent[at]
        return [*map(_lines, reversed(path)), *stop]
    return [_lines(wrt)]


def _is_several(v: Value) -> bool:
    """A loop or branch of several results: those take its place."""
    return isinstance(v.op.derivative, Regional) and isinstance(v.type, TupleType)


def _made_of(v: Value) -> Sequence[Value]:
    return v.operands[0].operands if v.op.name == "get" and _is_several(v.operands[0]) else v.operands


def _stop(last: Value, user: Value) -> Path:
    """Lines where derivatives stop between a value and its user; in the region of the user, if it has one."""
    source, result = projection(user)
    if not is_loop_or_branch(source):
        return [_lines(user)]
    return [_lines(source), *_inside(source, source.operands.index(last), result)]


def _inside(v: Value, operand: int, result: int) -> Path:
    """Lines where the path from an operand to a result stops in the regions; nothing if it does not get there at
    all."""
    first = 1 if v.op.name == "cond" else 0
    regions = range(len(v.regions)) if v.op.name == "cond" else [len(v.regions) - 1]
    if operand < first:
        return []  # it only chooses
    for k in regions:
        leaves = [fresh_input(p.type) for p in region_params(v.regions[k])]
        results = open_body(v, k, leaves)
        carries = v.attrs.get("carry", 0)
        targets = _made_in_a_loop(results[result : result + 1], dict(zip(leaves, results[:carries], strict=False)))
        reached = [operand - first]
        for p in reached:
            for target in targets:
                path = disconnection([target], leaves[p])
                if len(path) > 1:
                    return path[1:]
            reached += [c for c, mask in enumerate(connections(v.regions[k])[:carries])
                        if mask >> p & 1 and c not in reached]  # fmt: skip
    return []


def _made_in_a_loop(results: list[Value], carried: dict[Value, Value]) -> list[Value]:
    """Results of a body, and the new carries that they are made of in later steps."""
    out = dict.fromkeys(results)
    pending = list(results)
    while pending:
        pending = [c for c in dict.fromkeys(carried[v] for v in postorder(pending) if v in carried) if c not in out]
        out.update(dict.fromkeys(pending))
    return list(out)


def _lines(v: Value) -> tuple[Value, list[location.Loc]]:
    return v, location.in_order(location.noted(v))
