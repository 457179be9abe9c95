"""Object files are loaded by llvmlite and run: what they may contain and call, and that the text of every native module
is what LLVM takes."""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.runtime.cache import machine_code, object_cache
from symc.runtime.compilers.llvm import llvm, load
from symc.runtime.compilers.llvm_compile import module_code
from symc.runtime.cpu.native import blas_ir, entry_ir, executor_ir, few_rows_ir, lapack_ir, native_ir, pool  # noqa: F401
from symc.runtime.cpu.scipy_functions import special, symbol


def called(text: str, *args: float, name: str = "entry", **imports: int) -> float:
    """What a function of a module of LLVM's text gives."""
    entry = module_code(text, 2)
    address = load(entry.code, entry.exports, imports)[name]
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(args))(address)(*args)


TEXT = """
declare double @cos(double)
define internal double @third(double %x) noinline { %y = fdiv double %x, 3.0
  ret double %y }
define double @entry(double %x) { %a = call double @cos(double %x)
  %b = call double @third(double %a)
  %c = fadd double %b, 0.5
  ret double %c }
define double @other(double %x) { %a = call double @cos(double %x)
  ret double %a }
"""


def native_modules() -> dict[str, Callable[[], str]]:
    """What writes the text of each module of native functions."""
    found = {"executor": executor_ir._module, "entry": entry_ir._text, "pool": pool._text}
    pending: list[type] = [native_ir.Functions]
    while pending:
        subs = (sub := pending.pop()).__subclasses__()
        pending += subs
        if not subs and (sub.letter or "letter" not in inspect.getsource(sub)):  # else it is for a kind of numbers
            found[sub.title()] = lambda sub=sub: native_ir._text(sub)
    return found


@pytest.mark.parametrize("name", MODULES := native_modules())
def test_native_modules_are_valid(name: str) -> None:
    """For LLVM, which trusts what it compiles unless it is asked to look."""
    module = llvm().parse_assembly(MODULES[name](), llvm().create_context())
    module.verify()
    defined = [f.name for f in module.functions if not f.is_declaration and f.linkage is llvm().Linkage.external]
    assert defined and all(name.startswith("symc_") for name in defined)


@pytest.mark.parametrize("level", range(4))
def test_constants_calls_and_functions_of_its_own(level: int) -> None:
    entry = module_code(TEXT, level)
    assert entry.exports == ("entry", "other")
    found = load(entry.code, entry.exports, {})
    first, second = (ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found[name]) for name in entry.exports)
    assert first(1.0) == np.cos(1.0) / 3 + 0.5 and second(2.0) == np.cos(2.0)


def test_modules_may_have_functions_of_the_same_name() -> None:
    text = "define double @entry() {{ ret double {0}.0 }}"
    entries = [module_code(text.format(k), 2) for k in range(3)]
    found = [load(e.code, e.exports, {})["entry"] for e in entries]
    assert [ctypes.CFUNCTYPE(ctypes.c_double)(address)() for address in found] == [0.0, 1.0, 2.0]


def test_the_address_of_a_function_may_be_taken() -> None:
    assert called("""
declare double @sin(double)
define double @entry(double %x) { %p = alloca ptr
  store volatile ptr @sin, ptr %p
  %f = load volatile ptr, ptr %p
  %y = call double %f(double %x)
  ret double %y }
""", 1.0) == np.sin(1.0)


def test_data_that_is_written_is_kept() -> None:
    entry = module_code("""
@state = global double 1.0
define double @entry() { %x = load double, ptr @state
  %y = fadd double %x, 1.0
  store double %y, ptr @state
  ret double %y }
""", 2)
    function = ctypes.CFUNCTYPE(ctypes.c_double)(load(entry.code, entry.exports, {})["entry"])
    assert [function() for _ in range(3)] == [2.0, 3.0, 4.0]


def test_functions_of_scipy_are_called_by_address() -> None:
    name = "d00_erfcx"
    text = f"""
declare double @{symbol(name)}(double, i32)
define double @entry(double %x) {{ %y = call double @{symbol(name)}(double %x, i32 0)
  ret double %y }}
"""
    from scipy.special import erfcx

    assert called(text, 1.5, **{symbol(name): special(name)}) == erfcx(1.5)


def test_a_function_that_is_nowhere_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    text = "declare void @symc_nowhere()\ndefine void @entry() { call void @symc_nowhere()\n ret void }"
    entry = module_code(text, 2)
    with pytest.raises(RuntimeError):
        load(entry.code, entry.exports, {})
    assert "symc_nowhere" in capfd.readouterr().err  # LLVM says which


def test_what_is_no_object_file_is_an_error() -> None:
    code = module_code("define void @entry() { ret void }", 2).code
    for other in (b"", b"no object file", code[: len(code) // 2]):
        with pytest.raises(RuntimeError):
            load(other, ["entry"], {})


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_memory_is_never_writable_and_executable() -> None:
    entry = module_code(TEXT, 2)
    address = load(entry.code, entry.exports, {})["entry"]
    with open("/proc/self/maps", encoding="ascii") as maps:
        (mode,) = [line.split()[1] for line in maps
                   if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)]
    assert mode.startswith("r-x")


def test_a_module_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    written: list[str] = []

    def found(write: Callable[[], str]) -> int:
        return machine_code.load_module("a module of tests", lambda: written.append("") or write(), 2)("entry")

    first, second = (found(lambda: "define void @entry() { ret void }") for _ in range(2))
    assert len(written) == 1 and first != second


def test_kernels_are_the_same_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symc.runtime.cpu import kernels

    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    x = sc.vector("x")
    outputs, args = [sc.exp(x) * sc.gammaln(x + 2), sc.cumsum(x), sc.sum(sc.erf(x))], np.linspace(0.1, 3, 37)
    results = []
    for _ in range(2):
        monkeypatch.setattr(kernels, "_compiled", {})
        monkeypatch.setattr(machine_code, "_kernels", {})
        results.append(sc.compile(outputs, [x])(args))
        monkeypatch.setattr("symc.runtime.compilers.llvm_compile.kernel_code", None)  # not asked again
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_llvmlite_is_used_by_its_public_names() -> None:
    """Its library is its own affair: no function of it is called directly, and no name that it keeps to itself."""
    private = re.compile(r"LLVMPY_|libllvmlite|(?:binding\.|import )ffi|(?:binding|llvmlite|llvm\(\))(?:\.\w+)*\._\w+")
    package = Path(sc.__file__).parent
    found = [f"{path.relative_to(package)}: {m[0]}" for path in package.rglob("*.py")
             for m in private.finditer(path.read_text(encoding="utf-8"))]
    assert found == []
