"""Compiled functions as data: IR text, constants, state and options in one zip file. Nothing in it is code or a pickle.

function.ir     what was compiled        final.ir   what the optimizer made of it, if anything
defaults.npz    default values of arguments, if any
meta.json       names, user lines, guards, structure of arguments and results, options
arrays.npz      large constants, by digest        state.npz   the arrays of shared variables
"""

from __future__ import annotations

import functools
import io
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, BinaryIO

import numpy as np

from symc.driver import labelled
from symc.driver.backends import backend_of
from symc.driver.build import Built, missing_guards
from symc.driver.compilation import Saved
from symc.driver.compile import compile_built
from symc.driver.function import CompiledFunction
from symc.driver.max_bytes import read_max_bytes
from symc.driver.modes import check_options
from symc.driver.saved_file import JUNK, Arrays, SavedFile
from symc.driver.signature import Slot
from symc.driver.target import check_target, target_of
from symc.errors import InputError, SymcError
from symc.ir.attrs import Array
from symc.ir.dim import Size, fresh_size
from symc.ir.function import NUMBERED, Function, Guard, Input, bound_names
from symc.ir.literal import INLINE_ELEMENTS
from symc.ir.location import DEEPEST, Inside, Loc, in_order
from symc.ir.op import Op, is_safe, lookup
from symc.ir.parse import parse
from symc.ir.phases import Record, recording
from symc.ir.record import replace
from symc.ir.size_text import parse_dim
from symc.ir.text import print_function
from symc.ir.traverse import every_region, every_value, postorder, region_params
from symc.ir.types import DTYPE_NAMES, DTYPES, TensorType, substitute_type
from symc.ir.value import Region, Value
from symc.ir.verify import verify
from symc.runtime.cpu.commit import snapshot
from symc.tensors.pytree import flatten, from_json, to_json, unflatten
from symc.tensors.state import Cell, checked_cell

FORMAT = 2
#: The options that a file has, with what they are where an older file lacks them.
_OPTIONS: dict[str, Any] = {
    "mode": "default", "pipeline": None, "name": "f", "threads": None, "max_bytes": None, "accuracy_report": False,
    "device": "cpu", "backend": None, "split": (), "transfers": "explicit", "precision": "highest",
    "denormals": "keep", "specialize": None,
}  # fmt: skip


# --- writing ----------------------------------------------------------------------------------------------------------


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
        out.append([[j, locs_json(hints[v])] for j, v in enumerate(_in_order(region)) if hints.get(v)])
    return out


def _in_order(region: Region) -> list[Value]:
    return [*region_params(region), *postorder(region.results)]


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


# --- reading ----------------------------------------------------------------------------------------------------------


def unpack(
    data: bytes | BinaryIO, cells: Sequence[Cell] | None = None, where: str = "the data"
) -> CompiledFunction:
    """The inverse of ``pack``. ``cells``: the states, when they are not in the file."""
    with naming(where):
        file = SavedFile(io.BytesIO(data) if isinstance(data, bytes) else data)
        lacking = _lacking(file.meta.get("ops", []))
    if lacking:
        name, module = lacking[0]
        raise InputError(f"{where} uses the op {name} of the module {module}, which is not defined here",
                         help=f"define it before: import {module}")
    with naming(where):
        built, final, fingerprint, options = _read(file, cells)

    def read() -> Function | None:
        with naming(where):
            f = final()
            return f if _is_safe(f) else None  # what relies on what its text does not show is found again

    with recording(Record()):
        check_target(target_of(options), options["mode"])
        return compile_built(built, options, Saved(fingerprint, read))


