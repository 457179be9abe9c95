"""Stores past the cache: the same bits as without, at every alignment and length, of every form of kernel."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.codegen.language.syntax import function
from symc.codegen.language.typed import Pointer
from symc.runtime.cache import machine_code, version
from symc.runtime.compilers import llvm, llvm_streams
from symc.runtime.cpu import kernels
from symc.runtime.cpu.large_results import LARGE, PAGE

needs_stores = pytest.mark.skipif(not llvm.has_vectors(), reason="not an x86 with AVX2")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What LLVM is given after it has optimized, for kernels that are compiled from now on. Results are large from one
    byte on."""
    monkeypatch.setattr(llvm_streams, "large", lambda: 1)
    monkeypatch.setattr(kernels, "_compiled", {})
    before = version.of_compilers()
    monkeypatch.setattr(machine_code.version, "of_compilers", lambda: f"{before}, large from 1")
    monkeypatch.setattr(machine_code.object_cache, "read", lambda name: None)
    seen, edit = [], llvm_streams.past_cache
    monkeypatch.setattr(llvm_streams, "past_cache", lambda text: seen.append(edit(text)) or seen[-1])
    return seen


def flat(dtype: str):
    x, y = sc.input("x", dtype, ("n",)), sc.input("y", dtype, ("n",))
    return formula(dtype, x, y), [x, y]


def formula(dtype: str, x, y):
    return x ^ y if dtype == "bool" else x * y if dtype[0] == "c" else x * y + x


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    r = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 50, (2, *shape))
    return (r[0] + (1j * r[1] if dtype[0] == "c" else 0)).astype(dtype)


def at(offset: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array that begins so many elements behind a page."""
    size = np.dtype(dtype).itemsize
    memory = np.zeros(int(np.prod(shape)) * size + 2 * PAGE + offset * size, np.uint8)
    start = -memory.ctypes.data % PAGE + offset * size
    return memory[start : start + int(np.prod(shape)) * size].view(dtype).reshape(shape)


@needs_stores
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint16", "int32", "int64", "bool",
                                   "complex64", "complex128"])
def test_every_length_and_alignment(dtype, texts):
    value, inputs = flat(dtype)
    f = sc.compile(value, inputs)
    assert any("!nontemporal" in t for t in texts) or dtype == "float16"
    for n in (0, 1, 7, 16, 63, 64, 65, 200, 1029):
        x, y = numbers(dtype, (n,), n), numbers(dtype, (n,), n + 1)
        expected = formula(dtype, x, y)
        for offset in (0, 1, 2, 3, 4, 8, 13, 16, 32):
            out = at(offset, (n,), dtype)
            f(x, y, out=out)
            np.testing.assert_array_equal(out, expected)


FORMS = {
    "rows": (lambda x: x - sc.max(x, axis=1, keepdims=True), lambda x: x - x.max(1, keepdims=True)),
    "stencil": (lambda x: x[1:-1, 1:-1] * 4 - x[2:, 1:-1] - x[1:-1, 2:],
                lambda x: x[1:-1, 1:-1] * 4 - x[2:, 1:-1] - x[1:-1, 2:]),
    "transpose": (lambda x: x.T + 1, lambda x: x.T + 1),
    "outer": (lambda x: x[:, 0][:, None] * x[0][None, :], lambda x: x[:, :1] * x[:1]),
    "parts": (lambda x: sc.concat([x + 1, x * 2], axis=1), lambda x: np.concatenate([x + 1, x * 2], 1)),
    "padded": (lambda x: sc.pad(x, ((0, 0), (3, 2))) * 2, lambda x: np.pad(x, ((0, 0), (3, 2))) * 2),
    "reversed": (lambda x: x[:, ::-1] * 3, lambda x: x[:, ::-1] * 3),
    "every second": (lambda x: x[:, ::2] * 3, lambda x: x[:, ::2] * 3),
    "gather": (lambda x: sc.take(x, sc.arange(x.shape[1]) // 2, axis=1) + 1,
               lambda x: x[:, np.arange(x.shape[1]) // 2] + 1),
    "index": (lambda x: sc.arange(x.shape[0])[:, None] * 100 + sc.arange(x.shape[1])[None, :] + 0 * x,
              lambda x: np.arange(len(x))[:, None] * 100.0 + np.arange(x.shape[1])),
    "chosen": (lambda x: sc.where(x > 20, x, -x), lambda x: np.where(x > 20, x, -x)),
}


@needs_stores
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, texts):
    ours, numpys = FORMS[form]
    x = sc.input("x", "float64", ("n", "m"))
    f = sc.compile(ours(x), [x])
    for shape in ((3, 3), (5, 64), (9, 71), (17, 128), (64, 33)):
        a = numbers("float64", shape, sum(shape))
        expected = numpys(a)
        for offset in (0, 2, 5):
            out = at(offset, expected.shape, "float64")
            f(a, out=out)
            np.testing.assert_array_equal(out, expected)


def test_only_where_it_pays(texts):
    """Not a kernel that calls functions, has two results, reads what it has written, or is small for certain."""
    x = sc.input("x", "float64", ("n",))
    sc.compile(sc.exp(x), [x])
    sc.compile([x + 1, x * 2], [x])
    sc.compile(sc.sum(x * x), [x])
    assert not texts
    tree = function("def f(a0, o0):\n    for i in range(1000):\n        o0[i] = a0[i] + 1.0\n")
    pointers = {"a0": Pointer("f64", "%a0"), "o0": Pointer("f64", "%o0")}
    assert llvm_streams.stream(tree, "", pointers) == ("o0", ["1000"])
    tree = function("def f(a0, o0):\n    for i in range(1000):\n        o0[i] = o0[i] + a0[i]\n")
    assert llvm_streams.stream(tree, "", pointers) is None


def test_numbers_that_say_that_a_result_is_small():
    tree = function("def f(a0, o0):\n    for i in range(1000):\n        o0[i] = a0[i] + 1.0\n")
    assert llvm_streams.stream(tree, "", {"a0": Pointer("f64", "%a0"), "o0": Pointer("f64", "%o0")}) is None


def test_in_the_memory_of_an_operand():
    """The lines of an operand are in the cache: the result is written there."""
    pointers = {"a0": Pointer("f64", "%a0"), "a1": Pointer("f32", "%a1"), "o0": Pointer("f64", "%o0")}
    text = llvm_streams.entry(pointers, llvm_streams.Stream("o0", ["%n0"]))
    assert all(f"icmp ne ptr %o0, {a}" in text for a in ("%a0", "%a1"))


def test_a_result_that_is_large():
    """By what a user calls, at a size where it happens: bits are those of NumPy, and the array begins with a page."""
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(x * 2 + 1, [x])
    a = np.random.default_rng(0).normal(size=LARGE // 8 + 5)
    found = f(a)
    np.testing.assert_array_equal(found, a * 2 + 1)
    assert found.ctypes.data % PAGE == 0


def test_a_kernel_that_looks_for_signals_has_the_words_of_the_interpreter():
    """Names of a kernel's arguments are none of its entry's own."""
    y, steps = sc.input("y", "float64"), sc.input("steps", "int64")
    f = sc.compile(sc.scan(lambda c, _: (c * 2, c), y, length=steps)[1], [y, steps])
    np.testing.assert_array_equal(f(3.0, 5), 3.0 * 2.0 ** np.arange(5))
