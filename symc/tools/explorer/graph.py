"""Values and regions as tables of numbers and text, which JSON holds: the graphs of the explorer and of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.codegen.kernel.names import significant_ops
from symc.ir import location
from symc.ir.function import Function, Hints
from symc.ir.location import Inside, Loc
from symc.ir.ops.kernel import projection
from symc.ir.text import how_written, input_names, print_attrs, splat_of, told_attrs, written_in
from symc.ir.types import TupleType
from symc.ir.value import Region, Value

#: Longer attributes (index lists, constant data) are cut.
MOST_ATTRS = 160
#: Longer names of inputs and ops are cut in pictures.
MOST_LABEL = 28


def family(v: Value) -> str:
    """The family that a picture colours a value by."""
    if v.regions:
        return "kernel" if v.op.name == "fused" else "control"
    found = next((t for t in ("elementwise", "movement", "reduction") if t in v.op.traits), "")
    return found or ("call" if v.operands else "leaf")


def label(v: Value) -> str:
    """A few words for a value: its op, of a kernel the ops that say most about it."""
    if v.op.name == "fused":
        return " ".join(significant_ops(v.regions[0]))
    return v.op.name


def cut(text: str, most: int) -> str:
    """The text, with an ellipsis where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


class Tables:
    """Rows for values, regions and lines, each once in all stages: what one stage shares with another is one row.

    ``values``: ``{op, label, family, type, in, attrs, regions, number, roles}``. ``in`` are operands, ``number`` is the
    text of a number that is written where it is used, ``get`` the place of one of several results, ``roles`` what the
    params of a loop's body are in it. ``regions``: ``{params, values, names, lines, results}``, of which ``values`` are
    those that have a line of text, ``names`` what stands on its left, ``lines`` the user's. ``locs``: lines.
    """

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.regions: list[dict[str, Any]] = []
        self.locs: list[Loc] = []
        self._values: dict[Value, int] = {}
        self._regions: dict[Region, int] = {}
        self._locs: dict[tuple[str, str], int] = {}

    def stage(self, f: Function) -> int:
        """The number of the region that is a function's body."""
        return self.region(f.body, input_names(f), f.hints, f.inside)

    def region(self, r: Region, names: Sequence[str], hints: Hints, inside: Inside) -> int:
        """The number of a region; its lines are those of all functions that have it."""
        known = self._regions.get(r)
        if known is None:
            written, rows = written_in(r.leaves, names, r.results)
            for v in r.values:
                self._value(v, inside)
            known = self._regions[r] = len(self.regions)
            self.regions.append({
                "params": [self._value(p, inside) for p in r.leaves], "names": [f"%{n}" for n in names],
                "values": [self._values[v] for v, _ in rows], "left": [", ".join(own) for _, own in rows],
                "lines": [[] for _ in rows], "results": [self._values[v] for v in r.results],
                "yields": [how_written(v, written) for v in r.results], "of": [v for v, _ in rows]})
        row = self.regions[known]
        for v, lines in zip(row["of"], row["lines"], strict=True):
            lines += [n for n in map(self._loc, location.in_order(hints.get(v, ()))) if n not in lines]
            for q in v.regions:
                self.region(q, [f"p{k}" for k in range(len(q.params))], inside.get(q, {}), inside)
        return known

    def find(self, v: Value) -> int | None:
        """The number of a value, if a stage has it."""
        return self._values.get(v)

    def _loc(self, loc: Loc) -> int:
        line = (loc.file, str(loc))  # stacks that end alike are one line
        if line not in self._locs:
            self._locs[line] = len(self.locs)
            self.locs.append(loc)
        return self._locs[line]

    def _value(self, v: Value, inside: Inside) -> int:
        if v in self._values:
            return self._values[v]
        number = splat_of(v)
        row: dict[str, Any] = {"op": v.op.name, "family": family(v), "in": [self._values[o] for o in v.operands]}
        row["type"] = ", ".join(map(str, v.type.items)) if isinstance(v.type, TupleType) else str(v.type)
        if number is not None and (v.shape or v.op.name == "constant"):
            row["number"] = how_written(v, {})
        elif v.op.name == "get":
            row["get"] = v.attrs["index"]
        elif said := told_attrs(v):
            row["attrs"] = cut(print_attrs(said), MOST_ATTRS)
        if (text := label(v)) != v.op.name:
            row["label"] = text
        if v.regions:
            row["regions"] = [self.region(r, [f"p{k}" for k in range(len(r.params))], inside.get(r, {}), inside)
                              for r in v.regions]
            row["roles"] = _roles(v)
        self._values[v] = len(self.values)
        self.values.append(row)
        return self._values[v]

    def difference(self, before: int, after: int) -> dict[str, list]:
        """Changes by a pass: ``new``, rows of the region after it, and ``gone``, pairs of a row of the region before
        it and the row of the one after it in front of which it stood.

        A value that both have is the same wherever it stands; one that is different only because of what it is made of
        is not told.
        """
        old, new = self.regions[before]["of"], self.regions[after]["of"]
        both = set(old) & set(new)
        places: dict[Any, list[int]] = {}
        for k, v in enumerate(old):
            places.setdefault(self._place(v, both), []).append(k)
        at: dict[int, int] = {}  # rows after by rows before
        changed: list[int] = []
        for n, v in enumerate(new):
            same = places.get(self._place(v, both))
            if same:
                at[same.pop(0)] = n
            else:
                changed.append(n)
        gone, last = [], 0
        for k in range(len(old)):
            if k in at:
                last = at[k] + 1
            else:
                gone.append([k, last])
        return {"new": changed, "gone": gone}

    def _place(self, v: Value, both: set[Value]) -> Any:
        """A key that is equal for values of which one took the place of the other."""
        if v in both:
            return v
        known = [projection(o)[0] for o in v.operands]
        own = [self._values[o] if k in both or not k.operands else -1 for o, k in zip(v.operands, known, strict=True)]
        return v.op, v.type, v.attrs, v.regions, tuple(sorted(own) if "commutative" in v.op.traits else own)

    def finished(self) -> dict[str, Any]:
        """The tables as JSON has them."""
        regions = [{k: x for k, x in r.items() if k != "of"} for r in self.regions]
        return {"values": self.values, "regions": regions, "locs": [_line(loc) for loc in self.locs]}


def _roles(v: Value) -> list[str]:
    """Names for the params of a loop's body; none where operands are passed on as they are."""
    steps = len(v.regions[0].params) - len(v.operands)  # a loop in a kernel counts its steps
    if "carry" not in v.attrs:
        return ["step"] * steps
    carry, xs = v.attrs["carry"], v.attrs.get("xs", 0)
    return ["step"] * steps + [f"carry {k}" for k in range(carry)] + [f"row of x {k}" for k in range(xs)]


def _line(loc: Loc) -> dict[str, Any]:
    path = loc.path.split("/") if loc.scopes else []
    return {"file": loc.file, "line": loc.line, "role": loc.role, "path": path, "short": str(loc.with_role(""))}
