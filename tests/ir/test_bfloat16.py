"""bfloat16, a dtype of storage: every op that takes floats, its rounding, promotion, text, and errors."""

from __future__ import annotations

import copy
import itertools
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.cells import nominal
from symc.ir.dtypes import ForeignDtype
from symc.ir.function import Function, Input
from symc.ir.op import Op, keeps_storage
from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.ir.text import print_function
from symc.ir.traverse import close, every_value
from symc.ir.types import DTYPES, as_dtype
from symc.ir.value import Value
from symc.numpy_api.promotion import promoted
from symc.opt.widen import is_stored, widen
from symc.runtime.cuda import nvrtc
from symc.runtime.cuda.dlpack import imported
from symc.runtime.cuda.library import unit
from symc.testing import emulated_cuda
from tests.ir.op_cases import ON_DEVICES, SAMPLED, apply, cases, observed

B = np.dtype(ml_dtypes.bfloat16)
#: Numbers of all upper halves, of which some lie between two of bfloat16, or next to the middle.
FLOATS = (np.arange(2**16, dtype=np.uint32)[:, None] << 16
          | np.array([0, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).ravel().view(np.float32)
#: Ops that print, raise or wait, which have no results to compare.
OTHERS = {"print", "assert", "after", "again", "tap", "cached", "check_assumption", "check_index"}


def stored(op: Op) -> Iterator[tuple[list[np.ndarray], dict]]:
    """Samples of an op with floats of 16 bits, at most two; none if it is not defined for them."""
    found = 0
    for arrays, attrs in cases(op):
        if not any(a.dtype.kind == "f" for a in arrays) or not all(a.size and a.dtype.kind != "c" for a in arrays):
            continue
        attrs = {k: sc.bfloat16 if isinstance(a, np.dtype) and a.kind == "f" else a for k, a in attrs.items()}
        arrays = [a.astype(B) if a.dtype.kind == "f" else a for a in arrays]
        try:
            apply(op, arrays, attrs)
        except sc.SymcError:
            continue
        yield arrays, attrs
        found += 1
        if found == 2:
            return


class Sample:
    """An op on free leaves, and what its reference gives."""

    def __init__(self, op: Op, arrays: list[np.ndarray], attrs: dict):
        self.op, self.arrays = op, arrays
        v, self.leaves = apply(op, arrays, attrs)
        self.outputs: list[Value] = observed(v)
        inputs = tuple(Input(f"x{k}", x.type) for k, x in enumerate(self.leaves))
        self.function = Function("f", inputs, close(self.leaves, self.outputs)[0])
        with np.errstate(all="ignore"):
            self.want = evaluate_function(self.function, arrays, check=True)


STORED = [op for op in SAMPLED if op.name not in OTHERS and any(True for _ in stored(op))]


def test_ops_are_defined_as_for_float16() -> None:
    """Not those of libraries that have no routines for it: factorizations, transforms."""
    half = {op.name for op in SAMPLED if any(a.dtype == np.float16 for arrays, _ in cases(op) for a in arrays)}
    known = {op.name for op in STORED} | OTHERS
    assert half <= known and {"add", "exp", "sum", "dot", "conv", "sort", "scatter", "gather", "where"} <= known


@pytest.mark.parametrize("op", STORED, ids=lambda op: op.name)
def test_every_op_is_that_of_float32_rounded(op: Op) -> None:
    """In the reference, and in what the optimizer is given: there movements and casts alone know bfloat16."""
    for arrays, attrs in stored(op):
        s = Sample(op, arrays, attrs)
        wide = widen(s.function)
        assert all(keeps_storage(v) for v in every_value(wide.body) if any(map(is_stored, (v, *v.operands))))
        with np.errstate(all="ignore"):
            for got, want in zip(evaluate_function(wide, arrays, check=True), s.want, strict=True):
                np.testing.assert_array_equal(got.astype("f8"), want.astype("f8"))
        text = print_function(s.function)
        assert "bf16[" in text and print_function(parse(text)) == text


def check_compiled(ops: list[Op], **target: Any) -> None:
    """One function of many ops, against their references: as near as float32 is, rounded."""
    found = [Sample(op, arrays, attrs) for op in ops for arrays, attrs in itertools.islice(stored(op), 1)]
    f = sc.compile([sc.Tensor(o) for s in found for o in s.outputs], [sc.Tensor(x) for s in found for x in s.leaves],
                   **target)
    results = iter(f(*[a for s in found for a in s.arrays]))
    for s in found:
        for want in s.want:
            got = next(results)
            got = got if isinstance(got, np.ndarray) else got.numpy()
            assert got.dtype == want.dtype and got.shape == want.shape, s.op.name
            limit = 2.0**-7 if want.dtype == B else 1e-4 if want.dtype == np.float32 else 0
            np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=limit, atol=1e-38 if limit else 0,
                                       err_msg=s.op.name)


@pytest.mark.parametrize("group", range(8))
@pytest.mark.long
def test_every_op_compiled(group: int) -> None:
    check_compiled(STORED[group::8])


@pytest.mark.parametrize("group", range(6))
@pytest.mark.long
def test_every_op_on_a_device(group: int) -> None:
    if shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    with emulated_cuda(checked=False):
        check_compiled([op for op in STORED if op in ON_DEVICES][group::6], device="cuda")


#: Of which kernels for few elements differ from those of libraries, for many.
ALONG = {"sort": np.sort, "argsort": lambda x: np.argsort(x, stable=True), "median": np.median, "argmax": np.argmax,
         "unique": np.unique, "flip": np.flip, "cumsum": np.cumsum, "ptp": np.ptp, "roll": lambda x: np.roll(x, 7),
         "searchsorted": lambda x: np.searchsorted(np.sort(x), x), "above": lambda x: x[x > 0.5],
         "partition": lambda x: np.partition(x, 3)[3], "counts": lambda x: np.unique(x, return_counts=True)[1]}


@pytest.mark.long
@pytest.mark.parametrize("name", ALONG)
def test_lines_of_any_length(name: str) -> None:
    """As float32, rounded: numbers are sixteenths, so sums are exact before."""
    x = sc.vector("x", "bfloat16")
    f = sc.compile(ALONG[name](x), [x])
    for n in (5, 1000):
        a = (np.random.default_rng(n).integers(-16, 16, n) / 16).astype(B)
        want = np.asarray(ALONG[name](a.astype("f4")))
        want = want if want.dtype.kind in "iu" else want.astype(B)
        np.testing.assert_array_equal(f(a).astype("f4"), want.astype("f4"))


# --- numbers ----------------------------------------------------------------------------------------------------------


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Equal bit for bit, but for what a nan says."""
    assert a.dtype == b.dtype == B
    nan = b != b
    np.testing.assert_array_equal(a != a, nan)
    np.testing.assert_array_equal(a.view(np.uint16)[~nan], b.view(np.uint16)[~nan])


@pytest.mark.long
@pytest.mark.parametrize("target", [*({"backend": b} for b in ("llvm", "numba", "numpy")), {"device": "cuda"}])
def test_all_numbers_are_rounded_to_nearest(target: dict) -> None:
    x, b = sc.vector("x", "float32"), sc.vector("b", "bfloat16")
    numbers = FLOATS.view(np.uint16)[::2].copy().view(B)
    with np.errstate(all="ignore"), emulated_cuda(checked=False):
        to, back, through = sc.compile([x.astype("bfloat16"), b.astype("float32"), b[::-1]], [x, b], **target)(
            FLOATS, numbers)
        to, back, through = (np.asarray(r if isinstance(r, np.ndarray) else r.numpy()) for r in (to, back, through))
        same_bits(to, FLOATS.astype(B))
        np.testing.assert_array_equal(back, numbers.astype("f4"))
        same_bits(through, numbers[::-1])


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.kind != "c"], ids=str)
def test_casts_are_those_of_ml_dtypes(dtype: np.dtype) -> None:
    source = np.array([0, 1, 2, 3, 100, 127] if dtype.kind in "iub" else [0.1, -2.5, 1 + 2**-8, 6e4, -0.0]).astype(
        dtype)
    x, b = sc.vector("x", dtype), sc.vector("b", "bfloat16")
    stored = np.array([0, 1, 2.5, 100], B)
    to, back = sc.compile([x.astype(sc.bfloat16), b.astype(dtype)], [x, b])(source, stored)
    same_bits(to, source.astype(B))
    np.testing.assert_array_equal(back, stored.astype(dtype))


# --- promotion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [d for d in DTYPES.values() if d != sc.bfloat16], ids=str)
def test_promotion_is_that_of_ml_dtypes(other: np.dtype) -> None:
    x, y = sc.vector("x", "bfloat16"), sc.vector("y", other)
    if other.kind in "iu" and other.itemsize > 1 or other == np.float16:  # no common dtype, but ufuncs have loops
        want = np.add(np.ones(1, B), np.ones(1, other)).dtype
    else:
        want = np.result_type(B, other)
    want = as_dtype(want)
    assert (x + y).dtype == (y * x).dtype == sc.result_type(x, y) == sc.promote_types(x, other) == want
    assert sc.concatenate([x, y]).dtype == want and sc.where(x > 0, x, y).dtype == want


def test_another_dtype_of_storage_stays_itself() -> None:
    """Beside wider ones, float16 or another dtype of storage it is as wide as they are together."""
    other = cast(np.dtype, ForeignDtype("float8_e5m2", "ml_dtypes", "5", 1))
    assert promoted((other, other)) is other and promoted((other, float)) is other and promoted((other, int)) is other
    assert all(promoted((other, DTYPES[d])) == np.float32 for d in ("f16", "bf16", "f32"))
    assert promoted((other, DTYPES["f64"])) == np.float64


def test_numbers_of_python_are_weak() -> None:
    """Other than in NumPy, where a float beside an array of ml_dtypes is a float32."""
    x = sc.vector("x", "bfloat16")
    for y in (x + 1, x * 2.5, 1 / x, x**2, sc.maximum(x, 0.0), sc.where(x > 0, x, 0), sc.exp(x), sc.mean(x), x.sum(),
              sc.clip(x, 0, 1), x / 2, -x, abs(x), sc.linalg.norm(x)):
        assert y.dtype == sc.bfloat16
    assert (x + 1j).dtype == np.complex64 and (x > 0).dtype == bool and sc.argmax(x).dtype == np.int64


def test_questions_about_it() -> None:
    for said in ("bfloat16", "bf16", B, ml_dtypes.bfloat16, sc.bfloat16):
        assert as_dtype(said) is sc.bfloat16
    assert sc.finfo("bfloat16").max == ml_dtypes.finfo(B).max and sc.isdtype(sc.bfloat16, "real floating")
    assert sc.can_cast(sc.bfloat16, "float32") and not sc.can_cast("float32", sc.bfloat16)
    assert sc.bfloat16 == B and sc.bfloat16 == B and sc.bfloat16 != np.float16
    assert pickle.loads(pickle.dumps(sc.bfloat16)) is sc.bfloat16 is copy.deepcopy(sc.bfloat16)


# --- accuracy ---------------------------------------------------------------------------------------------------------


def test_sums_and_products_are_in_float32() -> None:
    """A sum of bfloat16 stops growing at 256 ones."""
    x, w = sc.matrix("x", "bfloat16"), sc.matrix("w", "bfloat16")
    ones = np.ones((4, 1000), B)
    total, mean, product = sc.compile([x.sum(1), x.mean(), x @ w], [x, w])(ones, ones.T.copy())
    assert total.tolist() == [1000.0] * 4 and mean == 1 and (product.astype("f4") == 1000).all()


@pytest.mark.long
def test_gradients() -> None:
    """Of a network in bfloat16, against the same in float32."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype("f4") for s in ((32, 20), (20, 16), (16,))]
    found = []
    for dtype in ("float32", "bfloat16"):
        x, w, b = (sc.input(n, "float32", a.shape) for n, a in zip("xwb", arrays, strict=True))
        y = sc.tanh(x.astype(dtype) @ w.astype(dtype) + b.astype(dtype))
        loss = sc.mean((y * y).astype("float32"))
        found.append(sc.compile([loss, *sc.grad(loss, [w, b])], [x, w, b])(*arrays))
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=0.04 * abs(a).max())


