"""The compiler of kernel texts means what Numba means by the same text, and says what it does not know."""

from __future__ import annotations

import os
import platform
import random
import re
import subprocess
import sys

import numpy as np
import pytest
from llvmlite.binding import FeatureMap

import symc as sc
from symc.codegen.cpu.render import Source
from symc.codegen.language.syntax import Unsupported
from symc.runtime.compilers import llvm, llvm_compile, llvm_function
from symc.runtime.compilers.llvm_compile import kernel_code, kernel_ir
from symc.runtime.cpu.kernels import compile_kernel

F8, F4, I8, I4, U8, B1 = (np.dtype(c) for c in ("f8", "f4", "i8", "i4", "u8", "u1"))


def source(lines: str, operands: tuple, results: tuple) -> Source:
    """A kernel of size n0 over operands a0, ... and results o0, ...."""
    names = ["n0", *[f"a{k}" for k in range(len(operands))], *[f"o{k}" for k in range(len(results))]]
    body = "".join(f"    {line}\n" for line in lines.strip("\n").split("\n"))
    return Source(f"def kernel({', '.join(names)}):\n{body}", ("n",), operands, results)  # type: ignore[arg-type]


def run(text: Source, backend: str, *arrays: np.ndarray, n: int | None = None) -> list[np.ndarray]:
    kernel = compile_kernel(text, "kernel", backend)
    size = len(arrays[0]) if n is None else n
    out = [np.full(max(size, 1), 77, d) for d in text.results]
    words = np.array([size, *[a.ctypes.data for a in (*arrays, *out)]], np.int64)
    kernel.call(words.ctypes.data)
    return out


