"""Zip files read without ``zipfile``: the same members, from plain files and from all others."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path
from typing import BinaryIO

import pytest

from symc.driver.plain_zip import Member, Zip
from symc.driver.saved_file import JUNK
from symc.errors import InputError

PARTS = {"a.json": b"{}", "b": bytes(1000), "c.npy": random.Random(0).randbytes(300), "empty": b""}


def written(comment: bytes = b"", kind: int = zipfile.ZIP_DEFLATED, force_zip64: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as z:
        z.comment = comment
        for name, data in PARTS.items():
            with z.open(name, "w", force_zip64=force_zip64) as f:
                f.write(data)
    return out.getvalue()


def read(file: BinaryIO) -> dict[str, bytes]:
    z = Zip(file)
    return {m.filename: z.read(m) for m in z.members}


FILES = {
    "packed": written(),
    "stored": written(kind=zipfile.ZIP_STORED),
    "large": written(force_zip64=True),
    "a comment": written(b"words"),
    "behind other bytes": b"#!/bin/sh\n" + written(),
    "packed in another way": written(kind=zipfile.ZIP_BZIP2),
}


@pytest.mark.parametrize("name", FILES)
def test_members_are_those_of_zipfile(name: str) -> None:
    assert read(io.BytesIO(FILES[name])) == PARTS
    plain = all(isinstance(m, Member) for m in Zip(io.BytesIO(FILES[name])).members)
    assert plain == (name not in ("a comment", "behind other bytes"))


@pytest.mark.parametrize("name", ["packed", "stored", "large"])
def test_damage_is_found_or_harmless(name: str, tmp_path: Path) -> None:
    path = tmp_path / "zip"
    rng = random.Random(1)
    for _ in range(300):
        data = bytearray(FILES[name])
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            path.write_bytes(data)
            with path.open("rb") as file:  # which says of other places that they are none than bytes do
                found = read(file)
        except (InputError, *JUNK, RuntimeError):
            continue
        assert {*found.items()} <= {*PARTS.items()}
