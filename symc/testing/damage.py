"""Damaged and edited data: files of saved functions, IR text and arrays, changed at random. The same ``rng`` gives the
same; what becomes of it is for others to check."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symc.driver.function import CompiledFunction
from symc.driver.read_saved import unpack
from symc.errors import InputError, InternalError, SymcError

Members = dict[str, bytes]
#: What is put where something else was: in JSON and in IR text.
ODD: list[Any] = [
    None, True, -1, 0, 1, 2**40, 10**30, 1.5, "", "n", "f8", "reference", "%x", [], {}, [[]], "f64[n]", "-n", "0*n",
    ["f4", ["3"]], "n**9999999", "é\x00"]  # fmt: skip
TOKEN = re.compile(r"\w+|[^\w\s]")
WORDS = ["-1", "0", "1", "2", "7", "n", "m", "%x", "%0", "f64", "i64", "bool", "f64[n]", "(", ")", "{", "}", "]", ",",
         "none", "true", "nan", "inf", "-", "**", "min(n, 2)", "9223372036854775807", "1e400", '"a"', "state", "add",
         "sum", "slice", "gather", "load", "bounded", "generate", "(0,)", "dense(f64[2], 1.0, 2.0)", "^", "yield",
         "update", "99999999999999999999999", "mod(n, 0)", "é"]  # fmt: skip


def unzipped(data: bytes) -> Members:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {n: z.read(n) for n in z.namelist()}


def zipped(members: Mapping[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file of members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as z:
        for name, data in members.items():
            z.writestr(name, data)
    return out.getvalue()


def scramble(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut, doubled, or put elsewhere."""
    out = bytearray(data)
    kind = rng.randrange(5)
    at = rng.randrange(len(out))
    if kind < 2:
        for _ in range(rng.choice((1, 1, 3, 20))):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del out[at : at + rng.choice((1, 8, 200, len(out)))]
    elif kind == 3:
        out[at:at] = out[at : at + rng.choice((1, 8, 200))]
    else:
        end = rng.randrange(len(out))
        out[at : at + 8], out[end : end + 8] = out[end : end + 8], out[at : at + 8]
    return bytes(out)


def edited_json(data: bytes, rng: random.Random) -> bytes:
    """One entry changed, dropped or doubled."""
    tree = json.loads(data)
    spots: list[tuple[Any, Any]] = []
    pending = [tree]
    while pending:
        item = pending.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item))
        spots += [(item, k) for k in keys]
        pending += [item[k] for k in keys if isinstance(item[k], dict | list)]
    for _ in range(rng.choice((1, 1, 2))):
        item, k = rng.choice(spots)
        if isinstance(item, list) and k >= len(item) or isinstance(item, dict) and k not in item:
            continue
        kind = rng.randrange(5)
        if kind == 0:
            del item[k]
        elif kind == 1 and isinstance(item, list):
            item.insert(k, item[k])
        elif kind == 2:
            other, j = rng.choice(spots)
            there = j in other if isinstance(other, dict) else j < len(other)
            item[k] = json.loads(json.dumps(other[j])) if there else None
        else:
            item[k] = rng.choice(ODD)
    return json.dumps(tree).encode()


def edited_text(data: bytes, rng: random.Random) -> bytes:
    """A token changed, dropped, doubled or exchanged with another; the types after it are left as they are."""
    text = data.decode()
    for _ in range(rng.choice((1, 1, 1, 2))):
        spots = list(TOKEN.finditer(text))
        spot, other = rng.choice(spots), rng.choice(spots)
        new = rng.choice(["", spot[0] * 2, spot[0] + " " + spot[0], other[0], *[rng.choice(WORDS)] * 4])
        text = text[: spot.start()] + new + text[spot.end() :]
    return text.encode()


def edited_array(a: np.ndarray, rng: random.Random) -> np.ndarray:
    """An array of another dtype, order or shape."""
    return rng.choice([
        a.real.astype("i1"), a.astype(a.dtype.newbyteorder(">")), a[:2] if a.ndim else a[None], a[None], a.astype("O"),
        np.asfortranarray(np.stack([a, a])), a.astype("c16"), np.zeros((0, *a.shape), a.dtype), a.astype("U4")])


def edited_npz(data: bytes, rng: random.Random) -> bytes:
    """An array of another dtype, order or shape, or scrambled."""
    members = unzipped(data)
    if not members or rng.random() < 0.3:
        return scramble(data, rng)
    name = rng.choice(list(members))
    kind = rng.randrange(4)
    if kind == 0:
        members[name] = scramble(members[name], rng)
    else:
        out = io.BytesIO()
        np.save(out, edited_array(np.load(io.BytesIO(members[name])), rng), allow_pickle=True)
        members[name if kind < 3 else "other.npy"] = out.getvalue()
    return zipped(members)


def edited_file(data: bytes, rng: random.Random) -> bytes:
    """The file of a saved function where one of its members is edited, exchanged or dropped. (Its sums are right.)"""
    members = unzipped(data)
    kind = rng.randrange(1, 10)
    if kind == 1:
        a, b = rng.choice(list(members)), rng.choice([*members, "final.ir", "other"])
        members[a], members[b] = members.get(b, b""), members[a]
    elif kind == 2:
        del members[rng.choice(list(members))]
    elif kind < 5:
        members["meta.json"] = edited_json(members["meta.json"], rng)
    elif kind < 7:
        which = rng.choice([n for n in members if n.endswith(".npz")])
        members[which] = edited_npz(members[which], rng)
    else:
        which = rng.choice([n for n in members if n.endswith(".ir")])
        members[which] = edited_text(members[which], rng)
        if "final.ir" in members and rng.random() < 0.2:
            members["final.ir"], members["function.ir"] = members[which], members["function.ir"]
    return zipped(members)


def mutated_file(data: bytes, rng: random.Random) -> bytes:
    """A file that is damaged, or more often edited."""
    return scramble(data, rng) if rng.random() < 0.1 else edited_file(data, rng)


def used(data: bytes, call: Callable[[CompiledFunction], Any]) -> tuple[CompiledFunction, Any] | None:
    """The function in a file, and what ``call`` makes of it: None where an error says what is wrong.

    None if the file is refused. Whatever else is raised must not be: a bug, or an error that tells users nothing."""
    try:
        f = unpack(data)
    except InputError:
        return None
    try:
        return f, call(f)
    except InternalError:
        raise
    except SymcError:
        return f, None
