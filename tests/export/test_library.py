"""Libraries that a process without symc calls: the same results, clear errors, nothing run of what is not theirs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import symc as sc
from benchmarks.exported import imported
from symc.errors import ExportError
from symc.export import library

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="C is compiled by gcc")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(library, "FLAGS", ("-std=c11", "-O0", "-fPIC", "-shared"))


@pytest.fixture(scope="module")
def step():
    x, scale = sc.input("x", "float64", ("n", 20)), sc.scalar("scale", default=0.5)
    w = sc.shared(np.linspace(-1, 1, 100).reshape(20, 5), "w")
    h = sc.tanh(x @ w) * scale
    loss = sc.mean(h**2)
    outputs, updates = {"loss": loss, "parts": [h, x.T @ h]}, {w: w - 0.1 * sc.grad(loss, w)}
    return sc.compile(outputs, [x, scale], updates=updates, name="step")


@pytest.fixture(scope="module")
def folder(step, tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    assert step.export_library(made / "model") == str(made / "model.py")
    return made


def test_files(folder):
    found = sorted(p.name for p in folder.iterdir() if p.is_file())
    assert found == ["libmodel.so", "model.h", "model.py", "model_states.npz"]


def test_two_sizes_in_a_process_of_its_own(step, folder):
    """The library is called there by name, by position and with a default, and keeps its states."""
    code = """
import pickle, sys, numpy as np
from model import step
assert pickle.loads(pickle.dumps(step)) is step
a = step(x=np.arange(60.0).reshape(3, 20) / 60)
b = step(np.ones((50, 20)) / 7, 0.25)
np.savez("out.npz", a["loss"], a["parts"][1], b["loss"], b["parts"][0], step.states["w"])
assert not any(m.split(".")[0] in ("symc", "scipy", "llvmlite") for m in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr
    f = step.copy({step.shared["w"]: sc.shared(step.shared["w"].get_value(), "w2")})
    a, b = f(np.arange(60.0).reshape(3, 20) / 60), f(np.ones((50, 20)) / 7, 0.25)
    want = [a["loss"], a["parts"][1], b["loss"], b["parts"][0], next(iter(f.shared.values())).get_value()]
    with np.load(folder / "out.npz") as got:
        for k, y in enumerate(want):
            np.testing.assert_allclose(got[f"arr_{k}"], y, rtol=1e-10)
            assert (got[f"arr_{k}"].dtype, got[f"arr_{k}"].shape) == (y.dtype, y.shape)


def test_arguments(folder):
    step = imported(str(folder / "model.py")).step
    good = np.ones((2, 20))
    for error, said, args, names in (
        (TypeError, "missing x", (), {}), (TypeError, "takes 2 arguments", (good, 1, 2), {}),
        (TypeError, "no argument 'y'", (good,), {"y": 1}), (TypeError, "given twice", (good,), {"x": good}),
        (TypeError, "complex128", (good * 1j,), {}), (TypeError, "<U1", ("a",), {}),
        (ValueError, re.escape("has the shape (2, 5), but float64[n, 20] is needed, with n = 2"),
         (np.ones((2, 5)),), {}),
        (ValueError, "3 axes", (np.ones((1, 1, 1)),), {}), (TypeError, "no array", ([[1, 2], [3]],), {}),
        (TypeError, "has a mask", (np.ma.array(good, mask=good > 0),), {}),
    ):
        with pytest.raises(error, match=said):
            step(*args, **names)
    want = step(good)["parts"][0]
    step.states["w"][...] = 0
    assert want.any() and not step(np.asfortranarray(good.astype("f4")))["parts"][0].any()
    assert not step([[1] * 20])["loss"]
    step.states["w"] = np.ones(3, "f4")
    with pytest.raises(ValueError, match="state w must be"):
        step(good)


def test_calls_that_stop(tmp_path):
    a = sc.input("a", "float64", ("n", "n"))
    f = imported(sc.compile(sc.linalg.cholesky(a), [a], name="factor").export_library(tmp_path / "m")).factor
    with pytest.raises(ValueError, match=r"factor: cholesky: the matrix is not positive definite \(test_library.py"):
        f(-np.eye(3))
    np.testing.assert_allclose(f(4 * np.eye(3)), 2 * np.eye(3))
    assert f(np.empty((0, 0))).shape == (0, 0)


def test_sizes_are_solved(tmp_path):
    n = sc.input("n", "int64", ("n",))
    x, y = sc.input("x", "float64", (2 * n.shape[0] + 1, "m")), sc.input("y", "float64", ("m",))
    f = sc.compile([x @ y, n * 2], [x, y, n], name="f")
    g = imported(f.export_library(str(tmp_path / "sub" / "f.so"))).f
    assert (tmp_path / "sub" / "f.so").exists() and (tmp_path / "sub" / "f_loader.py").exists()
    np.testing.assert_array_equal(g(np.ones((7, 2)), np.ones(2), np.arange(3))[0], np.full(7, 2.0))
    with pytest.raises(ValueError, match="has the shape"):
        g(np.ones((6, 2)), np.ones(2), np.arange(3))
    assert f.export_library(tmp_path) == str(tmp_path / "f.py")


@pytest.mark.parametrize("harm", ["cut", "changed", "foreign", "missing", "states"])
def test_what_is_not_the_library_is_not_run(folder, tmp_path, harm):
    for p in folder.iterdir():
        if p.is_file():
            shutil.copy(p, tmp_path)
    path = tmp_path / "libmodel.so"
    data = path.read_bytes()
    if harm == "cut":
        path.write_bytes(data[:-100])
    elif harm == "changed":
        path.write_bytes(data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])
    elif harm == "foreign":
        mark = tmp_path / "ran"
        (tmp_path / "x.c").write_text(f'#include <stdio.h>\n__attribute__((constructor)) void run(void) '
                                      f'{{ fclose(fopen("{mark}", "w")); }}\n')
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, tmp_path / "x.c"], check=True)
    elif harm == "missing":
        path.unlink()
    else:
        (tmp_path / "model_states.npz").write_bytes(b"PK junk")
    with pytest.raises(ImportError, match=r"damaged|missing|cannot be read"):
        imported(str(tmp_path / "model.py"))
    assert not (tmp_path / "ran").exists()


