"""Products that are one BLAS call: how a `dot`, or the product in a `gemm`, reads its operands as matrices."""

from __future__ import annotations

from symc.ir.dim import Size, product
from symc.ir.dtypes import RECORDS, is_half
from symc.ir.ops.gemm import gemm, shared
from symc.ir.ops.linalg import contract_first, dot, free_axes
from symc.ir.record import dataclass
from symc.ir.value import Value


@dataclass(frozen=True)
class Gemm:
    """C[b] = op(A[b]) @ op(B[b]) for b in range(batch), all row-major and contiguous.

    op(A) is m x k: A is stored m x k, or k x m where ``trans_a``. op(B) is k x n likewise. ``gram``: B is A, and op(B)
    the transpose of op(A), so that the product is symmetric. ``shared``: "a" or "b" is one matrix for the whole batch.
    """

    batch: Size
    m: Size
    n: Size
    k: Size
    trans_a: bool
    trans_b: bool
    gram: bool = False
    shared: str = ""

    @property
    def routine(self) -> str:
        """The routine that computes it, as far as sizes are known before a call: "gemm", "gemv" or "syrk"."""
        return "gemv" if 1 in (self.m, self.n) else "syrk" if self.gram else "gemm"


def is_product(v: Value) -> bool:
    """True if ``v`` is a product of arrays."""
    return v.op is dot or v.op is gemm


def as_gemm(v: Value, narrow: bool = False) -> Gemm | None:
    """The BLAS form of a product, or None where an operand would have to be copied first. ``narrow``: the library has
    products of 16-bit floats."""
    if not is_product(v):
        return None
    a, b, *_ = v.operands
    if not (RECORDS[v.dtype].blas or narrow and is_half(v.dtype)):
        return None
    (contract_a, contract_b), (batch_a, batch_b) = v.attrs["contract"], v.attrs["batch"]
    leading = tuple(range(len(batch_a or batch_b)))
    one = shared((batch_a, batch_b)) if v.op is gemm else None
    if (batch_a != leading and one != 0) or (batch_b != leading and one != 1):
        return None
    trans_a = contract_first(a, contract_a, batch_a)
    trans_b = contract_first(b, contract_b, batch_b)
    if trans_a is None or trans_b is None:
        return None
    if not free_axes(a, contract_a, batch_a):
        trans_a = False
    return Gemm(
        batch=product((b if one == 0 else a).shape[i] for i in leading),
        m=product(a.shape[i] for i in free_axes(a, contract_a, batch_a)),
        n=product(b.shape[j] for j in free_axes(b, contract_b, batch_b)),
        k=product(a.shape[i] for i in contract_a),
        trans_a=trans_a, trans_b=not trans_b,
        shared="" if one is None else "ab"[one],
        gram=a is b and one is None and contract_a == contract_b
        and len(v.operands) == 2 + len(v.attrs.get("times", ())),
    )  # fmt: skip
