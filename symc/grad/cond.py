"""Derivatives of ``cond``: a cond of the same choice, whose branches are the derivatives of the branches.

A branch of the derivative computes what it needs of its branch again: what was not chosen is not computed in either.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.grad.forward import jvp
from symc.grad.masks import selects
from symc.grad.one_op import zeros
from symc.grad.reverse import arrivals
from symc.grad.varying import bits, reach
from symc.ir.bodies import cond_of_leaves
from symc.ir.closure_scope import ClosureScope, open_quietly
from symc.ir.ops.kernel import results_of
from symc.ir.value import Value

Maybe = Value | None


def cond_vjp(v: Value, cotangents: Sequence[Maybe], needed: Sequence[bool], masked: bool) -> list[Maybe]:
    """The cotangents of the operands, given those of the results."""
    given = [k for k, g in enumerate(cotangents) if g is not None]
    tables = reach(v)
    wanted = sorted({k for r in given for k in bits(tables[r]) if needed[k]})
    scope = ClosureScope()
    which, *operands = scope.leaves(v.operands)
    gs = [scope.enter(g) for g in cotangents if g is not None]
    found = []
    for k in range(len(v.regions)):
        results = open_quietly(v, k, operands)
        found.append(arrivals([results[r] for r in given], [operands[k - 1] for k in wanted], gs,
                              masked=masked or selects(v)))
    moved = [j for j in range(len(wanted)) if any(branch[j] is not None for branch in found)]
    made = _choose(which, [[branch[j] for j in moved] for branch in found])
    out: list[Maybe] = [None] * len(v.operands)
    for j, c in zip(moved, made, strict=True):
        out[wanted[j]] = c
    return scope.leave(out)


def cond_jvp(v: Value, tangents: Sequence[Maybe]) -> list[Maybe]:
    """The tangents of the results, given those of the operands."""
    scope = ClosureScope()
    which, *operands = scope.leaves(v.operands)
    moves = [None if t is None else scope.enter(t) for t in tangents[1:]]
    found = [jvp(open_quietly(v, k, operands), operands, moves) for k in range(len(v.regions))]
    moved = [r for r in range(len(found[0])) if any(branch[r] is not None for branch in found)]
    made = _choose(which, [[branch[r] for r in moved] for branch in found])
    by = dict(zip(moved, made, strict=True))
    return scope.leave([by.get(r) for r in range(len(found[0]))])


def _choose(which: Value, branches: Sequence[Sequence[Maybe]]) -> list[Value]:
    """A cond whose branches were built on leaves; a result that one branch lacks is zeros there."""
    if not branches[0]:
        return []
    types = [next(r.type for r in rows if r is not None) for rows in zip(*branches, strict=True)]
    filled = [[zeros(t) if r is None else r for r, t in zip(branch, types, strict=True)] for branch in branches]
    return results_of(cond_of_leaves(which, filled))
