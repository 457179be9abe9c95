"""Folds down columns of what a mask chooses: ``where(mask, x, identity)`` is folded only where the mask holds.

A mask that compares the index of a column, a row, and sizes (a convolution, a band) says for each row from which column
to which it holds. Loops run over these, without a test or a clamped index inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from symc.codegen.cpu.text import identity, number
from symc.codegen.cpu.writer import Writer
from symc.codegen.kernel.index_splitting import COMPARES, Interval, part, size_of
from symc.ir.dim import Size
from symc.ir.record import dataclass
from symc.ir.traverse import close_over, inline, postorder, region_params, replace
from symc.ir.value import Region, Value, fresh_input


@dataclass(frozen=True)
class Bounds:
    """What is folded where the mask holds, by the indices of result and fold and by what was captured.

    ``limits``: integers that must lie in an interval, each with its slope along the last index of the result.
    """

    region: Region
    whole: Region
    limits: tuple[tuple[Value, int, Interval], ...]

    def emit(self, out: Writer, seen: Sequence[str], column: str, between: tuple[str, str],
             depth: int) -> tuple[str, str]:
        """Write from which column to which, ``between`` two, the mask holds in a row. ``seen``: the names of params,
        among which is that of the column."""
        env = {p: "0" if name == column else name
               for p, name in zip(region_params(self.whole), seen, strict=True)}
        first, last = (out.fresh("r") for _ in "ab")
        for v in postorder([t for t, _, _ in self.limits]):
            if v not in env and v.op.name != "constant":
                out.emit_scalar(v, env, depth)
        low, high, must = [between[0]], [between[1]], []
        for t, slope, (least, greatest) in self.limits:
            at, (a, b) = env[t], (out.size(least), out.size(greatest))
            if slope > 0:
                low.append(f"{a} - {at}")
                high.append(f"{b} - {at} + 1")
            elif slope < 0:
                low.append(f"{at} - {b}")
                high.append(f"{at} - {a} + 1")
            else:
                must.append(f"{a} <= {at} and {at} <= {b}")
        out.line(depth, f"{first} = {nested('max', low)}")
        end, holds = nested("min", high), " and ".join(must)
        out.line(depth, f"{last} = ({end} if {holds} else {first})" if must else f"{last} = {end}")
        return first, last


def nested(name: str, terms: Sequence[str]) -> str:
    """The greatest or least of several."""
    text = terms[0]
    for t in terms[1:]:
        text = f"{name}({text}, {t})"
    return text


def bounds_of(v: Value, fold: Value) -> Bounds | None:
    """The bounds of a fold in a `generate`, if a mask says from which column to which."""
    extents = [(0, n) for n in (*v.attrs["shape"], *fold.attrs["shape"])]
    kinds = fold.attrs["kinds"]
    if len(kinds) != 1:
        return None
    whole = part(_flat(v, fold), extents)
    (element,) = whole.results
    if element.op.name != "where" or not _is_identity(element.operands[2], kinds[0]):
        return None
    if any("checks" in u.op.traits for u in whole.values):
        return None
    column = region_params(whole)[len(v.attrs["shape"]) - 1]
    slopes = _slopes(postorder([element.operands[0]]), column)
    limits = tuple((t, slope, interval) for t, interval in _intervals(element.operands[0]).items()
                   if (slope := slopes.get(t)) in (-1, 0, 1))
    if not any(slope for _, slope, _ in limits):
        return None
    region = part(whole, extents, {t: interval for t, _, interval in limits})
    return Bounds(region, whole, limits)


def _flat(v: Value, fold: Value) -> Region:
    """An element of what is folded, as a region over the indices of the result and of the fold, then what ``v``
    captured."""
    n, m = len(v.attrs["shape"]), len(fold.attrs["shape"])
    outer = [fresh_input(t) for t in v.regions[0].params]  # type: ignore[arg-type]
    rows = [fresh_input(t) for t in fold.regions[0].params[:m]]  # type: ignore[arg-type]
    captured = replace(fold.operands, dict(zip(region_params(v.regions[0]), outer, strict=True)))
    return close_over([*outer[:n], *rows, *outer[n:]], inline(fold.regions[0], [*rows, *captured]))


def _is_identity(v: Value, kind: str) -> bool:
    return v.op.name == "constant" and number(v.attrs["value"].data) == identity(kind, v.dtype)


def _conditions(mask: Value) -> Iterator[Value]:
    """The comparisons that all hold where a mask does."""
    pending = [mask]
    while pending:
        v = pending.pop()
        if v.op.name == "and":
            pending.extend(v.operands)
        elif v.op.name == "where" and [_truth(o) for o in v.operands[1:]] == [True, False]:
            pending.append(v.operands[0])
        else:
            yield v


def _truth(v: Value) -> bool | None:
    return bool(v.attrs["value"].data) if v.op.name == "constant" and v.dtype == np.bool_ else None


def _intervals(mask: Value) -> dict[Value, Interval]:
    """Integers that lie between two sizes where a mask holds."""
    low: dict[Value, Size] = {}
    high: dict[Value, Size] = {}
    for c in _conditions(mask):
        if c.op.name not in COMPARES or (n := size_of(c.operands[1])) is None or size_of(c.operands[0]) is not None:
            continue
        t = c.operands[0]
        if c.op.name in ("ge", "gt"):
            low.setdefault(t, n + (c.op.name == "gt"))
        else:
            high.setdefault(t, n - (c.op.name == "lt"))
    return {t: (low[t], high[t]) for t in low if t in high}


def _slopes(values: Sequence[Value], column: Value) -> Mapping[Value, int]:
    """Of integers that are linear in the column, by how much they grow with it."""
    found: dict[Value, int] = {}
    for v in values:
        slopes = [found.get(o) for o in v.operands]
        if v is column:
            found[v] = 1
        elif not any(s is None or s for s in slopes):
            found[v] = 0
        elif v.op.name in ("add", "sub") and None not in slopes:
            a, b = slopes
            found[v] = a + b if v.op.name == "add" else a - b  # type: ignore[operator]
    return found
