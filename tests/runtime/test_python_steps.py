"""Which ops run in Python, in a loop above all: those that say so, and no others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import symc as sc
from symc.ir.attrs import Attrs
from symc.ir.op import Op, in_python, unregister
from symc.ir.ops.kernel import results_of
from symc.ir.value import make
from symc.runtime.cpu import kernels
from symc.runtime.cpu import program as programs
from symc.runtime.cpu.kernels import Kernel
from symc.tensors.tensor import Tensor
from tests.ir.op_cases import SAMPLED, cases

STEPS = 2


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are loaded as ever but for the code of kernels: none may be called."""
    monkeypatch.setattr(kernels, "_compile", lambda source, name, backend: Kernel(name, source, backend, 8))
    monkeypatch.setattr(kernels, "_compiled", {})


def in_a_loop(op: Op, arrays: list[np.ndarray], attrs: dict, prefix: str = "x"):
    """The op on the rows of arrays, once in each step of a loop."""
    rows = [sc.input(f"{prefix}{k}", str(a.dtype), (STEPS, *a.shape)) for k, a in enumerate(arrays)]

    def step(carry, xs):
        return carry + 1, [Tensor(r) for r in results_of(make(op, [x.value for x in xs], Attrs(attrs)))]

    return sc.scan(step, sc.asarray(0), rows, length=STEPS), rows


def chosen(op: Op) -> list[tuple[list[np.ndarray], dict]]:
    """A sample for each kind of dtype, none without elements."""
    found = {}
    for arrays, attrs in cases(op):
        if arrays and all(a.size for a in arrays):
            found.setdefault(tuple(a.dtype.kind for a in arrays), (arrays, attrs))
    return list(found.values())


@pytest.mark.parametrize("op", [op for op in SAMPLED if chosen(op) and op.name != "cached"], ids=lambda op: op.name)
def test_what_runs_in_python_says_so(op, no_kernels, cold):
    """Every sample has a loop of its own, all in one function."""
    made = [in_a_loop(op, *sample, f"x{k}_") for k, sample in enumerate(chosen(op))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = sc.compile([outputs for outputs, _ in made], [x for _, inputs in made for x in inputs], backend="llvm")
    called = [s.value.op.name for s in f._compilation.program.python_steps]
    if "python" in op.traits:
        assert set(called) == {op.name} and len(called) >= len(made)
    else:
        assert not called


def test_ops_in_python_are_few():
    """Linear algebra that no routine serves, and what people look at."""
    assert {op.name for op in SAMPLED if "python" in op.traits} == {
        "assert", "check_assumption", "complex_function", "complex_function_of_order", "eig", "eigvals", "expm", "ldl",
        "logm", "print", "schur", "solve_sylvester", "sqrtm", "tap"}


@pytest.mark.parametrize("parts", [9, 40])
@pytest.mark.parametrize("axis", [0, 1])
def test_many_parts_are_joined_by_native_code(parts, axis):
    x, y = sc.input("x", "float64", ("n", 3)), sc.input("y", "float32", ("n", "m"))
    pieces = [x[:, :2] * k for k in range(parts)]
    f = sc.compile([sc.concatenate(pieces, axis), sc.stack([y + k for k in range(parts)], axis)], [x, y])
    a, b = np.arange(12.0).reshape(4, 3), np.ones((4, 5), "f4")
    for rows in (4, 1, 0):
        got = f(a[:rows], b[:rows])
        np.testing.assert_array_equal(got[0], np.concatenate([a[:rows, :2] * k for k in range(parts)], axis))
        np.testing.assert_array_equal(got[1], np.stack([b[:rows] + np.float32(k) for k in range(parts)], axis))
    assert not f._compilation.program.python_steps


def test_a_ring_of_many_is_native():
    x = sc.input("x", "float64", (40,))

    def step(k, x):
        return sc.stack([x[i] + 0.01 * (x[(i + 1) % 40] - x[i] * x[i - 1]) for i in range(40)])

    f = sc.compile(sc.fori_loop(0, 50, step, x), [x])
    got = want = np.linspace(0, 1, 40)
    for _ in range(50):
        want = want + 0.01 * (np.roll(want, -1) - want * np.roll(want, 1))
    np.testing.assert_allclose(f(got), want, rtol=1e-12)
    assert not f._compilation.program.python_steps


def test_python_in_a_loop_is_told(monkeypatch):
    monkeypatch.setattr(programs, "_warned", set())
    a = sc.input("a", "float64", (3, 3))
    out = sc.fori_loop(0, 99, lambda k, b: sc.linalg.expm(b) / 9, a)
    with pytest.warns(UserWarning, match="expm runs in Python, in every step of a loop .*test_python_steps.py"):
        f = sc.compile(out, [a])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.compile(out + 1, [a])  # once is enough
    assert "in Python: expm" in f.explain()
    assert "expm runs in Python" in str(sc.lint(out))
    assert in_python(sc.linalg.expm(a).value)


def test_a_users_op_in_a_loop_is_told():
    try:
        @sc.op(derivative=lambda x: sc.cos(x))
        def slow(x):
            return np.sin(x)

        x = sc.input("x", "float64", (3,))
        out = sc.fori_loop(0, 99, lambda k, y: slow(y), x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f = sc.compile(out, [x])
        assert "in Python: slow" in f.explain() and "numba= or expression=" in str(sc.lint(out))
    finally:
        unregister("slow")
