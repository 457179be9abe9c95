"""Saved functions read back (``save``): every part is looked at before it is used."""

from __future__ import annotations

import functools
import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from symc.driver import labelled
from symc.driver.backends import backend_of, check_target
from symc.driver.built import Built, missing_guards
from symc.driver.compilation import Saved
from symc.driver.finish import compile_built
from symc.driver.function import CompiledFunction
from symc.driver.max_bytes import read_max_bytes
from symc.driver.modes import check_options, read_threads
from symc.driver.saved_file import JUNK, Arrays, SavedFile
from symc.driver.signature import Slot
from symc.driver.target import target_of
from symc.errors import InputError, SymcError
from symc.ir.dim import Size, fresh_size
from symc.ir.function import NUMBERED, Function, Guard, Input, bound_names
from symc.ir.location import DEEPEST, Inside, Loc
from symc.ir.op import Op, is_safe, lookup
from symc.ir.parse import parse
from symc.ir.phases import Record, recording
from symc.ir.record import replace
from symc.ir.size_text import parse_dim
from symc.ir.traverse import every_region, every_value, postorder, region_params
from symc.ir.types import DTYPES, TensorType, substitute_type
from symc.ir.value import Region, Value
from symc.ir.verify import verify
from symc.tensors.pytree import from_json, unflatten
from symc.tensors.state import Cell, checked_cell

FORMAT = 2
#: The options that a file has, with what they are where an older file lacks them.
_OPTIONS: dict[str, Any] = {
    "mode": "default", "pipeline": None, "name": "f", "threads": None, "max_bytes": None, "accuracy_report": False,
    "device": "cpu", "backend": None, "split": (), "transfers": "explicit", "precision": "highest",
    "denormals": "keep", "specialize": None,
}  # fmt: skip


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
    except SymcError as e:
        raise InputError(f"{where} is not a saved function of symc: {e.what}",
                         help="it is damaged, of another version, or something else: save the function again") from None
    except JUNK as e:
        said = f"{type(e).__name__}: {e}" if str(e) else type(e).__name__
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
    check_options(options["mode"], options["pipeline"])
    options["threads"] = read_threads(options["threads"])
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
        values = in_order_of(region)
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


def in_order_of(region: Region) -> list[Value]:
    """The values of a region by position."""
    return [*region_params(region), *postorder(region.results)]


# --- pickle -----------------------------------------------------------------------------------------------------------


#: The functions without states that came last, by their bytes: a worker is sent the same one with each of its tasks.
_arrived: OrderedDict[bytes, CompiledFunction] = OrderedDict()
MOST_ARRIVED = 4


def unreduce(data: bytes, cells: tuple[Cell, ...], ops: Sequence[Op] = ()) -> CompiledFunction:
    """The inverse of ``save.reduce``."""
    if cells or ops:  # which have arrived by now
        return unpack(data, cells)
    found = _arrived.pop(data, None)
    _arrived[data] = found = found if found is not None else unpack(data, cells)
    while len(_arrived) > MOST_ARRIVED:
        _arrived.popitem(last=False)
    return found
