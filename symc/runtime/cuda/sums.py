"""Products that cuBLAS does not compute, as kernels: of whole numbers, and of axes in an order that would need a copy
first. Every element is a sum of its own."""

from __future__ import annotations

from symc.codegen.kernel.source import Form
from symc.ir.ops.arithmetic import mul
from symc.ir.ops.gemm import combine, gemm, parts, product_of
from symc.ir.ops.linalg import Axes, free_axes
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, transpose
from symc.ir.traverse import close_over
from symc.ir.value import Value, fresh_input


def form_of(v: Value) -> Form:
    """The kernel of a `dot` or `gemm`, of the operands of the step."""
    given = [fresh_input(o.type) for o in v.operands]
    if v.op is gemm:
        pair = product_of(v, given[0], given[1])
        rest = {name: x for name, x in parts(v, given).items() if name not in "ab"}
        result = combine(v, _summed(pair), rest)
    else:
        result = _summed(v, given[0], given[1])
    return close_over(given, [result]), ()


def _summed(v: Value, a: Value | None = None, b: Value | None = None) -> Value:
    """A `dot` as a sum of products."""
    a, b = v.operands[0] if a is None else a, v.operands[1] if b is None else b
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    rows, columns = free_axes(a, contract[0], batch[0]), free_axes(b, contract[1], batch[1])
    x, y = _in_order(a, (*batch[0], *rows, *contract[0])), _in_order(b, (*batch[1], *columns, *contract[1]))
    n, m, k = len(batch[0]), len(rows), len(columns)
    shape = (*v.shape, *(a.shape[i] for i in contract[0]))
    last = tuple(range(n + m + k, len(shape)))
    x = broadcast(x, axes=(*range(n + m), *last), shape=shape)
    y = broadcast(y, axes=(*range(n), *range(n + m, n + m + k), *last), shape=shape)
    return sum_(mul(x, y), axes=last) if last else mul(x, y)


def _in_order(x: Value, axes: Axes) -> Value:
    return x if axes == tuple(range(x.ndim)) else transpose(x, perm=axes)
