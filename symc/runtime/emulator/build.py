"""Compiles C++ with g++ into libraries, which are kept by content like all machine code (runtime/object_cache.py).

The folder ``native`` holds what is compiled: the runtime, and the headers that make CUDA C++ of C++. What the cache
gives is written to a folder of this process, because a library must be a file while it is loaded.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile

from symc.errors import InternalError
from symc.runtime.cache import object_cache
from symc.runtime.cache.process_folder import process_folder

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")
#: What every library is compiled with.
_COMMON = ("-x", "c++", "-std=gnu++17", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w")
#: Without the sanitizers' libraries: the hooks are in the text.
_KERNEL = ("-nostdlib", "-fno-asynchronous-unwind-tables", "-fno-strict-aliasing", "-Wl,-Bsymbolic,--no-undefined",
           "-Wl,-z,noexecstack")
#: g++ must leave accesses as wide as they are written (``-fno-tree-sra``), and name the line of each.
_CHECKED = ("-O1", "-g1", "-fno-tree-sra", "-DSYMC_CHECKED", "--param", "tsan-instrument-func-entry-exit=0",
            "-fsanitize=thread,signed-integer-overflow,bounds,integer-divide-by-zero,shift")
_FAST = ("-O1", "-fno-plt")


class CompileError(InternalError):
    """g++ does not take a text. ``output``: what it says."""

    def __init__(self, what: str, output: str):
        super().__init__(what, text=output)
        self.output = output


def runtime(flags: tuple[str, ...] = ()) -> str:
    """The path of the runtime's library."""
    with open(os.path.join(NATIVE, "runtime.cpp"), encoding="utf-8") as f:
        return _library(f.read(), ("-O2", *flags), ("-lstdc++", "-lc"))


def kernels(text: str, checked: bool, fused: bool) -> str:
    """The path of a library of kernels. ``fused``: products and sums may be contracted, as NVRTC does by default."""
    modes = _CHECKED if checked else _FAST
    contract = ("-ffp-contract=fast", "-fexpensive-optimizations") if fused else ("-ffp-contract=off",)
    return _library(text, (*_KERNEL, *modes, *contract, *_fma()), ("-lm", "-lc", "-lgcc"))


def lines_of(path: str, places: list[int]) -> list[list[tuple[str, int]]]:
    """For each place in a library the lines that it is of, the innermost first; none where addr2line is missing."""
    tool = shutil.which("addr2line")
    if tool is None:
        return [[] for _ in places]
    # A call returns to the next instruction.
    command = [tool, "-a", "-i", "-e", path, *(hex(place - 1) for place in places)]
    found: list[list[tuple[str, int]]] = []
    for row in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        file, colon, number = row.split(" ")[0].rpartition(":")
        if not colon:
            found.append([])
        elif number.isdigit():
            found[-1].append((file, int(number)))
    return found


def _library(text: str, flags: tuple[str, ...], libraries: tuple[str, ...]) -> str:
    name = object_cache.key(["emulator", _compiler_key(), _headers(), *flags, *libraries, text])
    path = os.path.join(process_folder("emulator"), name + ".so")
    if os.path.exists(path):
        return path
    code = object_cache.read_data(name)
    if code is None:
        code = _compile(text, flags, libraries)
        object_cache.write_data(name, code)
    with tempfile.NamedTemporaryFile(dir=process_folder("emulator"), delete=False) as f:
        f.write(code)
    os.replace(f.name, path)
    return path


def _compile(text: str, flags: tuple[str, ...], libraries: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory(dir=process_folder("emulator")) as place:
        source, target = os.path.join(place, "kernel.cpp"), os.path.join(place, "kernel.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)
        command = [_compiler(), *_COMMON, *flags, "-I", NATIVE, source, "-o", target, *libraries]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CompileError("g++ does not compile what the emulated device was given", done.stderr[:4000])
        with open(target, "rb") as f:
            return f.read()


@functools.cache
def _compiler() -> str:
    path = shutil.which("g++")
    if path is None:
        raise InternalError("the emulated CUDA device compiles kernels with g++, which is not installed",
                            help="install it: apt-get install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora), "
                                 "conda install gxx")
    return path


@functools.cache
def _compiler_key() -> str:
    path = os.path.realpath(_compiler())
    found = os.stat(path)
    return f"{path} {found.st_size} {found.st_mtime_ns}"


@functools.cache
def _headers() -> str:
    texts = []
    for name in sorted(os.listdir(NATIVE)):
        with open(os.path.join(NATIVE, name), encoding="utf-8") as f:
            texts += [name, f.read()]
    return object_cache.key(texts)


@functools.cache
def _fma() -> tuple[str, ...]:
    """``fma`` as an instruction where this processor has it; a function of the C library elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = next((line for line in f if line.startswith("flags")), "")
    except OSError:
        return ()
    return ("-mfma",) if "fma" in flags.split() else ()
