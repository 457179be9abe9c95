"""Generated kernels give what the references give: every op with a scalar form, every dtype, edge values.

Kernels are compiled by both backends.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pytest

import symc.ir.ops  # noqa: F401
from symc.codegen.cpu.render import Source, render
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.ir.dtypes import ARITHMETIC
from symc.ir.function import Function, Input, function
from symc.ir.op import Element, Fold, all_ops, lookup
from symc.ir.parse import parse
from symc.ir.reference import bind_sizes, run_region
from symc.ir.size_values import evaluate
from symc.ir.traverse import close_over
from symc.ir.types import DTYPE_NAMES, TensorType, concrete_shape
from symc.ir.value import Region, fresh_input
from symc.opt.fusion.fuse import fuse
from symc.runtime.cpu.kernels import compile_kernel

#: Units in the last place by which the functions of the platform's libm may differ from NumPy's and SciPy's.
ULPS = {"f2": 2, "f4": 32, "f8": 64}


@functools.cache
def source_of(region: Region) -> Source:
    return render("kernel", scalarize(collapse(region)))


def run_kernel(
    region: Region, arrays: list[np.ndarray], sizes: dict[str, int], backend: str = "llvm"
) -> list[np.ndarray]:
    """Compile a fused region and run it on fresh results."""
    source = source_of(region)
    kernel = compile_kernel(source, "kernel", backend)
    assert kernel.backend == backend
    out = [np.empty(concrete_shape(r.shape, sizes), r.dtype) for r in region.results]
    numbers = source.whole(lambda s: evaluate(s, sizes))
    partial = [np.empty(numbers[1], d) for d in source.partial]
    failed = [np.zeros(1, np.uint8)] * source.fails
    words = np.array(numbers + [a.ctypes.data for a in (*arrays, *out, *partial, *failed)], np.int64)
    kernel.call(words.ctypes.data)
    assert not source.polls and not np.any(failed)
    return out


def check_function(text_or_function, arrays: list[np.ndarray], ulps: int = 4, backends=("llvm", "numba")) -> int:
    """Fuse, compare every kernel with its reference on the values that reach it; the number of kernels."""
    g = _fused_text(text_or_function) if isinstance(text_or_function, str) else fuse(text_or_function)
    sizes = bind_sizes([i.type for i in g.inputs], [a.shape for a in arrays])
    env = dict(zip(g.params, arrays, strict=True))
    count = 0
    for v in g.values():
        if v in env:
            continue
        if v.op.name == "fused":
            count += 1
            operands = [np.ascontiguousarray(env[o]).reshape(np.shape(env[o])) for o in v.operands]
            want = run_region(v.regions[0], operands, sizes)
            for backend in backends:
                made = zip(run_kernel(v.regions[0], operands, sizes, backend), want, v.regions[0].results, strict=True)
                for a, b, r in made:
                    assert_close(a, b, ulps, f"{r.op.name} {dict(r.attrs)}, {backend}", operands)
            env[v] = want[0] if len(want) == 1 else tuple(want)
        else:
            env[v] = v.op.reference(*[env[o] for o in v.operands], **v.attrs.concrete(sizes))
    return count


@functools.cache
def _fused_text(text: str) -> Function:
    return fuse(parse(text))


def assert_close(got: np.ndarray, want: np.ndarray, ulps: int, said: str = "", operands: Sequence[np.ndarray] = ()
                 ) -> None:
    """``said``: what was computed, of ``operands``."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=said)
        return
    eps = np.finfo(got.dtype).eps
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        near = np.isfinite(want) & (abs(got - want) <= ulps * eps * abs(want) + np.finfo(got.dtype).tiny * ulps)
    bad = ~(same | near)
    at = [x[bad][:5] for x in operands if x.shape == got.shape]
    assert not np.any(bad), f"{said}: {got[bad][:5]} for {want[bad][:5]}, of {at}"


