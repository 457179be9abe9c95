"""Which library multiplies and factorizes: NumPy's where it has everything, else SciPy's; each computes the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.driver import warm
from symc.errors import InputError
from symc.ir.op import lookup
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.runtime.cache import object_cache
from symc.runtime.cpu import blas_library, lapack, symbols
from symc.runtime.cpu.blas_library import ROUTINES, OfNumpy, library, of_numpy
from symc.runtime.cpu.native import small_ir
from tests.driver.equal_programs import is_warm
from tests.runtime.test_lapack import program

RNG = np.random.default_rng(0)


class Linked:
    """What is linked with the library of NumPy's wheels, or with one that lacks what has ``missing`` in its name."""

    def __init__(self, missing: str = ""):
        self._missing = missing

    def __getitem__(self, name: str) -> Any:
        if not name.startswith("scipy_") or not name.endswith("64_") or (self._missing and self._missing in name):
            raise AttributeError(name)
        return lambda: 1


@pytest.fixture
def fresh() -> Iterator[None]:
    """The library is chosen anew, and again after the test."""
    library.cache_clear()
    yield
    library.cache_clear()


# --- which ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["zgesdd", "sgemm", "scipy_", "set_num_threads", "get_num_threads"])
def test_a_library_serves_if_it_has_everything(missing: str) -> None:
    assert OfNumpy(Linked()).complete
    assert not OfNumpy(Linked(missing)).complete


