"""Derivatives of `root` by the implicit function theorem: from f(x, a) = 0 follows J dx = -(df/da) da.

However the answer was found, its derivative costs one linear solve, and nothing of the search is kept for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.grad.forward import jvp
from symc.grad.one_op import filled, varies, zeros
from symc.grad.reverse import vjp
from symc.ir.closure_scope import ClosureScope, open_quietly, substitute
from symc.ir.ops.arithmetic import neg
from symc.ir.ops.kernel import results_of
from symc.ir.value import Value, fresh_input

Maybe = Value | None
SOLVE, EQUATION, LINEAR, TRANSPOSED = range(4)


def root_jvp(v: Value, tangents: Sequence[Maybe]) -> list[Maybe]:
    """The tangent of every answer, given those of the operands."""
    scope = ClosureScope()
    answers, operands = scope.leaves(results_of(v)), scope.leaves(v.operands)
    moves = [None if t is None else scope.leaf(t) for t in tangents]
    equation = open_quietly(v, EQUATION, [*answers, *operands])
    moved = jvp(equation, operands, moves)
    right = [zeros(a.type) if m is None else neg(m) for a, m in zip(answers, moved, strict=True)]
    found = open_quietly(v, LINEAR, [*right, *answers, *operands])
    return scope.leave([x if varies(x.type) else None for x in found])


def root_vjp(v: Value, cotangents: Sequence[Maybe], needed: Sequence[bool] = (), masked: bool = False) -> list[Maybe]:
    """The cotangents of the operands: J^T u = cotangent, then -u through the equation."""
    scope = ClosureScope()
    answers, operands = scope.leaves(results_of(v)), scope.leaves(v.operands)
    seeds = [zeros(a.type) if g is None else scope.leaf(g) for a, g in zip(answers, cotangents, strict=True)]
    if len(v.regions) > TRANSPOSED:
        found = open_quietly(v, TRANSPOSED, [*seeds, *answers, *operands])
    else:
        found = _transposed(v, seeds, answers, operands)
    equation = open_quietly(v, EQUATION, [*answers, *operands])
    wrt = [o for o in operands if varies(o.type)]
    back = iter(vjp(equation, wrt, [neg(u) for u in found], masked=masked))
    return scope.leave([next(back) if varies(o.type) else None for o in operands])


def _transposed(v: Value, seeds: Sequence[Value], answers: Sequence[Value], operands: Sequence[Value]) -> list[Value]:
    """The transpose of the linear solve. It is linear in its right side, so its derivative may be taken at 0."""
    rights = [fresh_input(s.type) for s in seeds]
    solved = open_quietly(v, LINEAR, [*rights, *answers, *operands])
    found = vjp(solved, rights, list(seeds))
    return substitute(filled(found, rights), {r: zeros(r.type) for r in rights})
