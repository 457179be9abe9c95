"""Files that somebody else wrote: damaged, edited, hostile. They load and behave, or InputError says what is wrong."""

from __future__ import annotations

import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.__main__ import main
from symc.driver import saved_file
from symc.driver.read_saved import unpack
from symc.driver.save import pack
from symc.runtime.cache import object_cache
from symc.tensors.state import checked_cell
from symc.testing.damage import mutated_file, scramble, unzipped, used, zipped
from tests.driver.test_save import example

ROOT = Path(__file__).resolve().parents[2]
ARRAYS = {"x": np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3), "p": {"y": np.ones((4, 3), "f4")}}


def small():
    """A function with an argument of two sizes, a state, a guard, a loop and a constant that is named by its digest."""
    x, w = sc.input("x", "f8", ("n", "m")), sc.shared(np.arange(6.0), "w")
    total = sc.scan(lambda c, row: (c + row.sum(), row[0]), 0.0, x)[0]
    y = sc.concatenate([x[0] * w[:3], x[1:, 0]]) + sc.asarray(np.arange(40.0)).sum()
    return sc.compile([y, total, x[sc.argmax(x, axis=0)[0]]], [x], updates={w: w + total}, mode="reference")


EXAMPLES = {"small": (small, {"x": np.arange(12.0).reshape(4, 3)}), "nests": (lambda: example("reference")[0], ARRAYS)}
PACKED: dict[str, bytes] = {}


def packed(name):
    if name not in PACKED:
        PACKED[name] = pack(EXAMPLES[name][0](), True)
    return PACKED[name]


def behaves(data, name):
    """Whether a file was read. What it holds runs, or says what is wrong."""
    return used(data, lambda f: f(**EXAMPLES[name][1])) is not None


@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("name", EXAMPLES)
def test_mutated_files_are_refused_or_behave(name, part):
    rng = random.Random(f"{name} {part}")
    read = sum(behaves(mutated_file(packed(name), rng), name) for _ in range(120))
    assert 3 < read < 100  # both sides are seen


