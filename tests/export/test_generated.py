"""Programs at random, as forms of other engines: they give what the reference gives, or are refused by name."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import symc as sc
from symc.errors import ExportError
from symc.export.interface import interface_of
from symc.export.onnx_file import onnx_model
from symc.export.pure import PIPELINE
from symc.export.source import source_of
from symc.ir.function import Function
from symc.ir.record import replace
from symc.ir.reference import evaluate_function
from symc.opt import optimize
from symc.testing.fuzz import campaign  # noqa: F401 - declares all generators
from symc.testing.fuzz.checks import Trial, compiled
from symc.testing.fuzz.programs import Program, make
from tests.export import xla
from tests.export.running import Built, linked
from tests.export.test_onnx import run

KINDS = ("mixed", "straight", "moved", "loops", "ops", "sized", "front", "arguments")
#: Seeds of which something was wrong once: a constant of which nothing is read, bits that overflow, slices of nothing,
#: arguments of complex numbers that nothing reads, sizes that are computed, a check of nothing.
ONCE = ("mixed:11", "straight:7", "moved:10", "moved:24", "front:1", "mixed:0", "mixed:23", "sized:27", "sized:28",
        "sized:43", "moved:17", "moved:106")
NAMES = [*ONCE, *(f"{kind}:{seed}" for kind in KINDS for seed in (3, 5))]
TOLERANCE = {2: 1e-2, 4: 3e-4, 8: 1e-8}


@functools.lru_cache
def program(name: str) -> Program:
    """A program without states, and the arrays that its reference accepts."""
    found = make(name)
    f = replace(found.function, updates=(), name=name.replace(":", "_"),
                inputs=tuple(replace(i, role="arg") for i in found.function.inputs))
    data = tuple(tuple(map(np.asarray, d)) for d in found.data if Trial(f, [d]).oracles)
    return replace(found, function=f, data=data)


def difference(have: Sequence[np.ndarray], want: Sequence[np.ndarray], slack: float = 1) -> str:
    for k, (a, b) in enumerate(zip(map(np.asarray, have), map(np.asarray, want), strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        near = slack * TOLERANCE[b.itemsize] if b.dtype.kind == "f" else 0
        largest = np.abs(b[np.isfinite(b)].astype("f8")).max(initial=0) if near else 0
        if not np.allclose(a.astype("f8"), b.astype("f8"), near, near * largest / 10, equal_nan=True):
            return f"result {k} is {a}, not {b}"
    return ""


def check(f: Function, arrays: Sequence[np.ndarray], have: Sequence[np.ndarray], slack: float = 1) -> None:
    """The results are those of the function, or of what rewriting makes of it, which may overflow later."""
    with np.errstate(all="ignore"):
        for known in (f, optimize(f, PIPELINE).function):
            said = difference(have, evaluate_function(known, list(arrays)), slack)
            if not said:
                return
    raise AssertionError(f"{f.name}, {[a.shape for a in arrays]}: {said}")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="C is compiled by gcc")
def test_as_c_in_one_library(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing overflows or is out of place, as a sanitizer looks on; there is no warning."""
    sources, programs = [], []
    for p in map(program, NAMES):
        try:
            sources.append(source_of(interface_of(compiled(p.function))))
            programs.append(p)
        except ExportError as e:
            assert "cannot be exported to C" in e.what
    library = linked(sources, tmp_path, ("-O0", "-fsanitize=undefined"))
    for p, source in zip(programs, sources, strict=True):
        call = Built(source, library)
        for arrays in p.data:
            said, found = call(arrays)
            assert said == "", p.name
            assert Trial(p.function, [arrays]).oracles[0].difference(found) is None, p.name
    assert "runtime error" not in capfd.readouterr().err
    assert len(programs) > 0.8 * len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_as_onnx_and_back(name: str, tmp_path: Path) -> None:
    p = program(name)
    f = p.function
    try:
        model = onnx_model(compiled(f))
    except ExportError as e:
        assert "ONNX has no form of" in e.what
        return
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, os.fspath(tmp_path / "f.onnx"))
    back = sc.from_onnx(tmp_path / "f.onnx", mode="reference")
    read = {i.name for i in model.graph.input}
    for arrays in p.data:
        try:
            found, slack = run(model, {i.name: a for i, a in zip(f.inputs, arrays, strict=True) if i.name in read})
        except Exception as e:
            assert "dim0_offset" in str(e)  # a scan of no steps, which ONNX Runtime does not know
            found = None
        if found is not None:
            check(f, arrays, found, slack)
        again = back(*arrays)
        check(f, arrays, again if isinstance(again, tuple) else [again])


@pytest.mark.parametrize("name", NAMES)
def test_as_stablehlo(name: str) -> None:
    p = program(name)
    try:
        text = compiled(p.function).to_stablehlo()
    except ExportError as e:
        assert "StableHLO has no form of" in e.what
        return
    for arrays in p.data:
        check(p.function, arrays, xla.run(text, *arrays))
