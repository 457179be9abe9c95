"""last_state: of stacked results of which only the last steps are read, only those are kept.

``scan(...)[1][-1]`` becomes a carry: one row in the place of one a step. Where it is not known that the loop takes so
many steps, the row is checked to be there, as reading it was before.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import known_nonnegative
from symc.ir.function import Function
from symc.ir.op import splat
from symc.ir.ops.compare import ge
from symc.ir.ops.control import scan
from symc.ir.ops.kernel import check_index, results_of
from symc.ir.ops.leaf import size as size_value
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast, concat, reshape, slice_
from symc.ir.traverse import users
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.dead import tidy
from symc.opt.loops.edit import Edit, Results
from symc.opt.loops.form import Loop

#: So many last rows are kept in carries at most; each is a copy a step.
MOST_ROWS = 4

#: A reader of the last rows: the slice, and which rows it reads, as distances from the end (1 is the last).
Reader = tuple[Value, list[int]]


@standard_pass(
    after=("merge_scans",),
    why="a stack of which a gradient needs all rows is kept once",
    bodies="inner", on=("control",),
)
def last_state(provenance: Provenance, f: Function) -> Function:
    """Results of which only the last steps are read are kept for those alone."""
    edit = Edit(f, provenance, "last_state")
    uses = users(edit.values)
    results = set(f.body.results)
    planned: dict[Value, list[Reader]] = {}  # by the stack that is read
    reads: dict[Value, tuple[Value, list[int]]] = {}  # by reader: the stack, and the rows
    for v in edit.values:
        if v.op is scan:
            for y in results_of(v)[v.attrs["carry"] :]:
                readers = [] if y in results else _readers(v, y, uses.get(y, ()))
                if readers:
                    planned[y] = readers
                    reads.update((u, (y, rows)) for u, rows in readers)
    if not planned:
        return f
    rows_of: dict[Value, list[Value]] = {}  # the last rows of a stack: the last first

    def visit(old: Value, new: Value) -> Results | None:
        stacks = {k: y for k, y in enumerate(results_of(old)) if y in planned} if old.op is scan else {}
        if not stacks:
            return None
        loop = Loop(edit, new, edit.used.get(old, set()))
        keys = {y: _carry_rows(loop, k, max(d for _, rows in planned[y] for d in rows)) for k, y in stacks.items()}
        tidy(loop)
        out = loop.build()[1]
        for y, own in keys.items():
            rows_of[y] = [out[k] for k in own]
            edit.record(y, rows_of[y][0], [edit.hints.get(old, frozenset())])
        return out

    for v in edit.values:
        if v in reads and reads[v][0] in rows_of:
            edit.done[v] = new = _read(v, rows_of[reads[v][0]], reads[v][1])
            edit.note(new, edit.hints.get(v, frozenset()))
        elif v not in planned or v.op is scan:
            edit.step(v, visit)
    return edit.finish()


def _readers(loop: Value, y: Value, uses: Sequence[Value]) -> list[Reader]:
    """All that read ``y``, if they read few rows at the end; else nothing."""
    out: list[Reader] = []
    length = loop.attrs["length"]
    for u in uses:
        if u.op is not slice_:
            return []
        start, count, step = u.attrs["start"][0], u.attrs["size"][0], u.attrs["step"][0]
        first = start + 1 if loop.attrs["reverse"] else length - start
        step = step if loop.attrs["reverse"] else -step
        if not isinstance(first, int) or not isinstance(count, int) or not 0 < count <= MOST_ROWS:
            return []
        rows = [first + k * step for k in range(count)]
        if not 1 <= min(rows) <= max(rows) <= MOST_ROWS or isinstance(length, int) and max(rows) >= length:
            return []
        out.append((u, rows))
    return out


def _carry_rows(loop: Loop, key: int, count: int) -> list[int]:
    """Carry the last ``count`` rows of a stack on; their numbers among the results, the last row first."""
    y = loop.stacks.pop(key)
    before = next((c for c in loop.carries if c.new is y), None)
    keys = []
    for k in range(count):
        if k == 0 and before is not None:
            keys.append(loop.carry(before.init, y))  # equal to a carry: one of the two goes
        else:
            keys.append(loop.carry(splat(0, y.type), y))
        y = loop.finals[keys[-1]]
    return keys


def _read(u: Value, rows: Sequence[Value], wanted: Sequence[int]) -> Value:
    """The rows that ``u`` reads of a stack, from its last rows."""
    row = rows[0]
    parts = [reshape(rows[d - 1], shape=(1, *row.shape)) for d in wanted]
    out = parts[0] if len(parts) == 1 else concat(*parts, axis=0)
    rest = {k: (first, *u.attrs[k][1:]) for k, first in (("start", 0), ("size", len(parts)), ("step", 1))}
    out = slice_(out, **rest) if rest["size"] != out.shape or set(rest["step"]) - {1} else out
    return out if known_nonnegative(_length_of(u) - max(wanted)) else _checked(out, _length_of(u), max(wanted))


def _length_of(u: Value):
    return u.operands[0].shape[0]


def _checked(out: Value, length, rows: int) -> Value:
    """``out``, after a check that a loop of ``length`` steps has so many rows."""
    there = ge(check_index(size_value(value=length - rows), size=length), 0)
    return where(broadcast(there, axes=(), shape=out.shape), out, splat(0, out.type))
