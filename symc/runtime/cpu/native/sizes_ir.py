"""Instructions of the native interpreter that look at the arguments of a call, and compute what depends on their sizes.

What a number of 64 bits does not hold is as large as one can be, and the word BAD says so.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cpu.native.instructions import DATA, NOT_ARRAY, REFUSED, Word
from symc.runtime.cpu.native.words_ir import Words


class Instructions(Words):
    """Writes instructions. ``ip`` is the position in ``code`` of the one that runs, ``here`` its address; ``fetch``
    runs the next."""

    data: Any
    code: Any
    ip: Any
    here: Any
    fetch: Any

    def code_of(self, data: Any) -> Any:
        return self.b.gep(data, [self.b.load(data, typ=self.i64)], source_etype=self.i64)

    def operand(self, k: Any) -> Any:
        """Operand k of the instruction; -1 is the instruction itself."""
        offset = self.const(k + 1) if isinstance(k, int) else self.b.add(k, self.const(1))
        return self.load(self.here, offset)

    def slot(self, k: Any) -> Any:
        """Pointer to the word that operand k names."""
        return self.at(self.data, self.operand(k))

    def word(self, k: Any) -> Any:
        """The word that operand k names."""
        return self.b.load(self.slot(k), typ=self.i64)

    def address(self, k: Any, type_: Any = None) -> Any:
        """The word that operand k names, as a pointer."""
        return self.b.inttoptr(self.word(k), (type_ or self.i64).as_pointer())

    def unaligned(self, pointer: Any) -> Any:
        return self.b.load(pointer, typ=self.i64, align=1)

    def go(self, target: Any) -> None:
        """Run the instruction at ``target`` next."""
        self.ip.add_incoming(target, self.b.block)
        self.b.branch(self.fetch)

    def next(self, operands: Any) -> None:
        """Run the instruction after this one, which has that many operands."""
        words = self.const(operands + 1) if isinstance(operands, int) else self.b.add(operands, self.const(1))
        self.go(self.b.add(self.ip, words))

    def jump_if(self, condition: Any, target: int, operands: int) -> None:
        after = self.b.add(self.ip, self.const(operands + 1))
        self.go(self.b.select(condition, self.operand(target), after))


class Sizes(Instructions):
    """Writes those for sizes."""

    def argument(self) -> None:
        b, slot = self.b, self.slot(0)
        header = self.pointer(b.load(slot, typ=self.i64))
        kind, data, n, dims = (self.load(header, DATA // 8 + k) for k in range(-1, 3))
        n = b.and_(n, self.const(0xFFFFFFFF))
        with b.if_then(self.different(kind, self.operand(3)), likely=False):
            b.ret(self.const(NOT_ARRAY))
        with b.if_then(self.different(n, self.operand(1)), likely=False):
            b.ret(self.const(REFUSED))
        b.store(data, slot)
        dims, own = self.pointer(dims), self.slot(2)

        def one(k: Any, changed: Any) -> Any:
            size, mine = self.load(dims, k), self.at(own, k)
            different = b.xor(size, b.load(mine, typ=self.i64))
            b.store(size, mine)
            return b.or_(changed, different)

        changed = self.fold(n, self.const(0), one)
        with b.if_then(self.different(changed, self.const(0)), likely=False):
            b.store(self.const(1), self.at(self.data, Word.CHANGED))
        self.next(4)

    def bad(self, condition: Any) -> None:
        with self.b.if_then(condition, likely=False):
            self.b.store(self.const(1), self.at(self.data, Word.BAD))

    def result(self, x: Any) -> None:
        self.b.store(x, self.slot(0))
        self.next(3)

    def saturated(self, x: Any, wrong: Any, negative: Any) -> None:
        """``x``, or what is furthest in its direction."""
        b = self.b
        self.bad(wrong)
        far = b.select(negative, self.const(-(2**63) + 1), self.const(2**63 - 1))
        self.result(b.select(wrong, far, x))

    def add(self) -> None:
        b, x, y = self.b, self.word(1), self.word(2)
        total = b.add(x, y)
        wrong = b.icmp_signed("<", b.and_(b.xor(x, total), b.xor(y, total)), self.const(0))
        self.saturated(total, wrong, b.icmp_signed("<", x, self.const(0)))

    def mul(self) -> None:
        b, wide = self.b, self.ir.IntType(128)
        product = b.mul(b.sext(self.word(1), wide), b.sext(self.word(2), wide))
        low = b.trunc(product, self.i64)
        wrong = b.icmp_signed("!=", b.sext(low, wide), product)
        self.saturated(low, wrong, b.icmp_signed("<", product, self.ir.Constant(wide, 0)))

    def divided(self) -> tuple[Any, Any]:
        """Quotient and remainder, as Python rounds; 0 for what is divided by 0."""
        b, x, y = self.b, self.word(1), self.word(2)
        zero, minus = b.icmp_signed("==", y, self.const(0)), b.icmp_signed("==", y, self.const(-1))
        self.bad(zero)
        safe = b.select(b.or_(zero, minus), self.const(1), y)
        quotient = b.sdiv(x, safe)
        rest = b.sub(x, b.mul(quotient, safe))
        off = b.and_(b.icmp_signed("!=", rest, self.const(0)),
                     b.icmp_signed("<", b.xor(rest, safe), self.const(0)))
        quotient = b.select(off, b.sub(quotient, self.const(1)), quotient)
        rest = b.select(off, b.add(rest, safe), rest)
        quotient = b.select(minus, b.sub(self.const(0), quotient), quotient)
        return b.select(zero, self.const(0), quotient), b.select(zero, self.const(0), rest)

    def floordiv(self) -> None:
        self.result(self.divided()[0])

    def mod(self) -> None:
        self.result(self.divided()[1])

    def least(self, sign: str) -> None:
        b, x, y = self.b, self.word(1), self.word(2)
        self.result(b.select(b.icmp_signed(sign, x, y), x, y))

    def min(self) -> None:
        self.least("<")

    def max(self) -> None:
        self.least(">")

    def less(self) -> None:
        self.result(self.b.zext(self.b.icmp_signed("<", self.word(1), self.word(2)), self.i64))

    def stop_if(self, sign: str) -> None:
        with self.b.if_then(self.b.icmp_signed(sign, self.word(0), self.word(1)), likely=False):
            self.b.ret(self.operand(2))
        self.next(3)

    def stop_if_less(self) -> None:
        self.stop_if("<")

    def stop_unless_equal(self) -> None:
        self.stop_if("!=")
