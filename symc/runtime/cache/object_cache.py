"""Machine code on disk, so that a process does not compile what another has: entries by content, in a private folder.

A cache of machine code is code. The folder belongs to its user and nobody else may write there; an entry is a file of
that user whose checksum covers its key and its contents; whatever differs (damaged, cut off, of another user, another
processor or another version) is not read, and made again. Files are written under another name and renamed, so
processes never see half of one. A folder that cannot be used means that nothing is kept, which costs time only.

The folder is ``$SYMC_CACHE_DIR``, else ``symc`` in the user's cache folder; ``SYMC_CACHE_DIR=off`` keeps nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence

from symc.ir.digest import blake2b
from symc.ir.record import dataclass
from symc.runtime.cache.regular_file import open_quickly
from symc.runtime.compilers.image import Image
from symc.settings import config, variable

FOLDER, OFF = variable("cache_dir"), "off"
MAGIC = b"symc object 4\n"
SUFFIX = ".o"
#: The most bytes that are kept; what was not used for longest goes first.
LIMIT = 256 * 2**20
_DIGEST = 32


@dataclass(frozen=True)
class Entry:
    """An object file or the image of one, the functions in it that others call, and those of SciPy that it calls."""

    code: bytes | Image
    exports: tuple[str, ...] = ()
    scipy: tuple[str, ...] = ()


def folder() -> str | None:
    """The folder of entries; None if nothing is kept."""
    named = config.cache_dir
    if named == OFF:
        return None
    if named:
        return named
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "symc")


def key(parts: Sequence[str]) -> str:
    """The name of an entry: of everything that decides what its code is."""
    return blake2b("\0".join(parts).encode(), digest_size=_DIGEST).hexdigest()


def read(name: str) -> Entry | None:
    """The machine code of this name, if it is there, ours, and whole."""
    data = read_data(name)
    if data is None:
        return None
    head, _, code = data.partition(b"\n")
    exports, scipy, *image = (tuple(words.split()) for words in head.decode().split("\0"))
    return Entry(_image(code, exports, *image) if image else code, exports, scipy)


def _image(code: bytes, exports: Sequence[str], places: Sequence[str], names: Sequence[str], slots: Sequence[str],
           own: Sequence[str], fixed: Sequence[str]) -> Image:
    return Image(code, dict(zip(exports, map(int, places), strict=True)),
                 [*zip(names, map(int, slots), strict=True)], [*map(int, own)], int(fixed[0]))


def write(name: str, entry: Entry) -> None:
    """Keep machine code; do nothing where that is not possible."""
    head: list[Iterable[object]] = [entry.exports, entry.scipy]
    code = entry.code
    if isinstance(code, Image):
        head += [code.places.values(), [n for n, _ in code.slots], [at for _, at in code.slots], code.own, [code.fixed]]
        code = code.code
    write_data(name, "\0".join(" ".join(map(str, words)) for words in head).encode() + b"\n" + code)


def read_data(name: str) -> bytes | None:
    """The data of this name, if they are there, ours, and whole."""
    place = folder()
    if place is None or not _is_private(place):
        return None
    path = os.path.join(place, name + SUFFIX)
    try:
        handle = open_quickly(path, getattr(os, "O_NOFOLLOW", 0))
        found = os.fstat(handle)
        if not _is_entry(found):
            os.close(handle)
            return None
        with open(handle, "rb") as f:
            data = f.read(min(found.st_size, LIMIT))  # as much memory as it says is taken at once
    except OSError:
        return None
    with contextlib.suppress(OSError):  # on a disk that is read-only nothing is removed either
        os.utime(path)
    return _decoded(name, data)


def write_data(name: str, data: bytes) -> None:
    """Keep data; do nothing where that is not possible."""
    place = folder()
    if place is None:
        return
    try:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o700)
        if not _is_private(place):
            return
        temporary = os.path.join(place, f"new-{os.urandom(8).hex()}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "wb") as f:
                f.write(MAGIC + _checksum(name, data) + data)
            os.replace(temporary, os.path.join(place, name + SUFFIX))
        except OSError:
            os.unlink(temporary)
            raise
        _bound(place)
    except OSError:
        return


def _decoded(name: str, data: bytes) -> bytes | None:
    start = len(MAGIC) + _DIGEST
    body = data[start:]
    return body if data.startswith(MAGIC) and _checksum(name, body) == data[len(MAGIC) : start] else None


def _checksum(name: str, body: bytes) -> bytes:
    return blake2b(name.encode() + body, digest_size=_DIGEST).digest()


def _is_private(place: str) -> bool:
    """True if a folder is this user's, and nobody else may write there."""
    try:
        return _is_ours(os.stat(place))
    except OSError:
        return False


def _is_ours(found: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):  # folders of users are private there
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_entry(found: os.stat_result) -> bool:
    """True for a regular file that is ours."""
    return stat.S_ISREG(found.st_mode) and _is_ours(found)


# --- upkeep -----------------------------------------------------------------------------------------------------------


def entries() -> list[tuple[str, os.stat_result]]:
    """The files that are kept: paths, and what the system knows of them."""
    place, found = folder(), []
    if place is not None and os.path.isdir(place):
        with os.scandir(place) as files:
            for e in files:
                with contextlib.suppress(OSError):  # another process removed it
                    if e.name.endswith(SUFFIX) and not e.is_dir(follow_symlinks=False):
                        found.append((e.path, e.stat(follow_symlinks=False)))
    return found


def clear() -> int:
    """Remove all entries; how many there were."""
    found = entries()
    for path, _ in found:
        _remove(path)
    return len(found)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _bound(place: str) -> None:
    """Remove the entries that were not used for longest, if there are too many bytes. One write in 256 looks."""
    if os.urandom(1)[0]:
        return
    total = 0
    for path, s in sorted(entries(), key=lambda e: e[1].st_mtime, reverse=True):
        total += s.st_size
        if total > LIMIT:
            _remove(path)
