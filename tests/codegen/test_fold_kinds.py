"""Folds by any op: one that is made of others is computed by every backend, in kernels, as its reference says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.intrinsics import template
from symc.ir.op import Fold, Op, unregister
from symc.ir.ops.arithmetic import abs_, sign
from symc.ir.ops.elementwise import elementwise
from symc.ir.ops.reduce import COMBINING, FOLDS, reduction
from symc.testing import emulated_cuda
from tests.export.running import built

DTYPES = ("float16", "float32", "float64")
#: An op that no backend spells, its parts, of which one is made of others itself, and what else gives the same.
KINDS: dict[str, tuple[Callable, Callable, Callable]] = {
    "either": (lambda x, y: x + y - x * y, lambda v: v.operands[0] + v.operands[1] - v.operands[0] * v.operands[1],
               lambda x, axis: 1 - np.prod(1 - x, axis=axis)),
    "signed_root": (lambda x, y: np.hypot(x, y) * np.where(np.abs(x) >= 0, 1, np.nan),
                    lambda v: (v.operands[0] * v.operands[0] + abs_(v.operands[1]) * v.operands[1]
                               * sign(v.operands[1])) ** 0.5,
                    lambda x, axis: np.sqrt(np.sum(x * x, axis=axis))),
}


@pytest.fixture(params=KINDS)
def fold(request: Any) -> Iterator[Op]:
    """A reduction by an op of which no table knows."""
    reference, parts, whole = KINDS[request.param]
    elementwise(request.param, 2, "f", reference, identity=0, parts=parts, doc="A kind of this test.")
    op = reduction(f"fold_by_{request.param}", "f", None, Fold(request.param))
    x = np.random.default_rng(0).uniform(0, 0.5, (3, 4, 5))
    np.testing.assert_allclose(op.reference(x, axes=(0, 2)), whole(x, (0, 2)))
    assert template(request.param, "f") is None
    try:
        yield op
    finally:
        unregister(op.name), unregister(request.param), FOLDS.pop(request.param), COMBINING.pop(op.name)


def program(op: Op, dtype: str) -> tuple[list[Any], list[Any], list[np.ndarray]]:
    """Folds along the last axis, the first, all, and one between, and of few numbers; with what is computed before."""
    x, y = sc.input("x", dtype, ("n", "m")), sc.input("y", dtype, (3, "m", 5))
    half = x * 0.5
    outputs = [sc.Tensor(op(t.value, axes=axes)) for t, axes in (
        (half, (0,)), (half, (1,)), (half, (0, 1)), (y, (1,)), (y, (2,)), (half, ()))]
    rng = np.random.default_rng(0)
    return outputs, [x, y], [rng.uniform(0, 0.1, s).astype(dtype) for s in ((40, 70), (3, 70, 5))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", [{"backend": "llvm"}, {"backend": "numba"}, {"device": "cuda"}], ids=str)
@pytest.mark.long
def test_a_fold_of_any_op_is_computed_in_kernels(fold: Op, target: dict, dtype: str) -> None:
    outputs, inputs, arrays = program(fold, dtype)
    want = sc.compile(outputs, inputs, mode="reference")(*arrays)
    tolerance = 200 * np.finfo(dtype).eps
    with emulated_cuda(checked=False):
        f = sc.compile(outputs, inputs, **target)
        assert target.get("device") or not f._compilation.program.python_steps
        for a, b in zip(f(*arrays), want, strict=True):
            a = a if isinstance(a, np.ndarray) else a.numpy()
            np.testing.assert_allclose(a.astype("f8"), b.astype("f8"), rtol=tolerance, atol=tolerance)
        empty = [a.numpy() if target.get("device") else a for a in f(arrays[0][:, :0], arrays[1][:, :0])]
        assert not empty[1].any() and empty[1].shape == (40,)


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.long
def test_a_fold_of_any_op_is_exported(fold: Op, dtype: str, tmp_path: Path) -> None:
    outputs, inputs, arrays = program(fold, dtype)
    f = sc.compile(outputs, inputs)
    text = f.to_stablehlo()
    assert text.count("stablehlo.reduce\"") == 5
    if shutil.which("gcc"):
        said, got = built(f, tmp_path)(arrays)
        assert not said
        for a, b in zip(got, f(*arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=200 * np.finfo(dtype).eps, atol=200 * np.finfo(dtype).eps)
