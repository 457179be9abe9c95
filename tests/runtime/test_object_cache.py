"""Machine code on disk: what is read again, and what never is."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from symc.runtime.cache import object_cache
from symc.runtime.cache.object_cache import Entry, read, write
from symc.runtime.compilers.image import Image

NAME = object_cache.key(["a kernel", "a processor"])
ENTRY = Entry(b"machine code\n\0\xff", ("symc_kernel", "symc_other"), ("__pyx_fuse_1psi",))

PROGRAM = """
import sys
import numpy as np
import symc as sc
x = sc.input("x", "float64", shape=("n",))
f = sc.compile(sc.tanh(x) * 2.0 + sc.sum(x), [x])
print(repr(f(np.arange(5.0)).tolist()), "numba" in sys.modules, "symc.runtime.compilers.llvm_function" in sys.modules)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(object_cache.FOLDER, str(folder))
    return folder


def files(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("entry", [
    ENTRY,
    Entry(Image(b"code\n\0", {"symc_kernel": 4, "symc_other": 0}, [("exp", 8), ("exp", 24)], [16], 4096),
          ENTRY.exports, ENTRY.scipy),
    Entry(Image(b"", {"symc_kernel": 4}, [], [], 0), ("symc_kernel",)),
])
def test_what_is_written_is_read(place, entry):
    assert read(NAME) is None
    write(NAME, entry)
    assert read(NAME) == entry
    assert files(place) == [f"{NAME}.o"]  # and nothing half-written
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [
    lambda data: b"",
    lambda data: data[:-1],
    lambda data: data[:20],
    lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    lambda data: b"another format" + data[14:],
    lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
], ids=["empty", "cut", "cut header", "flipped", "foreign", "checksum"])
def test_a_damaged_entry_is_not_read_and_made_again(place, damage):
    write(NAME, ENTRY)
    path = place / f"{NAME}.o"
    path.write_bytes(damage(path.read_bytes()))
    assert read(NAME) is None
    write(NAME, ENTRY)
    assert read(NAME) == ENTRY


def test_an_entry_under_another_name_is_not_read(place):
    write(NAME, ENTRY)
    other = object_cache.key(["another kernel"])
    os.rename(place / f"{NAME}.o", place / f"{other}.o")
    assert read(other) is None


def test_what_others_may_write_is_not_read(place):
    write(NAME, ENTRY)
    (place / f"{NAME}.o").chmod(0o666)
    assert read(NAME) is None
    (place / f"{NAME}.o").chmod(0o600)
    assert read(NAME) == ENTRY
    place.chmod(0o777)
    assert read(NAME) is None
    os.remove(place / f"{NAME}.o")
    write(NAME, ENTRY)
    assert files(place) == []


def test_what_belongs_to_another_user_is_not_read(place, monkeypatch):
    write(NAME, ENTRY)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(place).st_uid + 1)
    assert read(NAME) is None


def test_a_link_is_not_followed(place, tmp_path):
    write(NAME, ENTRY)
    os.rename(place / f"{NAME}.o", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", place / f"{NAME}.o")
    assert read(NAME) is None


def test_a_folder_that_cannot_be_used_keeps_nothing(place, monkeypatch):
    place.write_text("a file")
    write(NAME, ENTRY)
    assert read(NAME) is None and place.read_text() == "a file"
    monkeypatch.setenv(object_cache.FOLDER, object_cache.OFF)
    write(NAME, ENTRY)
    assert object_cache.folder() is None and read(NAME) is None


def test_a_read_only_disk_is_read(place, monkeypatch):
    def fails(*_):
        raise OSError("read-only")

    write(NAME, ENTRY)
    monkeypatch.setattr(os, "utime", fails)
    assert read(NAME) == ENTRY


def test_a_full_disk_leaves_nothing_behind(place, monkeypatch):
    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fails)
    write(NAME, ENTRY)
    assert files(place) == []


def test_many_writers_and_readers(place):
    def work(k):
        write(NAME, ENTRY)
        return read(NAME) == ENTRY

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(64)))
    assert files(place) == [f"{NAME}.o"]


def test_it_is_bounded_and_cleared(place, monkeypatch):
    monkeypatch.setattr(object_cache, "LIMIT", 3 * 200)
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    names = [object_cache.key([str(k)]) for k in range(6)]
    for k, name in enumerate(names):
        write(name, Entry(bytes(150)))
        os.utime(place / f"{name}.o", (k, k))
    write(NAME, ENTRY)
    assert read(NAME) == ENTRY and read(names[0]) is None
    assert sum(s.st_size for _, s in object_cache.entries()) <= object_cache.LIMIT
    assert object_cache.clear() > 0 and files(place) == []


def test_a_second_process_compiles_nothing_and_a_damaged_cache_compiles_again(place):
    def run():
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
        return done.stdout.split("] ")

    cold, warm = run(), run()
    assert cold[1].split() == ["False", "True"] and warm[1].split() == ["False", "False"]
    assert cold[0] == warm[0]
    for path, found in object_cache.entries():
        os.truncate(path, found.st_size - 8)
    again = run()
    assert again[0] == cold[0] and again[1].split() == ["False", "True"]


#: Processes that have imported symc, and nothing that compiles, each of which runs the program.
AT_ONCE = f"""
import contextlib, io, os, traceback
import symc
code = compile({PROGRAM!r}, "program", "exec")
children = []
for _ in range(16):
    pid = os.fork()
    if not pid:
        try:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, {{}})
            os.write(1, out.getvalue().encode())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 16
"""


def test_sixteen_processes_at_once(place):
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 16 and len({line.split("] ")[0] for line in lines}) == 1


def test_the_command(place, capsys):
    from symc.__main__ import main

    write(NAME, ENTRY)
    assert main(["cache"]) == 0
    assert str(place) in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert "1 " in capsys.readouterr().out and read(NAME) is None