WHOLE = np.array([-9, -7, -1, 0, 1, 2, 7, 9, 2**62, -(2**62)])
PROGRAMS = {
    "while, break, continue, changing operands": ("""
for i in range(n0):
    x = a0[i]
    k = 0
    while True:
        k += 1
        if k == 3:
            continue
        if k > 6 or x > 1e3:
            break
        x = x * 2.0 + k
    o0[i] = x
""", (F8,), (F8,), [np.array([0.5, -2.0, 1e6, np.nan])]),
    "division downwards": ("""
for i in range(n0):
    o0[i] = a0[i] // a1[i]
    o1[i] = a0[i] % a1[i]
""", (I8, I8), (I8, I8), [np.repeat(WHOLE, 4), np.tile([3, -3, 7, -1 - 1], 10)]),
    "integers of 32 bits in 64": ("""
for i in range(n0):
    o0[i] = i32(a0[i] * a0[i] - 5)
    o1[i] = a0[i] + 1
""", (I4,), (I4, I8), [np.array([2**31 - 1, -(2**31), 3], "i4")]),
    "unsigned numbers": ("""
for i in range(n0):
    x = a0[i]
    o0[i] = ~x >> u64(3) ^ x
    o1[i] = 1 if x > 5 else 0
""", (U8,), (U8, I8), [np.array([0, 6, 2**64 - 1], "u8")]),
    "backwards, from the last": ("""
s = 0.0
for i in range(n0 - 1, -1, -1):
    s = s + a0[i]
    o0[i] = s
""", (F8,), (F8,), [np.arange(5.0)]),
    "memory is read only where the test before says so": ("""
for i in range(n0):
    j = i
    while j > 0 and o0[j - 1] > a0[i]:
        o0[j] = o0[j - 1]
        j -= 1
    o0[j] = a0[i]
""", (F8,), (F8,), [np.array([3.0, 1.0, 2.0, -1.0])]),
    "f32 stays f32 beside its own, and is f64 beside others": ("""
for i in range(n0):
    o0[i] = a0[i] * f32(0.1) + a0[i]
    o1[i] = a0[i] * 0.1
    o2[i] = a0[i] + i
""", (F4,), (F4, F8, F8), [np.array([1.0, 1e-8, 3e38], "f4")]),
    "comparisons with nan, chains, not": ("""
for i in range(n0):
    x = a0[i]
    o0[i] = u8(-1.0 < x <= 1.0)
    o1[i] = u8(not x < 1.0)
    o2[i] = u8(x != x or x == 1)
""", (F8,), (B1, B1, B1), [np.array([np.nan, 1.0, -1.0, np.inf, -0.0])]),
    "several results of a helper": ("""
for i in range(n0):
    a, b = wide_product(a0[i], a0[i])
    o0[i] = a
    o1[i] = b
""", (U8,), (U8, U8), [np.array([3, 2**63 + 11, 2**64 - 1], "u8")]),
    "a loop over a table in memory": ("""
for i in range(n0):
    o0[i] = polygamma(2, a0[i])
""", (F8,), (F8,), [np.array([0.5, 3.0, 40.0])]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_compilers_agree(name: str) -> None:
    lines, operands, results, arrays = PROGRAMS[name]
    text = source(lines, operands, results)
    for a, b in zip(run(text, "llvm", *arrays), run(text, "numba", *arrays), strict=True):
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=4 * np.finfo(a.dtype).eps)
        else:
            np.testing.assert_array_equal(a, b)


def test_a_size_of_zero_writes_nothing() -> None:
    text = source("for i in range(n0):\n    o0[i] = a0[i]", (F8,), (F8,))
    assert run(text, "llvm", np.zeros(1), n=0)[0].tolist() == [77.0]


@pytest.mark.parametrize("line, what", [
    ("o0[0] = a0[0] ** 2.5", "no number"),
    ("o0[0] = unknown(a0[0])", "unknown"),
    ("o0[0] = complex(a0[0], 1.0)", "complex"),
    ("o0[0] = a0[0].shape", "shape"),
    ("o0[0] = round(a0[0], ndigits=2)", "keywords"),
    ("o0[0] = [a0[0]][0]", "List"),
    ("x = 1\nx = 2.5\no0[0] = x", "x is i64 and f64"),
    ("o0[0] = 'text'", "str"),
    ("i = 1\ni = 2\nfor i in range(n0):\n    o0[i] = 0.0", "a loop over i, which is assigned elsewhere"),
    ("with a0:\n    pass", "With"),
    ("o0[0] = nowhere", "nowhere"),
])  # fmt: skip
def test_what_is_not_known_is_said(line: str, what: str) -> None:
    with pytest.raises(Unsupported, match=what):
        kernel_ir(source(line, (F8,), (F8,)))


def test_what_llvm_does_not_know_numba_compiles() -> None:
    text = source("o0[0] = math.fabs(a0[0])", (F8,), (F8,))
    kernel = compile_kernel(text, "kernel")
    assert kernel.backend == "numba"
    with pytest.raises(Unsupported):
        kernel_ir(text)


def test_equal_texts_are_one_kernel() -> None:
    text = source("o0[0] = a0[0] + 41.0", (F8,), (F8,))
    assert compile_kernel(text, "one") is compile_kernel(text, "two")


PROGRAM = """
import numpy as np
from symc.codegen.cpu.render import Source
from symc.runtime.compilers.llvm_compile import kernel_ir
d = (np.dtype("f8"),)
body = "    for i in range(n0):\\n        o0[i] = exp(tanh(a0[i])) + hypot(a0[i], 1.0) + zeta(2.0, a0[i])\\n"
body += "        o0[i] += gcd(i, 6)\\n"
print(kernel_ir(Source("def kernel(n0, a0, o0):\\n" + body, ("n",), d, d)))
"""


def test_the_text_does_not_depend_on_the_process() -> None:
    texts = [subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed},
                            capture_output=True, text=True, check=True).stdout for seed in ("1", "2")]
    assert texts[0] == texts[1] and "define void @entry" in texts[0]