# --- around it --------------------------------------------------------------------------------------------------------


def test_states_constants_and_loops(tmp_path) -> None:
    w = sc.shared(np.ones(3, B), "w")
    x = sc.vector("x", "bfloat16")
    step = sc.compile(sc.sum(w * x) + sc.asarray(np.array([0.5], B))[0], [x], updates={w: w + x})
    assert step(np.array([1, 2, 3], B)) == 6.5 and w.get_value().dtype == B
    assert w.get_value().tolist() == [2, 3, 4]
    w.set_value(np.array([1, 1, 2.5]))
    step.save(tmp_path / "f.symc")
    again = sc.load(tmp_path / "f.symc")
    assert again(np.array([1, 2, 3], B)) == 11
    loop = sc.scan(lambda c, a: (c + a, c * a), sc.asarray(np.array(0, B)), x)
    last, rows = sc.compile(list(loop), [x])(np.array([1, 2, 3], B))
    assert last == 6 and rows.tolist() == [0, 2, 9] and rows.dtype == B


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_parameters_are_saved(tmp_path, suffix: str) -> None:
    P = sc.Params(dtype="bfloat16")
    w = P.weight("w", (3, 2), sc.init.constant(1.5))
    assert w.dtype == sc.bfloat16
    sc.save_params(tmp_path / f"p.{suffix}", P)
    w.set_value(np.zeros((3, 2), B))
    sc.load_params(tmp_path / f"p.{suffix}", P)
    assert (w.get_value() == np.full((3, 2), 1.5, B)).all() and w.get_value().dtype == B


