"""``save_params`` and ``load_params``: the states of collections in .npz and .safetensors files.

Both formats are data alone. A file appears whole or not at all. When one is read, all of it is checked (names, dtypes,
shapes, bytes) before the first state changes.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.errors import InputError, did_you_mean
from symc.ir.dtypes import RECORDS, described, undescribed
from symc.ir.types import as_dtype
from symc.params.collection import Params
from symc.tensors.public import located
from symc.tensors.state import SharedVariable

Arrays = dict[str, np.ndarray]
LONGEST_HEADER = 100_000_000
SUM = "symc.crc32"
#: The dates in a .npz file: the same arrays are the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


@located
def save_params(path: Any, params: Any) -> None:
    """Write every state of ``params`` to a file, .npz or .safetensors.

    ``params``: a collection, an optimizer (its own states), or a dict of them: ``{"model": P, "optimizer": opt}``.
    """
    write_arrays(path, {name: s.get_value() for name, s in states_by_name(params).items()})


def write_arrays(path: Any, arrays: Arrays) -> None:
    """Write a file; it appears whole or not at all."""
    data, name = _writer(path)(arrays), os.fspath(path)
    unfinished = f"{name}.{os.getpid()}.tmp"
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)


@located
def load_params(path: Any, params: Any = None, strict: bool = True) -> Any:
    """Set every state of ``params`` to what ``save_params`` wrote; build the model first, so that it has them.

    Returns the names that the file lacks, and those that it has besides; with ``strict`` there must be none.
    Without ``params`` it returns the arrays by name. Raises InputError for a file that is damaged, of another format,
    or of other names, shapes or dtypes; all states are then as they were.
    """
    if params is None:
        return read_arrays(path)
    return assign(states_by_name(params), read_arrays(path), path, strict)


def read_arrays(path: Any) -> Arrays:
    """All arrays of a file. Raises InputError for one that is damaged or of another format."""
    reader = _reader(path)
    with open(path, "rb") as file:
        return reader(file.read(), os.fspath(path))


def assign(states: dict[str, SharedVariable], arrays: Arrays, path: Any, strict: bool) -> tuple[list[str], list[str]]:
    """Set states to arrays, after all were compared. See ``load_params``."""
    missing, more = ([n for n in a if n not in b] for a, b in ((states, arrays), (arrays, states)))
    if strict and (missing or more):
        name = (missing or more)[0]
        raise InputError(
            f"{path} has no {name!r}" if missing else f"{path} has {name!r}, which the parameters have not",
            help=did_you_mean(name, more) if missing and more else
            "build the whole model (and optimizer) before loading, or load_params(..., strict=False)")
    both = [n for n in states if n in arrays]
    for name in both:
        want, have = states[name].value.type, arrays[name]
        if want.dtype != have.dtype or tuple(want.shape) != have.shape:
            raise InputError(f"{path}: {name} is {have.dtype}{list(have.shape)}",
                             values=[(name, want, states[name].cell.loc)])
    for name in both:
        states[name].set_value(arrays[name], borrow=True)
    return missing, more


def states_by_name(params: Any, prefix: str = "") -> dict[str, SharedVariable]:
    """The states by name. What is no state or holds none raises InputError."""
    own = getattr(params, "states", None)
    if isinstance(own, Params):
        params = own
    if isinstance(params, Params):
        return {prefix + path: s for path, s in params.items()}
    if isinstance(params, SharedVariable) and prefix:
        return {prefix.rstrip("/"): params}
    if isinstance(params, Mapping):
        return {n: s for key, part in params.items() for n, s in states_by_name(part, f"{prefix}{key}/").items()}
    raise InputError(f"{type(params).__name__} is no collection of parameters",
                     help='sc.Params, an optimizer, or a dict of them: {"model": P, "optimizer": opt}')


def _ending(path: Any) -> str:
    ending = os.path.splitext(os.fspath(path))[1]
    if ending not in (".npz", ".safetensors"):
        raise InputError(f"the name {os.fspath(path)!r} does not say in which format", help=".npz or .safetensors")
    return ending


def _writer(path: Any) -> Any:
    return {".npz": _to_npz, ".safetensors": _to_safetensors}[_ending(path)]


def _reader(path: Any) -> Any:
    return {".npz": _from_npz, ".safetensors": _from_safetensors}[_ending(path)]


# --- npz --------------------------------------------------------------------------------------------------------------


def _to_npz(arrays: Arrays) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, a in arrays.items():
            one = io.BytesIO()
            np.lib.format.write_array(one, described(a), allow_pickle=False)
            z.writestr(zipfile.ZipInfo(name + ".npy", EPOCH), one.getvalue())
    return out.getvalue()


def _from_npz(data: bytes, path: str) -> Arrays:
    found: Arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            for item in z.infolist():
                one = io.BytesIO(z.read(item))  # which compares a checksum
                name = item.filename.removesuffix(".npy")
                if name in found:
                    raise InputError(f"{path}: {name!r} is there twice")
                found[name] = undescribed(np.lib.format.read_array(one, allow_pickle=False))
                if one.read(1):
                    raise InputError(f"{path}: there is more than an array in {item.filename}")
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, NotImplementedError, RuntimeError) as e:
        if isinstance(e, InputError):
            raise
        raise InputError(f"{path} is no file of arrays, or is damaged: {e}") from None
    return found


# --- safetensors ------------------------------------------------------------------------------------------------------


def _to_safetensors(arrays: Arrays) -> bytes:
    """A length, a header in JSON, and the bytes of all arrays, the widest dtype first so that each is aligned."""
    header: dict[str, Any] = {}
    body, at = [], 0
    for name, a in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        written = RECORDS[as_dtype(a.dtype)].safetensors
        if not written:
            raise InputError(f"{name}: safetensors has no {a.dtype}", help="save as .npz")
        if name == "__metadata__":
            raise InputError("safetensors keeps the name '__metadata__' for itself", help="save as .npz")
        header[name] = {"dtype": written, "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        body.append(np.ascontiguousarray(a).tobytes())
        at += a.nbytes
    whole = b"".join(body)
    text = json.dumps({"__metadata__": {SUM: str(zlib.crc32(whole))}, **header}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + whole


def _from_safetensors(data: bytes, path: str) -> Arrays:
    def need(good: bool, what: str) -> None:
        if not good:
            raise InputError(f"{path} is no safetensors file, or is damaged: {what}")

    size = int.from_bytes(data[:8], "little")
    need(len(data) >= 8 and size <= min(LONGEST_HEADER, len(data) - 8), "its header is longer than the file")
    try:
        header = json.loads(data[8 : 8 + size].decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as e:
        raise InputError(f"{path} is no safetensors file, or is damaged: {e}") from None
    need(isinstance(header, dict), "its header is not a table of names")
    about = header.pop("__metadata__", {})
    body = memoryview(data)[8 + size :]
    if isinstance(about, dict) and SUM in about:
        need(about[SUM] == str(zlib.crc32(body)), "the checksum differs")
    found, spans, dtypes = {}, [], {r.safetensors: r.numpy for r in RECORDS.values() if r.safetensors}
    for name, entry in header.items():
        need(isinstance(entry, dict) and {"dtype", "shape", "data_offsets"} == set(entry), f"{name!r} has no fields")
        shape, offsets = entry["shape"], entry["data_offsets"]
        need(isinstance(entry["dtype"], str) and entry["dtype"] in dtypes, f"{name!r} is {entry['dtype']}")
        need(_whole(shape) and _whole(offsets) and len(offsets) == 2, f"{name!r} has no shape or place")
        dtype = dtypes[entry["dtype"]]
        begin, end = offsets
        need(begin <= end <= len(body) and end - begin == math.prod(shape) * dtype.itemsize, f"{name!r} does not fit")
        found[name] = np.frombuffer(body[begin:end], dtype).reshape(shape).copy()
        spans.append((begin, end))
    spans.sort()
    ends = [0, *[end for _, end in spans]]
    need(all(begin == last for (begin, _), last in zip(spans, ends, strict=False)) and ends[-1] == len(body),
         "arrays overlap, or there are bytes of none")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({k for k, _ in pairs}) < len(pairs):
        raise ValueError("a name is there twice")
    return dict(pairs)


def _whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and n >= 0 for n in numbers)
