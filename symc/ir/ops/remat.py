"""Computing again: what lets a graph of interned values hold the same computation twice.

Equal computations are one value, so "compute it again" needs an operand that is not the same value. ``again(x, g)`` is
x under another name: it takes no time and no memory, no rule looks through it, and what is made of it is not computed
before ``g``. ``checkpoint`` is a region whose derivative is made that way; the optimizer replaces it by its region.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import InternalError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Extern, Linear, Op, Regional, View, lookup, register
from symc.ir.ops.call import one_or_several
from symc.ir.ops.elementwise import spread
from symc.ir.ops.kernel import results_type
from symc.ir.types import TensorType, TupleType, Type
from symc.ir.value import Region, Value, param

#: What a checkpointed region may keep for its derivative besides its operands.
POLICIES = ("nothing", "dots")


# --- again ------------------------------------------------------------------------------------------------------------


def _again_infer(x: TensorType, *after: Type) -> TensorType:
    if any(isinstance(t, TupleType) for t in (x, *after)):
        raise InternalError("again takes arrays")
    return x


def _again_batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    return again(spread(operands[0], flags[0], n), *operands[1:])


def _again_samples() -> Iterator[tuple[tuple, dict]]:
    for dtype in ("f8", "f4", "c16", "i8", "?"):
        yield (np.array([[1, 0, 3]], dtype), np.ones(2)), {}
    yield (np.array(0.5),), {}


again = register(Op(
    "again",
    _again_infer,
    lambda x, *after: np.array(x),
    Linear(lambda g, v: (g, *[None] * (len(v.operands) - 1)), args=(0,)),
    View(),
    frozenset({"barrier"}),
    _again_samples,
    "x under another name: what is made of it is computed a second time, not before the other operands.",
    Facts(batch=_again_batch, same=True),
))  # fmt: skip


# --- checkpoint -------------------------------------------------------------------------------------------------------


def _checkpoint_infer(*types: TensorType, policy: str, regions: Sequence[Region]) -> Type:
    (body,) = regions
    if policy not in POLICIES:
        raise InternalError(f"checkpoint: no policy is called {policy!r}")
    if tuple(types) != tuple(body.params):
        raise InternalError(f"checkpoint: operands {types} are not the region's params {body.params}")
    return results_type([r.type for r in body.results])


def _checkpoint_samples() -> Iterator[tuple[tuple, dict]]:
    sin, mul, exp = lookup("sin"), lookup("mul"), lookup("exp")
    row = TensorType("f64", (3,))
    x, y = param(0, row), param(1, row)
    inner = mul(sin(x), y)
    for policy, results in (("nothing", [exp(inner)]), ("dots", [mul(inner, inner), y])):
        body = Region((row, row), results)
        yield (np.linspace(0.1, 1, 3), np.linspace(-1, 2, 3)), dict(policy=policy, regions=(body,))


checkpoint = register(Op(
    "checkpoint",
    _checkpoint_infer,
    one_or_several,
    Regional(),
    Extern("checkpoint"),
    frozenset({"inline"}),
    samples=_checkpoint_samples,
    doc="The region's results. For a derivative its values are computed again; `policy` says which are kept instead: "
    "nothing, or dots (matrix products). The pass `inline` replaces it by its region.", facts=Facts(rounding="none"),
))  # fmt: skip
