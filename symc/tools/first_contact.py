"""First contact with a device: what symc needs of it, one thing after another, up to the first that is not there.

``python -m symc doctor --device cuda``. Each check is small; together they take some seconds.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from symc.driver.compile import compile as compile_
from symc.errors import InputError, InternalError, SymcError
from symc.ir.record import dataclass
from symc.numpy_api import LINALG, maximum
from symc.runtime.cuda import cublas, cusolver, nvrtc
from symc.runtime.cuda.arrays import device_array
from symc.runtime.cuda.devices import context, is_real
from symc.tensors.inputs import input as input_

INSTALL = "pip install 'symc[cuda]' (for a driver of CUDA 12: 'symc[cuda12]')"
BUG = "this is a bug of symc or of the driver: please report it with this text and the output of nvidia-smi"
#: Bytes that are copied to the device and back.
COPIED = 1 << 24


@dataclass(frozen=True)
class Check:
    """``run``: gives what was found, or raises; ``help``: what to do then; ``real``: not asked of emulated devices."""

    name: str
    run: Callable[[str], str]
    help: str
    real: bool = False


def first_contact(device: str, say: Callable[[str], object] = print) -> str | None:
    """Check a device, line by line. The name and the text of the first check that fails, None if none does."""
    for check in CHECKS:
        if check.real and not is_real():
            say(f"  {check.name:8} not asked: the device is emulated")
            continue
        try:
            say(f"  {check.name:8} {check.run(device)}")
        except Exception as e:
            text = str(e) if isinstance(e, SymcError) else "".join(traceback.format_exception(e)).rstrip()
            say(f"  {check.name:8} fails: {text}\n  what to do: {check.help}")
            return f"{check.name}: {text}"
    return None


def _driver(device: str) -> str:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise InputError(f"there is no NVIDIA driver: {e}") from None
    version, count = ctypes.c_int(), ctypes.c_int()
    for name, *arguments in (("cuInit", 0), ("cuDriverGetVersion", ctypes.byref(version)),
                             ("cuDeviceGetCount", ctypes.byref(count))):
        if code := getattr(library, name)(*arguments):
            raise InputError(f"the NVIDIA driver answers {name} by error {code}")
    if not count.value:
        raise InputError("the NVIDIA driver knows no GPU")
    return f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}, {count.value} GPUs"


def _cupy(device: str) -> str:
    found: Any = context(device).device
    p = found.properties
    return (f"{found.cupy.__version__}: {p.name}, {p.arch}, {p.multiprocessors} multiprocessors, "
            f"{p.total_bytes / 2**30:.0f} GiB")


def _nvrtc(device: str) -> str:
    found: Any = context(device).device
    compiler = nvrtc.library(found._major)
    made = nvrtc.compile_cubin('extern "C" __global__ void nothing() {}', found.properties.arch, found._major)
    return f"{compiler.version.split()[0]} of {compiler.path}: {len(made.data)} bytes for {found.properties.arch}"


def _cublas(device: str) -> str:
    found: Any = context(device).device
    cublas.library(found._major)
    return f"of CUDA {found._major}"


def _cusolver(device: str) -> str:
    found: Any = context(device).device
    cusolver.library(found._major)
    return f"of CUDA {found._major}"


def _memory(device: str) -> str:
    where = context(device)
    sent, got = np.arange(COPIED // 8), np.zeros(COPIED // 8, np.int64)
    with where.lock:
        memory, other = where.device.alloc(COPIED), where.device.alloc(COPIED)
        where.device.upload(memory.address, sent, where.stream)
        where.device.copy(other.address, memory.address, COPIED, where.stream)
        where.device.download(got, other.address, where.stream)
        where.device.synchronize(where.stream)
    _same(got, sent)
    return f"{COPIED >> 20} MiB there, on the device, and back"


def _kernel(device: str) -> str:
    x = input_("x", "float32", ("n", 33))
    f = compile_([maximum(x * 2 + 1, 0), x.sum(0)], [x], device=device)
    given = np.arange(99, dtype="float32").reshape(3, 33) - 7
    made, sums = (r.numpy() for r in f(given))
    _same(made, np.maximum(given * 2 + 1, 0))
    _same(sums, given.sum(0))
    return f"{len(f.kernels)} kernels, right"


def _product(device: str) -> str:
    x, y = input_("x", "float32", (17, 20)), input_("y", "float32", (20, 9))
    a, b = np.arange(340.0, dtype="float32").reshape(17, 20) % 7, np.arange(180.0, dtype="float32").reshape(20, 9) % 5
    dtypes = ["float32", "float16", *["bfloat16"] * (find_spec("ml_dtypes") is not None)]
    for dtype in dtypes:  # whole numbers, which all of them have
        made = compile_((x.astype(dtype) @ y.astype(dtype)).astype("float32"), [x, y], device=device)(a % 3, b).numpy()
        if not np.array_equal(made, (a % 3 @ b)):
            raise InternalError(f"a product of {dtype}: {made.ravel()[:4]} instead of {(a % 3 @ b).ravel()[:4]}")
    return f"right in {', '.join(dtypes)}" + "; bfloat16 needs ml_dtypes" * (len(dtypes) < 3)


def _eigen(device: str) -> str:
    a = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])
    x = input_("x", "float64", (3, 3))
    _same(compile_(LINALG["eigvalsh"](x), [x], device=device)(a).numpy(), np.linalg.eigvalsh(a))
    _same(compile_(LINALG["svdvals"](x), [x], device=device)(a).numpy(), np.linalg.svd(a, compute_uv=False))
    return "eigenvalues and singular values, right"


def _graph(device: str) -> str:
    x = input_("x", "float32", (40, 40))
    f = compile_(((x @ x) / 40 + 1) @ x, [x], device=device)
    given = np.eye(40, dtype="float32")
    held, counters = device_array(given, device), context(device).device.counters
    before = counters.graph_launches
    for _ in range(4):
        made = f(held).numpy()
    _same(made, given / 40 + 1)
    if counters.graph_launches == before:
        raise InternalError("calls with the same addresses were not replayed as a graph")
    return f"replayed {counters.graph_launches - before} of 4 calls"


def _index(device: str) -> str:
    x, i = input_("x", "float32", (5,)), input_("i", "int64", ("k",))
    f = compile_(x[i], [x, i], device=device)
    _same(f(np.ones(5, "float32"), np.array([0, 4])).numpy(), np.ones(2))
    try:
        f(np.ones(5, "float32"), np.array([5])).numpy()
    except IndexError:
        return "an index out of bounds is an error, and the device goes on"
    raise InternalError("an index out of bounds was not found")


def _same(found: np.ndarray, wanted: np.ndarray) -> None:
    if not np.allclose(found, wanted, rtol=1e-5):
        raise InternalError(f"wrong numbers: {found.ravel()[:4]} instead of {wanted.ravel()[:4]}")


CHECKS = (
    Check("driver", _driver, "a GPU needs NVIDIA's driver, 580 or newer: nvidia-smi must list it (in a container: "
          "--gpus all). Without a GPU: SYMC_CUDA=emulated runs kernels on the host, SYMC_CUDA=dry plans them", True),
    Check("CuPy", _cupy, INSTALL, True),
    Check("NVRTC", _nvrtc, INSTALL, True),
    Check("cuBLAS", _cublas, INSTALL, True),
    Check("cuSOLVER", _cusolver, INSTALL, True),
    Check("memory", _memory, "nvidia-smi says who uses the memory of the GPU"),
    Check("kernel", _kernel, BUG),
    Check("product", _product, BUG),
    Check("eigen", _eigen, BUG),
    Check("graph", _graph, BUG),
    Check("index", _index, BUG),
)

__all__ = ["CHECKS", "Check", "first_contact"]
