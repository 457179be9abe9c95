"""LLVM called directly: the same machine code as through llvmlite's own modules, and they serve other versions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import llvmlite
import numpy as np
import pytest

import symc as sc
from symc.runtime import machine_code
from symc.runtime.compilers import llvm, llvm_compile, llvm_rarely

pytestmark = pytest.mark.skipif(not machine_code.LINKED, reason="llvmlite's modules serve this platform")

#: A loop that is vectorized, and a call of a function with a rare side whose bodies are linked in afterwards.
TEXT = """define void @f(i64 %n, ptr noalias %x) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %j, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %p
  %w = fmul double %v, %v
  store double %w, ptr %p
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@pytest.fixture
def llvmlites(monkeypatch: pytest.MonkeyPatch):
    """Compile through llvmlite's modules."""

    def use() -> None:
        monkeypatch.setattr(llvm, "KNOWN", ((0, 0), (0, 1)))
        for known in (llvm._library, machine_code._machine):
            known.cache_clear()

    yield use
    monkeypatch.undo()
    for known in (llvm._library, machine_code._machine):
        known.cache_clear()


def test_it_serves_this_version():
    assert llvm.llvm() is llvm


def code(text: str) -> bytes:
    machine = machine_code._machine()
    return machine.emit_object(llvm_compile.optimized(text, machine))


def texts() -> list[str]:
    """Texts of kernels: a loop, a sum, a sine, whose far side is a body that is linked in."""
    found: list[str] = []
    original = llvm_compile.optimized
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm_compile, "optimized", lambda text, machine: found.append(text) or original(text, machine))
        patch.setenv("SYMC_CACHE_DIR", "off")
        x = sc.input("x", shape=("n",))
        sc.compile([sc.sin(x * 3.25), sc.sum(x * 0.125)], [x])(np.ones(7))
    return found


def test_the_code_is_the_same(llvmlites):
    all_texts = [TEXT, *texts()]
    assert any(llvm_rarely.MARK in text for text in all_texts)
    direct = [code(text) for text in all_texts]
    llvmlites()
    assert llvm.llvm().__name__ == "llvmlite.binding"
    assert [code(text) for text in all_texts] == direct


def test_the_processor_is_the_same():
    from llvmlite import binding

    assert llvm.get_host_cpu_name() == binding.get_host_cpu_name()
    assert llvm.get_host_cpu_features() == binding.get_host_cpu_features()
    assert llvm.get_host_cpu_features().flatten() == binding.get_host_cpu_features().flatten()


def test_mistakes_are_told():
    with pytest.raises(RuntimeError, match="expected top-level entity"):
        llvm.parse_assembly("nonsense", llvm.create_context())
    one, other = (llvm.parse_assembly(TEXT, context) for context in [llvm.create_context()] * 2)
    with pytest.raises(RuntimeError, match="symbol multiply defined"):
        one.link_in(other)


def test_an_unknown_version_is_not_called(llvmlites, monkeypatch: pytest.MonkeyPatch):
    llvmlites()
    with pytest.raises(LookupError, match=llvmlite.__version__):
        llvm._library()


def test_everything_is_disposed_of(monkeypatch: pytest.MonkeyPatch):
    """Each module, context and pass manager once: ``_Owned`` forgets nothing, and nothing holds them in a cycle."""
    disposed: list[str] = []
    original = llvm._Owned.__del__
    made: list[str] = []
    begin = llvm._Owned.__init__

    def note_begin(self, *args):
        made.append(type(self).__name__)
        begin(self, *args)

    def note_end(self):
        disposed.append(type(self).__name__)
        original(self)

    monkeypatch.setattr(llvm._Owned, "__init__", note_begin)
    monkeypatch.setattr(llvm._Owned, "__del__", note_end)
    gc.disable()
    try:
        machine = machine_code._new_machine()
        llvm_compile.optimized(TEXT, machine)
        del machine
    finally:
        gc.enable()
    assert sorted(made) == sorted(disposed) and "Module" in made and "ModulePassManager" in made


def test_a_process_that_compiles_imports_no_more_of_llvmlite(tmp_path: Path):
    program = """
import sys, numpy as np, symc as sc
x = sc.input("x", shape=("n",))
f = sc.compile(sc.sum(sc.exp(x)), [x])
for _ in range(3):
    assert abs(f(np.zeros(3)) - 3) < 1e-12
print(*sorted(m for m in sys.modules if m.startswith("llvmlite")))
"""
    environment = {**os.environ, "SYMC_CACHE_DIR": str(tmp_path / "empty")}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["llvmlite", "llvmlite._version"]
