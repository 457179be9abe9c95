"""Fourier transforms: NumPy's functions, sizes that are not known, derivatives, batches, threads, other processes."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.ir.op import lookup
from symc.ir.traverse import postorder
from symc.runtime.cache import object_cache
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu import numpy_ffts
from symc.tensors.tensor import Tensor
from tests.covering import pairwise
from tests.runtime.test_threads import check_same, maker

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
OF_REAL = ("rfft", "ihfft", "rfft2", "rfftn")
TO_REAL = ("irfft", "hfft", "irfft2", "irfftn")
NORMS = (None, "backward", "ortho", "forward")
DTYPES = ("float64", "float32", "complex128", "complex64", "float16", "int8", "bool")


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Normal numbers, times 4 so that those of integers are not all 0."""
    rng = np.random.default_rng([seed, *shape])
    parts = 4 * rng.normal(size=(2, *shape))
    return (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)


def tolerance(dtype: str) -> float:
    return {"float16": 3e-3, "float32": 2e-6, "complex64": 2e-6}.get(dtype, 1e-14)


def assert_close(got: np.ndarray, want: np.ndarray, dtype: str, what: Any = "") -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    far = np.abs(want).max(initial=1) * tolerance(dtype)
    np.testing.assert_allclose(got, want, rtol=0, atol=far * 4, err_msg=str(what))


