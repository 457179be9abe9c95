"""The fast CUDA templates compute what the references do, access by access, and read and write memory as they should.

Everything runs on the emulated device, which finds races, reads of what nobody wrote, and accesses out of bounds.
Kernels of one test are one translation unit.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.codegen.cuda.generic import Generic
from symc.codegen.cuda.served import serve
from symc.codegen.cuda.templates import family
from symc.ir.function import Input, function
from symc.ir.ops.windows import add_windows
from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.opt import DEFAULT
from symc.opt.fusion.fuse import fuse
from symc.runtime.emulator import BACKWARD, EmulatedDevice
from tests.cuda.template_cases import Case, cases_of, compare, fast, of, run
from tests.ir import op_cases

x, y = (sc.input(name, "float32", ("n", "m")) for name in "xy")
g, b = (sc.input(name, "float32", ("m",)) for name in "gb")
t = sc.input("t", "float32", ("a", "b", "c"))
z = sc.input("z", "float32", ("m", "n"))
h = sc.input("h", "float16", ("n", "m"))
s = sc.input("s", "float32", ("n",))
w, i = sc.input("w", "float32", ("v", "d")), sc.input("i", "int64", ("k",))


def normal(*shape: int, dtype: str = "f4", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def places(below: int, n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, below, n)


def norm(a):
    """A layer norm."""
    centered = a - sc.mean(a, axis=1, keepdims=True)
    return centered / sc.sqrt(sc.mean(centered**2, axis=1, keepdims=True) + 1e-5) * g + b


def kinds(cases: list[Case]) -> set[str]:
    return {type(c.family).__name__ for c in cases}


def words(cases: list[Case]) -> set[str]:
    return {word for c in cases for word in c.choice.split("_")}


def checked(cases: list[Case], ulps: float = 8, device: EmulatedDevice | None = None) -> list[Case]:
    run(cases, device)
    compare(cases, ulps)
    return cases


# --- elements ---------------------------------------------------------------------------------------------------------


def test_elementwise_kernels():
    whole, bias = sc.tanh(x) * y + 2 * x, sc.maximum(x + b, 0)
    cases = [c for n, m in [(1, 1), (3, 5), (7, 128), (9, 250)]
             for c in [*of(whole, [x, y], normal(n, m), normal(n, m, seed=1)),
                       *of(bias, [x, b], normal(n, m), normal(m)),
                       *of(h.astype("float32") * b, [h, b], normal(n, m, dtype="f2"), normal(m)),
                       *of(sc.concat([x, y], axis=1) > 0, [x, y], normal(n, m), normal(n, m, seed=1))]]
    c = sc.input("c", "complex64", ("n", "m"))
    cases += of(c * c + 1j, [c], normal(5, 30) + 1j * normal(5, 30, seed=1))
    checked(cases + of([sc.sin(t), t > b.sum()], [t, b], normal(3, 4, 5), normal(5)))
    assert kinds(cases) == {"Flat"} and "rows" in words(cases)


def test_vectors_of_sixteen_bytes_and_nothing_twice():
    """Two operands and a result of 4096 elements: each byte is moved once, sixteen at a time."""
    (whole,) = of(sc.tanh(x) * y, [x, y], normal(32, 128), normal(32, 128, seed=1))
    (bias,) = of(sc.maximum(x + b, 0), [x, b], normal(32, 128), normal(128))
    (rows,) = of(sc.take(w, i, axis=0) * 2, [w, i], normal(9, 64), places(9, 64))[-1:]
    for c in checked([whole, bias, rows]):
        (launch,) = c.traffic
        assert launch.loads.keys() <= {8, 16} and launch.stores == {16: c.got[0].nbytes // 16}
        assert launch.efficiency > 0.98 and launch.bytes_written == c.got[0].nbytes
    assert whole.traffic[0].bytes_read == 2 * whole.arrays[0].nbytes


def test_a_thread_has_two_vectors_of_large_arrays_and_indices_of_64_bits_of_huge_ones():
    (c,) = of(sc.tanh(x) * y, [x, y], normal(9, 250), normal(9, 250))
    (d,) = of(sc.tanh(x) * y, [x, y], normal(9, 250), normal(9, 250))
    assert c.family.choose(lambda s: 2**20) == "many" and c.family.choose(lambda s: 2**31) == "many_wide"
    c.choice, d.choice = "many", "wide"
    checked([c, d])
    assert d.source.wide and c.traffic[0].shape.grid == (2, 1, 1)


def test_transposed_operands_go_through_tiles():
    cases = [*of(sc.tanh(x) + z.T, [x, z], normal(64, 96), normal(96, 64)),
             *of(h.T * 2, [h], normal(33, 70, dtype="f2")),
             *of(sc.transpose(t, (0, 2, 1)) * 2, [t], normal(2, 64, 64)), *of(z.T * 2, [z], normal(3, 40))]
    checked(cases)
    assert kinds(cases) == {"Transposed"} and [c.choice for c in cases] == ["tiles", "tiles", "tiles", ""]
    for c in (cases[0], cases[2]):
        (launch,) = c.traffic
        assert launch.efficiency == 1 and not launch.bank_conflicts
        assert launch.bytes_read == sum(a.nbytes for a in c.arrays)


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 5), (37, 12), (6, 128), (5, 1000), (2, 5000), (2, 4096)], ids=str)
def test_kernels_on_rows(shape):
    n, m = shape
    a = normal(n, m)
    cases = [*of(sc.softmax(x, axis=1), [x], a), *of(norm(x), [x, g, b], a, normal(m), normal(m, seed=1)),
             *of(sc.softmax(h, axis=1), [h], a.astype("f2")),
             *of([sc.argmax(x, axis=1), sc.min(x, axis=1), sc.all(x > -3, axis=1)], [x], a),
             *of(sc.logsumexp(x, axis=1), [x], a)]
    checked(cases, 16)
    assert kinds(cases) == {"RowKernel"}


def test_rows_are_read_and_written_once():
    """Softmax and a layer norm: two passes and more, one reading."""
    for n, m in [(6, 128), (3, 1024), (2, 4096)]:
        a = normal(n, m)
        (soft,), (layer,) = of(sc.softmax(x, axis=1), [x], a), of(norm(x), [x, g, b], a, normal(m), normal(m, seed=1))
        checked([soft, layer], 16)
        assert soft.traffic[0].bytes_read == soft.traffic[0].bytes_written == a.nbytes
        assert soft.traffic[0].loads.keys() == soft.traffic[0].stores.keys() == {16}
        assert layer.traffic[0].bytes_read == a.nbytes * 3 and layer.traffic[0].efficiency > 0.99  # g and b every time


def test_how_rows_are_divided():
    """Threads, vectors of a thread, elements of a vector: sizes alone decide."""
    (c,) = of(sc.softmax(x, axis=1), [x], normal(3, 5))

    def choice(n: int, m: int) -> str:
        return c.family.choose(lambda s: {str(x.shape[0]): n, str(x.shape[1]): m}.get(str(s), n * m))

    assert [choice(4096, m) for m in (1, 10, 64, 128, 1000, 1024, 4096, 8192, 16384)] == [
        "1x1x1", "8x2x1", "8x2x4", "16x2x4", "32x8x4", "32x8x4", "256x4x4", "512x4x4", "1024x4x4"]
    assert [choice(4096, m) for m in (1001, 100_000)] == ["128x8x1", "512x0x4"]
    assert choice(2, 100_000) == "split_v4" and choice(2**20, 4096) == "256x4x4_wide"


def test_long_rows_are_read_again_and_few_of_them_are_split():
    a = normal(2, 33_000)
    (again,), (split,), (total,) = (of(f, [x], a) for f in (sc.softmax(x, axis=1),) * 2 + (sc.var(x),))
    again.choice = "512x0x4"
    assert split.choice == total.choice == "split_v4"
    checked([again, split, total], 64)
    assert [len(c.traffic) for c in (again, split, total)] == [1, 3, 3]
    assert again.traffic[0].bytes_read == 3 * a.nbytes  # two passes read the operand, one what the second kept


def test_rows_that_lie_in_pieces():
    """Statistics of channels: what is folded has another axis in between, and is read in vectors all the same."""
    image = sc.input("image", "float32", ("k", "c", "h", "w"))
    cases = []
    for shape in [(3, 5, 7, 9), (4, 6, 8, 16), (9, 2, 128, 64)]:
        cases += of([sc.sum(image, axis=(0, 2, 3)), sc.max(image, axis=(0, 2, 3))], [image], normal(*shape))
    u, v = sc.input("u", "float32", ("h",)), sc.input("v", "float32", ("w",))
    line = of(sc.sum(sc.tanh(image * v), axis=(0, 2, 3)), [image, v], normal(4, 6, 8, 16), normal(16))
    plane = of(sc.sum(sc.tanh(image * u[:, None]), axis=(0, 2, 3)), [image, u], normal(4, 6, 16, 8), normal(16))
    checked([*cases, *line, *plane], 64)
    assert [c.choice for c in cases] == ["128x2x1", "64x2x4", "split_v4"] and cases[1].traffic[0].loads == {16: 768}
    assert kinds([*line, *plane]) == {"RowKernel"}


def test_sums_of_everything():
    n = sc.input("n", "int32", ("n", "m"))
    a, k = normal(3, 33_333), np.random.default_rng(0).integers(1, 4, (3, 33_333)).astype("i4")
    cases = [*of(sc.sum(x * y), [x, y], a, a), *of(sc.argmax(x), [x], a), *of(sc.sum(h), [h], a.astype("f2")),
             *of([sc.all(n > 0), sc.prod(n), sc.max(n)], [n], k), *of(x / sc.sum(abs(x)), [x], a),
             *of(sc.sum(x * y), [x, y], a[:, :300], a[:, :300])]
    checked(cases, 64)
    assert [c.choice.split("_")[0] for c in cases] == ["split"] * 5 + ["128x2x4"]
    first, second = cases[0].traffic
    assert first.bytes_read == 2 * a.nbytes and first.efficiency > 0.99 and second.bytes_written == 4


# --- columns ----------------------------------------------------------------------------------------------------------


def test_columns():
    cases = []
    for n, m in [(3, 5), (70, 128), (140, 128), (300, 12), (20, 3000)]:
        a = normal(n, m)
        cases += [*of(sc.sum(x, axis=0), [x], a), *of(sc.var(x, axis=0), [x], a),
                  *of(sc.max(h, axis=0), [h], a.astype("f2"))]
    cases += of(sc.sum(t, axis=1), [t], normal(3, 200, 8))
    checked(cases, 32)
    assert kinds(cases) - {"Flat"} == {"Columns"} and {"v4", "v1", "v8", "split"} <= words(cases)
    (c,) = of(sc.sum(x, axis=0), [x], normal(256, 128))
    checked([c], 32)
    rows, parts = c.traffic
    assert rows.bytes_read == c.arrays[0].nbytes and rows.loads == {16: 8192} and rows.efficiency == 1
    assert parts.bytes_written == 512


@pytest.mark.parametrize("shape", [(3, 5), (270, 128), (40, 1030)], ids=str)
def test_gradients_that_are_folded_down_columns_on_the_way(shape):
    n, m = shape
    a, d, one = normal(n, m), normal(n, m, seed=1), normal(m)
    both = sc.grad(sc.sum(norm(x) * y), [x, g, b])
    cases = [*of(both, [x, g, b, y], a, one, one, d),
             *of(sc.grad(sc.sum(sc.tanh(x + b) * y), [x, b]), [x, b, y], a, one, d),
             *of([sc.sum(x, axis=0), sc.mean(x, axis=1), sc.max(x, axis=0)], [x], a)]
    checked(cases, 64)
    assert kinds(cases) == {"RowsAndColumns"} and ("whole" in words(cases)) == (n <= 256)
    assert cases[0].traffic[0].bytes_read == 2 * a.nbytes + n * one.nbytes  # the scale again for each row


def test_long_rows_beside_columns():
    a, one = normal(9, 300), normal(300)
    cases = of(sc.grad(sc.sum(norm(x) * y), [x, g, b]), [x, g, b, y], a, one, one, a)
    cases[0].choice = "512x0x4"
    checked(cases, 64)


# --- updates ----------------------------------------------------------------------------------------------------------


def test_updates():
    picked = sc.grad(sc.sum(sc.take(w, i, axis=0) ** 2), w)
    label = sc.input("label", "int64", ("n",))
    loss = sc.mean(sc.logsumexp(x, axis=1) - sc.take_along_axis(x, label[:, None], axis=1)[:, 0])
    cases = [c for v, d, k in [(50, 33, 200), (3, 7, 1500), (2, 4, 3), (1500, 5, 40)]
             for c in of(picked, [w, i], normal(v, d), places(v, k))]
    cases += of(sc.grad(sc.sum(sc.take(b, i) * 2), b), [b, i], normal(9), places(9, 3000))
    cases += of(sc.grad(loss, x), [x, label], normal(20, 7), places(7, 20))
    checked(cases, 64)
    assert {"Scatter"} <= kinds(cases) <= {"Scatter", "Flat", "RowKernel"} and {"owned", "apart"} <= words(cases)


_SCATTER = """
func @scattered(%a: i64[v], %x: i64[k], %i: i64[k]) -> (i64[v]) {
  %0 = scatter %a, %x, %i {axes = (0,), mode = "MODE"} : i64[v]
  return %0
}
"""


def test_integers_are_counted_by_atomics():
    numbers = np.random.default_rng(0).integers(-9, 9, 500)
    cases = of(sc.bincount(i, length=40), [i], places(40, 500))
    for text in ("add", "max", "min"):
        program = _SCATTER.replace("MODE", text)
        cases += cases_of(program, [np.arange(7), numbers, places(7, 500)], fast)
        cases += cases_of(program.replace("i64[v]", "i32[v]").replace("%x: i64[k]", "%x: i32[k]"),
                          [np.arange(7, dtype="i4"), numbers.astype("i4"), places(7, 500)], fast)
    assert {"atomic"} <= words(checked(cases))


def test_windows_are_added_up_by_what_they_are_added_to():
    """Every sample of the op: windows that overlap, that lie apart, and with elements between theirs."""
    found = []
    for arrays, attrs in op_cases.cases(add_windows):
        v, leaves = op_cases.apply(add_windows, arrays, attrs)
        f = function("windows", [(leaf, Input(f"x{k}", leaf.type)) for k, leaf in enumerate(leaves)], [v])
        found += cases_of(fuse(f), arrays, fast)
    assert {"Windows"} <= kinds(found) and len(found) >= 6
    assert all(len(c.traffic) <= 1 for c in checked(found, 64))


def test_indices_out_of_bounds_are_reported():
    bad = np.array([0, 3, 9])
    cases = of(sc.take(w, i, axis=0) * 2, [w, i], normal(9, 4), np.array([0, 3, 8]))
    run(cases)
    assert not any(c.failed for c in cases)
    cases[0].arrays[0] = bad
    run(cases[:1])
    assert cases[0].failed


# --- running sums -----------------------------------------------------------------------------------------------------


_RECURRENCE = """
func @recurrence(%a: f32[n, m], %x: f32[n, m]) -> (f32[n, m]) {
  %0 = linrec %a, %x {axis = AXIS, reverse = REVERSE} : f32[n, m]
  return %0
}
"""


def test_running_sums():
    cases = [*of(sc.cumsum(x, axis=1), [x], normal(2, 20_000)), *of(sc.cumsum(x), [x], normal(7, 9))]
    for n, m in [(3, 70), (3, 300), (600, 40)]:
        a = normal(n, m)
        cases += of(sc.cumsum(x, axis=1), [x], a) + of(sc.cumsum(h, axis=0), [h], a.astype("f2"))
        for axis, reverse in [(0, "false"), (1, "true")]:
            text = _RECURRENCE.replace("AXIS", str(axis)).replace("REVERSE", reverse)
            cases += cases_of(text, [a / 2, normal(n, m, seed=1)], fast)
    checked(cases, 256)
    assert kinds(cases) == {"RunningSums"} and words(cases) == {"parts", "blocks", "warps", "down"}


# --- everything -------------------------------------------------------------------------------------------------------


def _program(kind: str, dtype: str) -> str:
    body = {
        "map": "%1 = mul %x, %x : D[n, m]\n  %2 = sub %1, %x : D[n, m]\n  return %2 ",
        "row": "%1 = sum %x {axes = (1,)} : D[n]\n  %2 = broadcast %1 {axes = (0,), shape = (n, m)} : D[n, m]\n"
               "  %3 = sub %x, %2 : D[n, m]\n  return %3 ",
        "max": "%1 = max %x {axes = (1,)} : D[n]\n  return %1 ",
        "column": "%1 = mul %x, %x : D[n, m]\n  %2 = sum %1 {axes = (0,)} : D[m]\n  return %2 ",
        "total": "%1 = mul %x, %x : D[n, m]\n  %2 = min %1 {axes = (0, 1)} : D[]\n  return %2 ",
        "both": "%1 = neg %x : D[n, m]\n  %2 = sum %1 {axes = (0,)} : D[m]\n  return %1, %2 ",
    }[kind]
    results = {"map": "D[n, m]", "row": "D[n, m]", "max": "D[n]", "column": "D[m]", "total": "D[]",
               "both": "D[n, m], D[m]"}
    return f"func @{kind}(%x: D[n, m]) -> ({results[kind]}) {{\n  {body}\n}}\n".replace("D", dtype)


_DTYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8", "u8": "u1", "i16": "i2"}
_CASE = st.tuples(st.sampled_from(["map", "row", "max", "column", "total", "both"]), st.sampled_from(sorted(_DTYPES)),
                  st.integers(1, 70), st.one_of(st.integers(1, 70), st.sampled_from([128, 256, 257, 1024])))


@given(chosen=st.lists(_CASE, min_size=16, max_size=16, unique=True))
@settings(deadline=None, max_examples=2, derandomize=True)
def test_any_shape_and_dtype(chosen):
    cases = []
    for kind, dtype, n, m in chosen:
        a = np.random.default_rng([n, m]).integers(-3, 4, (n, m)).astype(_DTYPES[dtype])
        cases += cases_of(_program(kind, dtype), [a], fast)
    assert len(cases) >= 14
    checked(cases)


def one_of_each() -> list[Case]:
    """A kernel of every template, in variants that others do not have."""
    a, d, one = normal(9, 130), normal(9, 130, seed=1), normal(130)
    soft = sc.softmax(x, axis=1)
    return [*of(sc.tanh(x + b) * y, [x, b, y], a, one, d), *of(x + z.T, [x, z], a, d.T.copy()), *of(soft, [x], a),
            *of(sc.sum(x * x), [x], normal(2, 33_000)), *of(sc.var(x, axis=0), [x], normal(200, 12)),
            *of(sc.grad(sc.sum(norm(x) * y), [x, g, b]), [x, g, b, y], a, one, one, d),
            *of(sc.grad(sc.sum(sc.take(w, i, axis=0) ** 2), w), [w, i], normal(50, 33), places(50, 200)),
            *of(sc.cumsum(x, axis=1), [x], normal(2, 20_000))]


def test_every_template_has_indices_of_64_bits():
    cases = one_of_each()
    assert kinds(cases) == {"Flat", "Transposed", "RowKernel", "Columns", "RowsAndColumns", "Scatter", "RunningSums"}
    for c in cases:
        c.choice = f"{c.choice}_wide" if c.choice else "wide"
        assert c.source.wide or not any(a.kind == "size" for e in c.source.entries for a in e.arguments)
    checked(cases, 256)


def test_nothing_along_an_axis():
    cases = []
    for n, m in [(5, 0), (0, 5), (0, 0)]:
        a = np.zeros((n, m), "f4")
        cases += [*of([sc.sum(x, axis=1), x * 2], [x], a), *of(sc.sum(x, axis=0), [x], a), *of(sc.sum(x), [x], a),
                  *of([sc.sum(x, axis=0), sc.tanh(x)], [x], a), *of(sc.cumsum(x, axis=0), [x], a)]
    checked(cases)
    assert len(cases) >= 15


def test_results_in_the_memory_of_operands_and_any_order_of_threads():
    """Equal bits in every order of threads and blocks, and where results lie over operands."""
    def made(inplace: bool) -> list[Case]:
        return [*of(sc.tanh(x) * y, [x, y], normal(9, 130), normal(9, 130), inplace=inplace),
                *of(sc.softmax(x, axis=1) * y, [x, y], normal(9, 130), normal(9, 130), inplace=inplace),
                *of(sc.sum(x * x, axis=1) + s, [x, s], normal(9, 20), normal(9), inplace=inplace),
                *of(sc.sum(x, axis=0), [x], normal(200, 12)), *of(sc.sum(x * x), [x], normal(2, 33_000)),
                *of(sc.grad(sc.sum(sc.tanh(x + b) * y), [x, b]), [x, b, y], normal(9, 12), normal(12), normal(9, 12),
                    inplace=inplace)]

    first = checked(made(False), 64)
    for device, inplace in [(EmulatedDevice(order=BACKWARD), True), (EmulatedDevice(order=7), False)]:
        again = made(inplace)
        run(again, device)
        for c, d in zip(first, again, strict=True):
            for a, b_ in zip(c.got, d.got, strict=True):
                np.testing.assert_array_equal(a, b_)


def test_what_no_template_serves_is_generic():
    c, few = sc.input("c", "complex64", ("n", "m")), sc.input("few", "float32", (4, "m"))
    for f, leaf in [(sc.argmax(few, axis=0), few), (sc.sum(c, axis=1), c)]:
        final = sc.compile(f, [leaf], pipeline=DEFAULT)._compilation.final
        forms = [(v.regions[0], ()) for v in final.values() if v.op.name == "fused"]
        assert [type(family(form)) for form in forms] == [Generic]


@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_what_is_put_and_its_places_share_no_kernel(dtype: str) -> None:
    """They are of other lengths: no loops are both. Complex numbers are put by no template."""
    f = fuse(parse(f"""
func @put(%x: {dtype}[n, m, 9], %i: i64[k], %u: {dtype}[k, n, 9]) -> ({dtype}[n, m, 9]) {{
  %0 = neg %i : i64[k]
  %1 = bounded %0 {{size = m}} : i64[k]
  %2 = neg %u : {dtype}[k, n, 9]
  %3 = scatter %x, %2, %1 {{axes = (1,), mode = "add"}} : {dtype}[n, m, 9]
  return %3
}}
"""))
    served = serve(f)
    assert sum(v.op.name == "fused" for v in served.values()) == 2
    stored = {"f64": "f8", "c128": "c16"}[dtype]
    arrays = [normal(3, 5, 9, dtype=stored), -np.arange(4), normal(4, 3, 9, dtype=stored)]
    np.testing.assert_array_equal(*(evaluate_function(each, arrays)[0] for each in (served, f)))
