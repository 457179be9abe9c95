"""Loops are vectorized around a branch that is rarely taken, and take it for the elements that need it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.intrinsics import template
from symc.codegen.cpu.render import Source
from symc.ir.op import all_ops
from symc.runtime.compilers.llvm import target_machine
from symc.runtime.compilers.llvm_compile import kernel_ir, optimized


def vectors(line: str, dtype: str, operands: int = 1) -> tuple[int, str]:
    """How many operations on vectors a loop over ``line`` has once it is optimized, and its text."""
    d, names = np.dtype(dtype), "xy"[:operands]
    heads = ", ".join(f"a{k}" for k in range(operands))
    reads = "".join(f"        {n} = a{k}[i]\n" for k, n in enumerate(names))
    text = f"def kernel(n0, {heads}, o0):\n    for i in range(n0):\n{reads}        o0[i] = {line}\n"
    found = str(optimized(kernel_ir(Source(text, ("n",), (d,) * operands, (d,))), target_machine()))
    return len(re.findall(r"contract <\d+ x (?:double|float)>", found)), found


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", [op.name for op in all_ops() if op.facts.kernel == "vectorized"])
def test_what_is_said_to_vectorize_does(name, dtype):
    form = template(name, "f")
    count, _ = vectors(form.format("x", "y"), dtype, 2 if "{1}" in form else 1)
    assert count > 0


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_loop_is_vectorized_around_the_branch(dtype):
    count, text = vectors("sin(x) * cos(x) + tan(x)", dtype)
    assert count > 5
    assert not re.search(r"call .*@rarely", text), "every branch is inlined"


def test_sine_and_cosine_share_their_reduction():
    alone, _ = vectors("sin(x)", "f8")
    both, _ = vectors("sin(x) + cos(x)", "f8")
    assert alone <= both <= 1.1 * alone  # not twice as many; a step may take several vectors


@pytest.mark.parametrize("backend", ["llvm", "numba"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_elements_that_need_it_take_the_branch(backend, dtype):
    x = sc.input("x", dtype, ("n",))
    f = sc.compile([sc.sin(x), sc.cos(x) + sc.tan(x)], [x], backend=backend)
    rng = np.random.default_rng(0)
    for n in [*range(20), 33, 64, 100]:
        far = rng.random(n) < rng.choice([0.02, 0.5, 1.0])
        a = np.where(far, 10.0 ** rng.uniform(10, 30, n), rng.normal(size=n))
        a = a.astype(dtype)
        wide = a.astype("f8")
        eps = 8 * np.finfo(a.dtype).eps
        s, ct = f(a)
        np.testing.assert_allclose(s, np.sin(wide), rtol=eps)
        np.testing.assert_allclose(ct, np.cos(wide) + np.tan(wide), rtol=eps * 40, atol=eps)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cosh"])
def test_loops_over_complex_numbers_are_vectorized(name):
    d = np.dtype("c16")
    line = f"def kernel(n0, a0, o0):\n    for i in range(n0):\n        o0[i] = c_{name}(a0[i])\n"
    found = str(optimized(kernel_ir(Source(line, ("n",), (d,), (d,))), target_machine()))
    assert len(re.findall(r"contract <\d+ x double>", found)) > 5
