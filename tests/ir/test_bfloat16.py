"""bfloat16, a dtype of storage: every op that takes floats, its rounding, promotion, text, and errors."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import symc as sc
from symc.ir.function import Function, Input
from symc.ir.op import Op, keeps_storage
from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.ir.text import print_function
from symc.ir.traverse import close, every_value
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.widen import is_stored, widen
from symc.testing import emulated_cuda
from tests.ir.op_cases import ON_DEVICES, SAMPLED, apply, cases, observed

B = np.dtype(ml_dtypes.bfloat16)
#: Numbers of all upper halves, of which some lie between two of bfloat16, or next to the middle.
FLOATS = (np.arange(2**16, dtype=np.uint32)[:, None] << 16
          | np.array([0, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).ravel().view(np.float32)
#: Ops that print, raise or wait, which have no results to compare.
OTHERS = {"print", "assert", "after", "again", "cached", "check_assumption", "check_index"}


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
