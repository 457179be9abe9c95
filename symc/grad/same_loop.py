"""One loop where a graph has it twice: as it was, and again with more results.

The gradient of a scan runs the scan again, for what the backward pass reads. A second derivative would go back through
both; here it goes through the one with more results, and what arrives at either is added up first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symc.ir import location
from symc.ir.ops.control import scan
from symc.ir.ops.kernel import projection, results_of
from symc.ir.traverse import resolve
from symc.ir.types import TupleType
from symc.ir.value import Value


def extended_loops(values: Iterable[Value]) -> dict[Value, Value]:
    """For each scan that others among ``values`` extend, the one that extends them furthest."""
    groups: dict[tuple, list[Value]] = {}
    for v in values:
        if v.op is scan:
            first = v.attrs["carry"] + v.attrs["xs"]
            groups.setdefault((v.operands[:first], v.attrs), []).append(v)
    out: dict[Value, Value] = {}
    for group in groups.values():
        for v in group:
            more = [w for w in group if w is not v and _extends(w, v)]
            if more:
                out[v] = max(more, key=lambda w: len(w.regions[0].results))
    return out


def _extends(w: Value, v: Value) -> bool:
    """True if the first results of ``w`` are those of ``v``, of the same operands, and there are more."""
    have, want = w.regions[0], v.regions[0]
    n = len(want.results)
    return (len(have.results) > n and have.results[:n] == want.results
            and w.operands[: len(v.operands)] == v.operands)  # fmt: skip


def through_one(outputs: Sequence[Value], wrt: Sequence[Value],
                values: Iterable[Value]) -> tuple[list[Value], list[Value]] | None:
    """Outputs and ``wrt`` with one loop in place of two; None where there are no two. ``values`` make up the outputs.

    A loop whose results are in ``wrt`` stays: they are variables of their own.
    """
    ends = {projection(w)[0] for w in wrt}
    pairs = {v: w for v, w in extended_loops(values).items() if v not in ends}
    if not pairs:
        return None
    mapping: dict[Value, Value] = {}
    for v, w in pairs.items():
        parts = results_of(w)
        mapping.update(zip(results_of(v) if isinstance(v.type, TupleType) else [v], parts, strict=False))
    with location.at(()):
        made = resolve([*outputs, *wrt], mapping, location.move)
    return None if made is None else ([made[v] for v in outputs], [made[v] for v in wrt])