def _elementwise_cases():
    for dtype in ARITHMETIC:
        for arity in (1, 2, 3):
            ops = [
                op
                for op in all_ops()
                if op.lowering == Element() and "elementwise" in op.traits and _sample(op, dtype, arity)
            ]
            if dtype.kind == "c":
                ops = [op for op in ops if "complex_kernel" in op.traits]
            if ops:
                yield pytest.param(dtype, arity, ops, id=f"{DTYPE_NAMES[dtype]}-{arity}")


@functools.cache
def _samples(name):
    op = lookup(name)
    return [] if op.samples is None else list(op.samples())  # None: an op that another test registered


def _sample(op, dtype, arity):
    for arrays, attrs in _samples(op.name):
        if len(arrays) == arity and arrays[-1].dtype == dtype and arrays[0].ndim == 1 and "shape" not in attrs:
            return arrays, attrs
    return None


CASES = list(_elementwise_cases())


@functools.cache
def _dtype_for_numba(name: str, arity: int, kind: str) -> np.dtype:
    """The dtype of a kind (reals, integers, ...) in which an op is compiled by Numba too, which takes ten times as long
    as LLVM: the dtypes take turns. Half precision computes as float32, so loads and stores are all that is new: of
    few ops."""
    cases = [(d, ops) for d, a, ops in (c.values for c in CASES) if a == arity and _kind(d) == kind]
    dtypes = [d for d, ops in cases if lookup(name) in ops and (d != np.float16 or arity == 3)]
    dtypes = dtypes or [d for d, ops in cases if lookup(name) in ops]
    return dtypes[crc32(name.encode()) % len(dtypes)]


def _kind(dtype: np.dtype) -> str:
    return "i" if dtype.kind in "iu" else dtype.kind


@pytest.mark.parametrize("dtype, arity, ops", CASES)
def test_elementwise_ops(dtype, arity, ops):
    """All ops of one dtype and arity, as the results of one function (so of few kernels)."""
    groups: dict[tuple, list] = {}
    for op in ops:
        arrays, attrs = _sample(op, dtype, arity)
        key = tuple((a.dtype.str, a.tobytes()) for a in arrays)
        groups.setdefault(key, [arrays]).append((op, attrs))
    for arrays, *members in groups.values():
        leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
        numba = [m for m in members if _dtype_for_numba(m[0].name, arity, _kind(dtype)) == dtype]
        for backend, some in (("llvm", members), ("numba", numba)):
            outputs = [op(*leaves, **attrs) for op, attrs in some]
            f = function("ops", [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], outputs)
            count = check_function(f, [np.array(a) for a in arrays], ULPS.get(dtype.str[1:], 4), (backend,))
            assert count >= bool(some)


def test_numba_compiles_every_op_and_every_dtype():
    cases = [c.values for c in CASES]
    taken = {(_dtype_for_numba(op.name, a, _kind(d)), op.name) for d, a, ops in cases for op in ops}
    assert {d for d, _ in taken} == {d for d, _, _ in cases} == set(ARITHMETIC)
    assert {(_kind(d), op) for d, op in taken} == {(_kind(d), op.name) for d, _, ops in cases for op in ops}


