"""How the structure of matrices (their last two axes) follows from op to op."""

from __future__ import annotations

import numpy as np

from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.facts import NONE, Fact

#: Of matrices, and of what is along the last axis.
MATRIX = frozenset({"symmetric", "hermitian", "psd", "pd", "lower", "upper", "diagonal", "unit", "orthogonal",
                    "permutation", "identity"})  # fmt: skip
ROW = frozenset({"unique", "sorted"})
_IMPLIED = {
    "identity": {"diagonal", "permutation", "pd", "unit"},
    "permutation": {"orthogonal"},
    "pd": {"psd"},
    "psd": {"hermitian"},
    "diagonal": {"lower", "upper", "symmetric"},
}


def closure(props: frozenset[str], t: TensorType) -> frozenset[str]:
    """``props`` with what they imply for a value of this type."""
    out = set(props)
    if len(t.shape) < 2:
        out -= MATRIX
    elif not out.isdisjoint(MATRIX):
        if {"lower", "upper"} <= out or ("symmetric" in out or "hermitian" in out) and (out & {"lower", "upper"}):
            out.add("diagonal")
        for name, more in _IMPLIED.items():
            if name in out:
                out |= more
        if t.dtype.kind != "c" and out & {"symmetric", "hermitian"}:
            out |= {"symmetric", "hermitian"}
    return frozenset(out)


def of_constant(data: np.ndarray) -> frozenset[str]:
    return NONE


def of_movement(v: Value, given: list[Fact]) -> frozenset[str]:
    return NONE


def of_elementwise(v: Value, given: list[Fact]) -> frozenset[str]:
    return NONE


def of_dot(v: Value, given: list[Fact]) -> frozenset[str]:
    return NONE
