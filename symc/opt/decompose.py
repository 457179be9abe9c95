"""Decomposition: ops that no backend has become the ops that their records say they are made of.

It comes after rules have had their chance to see the named ops, and before fusion, which sees the parts.
"""

from __future__ import annotations

from symc.ir.function import Function
from symc.ir.location import NOWHERE
from symc.ir.op import Decompose
from symc.ir.traverse import postorder, rebuild
from symc.ir.value import Value


def decompose(f: Function) -> Function:
    """The function without values that are lowered by decomposition; parts get the lines of what they are part of."""
    while any(isinstance(v.op.lowering, Decompose) for v in f.values()):  # parts may have parts
        f = _decompose_once(f)
    return f


def _decompose_once(f: Function) -> Function:
    done: dict[Value, Value] = {}
    hints = dict(f.hints)

    def note(old: Value, new: Value) -> None:
        if new is not old and old in hints:
            hints[new] = hints.get(new, NOWHERE) | hints[old]

    for v in f.values():
        new = done[v] = rebuild(v, [done[o] for o in v.operands])
        note(v, new)
        if isinstance(new.op.lowering, Decompose):
            done[v] = new.op.lowering.f(new)
            for part in postorder([done[v]], stop=set(new.operands).__contains__):
                if part not in new.operands and part.operands:
                    note(new, part)
    return f.with_results([done[r] for r in f.body.results], hints)
