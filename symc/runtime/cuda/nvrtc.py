"""Compiling CUDA C++ by NVRTC, called through ctypes: text to machine code for one kind of GPU, kept on disk.

It needs neither a GPU nor a driver nor a toolkit, only NVRTC's own library (a wheel), and starts no process. CuPy's way
to NVRTC is not taken: it needs a driver, and always flushes subnormal numbers to 0.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from symc.errors import InputError, InternalError
from symc.ir.record import dataclass
from symc.runtime.cache import object_cache
from symc.runtime.cuda import libraries
from symc.runtime.cuda.device import Resources, Signature, check_signature

#: Changes where records are packed otherwise.
LAYOUT = "cubin 1"
#: How many lines are shown before and after one that does not compile, and how many of the messages.
AROUND, MESSAGES = 3, 5

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
    name = _key(text, target, FLAGS, compiler.version)
    found = _kept(name)
    if found is None:
        found = _compile(compiler, text, target)
        _keep(name, found)
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
            raise error_of(text, log or reason, "NVRTC does not compile a kernel")
        ptx = compiler.text(program, "PTX").rstrip(b"\0").decode(errors="replace")
        return Cubin(compiler.text(program, "CUBIN"), resources_of(log), parameters_of(ptx),
                     warnings_of(log))
    finally:
        compiler.functions.nvrtcDestroyProgram(ctypes.byref(program))


# --- what it says -----------------------------------------------------------------------------------------------------

_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.[busf](\d+)[^,\[]*(?:\[(\d+)\])?")
_MESSAGE = re.compile(r"^\S*?\((\d+)\): ((?:catastrophic )?error|warning)[^:]*: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Cubin:
    """Code for one kind of GPU. ``resources`` and ``parameters`` (their widths in bytes) by the name of the entry;
    ``warnings``: what the compiler remarked on the text, "" for nothing."""

    data: bytes
    resources: Mapping[str, Resources]
    parameters: Mapping[str, tuple[int, ...]]
    warnings: str = ""

    def check(self, signatures: Sequence[Signature]) -> None:
        """Raise where an entry is missing or has other parameters than it was declared with."""
        for s in signatures:
            if s.name not in self.resources:
                raise InternalError(f"the compiled CUDA code has no entry {s.name}")
            wrong = check_signature(s.name, s.widths, self.parameters[s.name])
            if wrong:
                raise InternalError(wrong)


def resources_of(log: str) -> dict[str, Resources]:
    """Resources of each entry as ptxas says them (``--ptxas-options=-v``)."""
    found = {}
    for part in re.split(r"Compiling entry function '", log)[1:]:
        name = part[: part.index("'")]
        own = re.split(r"Function properties for (\S+)", part)
        stack = spills = 0
        for function, text in zip(own[1::2], own[2::2], strict=True):
            if function == name:
                stack = _number(r"(\d+) bytes stack frame", text)
                spills = _number(r"(\d+) bytes spill stores", text) + _number(r"(\d+) bytes spill loads", text)
        stack = max(stack, _number(r"(\d+) bytes cumulative stack size", part))
        registers, shared = _number(r"Used (\d+) registers", part), _number(r"(\d+) bytes smem", part)
        found[name] = Resources(registers, spills, stack, shared)
    return found


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def parameters_of(ptx: str) -> dict[str, tuple[int, ...]]:
    """The widths of the parameters of each entry, as its PTX declares them."""
    return {name: tuple(_BYTES[bits] * int(count or 1) for bits, count in _PARAMETER.findall(inside))
            for name, inside in _ENTRY.findall(ptx)}


def warnings_of(log: str) -> str:
    """The part of a log that the front end wrote, and what ptxas warns of."""
    report = re.compile(r"ptxas|\s+\d+ bytes stack frame")
    lines = [x for x in log.split("\n") if not report.match(x) or "warning" in x.lower()]
    return "\n".join(lines).strip()


def error_of(text: str, log: str, what: str) -> InternalError:
    """The error for a text that does not compile: the messages, and the lines around the first that is meant."""
    meant = [(int(line), message) for line, kind, message in _MESSAGE.findall(log) if kind != "warning"]
    if not meant:
        return InternalError(f"{what}: {log.strip()}", text=_numbered(text, 1, len(text.split("\n"))))
    line = meant[0][0]
    rows = [(f"line {k}: {message}", None, None) for k, message in meant[:MESSAGES]]
    return InternalError(f"{what}: line {line}: {meant[0][1]}", values=rows[1:],
                         text=_numbered(text, line - AROUND, line + AROUND))


def _numbered(text: str, first: int, last: int) -> str:
    lines = text.split("\n")
    return "\n".join(f"{k:5} | {lines[k - 1]}" for k in range(max(first, 1), min(last, len(lines)) + 1))


# --- on disk ----------------------------------------------------------------------------------------------------------


def _key(text: str, arch: str, flags: Sequence[str], version: str) -> str:
    """The name of what is kept."""
    return object_cache.key([LAYOUT, version, arch, *flags, text])


def _kept(name: str) -> Cubin | None:
    """The cubin kept under a name."""
    data = object_cache.read_data(name)
    if data is None:
        return None
    head, _, code = data.partition(b"\n")
    about = json.loads(head)
    return Cubin(code, {k: Resources(*r) for k, r in about["resources"].items()},
                 {k: tuple(p) for k, p in about["parameters"].items()}, about["warnings"])


def _keep(name: str, cubin: Cubin) -> None:
    """Keep it, where that is possible."""
    resources = {k: [r.registers, r.spills, r.stack, r.shared] for k, r in cubin.resources.items()}
    about = {"resources": resources, "parameters": cubin.parameters, "warnings": cubin.warnings}
    object_cache.write_data(name, json.dumps(about).encode() + b"\n" + cubin.data)
