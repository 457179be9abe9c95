"""Decomposition: named ops that no kernel computes whole become the ops their record says (`Decompose`).

The record is the only place that knows the parts; this file only applies it. It runs after every pass that looks for
named ops, because what it leaves (a maximum, a shifted sum of exponentials) no longer shows what it means.
"""

from __future__ import annotations

from symc.ir.op import Decompose, lookup
from symc.ir.ops.leaf import get
from symc.ir.types import TupleType
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves

#: Names of ops that code generation computes as one scalar intrinsic, which is faster and as accurate.
INTRINSIC = "intrinsic"


@rewrite(
    exact=False,
    equation="named op -> its parts",
    examples=lambda: [
        lookup("logsumexp")(leaves(1, {}, (2, 3))[0], axes=(1,)),
        lookup("norm")(leaves(1, {}, (3,))[0], axes=(0,)),
        lookup("slogdet")(leaves(1, {}, (3, 3))[0])[1],
    ],
)
def decompose_named(v: Value) -> Value | None:
    """Parts can be fused with their neighbours."""
    whole = v.operands[0] if v.op is get else v
    lowering = whole.op.lowering
    if not isinstance(lowering, Decompose) or isinstance(v.type, TupleType):
        return None
    found = lowering.f(whole)
    return found[v.attrs["index"]] if isinstance(found, list) else found