def _lacking(ops: Sequence[Any]) -> list[tuple[str, str]]:
    """Names and modules of a user's ops that are not here. Nothing that a file names is imported."""
    def is_here(name: str, module: str) -> bool:
        try:
            custom = lookup(name).facts.custom
        except SymcError:
            return False
        return custom is not None and custom.module == module

    return [(name, module) for name, module in ops if not is_here(text(name), text(module))]


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Raises what is wrong with a file as InputError."""
    try:
        yield
    except (*JUNK, SymcError) as e:
        said = e.what if isinstance(e, SymcError) else f"{type(e).__name__}: {e}" if str(e) else type(e).__name__
        raise InputError(f"{where} is not a saved function of symc", help=said) from None


def _read(
    file: SavedFile, cells: Sequence[Cell] | None
) -> tuple[Built, Callable[[], Function], str, dict[str, Any]]:
    """The parts of a file, each of which fits the others. What the optimizer made of the function, whose fingerprint
    is there too, is read later, if it is needed."""
    meta = file.meta
    if meta["format"] != FORMAT:
        raise InputError(f"it has format {meta['format']!r:.40}; this version of symc reads {FORMAT}")
    arrays = Arrays(file.bytes("arrays.npz"))
    source = _function(file.text("function.ir"), arrays, meta, "lines")
    if not _is_safe(source):
        raise InputError("it holds what only code generation makes")
    final = functools.partial(_final, source, file.text("final.ir") if "final.ir" in file.names else "", arrays, meta)
    if cells is None:
        cells = _cells(Arrays(file.bytes("state.npz")), meta["cells"])
    states = [i for i in source.inputs if i.role == "state"]
    if len(states) != len(cells) or any(i.type.dtype != c.type.dtype or i.type.ndim != c.type.ndim
                                        for i, c in zip(states, cells, strict=True)):
        raise InputError("its states are not those of the function")
    slots = read_slots(Arrays(file.bytes("defaults.npz")) if "defaults.npz" in file.names else {}, meta["slots"])
    outputs, args = from_json(meta["outputs"]), len(source.inputs) - len(states)
    donated = frozenset(count(k, args) for k in meta["donated"])
    if sum(s.nest.count for s in slots) != args or outputs.count != len(source.outputs):
        raise InputError("its arguments or results are not those of the function")
    source, labels = labelled.from_json(source, meta.get("dims"))
    built = Built(source, outputs, slots, tuple(cells), donated, labels=labels)
    return built, final, text(meta.get("final", "")), _options(meta["options"])


def read_slots(arrays: Mapping[str, np.ndarray], rows: Sequence[Any]) -> tuple[Slot, ...]:
    """The arguments, with the defaults of those that have some."""
    found = []
    for k, (name, nest, *has) in enumerate(rows):  # older files have no defaults
        shape = from_json(nest)
        default = unflatten(shape, [arrays[f"{k}.{j}"] for j in range(shape.count)]) if has == [True] else None
        found.append(Slot(text(name), shape, default))
    return tuple(found)


def _is_safe(f: Function) -> bool:
    """True if code that is made of it stays within its arrays, whoever wrote it."""
    return all(is_safe(v.op) for v in every_value(f.body))


def _options(given: Any) -> dict[str, Any]:
    """The options of ``compile`` as they were saved."""
    options = dict(_OPTIONS, **given)
    mode, pipeline, threads = options["mode"], options["pipeline"], options["threads"]
    check_options(mode, pipeline, threads)
    options["max_bytes"] = read_max_bytes(options["max_bytes"])
    if options["specialize"]:
        from symc.driver.specialized import read_specialize

        options["specialize"] = read_specialize(options["specialize"])
    if set(options) != set(_OPTIONS) or not isinstance(options["accuracy_report"], bool):
        raise InputError(f"its options are {sorted(options)}")
    text(options["name"])
    backend_of(target_of(options), options["mode"])
    return options


def _cells(arrays: Arrays, rows: Sequence[Any]) -> list[Cell]:
    if set(arrays) != {str(k) for k in range(len(rows))}:
        raise InputError("its states are not those it declares")
    sizes: dict[str, Size] = {}
    return [read_cell(arrays, str(k), sizes, *row) for k, row in enumerate(rows)]


def read_cell(arrays: Arrays, key: str, sizes: dict[str, Size], name: str, type_: Any, loc: Any) -> Cell:
    """A state. Sizes that the function has numbered have no name: they are none of another function."""
    t = _type(type_)
    if t is None:
        raise InputError(f"the state {key} has no type")
    sizes.update((n, fresh_size()) for n in bound_names([t]) if NUMBERED.fullmatch(n) and n not in sizes)
    return checked_cell(arrays[key], substitute_type(t, sizes), text(name), _loc(loc))  # type: ignore[arg-type]


def _function(program: str, arrays: Arrays, meta: Mapping[str, Any], lines: str) -> Function:
    f = parse(program, arrays)
    inputs = tuple(
        Input(text(name), i.type, i.role, _type(declared), _loc(loc))
        for i, (name, _, declared, loc) in zip(f.inputs, meta["inputs"], strict=True)
    )
    roles = [i.role for i in inputs]
    if roles != [role for _, role, _, _ in meta["inputs"]] or roles != sorted(roles):
        raise InputError("arguments and states are mixed")
    inside: Inside = {}
    known: dict[str, frozenset[Loc]] = {}  # most lines are those of several values
    for region, own in zip(every_region(f.body), meta[lines], strict=True):
        values = _in_order(region)
        for k, locs in own:
            said = repr(locs)
            if said not in known:
                known[said] = read_locs(locs)
            inside.setdefault(region, {})[values[count(k, len(values))]] = known[said]
    hints = inside.pop(f.body, {})
    guards = tuple(_guard(*row) for row in meta["guards"])
    f = replace(f, name=text(meta["name"]), inputs=inputs, guards=guards, hints=hints, inside=inside)
    verify(f)
    return replace(f, guards=(*f.guards, *missing_guards(f)))


def _guard(left: str, right: str, locs: Any, least: str = "") -> Guard:
    if least not in ("", "index", "length", "window", "variant"):
        raise InputError(f"there are no guards for {least!r:.40}")
    return Guard(parse_dim(text(left)), parse_dim(text(right)), read_locs(locs), least)


def _final(source: Function, program: str, arrays: Arrays, meta: Mapping[str, Any]) -> Function:
    """Reads what the optimizer made of a function."""
    if not program:
        return source
    final = _function(program, arrays, meta, "final_lines")
    _check_same_interface(source, final)
    return final


def _check_same_interface(source: Function, final: Function) -> None:
    """Checks that what is run takes and gives what the function does."""
    types = [([i.type for i in f.inputs], [v.type for v in f.body.results], f.updates) for f in (source, final)]
    if types[0] != types[1]:
        raise InputError("final.ir is another function than function.ir")


def _type(data: Any) -> TensorType | None:
    return None if data is None else TensorType(DTYPES[data[0]], [_size(s) for s in data[1]])


def _size(written: Any) -> Size:
    size = parse_dim(text(written))
    if isinstance(size, int) and not 0 <= size < 2**63:
        raise InputError(f"{size} is no size")
    return size


def _loc(data: Any, deep: int = 0) -> Loc | None:
    if data is None:
        return None
    file, line, role, *stack = data
    found = text(file), count(line, 2**31), text(role)
    if not stack:
        return Loc(*found)
    if deep >= DEEPEST:
        raise InputError(f"a line has more than {DEEPEST} callers")
    function, outer, at, called, scopes = stack
    return Loc(*found, text(function), _loc(outer, deep + 1), count(at + 1, 2**31) - 1, text(called),
               tuple((text(name), count(depth, 2**31)) for name, depth in scopes))


def read_locs(data: Any) -> frozenset[Loc]:
    """Lines of the user."""
    return frozenset(loc for d in data if (loc := _loc(d)) is not None)


def text(item: Any) -> str:
    """A string of the file."""
    if not isinstance(item, str):
        raise InputError(f"{item!r:.40} is where a text should be")
    return item


def count(item: Any, end: int) -> int:
    """A number of the file, from 0 to below ``end``."""
    if type(item) is not int or not 0 <= item < end:
        raise InputError(f"{item!r:.40} is where a number below {end} should be")
    return item


# --- pickle -----------------------------------------------------------------------------------------------------------


def reduce(f: Any) -> tuple:
    """For pickle: states travel beside the file, so that several functions of one pickle keep sharing them."""
    return _unreduce, (pack(f, state=False), f._cells, own_ops(f))


#: The functions without states that came last, by their bytes: a worker is sent the same one with each of its tasks.
_arrived: OrderedDict[bytes, CompiledFunction] = OrderedDict()
MOST_ARRIVED = 4


def _unreduce(data: bytes, cells: tuple[Cell, ...], ops: Sequence[Op] = ()) -> CompiledFunction:
    if cells or ops:  # which have arrived by now
        return unpack(data, cells)
    found = _arrived.pop(data, None)
    _arrived[data] = found = found if found is not None else unpack(data, cells)
    while len(_arrived) > MOST_ARRIVED:
        _arrived.popitem(last=False)
    return found


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
        found.update(f"{a.dtype.str} {a.shape} ".encode() + np.ascontiguousarray(a).tobytes())
    return "symc", found.hexdigest()
