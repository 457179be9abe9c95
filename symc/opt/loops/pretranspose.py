"""pretranspose: a matrix that every step of a loop multiplies with is laid out once, as the product reads it fastest.

``h @ W.T`` in every step (the gradient of ``h @ W``) packs a transposed operand again and again; BLAS does a product
of this size twice as fast where rows are read as rows. One transpose before the loop costs less than one step.
"""

from __future__ import annotations

from collections.abc import Collection

from symc.ir.location import NOWHERE, add_lines
from symc.ir.ops.control import scan, while_
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.shape import transpose
from symc.ir.traverse import dependent, postorder
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.loops.dead import tidy
from symc.opt.loops.edit import Results, runs
from symc.opt.loops.form import Loop, on_loops


@standard_pass(
    after=("pack",),
    why="it lays out what pack put together; hoist takes the transposed matrix out of the loops around, too; simplify "
        "would put a transpose back into the product that reads it",
    bodies="inner", on=("control",),
)
@on_loops("pretranspose", scan, while_)
def pretranspose(loop: Loop) -> Results | None:
    """A matrix that every step multiplies with is transposed once, if it must be."""
    if loop.value.attrs.get("length") == 1:
        return None
    values = postorder(loop.roots())
    once = set(values) - dependent(postorder(loop.roots()), loop.varying) if runs(loop.value) else set(loop.constants)
    across = {v: k for v in values if (k := reads_across(v, once)) is not None}
    if not across:
        return None
    changed: dict[Value, Value] = {}
    for v, k in across.items():
        (made,) = loop.move_out([transpose(v.operands[k], perm=(1, 0))])
        operands, contract = list(v.operands), list(v.attrs["contract"])
        operands[k], contract[k] = loop.capture(made), (1 - contract[k][0],)
        changed[v] = dot(*operands, contract=tuple(contract), batch=v.attrs["batch"])
        lines = loop.lines.get(v, NOWHERE)
        add_lines(loop.lines, changed[v], lines)
        loop.edit.note(made, lines)
        loop.edit.record(v, changed[v], [lines])
    loop.substitute(changed)
    tidy(loop)
    return loop.build()[1]


def reads_across(v: Value, once: Collection[Value]) -> int | None:
    """Number of the operand of a product that is contracted across its rows and the same in every step (``once``)."""
    if v.op is not dot or v.dtype.kind != "f" or v.attrs["batch"] != ((), ()):
        return None
    for k, rows in ((0, 0), (1, 1)):
        matrix, other = v.operands[k], v.operands[1 - k]
        wide = free_axes(other, v.attrs["contract"][1 - k], ())
        if matrix.ndim == 2 and wide and matrix in once and v.attrs["contract"][k] == (rows,):
            return k
    return None