NATIVE = """
import random, sys
from symc.testing import damage
from tests.driver import test_outside_files as t
t.EXAMPLES = {n: ((lambda make=make: t.natively(make())), a) for n, (make, a) in t.EXAMPLES.items()}
for k in range(60):
    name = "small" if k % 3 else "nests"
    rng = random.Random(f"native {k}")
    members = damage.unzipped(t.packed(name))
    which = rng.choice([n for n in members if n.endswith(".ir")] * 2 + ["meta.json", "state.npz"])
    edit = {"meta.json": damage.edited_json, "state.npz": damage.edited_npz}.get(which, damage.edited_text)
    for _ in range(6):
        changed = {**members, which: edit(members[which], rng)}
        sys.stderr.write(f"\\n--- {k} {which}\\n" + (changed[which].decode() if which != "state.npz" else ""))
        if t.behaves(damage.zipped(changed), name):
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


# --- one by one -------------------------------------------------------------------------------------------------------


def changed(**members):
    """The small example with other members; a function changes what is there."""
    own = unzipped(packed("small"))
    for name, new in members.items():
        name = {"meta": "meta.json", "function": "function.ir", "state": "state.npz", "arrays": "arrays.npz"}[name]
        own[name] = new(own[name]) if callable(new) else new
    return zipped(own)


def meta(**entries):
    return lambda data: json.dumps({**json.loads(data), **entries}).encode()


def states(a):
    out = io.BytesIO()
    np.savez(out, **{"0": a})
    return out.getvalue()


def npy(header):
    text = header.encode()
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(48)
    return zipped({"0.npy": data})


def flagged(data, bit):
    """With a flag set in every header of the zip."""
    out = bytearray(data)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for m in re.finditer(re.escape(mark), data):
            out[m.start() + at] |= bit
    return bytes(out)


def twice():
    out = io.BytesIO(packed("small"))
    with zipfile.ZipFile(out, "a") as z, pytest.warns(UserWarning):
        z.writestr("meta.json", "{}")
    return out.getvalue()


BOMB = 8 << 20
NUMPY = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }\n"
HOSTILE = {
    "nothing": lambda: b"", "text": lambda: b"hello", "another zip": lambda: zipped({"a": b"b"}),
    "two members of a name": twice, "encrypted": lambda: flagged(packed("small"), 1),
    "a name with dots": lambda: zipped({**unzipped(packed("small")), "../../etc/passwd": b"x"}),
    "another packing": lambda: zipped(unzipped(packed("small")), zipfile.ZIP_LZMA),
    "a bomb of text": lambda: zipped({**unzipped(packed("small")), "final.ir": bytes(BOMB)}, zipfile.ZIP_DEFLATED),
    "a bomb of arrays": lambda: zipped({**unzipped(packed("small")), "state.npz": states(np.zeros(BOMB // 8))},
                                       zipfile.ZIP_DEFLATED),
    "a bomb in a bomb": lambda: changed(state=zipped({"0.npy": bytes(1 << 20)}, zipfile.ZIP_DEFLATED)),
    "no meta": lambda: changed(meta=b"{}"), "meta of another kind": lambda: changed(meta=b"[1, 2]"),
    "deep meta": lambda: changed(meta=b"[" * 200_000), "a long number": lambda: changed(meta=b"9" * 100_000),
    "meta that is no text": lambda: changed(meta=b"\xff\xfe"), "nan": lambda: changed(meta=b'{"format": NaN}'),
    "a version to come": lambda: changed(meta=meta(format=99)), "mode": lambda: changed(meta=meta(options={"mode": 3})),
    "an option more": lambda: changed(meta=meta(options={"mode": "reference", "exec": "1"})),
    "threads": lambda: changed(meta=meta(options={"mode": "reference", "threads": -1})),
    "too many states": lambda: changed(meta=meta(cells=[["w", ["f64", ["6"]], None]] * 2)),
    "a state of another type": lambda: changed(meta=meta(cells=[["w", ["f32", ["6"]], None]])),
    "a donated state": lambda: changed(meta=meta(donated=[1])), "no arguments": lambda: changed(meta=meta(slots=[])),
    "a class": lambda: changed(meta=meta(outputs=["dataclass", ["__class__"], "subprocess:Popen", []])),
    "int8 where float64 is declared": lambda: changed(state=states(np.zeros(6, "i1"))),
    "fewer elements": lambda: changed(state=states(np.zeros(5))), "objects": lambda: changed(state=zipped(
        {"0.npy": npy("x")})), "a pickle": lambda: changed(state=states(np.array([print] * 6, object))),
    "Fortran's order": lambda: changed(state=npy("{'descr': '<f8', 'fortran_order': True, 'shape': (6,), }\n")),
    "a huge shape": lambda: changed(state=npy(NUMPY % "6, 1000000000000000")),
    "a negative shape": lambda: changed(state=npy(NUMPY % "-6,")), "code": lambda: changed(state=npy(
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (6,), }\n")),
    "an array without its end": lambda: changed(state=npy(NUMPY % "7,")),
    "text that is none": lambda: changed(function=b"\xff"), "deep text": lambda: changed(function=lambda t: t.replace(
        b"axes = (0", b"axes = " + b"(" * 100_000, 1)), "no function": lambda: changed(function=b""),
    "two functions": lambda: changed(function=lambda t: t * 2),
    "memory of others": lambda: changed(function=b"func @f(%x: f64[n, m], state %w: f64[6]) -> (f64[]) {\n"
                                        b"  %0 = load %w, 10000000:i64[] : f64[]\n  return %0\n}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_file, "FREE", 1 << 20)
    path = tmp_path / "f.symc"
    path.write_bytes(HOSTILE[name]())
    with pytest.raises(sc.InputError, match=re.escape(f"{str(path)!r} is not a saved function of symc")) as e:
        sc.load(path)
    assert e.value.help and e.value.where and type(e.value) is sc.InputError


def test_arrays_of_the_other_byte_order_are_read_right():
    f = unpack(changed(state=states(np.arange(6.0).astype(np.dtype("f8").newbyteorder("S")))))
    (w,) = f.shared.values()
    assert w.get_value().dtype.isnative and w.get_value().tolist() == [0, 1, 2, 3, 4, 5]


def test_guards_that_a_file_lacks_are_found_again():
    own = small()
    f = unpack(changed(meta=meta(guards=[])))
    bad = [np.ones((2, 2)), np.ones((0, 3)), np.ones((3, 0))]
    for x in bad:
        raised = []
        for g in (own, f):
            with pytest.raises(sc.SymcError) as e:
                g(x)
            raised.append((type(e.value), str(e.value).splitlines()[0]))
        assert raised[0] == raised[1]


def test_what_is_declared_is_checked_against_what_is_used():
    def declared(shape):
        return lambda data: json.dumps({**json.loads(data), "guards": [], "inputs": [
            [n, r, [t[0], shape] if r == "arg" else t, loc] for n, r, t, loc in json.loads(data)["inputs"]]}).encode()

    with pytest.raises(sc.InputError, match="is not a saved function"):
        unpack(changed(meta=declared(["5", "5"])))
    f = unpack(changed(meta=declared(["m", "n"])))
    with pytest.raises(sc.ShapeError):
        f(np.ones((3, 4)))


@pytest.mark.parametrize("array", [np.zeros(3, "i1"), np.zeros(4), np.zeros((3, 1)), None, [1.0, 2.0, 3.0], "abc"])
def test_states_of_pickles_are_looked_at(array):
    w = sc.shared(np.zeros(3), "w")
    make, (_, *rest) = w.cell.__reduce__()
    assert make is checked_cell
    with pytest.raises(sc.InputError, match="is declared"):
        make(array, *rest)


def special_files(folder):
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    os.symlink(folder / "pipe", folder / "link")
    return [folder / "pipe", folder / "folder", folder / "link", "/dev/zero", "/dev/null", "a\0b"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_what_is_no_file_is_not_waited_for(tmp_path, capsys):
    for path in special_files(tmp_path):
        with pytest.raises(sc.InputError, match=r"is not a file|no name of a file"):
            sc.load(path)
        for command in ("show", "opt"):
            assert main([command, str(path)]) == 1
            assert "is not a file" in (said := capsys.readouterr().err) or "no name" in said
    with pytest.raises(FileNotFoundError):
        sc.load(tmp_path / "none")
    sc.compile(sc.vector("x") * 2, mode="reference").save(tmp_path / "f")
    os.symlink(tmp_path / "f", tmp_path / "good")
    assert sc.load(tmp_path / "good")([1.0]).tolist() == [2.0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("kind", range(3))
def test_what_is_no_file_in_the_cache_is_passed_over(tmp_path, monkeypatch, kind):
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    name, entry = object_cache.key(["a"]), object_cache.Entry(b"code")
    object_cache.write(name, entry)
    place = tmp_path / "cache" / f"{name}{object_cache.SUFFIX}"
    place.unlink()
    special = special_files(tmp_path)[kind]
    os.rename(special, place)
    assert object_cache.read(name) is None
    object_cache.write(name, entry)
    assert object_cache.read(name) == (None if place.is_dir() else entry)
    assert object_cache.clear() == (0 if place.is_dir() else 1)


def test_mutated_entries_of_the_cache_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path))
    name, entry, rng = object_cache.key(["a"]), object_cache.Entry(b"code" * 50), random.Random(0)
    object_cache.write(name, entry)
    place = tmp_path / f"{name}{object_cache.SUFFIX}"
    good = place.read_bytes()
    for _ in range(300):
        bad = scramble(good, rng)
        place.write_bytes(bad)
        assert object_cache.read(name) == (entry if bad == good else None)


TEXTS = {
    "negative size": "func @f(%x: f64[-3]) -> (f64[-3]) {\n  return %x\n}",
    "too many elements": "func @f(%x: f64[4611686018427387904, 9]) -> () {\n  return\n}",
    "a tall power": "func @f(%x: f64[n**999999999]) -> () {\n  return\n}",
    "a tower": "func @f(%x: f64[2**64**64**64]) -> () {\n  return\n}",
    "a division by zero": "func @f(%x: f64[mod(n, 0)]) -> () {\n  return\n}",
    "a deep size": "func @f(%x: f64[" + "min(1, " * 5000 + "n" + ")" * 5000 + "]) -> () {\n  return\n}",
    "a long number": "func @f(%x: f64[" + "9" * 10_000 + "]) -> () {\n  return\n}",
    "a deep tuple": "func @f(%x: f64[3]) -> () {\n  %0 = sum %x {axes = " + "(" * 9000 + "} : f64[]\n  return\n}",
    "deep regions": "func @f(%x: f64[3]) -> (f64[3]) {\n" + "%0 = fused %x : f64[3] {\n^(%p: f64[3]):\n" * 3000,
    "no end": "func @f(%x: f64[3]) -> (f64[3]) {\n  %0 = exp",
    "an undefined name": "func @f(%x: f64[3]) -> (f64[3]) {\n  return %y\n}",
    "a name of its own": "func @f(%x: f64[3]) -> (f64[3]) {\n  %0 = exp %0 : f64[3]\n  return %0\n}",
    "a name twice": "func @f(%x: f64[3], %x: f64[3]) -> (f64[3]) {\n  return %x\n}",
    "an attribute twice": "func @f(%x: f64[3]) -> () {\n  %0 = sum %x {axes = (0,), axes = ()} : f64[]\n  return\n}",
    "an odd nan": "func @f() -> (f64[]) {\n  return nan(0xfffffffffffffffffffffff):f64[]\n}",
    "an argument that is updated": "func @f(%x: f64[3]) -> () {\n  return update (%x = %x)\n}",
    "bytes": b"func",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text_is_refused(name):
    with pytest.raises(sc.ParseError) as e:
        sc.parse(TEXTS[name])
    assert len(str(e.value)) < 250_000
