"""Routines that LAPACK does not have, as native code with its convention: every argument is an address.

One LLVM module, compiled when the first plan with linear algebra is loaded. Matrices are square and contiguous; sizes
are addresses of 64-bit integers.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import native_ir


def entry(name: str) -> Symbol:
    """A function of this module.

    ``transpose_<letter>(to, from, m, n)`` writes the transpose of the m rows of ``from``. ``order_<bits>(perm, pivots,
    n)`` makes LAPACK's exchanges (1-based, as wide as the library's integers) the order of the rows they lead to.
    ``take(to, from, perm, n, nbytes)`` has row i of ``to`` be row perm[i] of ``from``, ``put`` the other way round.
    ``singular_<letter>(info, a, n)`` sets the integer ``info`` to 1 + the first place where the diagonal is 0, or to 0;
    ``outside(info, perm, n)`` to 1 if an index is no row.
    """
    return native_ir.entry(name, _Functions)


class _Functions(native_ir.Functions):
    def write(self) -> None:
        for letter in "sdcz":
            self.transpose(letter)
            self.singular(letter)
        for bits in (32, 64):
            self.order(bits)
        self.outside()
        self.rows("take", 0)
        self.rows("put", 1)

    def transpose(self, letter: str) -> None:
        real, parts = self.parts(letter)
        with self.function(f"transpose_{letter}", 4) as (to, source, rows, columns):
            b, m, n = self.b, self.number(rows), self.number(columns)

            def move(i: Any, j: Any) -> None:
                first = b.mul(b.add(b.mul(j, m), i), self.const(parts))
                second = b.mul(b.add(b.mul(i, n), j), self.const(parts))
                for k in range(parts):
                    part = self.const(k)
                    b.store(self.load(source, b.add(second, part), real), self.at(to, b.add(first, part), real))

            self.count(self.const(0), m, lambda i: self.count(self.const(0), n, lambda j: move(i, j)))

    def singular(self, letter: str) -> None:
        real, parts = self.parts(letter)
        with self.function(f"singular_{letter}", 3) as (info, a, size):
            b, n, zero = self.b, self.number(size), self.ir.Constant(real, 0)
            b.store(self.const(0), info)

            def look(i: Any) -> None:
                first = b.mul(b.mul(i, b.add(n, self.const(1))), self.const(parts))
                found = [
                    b.fcmp_ordered("==", self.load(a, b.add(first, self.const(k)), real), zero) for k in range(parts)
                ]
                both = b.and_(*found) if parts == 2 else found[0]
                with b.if_then(b.and_(both, b.icmp_signed("==", self.number(info), self.const(0))), likely=False):
                    b.store(b.add(i, self.const(1)), info)

            self.count(self.const(0), n, look)

    def order(self, bits: int) -> None:
        """``bits``: how wide the library's integers are."""
        with self.function(f"order_{bits}", 3) as (perm, pivots, size):
            b, n = self.b, self.number(size)
            self.count(self.const(0), n, lambda i: b.store(i, self.at(perm, i, self.i64)))

            def exchange(i: Any) -> None:
                found = self.load(pivots, i, self.ir.IntType(bits))
                other = b.sub(b.sext(found, self.i64) if bits < 64 else found, self.const(1))
                p, q = self.at(perm, i, self.i64), self.at(perm, other, self.i64)
                x, y = b.load(p, typ=self.i64), b.load(q, typ=self.i64)
                b.store(y, p)
                b.store(x, q)

            self.count(self.const(0), n, exchange)

    def outside(self) -> None:
        with self.function("outside", 3) as (info, perm, size):
            b, n = self.b, self.number(size)
            b.store(self.const(0), info)

            def look(i: Any) -> None:
                wrong = b.icmp_unsigned(">=", self.load(perm, i, self.i64), n)
                b.store(b.or_(self.number(info), b.zext(wrong, self.i64)), info)

            self.count(self.const(0), n, look)

    def rows(self, name: str, moved: int) -> None:
        """Row i of one array is row perm[i] of the other; ``moved``: which of (to, from) is the other."""
        byte = self.ir.IntType(8)
        with self.function(name, 5) as (to, source, perm, size, nbytes):
            b, n, length = self.b, self.number(size), self.number(nbytes)

            def one(i: Any) -> None:
                other = self.load(perm, i, self.i64)
                first, second = (other, i) if moved else (i, other)
                p, q = self.at(to, b.mul(first, length), byte), self.at(source, b.mul(second, length), byte)
                words = self.i64.as_pointer()
                b.call(self.memcpy, [b.bitcast(p, words), b.bitcast(q, words), length])

            self.count(self.const(0), n, one)
