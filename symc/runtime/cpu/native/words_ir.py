"""Functions on words, which are numbers and addresses of 64 bits, written through ``assembly``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.runtime.cpu.native.loops import loop


class Words:
    """Writes functions of a module. ``b`` builds the one that is being written."""

    b: Any

    def __init__(self, module: Any, ir: Any):
        self.module, self.ir = module, ir
        self.i64, self.i32, self.i8, self.void = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.VoidType()
        self.words = self.i64.as_pointer()

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, int(k))

    def pointer(self, word: Any) -> Any:
        """Address of words, which a word is."""
        return self.b.inttoptr(word, self.words)

    def at(self, base: Any, index: Any, type_: Any = None) -> Any:
        """Address of a word behind ``base``, or of an element of another type."""
        index = self.const(index) if isinstance(index, int) else index
        return self.b.gep(base, [index], source_etype=type_ or self.i64)

    def load(self, base: Any, index: Any, type_: Any = None) -> Any:
        return self.b.load(self.at(base, index, type_), typ=type_ or self.i64)

    def equal(self, a: Any, c: Any) -> Any:
        return self.b.icmp_unsigned("==", a, c)

    def different(self, a: Any, c: Any) -> Any:
        return self.b.icmp_unsigned("!=", a, c)

    def each(self, n: Any, body: Callable[[Any], Any]) -> None:
        """``body(k)`` for k < n."""
        loop(self.b, self.const(0), n, body)

    def fold(self, n: Any, start: Any, body: Callable[[Any, Any], Any]) -> Any:
        """``found = body(k, found)`` for k < n, from ``start`` on."""
        return loop(self.b, self.const(0), n, lambda k, found: [body(k, found)], start)[0]
