"""Rows that are read ahead: which kernels ask for them, and that numbers do not depend on it."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.render import Source
from symc.runtime.compilers.llvm_compile import kernel_ir
from symc.runtime.compilers.next_rows import LEAST, rows_ahead

#: Of each kernel the operands of which rows are asked for.
KERNELS = {
    "softmax": (lambda x, y: sc.softmax(x, axis=1), ["a0"]),
    "of a sum": (lambda x, y: sc.logsumexp(x + y, axis=1), ["a0", "a1"]),
    "a mean, then functions": (lambda x, y: sc.tanh(x - x.mean(axis=1, keepdims=True)), ["a0"]),
    "functions at once": (lambda x, y: sc.exp(x).sum(axis=1, keepdims=True) * x, []),
    "no functions": (lambda x, y: x - x.mean(axis=1, keepdims=True), []),
    "one loop": (lambda x, y: sc.exp(x) + y, []),
    "columns": (lambda x, y: sc.exp(x).sum(axis=0), []),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_which_kernels_ask(name, dtype):
    build, operands = KERNELS[name]
    x, y = (sc.input(n, dtype, ("n", "m")) for n in "xy")
    f = sc.compile(build(x, y), [x, y])
    (tree,) = ast.parse(f.source).body
    rows = [r.place.value.id for found in rows_ahead(tree).values() for r in found]
    assert sorted(rows) == operands
    for shape in ((0, 3), (1, LEAST // 4 - 1), (3, LEAST // 4), (2, LEAST + 7), (5, 2500)):
        a, b = (np.random.default_rng(k).normal(size=shape).astype(dtype) for k in range(2))
        want = sc.compile(build(x, y), [x, y], backend="numpy")(a, b)
        np.testing.assert_allclose(f(a, b), want, rtol=200 * np.finfo(dtype).eps, atol=200 * np.finfo(dtype).eps)


def test_the_lines_of_the_next_row():
    """A multiple of the least length is asked for, a line of the cache at a time."""
    lines = ["def kernel(n0, n1, a0, o0):", "    for i0 in range(n0):", "        s1 = 0.0",
             "        for i2 in range(n1):", "            s1 = fold_add(s1, a0[i0 * n1 + i2])",
             "        for i3 in range(n1):", "            o0[i0 * n1 + i3] = exp(a0[i0 * n1 + i3] - s1)", ""]
    text = kernel_ir(Source("\n".join(lines), ("n", "m"), (np.dtype("f8"),), (np.dtype("f8"),)))
    assert text.count("call void @llvm.prefetch.p0") == 1 and f", {-(LEAST // 8)}" in text
