"""Loops cut where a condition on their index changes: ``i < 128`` holds in one part of a range and fails in the other.

So padding, concatenation and shifts become loops over parts that read straight through their operands, without a test
or a clamped index in any of them, and the compiler vectorizes them. Nothing changes but where conditions are decided.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from symc.codegen.plan.compare_sizes import at_least
from symc.ir.dim import Size, ceildiv
from symc.ir.op import make
from symc.ir.ops.leaf import scalar
from symc.ir.ops.store import is_epilogue
from symc.ir.size_extremes import maximum, minimum
from symc.ir.size_values import number
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Region, Value

#: Into how many parts a loop nest is cut at most, and how many values may be written in all.
MOST_PARTS, MOST_VALUES = 9, 1000
#: The same where thin rows are cut as well.
MOST_WHOLE = 300
#: Rows at the start and the end, up to so many, are not cut again where that would be too much to write.
THIN = 2

Range = tuple[Size, Size]  # first, and one after the last
Interval = tuple[Size, Size]  # least and greatest
#: For x < d, x <= d, ...: what has to be added to d to get the first x for which it is otherwise.
COMPARES = {"lt": 0, "ge": 0, "le": 1, "gt": 1}


Parts = list[tuple[Range, "Parts"]]  # the ranges of an axis, and in each those of the axes inside


def cut(v: Value) -> Parts | None:
    """The ranges of each axis of a `generate` in which its conditions stay as they are (see ``limits``); None if there
    is one part."""
    (region,) = v.regions
    shape = v.attrs["shape"]
    values = postorder(region.results)
    if any(u.regions or is_epilogue(u) for u in values):
        return None
    cuts: list[set[Size]] = [set() for _ in shape]
    lines = _lines(region_params(region)[: len(shape)], values)
    for u in values:
        for axis, sign, places in _changes(u, lines):
            for p in places:
                cuts[axis].add(p if sign > 0 else 1 - p)
    found: Parts = []
    for n, own in zip(reversed(shape), reversed(cuts), strict=True):  # the last axis first: it is the one that counts
        found = _around(found, _in_order(own, n), n, len(values))
    return found if _count(found) > 1 else None


def _around(inside: Parts, ranges: list[Range], n: Size, values: int) -> Parts:
    """The parts of an axis around others: not cut if those are too many, nor those inside of thin rows if what is
    written is too much."""
    whole = _whole(inside)
    every, some = [(r, inside) for r in ranges], [(r, whole if _is_thin(r) else inside) for r in ranges]
    for found, most in ((every, MOST_WHOLE), (some, MOST_VALUES)):
        if _count(found) <= MOST_PARTS and _count(found) * values <= most:
            return found
    return [((0, n), inside if _count(inside) * values <= MOST_VALUES else whole)]


def _whole(parts: Parts) -> Parts:
    """The same axes in one part."""
    return [((parts[0][0][0], parts[-1][0][1]), _whole(parts[0][1]))] if parts else []


def _is_thin(r: Range) -> bool:
    return at_least(THIN, r[1] - r[0])


def _count(parts: Parts) -> int:
    return sum(_count(inside) for _, inside in parts) if parts else 1


def _lines(index: Sequence[Value], values: Sequence[Value]) -> dict[Value, tuple[int, int, Size]]:
    """Values that are ``scale * index + offset``, but for clamps: axis, scale, offset."""
    found: dict[Value, tuple[int, int, Size]] = {i: (k, 1, 0) for k, i in enumerate(index)}
    for u in values:
        if _same(u) and u.operands[0] in found:
            found[u] = found[u.operands[0]]
        if u.op.name not in ("add", "sub", "mul", "minimum", "maximum"):
            continue
        a, b = u.operands
        if a in found and (number := size_of(b)) is not None:
            line = _line(u.op.name, found[a], number)
        elif b in found and (number := size_of(a)) is not None:
            k, scale, offset = found[b]
            line = (k, -scale, number - offset) if u.op.name == "sub" else _line(u.op.name, found[b], number)
        else:
            continue
        if line is not None:
            found[u] = line
    return found


def _line(name: str, line: tuple[int, int, Size], number: Size) -> tuple[int, int, Size] | None:
    """The line that an operation with a number makes of one."""
    k, scale, offset = line
    if name == "mul":
        return (k, scale * number, offset * number) if isinstance(number, int) and number else None
    return k, scale, offset + {"add": number, "sub": 0 - number}.get(name, 0)


def _same(u: Value) -> bool:
    return u.op.name == "cast" and u.dtype == u.operands[0].dtype


def size_of(v: Value) -> Size | None:
    """The number that an i64 scalar is, if it is known."""
    if v.op.name == "size":
        return v.attrs["value"]
    return int(v.data) if v.data is not None and v.dtype == np.int64 and not v.shape else None


def _changes(u: Value, lines: Mapping[Value, tuple[int, int, Size]]) -> list[tuple[int, int, list[Size]]]:
    """Points where a comparison, a minimum or a maximum with a known number changes: axis, sign, first ``sign *
    index``, sign that of the scale of a line."""
    if u.op.name not in (*COMPARES, "eq", "ne", "minimum", "maximum") or len(u.operands) != 2:
        return []
    x, d = u.operands
    turned = x not in lines
    if turned:
        x, d = d, x
    known = size_of(d)
    if x not in lines or known is None:
        return []
    axis, scale, offset = lines[x]
    at = known - offset
    if u.op.name in ("eq", "ne"):
        places = [at, at + 1]
    elif u.op.name in COMPARES:
        after = COMPARES[u.op.name]
        places = [at + (1 - after if turned else after)]
    else:
        places = [at + (u.op.name == "minimum")]  # where a clamp ends, and the condition that it stands beside
    return [(axis, scale, [ceildiv(p, abs(scale)) for p in places])]


def _in_order(cuts: set[Size], n: Size) -> list[Range]:
    """Ranges between cuts. Where their order is not known, those near the start and those near the end: what lies
    between is one range, which may turn out to be empty. A cut may turn out to be outside of ``range(n)``."""
    left = [c for c in cuts if not at_least(0, c) and not at_least(c, n)]
    near = [c for c in left if 2 * number(c) <= number(n)]
    ordered = _ordered(left)
    if ordered is None:
        none: Size = 0
        start = functools.reduce(maximum, near, none)
        end = functools.reduce(minimum, [c for c in left if c not in near], n)
        return [*([(none, start)] if near else []), (start, end), (maximum(start, end), n)]
    return list(itertools.pairwise([0, *ordered, n]))


def _ordered(left: list[Size]) -> list[Size] | None:
    """Cuts in order, if it is known."""
    ordered: list[Size] = []
    while left:
        first = [c for c in left if all(at_least(o, c) for o in left)]
        if not first:
            return None
        ordered.append(first[0])
        left = [c for c in left if c is not first[0]]
    return ordered


def limits(axis: Range, n: Size) -> Range:
    """The part of ``range(n)`` that is in a range."""
    return maximum(axis[0], 0), minimum(axis[1], n)


# --- a part -----------------------------------------------------------------------------------------------------------


def part(region: Region, ranges: Sequence[Range], within: Mapping[Value, Interval] = {}) -> Region:
    """A region whose first params lie in these ranges, and other integers in intervals, with every condition decided
    that is the same in all of them."""
    known: dict[Value, Interval] = dict(within)
    new: dict[Value, Value] = {}
    for p, (start, stop) in zip(region_params(region), ranges, strict=False):
        known[p] = (start, stop - 1)
    for u in postorder(region.results):
        operands = [new[o] for o in u.operands]
        simple = _decided(u, operands, known)
        if simple is None:
            same = all(a is b for a, b in zip(operands, u.operands, strict=True))
            simple = u if same else make(u.op, operands, u.attrs, u.regions)
        interval = known.get(simple) or _interval(u, known)
        if interval is not None:
            known[u] = known[simple] = interval
        new[u] = simple
    return Region(region.params, [new[r] for r in region.results])


def _decided(u: Value, operands: Sequence[Value], known: Mapping[Value, Interval]) -> Value | None:
    """The value that ``u`` is in this part, if it is one of its operands or a truth."""
    name = u.op.name
    if _same(u):
        return operands[0]
    if name in ("and", "or") and u.dtype == np.bool_:
        for o, other in zip(u.operands, operands[::-1], strict=True):
            truth = _truth(o, known)
            if truth is not None:
                return other if truth == (name == "and") else _bool(truth)
    elif name == "where":
        truth = _truth(operands[0], known)
        if truth is not None:
            return operands[1] if truth else operands[2]
    elif name in ("minimum", "maximum") and all(o in known or size_of(o) is not None for o in u.operands):
        a, b = (_bounds(o, known) for o in u.operands)
        if a is not None and b is not None:
            if at_least(b[0], a[1]):
                return operands[0 if name == "minimum" else 1]
            if at_least(a[0], b[1]):
                return operands[1 if name == "minimum" else 0]
    truth = _truth(u, known)
    return None if truth is None else _bool(truth)


def _bool(truth: bool) -> Value:
    return scalar(truth, np.bool_)


def _bounds(v: Value, known: Mapping[Value, Interval]) -> Interval | None:
    number = size_of(v)
    return known.get(v) if number is None else (number, number)


def _truth(v: Value, known: Mapping[Value, Interval]) -> bool | None:
    """True if a condition holds everywhere or nowhere."""
    name = v.op.name
    if v.data is not None and v.dtype == np.bool_:
        return bool(v.data)
    if name in ("and", "or", "not") and v.dtype == np.bool_:
        truths = [_truth(o, known) for o in v.operands]
        if name == "not":
            return None if truths[0] is None else not truths[0]
        if (name == "or") in truths:
            return name == "or"
        return None if None in truths else name == "and"
    if name not in (*COMPARES, "eq", "ne"):
        return None
    a, b = (_bounds(o, known) for o in v.operands)
    if a is None or b is None:
        return None
    if name in ("eq", "ne"):
        return name == "ne" if at_least(b[0], a[1] + 1) or at_least(a[0], b[1] + 1) else None
    strict = name in ("lt", "ge")  # x < y, or its negation
    if at_least(b[0], a[1] + strict):
        return name in ("lt", "le")
    return name in ("gt", "ge") if at_least(a[0], b[1] + (not strict)) else None


def _interval(u: Value, known: Mapping[Value, Interval]) -> Interval | None:
    if u in known or u.op.name not in ("add", "sub", "mul", "minimum", "maximum") or u.dtype != np.int64:
        return known.get(u)
    a, b = (_bounds(o, known) for o in u.operands)
    if a is None or b is None:
        return None
    if u.op.name == "add":
        return a[0] + b[0], a[1] + b[1]
    if u.op.name == "sub":
        return a[0] - b[1], a[1] - b[0]
    if u.op.name == "mul":
        factor, (low, high) = (a[0], b) if a[0] is a[1] else (b[0], a)
        same = a[0] is a[1] or b[0] is b[1]
        return (low * factor, high * factor) if same and isinstance(factor, int) and factor > 0 else None
    return _clamped(u.op.name, a, b)


def _clamped(name: str, a: Interval, b: Interval) -> Interval | None:
    """Bounds of a minimum or maximum, where they are known to be one of the operands'."""
    out = []
    for x, y in zip(a, b, strict=True):
        if at_least(x, y):
            out.append(x if name == "maximum" else y)
        elif at_least(y, x):
            out.append(y if name == "maximum" else x)
        else:
            return None
    return out[0], out[1]
