"""Dtypes of storage, each that symc has and one more: every op that takes floats, rounding, text, files, and errors."""

from __future__ import annotations

import copy
import itertools
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.cells import nominal
from symc.ir.dtypes import DTYPE_NAMES, RECORDS, dtype_code, is_foreign
from symc.ir.function import Function, Input
from symc.ir.op import Op, keeps_storage
from symc.ir.parse import parse
from symc.ir.record import replace
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
from tests.ir.another_float import NAME, another_float
from tests.ir.op_cases import ON_DEVICES, SAMPLED, apply, cases, in_groups, observed

#: By their names in NumPy.
NAMES = [*[d.name for d in RECORDS if is_foreign(d)], NAME]
B = np.dtype(ml_dtypes.bfloat16)
#: Numbers of all upper halves, of which some lie between two of a dtype, or next to the middle.
FLOATS = (np.arange(2**16, dtype=np.uint32)[:, None] << 16
          | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).ravel().view(np.float32)
#: Ops that print, raise or wait, which have no results to compare.
OTHERS = {"print", "assert", "after", "again", "tap", "cached", "check_assumption", "check_index"}

each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module", autouse=True)
def _two() -> Iterator[None]:
    with another_float():
        yield


def own(name: str) -> np.dtype:
    """The dtype of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name))


def stored(op: Op, dtype: np.dtype, most: int = 2) -> Iterator[tuple[list[np.ndarray], dict]]:
    """Samples of an op with floats of a dtype, so many at most; none if it is not defined for them."""
    found = 0
    for arrays, attrs in cases(op):
        if not any(a.dtype.kind == "f" for a in arrays) or not all(a.size and a.dtype.kind != "c" for a in arrays):
            continue
        attrs = {k: as_dtype(dtype) if isinstance(a, np.dtype) and a.kind == "f" else a for k, a in attrs.items()}
        with np.errstate(all="ignore"):
            arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
        try:
            apply(op, arrays, attrs)
        except sc.SymcError:
            continue
        yield arrays, attrs
        found += 1
        if found == most:
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


with another_float():
    STORED = {name: [op for op in SAMPLED if op.name not in OTHERS and any(True for _ in stored(op, own(name)))]
              for name in NAMES}


@each
def test_ops_are_defined_as_for_float16(name: str) -> None:
    """Not those of libraries that have no routines for it: factorizations, transforms."""
    half = {op.name for op in SAMPLED if any(a.dtype == np.float16 for arrays, _ in cases(op) for a in arrays)}
    known = {op.name for op in STORED[name]} | OTHERS
    assert half <= known and {"add", "exp", "sum", "dot", "conv", "sort", "scatter", "gather", "where"} <= known


@pytest.mark.parametrize("name, op", [pytest.param(n, op, id=f"{n}-{op.name}") for n in NAMES for op in STORED[n]])
def test_every_op_is_that_of_float32_rounded(name: str, op: Op) -> None:
    """In the reference, and in what the optimizer is given: there movements and casts alone know the dtype."""
    for arrays, attrs in stored(op, own(name)):
        s = Sample(op, arrays, attrs)
        wide = widen(s.function)
        assert all(keeps_storage(v) for v in every_value(wide.body) if any(map(is_stored, (v, *v.operands))))
        with np.errstate(all="ignore"):
            for got, want in zip(evaluate_function(wide, arrays, check=True), s.want, strict=True):
                np.testing.assert_array_equal(got.astype("f8"), want.astype("f8"))


@each
def test_text_is_read_again(name: str) -> None:
    """Of all ops at once, on all samples; in attributes the dtype is one like others."""
    dtype = as_dtype(name)
    found = [Sample(op, arrays, attrs) for op in STORED[name] for arrays, attrs in stored(op, own(name), 1000)]
    for s in found:
        text = print_function(s.function)
        assert DTYPE_NAMES[dtype] + "[" in text and print_function(parse(text)) == text
    said = {s.op.name for s in found for v in s.outputs if dtype in v.attrs.values()}
    assert "cast" in said


def check_compiled(name: str, ops: list[Op], **target: Any) -> None:
    """One function of many ops, against their references: as near as float32 is, rounded."""
    found = [Sample(op, arrays, attrs) for op in ops for arrays, attrs in itertools.islice(stored(op, own(name)), 1)]
    f = sc.compile([sc.Tensor(o) for s in found for o in s.outputs], [sc.Tensor(x) for s in found for x in s.leaves],
                   **target)
    results = iter(f(*[a for s in found for a in s.arrays]))
    info = ml_dtypes.finfo(own(name))
    limits = {own(name): (float(info.eps), float(info.smallest_subnormal)), np.dtype("f4"): (1e-4, 1e-38)}
    for s in found:
        for want in s.want:
            got = next(results)
            got = got if isinstance(got, np.ndarray) else got.numpy()
            assert got.dtype == want.dtype and got.shape == want.shape, s.op.name
            rtol, atol = limits.get(want.dtype, (0, 0))
            np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=rtol, atol=atol, err_msg=s.op.name)


@pytest.mark.parametrize("name, ops", [pytest.param(n, *p.values, id=f"{n}-{p.id}") for n in NAMES
                                       for p in in_groups(STORED[n], 8)])
@pytest.mark.long
def test_every_op_compiled(name: str, ops: list[Op]) -> None:
    check_compiled(name, ops)


@pytest.mark.parametrize("name, ops", [pytest.param(n, *p.values, id=f"{n}-{p.id}") for n in NAMES
                                       for p in in_groups([op for op in STORED[n] if op in ON_DEVICES], 6)])
@pytest.mark.long
def test_every_op_on_a_device(name: str, ops: list[Op]) -> None:
    if shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    with emulated_cuda(checked=False):
        check_compiled(name, ops, device="cuda")


#: Of which kernels for few elements differ from those of libraries, for many.
ALONG = {"sort": np.sort, "argsort": lambda x: np.argsort(x, stable=True), "median": np.median, "argmax": np.argmax,
         "unique": np.unique, "flip": np.flip, "cumsum": np.cumsum, "ptp": np.ptp, "roll": lambda x: np.roll(x, 7),
         "searchsorted": lambda x: np.searchsorted(np.sort(x), x), "above": lambda x: x[x > 0.5],
         "partition": lambda x: np.partition(x, 3)[3], "counts": lambda x: np.unique(x, return_counts=True)[1]}


@pytest.mark.long
@pytest.mark.parametrize("of", ALONG)
@each
def test_lines_of_any_length(name: str, of: str) -> None:
    """As float32, rounded: numbers are sixteenths, so sums are exact before."""
    x = sc.vector("x", name)
    f = sc.compile(ALONG[of](x), [x])
    for n in (5, 1000):
        a = (np.random.default_rng(n).integers(-16, 16, n) / 16).astype(own(name))
        want = np.asarray(ALONG[of](a.astype("f4")))
        want = want if want.dtype.kind in "iu" else want.astype(own(name))
        np.testing.assert_array_equal(f(a).astype("f4"), want.astype("f4"))


# --- numbers ----------------------------------------------------------------------------------------------------------


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Equal bit for bit, but for what a nan says."""
    assert a.dtype == b.dtype and as_dtype(a.dtype).name in NAMES
    nan, bits = b != b, f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(a != a, nan)
    np.testing.assert_array_equal(a.view(bits)[~nan], b.view(bits)[~nan])


