"""Machine code is loaded and run, as an image and as an object file by LLVM: what it may contain and call, and that the
text of every native module is what LLVM takes."""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.render import Source
from symc.codegen.language.native import BLAS
from symc.ir.dtypes import ARITHMETIC, DTYPE_NAMES
from symc.runtime import routines
from symc.runtime.cache import machine_code, object_cache
from symc.runtime.compilers import linker
from symc.runtime.compilers.image import Code, Image, for_good
from symc.runtime.compilers.llvm import llvm, load, lock, target_machine
from symc.runtime.compilers.llvm_compile import _parsed, kernel_ir, module_code, optimized
from symc.runtime.cpu import kernels
from symc.runtime.cpu.native import (  # noqa: F401
    entry_ir,
    executor_ir,
    few_rows_ir,
    native_ir,
    pool,
    sparse_ir,
)
from symc.runtime.cpu.native.instructions import ALL, STRAIGHT
from symc.runtime.cpu.scipy_functions import special, symbol


def object_file(text: str, level: int = 2) -> bytes:
    with lock:
        machine = target_machine(level)
        return machine.emit_object(_parsed(text, llvm().create_context(), machine))


def by_llvm(text: str, level: int = 2, **imports: int) -> dict[str, int]:
    """The addresses of the functions of a module of LLVM's text."""
    return load(object_file(text, level), module_code(text, level).exports, imports)


def by_image(text: str, level: int = 2, **imports: int) -> dict[str, int]:
    entry = module_code(text, level)
    assert isinstance(entry.code, Image)
    code = Code(entry.code, imports)
    for_good(code)
    return dict(code.places)


def test_code_stays_when_python_has_ended() -> None:
    """Threads of the pool may still run it then: nothing of Python's keeps it, so nothing that Python ends frees it."""
    code = """
import ctypes, gc, sys
sys.path.insert(0, '.')
from tests.runtime import test_machine_code as t
text = "define double @entry(double %x) { %y = fmul double %x, 3.0 ret double %y }"
found = (t.by_image if t.HAS_IMAGES else t.by_llvm)(text)["entry"]
f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found)
for name in [m for m in sys.modules if m.startswith("symc.runtime")]:
    vars(sys.modules[name]).clear()
gc.collect()
print(f(2.0))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and ended.stdout == "6.0\n", ended.stderr


Loads = Callable[..., dict[str, int]]
HAS_IMAGES = linker.linked(object_file("define void @entry() { ret void }"), ["entry"]) is not None


@pytest.fixture(params=[by_llvm, *[by_image] * HAS_IMAGES])
def loads(request: pytest.FixtureRequest) -> Loads:
    return request.param  # type: ignore[no-any-return]


def called(found: dict[str, int], *args: float) -> float:
    """What the entry gives."""
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(args))(found["entry"])(*args)


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
    found = {"executor": lambda: executor_ir.text(ALL), "straight executor": lambda: executor_ir.text(STRAIGHT),
             "entry": entry_ir.text, "pool": pool._text}
    dtypes = [DTYPE_NAMES[d] for d in ARITHMETIC if d.kind != "c"]
    parts = {**dict.fromkeys(("blas_loops", "lapack_loops", "mirror"), BLAS), "substitution": "sd",
             **{key: [d for d in dtypes if d != "f16"] for key in ("line_selection", "line_counts", "line_keys")},
             "line_sorts": [f"{name}_{d}" for d in dtypes for name in ("sort", "argsort", "top", "bottom")
                            if name in ("sort", "argsort") or d != "f16"]}
    for info in pkgutil.iter_modules(routines.__path__):
        found |= {f"{info.name} {p}": partial(routines.text, info.name, p) for p in parts.get(info.name, ("",))}
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


def test_flags_of_instructions_are_in_the_text() -> None:
    """Wherever they are given: a product and a difference of a substitution round once, where the processor can."""
    text = native_ir._text(native_ir._variant(sparse_ir._Functions, "D64"))
    assert "fmul contract double" in text and "fsub contract double" in text
    assert "call double @llvm.fmuladd.f64(" in routines.text("substitution", "d")


@pytest.mark.parametrize("level", range(4))
def test_constants_calls_and_functions_of_its_own(loads: Loads, level: int) -> None:
    found = loads(TEXT, level)
    assert list(found) == ["entry", "other"]
    first, second = (ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found[name]) for name in found)
    assert first(1.0) == np.cos(1.0) / 3 + 0.5 and second(2.0) == np.cos(2.0)


def test_modules_may_have_functions_of_the_same_name(loads: Loads) -> None:
    text = "define double @entry() {{ ret double {0}.0 }}"
    found = [loads(text.format(k)) for k in range(3)]
    assert [*map(called, found)] == [0.0, 1.0, 2.0]


def test_the_address_of_a_function_may_be_taken(loads: Loads) -> None:
    assert called(loads("""
