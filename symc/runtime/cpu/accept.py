"""Sizes of a call from the shapes of its arguments: instructions that find them, and stop where they do not agree.

``symc.driver.signature`` decides the same in Python, and says why a call is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import Dim, Size, floordiv, size_name
from symc.ir.function import Guard, Input
from symc.ir.size_values import names
from symc.runtime.cpu.executor import Code
from symc.runtime.cpu.native.instructions import REFUSED, Op


def accept(code: Code, inputs: Sequence[Input], guards: Sequence[Guard], dims: Sequence[int]) -> None:
    """``dims``: for each input the slot of its first size."""
    axes = [(first + axis, s) for i, first in zip(inputs, dims, strict=True)
            for axis, s in enumerate((i.declared or i.type).shape)]
    defining = _solve(code, [(slot, s) for slot, s in axes if isinstance(s, Dim)])
    for slot, s in axes:
        if slot not in defining and names(s) <= code.sizes.names.keys():
            code.prepare(Op.STOP_UNLESS_EQUAL, slot, code.number(s), REFUSED)
    for g in guards:
        op = Op.STOP_IF_LESS if g.least else Op.STOP_UNLESS_EQUAL
        code.prepare(op, code.number(g.left), code.number(g.right), REFUSED)


def _solve(code: Code, waiting: list[tuple[int, Dim]]) -> set[int]:
    """Give every name a slot. Those axes that are a name's definition."""
    known, defining = code.sizes.names, set()
    while waiting:
        later = []
        for slot, s in waiting:
            unknown = sorted(names(s) - known.keys())
            if len(unknown) > 1:
                later.append((slot, s))
            elif unknown:
                (name,) = unknown
                if s == size_name(name):
                    known[name] = slot
                    defining.add(slot)
                else:
                    known[name] = _solution(code, slot, s, name)
        if len(later) == len(waiting):  # they cannot be told: no call is accepted
            for name in sorted({n for _, s in later for n in names(s)} - known.keys()):
                known[name] = code.number(0)
            code.refuse(1)
            break
        waiting = later
    return defining


def _solution(code: Code, slot: int, s: Dim, name: str) -> int:
    """The slot of the number for which ``s``, which is ``a * name + b``, is the size in a slot."""
    a: Size = 0
    b: Size = 0
    for monomial, c in s.terms:
        others = tuple((atom, power) for atom, power in monomial if atom != name)
        term: Size = Dim(((others, c),)) if others else c
        if dict(monomial).get(name, 0) == 1:
            a = a + term
        else:
            b = b + term
    if name in names(a) | names(b):
        code.refuse(1)
        return code.number(0)
    code.sizes.names[given := f"%{slot}"] = slot
    found = code.number(floordiv(size_name(given) - b, a))
    code.prepare(Op.STOP_IF_LESS, found, code.number(0), REFUSED)
    return found
