"""Every op in C: it gives what its reference gives, or is refused by name with the user's line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.errors import ExportError
from symc.export.interface import interface_of
from symc.export.source import source_of
from symc.ir import location
from symc.ir.attrs import Attrs
from symc.ir.location import Loc
from symc.ir.op import Op
from symc.ir.value import make
from symc.tensors.tensor import Tensor
from tests.export.running import built
from tests.ir.op_cases import SAMPLED, cases, in_groups, observed

#: What C has no form for, beside functions of SciPy.
REFUSED = {
    "complex_function", "complex_function_of_order", "eig", "eigvals", "expm", "ldl", "logm", "places", "print",
    "schur", "sddmm", "solve_sylvester", "spmm", "spmm_across", "sqrtm", "tap",
    "check_assumption"}
OPS = [op for op in SAMPLED if cases(op) and op.name != "cached"]
TOLERANCES = {"float16": 2e-3, "float32": 2e-5, "complex64": 2e-5}


def chosen(op: Op) -> list[tuple[list[np.ndarray], dict]]:
    """The last sample of each dtype and rank: the first are the plainest."""
    found: dict[Any, Any] = {}
    for arrays, attrs in cases(op):
        types = tuple((a.dtype, a.ndim, bool(a.size)) for a in arrays)
        found[types, str(sorted(attrs.items(), key=str))] = arrays, attrs
    return list(found.values())[:12]


def function(op: Op, arrays: list[np.ndarray], attrs: dict, prefix: str = "x") -> tuple[list[Tensor], list[Tensor]]:
    xs = [sc.input(f"{prefix}{k}", str(a.dtype), a.shape) for k, a in enumerate(arrays)]
    with location.at(frozenset({Loc("user.py", 7, "")})):
        return [Tensor(r) for r in observed(make(op, [x.value for x in xs], Attrs(attrs)))], xs


def is_refused(op: Op) -> bool:
    """Look that a refusal names the op and the line."""
    outputs, xs = function(op, *chosen(op)[0])
    try:
        source_of(interface_of(sc.compile(outputs, xs, mode="reference")))
    except ExportError as e:
        assert op.name in e.what and "user.py:7" in str(e), op.name
        return True
    return False


@pytest.mark.parametrize("ops", in_groups(OPS, 24))
def test_ops_give_the_same_in_c_or_are_refused(ops: list[Op], tmp_path: Path) -> None:
    outputs: list[Tensor] = []
    inputs: list[Tensor] = []
    given: list[np.ndarray] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in ops:
            if op.name in REFUSED or op.facts.routine is not None:
                assert is_refused(op), op.name
                continue
            for n, (arrays, attrs) in enumerate(chosen(op)):
                made, xs = function(op, arrays, attrs, f"{op.name}_{n}_")
                outputs, inputs, given = outputs + made, inputs + xs, given + arrays
        f = sc.compile(outputs, inputs, name="group", mode="reference")
        said, got = built(f, tmp_path)(given)
        want = f(*given)
    assert said == ""
    for t, a, b in zip(outputs, got, want, strict=True):
        tolerance = TOLERANCES.get(str(b.dtype), 1e-9)
        largest = np.abs(b[np.isfinite(b)]).max(initial=0.0) if b.dtype.kind in "fc" else 0
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * largest, err_msg=t.value.op.name)
