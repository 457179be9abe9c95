"""Second computations: nothing that is free is held under another name, and nothing that is free is waited for."""

from __future__ import annotations

from symc.ir.bodies import is_free
from symc.ir.op import splat
from symc.ir.ops.remat import again
from symc.ir.ops.shape import broadcast, reshape, transpose
from symc.ir.traverse import rebuild
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves

MOVEMENTS = ("broadcast", "transpose", "reshape")


def _examples() -> list[Value]:
    x, g = leaves(2, {}, (2, 3))
    return [
        again(splat(2.0, TensorType("f64", (3,))), x),
        again(transpose(x, perm=(1, 0)), g),
        again(x, splat(1.0, TensorType("f64")), broadcast(g, axes=(1, 2), shape=(4, 2, 3))),
        again(reshape(x, shape=(6,)), g),
    ]


@rewrite(
    "again",
    exact=True,
    family="canonicalize",
    equation="again(number) -> number; again(broadcast(x), g) -> broadcast(again(x, g)); again(x, 1, broadcast(g)) -> "
    "again(x, g)",
    examples=_examples,
    arises="checkpoints",
)
def again_of_movements(v: Value) -> Value | None:
    """Numbers and movements cost nothing: they are not kept for a second computation, nor must they be in memory."""
    x, *after = v.operands
    if is_free(x):
        return x
    if x.op.name in MOVEMENTS and len(x.operands) == 1:
        return rebuild(x, [again(x.operands[0], *after)])
    waited = list(dict.fromkeys(_behind(g) for g in after if not is_free(g)))
    return again(x, *waited) if waited != after else None


def _behind(g: Value) -> Value:
    while g.op.name in MOVEMENTS:
        (g,) = g.operands
    return g
