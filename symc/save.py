"""Compiled functions as data: IR text, constants, state and options in one zip file. Nothing in it is code or a pickle.

function.ir     what was compiled        final.ir   what the optimizer made of it, if anything
meta.json       names, user lines, guards, structure of arguments and results, options
arrays.npz      large constants, by digest        state.npz   the arrays of shared variables
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.build import Built
from symc.callsite import caller
from symc.errors import InputError, SymcError
from symc.function import CompiledFunction
from symc.ir.attrs import Array
from symc.ir.dim import parse_dim
from symc.ir.function import Function, Guard, Input
from symc.ir.literal import INLINE_ELEMENTS
from symc.ir.location import Inside, Loc
from symc.ir.parse import parse
from symc.ir.phases import Record, recording
from symc.ir.record import replace
from symc.ir.text import print_function
from symc.ir.traverse import every_region, postorder, region_params
from symc.ir.types import DTYPE_NAMES, DTYPES, TensorType
from symc.ir.value import Region, Value
from symc.max_bytes import budget_of
from symc.nest import from_json, to_json
from symc.prepared import restore
from symc.signature import Slot
from symc.state import Cell
from symc.target import target_of

FORMAT = 2


# --- writing ----------------------------------------------------------------------------------------------------------


def save(f: Any, path: Any) -> None:
    """Write ``f`` to ``path``; the file appears whole or not at all."""
    data = pack(f, state=True)
    path = os.fspath(path)
    with open(f"{path}.{os.getpid()}.tmp", "wb") as file:
        file.write(data)
    os.replace(file.name, path)


def pack(f: Any, state: bool) -> bytes:
    """The file's bytes; ``state`` includes the arrays of shared variables."""
    source, final = f._prepared.source, f._prepared.saved
    constants: dict[str, np.ndarray] = {}
    for g in (source, final):
        _collect(g, constants)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("meta.json", json.dumps(_meta(f)))
        z.writestr("function.ir", print_function(source, locations=False))
        if final.body is not source.body:
            z.writestr("final.ir", print_function(final, locations=False))
        z.writestr("arrays.npz", _npz(constants))
        if state:
            z.writestr("state.npz", _npz({str(k): c.get(False) for k, c in enumerate(f._cells)}))
    return out.getvalue()


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def _collect(f: Function, into: dict[str, np.ndarray]) -> None:
    """Constants that the text names by digest only, inside regions too."""
    pending = [f.body]
    while pending:
        for v in postorder(pending.pop().results):
            pending += v.regions
            for attr in v.attrs.values():
                if isinstance(attr, Array) and attr.data.size > INLINE_ELEMENTS:
                    into[attr.digest.hex()] = attr.data


def _meta(f: Any) -> dict[str, Any]:
    built, source = f._built, f._prepared.source
    return {
        "format": FORMAT, "name": source.name, "options": f._options, "outputs": to_json(built.outputs),
        "slots": [[s.name, to_json(s.nest)] for s in built.slots], "donated": sorted(built.donated),
        "inputs": [_input_json(i) for i in source.inputs],
        "guards": [[str(g.left), str(g.right), _locs_json(g.locs), g.least] for g in source.guards],
        "lines": _lines(source), "final_lines": _lines(f._prepared.saved),
        "cells": [[c.name, _type_json(c.type), _loc_json(c.loc)] for c in f._cells],
    }  # fmt: skip


def _lines(f: Function) -> list[list[Any]]:
    """User lines of the body, then of each region inside it, by position: their order is a function of the text."""
    out = []
    for k, region in enumerate(every_region(f.body)):
        hints = f.inside.get(region, {}) if k else f.hints
        out.append([[j, _locs_json(hints[v])] for j, v in enumerate(_in_order(region)) if hints.get(v)])
    return out


def _in_order(region: Region) -> list[Value]:
    return [*region_params(region), *postorder(region.results)]


def _type_json(t: TensorType | None) -> Any:
    return None if t is None else [DTYPE_NAMES[t.dtype], [str(s) for s in t.shape]]