@pytest.mark.parametrize("op", [op for op in all_ops() if isinstance(op.lowering, Fold)], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?", "f2", "u1"])
def test_reductions(op, dtype):
    """Both compilers read one text: in one dtype they take every form, in all others the first and a third of the rest,
    of which Numba compiles the first."""
    seen, turn = 0, crc32(f"{op.name} {dtype}".encode())
    for arrays, attrs in op.samples():
        (x,) = arrays
        if x.dtype != np.dtype(dtype):
            continue
        seen += 1
        if seen > 8:
            break
        if dtype != "f8" and seen > 1 and (seen + turn) % 3:
            continue
        leaf = fresh_input(TensorType(x.dtype, x.shape))
        f = function("reduce", [(leaf, Input("x", leaf.type))], [op(leaf, **attrs)])
        backends = ("llvm", "numba") if dtype == "f8" or seen == 1 else ("llvm",)
        check_function(f, [np.ascontiguousarray(x)], 8, backends)


SHAPES = """
func @softmax(%x: f64[n, m], %b: f64[m]) -> (f64[n, m], f64[n]) {
  %0 = broadcast %b {axes = (1,), shape = (n, m)} : f64[n, m]
  %1 = add %x, %0 : f64[n, m]
  %2 = max %1 {axes = (1,)} : f64[n]
  %3 = broadcast %2 {axes = (0,), shape = (n, m)} : f64[n, m]
  %4 = sub %1, %3 : f64[n, m]
  %5 = exp %4 : f64[n, m]
  %6 = sum %5 {axes = (1,)} : f64[n]
  %7 = broadcast %6 {axes = (0,), shape = (n, m)} : f64[n, m]
  %8 = div %5, %7 : f64[n, m]
  return %8, %6
}
"""


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 3000), (0, 4), (5, 1)])
def test_softmax_is_one_kernel_at_any_size(shape):
    rng = np.random.default_rng(0)
    assert check_function(SHAPES, [rng.normal(size=shape), rng.normal(size=shape[1])], 16) == 1


COLUMNS = """
func @moments(%x: f32[n, m]) -> (f32[m], f32[m], f32[n, m]) {
  %0 = mul %x, %x : f32[n, m]
  %1 = sum %x {axes = (0,)} : f32[m]
  %2 = sum %0 {axes = (0,)} : f32[m]
  return %1, %2, %0
}
"""


def test_sums_down_columns_share_a_loop_with_full_results():
    assert check_function(COLUMNS, [np.arange(35, dtype="f4").reshape(5, 7)]) == 1


MOVED = """
func @moved(%x: f64[n, m], %y: f64[m, n]) -> (f64[m, n], f64[n, m], f64[n, m]) {
  %0 = transpose %x {perm = (1, 0)} : f64[m, n]
  %1 = mul %0, %y : f64[m, n]
  %2 = slice %x {start = (n - 1, 0), size = (n, m), step = (-1, 1)} : f64[n, m]
  %3 = pad %2, 0.0:f64[] {low = (1, 0), high = (0, 2)} : f64[n + 1, m + 2]
  %4 = slice %3 {start = (1, 0), size = (n, m)} : f64[n, m]
  %5 = add %4, %x : f64[n, m]
  %6 = iota {axis = 1, dtype = f64, shape = (n, m)} : f64[n, m]
  %7 = add %6, %x : f64[n, m]
  return %1, %5, %7
}
"""


def test_movements_are_read_through_their_index():
    x = np.arange(12.0).reshape(3, 4)
    assert check_function(MOVED, [x, x.T.copy()]) == 2


BESIDE = """
func @beside(%x: u8[n, 4, 4], %y: f64[p, q, 3, 5]) -> (u8[n, 4, 4], f64[p, q, 3, 4]) {
  %0 = slice %x {start = (0, 0, 1), size = (n, 4, 1)} : u8[n, 4, 1]
  %1 = slice %x {start = (0, 0, 3), size = (n, 4, 1)} : u8[n, 4, 1]
  %2 = xor %0, %1 : u8[n, 4, 1]
  %3 = add %0, %1 : u8[n, 4, 1]
  %4 = packed_concat %0, %1, %2, %3 {axis = 2} : u8[n, 4, 4]
  %5 = slice %y {start = (0, 0, 0, 4), size = (p, q, 3, 4), step = (1, 1, 1, -1)} : f64[p, q, 3, 4]
  %6 = slice %y {start = (0, 0, 0, 0), size = (p, q, 3, 2)} : f64[p, q, 3, 2]
  %7 = slice %y {start = (0, 0, 0, 3), size = (p, q, 3, 2)} : f64[p, q, 3, 2]
  %8 = concat %6, %7 {axis = 3} : f64[p, q, 3, 4]
  %9 = mul %5, %8 : f64[p, q, 3, 4]
  return %4, %9
}
"""


