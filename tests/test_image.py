"""Object files become images, and images run: what is linked, what is left to llvmlite, what goes to disk."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.text import Unsupported
from symc.runtime import image, machine_code
from symc.runtime.image import Image

pytestmark = pytest.mark.skipif(not machine_code.LINKED, reason="object files are linked on Linux for x86-64 alone")


def compiled(text: str) -> bytes:
    from symc.runtime.compilers.llvm import llvm

    machine, binding = machine_code._new_machine(), llvm()
    module = binding.parse_assembly(text, binding.create_context())
    return machine.emit_object(module)


def linked(text: str) -> Image:
    from symc.runtime.compilers.elf import link

    return link(compiled(text))


def called(name: str, found: Image, *args: float) -> float:
    address = image.load(found, image.in_process)[name]
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(args))(address)(*args)


def test_constants_calls_and_functions_of_its_own() -> None:
    found = linked("""
declare double @cos(double)
define internal double @third(double %x) noinline { %y = fdiv double %x, 3.0
  ret double %y }
define double @entry(double %x) { %a = call double @cos(double %x)
  %b = call double @third(double %a)
  %c = fadd double %b, 0.5
  ret double %c }
define double @other(double %x) { %a = call double @cos(double %x)
  ret double %a }
""")
    assert set(found.exports) == {"entry", "other"} and set(found.imports) == {"cos"}
    assert called("entry", found, 1.0) == np.cos(1.0) / 3 + 0.5 and called("other", found, 2.0) == np.cos(2.0)
    assert Image.decoded(found.encoded()) == found


def test_the_address_of_a_function_may_be_taken() -> None:
    found = linked("""
declare double @sin(double)
define double @entry(double %x) { %p = alloca ptr
  store volatile ptr @sin, ptr %p
  %f = load volatile ptr, ptr %p
  %y = call double %f(double %x)
  ret double %y }
""")
    assert called("entry", found, 1.0) == np.sin(1.0)


@pytest.mark.parametrize("text", [
    "@state = global i64 1\ndefine ptr @entry() { ret ptr @state }",  # may be written
    "@state = internal thread_local global i64 0\ndefine i64 @entry() { %x = load i64, ptr @state\n ret i64 %x }",
])  # fmt: skip
def test_what_is_more_than_code_and_constants_is_not_linked(text: str) -> None:
    with pytest.raises(Unsupported):
        linked(text)


def test_other_object_files_are_not_linked() -> None:
    from symc.runtime.compilers.elf import link

    data = bytearray(compiled("define void @entry() { ret void }"))
    struct.pack_into("<H", data, 18, 183)  # another processor
    for other in (bytes(data), b"\xcf\xfa\xed\xfe" + bytes(60), b""):
        with pytest.raises(Unsupported):
            link(other)


def test_memory_is_never_writable_and_executable() -> None:
    found = linked("define double @entry(double %x) { ret double %x }")
    address = image.load(found, image.in_process)["entry"]
    with open("/proc/self/maps", encoding="ascii") as maps:
        (mode,) = [line.split()[1] for line in maps
                   if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)]
    assert mode.startswith("r-x")


def test_a_function_that_is_nowhere_is_an_error() -> None:
    found = linked("declare void @symc_nowhere()\ndefine void @entry() { call void @symc_nowhere()\n ret void }")
    with pytest.raises(LookupError, match="symc_nowhere"):
        image.load(found, image.in_process)


def test_kernels_through_llvmlite_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sc.vector("x")
    outputs = [sc.exp(x) * sc.gammaln(x + 2), sc.cumsum(x), sc.sum(sc.erf(x))]
    args = np.linspace(0.1, 3, 37)
    want = sc.compile(outputs, [x])(args)
    monkeypatch.setattr(machine_code, "LINKED", False)
    monkeypatch.setattr(machine_code, "_kernels", {})
    monkeypatch.setattr(machine_code, "_machine", machine_code._new_machine)
    from symc.runtime import kernels

    monkeypatch.setattr(kernels, "_compiled", {})
    monkeypatch.setenv("SYMC_CACHE_DIR", "off")
    for a, b in zip(want, sc.compile(outputs, [x])(args), strict=True):
        np.testing.assert_array_equal(a, b)
