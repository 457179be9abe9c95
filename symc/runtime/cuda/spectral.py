"""QR on a device; eigenvalues and singular values by cuSOLVER, which wants matrices by columns."""

from __future__ import annotations

import numpy as np

from symc.codegen.cuda.matrix_text import WIDTH
from symc.ir.types import complex_dtype
from symc.runtime.cuda.actions import FactorizationAction
from symc.runtime.cuda.device import Factorization
from symc.runtime.cuda.matrices import Array, Emitter, Matrices, Recipe, strips, threads_for


def _reflected(e: Emitter, a: Array, m: int, n: int) -> tuple[Array, Array]:
    """Make R of matrices in place (what is below its diagonal is not 0); the reflections by strips: V, and their
    triangles. What is right of a strip is multiplied by I - V tri^T V^T."""
    k = min(m, n)
    v, tri, stride_tri = e.scratch(e.count * m * k), *_triangles(e, k)
    work = e.scratch(2 * e.count * WIDTH * n)
    all_a, all_v = Matrices(a, n, m * n), Matrices(v, k, m * k)
    first, second = (Matrices(work, n, WIDTH * n, at) for at in (0, e.count * WIDTH * n))
    for at, width in strips(k):
        rows, rest = m - at, n - at - width
        own = Matrices(tri, WIDTH, stride_tri, at * WIDTH)
        e.launch("qr_panel", (e.count, 1), [a, v, own, m, n, k, at, width, stride_tri], [a, v, tri],
                 threads_for(4 * rows))
        strip, right = all_v.part(at, at), all_a.part(at, at + width)
        e.multiply(first, strip, right, width, rest, rows, trans_a=2)
        e.multiply(second, own, first, width, rest, width, trans_a=2)
        e.multiply(right, strip, second, rows, rest, width, -1.0, 1.0)
    return v, tri


def _triangles(e: Emitter, k: int) -> tuple[Array, int]:
    """Room for the triangles of all strips of k columns, and elements from those of one matrix to the next."""
    stride = len(strips(k)) * WIDTH * WIDTH
    return e.scratch(e.count * stride), stride


def _orthogonal(e: Emitter, q: Array, v: Array, tri: Array, m: int, k: int, columns: int) -> None:
    """The first columns of the product of k reflections, the last strip first."""
    e.unit(q, m, columns)
    if not k:
        return
    stride_tri = len(strips(k)) * WIDTH * WIDTH
    work = e.scratch(2 * e.count * WIDTH * columns)
    all_q, all_v = Matrices(q, columns, m * columns), Matrices(v, k, m * k)
    first, second = (Matrices(work, columns, WIDTH * columns, at) for at in (0, e.count * WIDTH * columns))
    for at, width in reversed(strips(k)):
        rows, rest = m - at, columns - at
        strip, below = all_v.part(at, at), all_q.part(at, at)
        e.multiply(first, strip, below, width, rest, rows, trans_a=2)
        e.multiply(second, Matrices(tri, WIDTH, stride_tri, at * WIDTH), first, width, rest, width)
        e.multiply(below, strip, second, rows, rest, width, -1.0, 1.0)


def _qr(e: Emitter) -> None:
    *_, m, n = e.shapes[0]
    q, r = e.results
    a = e.scratch(e.count * m * n)
    k = min(m, n)
    v = tri = a
    if k:
        e.copy(a, e.operands[0])
        v, tri = _reflected(e, a, m, n)
    _orthogonal(e, q, v, tri, m, k, e.shapes[1][-1])
    e.part(r, a, e.shapes[2][-2], n, m * n, False)


def _factorized(e: Emitter, f: Factorization, a: Array, values: Array, *vectors: Array) -> None:
    """Call the library, and raise the flag of what has no end."""
    info = e.scratch(e.count, 4)
    slots = tuple(x.slot for x in (a, values, *vectors, info))
    e.lowering.do(FactorizationAction(f, slots, e.lowering.lane))
    e.lowering.fixed = False
    reals = values.nbytes // e.real.itemsize
    e.each("matrix_found", reals, [info, values, e.count, reals], [])


def _turned(e: Emitter, to: Array, source: Array, rows: int, columns: int, conjugated: bool = False,
            name: str = "matrix_turned") -> None:
    """Write matrices by the other axis."""
    total = e.count * rows * columns
    e.each(name, total, [source, to, rows, columns, total, conjugated], [to])


def _eigh(e: Emitter) -> None:
    """Matrices by rows are, by columns, the transposes: conjugated, and with the other triangle."""
    n, vectors = e.shapes[0][-1], e.value.op.name == "eigh"
    if not n:
        return
    a = e.scratch(e.count * n * n)
    e.copy(a, e.operands[0])
    f = Factorization("eigh", n, n, e.count, e.dtype, vectors, lower=not e.value.attrs["lower"])
    _factorized(e, f, a, e.results[0])
    if vectors:
        _turned(e, e.results[1], a, n, n, True)


def _eig(e: Emitter) -> None:
    n, vectors = e.shapes[0][-1], e.value.op.name == "eig"
    if not n:
        return
    dtype = np.dtype(complex_dtype(e.dtype))
    a, x = (e.scratch(e.count * n * n, dtype.itemsize) for _ in range(2))
    _turned(e, a, e.operands[0], n, n, name="matrix_turned_complex")
    f = Factorization("eig", n, n, e.count, dtype, vectors)
    _factorized(e, f, a, e.results[0], *[x] * vectors)
    if vectors:
        _turned(e, e.results[1], x, n, n, name="complex_turned")


def _svd(e: Emitter) -> None:
    """Singular values. Of a wide matrix the transpose lies by columns, and its vectors, exchanged, by rows."""
    vectors = e.value.op.name == "svd"
    *_, m, n = e.shapes[0]
    u, s, vt = e.results if vectors else (e.results[0],) * 3
    if not min(m, n):
        if vectors:
            e.unit(u, m, e.shapes[1][-1])
            e.unit(vt, e.shapes[3][-2], n)
        return
    a = e.scratch(e.count * m * n)
    f = Factorization("svd", max(m, n), min(m, n), e.count, e.dtype, vectors, full=vectors and e.value.attrs["full"])
    if m <= n:
        e.copy(a, e.operands[0])
        return _factorized(e, f, a, s, *[vt, u] * vectors)
    _turned(e, a, e.operands[0], m, n)
    if not vectors:
        return _factorized(e, f, a, s)
    columns = e.shapes[1][-1]
    left, right = e.scratch(e.count * m * columns), e.scratch(e.count * n * n)
    _factorized(e, f, a, s, left, right)
    _turned(e, u, left, columns, m)
    _turned(e, vt, right, n, n)


RECIPES: dict[str, Recipe] = {"qr": _qr, "eigh": _eigh, "eigvalsh": _eigh, "eig": _eig, "eigvals": _eig, "svd": _svd,
                              "svdvals": _svd}
