"""QR, eigenvalues and singular values on a device."""

from __future__ import annotations

import math
from collections.abc import Callable

from symc.codegen.cuda.matrix_text import WIDTH
from symc.runtime.cpu.executor import Op
from symc.runtime.cuda.matrices import Array, At, Emitter, Matrices, Recipe, state_of, strips, threads_for

#: Of matrices up to this size one block of threads does all rounds of rotations.
SMALL = 128
#: After how many sweeps it is said that there is no end: of small matrices, where less costs nothing, and of others.
LONGEST, SWEEPS = 40, 16


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


def _rounds(e: Emitter, n: int, check: Callable[[], None], each: Callable[[int], None]) -> None:
    """All sweeps of a large matrix, a launch or two for each round. ``each`` is given the slot of the round's number.
    When a check has found that no more is needed, the launches that are left return at once."""
    rounds = n + n % 2 - 1
    number, code = e.lowering.code.slot(), e.lowering.code
    with e.lowering.repeat(SWEEPS):
        check()
        code.emit(Op.SET, number, 0)
        with e.lowering.repeat(rounds):
            each(number)
            code.emit(Op.MOVE, number, number, 1)
    check()


def _eigh(e: Emitter) -> None:
    vectors = e.value.op.name == "eigh"
    n = e.shapes[0][-1]
    if not n:
        return
    work, turns, state = e.scratch(e.count * 2 * n * n), e.scratch(e.count * 5 * ((n + 1) // 2)), state_of(e)
    w, v = (*e.results, e.results[0])[:2]
    one, threads = (e.count, 1), threads_for(16 * n)
    e.launch("eigen_start", one, [e.operands[0], work, state, n, e.value.attrs["lower"], vectors], [work, state],
             threads)
    if n <= SMALL:
        e.launch("eigen_sweeps", one, [work, turns, state, n, vectors, LONGEST], [work, turns, state], threads)
    else:
        def each(number: int) -> None:
            round_ = At(number)
            e.launch("eigen_round_rows", (e.count, -(-n // 8)), [work, turns, state, n, vectors, round_], [work, turns])
            e.launch("eigen_round_columns", (e.count, -(-n // 4)), [work, turns, state, n, round_], [work])

        _rounds(e, n, lambda: e.launch("eigen_check", one, [work, state, n], [state]), each)
    e.launch("eigen_end", one, [work, state, w, v, n, vectors], [w, v], threads)


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
    longer, shorter = (e.scratch(e.count * length * k), vt if m >= n else u) if vectors else (s, s)
    _rotated(e, s, longer, shorter, vectors)
    if vectors:
        out, shape = (u, e.shapes[1]) if m >= n else (vt, e.shapes[3])
        columns = length if e.value.attrs["full"] else k
        v, tri = _reflected(e, longer, length, k)
        q = e.scratch(e.count * length * columns)
        _orthogonal(e, q, v, tri, length, k, columns)
        total = math.prod(shape)
        e.launch("columns_signed", (-(-total // 256), 1), [q, longer, out, length, columns, k, total, m < n], [out])


def _rotated(e: Emitter, s: Array, longer: Array, shorter: Array, vectors: bool) -> None:
    """Singular values, and the vectors of both sides."""
    *_, m, n = e.shapes[0]
    k, length = min(m, n), max(m, n)
    work, norms, state = e.scratch(e.count * k * (length + k)), e.scratch(e.count * k, e.real.itemsize), state_of(e)
    one, threads = (e.count, 1), threads_for(16 * k)
    e.launch("singular_start", one, [e.operands[0], work, state, m, n, vectors], [work, state], threads)
    if k <= SMALL:
        e.launch("singular_sweeps", one, [work, state, k, length, vectors, LONGEST], [work, state], threads)
    else:
        # The first check finds that something has moved.
        e.launch("singular_check", (-(-e.count // 32), 1), [state, e.count, 1], [state])

        def each(number: int) -> None:
            e.launch("singular_round", (e.count, -(-k // 8)), [work, state, k, length, vectors, At(number)],
                     [work, state])

        _rounds(e, k, lambda: e.launch("singular_check", (-(-e.count // 32), 1), [state, e.count, 0], [state]), each)
    e.launch("singular_end", one, [work, state, norms, s, longer, shorter, k, length, vectors, m >= n],
             [norms, s, longer, shorter], threads)


RECIPES: dict[str, Recipe] = {"qr": _qr, "eigh": _eigh, "eigvalsh": _eigh, "svd": _svd, "svdvals": _svd}
