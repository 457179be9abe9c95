"""reverse_loops: a loop over rows in reversed order goes the other way instead.

``scan(f, h, x[::-1])`` whose stacked results are reversed again is a scan of ``x`` in the other direction: nothing is
copied. A loop is reversed where that leaves fewer reversals than there were.
"""

from __future__ import annotations

from symc.ir.function import Function
from symc.ir.ops.control import scan
from symc.ir.ops.kernel import results_of
from symc.ir.ops.shape import flip, slice_
from symc.ir.traverse import users
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.edit import Edit, Results
from symc.opt.loops.form import Loop


@standard_pass(
    after=("stabilize",),
    why="only loops that go in one direction are merged",
    bodies="inner", on=("control",),
)
def reverse_loops(provenance: Provenance, f: Function) -> Function:
    """A loop over reversed rows goes the other way."""
    edit = Edit(f, provenance, "reverse_loops")
    uses = users(edit.values)
    results = set(f.body.results)

    def visit(old: Value, new: Value) -> Results | None:
        if new.op is not scan:
            return None
        loop = Loop(edit, new, edit.used.get(old, set()))
        stacks = [y for k, y in enumerate(results_of(old)) if k in loop.stacks]
        again = [y not in results and all(map(is_flip, uses.get(y, ()))) for y in stacks]
        reversed_rows = [is_flip(r.operand) for r in loop.rows]
        if 2 * (sum(again) + sum(reversed_rows)) <= len(stacks) + len(reversed_rows):
            return None
        for r in loop.rows:
            r.operand = flipped_rows(r.operand)
        loop.reverse = not loop.reverse
        made, out = loop.build()
        assert made is not None
        edit.record(new, made)
        return {k: flipped_rows(v) if k in loop.stacks else v for k, v in out.items()}

    return edit.run(visit)


def is_flip(v: Value) -> bool:
    """The rows of an operand, whole, in reversed order."""
    return v.op is slice_ and v is flip(v.operands[0], (0,))


def flipped_rows(v: Value) -> Value:
    """``v`` with its rows in reversed order."""
    return v.operands[0] if is_flip(v) else flip(v, (0,))
