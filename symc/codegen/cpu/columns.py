"""Folds down columns: an accumulator for each column, a block of them at a time, and rows read from front to end.

A block of accumulators lies in the result's memory and stays in the cache. Eight rows are combined before an
accumulator is touched (two, where an element takes more): it is read and written once for them, and a long sum has an
eighth of the roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from symc.codegen.cpu.chunks import ARGUMENTS
from symc.codegen.cpu.folds import fold_parts
from symc.codegen.cpu.text import combine, identity, loaded, number, stored
from symc.codegen.cpu.writer import Target, Writer
from symc.codegen.kernel.index_splitting import COMPARES, Interval, part, size_of
from symc.codegen.language.syntax import Unsupported
from symc.ir.dim import Size
from symc.ir.dtypes import is_narrow
from symc.ir.ops.kernel import load, projection
from symc.ir.ops.reduce import gives_place
from symc.ir.record import dataclass
from symc.ir.traverse import close_over, inline, postorder, region_params, replace
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input

#: How many accumulators stay in the cache.
BLOCK = 2048
#: How many rows are combined at a time, where an element takes a few ops and reads few arrays; two, if it takes more.
ROWS, FEW_OPS, FEW_LOADS, MORE_OPS = 8, 5, 2, 12

#: Fewer columns of bytes or 16-bit numbers are no vector: each is a loop of its own.
FEW = 16

Env = dict[Value, str]


def is_columns(v: Value) -> bool:
    """True if every result of a `generate` is a fold, over some axes, whose running value can live in the result's
    memory."""
    folds = {projection(r)[0] for r in v.regions[0].results}
    fold, shape = next(iter(folds)), v.attrs["shape"]
    if not shape or len(folds) > 1 or fold.op.name != "fold" or not fold.attrs["shape"]:
        return False
    few = isinstance(shape[-1], int) and shape[-1] < FEW
    return not any(gives_place(k) or is_narrow(t.dtype) or few and t.dtype.itemsize <= 2 for k, t in fold_parts(fold))


def emit_columns(out: Writer, v: Value, env: Env, targets: Sequence[tuple[int, Target]], depth: int) -> None:
    """Write the loops of such a `generate`."""
    fold = projection(v.regions[0].results[0])[0]
    shape, parts = v.attrs["shape"], fold_parts(fold)
    outer, d = out.open_loops(shape[:-1], depth, [])
    block, j = out.fresh("c"), out.fresh("i")
    first, n = ARGUMENTS if d == 1 and out.chunks else ("0", out.size(shape[-1]))
    out.line(d, f"for {block} in range({first}, {n}, {BLOCK}):")
    columns = f"for {j} in range({block}, min({block} + {BLOCK}, {n})):"
    index = (*outer, j)
    known = {k: f"o{t[0]}[{out.offset(index, shape)}]" for k, t in targets}
    places = [known[k] for k in _fold_order(v, fold, known)]
    out.line(d + 1, columns)
    for place, (kind, t) in zip(places, parts, strict=True):
        out.line(d + 2, f"{place} = {stored(identity(kind, t.dtype), t.dtype)}")
    before, inner = out.open_loops(fold.attrs["shape"][:-1], d + 1, [])
    if (bounds := _bounds_of(v, fold)) is not None:
        captured = [out.expression(o, env) for o in v.operands]
        form = _BoundedRows(out, bounds, j, (f"{block}", f"min({block} + {BLOCK}, {n})"), (places[0], *parts[0]),
                        lambda row: [*index, *before, row, *captured])
        form.emit(fold.attrs["shape"][-1], inner)
        return
    for rows in _open_rows(out, fold.regions[0], fold.attrs["shape"][-1], inner):
        out.line(inner + 1, columns)
        scope = out.enter(v, index, env)
        for u in postorder(v.regions[0].results):
            if u not in scope and u.op.name not in ("fold", "get", "constant"):
                out.emit_scalar(u, scope, inner + 2)
        found = [out.emit_block(fold.regions[0], out.enter(fold, (*before, row), scope), [None] * len(parts), inner + 2)
                 for row in rows]
        for place, xs, (kind, t) in zip(places, zip(*found, strict=True), parts, strict=True):
            x = _together(out, kind, xs, t.dtype, inner + 2)
            total = combine(kind, loaded(place, t.dtype), x, t.dtype, exact=True)
            out.line(inner + 2, f"{place} = {stored(total, t.dtype)}")


def _open_rows(out: Writer, region: Region, count: Size, depth: int) -> Iterator[list[str]]:
    """Write the heads of loops over rows, one after another; for each the rows of one step."""
    together = _rows_together(region)
    several = together > 1 and (not isinstance(count, int) or count >= together)
    row, done = out.fresh("i"), "0"
    if several:
        done = str(count // together * together) if isinstance(count, int) else f"{out.size(count)} & -{together}"
        out.line(depth, f"for {row} in range(0, {done}, {together}):")
        rows = [row, *[out.fresh("i") for _ in range(together - 1)]]
        for k, name in enumerate(rows[1:], 1):
            out.line(depth + 1, f"{name} = {row} + {k}")
        yield rows
        row = out.fresh("i")
    if not several or not isinstance(count, int) or count % together:
        first = "" if done == "0" else f"{done}, "
        out.line(depth, f"for {row} in range({first}{out.size(count)}):")
        yield [row]


def _rows_together(region: Region) -> int:
    """The number of rows that are combined at a time: the more there are, the more arrays are read side by side."""
    work = [v for v in postorder(region.results, stop=lambda v: v.op is load) if v.operands]
    if len(work) <= FEW_OPS and sum(v.op is load for v in work) <= FEW_LOADS:
        return ROWS
    return 2 if len(work) <= MORE_OPS else 1


def _together(out: Writer, kind: str, xs: Sequence[str], dtype: np.dtype, depth: int) -> str:
    """Some elements, combined in pairs."""
    while len(xs) > 1:
        names = [out.fresh("t") for _ in range(0, len(xs), 2)]
        for name, a, b in zip(names, xs[::2], xs[1::2], strict=True):
            out.line(depth, f"{name} = {combine(kind, a, b, dtype, exact=True)}")
        xs = names
    return xs[0]


def _fold_order(v: Value, fold: Value, known: Mapping[int, str]) -> list[int]:
    """For each part of the fold, which result of the loop it is. Raises Unsupported if a part is no result."""
    found = {projection(r)[1]: k for k, r in enumerate(v.regions[0].results)}
    order = [found.get(p, -1) for p in range(len(fold_parts(fold)))]
    if any(k not in known for k in order):
        raise Unsupported("a column fold that is no result")
    return order


# --- what a mask chooses ----------------------------------------------------------------------------------------------
#
# ``where(mask, x, identity)`` is folded only where the mask holds. One that compares the index of a column, a row, and
# sizes (a convolution, a band) says for each row from which column to which it holds. Loops run over these, without a
# test or a clamped index inside.


class _BoundedRows:
    """The loops over rows of a fold whose mask bounds columns: those that all rows of a step have are combined first,
    what only some have is added row by row."""

    def __init__(self, out: Writer, bounds: _Bounds, j: str, block: tuple[str, str], kept: tuple[str, str, TensorType],
                 seen: Callable[[str], list[str]]):
        self.out, self.bounds, self.j, self.block, self.seen = out, bounds, j, block, seen
        self.place, self.kind, self.type = kept

    def emit(self, count: Size, depth: int) -> None:
        out = self.out
        for rows in _open_rows(out, self.bounds.region, count, depth):
            if len(rows) == 1:
                self.columns(rows, *self.limits(rows[0], depth + 1), depth + 1)
                continue
            found = [self.limits(row, depth + 1) for row in rows]
            first, last, row = out.fresh("r"), out.fresh("r"), out.fresh("i")
            out.line(depth + 1, f"{first} = {_nested('max', [a for a, _ in found])}")
            out.line(depth + 1, f"{last} = max({first}, {_nested('min', [b for _, b in found])})")
            self.columns(rows, first, last, depth + 1)
            out.line(depth + 1, f"for {row} in range({rows[0]}, {rows[0]} + {len(rows)}):")
            a, b = self.limits(row, depth + 2)
            self.columns([row], a, f"min({first}, {b})", depth + 2)
            self.columns([row], f"max({last}, {a})", b, depth + 2)

    def limits(self, row: str, depth: int) -> tuple[str, str]:
        return self.bounds.emit(self.out, self.seen(row), self.j, self.block, depth)

    def columns(self, rows: Sequence[str], first: str, last: str, depth: int) -> None:
        """Write the loop over columns in which so many rows are added."""
        out, dtype, region = self.out, self.type.dtype, self.bounds.region
        out.line(depth, f"for {self.j} in range({first}, {last}):")
        scopes = [dict(zip(region_params(region), self.seen(row), strict=True)) for row in rows]
        xs = [out.emit_block(region, scope, [None], depth + 1)[0] for scope in scopes]
        x = _together(out, self.kind, xs, dtype, depth + 1)
        total = combine(self.kind, loaded(self.place, dtype), x, dtype, exact=True)
        out.line(depth + 1, f"{self.place} = {stored(total, dtype)}")


@dataclass(frozen=True)
class _Bounds:
    """The element that is folded where the mask holds: a region over the indices of result and fold, and what was
    captured. ``whole``: with the mask.

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
        out.line(depth, f"{first} = {_nested('max', low)}")
        end, holds = _nested("min", high), " and ".join(must)
        out.line(depth, f"{last} = ({end} if {holds} else {first})" if must else f"{last} = {end}")
        return first, last


def _nested(name: str, terms: Sequence[str]) -> str:
    """The greatest or least of several."""
    text = terms[0]
    for t in terms[1:]:
        text = f"{name}({text}, {t})"
    return text


def _bounds_of(v: Value, fold: Value) -> _Bounds | None:
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
    return _Bounds(region, whole, limits)


def _flat(v: Value, fold: Value) -> Region:
    """An element of what is folded, as a region over the indices of the result and of the fold, then what ``v``
    captured."""
    n, m = len(v.attrs["shape"]), len(fold.attrs["shape"])
    outer = [fresh_input(t) for t in v.regions[0].params]  # type: ignore[arg-type]
    rows = [fresh_input(t) for t in fold.regions[0].params[:m]]  # type: ignore[arg-type]
    captured = replace(fold.operands, dict(zip(region_params(v.regions[0]), outer, strict=True)))
    return close_over([*outer[:n], *rows, *outer[n:]], inline(fold.regions[0], [*rows, *captured]))


def _is_identity(v: Value, kind: str) -> bool:
    return v.data is not None and number(v.data) == identity(kind, v.dtype)


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
    return bool(v.data) if v.data is not None and v.dtype == np.bool_ else None


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
    """Slopes of integers that are linear in the column: by how much they grow with it."""
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