def test_loops_of_loops_are_not_unrolled() -> None:
    """A short loop around a long one is one loop in the code, not four."""
    loops = """
for i in range(4):
    for j in range(n0):
        o0[i * n0 + j] = a0[i * n0 + j] + 1.0
"""
    text = kernel_ir(source(loops, (F8,), (F8,)))
    notes = {line.split(" = ")[0]: line for line in text.split("\n") if line.startswith("!")}
    back = [line.split("!llvm.loop ")[1] for line in text.split("\n") if "!llvm.loop" in line and "br" in line]
    assert [notes[b].endswith(", !1}") for b in back] == [False, True] and "unroll.disable" in notes["!1"]
    short = kernel_ir(source(loops.replace("n0", "4"), (F8,), (F8,)))
    assert "!llvm.loop" not in short


@pytest.mark.parametrize(("rows", "columns", "unrolled"), [(3, 3, 2), (3, 12, 2), (9, 12, 1), (60, 2, 1), (3, 50, 0)])
def test_nests_are_unrolled_as_far_as_they_stay_small(rows: int, columns: int, unrolled: int) -> None:
    """Short loops: the inner one, then the outer one, up to some hundred instructions in all."""
    loops = f"""
for i in range({rows}):
    for j in range({columns}):
        o0[i * {columns} + j] = a0[i * {columns} + j] * a0[j] + 1.0
"""
    text = kernel_ir(source(loops, (F8,), (F8,)))
    back = [line for line in text.split("\n") if "!llvm.loop" in line and "br" in line]
    assert len(back) == 2 - unrolled
    a = np.arange(float(rows * columns))
    (found,) = run(source(loops, (F8,), (F8,)), "llvm", a)
    assert np.array_equal(found[:a.size], a * np.tile(a[:columns], rows) + 1.0)


@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_doubles_are_rounded_to_half_precision_once(backend: str) -> None:
    """Not to single precision first, which may make a tie of what is none; nor by a function that LLVM calls."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = np.sort(halves[np.isfinite(halves)]).astype(F8)
    ties = (halves[1:] + halves[:-1]) / 2
    numbers = np.concatenate([halves, ties, ties + ties * 2.0**-40, ties - ties * 2.0**-40,
                              [65519.999, 65520.0, 1e10, 1e300, -1e300, 1e-300, -1e-300, np.inf, -np.inf, np.nan]])
    lines = "for i in range(n0):\n    o0[i] = to_half(a0[i])\n    o1[i] = round_half(a0[i])"
    text = source(lines, (F8,), (np.dtype("f2"), F4))
    bits, single = run(text, backend, numbers)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bits, numbers.astype("f2"))
        np.testing.assert_array_equal(single, numbers.astype("f2"))


def test_half_precision_needs_no_function_of_a_library() -> None:
    """Three products are added in doubles, two columns at a time: LLVM merges conversions there."""
    text = Source("""def kernel(a0, a1, o0):
    for i0 in range(3):
        for i1 in range(3):
            s2 = 0.0
            for i4 in range(3):
                s2 = fold_add(s2, a0[i0 * 3 + i4] * a1[i4 * 3 + i1])
            t8 = tanh(round_half(s2))
            t9 = round_half(t8)
            o0[i0 * 3 + i1] = to_half(f32(1.0) - round_half(t9 * t9))
