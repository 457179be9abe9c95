"""Routines for sums of products that BLAS does not have, as native code: every argument is an address."""

from __future__ import annotations

from typing import Any

from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import native_ir


def entry(name: str) -> Symbol:
    """A function of this module.

    ``scale_<letter>(x, number, n)`` multiplies n elements; ``scaled_<letter>(to, from, number, n)`` does that from one
    array to another. All are multiplied: 0 times nan is nan. ``nonzero_<letter>(flag, number)`` sets a byte.
    ``mirror_<letter>(a, n)`` copies what is below the diagonal of a square matrix to the other side.
    """
    kind, letter = name.rsplit("_", 1)
    return native_ir.entry(name, _Functions, letter, kind != "mirror")


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
        """Block by block, of as many rows as fit in a line of the cache, through memory of its own: rows of matrices
        often lie a power of two apart, where few of them fit into the cache together."""
        bits = (64 if letter in "dz" else 32) * (2 if letter in "cz" else 1)
        element, side = self.ir.IntType(bits), max(4, 512 // bits)
        with self.function(f"mirror_{letter}", 2) as (a, size):
            b, n, block = self.b, self.number(size), self.const(side)
            own = b.bitcast(b.alloca(element, side * side), self.i64.as_pointer())

            def least(x: Any, y: Any) -> Any:
                return b.select(b.icmp_signed("<", x, y), x, y)

            def move(source: tuple[Any, Any, Any, Any], to: tuple[Any, Any, Any, Any]) -> None:
                (x, i, j, width), (y, k, m, other) = source, to
                found = self.load(x, b.add(b.mul(i, width), j), element)
                b.store(found, self.at(y, b.add(b.mul(k, other), m), element))

            def square(rows: Any, columns: Any) -> None:
                first, start = b.mul(rows, block), b.mul(columns, block)
                height, width = least(block, b.sub(n, first)), least(block, b.sub(n, start))
                zero = self.const(0)
                self.count(zero, height, lambda i: self.count(zero, width, lambda j: move(
                    (a, b.add(first, i), b.add(start, j), n), (own, j, i, block))))
                on_diagonal = b.icmp_signed("==", rows, columns)
                self.count(zero, width, lambda j: self.count(
                    b.select(on_diagonal, j, zero), height, lambda i: move(
                        (own, j, i, block), (a, b.add(start, j), b.add(first, i), n))))

            blocks = b.sdiv(b.add(n, self.const(side - 1)), block)
            self.count(self.const(0), blocks, lambda r: self.count(
                self.const(0), b.add(r, self.const(1)), lambda c: square(r, c)))
