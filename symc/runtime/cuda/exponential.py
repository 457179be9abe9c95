"""The exponential of matrices on a device: products, an LU factorization, and as many squares as any may need."""

from __future__ import annotations

from symc.codegen.cuda.exponential_text import SQUARINGS
from symc.runtime.cpu.executor import Op
from symc.runtime.cuda.factor import factorize, solve_factored
from symc.runtime.cuda.matrices import Array, At, Emitter, Matrices, Recipe, threads_for


def _expm(e: Emitter) -> None:
    n = e.shapes[0][-1]
    total = e.count * n * n
    if not total:
        return
    blocks = -(-total // 256), 1
    halved, out = e.scratch(e.count, 4), e.results[0]
    a, a2, a4, a6, p, q, odd, even = (e.scratch(total) for _ in range(8))

    def times(c: Array, x: Array, y: Array) -> None:
        to, first, second = (Matrices(array, n, n * n) for array in (c, x, y))
        e.multiply(to, first, second, n, n, n)

    e.launch("expm_scale", (e.count, 1), [e.operands[0], a, halved, n, SQUARINGS], [a, halved], threads_for(n))
    times(a2, a, a)
    times(a4, a2, a2)
    times(a6, a4, a2)
    e.launch("expm_mix", blocks, [a2, a4, a6, p, q, n, total, False], [p, q])
    times(odd, a6, p)
    times(even, a6, q)
    e.launch("expm_mix", blocks, [a2, a4, a6, odd, even, n, total, True], [odd, even])
    times(p, a, odd)
    e.launch("expm_sides", blocks, [p, even, total], [p, even])
    order = factorize(e, p, e.scratch(e.count * n, 8), n)
    solve_factored(e, p, order, even, out, n, n)
    number, code = e.lowering.code.slot(), e.lowering.code
    code.emit(Op.SET, number, 0)
    with e.lowering.repeat(SQUARINGS):
        times(q, out, out)
        e.launch("expm_keep", blocks, [out, q, halved, n, total, At(number)], [out])
        code.emit(Op.MOVE, number, number, 1)


RECIPES: dict[str, Recipe] = {"expm": _expm}