declare double @sin(double)
define double @entry(double %x) { %p = alloca ptr
  store volatile ptr @sin, ptr %p
  %f = load volatile ptr, ptr %p
  %y = call double %f(double %x)
  ret double %y }
"""), 1.0) == np.sin(1.0)


def test_data_may_hold_addresses(loads: Loads) -> None:
    """Of its own functions and numbers, of what is between the first and the last, and of those of a library."""
    assert called(loads("""
declare double @sin(double)
define internal double @third(double %x) { %y = fdiv double %x, 3.0
  ret double %y }
@numbers = internal global [3 x double] [double 1.0, double 10.0, double 100.0]
@table = global [3 x ptr] [ptr @sin, ptr @third, ptr getelementptr (double, ptr @numbers, i64 2)]
define double @entry(double %x) {
  %f = load volatile ptr, ptr @table
  %g = load volatile ptr, ptr getelementptr (ptr, ptr @table, i64 1)
  %p = load volatile ptr, ptr getelementptr (ptr, ptr @table, i64 2)
  %n = load volatile double, ptr %p
  %a = call double %f(double %x)
  %b = call double %g(double %a)
  %c = fmul double %b, %n
  ret double %c }
"""), 1.0) == np.sin(1.0) / 3 * 100


def test_data_that_is_written_is_kept(loads: Loads) -> None:
    found = loads("""
@state = global double 1.0
@other = internal global double 0.0
define double @entry() { %x = load volatile double, ptr @state
  %o = load volatile double, ptr @other
  %y = fadd double %x, 1.0
  %p = fadd double %o, 1.0
  store volatile double %y, ptr @state
  store volatile double %p, ptr @other
  %s = fmul double %y, %p
  ret double %s }
""")
    assert [called(found) for _ in range(3)] == [2.0, 6.0, 12.0]


def test_functions_of_scipy_are_called_by_address(loads: Loads) -> None:
    name = "d00_erfcx"
    text = f"""
declare double @{symbol(name)}(double, i32)
define double @entry(double %x) {{ %y = call double @{symbol(name)}(double %x, i32 0)
  ret double %y }}
"""
    from scipy.special import erfcx

    assert called(loads(text, **{symbol(name): special(name)}), 1.5) == erfcx(1.5)


def test_a_function_that_is_nowhere_is_an_error(loads: Loads, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((RuntimeError, LookupError)) as e:
        loads("declare void @symc_nowhere()\ndefine void @entry() { call void @symc_nowhere()\n ret void }")
    assert "symc_nowhere" in f"{e.value} {capfd.readouterr().err}"  # LLVM says which


def test_what_is_no_object_file_is_an_error() -> None:
    code = object_file("define void @entry() { ret void }")
    for other in (b"", b"no object file", code[: len(code) // 2]):
        with pytest.raises(RuntimeError):
            load(other, ["entry"], {})


@pytest.mark.parametrize("text", [
    "@x = thread_local global double 1.0\ndefine ptr @entry() { ret ptr @x }",
    "@x = common global double 0.0\ndefine ptr @entry() { ret ptr @x }",
    "@x = external global [8 x i8]\n@p = global ptr getelementptr (i8, ptr @x, i64 4)\n"
    "define ptr @entry() { ret ptr @p }",
], ids=["data of threads", "data of several files", "a place in another library"])
def test_what_only_llvm_links_is_left_to_it(text: str) -> None:
    assert isinstance(module_code(text, 2).code, bytes)
    for other in (b"", b"\x7fELF", b"\xfe\xed\xfa\xcf" * 8):  # no object file, or one of another system
        assert linker.linked(other, ["entry"]) is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_memory_is_never_writable_and_executable(loads: Loads) -> None:
    address = loads(TEXT)["entry"]
    with open("/proc/self/maps", encoding="ascii") as maps:
        (mode,) = [line.split()[1] for line in maps
                   if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)]
    assert mode.startswith("r-x")


@pytest.mark.skipif(not HAS_IMAGES, reason="code that LLVM loads stays")
def test_code_of_kernels_goes_with_the_functions_that_launch_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two functions that share a kernel, by the plan and by what is on disk, and an entry that calls without Python."""
    monkeypatch.setattr(kernels, "MOST", 0)
    monkeypatch.setattr(kernels, "_last", OrderedDict())
    x = sc.vector("x")

    def made() -> list[Any]:
        e = sc.sum(sc.sin(x) * 0.123)
        found = [sc.compile(e, [x]), sc.compile([e], [x])]
        for f in found * 3:
            f(np.ones(3))
        return found

    def new() -> set[str]:
        gc.collect()
        return set(machine_code._kernels) - before

    before = set(machine_code._kernels)
    for _ in range(2):
        first, second = made()
        assert len(new()) == 1
        del first
        assert len(new()) == 1 and second(np.zeros(4)) == [0.0]
        del second
        assert not new()