@pytest.mark.long
@each
@pytest.mark.parametrize("target", [*({"backend": b} for b in ("llvm", "numba", "numpy")), {"device": "cuda"}], ids=str)
def test_all_numbers_are_rounded_to_nearest(name: str, target: dict) -> None:
    x, b = sc.vector("x", "float32"), sc.vector("b", name)
    size = own(name).itemsize
    numbers = np.arange(2 ** (8 * size)).astype(f"u{size}").view(own(name))
    with np.errstate(all="ignore"), emulated_cuda(checked=False):
        to, back, through = sc.compile([x.astype(name), b.astype("float32"), b[::-1]], [x, b], **target)(
            FLOATS, numbers)
        to, back, through = (np.asarray(r if isinstance(r, np.ndarray) else r.numpy()) for r in (to, back, through))
        same_bits(to, FLOATS.astype(own(name)))
        np.testing.assert_array_equal(back, numbers.astype("f4"))
        same_bits(through, numbers[::-1])


@each
@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.kind != "c"], ids=str)
def test_casts_are_those_of_ml_dtypes(name: str, dtype: np.dtype) -> None:
    source = np.array([0, 1, 2, 3, 100, 127] if dtype.kind in "iub" else [0.1, -2.5, 1 + 2**-8, 6e4, -0.0]).astype(
        dtype)
    x, b = sc.vector("x", dtype), sc.vector("b", name)
    stored = np.array([0, 1, 2.5, 100], own(name))
    to, back = sc.compile([x.astype(name), b.astype(dtype)], [x, b])(source, stored)
    same_bits(to, source.astype(own(name)))
    np.testing.assert_array_equal(back, stored.astype(dtype))


