"""Forward and back substitution in triangles of few rows, for several right sides at a time.

A library sets up a solve for 100 ns and more, and takes 1 GFLOP/s where a triangle is smaller than its tiles: 5,000
right sides of 6 rows took 195 us, and take 9. Where the size is known, `small_ir` has it in its code.
"""

from __future__ import annotations

from typing import Any

from symc.ir.dim import Size
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.arithmetic import All, Less, at_least, both
from symc.runtime.cpu.native import native_ir

#: The most rows and the fewest right sides that are taken here, and how many of these stay in the cache meanwhile.
MOST, FEWEST, BESIDE = 32, 4, 128


def serves(letter: str, n: Size, k: Size) -> All | Less | int:
    """1 where n rows and k right sides are best taken here."""
    return both(at_least(MOST, n), at_least(k, FEWEST)) if letter in "sd" else 0


def entry(name: str) -> Symbol:
    """A function of this module, by its name.

    ``substitute_<letter>(x, a, n, k, row, column, forwards, unit)``: x, n rows of k, becomes what the triangle gives
    for x, whose element (i, j) is a[i * row + j * column]; from its first row, if ``forwards``, or from its last."""
    return native_ir.entry(name, _MODULES[name[-1]])


class _Functions(native_ir.Functions):
    vectorized = True

    def write(self) -> None:
        real, zero = self.parts(self.letter)[0], self.const(0)
        with self.function(f"substitute_{self.letter}", 8) as (x, a, *numbers):
            b = self.b
            n, k, row, column, forwards, unit = map(self.number, numbers)

            def place(s: Any) -> Any:
                return b.select(b.icmp_signed("!=", forwards, zero), s, b.sub(b.sub(n, self.const(1)), s))

            def factor(i: Any, j: Any) -> Any:
                return self.load(a, b.add(b.mul(i, row), b.mul(j, column)), real)

            def block(number: Any) -> None:
                first = b.mul(number, self.const(BESIDE))
                end = b.add(first, self.const(BESIDE))
                end = b.select(b.icmp_signed("<", end, k), end, k)

                def each(i: Any, new: Any) -> None:
                    start = b.mul(i, k)
                    self.count(first, end, lambda c: b.store(new(c, self.load(x, b.add(start, c), real)),
                                                             self.at(x, b.add(start, c), real)))

                def solved(s: Any) -> None:
                    i = place(s)

                    def less(t: Any) -> None:
                        f, other = factor(i, place(t)), b.mul(place(t), k)
                        each(i, lambda c, y: b.fsub(y, b.fmul(f, self.load(x, b.add(other, c), real), ("contract",)),
                                                    ("contract",)))

                    self.count(zero, s, less)
                    with b.if_then(b.icmp_signed("==", unit, zero)):
                        diagonal = factor(i, i)
                        each(i, lambda c, y: b.fdiv(y, diagonal))

                self.count(zero, n, solved)

            blocks = b.udiv(b.add(k, self.const(BESIDE - 1)), self.const(BESIDE))
            self.count(zero, blocks, block)


_MODULES = {letter: type("_Functions", (_Functions,), {"letter": letter, "__module__": __name__}) for letter in "sd"}
