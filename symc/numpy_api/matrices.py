"""Helpers that the functions of ``sc.linalg`` share: operands as matrices of floats, their sizes, and leading axes.

Matrices lie in the last two axes; other axes are batch axes, which broadcast. Integers become floats, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, known_equal, product
from symc.ir.dtypes import finfo
from symc.ir.op import lookup, splat
from symc.ir.ops.ensure import ensured
from symc.ir.ops.shape import in_shape
from symc.ir.size_extremes import maximum
from symc.ir.types import TensorType, real_dtype
from symc.ir.value import Value
from symc.numpy_api.promotion import broadcast_shape, rows, stretch
from symc.tensors.convert import as_tensor, convert, inexact_dtype
from symc.tensors.public import public
from symc.tensors.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

#: What the names of these functions in the table of public functions start with.
PREFIX = "linalg."


def linalg(*numpy_functions: Any, memory: str = "") -> Callable[[F], F]:
    """``@linalg(np.linalg.inv)``: a function of ``sc.linalg``, and what NumPy's functions run on tensors."""

    def wrap(fn: F) -> F:
        return public(*numpy_functions, name=PREFIX + fn.__name__, memory=memory)(fn)

    return wrap


# --- operands ---------------------------------------------------------------------------------------------------------


def floats(x: Any, name: str) -> Tensor:
    """An operand in a dtype that the libraries know. Raises DTypeError for half precision."""
    t = as_tensor(x)
    if t.dtype.kind in "fc" and t.dtype.itemsize < 4:
        raise DTypeError(f"{name} is not defined for {t.dtype}", values=rows([t]),
                         help="NumPy's neither; cast first: x.astype('float32')")
    return Tensor(convert(t.value, inexact_dtype(t.dtype)))


def matrix(x: Any, name: str) -> Tensor:
    """An operand as matrices of floats."""
    t = floats(x, name)
    if t.ndim < 2:
        raise ShapeError(f"{name}: a matrix has two axes, this has {t.ndim}", values=rows([as_tensor(x)]))
    return t


def square(x: Any, name: str) -> Tensor:
    """An operand as square matrices. Two sizes that are not known to be equal are asserted to be."""
    t = matrix(x, name)
    m, n = t.value.shape[-2:]
    if m == n:
        return t
    if known_equal(m, n) is False:
        raise ShapeError(f"{name}: the matrix must be square, not {m} by {n}", values=rows([as_tensor(x)]))
    n = m if isinstance(m, int) else n
    return Tensor(lookup("ensure_shape")(t.value, shape=(*t.value.shape[:-2], n, n)))


def alike(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    """Operands (see ``floats``) in one dtype."""
    dtype = np.result_type(*[t.dtype for t in tensors])
    return [Tensor(convert(t.value, dtype)) for t in tensors]


def leading(tensors: Sequence[Tensor], cores: Sequence[int], name: str) -> tuple[Size, ...]:
    """Shape that the axes before the last ``cores[k]`` of each operand broadcast to."""
    batches = [Tensor(splat(0, TensorType("f64", t.value.shape[: t.ndim - c])))
               for t, c in zip(tensors, cores, strict=True)]
    try:
        return broadcast_shape(batches, name)
    except ShapeError:
        raise ShapeError(f"{name}: leading axes differ", values=rows(tensors),
                         help="axes before those of the matrices must be equal, or one of them 1") from None


def with_leading(t: Tensor, core: int, lead: tuple[Size, ...]) -> Value:
    """The operand with leading axes of these sizes."""
    return stretch(t.value, (*lead, *t.value.shape[t.ndim - core:]))


def eps(t: Tensor) -> float:
    """The distance from 1 to the next number of the real dtype."""
    return float(finfo(real_dtype(t.dtype)).eps)


def longest(t: Tensor) -> Any:
    """The larger of rows and columns: a number, or a symbolic one in the real dtype."""
    n = maximum(*t.value.shape[-2:])
    return n if isinstance(n, int) else Tensor(convert(as_tensor(n).value, real_dtype(t.dtype)))


def number_of_each(x: Any, t: Tensor, name: str) -> Value:
    """A tolerance for each matrix, in the real dtype."""
    lead = t.value.shape[:-2]
    given = as_tensor(x)
    if leading([given, t], [0, 2], name) != lead:
        raise ShapeError(f"{name}: there is one tolerance for each matrix", values=rows([given, t]))
    return stretch(convert(given.value, real_dtype(t.dtype)), lead)


# --- right sides ------------------------------------------------------------------------------------------------------


def solved(name: str, op: str, matrices: Sequence[Tensor], b: Tensor, **attrs: Any) -> Tensor:
    """``op(*matrices, b)`` for vectors and matrices ``b``; a ``b`` of one axis is a vector, any other a matrix.

    ``matrices``: a square matrix, perhaps followed by a vector of its rows. Right sides of one matrix become columns,
    so that it is read once.
    """
    a = matrices[0]
    if not b.ndim:
        raise ShapeError(f"{name}: the right side is a vector or a matrix, not a number", values=rows([a, b]))
    n, m = a.value.shape[-1], b.value.shape[-1 if b.ndim == 1 else -2]
    if known_equal(n, m) is False:
        raise ShapeError(f"{name}: the matrix has {n} rows, the right side {m}", values=rows([a, b]),
                         help=None if b.ndim == 1 or known_equal(b.value.shape[-1], n) is False else
                         "a right side of two or more axes is a matrix; vectors in its last axis: b[..., None]")
    at = 0 if b.ndim == 1 else b.ndim - 2
    full = tuple(n if k == at else s for k, s in enumerate(b.value.shape))
    y = ensured(b.value, full)
    if b.ndim == 1:
        lead = a.value.shape[:-2]
        column = stretch(in_shape(y, (n, 1)), (*lead, n, 1))
        return Tensor(in_shape(lookup(op)(*[t.value for t in matrices], column, **attrs), (*lead, n)))
    if a.ndim == 2 and b.ndim > 2:
        return Tensor(_as_columns(lambda wide: lookup(op)(*[t.value for t in matrices], wide, **attrs), y))
    lead = leading([a, b], [2, 2], name)
    parts = [with_leading(t, 2 - k, lead) for k, t in enumerate(matrices)]
    return Tensor(lookup(op)(*parts, with_leading(Tensor(y), 2, lead), **attrs))


def _as_columns(solve: Callable[[Value], Value], b: Value) -> Value:
    """``solve`` of all right sides of a batch at once."""
    depth = b.ndim - 2
    wide = lookup("transpose")(b, perm=(depth, *range(depth), depth + 1))
    x = solve(in_shape(wide, (wide.shape[0], product(wide.shape[1:]))))
    return lookup("transpose")(in_shape(x, wide.shape), perm=(*range(1, depth + 1), 0, depth + 1))
