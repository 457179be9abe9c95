"""Kernels as C11: compiled by gcc without warnings, they give the numbers of their references, as LLVM's code does
(test_cpu_kernels.py); and where sums may cancel, those of LLVM's code."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.codegen.c.printer import Unit
from symc.codegen.cpu.render import Source
from symc.codegen.kernel.source import kernel_source
from symc.codegen.language.syntax import Unsupported
from symc.ir.function import Function, Input, function
from symc.ir.ops.kernel import results_of
from symc.ir.record import dataclass
from symc.ir.reference import bind_sizes
from symc.ir.size_values import evaluate
from symc.ir.types import concrete_shape
from symc.ir.value import Region
from symc.opt.engine.passes import optimize
from symc.runtime.cpu.kernels import compile_kernel
from symc.runtime.library import meaning
from tests.codegen.test_cpu_kernels import ULPS, assert_close
from tests.cuda.generic_cases import kernels_of
from tests.ir.op_cases import ON_DEVICES, apply, cases, in_groups

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="C is compiled by gcc")
STRICT = ("-std=c11", "-pedantic", "-Wall", "-Werror", "-Wno-unused", "-Wno-tautological-compare")
GROUPS, SAMPLES = 4, 2
#: What the C library has no function of: SciPy's code for a CPU.
SCIPY = "the function scipy_"
Check = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class Kernel:
    """A kernel, what reaches it and what its reference gives."""

    name: str
    region: Region
    source: Source
    operands: list[np.ndarray]
    want: list[np.ndarray]
    sizes: dict[str, int]


def of_function(name: str, f: Function, arrays: Sequence[np.ndarray]) -> list[Kernel]:
    sizes = bind_sizes([p.type for p in f.params], [a.shape for a in arrays])
    with np.errstate(all="ignore"):
        return [Kernel(name, region, kernel_source((region, ())), operands, want, sizes)
                for region, operands, want in kernels_of(f, arrays, sizes)]


def of_op(op) -> list[Kernel]:
    found = {}
    for arrays, attrs in cases(op):
        key = (*((a.dtype.char, a.ndim, a.size > 0) for a in arrays), str(sorted(attrs.items())))
        found.setdefault(key, (arrays, attrs))
    kernels = []
    for arrays, attrs in list(found.values())[::-(-len(found) // SAMPLES) or 1]:
        v, leaves = apply(op, arrays, attrs)
        f = function(op.name, [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], results_of(v))
        try:
            kernels += of_function(op.name, optimize(f).function, arrays)
        except Unsupported:
            continue
    return kernels


def library(folder: Path, text: str) -> ctypes.CDLL:
    (folder / "kernels.c").write_text(text)
    path = folder / "kernels.so"
    subprocess.run(["gcc", *STRICT, "-O1", "-shared", "-fPIC", "-o", path, folder / "kernels.c", "-lm"], check=True)
    return ctypes.CDLL(str(path))


def arguments(k: Kernel) -> tuple[list[np.ndarray], list[int], list[np.ndarray]]:
    """Results, numbers, and arrays in the order of the source."""
    out = [np.full(concrete_shape(r.shape, k.sizes), 77, r.dtype) for r in k.region.results]
    numbers = k.source.whole(lambda s: evaluate(s, k.sizes))
    partial = [np.empty(numbers[1], d) for d in k.source.partial]
    failed = [np.zeros(1, np.uint8)] * k.source.fails
    return out, numbers, [*k.operands, *out, *partial, *failed]


def compare(kernels: Sequence[Kernel], folder: Path, check: Check, native: bool = False) -> int:
    """Run them as C, compare with the references (``native``: with LLVM's code); how many there are."""
    unit, called = Unit(meaning), []
    for j, k in enumerate(kernels):
        try:
            unit.kernel(k.source, f"kernel_{j}")
            called.append((j, k))
        except Unsupported as e:
            assert str(e).startswith(SCIPY), f"{k.name}: {e}"
    found = library(folder, unit.text())
    for j, k in called:
        got, numbers, arrays = arguments(k)
        words = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        found[f"kernel_{j}"](*words, *map(ctypes.c_int64, numbers))
        for x, want in zip(got, by_llvm(k) if native else k.want, strict=True):
            try:
                check(x, np.asarray(want))
            except AssertionError as e:
                raise AssertionError(f"{k.name}: {e}\n{k.source.text}") from None
    return len(called)


def by_llvm(k: Kernel) -> list[np.ndarray]:
    found, numbers, arrays = arguments(k)
    polls = [np.full(64, 2**40, np.int64)] * k.source.polls
    given = np.array(numbers + [a.ctypes.data for a in (*arrays, *polls)], np.int64)
    compile_kernel(k.source, "kernel").call(given.ctypes.data)
    return found


def check_each(x: np.ndarray, want: np.ndarray) -> None:
    """Every number by itself."""
    assert_close(x, want, 2 * ULPS.get(want.dtype.str[1:], 64))


def check_native(x: np.ndarray, native: np.ndarray) -> None:
    """Sums may cancel: by the largest number."""
    if native.dtype.kind != "f":
        np.testing.assert_array_equal(x, native)
        return
    near = 8 * np.finfo(native.dtype).eps
    np.testing.assert_allclose(x, native, rtol=near, atol=near * np.max(np.abs(native), initial=0.0))


@pytest.mark.parametrize("ops", in_groups(ON_DEVICES, GROUPS))
def test_ops(ops, tmp_path):
    kernels = [k for op in ops for k in of_op(op)]
    distinct = list({(k.source.text, k.source.arrays): k for k in kernels}.values())
    assert compare(distinct, tmp_path, check_each) > 60


RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(5, 70)), RNG.normal(size=(5, 70))


