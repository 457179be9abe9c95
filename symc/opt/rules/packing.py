"""Parts of packed products: what takes a part and then takes it apart reads the whole in another shape."""

from __future__ import annotations

from symc.ir.dim import product
from symc.ir.ops.shape import reshape, slice_
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaves


def _heads(x: Value) -> Value:
    """The second of three parts of six columns, as two heads of three."""
    part = slice_(x, start=(0, 6), size=(2, 6), step=(1, 1))
    return reshape(part, shape=(2, 2, 3))


@rewrite(
    "reshape",
    exact=True,
    family="shapes",
    needs=["slice"],
    equation="reshape(slice(x)) -> slice(reshape(x)) where the sliced axis is taken apart evenly",
    examples=lambda: [example(_heads, leaves(1, {}, (2, 18)))],
)
def reshape_of_part(v: Value) -> Value | None:
    """The slice of an array in memory is a copy; its reshape is none, and a kernel that reads the slice copies nothing.
    So the heads of queries, keys and values are read where their one product has put them."""
    (part,) = v.operands
    if part.op is not slice_ or any(s != 1 for s in part.attrs["step"]):
        return None
    x = part.operands[0]
    cut = [a for a, (n, m) in enumerate(zip(part.shape, x.shape, strict=True)) if n != m]
    if len(cut) != 1 or v.ndim <= part.ndim:
        return None
    (k,) = cut
    after = part.ndim - k - 1
    last = v.ndim - after
    if v.shape[:k] != part.shape[:k] or v.shape[last:] != part.shape[k + 1 :]:
        return None
    inner = product(v.shape[k + 1 : last])
    start, whole = part.attrs["start"][k], x.shape[k]
    if not isinstance(inner, int) or not isinstance(start, int) or not isinstance(whole, int):
        return None
    if inner < 2 or start % inner or whole % inner:
        return None  # axes of size 1 are for slice_of_reshape, which goes the other way
    shape = (*x.shape[:k], whole // inner, *v.shape[k + 1 :])
    return slice_(reshape(x, shape=shape), start=tuple(start // inner if a == k else 0 for a in range(v.ndim)),
                  size=v.shape, step=(1,) * v.ndim)
