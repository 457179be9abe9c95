"""Compiling CUDA C++ by NVRTC, called through ctypes: text to machine code for one kind of GPU, kept on disk.

It needs neither a GPU nor a driver nor a toolkit, only NVRTC's own library (a wheel), and starts no process. CuPy's way
to NVRTC is not taken: it needs a driver, and always flushes subnormal numbers to 0.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import Any

from symc.errors import InputError, InternalError
from symc.ir.record import dataclass
from symc.runtime.cuda import cubin, libraries
from symc.runtime.cuda.cubin import Cubin

#: Numbers are those of IEEE 754: subnormal ones too, division and roots rounded rightly. A product and a sum may be one
#: instruction, which rounds once, as on the CPU.
FLAGS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--fmad=true", "--ptxas-options=-v")
FILE = b"symc.cu"


@dataclass(frozen=True)
class Nvrtc:
    """The loaded library. ``version``: what tells one from another, also those of the same number."""

    functions: Any
    path: str
    version: str
    archs: tuple[int, ...]

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self.functions, name)(*arguments)
        if result:
            raise InternalError(f"{name}: {self.functions.nvrtcGetErrorString(result).decode()}")

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        """One of the things that a program has: "ProgramLog", "PTX", "CUBIN"."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw[: size.value]


@functools.cache
def library(major: int | None = None) -> Nvrtc:
    """NVRTC, of a certain major version of CUDA or of the newest there is. Raises InputError where it is missing."""
    functions, path = libraries.load(libraries.NVRTC, major, ["libnvrtc-builtins.so.*"])
    functions.nvrtcGetErrorString.restype = ctypes.c_char_p
    high, low, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    functions.nvrtcVersion(ctypes.byref(high), ctypes.byref(low))
    functions.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    functions.nvrtcGetSupportedArchs(archs)
    size = os.stat(path).st_size if os.path.exists(path) else 0
    return Nvrtc(functions, path, f"{high.value}.{low.value} {size}", tuple(sorted(archs)))


def serving(arch: str, known: Sequence[int]) -> str:
    """The architecture to compile for so that it runs on a GPU of this kind: code runs on GPUs of the same major
    version that are newer."""
    number = int(arch.removeprefix("sm_"))
    fit = [k for k in known if k // 10 == number // 10 and k <= number]
    if not fit:
        raise InputError(f"this NVRTC compiles for no GPU of compute capability {number // 10}.{number % 10}; "
                         f"it knows {', '.join(f'{k // 10}.{k % 10}' for k in known)}",
                         help="GPUs from 7.5 on serve, newer ones with a newer nvidia-cuda-nvrtc")
    return f"sm_{max(fit)}"


def compile_cubin(text: str, arch: str, major: int | None = None) -> Cubin:
    """The code of a translation unit for a kind of GPU ("sm_90"), from the disk where it has been compiled before.

    Raises InternalError, with the line, where it does not compile; InputError where there is no compiler.
    """
    compiler = library(major)
    target = serving(arch, compiler.archs)
    name = cubin.key(text, target, FLAGS, compiler.version)
    found = cubin.read(name)
    if found is None:
        found = _compile(compiler, text, target)
        cubin.write(name, found)
    return found


def _compile(compiler: Nvrtc, text: str, arch: str) -> Cubin:
    program = ctypes.c_void_p()
    compiler.call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), FILE, 0, None, None)
    try:
        options = [f"--gpu-architecture={arch}".encode(), *[f.encode() for f in FLAGS]]
        failed = compiler.functions.nvrtcCompileProgram(program, len(options),
                                                        (ctypes.c_char_p * len(options))(*options))
        log = compiler.text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if failed:
            reason = compiler.functions.nvrtcGetErrorString(failed).decode()
            raise cubin.error_of(text, log or reason, "NVRTC does not compile a kernel")
        ptx = compiler.text(program, "PTX").rstrip(b"\0").decode(errors="replace")
        return Cubin(compiler.text(program, "CUBIN"), cubin.resources_of(log), cubin.parameters_of(ptx),
                     cubin.warnings_of(log))
    finally:
        compiler.functions.nvrtcDestroyProgram(ctypes.byref(program))