""", (), (F8, F8), (np.dtype("f2"),))
    kernel = compile_kernel(text, "kernel")
    assert kernel.backend == "llvm"
    a, b, out = np.full((3, 3), 0.25), np.eye(3), np.zeros((3, 3), "f2")
    words = np.array([x.ctypes.data for x in (a, b, out)], np.int64)
    kernel.call(words.ctypes.data)
    np.testing.assert_allclose(out, 1 - np.tanh(0.25) ** 2, rtol=1e-3)


@pytest.mark.parametrize("line, in_order", [("hypot(a0[i], 1.0)", False), ("erf(a0[i]) * erf(a0[i] - 0.25)", True)])
def test_vectors_side_by_side_of_many_constants_keep_the_order_of_the_text(monkeypatch, line, in_order) -> None:
    for wide in (True, False):
        monkeypatch.setattr(llvm_function, "has_vectors", lambda wide=wide: wide)
        text = kernel_ir(source(f"for i in range(n0):\n    o0[i] = {line}", (F8,), (F8,)))
        assert (llvm_function.IN_ORDER in text) == (wide and in_order)


def test_the_order_of_the_text_is_for_one_kernel_alone(monkeypatch) -> None:
    monkeypatch.setattr(llvm_function, "has_vectors", lambda: True)
    text = kernel_ir(source("for i in range(n0):\n    o0[i] = erf(a0[i]) * erf(a0[i] - 0.25)", (F8,), (F8,)))
    machine = llvm.target_machine()
    module = llvm_compile.optimized(text, machine)
    usual = machine.emit_assembly(module)
    with pytest.raises(KeyError), llvm.without(llvm.SCHEDULING):
        assert machine.emit_assembly(module) != usual
        raise KeyError
    assert machine.emit_assembly(module) == usual


def test_columns_of_unknown_stride_are_read_in_vectors(monkeypatch) -> None:
    """By LLVM's habit a loop with a stride of one would be in vectors, and the other, which runs, would not."""
    loops = "for i in range(n0):\n    for j in range(n0):\n        o0[i * n0 + j] = exp(a0[j * n0 + i])"
    text = source(loops, (F8,), (F8,))
    made, optimized = [], llvm_compile.optimized
    monkeypatch.setattr(llvm_compile, "optimized", lambda *given: made.append(optimized(*given)) or made[-1])
    kernel_code(text, "columns")
    usual = str(optimized(kernel_ir(text), llvm.target_machine()))
    assert "ident.check" in usual and "ident.check" not in str(made[0]) and "vector.body" in str(made[0])


def test_what_blocks_have_summed_is_put_together_by_a_small_loop(monkeypatch) -> None:
    """Its steps are few (one for 65,536 numbers): it is written once, not for vectors and for eight steps as well."""
    texts, write = [], llvm_compile.kernel_ir
    monkeypatch.setattr(llvm_compile, "kernel_ir", lambda *given: texts.append(write(*given)) or texts[-1])
    monkeypatch.setenv("SYMC_CACHE_DIR", "off")
    x, numbers = sc.vector("x"), np.linspace(0, 200, 200_000)
    f = sc.compile(sc.sum(x * x + 0.4375), [x])
    assert np.allclose(f(numbers), np.sum(numbers * numbers + 0.4375))
    (text,) = texts
    assert text.count('!"llvm.loop.vectorize.enable", i1 false') == 1


@pytest.mark.parametrize("t", ["i1", "u1", "i2", "u2"])
def test_sums_of_short_integers_are_computed_in_their_type(t):
    """LLVM widens what it knows the bits of, and a vector of 64 bits has an eighth of the numbers."""
    d, c = np.dtype(t), f"{t[0]}{8 * int(t[1])}"
    terms = [f"{c}({c}(a{k}[i] == {c}(1)))" for k in range(3)]
    total = f"{c}(wrap_add({c}(wrap_add({terms[0]}, {terms[1]})), {terms[2]}))"
    text = source(f"for i in range(n0):\n    t = {total}\n    o0[i] = u8(t == {c}(2))", (d, d, d), (B1,))
    ir = str(llvm_compile.optimized(kernel_ir(text), llvm.target_machine()))
    assert f"x i{8 * int(t[1])}>" in ir and not re.search(r"= add [a-z ]*<\d+ x i64>", ir)
    arrays = [np.random.default_rng(k).integers(0, 2, 77).astype(d) for k in range(3)]
    (found,) = run(text, "llvm", *arrays)
    np.testing.assert_array_equal(found.astype(bool), sum(arrays) == 2)