def _loc_json(loc: Loc | None) -> Any:
    return None if loc is None else list(loc)


def _locs_json(locs: Any) -> list[Any]:
    return [list(loc) for loc in sorted(locs)]


def _input_json(i: Input) -> list[Any]:
    return [i.name, i.role, _type_json(i.declared), _loc_json(i.loc)]


# --- reading ----------------------------------------------------------------------------------------------------------


def load(path: Any) -> CompiledFunction:
    """The function that ``f.save(path)`` wrote. States are new shared variables, in ``f.shared``.

    Raises InputError for a file that is no saved function, and what the mode raises that it was compiled with.
    """
    try:
        with open(os.fspath(path), "rb") as file:
            return unpack(file.read())
    except SymcError as e:
        e.attach((), (caller(),))
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError) as e:
        raise InputError(
            f"{os.fspath(path)!r} is not a saved function of symc", where=[caller()], help=str(e)
        ) from None


def unpack(data: bytes, cells: Sequence[Cell] | None = None) -> CompiledFunction:
    """The inverse of ``pack``. ``cells``: the states, when they are not in the file."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        meta = json.loads(z.read("meta.json"))
        if meta["format"] != FORMAT:
            raise InputError(f"the saved function has format {meta['format']}; this version of symc reads {FORMAT}")
        arrays = _arrays(z.read("arrays.npz"))
        source = _function(z.read("function.ir").decode(), arrays, meta, "lines")
        final = source
        if "final.ir" in z.namelist():
            final = _function(z.read("final.ir").decode(), arrays, meta, "final_lines")
        if cells is None:
            state = _arrays(z.read("state.npz"))
            cells = [
                Cell(np.array(state[str(k)], order="C"), _type(t), name, _loc(loc))  # type: ignore[arg-type]
                for k, (name, t, loc) in enumerate(meta["cells"])
            ]
    slots = tuple(Slot(name, from_json(nest)) for name, nest in meta["slots"])
    built = Built(source, from_json(meta["outputs"]), slots, tuple(cells), frozenset(meta["donated"]))
    options = meta["options"]
    budget = budget_of(options.get("max_bytes"), source)
    record = Record()
    with recording(record):
        prepared = restore(source, final, options["mode"], options["pipeline"], built.donated, options["threads"],
                           budget, target_of(options))
    return CompiledFunction(built, prepared, options, record)


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as npz:
        return dict(npz)


def _function(text: str, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], lines: str) -> Function:
    f = parse(text, arrays)
    inputs = tuple(
        Input(name, i.type, role, _type(declared), _loc(loc))
        for i, (name, role, declared, loc) in zip(f.inputs, meta["inputs"], strict=True)
    )
    guards = tuple(Guard(parse_dim(a), parse_dim(b), _locs(locs), *least) for a, b, locs, *least in meta["guards"])
    inside: Inside = {}
    for region, own in zip(every_region(f.body), meta[lines], strict=True):
        values = _in_order(region)
        if own:
            inside[region] = {values[k]: _locs(locs) for k, locs in own}
    hints = inside.pop(f.body, {})
    return replace(f, name=meta["name"], inputs=inputs, guards=guards, hints=hints, inside=inside)


def _type(data: Any) -> TensorType | None:
    return None if data is None else TensorType(DTYPES[data[0]], [parse_dim(s) for s in data[1]])


def _loc(data: Any) -> Loc | None:
    return None if data is None else Loc(*data)


def _locs(data: Any) -> frozenset[Loc]:
    return frozenset(Loc(*loc) for loc in data)


# --- pickle -----------------------------------------------------------------------------------------------------------


def reduce(f: Any) -> tuple:
    """For pickle: states travel beside the file, so that several functions of one pickle keep sharing them."""
    return _unreduce, (pack(f, state=False), f._cells)


def _unreduce(data: bytes, cells: tuple[Cell, ...]) -> CompiledFunction:
    return unpack(data, cells)