def test_states_that_are_changed_are_refused(folder, tmp_path):
    """Each bit of the file is by a checksum, or is none that says anything."""
    for p in folder.iterdir():
        if p.is_file():
            shutil.copy(p, tmp_path)
    file, rng = tmp_path / "model_states.npz", np.random.default_rng(0)
    data, refused = file.read_bytes(), 0
    for k in range(60):
        new = bytearray(data[: rng.integers(len(data))] if k % 3 == 0 else data)
        if new:
            new[rng.integers(min(len(new), 300))] ^= 1 << rng.integers(8)
        file.write_bytes(new)
        try:
            found = imported(str(tmp_path / "model.py")).step.states["w"]
        except ImportError as e:
            refused += 1
            assert "the states of step cannot be read" in str(e)
        else:
            np.testing.assert_array_equal(found, np.linspace(-1, 1, 100).reshape(20, 5))
    assert refused > 30


def test_threads_share_a_function(folder):
    step = imported(str(folder / "model.py")).step
    x, found = np.ones((30, 20)), []
    step.states["w"][...] = 0

    def calls():
        found.extend(float(step(x)["loss"]) for _ in range(20))

    workers = [threading.Thread(target=calls) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert found == [0.0] * 80


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


def test_arguments_of_a_jitted_function_are_its_own(tmp_path):
    """In their nests, by position and by name."""
    @sc.jit
    def f(a, pair, rate=0.5):
        return a["u"] * rate + a["v"][1] - pair.left, {"sum": pair.right.sum() + a["v"][0]}

    given = {"u": np.arange(3.0), "v": [np.ones(2), np.full(3, 2.0)]}, Pair(np.ones(3), np.ones(5))
    want = f(*given, rate=2.0)
    g = imported(f.export_library(tmp_path / "f")).f
    for found in (g(*given, 2.0), g(rate=2.0, pair=given[1], a=given[0])):
        np.testing.assert_array_equal(found[0], want[0])
        np.testing.assert_array_equal(found[1]["sum"], want[1]["sum"])
    for wrong, what in (({"u": 1}, "f: a must be a dict of 'u', 'v'"), ({**given[0], "v": {0: 1, 1: 2}}, "list of 2"),
                        (3, "must be a dict")):
        with pytest.raises(TypeError, match=what):
            g(wrong, given[1], 2.0)


@dataclass
class Step:
    rate: float
    way: str
    x: np.ndarray


def test_static_arguments_of_a_jitted_function(tmp_path):
    """They are given where they were, or left out; in a nest too, and by default. Others are told."""
    @sc.jit(static=("axis", "how"))
    def f(x, axis, step, how="sum", scale=2.0, tell=None):
        y = getattr(np, how)(x, axis=axis) * step.rate * scale
        return y if step.way == "up" else -y

    x, step = np.arange(6.0).reshape(2, 3), Step(0.5, "down", np.ones(1))
    want = f(x, 1, step)
    g = imported(f.export_library(tmp_path / "f")).f
    other = Step(0.25, "down", np.ones(1))
    for found in (g(x, 1, step), g(x, step=step), g(step=step, x=x, axis=np.int64(1), how="sum", scale=2.0)):
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(g(x, 1, other), want / 2)
    for given, what in (((x, 0, step), "axis has 0, but the library was exported for 1"), ((x, True, step), "axis has"),
                        ((x, 1, Step(0.5, "up", np.ones(1))), "'up', but the library was exported for 'down'"),
                        ((x, 1, step, "max"), "how has 'max'"), ((x, 1, step, "sum", 3.0), "scale has 3.0"),
                        ((x, 1, step, "sum", 2.0, 5), "tell must be None")):
        with pytest.raises(TypeError, match=what):
            g(*given)
    np.testing.assert_array_equal(g(x, 1, step, tell=None), want)
    with pytest.raises(TypeError, match="missing step"):
        g(x)


def test_objects_that_are_static_are_left_out(tmp_path):
    class Model:
        @sc.jit
        def f(self, x, g):
            return g(x) * 3

    model = Model()
    want = model.f(np.ones(3), np.tanh)
    g = imported(Model.f.export_library(tmp_path / "f")).f
    np.testing.assert_array_equal(g(np.ones(3)), want)
    np.testing.assert_array_equal(g(x=np.ones(3)), want)


def test_no_compiler(step, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(ExportError, match="no-such-compiler, which the variable CC names"):
        step.export_library(tmp_path / "m")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExportError, match="none of cc, gcc, clang"):
        step.export_library(tmp_path / "m")
    (tmp_path / "cc").write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(ExportError, match="cc failed: no"):
        step.export_library(tmp_path / "m")
    for bad in (3, b"x", "", "a\0b"):
        with pytest.raises(sc.InputError):
            step.export_library(bad)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cc"]


def test_the_module_knows_nothing_of_symc():
    text = Path(library.loader.__file__).read_text("utf-8")
    assert "symc" not in text.partition("the same for every function")[2]
