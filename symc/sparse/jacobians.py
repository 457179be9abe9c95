"""Sparse derivative matrices: the pattern is found in the graph, columns (or rows) are coloured, and those of a colour
are computed together, all colours in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import GradientError
from symc.grad import jvp as jvp_values
from symc.grad import vjp as vjp_values
from symc.grad import vmap as vmap_values
from symc.ir.dim import Dim, size_name
from symc.ir.op import splat
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq
from symc.ir.ops.ensure import ensure_shape
from symc.ir.ops.index import gather
from symc.ir.ops.leaf import iota
from symc.ir.ops.shape import broadcast, concat, reshape
from symc.ir.size_values import names
from symc.ir.traverse import Substitution, postorder
from symc.ir.types import substitute_type
from symc.ir.value import Value, fresh_input
from symc.sparse.coloring import TwoWays, column_colors, entries, star_colors, two_way_colors
from symc.sparse.formats import CSR
from symc.sparse.structure import Patterns, count, empty, every, unknown_size
from symc.sparse.value import extent_of
from symc.tensors import pytree as nest
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.sizes import known_number
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import _outputs, _scalar, _wrt, row, settle, stabilized
from symc.transforms.jacobians import MODES

Pattern = Any  # scipy.sparse.csr_array of bool


@located
def jacobian(y: Any, wrt: Any, mode: str = "auto", *, disconnected: str = "raise") -> Any:
    """The derivative of every element of ``y`` by every element of ``wrt`` as a CSR value of shape (y.size, w.size).

    Its pattern is found in the graph, whose sizes must be numbers. ``mode``: "fwd" costs a jvp for each colour of the
    columns, "rev" a vjp for each colour of the rows; "auto" takes what is less, also some of both (as of arrows).
    Nests are as in ``sc.jacobian``.
    """
    if mode not in MODES:
        raise GradientError(f"sparse.jacobian: mode={mode!r} is no mode",
                            help="one of " + ", ".join(map(repr, MODES)))
    roots, leaves, out, structure = _asked(y, wrt, "sparse.jacobian")
    stable, stable_wrt = stabilized(roots, leaves)
    rows = []
    for root, original in zip(stable, roots, strict=True):
        blocks = [_block(root, w, stable_wrt, mode) for w in stable_wrt]
        settle("sparse.jacobian", [None if b is None else w for b, w in zip(blocks, leaves, strict=True)], [original],
               leaves, disconnected)
        rows.append(nest.unflatten(structure, _filled(root, stable_wrt, blocks)))
    return nest.unflatten(out, rows)


@located
def hessian(cost: Any, wrt: Any, *, disconnected: str = "raise") -> Any:
    """All second derivatives of the scalar ``cost``, both triangles, as a CSR value of shape (w.size, w.size).

    For a nest ``wrt`` the result is a nest of nests, as of ``sc.hessian``; its blocks are of shape (v.size, w.size).
    Columns are coloured so that each entry or its mirror image is computed.
    """
    (output,), leaves, _, structure = _asked(cost, wrt, "sparse.hessian")
    _scalar(output, False)
    (stable,), stable_wrt = stabilized([output], leaves)
    found = vjp_values([stable], stable_wrt, [splat(1, stable.type)])
    gradients = settle("sparse.hessian", found, [output], leaves, disconnected)
    rows = []
    for g, w in zip(gradients, stable_wrt, strict=True):
        blocks = [_symmetric(g, w, stable_wrt) if x is w else _block(g, x, stable_wrt, "fwd") for x in stable_wrt]
        rows.append(nest.unflatten(structure, _filled(g, stable_wrt, blocks)))
    return nest.unflatten(structure, rows)


@located
def jacobian_pattern(y: Any, wrt: Any) -> Any:
    """The elements of ``wrt`` that elements of ``y`` depend on: a SciPy CSR array of bools, of shape (y.size, w.size).

    It holds every entry of the Jacobian that is not zero everywhere, and may hold others. ``scipy.optimize`` takes it
    as ``jac_sparsity``.
    """
    roots, leaves, out, structure = _asked(y, wrt, "sparse.jacobian_pattern")
    stable, stable_wrt = stabilized(roots, leaves)
    rows = []
    for root in stable:
        found = [_forward(root, w, stable_wrt)[1] for w in stable_wrt]
        rows.append(nest.unflatten(structure, [empty(count(root), count(w)) if p is None else p
                                               for p, w in zip(found, leaves, strict=True)]))
    return nest.unflatten(out, rows)


def _asked(y: Any, wrt: Any, what: str) -> tuple[list[Value], list[Value], nest.Nest, nest.Nest]:
    """The values of a call with their nests. Raises GradientError for complex ones, ShapeError for unknown sizes."""
    leaves, structure = _wrt(wrt, what)
    roots, out = _outputs(y, what)
    if any(v.dtype.kind == "c" for v in (*roots, *leaves)):
        raise GradientError(f"{what}: some values are complex", values=[row(v) for v in (*roots, *leaves)],
                            help="take real and imaginary parts")
    for v in (*leaves, *roots):
        for axis, size in enumerate(v.shape):
            if known_number(size) is None:
                raise unknown_size(row(v), axis, size)
    return roots, leaves, out, structure


# --- blocks -----------------------------------------------------------------------------------------------------------


def _forward(y: Value, w: Value, wrt: Sequence[Value]) -> tuple[Value | None, Pattern | None, Value]:
    """The tangent of y when w alone moves, its pattern, and the tangent of w."""
    seed = fresh_input(w.type)
    (column,) = jvp_values([y], list(wrt), [seed if x is w else None for x in wrt])
    return column, None if column is None else _pattern(column, seed), seed


def _reverse(y: Value, w: Value) -> tuple[Value | None, Pattern | None, Value]:
    """The cotangent of w, the transpose of its pattern, and the cotangent of y."""
    seed = fresh_input(y.type)
    (line,) = vjp_values([y], [w], [seed])
    return line, None if line is None else _pattern(line, seed).T.tocsr(), seed


def _block(y: Value, w: Value, wrt: Sequence[Value], mode: str) -> CSR | None:
    """The Jacobian of y by w; None where it does not depend on it."""
    one, pattern, seed = _reverse(y, w) if mode == "rev" else _forward(y, w, wrt)
    if one is None or pattern is None:
        return None
    colors, across = _chosen(pattern, mode)
    ways = two_way_colors(pattern, int(colors.max(initial=-1)) + 1) if mode == "auto" else None
    if ways is not None:
        return _csr(pattern, _both_ways(pattern, ways, (one, seed), _cotangent(y, w)))
    if across and mode == "auto":
        one, seed = _cotangent(y, w)
    rows, columns = entries(pattern)
    here, there = (rows, columns) if across else (columns, rows)
    return _csr(pattern, _compressed(one, seed, colors, colors[here], there))


def _both_ways(pattern: Pattern, ways: TwoWays, column: tuple[Value, Value], line: tuple[Value, Value]) -> Value:
    """The numbers of entries, some of a tangent (with its seed), the others of a cotangent."""
    rows, columns = entries(pattern)
    down, across = ~ways.across, ways.across
    parts = [_compressed(*column, ways.columns, ways.columns[columns[down]], rows[down]),
             _compressed(*line, ways.rows, ways.rows[rows[across]], columns[across])]
    order = np.argsort(np.concatenate([np.flatnonzero(down), np.flatnonzero(across)]))
    return gather(concat(*parts, axis=0), _constant(order), axes=(0,))


def _filled(y: Value, wrt: Sequence[Value], blocks: Sequence[CSR | None]) -> list[CSR]:
    """The blocks of one y; without entries where it does not depend on a value."""
    return [_csr(empty(count(y), count(w)), _none(y)) if b is None else b for b, w in zip(blocks, wrt, strict=True)]


def _cotangent(y: Value, w: Value) -> tuple[Value, Value]:
    seed = fresh_input(y.type)
    (line,) = vjp_values([y], [w], [seed])
    assert line is not None  # a value that moves y
    return line, seed


def _chosen(pattern: Pattern, mode: str) -> tuple[np.ndarray, bool]:
    """Colours of the columns, or of the rows (True)."""
    if mode == "rev":
        return column_colors(pattern.T), True
    least = [int(np.diff(p.indptr).max(initial=0)) for p in (pattern, pattern.T.tocsr())]
    if mode == "auto" and least[1] < least[0]:
        colors = column_colors(pattern.T)
        if colors.max(initial=-1) < least[0]:
            return colors, True
        other = column_colors(pattern)
        return (colors, True) if colors.max() < other.max() else (other, False)
    return column_colors(pattern), False


def _symmetric(g: Value, w: Value, wrt: Sequence[Value]) -> CSR | None:
    """The Jacobian of a gradient by what it is the gradient of."""
    column, pattern, seed = _forward(g, w, wrt)
    if column is None or pattern is None:
        return None
    pattern = (pattern + pattern.T).tocsr()
    colors = star_colors(pattern)
    rows, columns = entries(pattern)
    first, second = colors[rows], colors[columns]
    return _csr(pattern, _compressed(column, seed, colors, np.minimum(first, second),
                                     np.where(first < second, columns, rows)))


def _compressed(one: Value, seed: Value, colors: np.ndarray, group: np.ndarray, place: np.ndarray) -> Value:
    """Numbers of a derivative along sums of unit vectors, those of each colour: for each entry the one of a ``group``
    at a ``place``."""
    if not group.size:
        return _none(one)
    number = int(colors.max()) + 1
    shape = tuple(known_number(s) for s in seed.shape)
    chosen = _constant(colors.reshape(shape))
    full = (number, *shape)
    unit = eq(broadcast(chosen, axes=tuple(range(1, len(full))), shape=full), iota(shape=full, axis=0,
                                                                                  dtype=chosen.dtype))
    basis = ensure_shape(cast(unit, dtype=seed.dtype), shape=(number, *seed.shape))
    (batch,) = vmap_values([one], [seed], [basis], number)
    size = one.type.size
    flat = reshape(batch, shape=(number * size,))
    return gather(flat, _constant(group * known_number(size) + place), axes=(0,))


# --- patterns ---------------------------------------------------------------------------------------------------------


def _pattern(one: Value, seed: Value) -> Pattern:
    """The pattern of a value that is linear in ``seed``, with sizes as numbers: those of the call, in a trace."""
    one, seed = _numbered(one, seed)
    n = count(seed)
    found = Patterns({seed: [every(n)]}, {}, n).of([one])[0]
    pattern = empty(count(one), n) if found is None else found
    pattern.sum_duplicates()
    return pattern


def _numbered(one: Value, seed: Value) -> tuple[Value, Value]:
    values = postorder([one])
    asked = {name for v in [*values, seed] for t in getattr(v.type, "items", (v.type,)) for s in t.shape
             if isinstance(s, Dim) for name in names(s)}
    sizes = {name: number for name in sorted(asked) if (number := known_number(size_name(name))) is not None}
    if not sizes:
        return one, seed
    leaves = {v: fresh_input(substitute_type(v.type, sizes))  # type: ignore[arg-type]
              for v in values if v.op.name == "input"}
    (new,) = Substitution(sizes).values([one], leaves)
    return new, leaves[seed]


def _constant(numbers: np.ndarray) -> Value:
    fits = numbers.max(initial=0) <= np.iinfo(np.int32).max
    return as_tensor(numbers.astype(np.int32 if fits else np.int64)).value


def _none(like: Value) -> Value:
    return splat(0, like.type.with_shape((0,)))


def _csr(pattern: Pattern, data: Value) -> CSR:
    return CSR(Tensor(_constant(pattern.indptr)), Tensor(_constant(pattern.indices)), Tensor(data),
               extent_of(pattern.shape), ())