def test_numpys_own_library_comes_first(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(blas_library.VARIABLE, raising=False)
    monkeypatch.setattr(blas_library, "of_numpy", lambda: OfNumpy(Linked()))
    assert library().name == "numpy" and library().integer.itemsize == 8 and library().most == 2**63 - 1


def test_scipys_serves_where_numpy_has_none(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(blas_library.VARIABLE, raising=False)
    monkeypatch.setattr("ctypes.CDLL", lambda path: Linked("scipy"))
    assert of_numpy() is None
    assert library().name == "scipy" and library().integer.itemsize == 4 and library().most == 2**31 - 1
    monkeypatch.undo()
    a = RNG.normal(size=(5, 5))
    x = sc.matrix("x")
    np.testing.assert_allclose(sc.compile(x @ x)(a), a @ a)
    np.testing.assert_allclose(sc.compile(sc.linalg.inv(x))(a), np.linalg.inv(a))


def test_one_may_be_asked_for(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(blas_library.VARIABLE, "scipy")
    assert library().name == "scipy"
    library.cache_clear()
    monkeypatch.setattr(blas_library, "of_numpy", lambda: None)
    for wanted, said in (("numpy", "NumPy has no BLAS"), ("mkl", "'mkl' is no library")):
        monkeypatch.setenv(blas_library.VARIABLE, wanted)
        with pytest.raises(InputError, match=said):
            sc.compile(sc.matrix("x") @ sc.matrix("y"))(np.eye(2), np.eye(2))


# --- what it computes -------------------------------------------------------------------------------------------------


def test_what_is_called_is_what_is_asked_for(each_library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ROUTINES`` are those that products and recipes call, no more and no less."""
    called = set()
    find = symbols._routine.__wrapped__
    monkeypatch.setattr(small_ir, "MOST", 0)  # the samples' matrices, too, are the library's
    monkeypatch.setattr(symbols, "_routine", lambda chosen, name: (called.add(name), find(chosen, name))[1])
    for name in lapack.RECIPES:
        for arrays, attrs in lookup(name).samples():
            leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
            program(lookup(name)(*leaves, **attrs), leaves).run([np.ascontiguousarray(a) for a in arrays], {}, None)
    for dtype in ("float32", "float64", "complex64", "complex128"):
        x, u, s = sc.matrix("x", dtype), sc.vector("u", dtype), sc.scalar("s", dtype)
        a = RNG.normal(size=(160, 160)).astype(dtype)
        outputs = (x @ x.T, x @ u, x + s * (x @ (x + 1)), sc.linalg.solve(x, u), sc.linalg.solve(x, x.T))
        found = sc.compile(outputs, [x, u, s])(a, a[0], np.zeros((), dtype))
        np.testing.assert_allclose(found[0], a @ a.T, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(found[1], a @ a[0], rtol=1e-3, atol=1e-3)
    assert called == set(ROUTINES)
    assert all(library().address(r) for r in ROUTINES)


@pytest.mark.parametrize("size", [2**31 - 1, 2**31])
def test_sizes_are_as_large_as_the_librarys_integers(size: int, each_library: str) -> None:
    x, y = sc.input("x", "float32", shape=(2, size)), sc.input("y", "float32", shape=(size, 3))
    p = sc.compile(x @ y, [x, y])._compilation.program
    names = [s.name for _, s in p.lower().template.symbols]
    assert (f"{each_library} sgemm" in names) == (size <= library().most)


# --- what is kept on disk ---------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which functions are kept."""
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_code_for_one_library_does_not_run_with_another(
    fresh: None, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if nothing else differs, as where NumPy was built anew: it is compiled, and kept in place of the old."""
    monkeypatch.delenv(blas_library.VARIABLE, raising=False)
    x = sc.input("x", "float64", shape=("n", "n"))
    outputs, a = (sc.linalg.solve(x, x @ x), sc.linalg.cholesky(x @ x.T)), RNG.normal(size=(7, 7)) + 3 * np.eye(7)
    available = of_numpy()
    for found in (None, available, None, available):
        monkeypatch.setattr(blas_library, "of_numpy", lambda found=found: found)
        library.cache_clear()
        solved, factor = sc.compile(outputs, [x])(a)
        np.testing.assert_allclose(solved, a, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(factor, np.linalg.cholesky(a @ a.T), rtol=1e-10, atol=1e-12)
        again = sc.compile(outputs, [x])
        assert is_warm(again)
        names = [name for _, name in again._program.found["symbols"]]
        assert {n.split()[0] for n in names} & {"numpy", "scipy"} == {library().name}
        assert np.array_equal(again(a)[0], solved) and not again._compilation.made
        with pytest.raises(LookupError):
            symbols.find("numpy dgemm" if library().name == "scipy" else "scipy dgemm")


def test_the_variable_is_in_the_name_of_what_is_kept(
    fresh: None, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = sc.matrix("x")
    f = sc.compile(x @ x, [x])
    keys = set()
    for wanted in ("", "numpy", "scipy"):
        monkeypatch.setenv(blas_library.VARIABLE, wanted)
        keys.add(warm.key_of(f._built.function, "default", None, frozenset()))
    assert len(keys) == 3 and None not in keys


MLP = """
import sys, numpy as np, symc as sc
rng = np.random.default_rng(0)
x, y = sc.input("x", "float32", shape=(64, 30)), sc.input("y", "int64", shape=(64,))
w = [sc.shared(rng.normal(size=s).astype("float32"), f"w{k}") for k, s in enumerate([(30, 40), (40, 10)])]
logits = sc.tanh(x @ w[0]) @ w[1]
loss = -sc.mean(sc.log_softmax(logits, axis=1)[sc.arange(64), y])
step = sc.compile(loss, [x, y], updates={v: v - 0.1 * g for v, g in zip(w, sc.grad(loss, w))})
a, b = rng.normal(size=(64, 30)).astype("float32"), rng.integers(0, 10, 64)
print(*[step(a, b) for _ in range(4)])
m = sc.matrix("m")
print(sc.compile(sc.sum(sc.linalg.inv(m)), [m])(np.eye(3)))
print([n for n in sys.modules if n.split(".")[0] == "scipy"])
"""


def test_a_warm_process_imports_no_scipy(place: Path) -> None:
    """Where NumPy's library serves; the results are the same with SciPy's."""
    said = {}
    for wanted in ("scipy", "numpy")[: 2 if of_numpy() else 1]:
        environment = {**os.environ, blas_library.VARIABLE: wanted}
        for _ in range(2):
            done = subprocess.run([sys.executable, "-c", MLP], capture_output=True, text=True, env=environment)
            assert not done.returncode, done.stderr
            *said[wanted], modules = done.stdout.splitlines()
        assert (modules == "[]") == (wanted == "numpy")
    found = [[float(x) for line in lines for x in line.split()] for lines in said.values()]
    for one in found:
        np.testing.assert_allclose(one, found[0], rtol=1e-4)
