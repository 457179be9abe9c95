"""Facts of factorizations, inverses and spectra."""

from __future__ import annotations

from typing import Any

from symc.ir.value import Value
from symc.opt.facts.fact import NONE, UNKNOWN, Fact, transfer
from symc.opt.facts.transfer.structures import ZEROS, structure

#: What the inverse of a matrix has in common with it.
_INVERTED = ZEROS | {"symmetric", "hermitian", "unit", "orthogonal", "permutation", "identity"}


@structure("cholesky")
def _cholesky(v: Value, given: list[Fact]) -> frozenset[str]:
    return frozenset({"lower"}) | (given[0].props & {"diagonal", "identity"})


@structure("inv")
def _inv(v: Value, given: list[Fact]) -> frozenset[str]:
    props = given[0].props
    return props & _INVERTED | ({"pd"} if "psd" in props else set())


@structure("expm")
def _expm(v: Value, given: list[Fact]) -> frozenset[str]:
    props = given[0].props
    return props & ZEROS | ({"pd"} if "hermitian" in props else props & {"symmetric"})


@structure("qr")
def _qr(v: Value, given: list[Fact]) -> tuple[frozenset[str], ...]:
    return frozenset({"orthogonal"}), frozenset({"upper"})  # (what is not square is not orthogonal: see closure)


@structure("eigh")
def _eigh(v: Value, given: list[Fact]) -> tuple[frozenset[str], ...]:
    return frozenset({"sorted"}), frozenset({"orthogonal"})


@structure("eigvalsh")
def _eigvalsh(v: Value, given: list[Fact]) -> frozenset[str]:
    return frozenset({"sorted"})


@structure("svd")
def _svd(v: Value, given: list[Fact]) -> tuple[frozenset[str], ...]:
    return frozenset({"orthogonal"}), NONE, frozenset({"orthogonal"})


@structure("lu_factor")
def _lu(v: Value, given: list[Fact]) -> tuple[frozenset[str], ...]:
    return NONE, frozenset({"unique"})


@structure("solve_triangular")
def _solve_triangular(v: Value, given: list[Fact]) -> frozenset[str]:
    side = "lower" if v.attrs["lower"] == (v.attrs["trans"] == "n") else "upper"
    return given[1].props & {side} if v.shape[-1] == v.shape[-2] else NONE


def _orthonormal(x: Fact) -> Fact:
    """Columns of length 1."""
    return Fact(-1.001, 1.001, x.nan or x.inf, False)


@transfer("svd")
def _singular(v: Value, given: list[Fact]) -> tuple[Fact, ...]:
    return _orthonormal(given[0]), Fact(0.0), _orthonormal(given[0])


@transfer("qr")
def _columns(v: Value, given: list[Fact]) -> tuple[Fact, ...]:
    return _orthonormal(given[0]), UNKNOWN


@transfer("eigh")
def _eigenvectors(v: Value, given: list[Fact]) -> tuple[Fact, ...]:
    return UNKNOWN, _orthonormal(given[0])


@transfer("svdvals")
def _singular_values(v: Value, given: list[Fact]) -> Fact:
    return Fact(0.0)


@transfer("lu_factor")
def _pivots(v: Value, given: list[Any]) -> tuple[Fact, ...]:
    return UNKNOWN, Fact(0, v.type.items[0].shape[-1] - 1)


@transfer("slogdet")
def _slogdet(v: Value, given: list[Any]) -> tuple[Fact, ...]:
    return Fact(-1.0, 1.0), UNKNOWN
