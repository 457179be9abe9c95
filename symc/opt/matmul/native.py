"""Products of 16-bit factors as a device's library has them: it reads the factors as they are stored, sums in float32
and rounds once, where casts before and after would write and read all of them in 32 bits."""

from __future__ import annotations

from symc.ir.dtypes import computed, is_half
from symc.ir.function import Function
from symc.ir.ops.cast import cast
from symc.ir.ops.linalg import dot
from symc.ir.value import Value, make
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.edit import Edit
from symc.opt.matmul.products import is_outer, is_small


@standard_pass(
    after=("fuse_matvec",),
    why="decompose takes small products apart, hoist_movements brings movements to the casts of factors; blas would "
        "add to the products that it takes",
    bodies="inner", on=("dot",), target="cuda",
)
def native_products(provenance: Provenance, f: Function) -> Function:
    """Products of 16-bit factors read them as they are stored."""
    if not any(v.op is cast and is_half(v.dtype) and v.operands[0].op is dot for v in f.values()):
        return f
    return Edit(f, provenance, "native_products").each(lambda _, v: _native(v))


def _native(v: Value) -> Value | None:
    """``cast(dot(cast(a), cast(b)))`` as a product in the narrow dtype."""
    if v.op is not cast or not is_half(v.dtype):
        return None
    (product,) = v.operands
    if product.op is not dot or product.dtype != computed(v.dtype) or is_small(product) or is_outer(product):
        return None
    factors = [_stored(o, v) for o in product.operands]
    return None if None in factors else make(dot, factors, product.attrs)  # type: ignore[arg-type]


def _stored(x: Value, v: Value) -> Value | None:
    """The factor before it was cast from the dtype of ``v``."""
    if x.op is cast:
        return x.operands[0] if x.operands[0].dtype == v.dtype else None
    if "movement" not in x.op.traits or len(x.operands) != 1:
        return None
    inner = _stored(x.operands[0], v)
    return None if inner is None else make(x.op, (inner,), x.attrs)