# --- promotion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [d for d in DTYPES.values() if not is_foreign(d)], ids=str)
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
    other = as_dtype(NAME)
    assert promoted((other, other)) is other and promoted((other, float)) is other and promoted((other, int)) is other
    assert all(promoted((other, DTYPES[d])) == np.float32 for d in ("f16", "bf16", "f32"))
    assert promoted((other, DTYPES["f64"])) == np.float64


@each
def test_numbers_of_python_are_weak(name: str) -> None:
    """Other than in NumPy, where a float beside an array of ml_dtypes is a float32."""
    x = sc.vector("x", name)
    for y in (x + 1, x * 2.5, 1 / x, x**2, sc.maximum(x, 0.0), sc.where(x > 0, x, 0), sc.exp(x), sc.mean(x), x.sum(),
              sc.clip(x, 0, 1), x / 2, -x, abs(x), sc.linalg.norm(x)):
        assert y.dtype == own(name)
    assert (x + 1j).dtype == np.complex64 and (x > 0).dtype == bool and sc.argmax(x).dtype == np.int64


@each
def test_questions_about_it(name: str) -> None:
    dtype = as_dtype(name)
    for said in (name, DTYPE_NAMES[dtype], own(name), getattr(ml_dtypes, name), dtype):
        assert as_dtype(said) is dtype
    assert sc.finfo(name).max == ml_dtypes.finfo(own(name)).max and sc.isdtype(dtype, "real floating")
    assert sc.can_cast(dtype, "float32") and not sc.can_cast("float32", dtype)
    assert dtype == own(name) and dtype != np.float16


def test_bfloat16_is_a_public_name() -> None:
    assert pickle.loads(pickle.dumps(sc.bfloat16)) is sc.bfloat16 is copy.deepcopy(sc.bfloat16) is as_dtype("bfloat16")


# --- accuracy ---------------------------------------------------------------------------------------------------------


@each
def test_sums_and_products_are_in_float32(name: str) -> None:
    """A sum of bfloat16 stops growing at 256 ones."""
    x, w = sc.matrix("x", name), sc.matrix("w", name)
    n = int(4 / ml_dtypes.finfo(own(name)).eps)
    ones = np.ones((4, n), own(name))
    total, mean, product = sc.compile([x.sum(1), x.mean(), x @ w], [x, w])(ones, ones.T.copy())
    assert (total == n).all() and mean == 1 and (product == n).all()


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


@each
def test_states_constants_and_loops(name: str, tmp_path) -> None:
    """Also in a file, in another process' bytes, and of many numbers, which files name by a digest."""
    dtype, numbers = own(name), np.arange(600) % 4
    w = sc.shared(np.ones(3, dtype), "w")
    x = sc.vector("x", name)
    step = sc.compile([sc.sum(w * x) + sc.asarray(np.array([1], dtype))[0], (x[:2].astype("f4") * 2).astype(name),
                       sc.asarray(numbers.astype(dtype)) + x[0]], [x], updates={w: w + x})
    given = np.array([1, 2, 3], dtype)
    want = [np.array(7, dtype), np.array([2, 4], dtype), (1 + numbers).astype(dtype)]
    for made in (step, pickle.loads(pickle.dumps(step))):
        for got, said in zip(made(given), want, strict=True):
            np.testing.assert_array_equal(got, said, strict=True)
    assert w.get_value().dtype == dtype and w.get_value().tolist() == [2, 3, 4]
    w.set_value(np.ones(3))
    step.save(tmp_path / "f.symc")
    for got, said in zip(sc.load(tmp_path / "f.symc")(given), want, strict=True):
        np.testing.assert_array_equal(got, said, strict=True)
    loop = sc.scan(lambda c, a: (c + a, c * a), sc.asarray(np.array(0, dtype)), x)
    last, rows = sc.compile(list(loop), [x])(given)
    assert last == 6 and rows.tolist() == np.array([0, 2, 9], dtype).tolist() and rows.dtype == dtype


