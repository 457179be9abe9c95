"""QR, eigenvalues and singular values on a device."""

from __future__ import annotations

import math

from symc.codegen.cuda.matrix_text import WIDTH
from symc.runtime.cuda.solver import Array, Emitter, Matrices, Recipe, strips, threads_for


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
        e.multiply(first, strip, right, width, rest, rows, trans_a=True)
        e.multiply(second, own, first, width, rest, width, trans_a=True)
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
        e.multiply(first, strip, below, width, rest, rows, trans_a=True)
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


def _eigh(e: Emitter) -> None:
    vectors = e.value.op.name == "eigh"
    n = e.shapes[0][-1]
    if not n:
        return
    work, turns = e.scratch(e.count * 2 * n * n), e.scratch(e.count * 2 * (n + 1))
    w, v = (*e.results, e.results[0])[:2]
    e.launch("eigen", (e.count, 1), [e.operands[0], w, v, work, turns, n, e.value.attrs["lower"], vectors],
             [w, v, work, turns], threads_for(16 * n))


def _svd(e: Emitter) -> None:
    """The vectors of the longer side are made orthogonal once more by QR, which is also where those come from that no
    singular value (or one that is 0) belongs to."""
    vectors = e.value.op.name == "svd"
    *_, m, n = e.shapes[0]
    k, length = min(m, n), max(m, n)
    u, s, vt = e.results if vectors else (e.results[0],) * 3
    if not k:
        if vectors:
            e.unit(u, m, e.shapes[1][-1])
            e.unit(vt, e.shapes[3][-2], n)
        return
    work, norms = e.scratch(e.count * k * (length + k)), e.scratch(e.count * k)
    longer, shorter = (e.scratch(e.count * length * k), vt if m >= n else u) if vectors else (work, work)
    e.launch("singular", (e.count, 1), [e.operands[0], s, longer, shorter, work, norms, m, n, vectors],
             [s, longer, shorter, work, norms], threads_for(16 * k))
    if vectors:
        out, shape = (u, e.shapes[1]) if m >= n else (vt, e.shapes[3])
        columns = min(shape[-2:]) if not e.value.attrs["full"] else length
        v, tri = _reflected(e, longer, length, k)
        q = e.scratch(e.count * length * columns)
        _orthogonal(e, q, v, tri, length, k, columns)
        total = math.prod(shape)
        e.launch("columns_signed", (-(-total // 256), 1), [q, longer, out, length, columns, k, total, m < n], [out])


RECIPES: dict[str, Recipe] = {"qr": _qr, "eigh": _eigh, "eigvalsh": _eigh, "svd": _svd, "svdvals": _svd}
