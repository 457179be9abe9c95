"""IR as text. ``parse(print_function(f)).body is f.body``; see ``symc.ir.parse`` for the way back and the grammar.

One production covers every op: ``names = OP operands {attrs} : types regions``. An op's defaults are left out.
Constants and splats of one number are written where they are used, as ``1.0:f64[n]``. User lines follow in comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symc.ir import location
from symc.ir.attrs import EMPTY, Attrs, same_attr
from symc.ir.dim import PROCESS
from symc.ir.function import Function, Hints
from symc.ir.literal import print_attr, print_number
from symc.ir.op import is_builtin, lookup
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TupleType
from symc.ir.value import Region, Value, fresh_input, make


def splat_of(v: Value) -> Any | None:
    """The 0-d array that ``v`` repeats everywhere, if it is a scalar constant or a broadcast of one."""
    if v.op.name == "broadcast" and not v.attrs["axes"]:
        v = v.operands[0]
    return v.data if v.op.name == "constant" and not v.shape else None


def told_attrs(v: Value) -> dict[str, Any]:
    """The attributes of ``v`` but for those that its op has by default."""
    said = v.op.defaults
    return {k: a for k, a in v.attrs.items() if k not in said or not same_attr(a, v.op.default(k, v.operands))}


def print_attrs(attrs: Mapping[str, Any]) -> str:
    """``{name = value, ...}``."""
    return "{" + ", ".join(f"{k} = {print_attr(a)}" for k, a in attrs.items()) + "}"


def print_function(f: Function, locations: bool = True) -> str:
    """The text of a function; user lines as trailing comments."""
    names = input_names(f)
    params = ", ".join(
        f"{'state ' if i.role == 'state' else ''}%{n}: {i.type}" for n, i in zip(names, f.inputs, strict=True)
    )
    outs = ", ".join(str(v.type) for v in f.outputs)
    lines = [f"func @{_identifier(f.name)}({params}) -> ({outs}) {{"]
    if locations:
        lines += [f"  // %{n} : [{', '.join(d or '_' for d in i.dims)}]"
                  for n, i in zip(names, f.inputs, strict=True) if i.dims]
    printer = _Printer(f.hints if locations else {}, f.inside if locations else {})
    body, results = printer.block(f.params, names, f.body.results, "  ")
    lines += body
    n = len(f.outputs)
    end = "  return" + (" " + ", ".join(results[:n]) if n else "")
    if f.updates:
        end += " update (" + ", ".join(f"%{names[k]} = {r}" for k, r in zip(f.updates, results[n:], strict=True)) + ")"
    return "\n".join([*lines, end, "}"]) + "\n"


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name)
    return name if name and not name[0].isdigit() else "_" + name


def input_names(f: Function) -> list[str]:
    """Unique identifiers for the inputs; a clash gets a suffix."""
    out: list[str] = []
    for i in f.inputs:
        name = base = _identifier(i.name)
        k = 1
        while name in out:
            name, k = f"{base}_{k}", k + 1
        out.append(name)
    return out


def written_in(params: Sequence[Value], names: Sequence[str],
               results: Sequence[Value]) -> tuple[dict[Value, str], list[tuple[Value, list[str]]]]:
    """Spellings of the values of a block; and those that have a line of their own, with the names on its left.
    Numbers and their splats are written where they are used."""
    written: dict[Value, str] = {p: f"%{n}" for p, n in zip(params, names, strict=True)}
    rows: list[tuple[Value, list[str]]] = []
    count = 0
    used = set(names)
    values = postorder(results)
    inlined = {v for v in values if splat_of(v) is not None and (v.shape or v.op.name == "constant")}
    for v in values:
        if v in written or v in inlined or v.op.name == "get":
            continue
        width = len(v.type.items) if isinstance(v.type, TupleType) else 1
        own: list[str] = []
        while len(own) < width:
            if str(count) not in used:
                own.append(f"%{count}")
            count += 1
        if isinstance(v.type, TupleType):
            for k, name in enumerate(own):
                written[v[k]] = name
        else:
            written[v] = own[0]
        rows.append((v, own))
    return written, rows


def how_written(v: Value, written: Mapping[Value, str]) -> str:
    """The name of an operand, or the number that it is."""
    name = written.get(v)
    if name is not None:
        return name
    number = splat_of(v)
    if number is None:
        raise ValueError(f"{v!r} is a free leaf: only closed functions have text")
    return f"{print_number(number)}:{v.type}"


class _Printer:
    def __init__(self, hints: Hints, inside: location.Inside):
        self.hints, self.inside = hints, inside

    def block(
        self, params: Sequence[Value], names: Sequence[str], results: Sequence[Value], indent: str
    ) -> tuple[list[str], list[str]]:
        """The lines of a block, and how its results are written."""
        written, rows = written_in(params, names, results)
        lines = [line for v, own in rows for line in self._line(v, own, written, indent)]
        return lines, [how_written(r, written) for r in results]

    def _line(self, v: Value, own: list[str], written: Mapping[Value, str], indent: str) -> Iterator[str]:
        text = f"{indent}{', '.join(own)} = {v.op.name}"
        if v.operands:
            text += " " + ", ".join(how_written(o, written) for o in v.operands)
        if shown := told_attrs(v):
            text += " " + print_attrs(shown)
        types = v.types
        text += " : " + ", ".join(map(str, types))
        comment = self._comment(v)
        if not v.regions:
            yield text + comment
            return
        for k, region in enumerate(v.regions):
            yield (text if k == 0 else f"{indent}}}") + " {" + (comment if k == 0 else "")
            yield from self.region(region, indent)
        yield indent + "}"

    def region(self, region: Region, indent: str) -> Iterator[str]:
        """``^(%p0: type, ...):`` and the lines of the body."""
        names = [f"p{i}" for i in range(len(region.params))]
        yield f"{indent}^({', '.join(f'%{n}: {t}' for n, t in zip(names, region.params, strict=True))}):"
        printer = _Printer(self.inside.get(region, {}), self.inside)
        lines, results = printer.block(region_params(region), names, region.results, indent + "  ")
        yield from lines
        yield f"{indent}  yield {', '.join(results)}".rstrip()

    def _comment(self, v: Value) -> str:
        locs = self.hints.get(v)
        return "  // " + location.brief(locs) if locs else ""


# --- pickling: graphs travel as flat tables of records, at any depth --------------------------------------------------

_foreign: dict[tuple[str, int], Value] = {}


def _encode(roots: Sequence[Value]) -> tuple[list[tuple], list[int]]:
    values = postorder(roots)
    at = {v: k for k, v in enumerate(values)}
    table = [
        (
            v.op.name if is_builtin(v.op) else v.op,
            tuple(at[o] for o in v.operands),
            dict(v.attrs) or None,
            tuple(_encode_region(r) for r in v.regions),
        )
        for v in values
    ]
    return table, [at[r] for r in roots]


def _encode_region(region: Region) -> tuple:
    return region.params, *_encode(region.results)


def _decode(table: list[tuple], roots: list[int], process: str) -> list[Value]:
    values: list[Value] = []
    for name, operands, attrs, regions in table:
        if name == "input" and process != PROCESS:
            key = (process, attrs["serial"])
            if key not in _foreign:
                _foreign[key] = fresh_input(attrs["type"])
            values.append(_foreign[key])
        else:
            made = [Region(params, _decode(t, r, process)) for params, t, r in regions]
            op = lookup(name) if isinstance(name, str) else name
            values.append(make(op, [values[k] for k in operands], Attrs(attrs) if attrs else EMPTY, made))
    return [values[k] for k in roots]


def _load_value(table: list[tuple], roots: list[int], process: str) -> Value:
    return _decode(table, roots, process)[0]


def _load_region(params: tuple, table: list[tuple], roots: list[int], process: str) -> Region:
    return Region(params, _decode(table, roots, process))


def pickle_value(value: Value) -> tuple:
    """For ``Value.__reduce__``. Free leaves keep their identity within a process and within a pickle's process."""
    return _load_value, (*_encode([value]), PROCESS)


def pickle_region(region: Region) -> tuple:
    """For ``Region.__reduce__``."""
    return _load_region, (*_encode_region(region), PROCESS)
