"""Whole derivative matrices: ``jacobian`` and ``hessian``, for sizes that are known or symbolic.

A Jacobian is a jvp or vjp of one basis vector, batched over the whole basis (``symc.grad.vmap``): no loop, and no size
needs to be known while the graph is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.errors import GradientError
from symc.grad import jvp as jvp_values
from symc.grad import vjp as vjp_values
from symc.grad import vmap as vmap_values
from symc.grad.one_op import zeros
from symc.ir.dim import known_nonnegative, product
from symc.ir.op import splat
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq
from symc.ir.ops.leaf import iota
from symc.ir.ops.shape import reshape, transpose
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value, fresh_input
from symc.tensors import pytree as nest
from symc.tensors.public import public
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import _output, _outputs, _scalar, _wrt, row, settle, stabilized
from symc.transforms.of_functions import is_function, of_function

MODES = ("auto", "fwd", "rev")


@public()
def jacobian(y: Any, wrt: Any = None, mode: str = "auto", *, argnums: int | Sequence[int] = 0,
             disconnected: str = "raise", holomorphic: bool = False) -> Any:
    """The derivative of every element of ``y`` by every element of ``wrt``: shape ``y.shape + w.shape`` for each w.

    ``wrt`` may be a nest; so may ``y``, and the result is then a nest of ``y`` with nests of ``wrt`` as leaves.
    ``mode``: "rev" costs about one gradient for an element of y, "fwd" one jvp for an element of wrt; "auto" takes what
    is smaller, as far as sizes are known. Complex values need ``holomorphic=True`` and give a textbook's derivative.
    Of a function it is a function, as with ``grad``.

    >>> x = sc.input("x", shape=(2,))
    >>> sc.compile(sc.jacobian(x**3, x))([1.0, 2.0])
    array([[ 3.,  0.],
           [ 0., 12.]])
    """
    if is_function(y):
        return of_function("jacobian", y, argnums if wrt is None else wrt, lambda z, w: jacobian(
            z, w, mode, disconnected=disconnected, holomorphic=holomorphic))
    leaves, structure = _wrt(wrt, "jacobian")
    roots, out = _outputs(y, "jacobian")
    if mode not in MODES:
        raise GradientError(f"jacobian: mode={mode!r} is no mode", help="one of " + ", ".join(map(repr, MODES)))
    complex_ = [v for v in (*roots, *leaves) if v.dtype.kind == "c"]
    if complex_ and not (holomorphic and len(complex_) == len(roots) + len(leaves)):
        raise GradientError("jacobian: some values are complex", values=[row(v) for v in complex_],
                            help="holomorphic=True, if all are complex and y is that; else take their parts")
    stable, stable_wrt = stabilized(roots, leaves)
    rows = []
    for root, original in zip(stable, roots, strict=True):
        blocks = _blocks(root, stable_wrt, _mode(mode, root, leaves))
        settle("jacobian", blocks, [original], leaves, disconnected)  # raises or warns; a block has a shape of its own
        rows.append(nest.unflatten(structure, _tensors(root, leaves, blocks)))
    return nest.unflatten(out, rows)


@public()
def hessian(cost: Any, wrt: Any = None, *, argnums: int | Sequence[int] = 0, disconnected: str = "raise") -> Any:
    """All second derivatives of the scalar ``cost``: a block of ``v.shape + w.shape`` for each two values in ``wrt``.

    The result is a nest of ``wrt`` whose leaves are nests of ``wrt``: ``hessian(c, {"a": a, "b": b})["a"]["b"]``.
    Forward mode over reverse mode. Of a function it is a function, as with ``grad``, which says what is raised.

    >>> x = sc.input("x", shape=(2,))
    >>> sc.compile(sc.hessian(sc.sum(x**3), x))([1.0, 2.0])
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    if is_function(cost):
        return of_function("hessian", cost, argnums if wrt is None else wrt,
                           lambda y, w: hessian(y, w, disconnected=disconnected))
    leaves, structure = _wrt(wrt, "hessian")
    output = _scalar(_output(cost, "hessian"), False)
    stable, stable_wrt = stabilized([output], leaves)
    found = vjp_values(stable, stable_wrt, [splat(1, output.type)])
    gradients = settle("hessian", found, [output], leaves, disconnected)
    rows = [nest.unflatten(structure, _tensors(g, leaves, _blocks(g, stable_wrt, "fwd"))) for g in gradients]
    return nest.unflatten(structure, rows)


def _tensors(y: Value, wrt: list[Value], blocks: list[Value | None]) -> list[Tensor]:
    """The blocks of one y; zeros where it does not depend on a value."""
    return [Tensor(zeros(y.type.with_shape((*y.shape, *w.shape))) if b is None else b)
            for b, w in zip(blocks, wrt, strict=True)]


def _mode(mode: str, y: Value, wrt: list[Value]) -> str:
    """Forward where y is known to be larger than all of wrt together; else reverse."""
    if mode != "auto":
        return mode
    total: Any = 0
    for w in wrt:
        total = total + w.type.size
    return "fwd" if known_nonnegative(y.type.size - total - 1) else "rev"


def _blocks(y: Value, wrt: list[Value], mode: str) -> list[Value | None]:
    """The Jacobian of y by each of ``wrt``; None where it does not depend on it."""
    return [_forward(y, w, wrt) for w in wrt] if mode == "fwd" else _reverse(y, wrt)


def _reverse(y: Value, wrt: list[Value]) -> list[Value | None]:
    seed = fresh_input(y.type)
    rows = vjp_values([y], wrt, [seed])
    found = [g for g in rows if g is not None]
    n = y.type.size
    batched = iter(vmap_values(found, [seed], [basis(y.type)], n))
    return [None if g is None else conjugate(reshape(next(batched), shape=(*y.shape, *w.shape)))
            for g, w in zip(rows, wrt, strict=True)]


def _forward(y: Value, w: Value, wrt: list[Value]) -> Value | None:
    """All of ``wrt`` are independent variables; only ``w`` moves."""
    seed = fresh_input(w.type)
    (column,) = jvp_values([y], wrt, [seed if x is w else None for x in wrt])
    if column is None:
        return None
    (batched,) = vmap_values([column], [seed], [basis(w.type)], w.type.size)
    columns_last = transpose(batched, perm=(*range(1, batched.ndim), 0))
    return reshape(columns_last, shape=(*y.shape, *w.shape))


def basis(t: TensorType) -> Value:
    """The unit vectors of the space of type ``t``, one after another along a leading axis."""
    n = product(t.shape)
    shape = (n, n)
    row_, column = (iota(shape=shape, axis=a, dtype=DTYPES["i64"]) for a in (0, 1))
    return reshape(cast(eq(row_, column), dtype=t.dtype), shape=(n, *t.shape))
