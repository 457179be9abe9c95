"""What BLAS has no routine for and sums of products need, as native code: every argument is an address."""

from __future__ import annotations

from typing import Any

from symc.runtime import native_ir

#: Elements of a square block that is turned over at a time.
BLOCK = 16


def entry(name: str) -> int:
    """The address of a function of this module.

    ``scale_<letter>(x, number, n)`` multiplies n elements; ``scaled_<letter>(to, from, number, n)`` does that from one
    array to another. All are multiplied: 0 times nan is nan. ``nonzero_<letter>(flag, number)`` sets a byte.
    ``mirror_<letter>(a, n)`` copies what is below the diagonal of a square matrix to the other side.
    """
    kind, letter = name.rsplit("_", 1)
    return native_ir.entry(name, _MODULES[kind != "mirror", letter])


class _Functions(native_ir.Functions):
    letter: str

    def write(self) -> None:
        if self.vectorized:
            self.scale(self.letter, "scale", 0)
            self.scale(self.letter, "scaled", 1)
            self.nonzero(self.letter)
        else:
            self.mirror(self.letter)

    def scale(self, letter: str, name: str, source: int) -> None:
        """``source``: which argument is read; the first is written."""
        real, parts = self.parts(letter)
        with self.function(f"{name}_{letter}", 3 + source) as (*arrays, number, size):
            b = self.b
            factor = [self.load(number, self.const(k), real) for k in range(parts)]

            def one(i: Any) -> None:
                places = [b.add(b.mul(i, self.const(parts)), self.const(k)) for k in range(parts)]
                x = [self.load(arrays[source], p, real) for p in places]
                made = [b.fmul(x[0], factor[0])]
                if parts == 2:
                    made = [b.fsub(made[0], b.fmul(x[1], factor[1])),
                            b.fadd(b.fmul(x[0], factor[1]), b.fmul(x[1], factor[0]))]
                for p, y in zip(places, made, strict=True):
                    b.store(y, self.at(arrays[0], p, real))

            self.count(self.const(0), self.number(size), one)

    def nonzero(self, letter: str) -> None:
        real, parts = self.parts(letter)
        with self.function(f"nonzero_{letter}", 2) as (flag, number):
            b, byte = self.b, self.ir.IntType(8)
            found = [b.fcmp_unordered("!=", self.load(number, self.const(k), real), self.ir.Constant(real, 0))
                     for k in range(parts)]
            b.store(b.zext(b.or_(*found) if parts == 2 else found[0], byte), self.at(flag, self.const(0), byte))

    def mirror(self, letter: str) -> None:
        """Block by block, so that both sides stay in the cache."""
        real, parts = self.parts(letter)
        element = self.ir.IntType(parts * (32 if letter in "sc" else 64))
        with self.function(f"mirror_{letter}", 2) as (a, size):
            b, n, block = self.b, self.number(size), self.const(BLOCK)

            def least(x: Any, y: Any) -> Any:
                return b.select(b.icmp_signed("<", x, y), x, y)

            def copy(i: Any, j: Any) -> None:
                x = self.load(a, b.add(b.mul(i, n), j), element)
                b.store(x, self.at(a, b.add(b.mul(j, n), i), element))

            def square(rows: Any, columns: Any) -> None:
                first, start = b.mul(rows, block), b.mul(columns, block)
                self.count(first, least(b.add(first, block), n), lambda i: self.count(
                    start, least(b.add(start, block), i), lambda j: copy(i, j)))

            blocks = b.sdiv(b.add(n, self.const(BLOCK - 1)), block)
            self.count(self.const(0), blocks, lambda r: self.count(
                self.const(0), b.add(r, self.const(1)), lambda c: square(r, c)))


#: A module for each kind of numbers: compiling one takes 10 to 40 ms.
_MODULES = {(vectorized, letter): type("_Functions", (_Functions,), {"letter": letter, "vectorized": vectorized})
            for vectorized in (False, True) for letter in "sdcz"}
