"""The writer of LLVM's text writes what ``llvmlite.ir`` writes: the native functions become the same machine code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llvmlite import ir

from symc.runtime.compilers.llvm import llvm
from symc.runtime.machine_code import _new_machine
from symc.runtime.native import blas_ir, entry_ir, executor_ir, lapack_ir, native_ir, text_ir


def concrete(base: Any) -> Iterator[Any]:
    for sub in base.__subclasses__():
        yield from concrete(sub)
        if not inspect.isabstract(sub):
            yield sub


def functions(module: type, ir: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    text = ir.Module("functions")
    module(text, ir).write()
    return str(text)


def printed(write: Callable[[], str]) -> Callable[..., str]:
    """What a module writes with what it takes for ``text_ir``."""

    def text(ir: Any, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr("symc.runtime.native.text_ir", ir)
        return write()

    return text


CASES: dict[str, Callable[..., str]] = {"executor": printed(executor_ir._module), "entry": printed(entry_ir._text)}
for _module in (blas_ir, lapack_ir):
    for _sub in concrete(native_ir.Functions):
        if _sub.__module__ == _module.__name__:
            CASES[_sub.title()] = lambda ir, patch, sub=_sub: functions(sub, ir, patch)


def code(text: str) -> bytes:
    return _new_machine(2).emit_object(llvm().parse_assembly(text, llvm().create_context()))


@pytest.mark.parametrize("name", CASES)
def test_the_same_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = (CASES[name](module, monkeypatch) for module in (text_ir, ir))
    assert code(own) == code(other)


def test_the_comparison_sees_a_difference() -> None:
    codes = []
    for how in ("add", "sub"):
        module = text_ir.Module("one")
        i64 = text_ir.IntType(64)
        f = text_ir.Function(module, text_ir.FunctionType(i64, [i64, i64]), "f")
        b = text_ir.IRBuilder(f.append_basic_block("entry"))
        b.ret(getattr(b, how)(*f.args))
        codes.append(code(str(module)))
    assert codes[0] != codes[1]
