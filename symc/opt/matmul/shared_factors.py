"""share_factors: a matrix that is factorized anyway is not factorized once more for less.

The gradient of eigenvalues needs eigenvectors: then the eigenvalues come with them. An equation with the transposed
matrix is solved by the factors of the matrix. Equal factorizations are one value without this pass.
"""

from __future__ import annotations

from collections.abc import Collection

from symc.ir.function import Function
from symc.ir.op import lookup
from symc.ir.ops.factor import lu_factor
from symc.ir.ops.leaf import get
from symc.ir.ops.matrix import swapped_of
from symc.ir.ops.solve import lu_solve
from symc.ir.ops.spectral import svd
from symc.ir.traverse import replace
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.edit import Edit


@standard_pass(
    after=("canonicalize.2",),
    why="decompose makes factorizations of what has a name",
    bodies="inner", on=("part_of", "lu_solve"),
)
def share_factors(provenance: Provenance, f: Function) -> Function:
    """Values that a factorization needed anyway gives too are taken from it."""
    values = f.values()
    there = set(values)
    found = {v: new for v in values if (new := _shared(v, there)) is not None}
    if not found:
        return f
    edit = Edit(f, provenance, "share_factors")
    return edit.each(lambda v, _: replace([found[v]], edit.done)[0] if v in found else None)


def _shared(v: Value, there: Collection[Value]) -> Value | None:
    """``v`` by a factorization that is there."""
    if v.op.facts.part_of:
        name, which = v.op.facts.part_of
        op = lookup(name)
        attrs = dict(v.attrs) if op is not svd else {"full": False}
        for whole in (op(*v.operands, **attrs), *([svd(*v.operands, full=True)] if op is svd else [])):
            if whole in there:
                return whole[which]
    if v.op is lu_solve and v.dtype.kind == "f":
        lu, perm, b = v.operands
        if lu.op is get and perm.op is get and lu.operands == perm.operands and lu.operands[0].op is lu_factor:
            turned = swapped_of(lu.operands[0].operands[0])
            if turned is not None and lu_factor(turned) in there:
                other = lu_factor(turned)
                return lu_solve(other[0], other[1], b, trans="t" if v.attrs["trans"] == "n" else "n")
    return None