def test_axes_beside_those_that_are_cut_are_one():
    """Few loops: a loop of 4 in one over n is written out, and was 7 s of LLVM's time for bytes."""
    f = _fused_text(BESIDE)
    arrays = [(np.arange(7 * 16) * 37 % 256).astype("u1").reshape(7, 4, 4), np.arange(2 * 5 * 15.0).reshape(2, 5, 3, 5)]
    assert check_function(BESIDE, arrays) == 2
    kernels = [v.regions[0] for v in f.values() if v.op.name == "fused"]
    assert [source_of(r).text.count("    for ") for r in kernels] == [2, 3]  # two parts


def test_equal_sources_compile_once():
    from symc.runtime.cpu.kernels import compile_count

    body = "  %0 = mul %x, %x : f64[{0}]\n  %1 = add %0, 3.25:f64[{0}] : f64[{0}]\n  return %1\n"
    text = "func @f(%x: f64[{0}]) -> (f64[{0}]) {{\n" + body + "}}"
    check_function(text.format("n"), [np.arange(4.0)])
    before = compile_count()
    for n in range(5):
        check_function(text.format("other"), [np.arange(float(n))])
    assert compile_count() == before


def test_sum_of_many_is_accurate():
    x = np.full(1_000_003, 0.1, "f4")
    text = "func @f(%x: f32[n]) -> (f32[]) {\n  %0 = sum %x {axes = (0,)} : f32[]\n  return %0\n}"
    f = fuse(parse(text))
    (got,) = run_kernel(next(v for v in f.values() if v.op.name == "fused").regions[0], [x], {"n": len(x)})
    assert abs(got - x.astype("f8").sum()) < 1e-5 * x.astype("f8").sum()


#: The accuracy that symc.runtime.library.math states, in ulp.
ACCURACY = {"exp": 1.1, "log": 1.0, "expm1": 2.0, "log1p": 1.5, "tanh": 2.7, "sigmoid": 2.5, "softplus": 2.2}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_keep_their_stated_accuracy(dtype):
    """Against mpmath, from denormals to the ends of the range."""
    import mpmath

    exact = {
        "exp": mpmath.exp,
        "log": mpmath.log,
        "expm1": mpmath.expm1,
        "log1p": mpmath.log1p,
        "tanh": mpmath.tanh,
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    }
    rng = np.random.default_rng(0)
    top = 87 if dtype == "f4" else 708
    spread = np.concatenate([rng.uniform(-top, top, 1500), rng.normal(size=1500), rng.normal(size=1000) * 1e-3]).astype(
        dtype
    )
    t = {"f4": "f32", "f8": "f64"}[dtype]
    lines = "\n".join(f"  %{k} = {name} %x : {t}[n]" for k, name in enumerate(exact))
    names = ", ".join(f"%{k}" for k in range(len(exact)))
    f = fuse(parse(f"func @f(%x: {t}[n]) -> ({', '.join([t + '[n]'] * len(exact))}) {{\n{lines}\n  return {names}\n}}"))
    (kernel,) = [v for v in f.values() if v.op.name == "fused"]
    place = [r.attrs["index"] for r in f.outputs]  # a kernel orders its results by what they are
    got = run_kernel(kernel.regions[0], [spread], {"n": len(spread)})
    positive = run_kernel(kernel.regions[0], [np.exp(spread / 2)], {"n": len(spread)})
    with mpmath.workprec(160):
        for k, (name, function) in enumerate(exact.items()):
            x, y = (np.exp(spread / 2), positive[place[k]]) if name in ("log", "log1p") else (spread, got[place[k]])
            want = [function(mpmath.mpf(float(v))) for v in x]
            ulp = np.spacing(np.abs(np.array([float(w) for w in want], dtype))).astype("f8")
            error = np.array([abs(float(mpmath.mpf(float(a)) - w)) for a, w in zip(y, want, strict=True)]) / ulp
            assert error.max() <= ACCURACY[name], (name, error.max(), x[error.argmax()])


