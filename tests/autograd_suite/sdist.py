"""Obtain autograd's tests: its source distribution, through pip, once, into a folder that git ignores."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = "1.9"
ARCHIVE = "autograd-1.9.0.tar.gz"
SHA256 = "5352ea2940cc7cf8ffa97a53171ec1cc538b4d32bb9c9fbfda40940cef0e79a9"
MODULES = ("test_scalar_ops", "test_binary_ops", "test_systematic", "test_numpy", "test_fft", "test_linalg",
           "test_scipy")  # fmt: skip
HELPERS = ("numpy_utils",)
CACHE = Path(__file__).parents[2] / ".cache" / "autograd"


class SdistError(Exception):
    """The source distribution could not be obtained or is not the expected one."""


def fetch_sources() -> dict[str, str]:
    """The text of each test module and helper, by name. Raises SdistError."""
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / ARCHIVE
    with _locked(CACHE / "lock"):
        if not archive.exists():
            _download(archive)
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise SdistError(f"{archive} is not the published {ARCHIVE}; delete it and run again")
    return _read(archive)


def _download(archive: Path) -> None:
    """Ask pip, as this environment configures it. Only autograd itself is taken from source, not its build tools."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", "autograd", "--dest", str(archive.parent), f"autograd=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not archive.exists():
        raise SdistError(
            f"autograd's tests are not here: pip could not fetch {ARCHIVE}.\n"
            f"Connect pip to a package index, or put the file into {archive.parent}.\n"
            f"{' '.join(command)}\n{done.stderr.strip()}"
        )


def _read(archive: Path) -> dict[str, str]:
    folder = ARCHIVE.removesuffix(".tar.gz")
    sources = {}
    with tarfile.open(archive) as tar:
        for name in MODULES + HELPERS:
            member = tar.extractfile(f"{folder}/tests/{name}.py")
            if member is None:
                raise SdistError(f"{archive} has no tests/{name}.py")
            sources[name] = member.read().decode()
    return sources


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time, so that parallel test workers download once."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