@each
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_parameters_are_saved(name: str, tmp_path, suffix: str) -> None:
    P = sc.Params(dtype=name)
    w = P.weight("w", (3, 2), sc.init.constant(1.5))
    assert w.dtype == own(name)
    sc.save_params(tmp_path / f"p.{suffix}", P)
    w.set_value(np.zeros((3, 2), own(name)))
    sc.load_params(tmp_path / f"p.{suffix}", P)
    assert (w.get_value() == np.full((3, 2), 1.5, own(name))).all() and w.get_value().dtype == own(name)
    assert sc.load_params(tmp_path / f"p.{suffix}")["w"].dtype == own(name)


def test_arrays_that_numpy_wrote_are_read(tmp_path) -> None:
    """Its format says no more than the size of a bfloat16."""
    np.savez(tmp_path / "p.npz", w=np.array([1, 1.5], B))
    assert sc.load_params(tmp_path / "p.npz")["w"].tolist() == [1, 1.5]


@each
def test_codes_in_keys_are_names(name: str) -> None:
    """NumPy's say no more than the size of some: two of one size are not the same."""
    assert dtype_code(own(name)) == dtype_code(as_dtype(name)) == name and dtype_code(np.dtype("f4")) == "<f4"


@each
def test_random_numbers(name: str) -> None:
    key, eps = sc.random.key(3), float(ml_dtypes.finfo(own(name)).eps)
    u, n = sc.random.uniform(key, (2000,), name), sc.random.normal(key, (2000,), name)
    u, n = (a.astype("f4") for a in sc.compile([u, n])())
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.02 + eps / 2 and abs(n.std() - 1) < 0.05
    assert len(np.unique(u)) <= 2 / eps


def test_without_ml_dtypes(monkeypatch) -> None:
    """A program that says bfloat16 is told what is missing; ``import symc`` does not import it."""
    monkeypatch.setattr(sc.bfloat16, "_found", None)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(sc.InputError, match="ml_dtypes"):
        np.zeros(2, sc.bfloat16)
    code = "import sys, symc; assert symc.bfloat16.itemsize == 2 and 'ml_dtypes' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@each
def test_what_it_cannot(name: str) -> None:
    x = sc.vector("x", name)
    with pytest.raises(sc.DTypeError, match="would lose"):
        sc.compile(sc.vector("k", "int32") + 1)(np.ones(2, own(name)))
    with pytest.raises(sc.SymcError, match=DTYPE_NAMES[as_dtype(name)]):
        sc.linalg.inv(sc.matrix("a", name))
    with pytest.raises(sc.SymcError):
        sc.set_default_float(f"{name}x")
    assert sc.compile(x * 2)(np.array([1.0, 2.0])).tolist() == [2, 4]  # as for float32: rounded


@pytest.mark.long
@each
def test_exports(name: str, tmp_path) -> None:
    """A library of its own, and formats that have the dtype."""
    pytest.importorskip("onnx")
    import onnx

    x, w = sc.matrix("x", name), sc.shared(np.ones((4, 3), own(name)), "w")
    f = sc.compile(sc.exp(x @ w) + 1, [x], updates={w: w * 2}, name="f")
    f.export_library(tmp_path / "made")
    given = np.ones((2, 4), own(name))
    code = (f"import numpy as np, made; x = np.frombuffer(bytes.fromhex({given.tobytes().hex()!r}), "
            f"made._dtype({name!r})); print(made.f(x.reshape(2, 4)).tolist())")
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(f(given).tolist())
    assert f"tensor<?x4x{DTYPE_NAMES[as_dtype(name)]}>" in f.to_stablehlo()
    assert f.export_c(tmp_path / "c").endswith(".c")
    sc.compile(sc.exp(x) + x, [x]).to_onnx(tmp_path / "f.onnx")
    model = onnx.load(tmp_path / "f.onnx")
    onnx.checker.check_model(model)
    found = onnx.TensorProto.DataType.Name(model.graph.input[0].type.tensor_type.elem_type)
    assert found == name.upper().replace("_", "")