def test_kernels_of_other_dtypes_are_other_kernels():
    """Equal texts over other dtypes are compiled apart, and counted apart."""
    import symc as sc

    x, y = (sc.input(name, "float64", shape=("n", 2)) for name in "xy")
    i, j = (sc.input(name, "int64", shape=("n", 3)) for name in "ij")
    f = sc.compile((x < y, i < j), [x, y, i, j])
    assert len({k.source.split("(", 1)[1] for k in f.kernels}) == 1, "the texts are equal up to the name"
    assert len(f.kernels) == 2 and len({k.name for k in f.kernels}) == 2


def test_integers_that_overflow_are_known_to_do_so():
    import symc as sc

    v = sc.input("v", "int64", ("n",))
    low = -(2**63)
    f = sc.compile([sc.abs(v - 1), v - 1 < v, sc.sign(v * 2), v + low > v], [v])
    for a, b in zip(f([low, 2, 2**62]), ([2**63 - 1, 1, 2**62 - 1], [0, 1, 1], [0, 1, -1], [1, 0, 0]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_made_of_a_sum_does_not_part_the_loop():
    """A mean, and what does not depend on it, are one loop: the number waits until the loop is done."""
    import symc as sc

    x, y = (sc.input(name, "float64", ("n", 3)) for name in "xy")
    error = ((sc.tanh(x) - y) ** 2).mean()
    f = sc.compile([error, error + 1, sc.grad(error, x)], [x, y])
    (kernel,) = f.kernels
    loops = [line for line in kernel.source.splitlines() if line.lstrip().startswith("for ")]
    assert len(loops) <= 4  # over blocks, chunks and elements; and over what blocks have summed
    for n in (2, 1000, 200_000):
        a, b = np.random.default_rng(n).normal(size=(2, n, 3))
        mean, more, gradient = f(a, b)
        want = ((np.tanh(a) - b) ** 2).mean()
        np.testing.assert_allclose([mean, more - 1], want, rtol=1e-12)
        slope = 2 * (np.tanh(a) - b) * (1 - np.tanh(a) ** 2) / a.size
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("mode", ["add", "max", "set", "mul"])
def test_updates_that_are_the_same_in_every_step(mode):
    """Nothing of the update depends on an index of the loops, which must be run all the same."""
    x, w, i = (fresh_input(TensorType("i64", s)) for s in ((3, 4), (4,), ()))
    scatter, broadcast = lookup("scatter"), lookup("broadcast")
    rows = broadcast(i, axes=(), shape=(5,))
    arrays = [np.arange(12).reshape(3, 4), np.array([3, 1, 2, 5]), np.array(2)]
    whole = broadcast(i, axes=(), shape=(5, 4))
    for update in (whole, broadcast(w, axes=(1,), shape=(5, 4))):
        region = close_over([x, w, i], [scatter(x, update, rows, axes=(0,), mode=mode)])
        (want,) = run_region(region, arrays, {})
        for backend in ("llvm", "numba"):
            np.testing.assert_array_equal(run_kernel(region, arrays, {}, backend)[0], want)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_next_numbers_are_numpys(dtype):
    info = np.finfo(dtype)
    edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.smallest_subnormal,
                      -info.smallest_subnormal, 3.5], dtype)
    arrays = [np.ravel(a) for a in np.meshgrid(edges, edges)]
    leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
    region = close_over(leaves, [lookup("nextafter")(*leaves)])
    with np.errstate(all="ignore"):
        want = np.nextafter(*arrays)
    for backend in ("llvm", "numba"):
        np.testing.assert_array_equal(run_kernel(region, arrays, {}, backend)[0], want)