def test_the_last_kernels_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a function that is made again and again is compiled once."""
    monkeypatch.setattr(kernels, "MOST", 3)
    monkeypatch.setattr(kernels, "_last", OrderedDict())
    x = sc.vector("x")

    def counted(k: int) -> int:
        before = kernels.compile_count()
        sc.compile(sc.tan(x) * (k + 0.321), [x], mode="debug")(np.ones(2))
        gc.collect()
        return kernels.compile_count() - before

    assert [counted(k) for k in (0, 1, 2, 0, 3, 0, 1)] == [1, 1, 1, 0, 1, 0, 1]


def test_a_process_may_end_while_threads_run_kernels() -> None:
    """Those of functions that nothing but the thread has, whose code is freed as long as Python runs."""
    code = """
import threading, numpy as np, symc as sc
from symc.runtime.cpu import kernels
kernels.MOST = 0
x, runs = sc.vector("x"), threading.Event()
def work():
    f = sc.compile(sc.sum(sc.sin(x)), [x], threads=2)
    a = np.ones(1_000_000)
    while True:
        f(a)
        runs.set()
threading.Thread(target=work, daemon=True).start()
runs.wait()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr


def test_code_that_was_compiled_before_needs_no_compiler(tmp_path: Path) -> None:
    """A function that is saved is loaded and run without llvmlite, and without what writes its texts."""
    x = sc.vector("x")
    sc.compile(sc.exp(x).sum() + sc.max(x), [x]).save(path := tmp_path / "f.symc")
    program = f"""
import sys, numpy as np, symc as sc
print(sc.load({str(path)!r})(np.zeros(3)), *[m for m in ("llvmlite", "numba", "scipy", "symc.opt") if m in sys.modules])
"""
    env = {**os.environ, object_cache.FOLDER: str(tmp_path / "cache")}
    said = [subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
            for _ in range(2)]
    assert said[1] == "3.0\n" or not HAS_IMAGES


def test_a_module_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    written: list[str] = []

    def found(write: Callable[[], str]) -> int:
        return machine_code.load_module("a module of tests", lambda: written.append("") or write(), 2)("entry")

    first, second = (found(lambda: "define void @entry() { ret void }") for _ in range(2))
    assert len(written) == 1 and first != second


class Allocations(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "used", "fordblks", "keepcost")]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="asks glibc")
def test_compilers_keep_nothing_of_what_they_compiled() -> None:
    """Of a module that is optimized by all passes, by few, and given the bodies of rare sides."""
    asked = ctypes.CDLL(None).mallinfo2
    asked.restype = Allocations
    line, d = "def kernel(n, a, b):\n    for i in range(n):\n        b[i] = sin(a[i])\n", np.dtype("f8")
    kernel = kernel_ir(Source(line, ("n",), (d,), (d,)))
    machine = target_machine()

    def compile_all() -> None:
        with lock:
            machine.emit_object(optimized(kernel, machine))
        module_code(TEXT, 1)

    for _ in range(3):
        compile_all()
    before = asked().used
    for _ in range(5):
        compile_all()
    assert asked().used - before < 5 * 10_000


def test_kernels_are_the_same_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
