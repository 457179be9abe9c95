"""Cholesky, LU, and triangular systems on a device, a strip of rows or columns at a time."""

from __future__ import annotations

from symc.runtime.cuda.matrices import Array, Emitter, Matrices, Recipe, strips, threads_for

#: So few columns are solved for by a warp each, more by a thread each.
FEW = 8
#: How many blocks there may be along y.
MOST = 65535
#: Columns that one block exchanges numbers of.
_EXCHANGED = 128


def _at_once(e: Emitter, most: int) -> int:
    """The number of rows or columns that fit into the shared memory of a block."""
    return 32 if e.dtype.itemsize == 16 else most


def _cholesky(e: Emitter) -> None:
    """A strip is what is left of the matrix less what the columns before it make of it; its square is factorized, and
    the rows below it are solved for. (So every entry is written once, by a product as long as there are columns.)"""
    *_, n, _ = e.shapes[0]
    out = e.results[0]
    low = Matrices(out, n, n * n)
    e.part(out, e.operands[0], n, n, n * n, True)
    for at, width in strips(n):
        rest = n - at - width
        if at:
            diagonal = low.part(at, at)
            e.multiply(diagonal, low.part(at, 0), low.part(at, 0), n - at, width, at, -1.0, 1.0, trans_b=2)
        e.launch("cholesky_block", (e.count, 1), [out, n, n * n, at, width], [out], threads_for(8 * width))
        if rest:
            rows = _at_once(e, 96)
            e.launch("cholesky_rows", (e.count, -(-rest // rows)), [out, n, n * n, at, width, rest], [out], rows)


def solve(e: Emitter, a: Matrices, x: Matrices, n: int, columns: int, lower: bool, trans: int, unit: bool) -> None:
    """``op(a) x = x``, in place: each strip is solved for, and what it makes of the rows that follow is taken off."""
    up = lower == bool(trans)
    for at, width in reversed(strips(n)) if up else strips(n):
        _strip(e, a, x, at, width, columns, trans, up, unit)
        start, end = (0, at) if up else (at + width, n)
        block = a.part(at, start) if trans else a.part(start, at)
        e.multiply(x.part(start, 0), block, x.part(at, 0), end - start, columns, width, -1.0, 1.0, trans_a=trans)


def _solve_triangular(e: Emitter) -> None:
    attrs = e.value.attrs
    *_, n, k = e.shapes[1]
    out = e.results[0]
    e.copy(out, e.operands[1])
    a, x = Matrices(e.operands[0], n, n * n), Matrices(out, k, n * k)
    solve(e, a, x, n, k, attrs["lower"], "ntc".index(attrs["trans"]), attrs["unit"])


def factorize(e: Emitter, out: Array, order: Array, n: int) -> Array:
    """LU factors in place; the order of rows. A strip of columns is factorized with its exchanges of rows, which the
    other columns follow; then the rows of U to its right are solved for, and their product is taken off what is left.
    """
    pivots = e.scratch(e.count * n, 4)
    a = Matrices(out, n, n * n)
    for at, width in strips(n):
        rest, after = n - at - width, at + width
        e.launch("lu_panel", (e.count, 1), [out, pivots, order, n, at, width], [out, pivots, order],
                 threads_for(4 * (n - at)))
        if n > width:
            e.launch("lu_exchange", (e.count, -(-n // _EXCHANGED)), [out, pivots, n, at, width], [out])
        if rest:
            _strip(e, a, a.part(0, after), at, width, rest, 0, False, True)
            e.multiply(a.part(after, after), a.part(after, at), a.part(at, after), rest, rest, width, -1.0, 1.0)
    return order


def _lu_factor(e: Emitter) -> None:
    out, order = e.results
    e.copy(out, e.operands[0])
    factorize(e, out, order, e.shapes[0][-1])


def _strip(e: Emitter, a: Matrices, x: Matrices, at: int, width: int, columns: int, trans: int, up: bool,
           unit: bool) -> None:
    """Solve for a strip of rows with a block on the diagonal."""
    name, threads, blocks = "solve_column", threads_for(32 * min(columns, 4)), 1
    if columns > FEW:
        name, threads = "solve_columns", _at_once(e, 64)
        blocks = min(-(-columns // threads), MOST)
    e.launch(name, (e.count, blocks), [a, x, a.ld, x.ld, a.stride, x.stride, at, width, columns, trans, up, unit],
             [x.array], threads)


def solve_factored(e: Emitter, lu: Array, order: Array, b: Array, out: Array, n: int, k: int, trans: int = 0) -> None:
    """A[p] = L U: L and U of rows in the order p, or their transposes, then rows put back."""
    total = e.count * n * k
    a = Matrices(lu, n, n * n)
    if not trans:
        e.each("rows_in_order", total, [b, order, out, n, k, total, False], [out])
        x = Matrices(out, k, n * k)
        solve(e, a, x, n, k, True, 0, True)
        solve(e, a, x, n, k, False, 0, False)
        return
    work = e.scratch(total)
    e.copy(work, b)
    x = Matrices(work, k, n * k)
    solve(e, a, x, n, k, False, trans, False)
    solve(e, a, x, n, k, True, trans, True)
    e.each("rows_in_order", total, [work, order, out, n, k, total, True], [out])


def _lu_solve(e: Emitter) -> None:
    lu, order, b = e.operands
    *_, n, k = e.shapes[2]
    solve_factored(e, lu, order, b, e.results[0], n, k, "ntc".index(e.value.attrs["trans"]))


RECIPES: dict[str, Recipe] = {
    "cholesky": _cholesky,
    "solve_triangular": _solve_triangular,
    "lu_factor": _lu_factor,
    "lu_solve": _lu_solve,
}
