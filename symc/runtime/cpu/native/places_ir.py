"""The places where a mask holds, by native code: every argument is an address."""

from __future__ import annotations

from typing import Any

from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import native_ir


def entry(name: str) -> Symbol:
    """``places(to, mask, n, size, status)``: writes ``size`` places, never more; ``status`` is 0 if the mask holds at
    so many."""
    return native_ir.entry(name, _Places)


class _Places(native_ir.Functions):
    def write(self) -> None:
        byte = self.ir.IntType(8)
        with self.function("places", 5) as (to, mask, length, size, status):
            b, n, most = self.b, self.number(length), self.number(size)
            found = b.alloca(self.i64)
            b.store(self.const(0), found)

            def one(i: Any) -> None:  # without a branch on the mask, which may be anything
                k = self.number(found)
                with b.if_then(b.icmp_unsigned("<", k, most), likely=True):
                    b.store(i, self.at(to, k, self.i64))
                there = b.icmp_unsigned("!=", self.load(mask, i, byte), self.ir.Constant(byte, 0))
                b.store(b.add(k, b.zext(there, self.i64)), found)

            def eight(j: Any) -> None:
                word = b.load(self.at(mask, j, self.i64), typ=self.i64, align=1)
                with b.if_then(b.icmp_unsigned("!=", word, self.const(0))):
                    for i in range(8):
                        one(b.add(b.shl(j, self.const(3)), self.const(i)))

            words = b.lshr(n, self.const(3))
            self.count(self.const(0), words, eight)
            self.count(b.shl(words, self.const(3)), n, one)
            b.store(b.sub(self.number(found), most), status)
