"""Pieces of a native function whose objects and addresses are pointers to 64-bit words (``entry_ir``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Words:
    """A function with the signature of a builtin. ``python``: what it calls by name, see ``entry_ir.PYTHON``."""

    def __init__(self, module: Any, ir: Any, python: Mapping[str, str], name: str):
        self.ir, self.i64, self.i32, self.i8 = ir, ir.IntType(64), ir.IntType(32), ir.IntType(8)
        self.word = word = self.i64.as_pointer()
        types = {"p": word, "i": self.i32, "l": self.i64, "v": ir.VoidType()}
        self.python = {
            n: ir.Function(module, ir.FunctionType(types[s[0]], [types[t] for t in s[1:]]), n)
            for n, s in python.items()
        }
        self.f = ir.Function(module, ir.FunctionType(word, [word, word, self.i64, word]), name)
        self.b = ir.IRBuilder(self.f.append_basic_block("entry"))
        self.null = ir.Constant(word, None)

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, int(k))

    def pointer(self, word: Any) -> Any:
        return self.b.inttoptr(word, self.word)

    def at(self, base: Any, index: Any) -> Any:
        return self.b.gep(base, [index], source_etype=self.i64)

    def load(self, base: Any, index: Any) -> Any:
        return self.b.load(self.at(base, self.const(index) if isinstance(index, int) else index), typ=self.i64)

    def object(self, base: Any, index: Any) -> Any:
        return self.pointer(self.load(base, index))

    def half(self, base: Any, index: int) -> Any:
        """The int in the first four bytes of a word."""
        at = self.b.bitcast(self.at(base, self.const(index)), self.i32.as_pointer())
        return self.b.zext(self.b.load(at, typ=self.i32), self.i64)

    def store(self, base: Any, index: int, word: int) -> None:
        self.b.store(self.const(word), self.at(base, self.const(index)))

    def equal(self, a: Any, c: Any) -> Any:
        return self.b.icmp_unsigned("==", a, c)

    def call(self, name: str, *arguments: Any) -> Any:
        return self.b.call(self.python[name], arguments)

    def need(self, condition: Any, otherwise: Any) -> None:
        """Go to the block ``otherwise`` unless it holds."""
        further = self.f.append_basic_block()
        self.b.cbranch(condition, further, otherwise)
        self.b.position_at_end(further)

    def each(self, n: Any, body: Callable[[Any], Any]) -> None:
        """``body(k)`` for k < n."""

        def one(k: Any, nothing: Any) -> Any:
            body(k)
            return nothing

        self.count(n, self.null, one)

    def fold(self, n: Any, start: Any, body: Callable[[Any, Any], Any]) -> Any:
        """``found = body(k, found)`` for k < n, from ``start`` on; a word."""
        return self._loop(n, start, self.i64, body)

    def first(self, begin: Any, end: Any, holds: Callable[[Any], Any]) -> Any:
        """The first k from ``begin`` on of which it holds; ``end`` if there is none."""
        b = self.b
        return self.fold(end, end, lambda k, found: b.select(
            b.and_(b.icmp_signed(">=", k, begin), b.and_(holds(k), self.equal(found, end))), k, found))

    def count(self, n: Any, start: Any, body: Callable[[Any, Any], Any]) -> Any:
        """``found = body(k, found)`` for k < n, from ``start`` on; a pointer."""
        return self._loop(n, start, self.word, body)

    def _loop(self, n: Any, start: Any, type_: Any, body: Callable[[Any, Any], Any]) -> Any:
        b, f = self.b, self.f
        before, test, inside, done = b.block, *(f.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        k, found = b.phi(self.i64), b.phi(type_)
        b.cbranch(b.icmp_signed("<", k, n), inside, done)
        b.position_at_end(inside)
        new = body(k, found)
        for phi, first, after in ((k, self.const(0), b.add(k, self.const(1))), (found, start, new)):
            phi.add_incoming(first, before)
            phi.add_incoming(after, b.block)
        b.branch(test)
        b.position_at_end(done)
        return found