def programs():
    for dtype in ("float64", "float32", "float16"):
        x, y = sc.input("x", dtype, ("n", "m")), sc.input("y", dtype, ("n", "m"))
        arrays = [X.astype(dtype), Y.astype(dtype)]
        yield "flat map", [sc.tanh(x) * y + sc.where(x > y, x, sc.exp(-y))], [x, y], arrays
        yield "row statistics", [sc.softmax(x, axis=1), sc.logsumexp(y, axis=1), sc.argmax(x, axis=1)], [x, y], arrays
        yield "columns", [sc.sum(x * y, axis=0), sc.max(x, axis=0), sc.argmin(y, axis=0)], [x, y], arrays
        yield "everything", [sc.sum(x * y), sc.max(x), sc.mean(abs(y))], [x, y], arrays
        yield "running", [sc.cumsum(x, axis=1), sc.cumprod(y, axis=0)], [x, y], arrays
    x = sc.input("x", "float64", ("n", "m"))
    at = sc.input("at", "int64", ("k",))
    yield "gather", [x[:, at], x[at % 5] * 2.0], [x, at], [X, np.array([3, 0, -1, 4])]
    yield "scatter", [x.at[at].add(x[at] * 2.0)], [x, at], [X, np.array([3, 0, 3, 4])]
    z = sc.input("z", "float64", ("k",))
    bins = sc.clip((z * 10).astype("int64"), 0, 99)
    counts = [sc.zeros(100, "int64").at[bins].add(1), sc.zeros(200).at[bins].add(sc.exp(z))]
    small = sc.input("small", "uint8", ("k",))
    many = np.full(5000, 255, "u1")
    yield "short sums", [sc.sum(small), sc.count_nonzero(small > 3)], [small], [many]
    yield "scatter in blocks", counts, [z], [np.linspace(-3, 12, 1001)]
    u = sc.input("u", "uint8", ("n",))
    i = sc.input("i", "int32", ("n",))
    numbers = [np.array([0, 255, 7, 128], "u1"), np.array([-7, 2**31 - 1, 3, -1], "i4")]
    yield "integers", [u + u, u // 3, i % 5, -i * i, i >> 1, u ^ 170, i // (u + 1)], [u, i], numbers
    angle = sc.input("angle", "float64", ())

    def swing(state, _):
        at, speed = state
        speed = speed - 0.01 * sc.sin(at)
        return (at + 0.01 * speed, speed), at

    (end, _), path = sc.scan(swing, (angle, 0.0), length=50)
    yield "a loop", [end, sc.grad(end, angle), sc.max(path)], [angle], [np.array(1.0)]


@pytest.mark.parametrize("outs, ins, arrays", [pytest.param(*rest, id=name) for name, *rest in programs()])
def test_programs(outs, ins, arrays, tmp_path):
    f = sc.compile(outs, ins)._compilation.final
    assert compare(of_function("program", f, arrays), tmp_path, check_native, native=True) >= 1