def compare(name: str, x: np.ndarray, cases: list[dict[str, Any]]) -> None:
    """All calls in one function of symc, each against NumPy's. Sizes have names."""
    symbol = sc.input("x", str(x.dtype), shape=tuple("abc"[: x.ndim]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = sc.compile([getattr(np.fft, name)(symbol, **case) for case in cases], [symbol])(x)
        for got, case in zip(found, cases, strict=True):
            assert_close(got, getattr(np.fft, name)(x, **case), str(x.dtype), (name, x.shape, case))


def shares(names: tuple[str, ...], dtypes: tuple[str, ...], calls: list[dict[str, Any]]) -> Any:
    """Calls for each function and dtype: every call meets all functions and all dtypes, in pairs."""
    numbered = itertools.product(names, dtypes, range(len(calls)))
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for name, dtype, k in pairwise(c for c in numbered if not (c[0] in OF_REAL and c[1][0] == "c")):
        found[name, dtype].append(calls[k])
    return [pytest.param(name, dtype, share, id=f"{name}-{dtype}") for (name, dtype), share in found.items()]


CALLS: list[dict[str, Any]] = [
    *[dict(n=n) for n in (1, 2, 5, 7, 13)], *[dict(n=n, norm=norm) for n in (None, 8) for norm in NORMS],
    dict(axis=0), dict(axis=-2, n=4), dict(n=np.int64(3))]


@pytest.mark.parametrize(("name", "dtype", "calls"), shares(ONE, DTYPES, CALLS))
def test_one_axis_is_numpys(name: str, dtype: str, calls: list[dict[str, Any]]) -> None:
    compare(name, numbers((3, 7), dtype), calls)


@pytest.mark.parametrize("shape", [(5, 1), (1, 6), (0, 4), (4, 2), (1, 97)])
@pytest.mark.parametrize("name", ONE)
def test_shapes_at_the_edge(name: str, shape: tuple[int, int]) -> None:
    compare(name, numbers(shape, "float64"), [dict(n=5)] if shape[1] == 1 else [dict(), dict(norm="ortho", n=1)])


#: Axes and sizes along them, each with one of the norms.
SIZES: list[dict[str, Any]] = [
    {}, dict(axes=(0,)), dict(s=(4, 5), axes=(0, 1)), dict(s=(-1, 3), axes=(1, 2)), dict(s=(3, -1), axes=(1, 2)),
    dict(s=(None, 6), axes=(2, 0)), dict(s=(3, None), axes=(2, 0)), dict(axes=(0, 0)), dict(s=(2, 3), axes=(-1, 0)),
    dict(s=(1, 1), axes=(0, 2)), dict(s=(4, 3), axes=None)]


@pytest.mark.parametrize(("name", "dtype", "calls"), shares(SEVERAL, ("float64", "complex64"), SIZES))
def test_several_axes_are_numpys(name: str, dtype: str, calls: list[dict[str, Any]]) -> None:
    given = [{**s, "norm": NORMS[k % 4]} for k, s in enumerate(SIZES) if s in calls]
    if not name.endswith("n"):  # it has two axes unless it is told others
        given = [s for s in given if s.get("axes", ()) is not None]
    compare(name, numbers((3, 4, 5), dtype), given)


def test_no_axes_change_nothing() -> None:
    for dtype in DTYPES:
        x = sc.input("x", dtype, shape=(2, 2))
        assert sc.fft.fftn(x, axes=()) is x and np.fft.fftn(np.ones((2, 2), dtype), axes=()).dtype == dtype


ERRORS: list[tuple[str, tuple[int, ...], str, dict[str, Any]]] = [
    *[(name, (3, 4), "float64", dict(n=n)) for name in ONE for n in (0, -1, -3, 2.5, "2")],
    *[(name, (3, 4), "float64", dict(norm="none")) for name in (*ONE, *SEVERAL)],
    *[(name, (3, 4), "float64", dict(axis=2)) for name in ONE],
    *[(name, (3, 4), "float64", dict(axis=-3, n=4)) for name in ONE],
    *[(name, (4, 4), "complex128", {}) for name in OF_REAL],
    *[(name, (), "float64", {}) for name in ONE],
    *[(name, (3, 0), "float64", {}) for name in ("fft", "ifft", "rfft", "ihfft")],
    *[(name, (3, 1), "float64", {}) for name in ("irfft", "hfft")],
    *[(name, (3, 4), "float64", dict(s=(2, 3), axes=(0,))) for name in SEVERAL],
    *[(name, (3, 4), "float64", dict(s=(2, 0), axes=(0, 1))) for name in SEVERAL],
    *[(name, (3,), "float64", {}) for name in SEVERAL if name.endswith("2")],
    ("rfftn", (3, 4), "float64", dict(axes=())), ("irfftn", (3, 4), "float64", dict(axes=())),
    ("fftfreq", (), "float64", {}), ("fftshift", (3, 4), "float64", dict(axes=2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "dtype", "given"), ERRORS)
def test_what_numpy_refuses(name: str, shape: tuple[int, ...], dtype: str, given: dict[str, Any]) -> None:
    """With an error of the same kind, before anything is compiled."""
    x = numbers(shape, dtype)
    with pytest.raises((ValueError, TypeError, IndexError)) as numpys:
        getattr(np.fft, name)(x, **given)
    with pytest.raises(sc.SymcError) as ours:
        getattr(sc.fft, name)(sc.input("x", dtype, shape=shape), **given)
    assert any(isinstance(ours.value, kind) for kind in (ValueError, TypeError, IndexError)
               if isinstance(numpys.value, kind))  # fmt: skip


def test_what_is_refused_in_a_call() -> None:
    x, z = sc.vector("x"), sc.vector("z", "complex128")
    for out, given, good in ((sc.fft.fft(z), z, 1), (sc.fft.rfft(x), x, 1), (sc.fft.irfft(z), z, 2)):
        for mode in ("default", "reference"):
            f = sc.compile(out, [given], mode=mode)
            for n in range(good):
                with pytest.raises(ValueError, match="at least"):
                    f(np.ones(n, given.dtype))
            f(np.ones(good, given.dtype))


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_function_for_all_sizes(dtype: str) -> None:
    x = sc.input("x", dtype, shape=("n",))
    n = x.shape[0]
    calls = [lambda m, a, n, o=norm: m.fft.ifft(m.fft.fft(a, norm=o), norm=o) for norm in NORMS]
    calls += [lambda m, a, n: m.fft.irfft(m.fft.rfft(a), n), lambda m, a, n: m.fft.rfft(a, 2 * n, norm="ortho"),
              lambda m, a, n: m.fft.fft(a, n // 2 + 1), lambda m, a, n: m.fft.irfft(a, norm="ortho"),
              lambda m, a, n: m.fft.fftshift(m.fft.fft(a)), lambda m, a, n: m.fft.ifftshift(a)]
    f = sc.compile([call(sc, x, n) for call in calls], [x])
    f(np.ones(2, dtype))
    made = f.compile_count
    for size in (3, 4, 16, 31, 97, 100, 1009, 2):
        a = numbers((size,), dtype)
        for got, call in zip(f(a), calls, strict=True):
            want = call(np, a, size)
            assert_close(got, want, dtype, size)
    assert f.compile_count == made


def test_shapes_are_formulas() -> None:
    x = sc.input("x", "complex64", shape=("n", "m"))
    assert str(sc.fft.irfft(x).shape[1]) == "2*m - 2" and sc.fft.irfft(x, 7).shape[1] == 7
    assert str(sc.fft.rfft(x.real, axis=0).shape[0]) == "floordiv(n, 2) + 1"
    assert sc.fft.irfft(sc.fft.rfft(x.real), x.shape[1]).shape[1] == x.shape[1]


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str, n: int) -> None:
    x, d = sc.input("x", "float64", shape=("n",)), sc.scalar("d")
    f = sc.compile([getattr(sc.fft, name)(*args) for args in ((n,), (x.shape[0], 0.3), (n, d))], [x, d])
    for got, args in zip(f(np.ones(n), 0.25), ((n,), (n, 0.3), (n, 0.25)), strict=True):
        want = getattr(np.fft, name)(*args)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=4e-16)


@pytest.mark.parametrize("axes", [None, 0, (1,), (0, 2), -1])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name: str, axes: Any) -> None:
    x = sc.input("x", "int64", shape=("a", "b", "c"))
    f = sc.compile(getattr(np.fft, name)(x, axes), [x])
    for shape in ((3, 4, 5), (1, 2, 1), (2, 0, 3)):
        a = np.arange(np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(f(a), getattr(np.fft, name)(a, axes))


# --- derivatives, batches, recorded calls -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_derivatives(name: str, kind: str) -> None:
    """In both modes, and of a gradient, of a function that is not linear; with zeros at the end and cropped."""
    if name in OF_REAL and kind[0] == "c":
        return
    given: list[dict[str, Any]] = [{}, dict(norm="ortho")]
    given += [dict(n=5), dict(n=3)] if name in ONE else [dict(s=(3, 5), axes=(0, 1))]
    x = numbers((2, 4), kind) / 4
    for case in given:
        def f(a: Any, case: dict[str, Any] = case) -> Any:
            y = getattr(sc.fft, name)(a, **case)
            return sc.real(y * y + sc.sin(y))
        sc.verify_grad(f, [x])


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_a_batch_is_one_transform(name: str) -> None:
    x = sc.input("x", "float64", shape=("b", 3, 4))
    out = sc.vmap(getattr(sc.fft, name))(x)
    a = numbers((5, 3, 4), "float64")
    want = np.stack([getattr(np.fft, name)(row) for row in a])
    assert_close(sc.compile(out, [x])(a), want, "float64")


def test_in_jit_and_in_loops() -> None:
    @sc.jit
    def f(a: Any) -> Any:
        return sc.scan(lambda c, row: (c, sc.fft.irfft(sc.fft.rfft(row) ** 2, row.shape[0])), sc.asarray(0.0), a)[1]

    for shape in ((2, 6), (3, 5)):
        a = numbers(shape, "float64")
        assert_close(f(a), np.fft.irfft(np.fft.rfft(a) ** 2, shape[1]), "float64")


# --- how it runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("shape", [(200, 512), (1, 512, 200), (37, 512, 20), (96, 37, 31)])
def test_threads_give_the_same_bits(shape: tuple[int, ...], dtype: str) -> None:
    x = sc.input("x", dtype, shape=(1 if shape[0] == 1 else "a", *"bc"[: len(shape) - 1]))
    a = numbers(shape, dtype)
    (got,) = check_same(maker(Tensor(lookup("fft")(x.value, axis=1, inverse=False))), a)
    assert_close(got, np.fft.fft(a, axis=1), dtype)


@pytest.mark.parametrize("name", ["fftn", "ifftn"])
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0), (-1,), (1, 1), ()])
def test_of_real_numbers_one_half_is_transformed(name: str, axes: tuple[int, ...]) -> None:
    """Along the axes after the first one, too, as the other half is its conjugate; not along one that comes again."""
    for shape in ((4, 6, 5), (1, 3, 8), (2, 1, 1)):
        x = sc.input("x", "float64", shape)
        out = getattr(sc.fft, name)(x, axes=axes)
        if len(set(axes)) == len(axes) > 0:
            half = int(np.prod(shape)) // shape[axes[-1]] * (shape[axes[-1]] // 2 + 1)
            made = [v for v in postorder([out.value]) if v.op.name in ("fft", "rfft")]
            assert [v.type.size for v in made] == [half] * len(axes)
        a = numbers(shape, "float64")
        assert_close(sc.compile(out, [x])(a), getattr(np.fft, name)(a, axes=axes), "float64")