@pytest.mark.parametrize("dtype", [F4, F8])
def test_the_greatest_of_many_is_nan_where_one_is(dtype) -> None:
    """Maxima and minima of arrays and numbers, nested either way; none asks for the signs of zeros."""
    draw = random.Random(dtype.itemsize)
    for _ in range(8):
        terms = ["a0[i]", "a1[i]", "a2[i]", *draw.sample(["0.0", "-1.0", "2.0", "a0[i]"], 2)]
        draw.shuffle(terms)
        while len(terms) > 1:
            x, y = terms.pop(), terms.pop(draw.randrange(len(terms)))
            terms.insert(draw.randrange(len(terms) + 1), f"{draw.choice(['maximum', 'minimum'])}({x}, {y})")
        text = source(f"for i in range(n0):\n    o0[i] = {terms[0]}", (dtype,) * 3, (dtype,))
        assert "contract" not in "".join(re.findall(r"call .*llvm\.m(?:ax|in)imum.*", kernel_ir(text)))
        values = np.array([np.nan, -np.inf, -2, -1, -0.0, 0.0, 1, 3, np.inf], dtype)
        arrays = [a.ravel().copy() for a in np.meshgrid(values, values, values)]
        want = eval(terms[0], {"maximum": np.maximum, "minimum": np.minimum, "i": ...},
                    {f"a{k}": a for k, a in enumerate(arrays)})
        np.testing.assert_array_equal(run(text, "llvm", *arrays)[0], np.broadcast_to(want, len(arrays[0])))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="about x86")
def test_amd_loads_elements_one_by_one(monkeypatch) -> None:
    """Nor does a search wait for eight places at once."""
    text = kernel_ir(source("for i in range(n0):\n    o0[i] = a0[a1[i]]", (F8, I8), (F8,)))
    for name, some in (("znver5", False), ("sapphirerapids", True)):
        monkeypatch.setattr(llvm.llvm(), "get_host_cpu_name", lambda name=name: name)
        monkeypatch.setattr(llvm.llvm(), "get_host_cpu_features", lambda: FeatureMap(avx512f=True, avx512dq=True))
        machine = llvm.target_machine.__wrapped__()
        assert ("vgatherqpd" in machine.emit_assembly(llvm_compile.optimized(text, machine))) == some


def test_the_greatest_of_what_is_chosen_is_looked_for_in_vectors() -> None:
    """LLVM makes of the greatest of x or -inf a choice of results, unless what is searched is closed to it."""
    text = source("""
s = -INF
for i in range(n0):
    s = fold_maximum(s, a0[i] if a0[i] == a0[i] else -INF)
o0[0] = s
""", (F8,), (F8,))
    assert "load <" in str(llvm_compile.optimized(kernel_ir(text), llvm.target_machine()))
    for numbers in ([1.0, np.nan, 3.0, -np.inf] * 20, [np.nan] * 9, [-np.inf, np.nan]):
        want = np.nanmax([-np.inf, *numbers])
        assert run(text, "llvm", np.array(numbers))[0][0] == want


@pytest.mark.parametrize("of", [lambda x, y: sc.sum(x), sc.vdot, sc.dot], ids=["sum", "vdot", "dot"])
def test_sums_of_complex_numbers_are_vectors(of) -> None:
    x, y = (sc.input(name, "complex128", ("n",)) for name in "xy")
    f = sc.compile(of(x, y), [x, y])
    (kernel,) = f.kernels
    assert "fold_add" in kernel.source
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 3000, 70_000):
        a, b = (rng.normal(size=(n, 2)).view("c16")[:, 0] for _ in range(2))
        want = {sc.vdot: np.vdot, sc.dot: np.dot}.get(of, lambda a, b: np.sum(a))(a, b)
        np.testing.assert_allclose(f(a, b), want, rtol=1e-11, atol=1e-11)
    text = source("s = c128(complex(0.0, 0.0))\nfor i in range(n0):\n    s = fold_add(s, a0[i])\no0[0] = s",
                  (np.dtype("c16"),), (np.dtype("c16"),))
    assert "x double>" in str(llvm_compile.optimized(kernel_ir(text), llvm.target_machine()))
    for backend in ("llvm", "numba"):
        assert run(text, backend, np.arange(9) * (1 - 2j))[0][0] == 36 - 72j
