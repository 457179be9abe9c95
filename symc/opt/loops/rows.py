"""Ops on all steps of a loop at once that can be done for some steps at a time: row by row, or as a sum over steps.

An array of all steps has the steps along its leading axis. An op is *row-wise* when its rows are made of the same rows
of such operands (and of operands that have no steps); it is a *sum* when its result is one over all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.ops.gemm import gemm
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.linalg import dot
from symc.ir.record import dataclass
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, make, param


@dataclass(frozen=True)
class RowOp:
    """``rows[k]``: operand k has steps. ``total``: the results are sums over steps."""

    value: Value
    rows: tuple[bool, ...]
    total: bool

    @property
    def results(self) -> list[Value]:
        return results_of(self.value)

    @property
    def row_operands(self) -> list[Value]:
        return [o for o, r in zip(self.value.operands, self.rows, strict=True) if r]

    @property
    def other_operands(self) -> list[Value]:
        return [o for o, r in zip(self.value.operands, self.rows, strict=True) if not r]

    def on(self, operands: Sequence[Value], length: int) -> list[Value]:
        """The results on ``length`` steps of the operands: their rows, or what they add to the sum."""
        v = self.value
        if v.op is not fused:
            return results_of(make(v.op, operands, v.attrs, v.regions))
        old = v.regions[0]
        pairs = zip(region_params(old), operands, strict=True)
        done: dict[Value, Value] = {p: param(k, o.type) for k, (p, o) in enumerate(pairs)}
        for x in postorder(old.results):
            if x not in done:
                attrs = x.attrs
                if x.op.name == "broadcast" and _has_steps(x.type, self._length):
                    attrs = type(attrs)({**attrs, "shape": (length, *x.shape[1:])})
                done[x] = make(x.op, [done[o] for o in x.operands], attrs)
        region = Region([o.type for o in operands], [done[r] for r in old.results])
        return results_of(fused(*operands, regions=[region]))

    @property
    def _length(self) -> int:
        return self.row_operands[0].shape[0]  # type: ignore[return-value]


def row_op(v: Value, length: int) -> RowOp | None:
    """The form of ``v`` on arrays of ``length`` steps, if it is row-wise or a sum."""
    if v.op is dot or v.op is gemm:
        return _product(v, length)
    if v.op is fused:
        return _kernel(v, length)
    return None


def _has_steps(t: TensorType, length: int) -> bool:
    return t.ndim > 0 and t.shape[0] == length


def _product(v: Value, length: int) -> RowOp | None:
    a, b, *rest = v.operands
    adds = bool(v.attrs.get("beta"))
    left, right = v.attrs["contract"]
    if any(v.attrs["batch"]) or not _has_steps(a.type, length):
        return None
    if any(i == j == 0 for i, j in zip(left, right, strict=True)) and _has_steps(b.type, length):
        return None if adds else RowOp(v, (True, True, *[False] * len(rest)), True)
    if 0 in left:
        return None
    return RowOp(v, (True, False, *[adds and k == 0 for k in range(len(rest))]), False)


def _kernel(v: Value, length: int) -> RowOp | None:
    """A kernel of elementwise ops, or of sums of such over steps. Which operands have steps is seen from their use."""
    (region,) = v.regions
    totals = [r for r in region.results if r.op.name == "sum" and 0 in r.attrs["axes"]]
    if len(totals) not in (0, len(region.results)):
        return None
    steps: dict[Value, bool] = {}
    for x in reversed(postorder(region.results)):
        if x in totals:
            known = steps.setdefault(x.operands[0], True)
            if not known or not _has_steps(x.operands[0].type, length):
                return None
            continue
        mine = steps.setdefault(x, x in region.results)
        if mine and not _has_steps(x.type, length):
            return None
        if x.op.name == "broadcast":
            inner = 0 in x.attrs["axes"] and mine
        elif "elementwise" in x.op.traits:
            inner = mine
        elif x.operands:
            return None
        else:
            if mine and x.op.name != "param":
                return None  # a number has no steps: it would be repeated by a broadcast
            continue
        for o in x.operands:
            if steps.setdefault(o, inner) != inner:
                return None
    rows = tuple(steps.get(p, False) for p in region_params(region))
    return RowOp(v, rows, bool(totals)) if any(rows) else None