@each
def test_arrays_of_devices(name: str) -> None:
    """Results, states and arguments on a device, and what DLPack says of them; NumPy has no name for it there."""
    dtype = own(name)
    with emulated_cuda(checked=False):
        x, w = sc.vector("x", name), sc.shared(np.ones(3, dtype), "w")
        f = sc.compile(w * x, [x], updates={w: w + x}, device="cuda")
        once = f(np.array([1, 2, 3], dtype))
        again = f(sc.device_array(np.array([1, 2, 3], dtype)))
        assert again.dtype == once.dtype == dtype and again.tolist() == [2, 6, 12]
        assert repr(again)[12:].startswith(DTYPE_NAMES[as_dtype(name)])
        lent = imported(again, None, again.__dlpack_device__())
        assert (lent.dtype, lent.shape, lent.address) == (dtype, (3,), again.address)
        assert w.to_device("cpu").get_value().tolist() == np.array([3, 5, 7], dtype).tolist()
        with pytest.raises(AttributeError):
            _ = again.__cuda_array_interface__


def test_dlpack_says_what_it_cannot(monkeypatch) -> None:
    """Of a dtype without a code there."""
    monkeypatch.setitem(RECORDS, as_dtype(NAME), replace(RECORDS[as_dtype(NAME)], dlpack=None))
    with emulated_cuda(checked=False):
        x = sc.device_array(np.ones(3, own(NAME)))
        with pytest.raises(BufferError, match=f"DLPack has no {NAME}"):
            x.__dlpack__()


def test_products_on_devices_read_16_bits() -> None:
    """One call of the library a product, without casts before and after; also where factors were moved. Their sums are
    float32. Other dtypes are casts and a product of float32."""
    for dtype in ("float16", *NAMES):
        x, w = sc.input("x", dtype, ("n", 64)), sc.input("w", dtype, (48, 64))
        y = x @ w.T
        with sc.testing.dry_cuda():
            found = sc.compile(y, [x, w], device="cuda").launches(n=8192)
            (product,) = [launch for launch in found if launch.kind == "product"]
            narrow = x.dtype.itemsize == 2
            assert product.moved == (2 if narrow else 4) * (8192 * 64 + 48 * 64 + 8192 * 48)
            assert len(found) == 1 or not narrow
        with emulated_cuda(checked=False):
            rng = np.random.default_rng(0)
            a, b = (rng.normal(size=s).astype(np.dtype(as_dtype(dtype))) for s in ((40, 64), (48, 64)))
            got = sc.compile(y, [x, w], device="cuda")(a, b).numpy()
            want = (a.astype("f4") @ b.T.astype("f4")).astype(a.dtype)
            np.testing.assert_allclose(got.astype("f4"), want.astype("f4"), rtol=float(sc.finfo(dtype).eps))


@each
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.long
def test_kernels_compile_for_gpus(name: str, arch: str) -> None:
    """GPUs from sm_80 on round by one instruction; older ones in integers."""
    try:
        nvrtc.library()
    except sc.InputError as e:
        pytest.skip(str(e))
    x, y = (sc.input(n, name, ("n", 256)) for n in "xy")
    with sc.testing.dry_cuda():
        f = sc.compile([sc.softmax(x * y + x, 1), sc.sum(x, 0), x.T, sc.cumsum(y, 1)], [x, y], device="cuda")
        families = list(f._program.families.values())
        texts = [unit([loaded.family.source(loaded.family.choose(nominal), "kernel")]) for loaded in families]
    assert len(texts) >= 3 and all(nvrtc.compile_cubin(text, arch).data for text in texts)
