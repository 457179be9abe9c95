"""Compiled functions as data: IR text, constants, state and options in one zip file. Nothing in it is code or a pickle.

function.ir     what was compiled        final.ir   what the optimizer made of it, if anything
defaults.npz    default values of arguments, if any
meta.json       names, user lines, guards, structure of arguments and results, options
arrays.npz      large constants, by digest        state.npz   the arrays of shared variables
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver import labelled
from symc.driver.read_saved import FORMAT, in_order_of, unreduce
from symc.driver.signature import Slot
from symc.ir.attrs import Array
from symc.ir.digest import blake2b
from symc.ir.dtypes import described, dtype_code
from symc.ir.function import Function, Input
from symc.ir.literal import INLINE_ELEMENTS
from symc.ir.location import Loc, in_order
from symc.ir.op import Op
from symc.ir.text import print_function
from symc.ir.traverse import every_region, every_value, postorder
from symc.ir.types import DTYPE_NAMES, TensorType
from symc.runtime.cpu.commit import snapshot
from symc.tensors.pytree import flatten, to_json


def pack(f: Any, state: bool) -> bytes:
    """The file's bytes; ``state`` includes the arrays of shared variables."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

    source, final = f._compilation.source, f._compilation.saved
    constants: dict[str, np.ndarray] = {}
    for g in (source, final):
        _collect(g, constants)
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as z:
        z.writestr("meta.json", json.dumps(_meta(f)))
        z.writestr("function.ir", print_function(source, locations=False))
        if final.body is not source.body:
            z.writestr("final.ir", print_function(final, locations=False))
        defaults = defaults_of(f._built.slots)
        if defaults:
            z.writestr("defaults.npz", npz(defaults), ZIP_STORED)
        z.writestr("arrays.npz", npz(constants), ZIP_STORED)  # as they are: no small file is a large array
        if state:
            z.writestr("state.npz", npz({str(k): a for k, a in enumerate(snapshot(f._cells))}), ZIP_STORED)
    return out.getvalue()


def defaults_of(slots: Sequence[Slot]) -> dict[str, np.ndarray]:
    """The arrays of the default values of arguments."""
    return {f"{k}.{j}": np.asarray(a) for k, s in enumerate(slots) if s.default is not None
            for j, a in enumerate(flatten(s.default)[0])}


def slots_json(slots: Sequence[Slot]) -> list[Any]:
    """The arguments, without the arrays of their defaults."""
    return [[s.name, to_json(s.nest), s.default is not None] for s in slots]


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays by name, as they are."""
    out = io.BytesIO()
    np.savez(out, **{n: described(a) for n, a in arrays.items()})  # type: ignore[arg-type]
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
    built, source = f._built, f._compilation.source
    states = [i for i in source.inputs if i.role == "state"]
    return {
        "format": FORMAT, "name": source.name, "options": f._options, "outputs": to_json(built.outputs),
        "slots": slots_json(built.slots),
        "donated": sorted(built.donated),
        "inputs": [_input_json(i) for i in source.inputs], "dims": labelled.to_json(source, built.labels),
        "guards": [[str(g.left), str(g.right), locs_json(g.locs), g.least] for g in source.guards],
        "lines": _lines(source), "final_lines": _lines(f._compilation.saved),
        "ops": [[op.name, op.facts.custom.module] for op in own_ops(f)],  # type: ignore[union-attr]
        "final": f._compilation.saved.body.fingerprint.hex(),
        "cells": [[c.name, _type_json(i.declared or i.type), _loc_json(c.loc)] for c, i in zip(f._cells, states)],
    }  # fmt: skip


def _lines(f: Function) -> list[list[Any]]:
    """User lines of the body, then of each region inside it, by position: their order is a function of the text."""
    out = []
    for k, region in enumerate(every_region(f.body)):
        hints = f.inside.get(region, {}) if k else f.hints
        out.append([[j, locs_json(hints[v])] for j, v in enumerate(in_order_of(region)) if hints.get(v)])
    return out


def _type_json(t: TensorType | None) -> Any:
    return None if t is None else [DTYPE_NAMES[t.dtype], [str(s) for s in t.shape]]


def _loc_json(loc: Loc | None) -> Any:
    if loc is None:
        return None
    plain = [loc.file, loc.line, loc.role]
    rest = [loc.function, _loc_json(loc.outer), loc.at, loc.called, [list(x) for x in loc.scopes]]
    return plain if rest == ["", None, -1, "", []] else plain + rest


def locs_json(locs: Any) -> list[Any]:
    """Lines of the user."""
    return [_loc_json(loc) for loc in in_order(locs)]


def _input_json(i: Input) -> list[Any]:
    return [i.name, i.role, _type_json(i.declared), _loc_json(i.loc)]


# --- pickle -----------------------------------------------------------------------------------------------------------


def reduce(f: Any) -> tuple:
    """For pickle: states travel beside the file, so that several functions of one pickle keep sharing them."""
    return unreduce, (pack(f, state=False), f._cells, own_ops(f))


def own_ops(f: Any) -> tuple[Op, ...]:
    """The ops of a function that are the user's own."""
    bodies = {f._compilation.source.body, f._compilation.saved.body}
    found = {v.op for body in bodies for v in every_value(body) if v.op.facts.custom is not None}
    return tuple(sorted(found, key=lambda op: op.name))


# --- Dask -------------------------------------------------------------------------------------------------------------


def token(f: Any) -> tuple[str, str]:
    """Digest that tells a function's results from those of any other, with the states as they are: for Dask, which does
    not compute again what has the same token. The same program has the same one in every process."""
    built, source = f._built, f._compilation.source
    ops = {v.op for v in every_value(source.body) if v.op.facts.custom is not None}
    said = [f._options, to_json(built.outputs), slots_json(built.slots), sorted(built.donated), source.updates,
            [[*_input_json(i)[:3], i.dims] for i in source.inputs], [[str(g), g.least] for g in source.guards],
            [repr(label) for label in built.labels], sorted(str(op.__reduce__()[1][:3]) for op in ops)]
    found = blake2b(source.body.fingerprint + json.dumps(said, sort_keys=True).encode(), digest_size=16)
    for a in (*defaults_of(built.slots).values(), *snapshot(f._cells)):
        found.update(f"{dtype_code(a.dtype)} {a.shape} ".encode() + np.ascontiguousarray(a).tobytes())
    return "symc", found.hexdigest()