def test_random_numbers() -> None:
    key = sc.random.key(3)
    u, n = sc.random.uniform(key, (2000,), "bfloat16"), sc.random.normal(key, (2000,), "bfloat16")
    u, n = (a.astype("f4") for a in sc.compile([u, n])())
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.02 and abs(n.std() - 1) < 0.05
    assert len(np.unique(u)) <= 256


def test_without_ml_dtypes(monkeypatch) -> None:
    """A program that says bfloat16 is told what is missing; ``import symc`` does not import it."""
    monkeypatch.setattr(sc.bfloat16, "_found", None)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(sc.InputError, match="ml_dtypes"):
        np.zeros(2, sc.bfloat16)
    code = "import sys, symc; assert symc.bfloat16.itemsize == 2 and 'ml_dtypes' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_it_cannot() -> None:
    x = sc.vector("x", "bfloat16")
    with pytest.raises(sc.DTypeError, match="would lose"):
        sc.compile(sc.vector("k", "int32") + 1)(np.ones(2, B))
    with pytest.raises(sc.SymcError, match="bf16"):
        sc.linalg.inv(sc.matrix("a", "bfloat16"))
    with pytest.raises(sc.SymcError):
        sc.set_default_float("bfloat16x")
    assert sc.compile(x * 2)(np.array([1.0, 2.0])).tolist() == [2, 4]  # as for float32: rounded