def test_no_python_runs() -> None:
    x = sc.matrix("x")
    f = sc.compile(sc.fft.irfft2(sc.fft.rfft2(x) * sc.fft.fft(x)[:, : x.shape[1] // 2 + 1]), [x])
    assert not f._compilation.program.python_steps
    f(np.ones((4, 6)))


def test_other_loops_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NumPy's are not what is known, the reference runs."""
    monkeypatch.setattr(numpy_ffts, "known", lambda: False)
    monkeypatch.setenv(object_cache.FOLDER, object_cache.OFF)
    z = sc.vector("z", "complex128")
    f = sc.compile(sc.fft.fft(z) + 1, [z])
    assert [s.value.op.name for s in f._compilation.program.python_steps] == ["fft"]
    a = numbers((7,), "complex128")
    assert_close(f(a), np.fft.fft(a) + 1, "complex128")


def test_a_loop_without_memory_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns and has written nothing: the reference then runs, which raises NumPy's error if it cannot, either."""
    nothing = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(lambda *_: None)
    address = ctypes.cast(nothing, ctypes.c_void_p).value
    monkeypatch.setattr(numpy_ffts, "entry", lambda name: Symbol(address, f"transform {name}"))
    monkeypatch.setenv(object_cache.FOLDER, object_cache.OFF)
    z = sc.matrix("z", "complex64")
    f = sc.compile(sc.fft.fft(z), [z])
    for shape in ((3, 5), (2, 4)):
        a = numbers(shape, "complex64")
        assert_close(f(a), np.fft.fft(a), "complex64")


@pytest.mark.parametrize("name", [f"{what} {ufunc} f64" for what in ("function", "data") for ufunc in numpy_ffts.LOOPS])
def test_names_lead_to_loops(name: str) -> None:
    assert numpy_ffts.known() and numpy_ffts.entry(name).name == f"transform {name}"
    assert numpy_ffts.entry(name) or name.startswith("data")


PROGRAM = """
import sys, numpy as np, symc as sc
x = sc.matrix("x")
f = sc.compile(sc.fft.irfft(sc.fft.rfft(x) * 2, x.shape[1]), [x])
a = np.arange(10.0).reshape(2, 5)
assert np.allclose(f(a), 2 * a) and np.allclose(f(a[:, :4]), 2 * a[:, :4])
print(f.compile_count, "symc.opt" in sys.modules)
"""


def test_another_process_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    said = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(2)]
    assert said[0][0] != "0" and said[1] == ["0", "False"]


def test_it_is_an_extension_of_the_namespace() -> None:
    space = sc.vector("x").__array_namespace__()
    assert space.fft is sc.fft and space.linalg is sc.linalg
    assert {*sc.fft.__all__} == {*ONE, *SEVERAL, "fftfreq", "rfftfreq", "fftshift", "ifftshift"} == {*np.fft.__all__}
    code = "import sys, symc; assert 'numpy.fft' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
