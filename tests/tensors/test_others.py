"""Arrays of other libraries as operands, on both sides, and in every place that takes an array."""

import operator

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import xarray

import symc as sc
from symc.ir.dtypes import bfloat16
from symc.runtime.cuda.dlpack import export
from symc.tensors.others import dlpack_array

A, V = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5])


class FakeTorch:
    """An array by PyTorch's conventions: it leaves operators to the other side, and says why it gives no array."""

    __module__ = "torch"

    def __init__(self, array, refuses=""):
        self.array, self.refuses = array, refuses

    def __array__(self, dtype=None, copy=None):
        if self.refuses:
            raise RuntimeError(self.refuses)
        return np.asarray(self.array, dtype)


class Capsule:
    """An array that other libraries read by DLPack alone."""

    __module__ = "torch"

    def __dlpack__(self, **options):
        return A.__dlpack__(**options)

    def __dlpack_device__(self):
        return A.__dlpack_device__()


WORK = {
    "series": pd.Series(A), "other labels": pd.Series(A, index=[5, 4, 3]), "Int64": pd.Series([1, 2, 3], dtype="Int64"),
    "index": pd.Index(A), "polars": pl.Series("s", A), "jax": jnp.asarray(A), "torch": FakeTorch(A),
    "dlpack": Capsule(),
    "xarray": xarray.DataArray(A, dims="t"), "nan": pd.Series([1.0, None, 3.0]),
}  # fmt: skip
REFUSED = {
    "masked": np.ma.array(A, mask=[0, 1, 0]), "unmasked": np.ma.array(A), "NA": pd.Series([1, None, 3], dtype="Int64"),
    "NA in a frame": pd.DataFrame({"a": pd.Series([1, None, 3], dtype="Int64")}),
    "null": pl.Series("s", [1.0, None, 3.0]), "null in a frame": pl.DataFrame({"a": [1, None]}),
    "text": pd.Series(["u", "v", "w"]), "mixed": pd.DataFrame({"a": A, "b": ["u", "v", "w"]}),
    "gradient": FakeTorch(A, "requires grad. Use tensor.detach()"),
    "cuda": FakeTorch(A, "can't convert cuda:0 device type tensor. Use Tensor.cpu()"),
    "sparse": scipy.sparse.csr_array(np.eye(3)),
}  # fmt: skip
OPERATORS = {n: getattr(operator, n) for n in "add sub mul truediv floordiv mod pow matmul lt le gt ge eq ne".split()}
OPERATORS.update({"np.add": np.add, "np.power": np.power, "np.dot": np.dot, "sc.add": sc.add})


def array_in(item):
    return A if isinstance(item, Capsule) else np.asarray(item, float)


def numbers(found, x):
    """What an expression computes: an array of xarray's keeps its labels around a value."""
    return sc.compile(found, [x], mode="reference")(V)


@pytest.fixture(scope="module")
def x():
    return sc.input("x", "float64", shape=(3,))


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("side", ["left", "right"])
def test_operators(x, name, side):
    item, array = WORK[name], array_in(WORK[name])
    found, want = {}, {}
    for op, fn in OPERATORS.items():
        plain = operator.add if fn is sc.add else fn
        try:
            found[op] = fn(item, x) if side == "left" else fn(x, item)
            want[op] = plain(array, V) if side == "left" else plain(V, array)
        except (TypeError, sc.SymcError) as e:  # the other library's own words
            assert side == "left" and any(w in str(e) for w in ("Tensor", "symbolic", "only"))
            assert op in ("matmul", "np.add", "np.power") if isinstance(item, pd.Series | pd.Index) else \
                name == "polars" or name == "xarray" and op == "matmul"
    assert "sc.add" in found
    got = numbers(found, x)
    for op in found:
        np.testing.assert_allclose(got[op], want[op], err_msg=op)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("op", ["add", "matmul", "lt", "np.add", "sc.add"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_what_would_be_lost_is_an_error(x, name, op, side):
    with pytest.raises((sc.SymcError, TypeError, NotImplementedError, pl.exceptions.PolarsError)) as e:
        OPERATORS[op](*((REFUSED[name], x) if side == "left" else (x, REFUSED[name])))
    if side == "right":
        assert isinstance(e.value, sc.SymcError) and "test_others.py" in str(e.value)


def roles(x):
    """Places that take an array, as functions that give it back doubled."""
    f = sc.compile(x * 2, [x], mode="reference")
    w = sc.shared(np.zeros(3), "w")

    def as_default(item):
        q = sc.input("q", "float64", shape=(3,), default=item)
        return sc.compile(q * 2, mode="reference")()

    return {
        "asarray": lambda item: np.asarray(sc.asarray(item)) * 2, "Constant": lambda i: np.asarray(sc.Constant(i)) * 2,
        "shared": lambda item: sc.shared(item, "s").get_value() * 2, "argument": f,
        "set_value": lambda item: [w.set_value(item), w.get_value() * 2][1], "default": as_default,
        "givens": lambda item: sc.compile(x * 2, [], givens={x: item}, mode="reference")(),
        "where": lambda item: numbers(sc.where(x > -1, item, x) * 2, x),
        "nest": lambda item: numbers(sc.stack([item, item]), x)[0] * 2,
    }  # fmt: skip


@pytest.mark.parametrize("role", roles(sc.input("x", "float64", shape=(3,))))
def test_roles(x, role):
    fn = roles(x)[role]
    for name, item in WORK.items():
        np.testing.assert_allclose(fn(item), array_in(item) * 2, err_msg=name)
    for item in REFUSED.values():
        with pytest.raises(sc.SymcError):
            fn(item)


def test_messages(x):
    said_of = {"masked": "filled", "NA": "fillna", "null": "fill_null", "gradient": "detach", "cuda": "cpu"}
    for name, said in said_of.items():
        with pytest.raises(sc.InputError, match=said):
            _ = x * REFUSED[name]
    with pytest.raises(sc.InputError, match=r"a\.filled"):
        _ = REFUSED["masked"] * x
    frame = pd.DataFrame({"a": A, "b": A})
    np.testing.assert_allclose(numbers(x @ frame, x), V @ frame.to_numpy())
    with pytest.raises(sc.InputError, match=r"sc\.matmul") as e:
        _ = frame.T @ x
    assert "test_others.py" in str(e.value)
    np.testing.assert_allclose(numbers(sc.matmul(frame.T, x), x), frame.to_numpy().T @ V)


class Bfloat:
    """An array of bfloat16 as PyTorch has it: NumPy cannot read it, in either way."""

    __module__ = "torch"
    dtype = "torch.bfloat16"

    def __init__(self):
        self.array = np.arange(6, dtype="float32").reshape(2, 3).astype(ml_dtypes.bfloat16)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, max_version=None, **options):
        return export(self.array.ctypes.data, (2, 3), bfloat16, (1, 0), self, max_version is not None)


def test_bfloat16_of_other_libraries():
    x, given = sc.input("x", "bfloat16", (2, 3)), Bfloat()
    f = sc.compile(x * 2, [x])
    for found in (sc.from_dlpack(given) * 2, sc.asarray(given) + given):
        assert found.dtype == bfloat16 and sc.compile(found, [])().tolist() == [[0, 2, 4], [6, 8, 10]]
    assert f(given).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert np.shares_memory(dlpack_array(given), given.array), "it is read where it lies"