@pytest.mark.long
def test_exports(tmp_path) -> None:
    """A library of its own, and formats that have the dtype."""
    pytest.importorskip("onnx")
    import onnx

    x, w = sc.matrix("x", "bfloat16"), sc.shared(np.ones((4, 3), B), "w")
    f = sc.compile(sc.exp(x @ w) + 1, [x], updates={w: w * 2}, name="f")
    f.export_library(tmp_path / "made")
    given = np.ones((2, 4), B)
    code = ("import numpy as np, made; x = np.frombuffer(bytes.fromhex('803f' * 8), made._dtype('bfloat16'));"
            "print(made.f(x.reshape(2, 4)).tolist())")
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(f(given).tolist())
    assert "tensor<?x4xbf16>" in f.to_stablehlo() and f.export_c(tmp_path / "c").endswith(".c")
    sc.compile(sc.exp(x) + x, [x]).to_onnx(tmp_path / "f.onnx")
    model = onnx.load(tmp_path / "f.onnx")
    onnx.checker.check_model(model)
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16


def test_arrays_of_devices() -> None:
    """Results, states and arguments on a device, and what DLPack says of them; NumPy has no name for it there."""
    with emulated_cuda(checked=False):
        x, w = sc.vector("x", "bfloat16"), sc.shared(np.ones(3, B), "w")
        f = sc.compile(w * x, [x], updates={w: w + x}, device="cuda")
        once = f(np.array([1, 2, 3], B))
        again = f(sc.device_array(np.array([1, 2, 3], B)))
        assert again.dtype == once.dtype == sc.bfloat16 and again.tolist() == [2, 6, 12]
        assert repr(again)[12:16] == "bf16"
        lent = imported(again, None, again.__dlpack_device__())
        assert (lent.dtype, lent.shape, lent.address) == (sc.bfloat16, (3,), again.address)
        assert w.to_device("cpu").get_value().tolist() == [3, 5, 7]
        with pytest.raises(AttributeError):
            _ = again.__cuda_array_interface__


def test_products_on_devices_read_16_bits() -> None:
    """One call of the library a product, without casts before and after; also where factors were moved. Their sums are
    float32."""
    for dtype in ("bfloat16", "float16"):
        x, w = sc.input("x", dtype, ("n", 64)), sc.input("w", dtype, (48, 64))
        y = x @ w.T
        with sc.testing.dry_cuda():
            (product,) = sc.compile(y, [x, w], device="cuda").launches(n=8192)
            assert product.kind == "product" and product.moved == 2 * (8192 * 64 + 48 * 64 + 8192 * 48)
        with emulated_cuda(checked=False):
            rng = np.random.default_rng(0)
            a, b = (rng.normal(size=s).astype(np.dtype(as_dtype(dtype))) for s in ((40, 64), (48, 64)))
            got = sc.compile(y, [x, w], device="cuda")(a, b).numpy()
            want = (a.astype("f4") @ b.T.astype("f4")).astype(a.dtype)
            np.testing.assert_allclose(got.astype("f4"), want.astype("f4"), rtol=2**-7)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.long
def test_kernels_compile_for_gpus(arch: str) -> None:
    """GPUs from sm_80 on round by one instruction; older ones in integers."""
    try:
        nvrtc.library()
    except sc.InputError as e:
        pytest.skip(str(e))
    x, y = (sc.input(n, "bfloat16", ("n", 256)) for n in "xy")
    with sc.testing.dry_cuda():
        f = sc.compile([sc.softmax(x * y + x, 1), sc.sum(x, 0), x.T, sc.cumsum(y, 1)], [x, y], device="cuda")
        families = list(f._program.families.values())
        texts = [unit([loaded.family.source(loaded.family.choose(nominal), "kernel")]) for loaded in families]
    assert len(texts) >= 3 and all(nvrtc.compile_cubin(text, arch).data for text in texts)
