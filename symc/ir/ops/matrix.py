"""Helpers that the ops on matrices share: types, masks, products over leading batch axes, and references one matrix at
a time.

A matrix lies in the last two axes; leading axes are batch axes, which all operands of an op have alike. The front end
broadcasts. This file registers nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, LinAlgError, ShapeError
from symc.ir.dim import Size
from symc.ir.op import lookup, splat
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.cast import cast, in_dtype
from symc.ir.ops.compare import eq, ge, gt, le, lt
from symc.ir.ops.elementwise import batch_leading, like
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.leaf import iota
from symc.ir.ops.linalg import dot
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast, transpose
from symc.ir.types import DTYPES, TensorType, complex_dtype, real_dtype
from symc.ir.value import Value, make

#: Dtypes that the libraries know.
FLOATS = tuple(DTYPES[n] for n in ("f32", "f64", "c64", "c128"))


# --- types ------------------------------------------------------------------------------------------------------------


def check_matrix(name: str, t: TensorType) -> tuple[Size, Size]:
    """Rows and columns. Raises for what is no matrix of a dtype that the libraries know."""
    if t.dtype not in FLOATS:
        raise DTypeError(f"{name} is not defined for {t}", help="it takes f32, f64, c64 and c128")
    if t.ndim < 2:
        raise ShapeError(f"{name}: a matrix has two axes, {t} has {t.ndim}")
    return t.shape[-2], t.shape[-1]


def check_square(name: str, t: TensorType) -> Size:
    """The size of a square matrix."""
    m, n = check_matrix(name, t)
    if m != n:
        raise ShapeError(f"{name}: the matrix must be square, not {m} by {n}: {t}")
    return n


def check_right_side(name: str, a: TensorType, b: TensorType) -> None:
    """``b`` has the batch axes, the rows and the dtype of the square matrix ``a``."""
    n = check_square(name, a)
    if a.dtype != b.dtype:
        raise DTypeError(f"{name}: operand dtypes differ: {a} and {b}")
    if b.ndim != a.ndim or b.shape[:-1] != (*a.shape[:-2], n):
        raise ShapeError(f"{name}: the right side {b} does not fit the matrix {a}")


def check_choice(name: str, attribute: str, given: Any, known: Sequence[Any]) -> None:
    if given not in known:
        raise ShapeError(f"{name}: {attribute} is one of {', '.join(map(repr, known))}, not {given!r}")


# --- references -------------------------------------------------------------------------------------------------------

Arrays = Sequence[np.ndarray]


def checked(why: str, run: Callable[..., Any], *arrays: np.ndarray, help: str | None = None) -> Any:
    """``run(*arrays)``; where the library raises LinAlgError, the error says ``why``, and what helps."""
    try:
        return run(*arrays)
    except np.linalg.LinAlgError as e:
        if isinstance(e, LinAlgError):
            raise
        raise LinAlgError(why, help=help) from e


def one_by_one(run: Callable[..., Any], arrays: Arrays, results: Sequence[np.ndarray]) -> None:
    """Fill ``results`` with what ``run`` gives for the matrices of every batch entry."""
    depth = arrays[0].ndim - 2
    for k in np.ndindex(*arrays[0].shape[:depth]):
        found = run(*[a[k] for a in arrays])
        for out, x in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
            out[k] = x


# --- values -----------------------------------------------------------------------------------------------------------


def swapped(x: Value) -> Value:
    """The transposed matrices."""
    n = x.ndim
    return transpose(x, perm=(*range(n - 2), n - 1, n - 2))


def swapped_of(v: Value) -> Value | None:
    """The matrices of which ``v`` is the transposed ones."""
    n = v.ndim
    return v.operands[0] if v.op is transpose and v.attrs["perm"] == (*range(n - 2), n - 1, n - 2) else None


def adjoint(x: Value) -> Value:
    """The conjugated transposed matrices."""
    return conjugate(swapped(x))


def product(a: Value, b: Value, *, left: str = "n", right: str = "n") -> Value:
    """``op(a) @ op(b)``; ``left`` and ``right`` say what op is: "n" nothing, "t" transposed, "c" conjugated too."""
    batch = tuple(range(a.ndim - 2))
    i, j = (a.ndim - 1 if left == "n" else a.ndim - 2), (a.ndim - 2 if right == "n" else a.ndim - 1)
    a, b = (conjugate(x) if how == "c" else x for x, how in ((a, left), (b, right)))
    return dot(a, b, contract=((i,), (j,)), batch=(batch, batch))


def rows_and_columns(t: TensorType) -> tuple[Value, Value]:
    """The row and the column of every element."""
    shape, i64 = t.shape, DTYPES["i64"]
    return iota(shape=shape, axis=t.ndim - 2, dtype=i64), iota(shape=shape, axis=t.ndim - 1, dtype=i64)


_SIDES = {"lower": ge, "strictly lower": gt, "upper": le, "strictly upper": lt, "diagonal": eq}


def side(t: TensorType, which: str) -> Value:
    """True where an element is on that side of the diagonal."""
    return _SIDES[which](*rows_and_columns(t))


def part(x: Value, which: str) -> Value:
    """The elements on that side of the diagonal, zeros elsewhere."""
    return where(side(x.type, which), x, like(x, 0))


def eye(t: TensorType) -> Value:
    """The unit matrix of type ``t``."""
    return cast(side(t, "diagonal"), dtype=t.dtype)


def diagonal_of(x: Value) -> Value:
    """The diagonal of square matrices, along a new last axis."""
    shape = (*x.shape[:-2], x.shape[-1])
    place = [iota(shape=shape, axis=a, dtype=DTYPES["i64"]) for a in range(len(shape))]
    return gather(x, *place, place[-1], axes=tuple(range(x.ndim)))


def diagonal_matrix(d: Value) -> Value:
    """Square matrices with these diagonals."""
    shape = (*d.shape, d.shape[-1])
    t = TensorType(d.dtype, shape)
    return where(side(t, "diagonal"), by_column(d, shape), splat(0, t))


def by_column(d: Value, shape: Sequence[Size]) -> Value:
    """``d[..., j]`` in every row of matrices of ``shape``."""
    return broadcast(d, axes=(*range(d.ndim - 1), d.ndim), shape=tuple(shape))


def by_row(d: Value, shape: Sequence[Size]) -> Value:
    """``d[..., i]`` in every column of matrices of ``shape``."""
    return broadcast(d, axes=tuple(range(d.ndim)), shape=tuple(shape))


def permuted(x: Value, perm: Value) -> Value:
    """Row ``perm[i]`` of ``x`` as row i."""
    return gather(x, *_row_places(perm), axes=tuple(range(perm.ndim)))


def permuted_back(x: Value, perm: Value) -> Value:
    """Row i of ``x`` as row ``perm[i]``."""
    return scatter(like(x, 0), x, *_row_places(perm), axes=tuple(range(perm.ndim)), mode="set")


def _row_places(perm: Value) -> list[Value]:
    batch = [iota(shape=perm.shape, axis=a, dtype=perm.dtype) for a in range(perm.ndim - 1)]
    return [*batch, perm]


def hermitian(x: Value, lower: bool) -> Value:
    """The hermitian matrices of which ``x`` has one triangle; of the diagonal, the real part counts."""
    rows, columns = rows_and_columns(x.type)
    given, other = (gt, lt) if lower else (lt, gt)
    back = adjoint(x)
    middle = in_dtype(lookup("real")(x), x.dtype) if x.dtype.kind == "c" else x
    return where(given(rows, columns), x, where(other(rows, columns), back, middle))


def to_triangle(s: Value, lower: bool) -> Value:
    """The cotangent of a triangle, when ``s`` is that of the hermitian matrix made of it (see ``hermitian``)."""
    rows, columns = rows_and_columns(s.type)
    middle = in_dtype(lookup("real")(s), s.dtype) if s.dtype.kind == "c" else s
    inside = (gt if lower else lt)(rows, columns)
    return where(inside, s + adjoint(s), where(eq(rows, columns), middle, like(s, 0)))


def imaginary(x: Value) -> Value:
    """``i * imag(x)`` of complex numbers."""
    return lookup("complex")(like(lookup("real")(x), 0), lookup("imag")(x))


def as_complex(x: Value) -> Value:
    return in_dtype(x, complex_dtype(x.dtype))


def inverse_or_zero(x: Value) -> Value:
    """1 / x, and 0 for 0."""
    none = eq(x, like(x, 0))
    return where(none, like(x, 0), like(x, 1) / where(none, like(x, 1), x))


def total(*terms: Value | None) -> Any:
    """The sum of those that are there."""
    out: Value | None = None
    for t in terms:
        out = t if out is None else out if t is None else out + t
    return out


# --- batches ----------------------------------------------------------------------------------------------------------


def batch_columns(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """As ``batch_leading``; a batch of right sides of one matrix becomes more columns."""
    if any(flags[:-1]):
        return batch_leading(v, operands, flags, n)
    b = operands[-1]
    wide = transpose(b, perm=(*range(1, b.ndim - 1), 0, b.ndim - 1))
    k = b.shape[-1]
    x = make(v.op, [*operands[:-1], lookup("reshape")(wide, shape=(*wide.shape[:-2], n * k))], v.attrs)
    x = lookup("reshape")(x, shape=wide.shape)
    return transpose(x, perm=(b.ndim - 2, *range(b.ndim - 2), b.ndim - 1))


# --- samples ----------------------------------------------------------------------------------------------------------

Sample = tuple[tuple[Any, ...], dict[str, Any]]
Shape = tuple[int, ...]


def each_dtype(shapes: Iterable[Shape], arrays: Callable[[np.random.Generator, Shape, bool], tuple[np.ndarray, ...]],
               attrs: Sequence[dict[str, Any]] = ({},)) -> Iterator[Sample]:
    """Samples of all shapes in all dtypes. ``arrays(rng, shape, is_complex)`` makes operands of doubles."""
    for shape, given, dtype in itertools.product(shapes, attrs, FLOATS):
        made = arrays(np.random.default_rng(0), shape, dtype.kind == "c")
        kinds = {"c": dtype, "f": real_dtype(dtype)}
        yield tuple(a.astype(kinds.get(a.dtype.kind, a.dtype)) for a in made), dict(given)


def squares(make: Callable[..., np.ndarray], *first: np.ndarray) -> Iterator[Sample]:
    """Samples of square matrices in all dtypes, and ``first``; of none and of none in a batch."""
    yield from each_dtype([(3, 3), (2, 2, 3, 3), (1, 1)], lambda *how: (make(*how),))
    for x in (*first, np.ones((0, 0)), np.ones((0, 2, 2))):
        yield (x,), {}


def normal(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if is_complex else x


def well_conditioned(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    """Square matrices that are far from singular, with rows that a factorization has to exchange."""
    x = 0.3 * normal(rng, shape, is_complex)
    n = shape[-1]
    return x + np.eye(n)[::-1] * np.arange(2, n + 2)


def positive_definite(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    x = 0.3 * normal(rng, shape, is_complex)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1]) * np.arange(2, shape[-1] + 2)
