"""The peers: which environment runs each, what it imports, and the settings under which it is measured.

Standard library only, because a worker imports this before it times the import of its peer.
"""

from __future__ import annotations

import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks import venvs


@dataclass(frozen=True)
class Peer:
    """A library, or one way of using it, that workloads have builders for."""

    name: str
    modules: tuple[str, ...]
    venv: str = "main"
    compiles: bool = False
    """It compiles and keeps a persistent cache, so a second process tells the warm compile time from the cold one."""
    slow: bool = False
    """Compiling takes seconds to minutes: its cache and its cold numbers are kept from run to run."""
    by_hand: bool = False
    """Loops written by hand for each case, not a compiler of array programs: a yardstick in a column of its own."""


PEERS = {
    peer.name: peer
    for peer in (
        Peer("symc", ("symc",), compiles=True),
        Peer("numpy", ("numpy", "scipy.special")),
        Peer("numba", ("numba",), compiles=True, by_hand=True),
        Peer("numexpr", ("numexpr",)),
        Peer("jax", ("jax", "jax.numpy"), compiles=True),
        Peer("torch", ("torch",), venv="torch"),
        Peer("torch.compile", ("torch",), venv="torch", compiles=True, slow=True),
        Peer("pytensor", ("pytensor", "pytensor.tensor"), venv="pytensor", compiles=True, slow=True),
        Peer("pytensor-c", ("pytensor", "pytensor.tensor"), venv="pytensor", compiles=True, slow=True),
        Peer("casadi", ("casadi",)),
        Peer("casadi-buffer", ("casadi",)),
        Peer("autograd", ("autograd", "autograd.numpy")),
        Peer("iree", ("iree.runtime", "iree.compiler"), venv="more"),
        Peer("onnxruntime", ("onnxruntime",), venv="more"),
        Peer("openvino", ("openvino",), venv="more"),
        Peer("drjit", ("drjit", "drjit.llvm"), venv="more"),
        Peer("halide", ("halide",), venv="more"),
    )
}


@dataclass(frozen=True)
class Settings:
    """Settings that every peer of a run has."""

    threads: int = 1
    huge_pages: bool = False

    @property
    def suffix(self) -> str:
        """Names the settings in a file name."""
        return f"t{self.threads}" + ("-hugepages" if self.huge_pages else "")


def missing(peer: Peer) -> str | None:
    """Reason that the peer cannot run here (the last line of its failed import), or None if it can."""
    return _import_failure(peer.venv, peer.modules)


@functools.cache
def _import_failure(venv: str, modules: tuple[str, ...]) -> str | None:
    command = [str(venvs.interpreter(venv)), "-c", "import " + ", ".join(modules)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=venvs.REPOSITORY)
    return None if run.returncode == 0 else (run.stderr.strip().splitlines() or ["import failed"])[-1]


#: Variables that make a library use other machine code than it would choose for this processor. Some machines set them
#: for everybody; then some peers would be measured with instructions of ten years ago, and others not.
CHOOSERS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE",
            "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "NPY_DISABLE_CPU_FEATURES",
            "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")

#: Without bytecode on disk every process would compile symc's source anew, and no other library's: those are installed.
BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


def environment(settings: Settings, dtype: str, cache: Path) -> dict[str, str]:
    """The worker's environment: equal thread counts for all, and every persistent cache inside ``cache``.

    Huge pages are a setting of the C allocator. Without them a large fresh result costs page faults that can
    outweigh the arithmetic, so rows with large arrays should be read under both settings.
    """
    threads = str(settings.threads)
    variables = {f"{pool}_NUM_THREADS": threads for pool in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}
    variables |= {
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(venvs.REPOSITORY),
        "NUMEXPR_MAX_THREADS": threads,
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "SYMC_CACHE_DIR": str(cache / "symc"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1" if dtype == "float64" else "0",
        "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "XLA_FLAGS": "" if settings.threads > 1 else "--xla_cpu_multi_thread_eigen=false",
        "PYTENSOR_FLAGS": _pytensor_flags(dtype, cache),
    }
    if settings.huge_pages:
        variables["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    return {k: v for k, v in os.environ.items() if not k.startswith((*CHOOSERS, *BYTECODE))} | variables


def _pytensor_flags(dtype: str, cache: Path) -> str:
    """The caller's own flags come last, for instance ``blas__ldflags=-lopenblas`` for the C backend."""
    flags = [f"base_compiledir={cache / 'pytensor'}", f"floatX={dtype}", os.environ.get("PYTENSOR_FLAGS", "")]
    return ",".join(filter(None, flags))
