"""Files of chains of functions, as those of sizes that are data are: zips of the files of their parts.

meta.json       arguments; of each stage how many sizes it computes and the users' lines; which states are whose
part0.symc ...  the functions, the last one last        state.npz, defaults.npz    as in the file of one
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from symc.driver.measured import MeasuredFunction, Stage
from symc.driver.read_saved import count, naming, read_cell, read_locs, read_slots, unpack
from symc.driver.save import defaults_of, locs_json, npz, pack, slots_json
from symc.driver.saved_file import Arrays, SavedFile
from symc.errors import InputError
from symc.ir import location
from symc.runtime.cpu.commit import snapshot
from symc.tensors.state import Cell

_FORMAT = 1
#: The members of the file of a chain, of which the first functions are always there.
_MEMBERS = ("meta.json", "defaults.npz", "state.npz", *[f"part{k}.symc" for k in range(1000)])


def pack_chain(f: MeasuredFunction) -> bytes:
    """The file's bytes."""
    from zipfile import ZIP_STORED, ZipFile

    parts = [part for _, part in f.parts]
    cells = list(dict.fromkeys(c for part in parts for c in part._cells))
    meta = {
        "format": _FORMAT, "slots": slots_json(f.slots),
        "stages": [[s.sizes, [locs_json(frozenset(where)) for where in s.where]] for s in f.chain],
        "cells": [[cells.index(c) for c in part._cells] for part in parts],
    }  # fmt: skip
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_STORED) as z:
        z.writestr("meta.json", json.dumps(meta))
        for k, part in enumerate(parts):
            z.writestr(f"part{k}.symc", pack(part, state=False))
        z.writestr("defaults.npz", npz(defaults_of(f.slots)))
        z.writestr("state.npz", npz({str(k): a for k, a in enumerate(snapshot(cells))}))
    return out.getvalue()


def unpack_chain(file: BinaryIO, where: str) -> MeasuredFunction:
    """The inverse of ``pack_chain``."""
    with naming(where):
        return _read(SavedFile(file, _MEMBERS))


def _read(file: SavedFile) -> MeasuredFunction:
    meta = file.meta
    if meta["format"] != _FORMAT:
        raise InputError(f"it has the format {meta['format']!r:.40} of chains; this version of symc reads {_FORMAT}")
    data = [file.bytes(f"part{k}.symc") for k in range(len(meta["stages"]) + 1)]
    cells = _cells(Arrays(file.bytes("state.npz")), data, meta["cells"])
    parts = [unpack(d, [cells[count(k, len(cells))] for k in own])
             for d, own in zip(data, meta["cells"], strict=True)]
    slots = read_slots(Arrays(file.bytes("defaults.npz")), meta["slots"])
    stages = tuple(_stage(part, *row) for part, row in zip(parts, meta["stages"], strict=False))
    _check(parts, stages, sum(s.nest.count for s in slots))
    return MeasuredFunction(parts[-1], stages, slots)


def _cells(arrays: Arrays, data: Sequence[bytes], owners: Sequence[Any]) -> list[Cell]:
    """The states, which functions may have in common, each by what the first of these says of it."""
    found: dict[int, Cell] = {}
    sizes: dict[str, Any] = {}
    for part, own in zip(data, owners, strict=True):
        rows = SavedFile(io.BytesIO(part)).meta["cells"]
        for k, row in zip(own, rows, strict=True):
            if count(k, len(arrays)) not in found:
                found[k] = read_cell(arrays, str(k), sizes, *row)
    if len(found) != len(arrays):
        raise InputError("its states are not those of its functions")
    return [found[k] for k in range(len(found))]


def _stage(function: Any, sizes: Any, where: Any) -> Stage:
    count(sizes, len(function._built.function.outputs) + 1)
    if len(where) != sizes:
        raise InputError("its sizes are not those of its functions")
    return Stage(function, sizes, tuple(tuple(location.in_order(read_locs(locs))) for locs in where))


def _check(parts: Sequence[Any], stages: Sequence[Stage], given: int) -> None:
    """Raise InputError unless each function takes the arguments of the call and what those in front hand on."""
    handed: list[np.dtype] = []
    for k, part in enumerate(parts):
        f = part._built.function
        inputs = [i.type for i in f.inputs if i.role == "arg"]
        if len(inputs) != given + len(handed) or [t.dtype for t in inputs[given:]] != handed:
            raise InputError("its functions do not fit each other")
        if k < len(stages):
            outputs = f.outputs
            if any(v.type.ndim or v.dtype.kind not in "iu" for v in outputs[:stages[k].sizes]) or (
                    part._built.outputs.kind != "list"):
                raise InputError("its sizes are no integers")
            handed += [np.dtype(bool)] * stages[k].sizes + [v.dtype for v in outputs[stages[k].sizes:]]
