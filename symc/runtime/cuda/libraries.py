"""Paths of NVIDIA's libraries: in the wheels that pip installs, in a toolkit, or where the system's loader looks.

A wheel of CUDA 13 has its libraries in ``nvidia/cu13/lib`` of a folder of packages, one of CUDA 12 in a folder of its
own (``nvidia/cuda_nvrtc/lib``). CuPy finds the same ones.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
from collections.abc import Iterator, Sequence

from symc.errors import PackageError
from symc.ir.record import dataclass

#: Toolkits whose libraries serve, the better first.
MAJORS = (13, 12)
TOOLKITS = ("CUDA_HOME", "CUDA_PATH")


@dataclass(frozen=True)
class Library:
    """One of NVIDIA's libraries. ``name``: of its file ("nvrtc"); ``what``: its name and what it does; ``packages``:
    those to install, for each major version of CUDA; ``folder``: of its wheel for CUDA 12; ``ahead``: how far
    its file's version is ahead of that of CUDA; None: it has its own."""

    name: str
    what: str
    packages: tuple[tuple[int, str], ...]
    folder: str
    ahead: int | None = 0

    def files(self, major: int) -> Iterator[str]:
        """The paths where it is, the better first."""
        ending = ".so.*" if self.ahead is None else f".so.{major + self.ahead}"
        for place in folders(major, self.folder):
            yield from sorted(glob.glob(os.path.join(glob.escape(place), f"lib{self.name}{ending}")))


NVRTC = Library("nvrtc", "NVRTC, which compiles kernels,",
                ((13, "nvidia-cuda-nvrtc>=13,<14"), (12, "nvidia-cuda-nvrtc-cu12")), "cuda_nvrtc")
CUBLAS = Library("cublas", "cuBLAS, which multiplies matrices,",
                 ((13, "nvidia-cublas>=13,<14"), (12, "nvidia-cublas-cu12")), "cublas")
CUSOLVER = Library("cusolver", "cuSOLVER, which finds eigenvalues and singular values,",
                   ((13, "nvidia-cusolver>=12,<13"), (12, "nvidia-cusolver-cu12")), "cusolver", ahead=-1)
NCCL = Library("nccl", "NCCL, by which GPUs talk to each other,",
               ((13, "nvidia-nccl-cu13"), (12, "nvidia-nccl-cu12")), "nccl", ahead=None)


def folders(major: int, own: str) -> Iterator[str]:
    """Folders that may have a library."""
    spec = importlib.util.find_spec("nvidia")
    for base in (spec.submodule_search_locations or ()) if spec else ():
        yield os.path.join(base, f"cu{major}", "lib")
        yield os.path.join(base, own, "lib")
    for toolkit in (*[os.environ[name] for name in TOOLKITS if os.environ.get(name)], "/usr/local/cuda"):
        yield os.path.join(toolkit, "lib64")
        yield os.path.join(toolkit, "lib")


def load(library: Library, major: int | None = None, beside: Sequence[str] = ()) -> tuple[ctypes.CDLL, str]:
    """The library, of a major version of CUDA or of the newest there is, and where it is. ``beside``: patterns of files
    in its folder that it opens by name, which are loaded first, because the system's loader would not find them there.
    """
    reasons, majors = [], MAJORS if major is None else (major,)
    for major in majors:
        for path in library.files(major):
            try:
                for pattern in beside:
                    for other in sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(path)), pattern))):
                        ctypes.CDLL(other)
                return ctypes.CDLL(path), path
            except OSError as e:
                reasons.append(f"{path}: {e}")
    for major in majors:
        name = f"lib{library.name}.so.{2 if library.ahead is None else major + library.ahead}"
        try:
            return ctypes.CDLL(name), name
        except OSError:
            continue
    raise missing(library, majors, reasons)


def missing(library: Library, majors: Sequence[int] = MAJORS, reasons: Sequence[str] = ()) -> PackageError:
    """The error that says what to install."""
    packages = [name for major, name in library.packages if major in majors]
    what = f"{library.what} is not found" if not reasons else f"{library.what} cannot be loaded: {reasons[0]}"
    return PackageError(what, help="pip install " + " or ".join(f"'{name}'" for name in packages))
