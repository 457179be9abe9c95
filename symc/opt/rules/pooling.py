"""Pooling: what rises with its operand is computed after the greatest of each window is found."""

from __future__ import annotations

from symc.ir.op import lookup
from symc.ir.ops.arithmetic import add, maximum, minimum, sub
from symc.ir.ops.pool import max_pool
from symc.ir.ops.shape import broadcast
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaf


def _pool(x: Value) -> Value:
    return max_pool(x, window=(2,), stride=(2,), dilation=(1,))


def _rows() -> Value:
    """One number for each row, in all of its elements."""
    return broadcast(leaf(3), axes=(0,), shape=(3, 4))


@rewrite(
    "max_pool",
    kinds="f",
    family="sinking",
    equation="max_pool(x + c) -> max_pool(x) + c, and maximum, minimum of x and c, where c is one number in a window",
    examples=lambda: [
        _pool(maximum(leaf(3, 4), 0)),
        _pool(maximum(leaf(3, 4) + _rows(), 0)),
        _pool(minimum(_rows(), leaf(3, 4))),
        _pool(leaf(3, 4) - _rows()),
    ],
    misses=lambda: [
        _pool(_rows() - leaf(3, 4)),
        _pool(maximum(leaf(3, 4), broadcast(leaf(4), axes=(1,), shape=(3, 4)))),
        _pool(lookup("mul")(leaf(3, 4), _rows())),
    ],
    written=lambda sc: [sc.max_pool(sc.relu(sc.conv(sc.tensor4("x"), sc.input("w", shape=(2, 3, 3, 3)))), 2)],
)
def max_pool_of_rising(v: Value, context) -> Value | None:
    """A bias and a relu after a convolution are computed of one element of each window, and so are their derivatives.

    Rounding keeps order: the greatest sum is the sum of the greatest.
    """
    (x,) = v.operands
    if x.op not in (add, sub, maximum, minimum) or not context.single_use(x):
        return None
    for k in (1, 0) if x.op is not sub else (1,):
        constant = _in_windows(x.operands[k], v)
        if constant is not None:
            pooled = make(v.op, [x.operands[1 - k]], v.attrs)
            return make(x.op, [pooled, constant] if k else [constant, pooled], x.attrs)
    return None


def _in_windows(x: Value, v: Value) -> Value | None:
    """A value that is the same in all elements of every window, as one element for each."""
    if x.op is not broadcast or any(a >= v.ndim - len(v.attrs["window"]) for a in x.attrs["axes"]):
        return None
    return broadcast(x.operands[0], axes=x.attrs["axes"], shape=v.shape)
