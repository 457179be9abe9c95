"""The structure of products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symc.ir.value import Value
from symc.opt.facts.fact import NONE, Fact
from symc.opt.facts.transfer.structures import transposed


def factors_of(v: Value) -> tuple[Value, bool, Value, bool] | None:
    """A dot as a product of matrices: (A, its transpose is meant, B, likewise), with leading batch axes or none."""
    if v.op.name != "dot":
        return None
    (ca, cb), (ba, bb) = v.attrs["contract"], v.attrs["batch"]
    a, b = v.operands
    n = len(ba)
    if len(ca) != 1 or ba != tuple(range(n)) or bb != ba or a.ndim != n + 2 or b.ndim != n + 2:
        return None
    return a, ca[0] == n, b, cb[0] == n + 1


def _unconjugated(x: Value) -> Value:
    return x.operands[0] if x.op.name == "conj" else x


def of_dot(v: Value, given: list[Fact], known: Mapping[Value, Any]) -> frozenset[str]:
    found = factors_of(v)
    if found is None:
        return NONE
    a, ta, b, tb = found
    x, y = (transposed(f.props) if t else f.props for f, t in zip(given, (ta, tb), strict=True))
    both = x & y & {"lower", "upper", "diagonal", "orthogonal", "permutation", "identity"}
    if "unit" in x & y and both & {"lower", "upper"}:
        both |= {"unit"}
    for first, second in ((x, y), (y, x)):
        if "identity" in first:
            both |= second
    if ta != tb:
        if a is b:
            both |= {"symmetric"} if v.dtype.kind == "c" else {"symmetric", "psd"}
        elif v.dtype.kind == "c" and _unconjugated(a) is _unconjugated(b):
            both |= {"psd"}
    return both | _congruent(v, known)


def _congruent(v: Value, known: Mapping[Value, Any]) -> frozenset[str]:
    """x S x^T is symmetric, or psd, if S is."""
    found = factors_of(v)
    assert found is not None
    a, ta, b, tb = found
    if v.dtype.kind == "c":
        return NONE
    for p, q, p_turned, q_turned, left in ((a, b, ta, tb, True), (b, a, tb, ta, False)):
        inner = factors_of(p)
        if inner is None:
            continue
        m, tm, n, tn = inner
        if p_turned:  # (M N)^T is N^T M^T
            m, tm, n, tn = n, not tn, m, not tm
        x, tx, s = (m, tm, n) if left else (n, tn, m)
        if x is q and tx != q_turned:
            f = known.get(s)
            return f.props & {"symmetric", "hermitian", "psd"} if isinstance(f, Fact) else NONE
    return NONE
