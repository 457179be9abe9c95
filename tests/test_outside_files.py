"""Files that somebody else wrote: damaged, edited, hostile. They load and behave, or InputError says what is wrong."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.save import pack, unpack
from tests.test_save import example

ROOT = Path(__file__).resolve().parent.parent
ARRAYS = {"x": np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3), "p": {"y": np.ones((4, 3), "f4")}}


def small():
    """A function with an argument of two sizes, a state, a guard, a loop and a constant that is named by its digest."""
    x, w = sc.input("x", "f8", ("n", "m")), sc.shared(np.arange(6.0), "w")
    total = sc.scan(lambda c, row: (c + row.sum(), row[0]), 0.0, x)[0]
    y = sc.concatenate([x[0] * w[:3], x[1:, 0]]) + sc.asarray(np.arange(40.0)).sum()
    return sc.compile([y, total, x[sc.argmax(x, axis=0)[0]]], [x], updates={w: w + total}, mode="reference")


def unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {n: z.read(n) for n in z.namelist()}


def zipped(members, kind=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as z:
        for name, data in members.items():
            z.writestr(name, data)
    return out.getvalue()


EXAMPLES = {"small": (small, {"x": np.arange(12.0).reshape(4, 3)}), "nests": (lambda: example("reference")[0], ARRAYS)}
PACKED = {}


def packed(name):
    if name not in PACKED:
        PACKED[name] = pack(EXAMPLES[name][0](), True)
    return PACKED[name]


def behaves(data, name):
    """A file is refused with InputError, or what it holds runs or says what is wrong. Whether it was read."""
    try:
        f = unpack(data)
    except sc.InputError:
        return False
    try:
        f(**EXAMPLES[name][1])
    except sc.SymcError as e:
        assert not isinstance(e, sc.InternalError), e
    return True


def scramble(data, rng):
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


ODD = [None, True, -1, 0, 1, 2**40, 10**30, 1.5, "", "n", "f8", "reference", "%x", [], {}, [[]], "f64[n]", "-n", "0*n",
       ["f4", ["3"]], "n**9999999", "é\x00"]  # fmt: skip


def edited_json(data, rng):
    """One entry changed, dropped or doubled."""
    tree = json.loads(data)
    spots = []
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
            item[k] = json.loads(json.dumps(other[j])) if j in other or isinstance(other, list) and j < len(
                other) else None
        else:
            item[k] = rng.choice(ODD)
    return json.dumps(tree).encode()


TOKEN = re.compile(r"\w+|[^\w\s]")
WORDS = ["-1", "0", "1", "2", "7", "n", "m", "%x", "%0", "f64", "i64", "bool", "f64[n]", "(", ")", "{", "}", "]", ",",
         "none", "true", "nan", "inf", "-", "**", "min(n, 2)", "9223372036854775807", "1e400", '"a"', "state", "add",
         "sum", "slice", "gather", "load", "bounded", "generate", "(0,)", "dense(f64[2], 1.0, 2.0)", "^", "yield",
         "update", "99999999999999999999999", "mod(n, 0)", "é"]  # fmt: skip


def edited_text(data, rng):
    """A token changed, dropped, doubled or exchanged with another; the types after it are left as they are."""
    text = data.decode()
    for _ in range(rng.choice((1, 1, 1, 2))):
        spots = list(TOKEN.finditer(text))
        spot, other = rng.choice(spots), rng.choice(spots)
        new = rng.choice(["", spot[0] * 2, spot[0] + " " + spot[0], other[0], *[rng.choice(WORDS)] * 4])
        text = text[: spot.start()] + new + text[spot.end() :]
    return text.encode()


def edited_npz(data, rng):
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
        a = np.load(io.BytesIO(members[name]))
        a = rng.choice([a.astype("i1"), a.astype(a.dtype.newbyteorder(">")), a[:2], a[None], a.astype("O"),
                        np.asfortranarray(np.stack([a, a])), a.astype("c16"), np.zeros((0, *a.shape), a.dtype),
                        a.astype("U4")])  # fmt: skip
        np.save(out, a, allow_pickle=True)
        members[name if kind < 3 else "other.npy"] = out.getvalue()
    return zipped(members)


def mutant(name, rng):
    kind = rng.randrange(10)
    if kind == 0:
        return scramble(packed(name), rng)
    members = unzipped(packed(name))
    if kind == 1:
        a, b = rng.choice(list(members)), rng.choice([*members, "final.ir", "other"])
        members[a], members[b] = members.get(b, b""), members[a]
    elif kind == 2:
        del members[rng.choice(list(members))]
    elif kind < 5:
        members["meta.json"] = edited_json(members["meta.json"], rng)
    elif kind < 7:
        which = rng.choice(["arrays.npz", "state.npz"])
        members[which] = edited_npz(members[which], rng)
    else:
        which = rng.choice([n for n in members if n.endswith(".ir")])
        members[which] = edited_text(members[which], rng)
        if rng.random() < 0.2:
            members["final.ir"], members["function.ir"] = members[which], members["function.ir"]
    return zipped(members)


@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("name", EXAMPLES)
def test_mutated_files_are_refused_or_behave(name, part):
    rng = random.Random(f"{name} {part}")
    read = sum(behaves(mutant(name, rng), name) for _ in range(250))
    assert 5 < read < 200  # both sides are seen


NATIVE = """
import random, sys
from tests import test_outside_files as t
t.EXAMPLES = {n: ((lambda make=make: t.natively(make())), a) for n, (make, a) in t.EXAMPLES.items()}
for k in range(60):
    name = "small" if k % 3 else "nests"
    rng = random.Random(f"native {k}")
    members = t.unzipped(t.packed(name))
    which = rng.choice([n for n in members if n.endswith(".ir")] * 2 + ["meta.json", "state.npz"])
    edit = {"meta.json": t.edited_json, "state.npz": t.edited_npz}.get(which, t.edited_text)
    for _ in range(6):
        changed = {**members, which: edit(members[which], rng)}
        sys.stderr.write(f"\\n--- {k} {which}\\n" + (changed[which].decode() if which != "state.npz" else ""))
        if t.behaves(t.zipped(changed), name):
            break
print("done")
"""


def natively(f):
    """The same function, compiled."""
    meta = unzipped(pack(f, True))
    meta["meta.json"] = meta["meta.json"].replace(b'"reference"', b'"default"')
    return unpack(zipped(meta))


def test_mutated_files_touch_no_memory_of_others():
    """Compiled and called in a process of its own, so that a crash is seen and said."""
    run = subprocess.run([sys.executable, "-X", "faulthandler", "-c", NATIVE], capture_output=True, text=True, cwd=ROOT,
                         env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=240)
    assert run.stdout == "done\n", run.stderr[-3000:]
