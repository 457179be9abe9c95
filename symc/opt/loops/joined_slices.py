"""Pieces of one array that cross the border of a loop together: one row, or one stack, in place of several.

A product of all gates is one array. Where a loop stacks its parts, it stacks the whole, and the parts are taken
outside; where it takes rows of parts, it takes rows of the whole, and the kernels that read them take the parts.
"""

from __future__ import annotations

from symc.grad.residuals import size_in_bytes
from symc.ir.dim import Size
from symc.ir.location import NOWHERE
from symc.ir.ops.control import scan
from symc.ir.ops.shape import concat, slice_
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.opt.loops.edit import Results
from symc.opt.loops.form import Given, Loop, on_loops

#: Where a piece lies: the start, size and step along every axis of a step.
Place = dict[str, tuple]


@on_loops("pack", scan)
def join_stacks(loop: Loop) -> Results | None:
    """Stacks what parts are taken of, not the parts."""
    pieces = {} if loop.fixed else _stacked_pieces(loop)
    if not pieces:
        return None
    keys = {whole: loop.stack(whole) for whole in dict.fromkeys(w for w, _ in pieces.values())}
    gone = {k: (y, *pieces[y]) for k, y in loop.stacks.items() if y in pieces}
    for k in gone:
        del loop.stacks[k]
    out = dict(loop.build()[1])
    for k, (y, whole, place) in gone.items():
        rows = {"start": 0, "size": loop.length, "step": 1}
        out[k] = slice_(out[keys[whole]], **{key: (rows[key], *place[key]) for key in rows})
        loop.edit.note(out[k], loop.lines.get(y, NOWHERE))
    return out


def _stacked_pieces(loop: Loop) -> dict[Value, tuple[Value, Place]]:
    """For each stack that is a piece, of what, and where it lies there. At least half of the whole is stacked."""
    stacks = set(loop.stacks.values())
    found: dict[Value, dict[Value, Place]] = {}
    for v in postorder(loop.roots()):
        if v.op is concat:
            own = {o: p for o, p in _parts(v).items() if o in stacks}
            if own:
                found.setdefault(v, {}).update(own)
        elif v.op is slice_ and v in stacks and v.operands[0].operands:
            found.setdefault(v.operands[0], {})[v] = {k: v.attrs[k] for k in ("start", "size", "step")}
    out: dict[Value, tuple[Value, Place]] = {}
    for whole, pieces in found.items():
        free = {y: p for y, p in pieces.items() if y not in out and y is not whole}
        enough = whole in stacks or len(free) > 1 and _covers(whole, list(free))
        if enough and whole not in out:
            out.update((y, (whole, p)) for y, p in free.items())
    return {y: found for y, found in out.items() if found[0] not in out}


def _parts(v: Value) -> dict[Value, Place]:
    axis, out = v.attrs["axis"], dict[Value, Place]()
    at: Size = 0
    for o in v.operands:
        start = tuple(at if a == axis else 0 for a in range(v.ndim))
        out.setdefault(o, {"start": start, "size": o.shape, "step": (1,) * v.ndim})
        at = at + o.shape[axis]
    return out


def _covers(whole: Value, pieces: list[Value]) -> bool:
    return 2 * sum(size_in_bytes(p.type) for p in pieces) >= size_in_bytes(whole.type)


@on_loops("pack", scan)
def join_rows(loop: Loop) -> Results | None:
    """Takes rows of an array, not of its parts."""
    by_whole: dict[Value, list[Given]] = {}
    for r in loop.rows:
        if r.operand.op is slice_ and _keeps_rows(r.operand):
            by_whole.setdefault(r.operand.operands[0], []).append(r)
    by_whole = {w: rows for w, rows in by_whole.items() if len(rows) > 1}
    if not by_whole:
        return None
    changed: dict[Value, Value] = {}
    for whole, rows in by_whole.items():
        row = Given(loop.leaf(rows[0].leaf.type.with_shape(whole.shape[1:])), whole)
        loop.rows.append(row)
        for r in rows:
            changed[r.leaf] = slice_(row.leaf, **{k: r.operand.attrs[k][1:] for k in ("start", "size", "step")})
    loop.rows = [r for r in loop.rows if r.leaf not in changed]
    loop.substitute(changed)
    made, out = loop.build()
    loop.edit.record(loop.value, made if made is not None else loop.value)
    return out


def _keeps_rows(v: Value) -> bool:
    """True if a slice has all rows of its operand, in order."""
    a = v.attrs
    return a["start"][0] == 0 and a["step"][0] == 1 and v.shape[0] == v.operands[0].shape[0]
