"""Native functions of vectors, written through a builder: every argument is an address, as BLAS has it.

Sizes are addresses of 64-bit integers. Functions of numbers are in the language of kernels (``symc.runtime.routines``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from symc.ir.locks import new_lock
from symc.runtime.cache.machine_code import Symbol, load_module
from symc.runtime.cpu.native.loops import loop
from symc.runtime.cpu.native.words_ir import Words

_lock = new_lock()
_addresses: dict[type[Functions], Callable[[str], int]] = {}


def entry(name: str, module: type[Functions], letter: str = "") -> Symbol:
    """A function of a module, which is compiled once; of that for a kind of numbers, if there is one for each."""
    if letter:
        module = _variant(module, letter)
    with _lock:
        if module not in _addresses:
            level = 3 if module.vectorized else 2
            _addresses[module] = load_module(module.title(), lambda: _text(module), level)
    address = _addresses[module](f"symc_{name}")
    assert address, name
    return Symbol(address, f"own {module.__module__} {name}")


@cache
def _variant(module: type[Functions], letter: str) -> type[Functions]:
    return type(module.__name__, (module,), {"letter": letter, "__module__": module.__module__})


def _text(functions: type[Functions]) -> str:
    from symc.runtime.cpu.native import assembly

    module = assembly.Module()
    functions(module, assembly).write()
    return str(module)


class Functions(Words, ABC):
    """Writes the functions of a module. Indices are 64 bits wide."""

    vectorized = False  # for loops over many numbers; compiling takes longer
    letter = ""  # the kind of numbers, where there is a module for each

    @classmethod
    def title(cls) -> str:
        """Title of the module, which tells it apart from others."""
        return f"{cls.__module__}.{cls.letter}"

    @abstractmethod
    def write(self) -> None:
        """Write all functions of the module."""

    @contextmanager
    def function(self, name: str, count: int) -> Iterator[list[Any]]:
        f = self.ir.Function(self.module, self.ir.FunctionType(self.void, [self.words] * count), f"symc_{name}")
        self.b = self.ir.IRBuilder(f.append_basic_block("entry"))
        yield list(f.args)
        self.b.ret_void()

    def number(self, pointer: Any) -> Any:
        return self.b.load(pointer, typ=self.i64)

    def count(self, start: Any, stop: Any, body: Callable[[Any], Any]) -> None:
        """``body(k)`` for start <= k < stop."""
        loop(self.b, start, stop, body)
