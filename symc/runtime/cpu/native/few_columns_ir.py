"""Products with few columns: a matrix times two to eight columns, of a network's last layer, of votes, of a few right
sides.

BLAS fills its tiles with columns that are not there. Here a row of the matrix is read where it lies, by vectors, for up
to four columns at a time, which are copied to lie in order; rows are taken three at a time, so that numbers of the
columns are read once for these. On one core with AVX2: 300 x 300 by 300 x 5 in f64 in 22 instead of 90 us.
"""

from __future__ import annotations

from typing import Any

from symc.ir.dim import Size
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.arithmetic import All, Less, at_least, both
from symc.runtime.cpu.native import few_rows_ir, native_ir
from symc.runtime.cpu.native.loops import loop

#: Bounds within which this is faster than OpenBLAS: columns; rows; terms of a sum; bytes of the matrix, which is read
#: for each tile's columns.
FEWEST, MOST, ROWS, TERMS, BYTES = 2, {"s": 7, "d": 8}, 8, 32, 8 << 20
#: How many bytes of a column are in order at a time: eight are half of the first cache.
BLOCK = 2048
#: Columns of a tile, the most first, and its rows: sums that fit sixteen registers.
TILES = ((4, 2), (2, 4), (1, 4))


def serves(letter: str, m: Size, n: Size, k: Size) -> All | Less | int:
    """1 where a product of a row-major matrix, m x k, and one of n columns is best computed here."""
    if letter not in MOST:
        return 0
    small = at_least(BYTES, m * k * (4 if letter == "s" else 8))
    return both(at_least(n, FEWEST), at_least(MOST[letter], n), at_least(m, ROWS), at_least(k, TERMS), small)


def entry(name: str) -> Symbol:
    """A function of this module, by its name.

    ``few_columns_<letter>(a, b, c, alpha, beta, m, n, k, down, right)``: c = alpha a @ b + beta c, where elements of b
    below each other are ``down`` apart, beside each other ``right``; c is not read if beta is 0."""
    return native_ir.entry(name, _Functions, name[-1])


class _Functions(few_rows_ir.Vectors):
    def write(self) -> None:
        self.vectors(self.letter, few_rows_ir.lanes(self.letter))
        self.block = BLOCK // self.bytes
        kind = self.ir.FunctionType(self.real, [self.real, self.vector])
        self.sum = self.ir.Function(self.module, kind, f"llvm.vector.reduce.fadd.v{self.lanes}f{8 * self.bytes}")
        with self.function(f"few_columns_{self.letter}", 10) as (a, b, c, alpha, beta, *sizes):
            m, n, k, down, right = map(self.number, sizes)
            alpha, beta = (self.load(x, self.const(0), self.real) for x in (alpha, beta))
            self.columns = self.b.alloca(self.real, self.const(MOST[self.letter] * (self.block + self.lanes)))
            blocks = self.b.udiv(self.b.add(k, self.const(self.block - 1)), self.const(self.block))

            def block(p: Any) -> None:
                w, first = self.b, self.b.mul(p, self.const(self.block))
                left = w.sub(k, first)
                width = w.select(w.icmp_signed("<", left, self.const(self.block)), left, self.const(self.block))
                self._in_order(b, n, first, width, (down, right))
                kept = w.select(w.icmp_signed("==", p, self.const(0)), beta, self.ir.Constant(self.real, 1))
                self._tiles((a, c), (alpha, kept), (m, n, k), first, width)

            self.count(self.const(0), blocks, block)

    def _in_order(self, b: Any, n: Any, first: Any, width: Any, steps: Any) -> None:
        """Copy a block of the columns: whole vectors, then one that ends with what is left, zeros before."""
        down, right = steps
        rest = self.b.and_(width, self.const(self.lanes - 1))
        whole = self.b.sub(width, rest)

        def column(j: Any) -> None:
            w, to = self.b, self.b.mul(j, self.const(self.block + self.lanes))
            start = w.add(w.mul(first, down), w.mul(j, right))

            def put(place: Any, i: Any) -> None:
                x = self.load(b, self.b.add(start, self.b.mul(i, down)), self.real)
                self.b.store(x, self.at(self.columns, self.b.add(to, place), self.real))

            def zero(i: Any) -> None:
                place = self.at(self.columns, self.b.add(self.b.add(to, whole), i), self.real)
                self.b.store(self.ir.Constant(self.real, 0), place)

            self.count(self.const(0), whole, lambda i: put(i, i))
            self.count(self.const(0), self.const(self.lanes), zero)
            behind = w.sub(self.const(self.lanes), rest)
            self.count(whole, width, lambda i: put(self.b.add(i, behind), i))

        self.count(self.const(0), n, column)

    def _tiles(self, matrices: Any, factors: Any, sizes: Any, first: Any, width: Any) -> None:
        """The product with a block of the columns."""
        m, n, _ = sizes
        rest = self.b.and_(width, self.const(self.lanes - 1))
        places = self.ir.Constant(self.ir.VectorType(self.i64, self.lanes), list(range(self.lanes)))
        least = self._splat(self.b.sub(self.const(self.lanes), rest))
        mask = self.b.icmp_unsigned(">=", places, least)
        done = self.const(0)
        for group, height in TILES:
            until = self.b.add(done, self._multiple(self.b.sub(n, done), group))
            high = self._multiple(m, height)

            def rows(column: Any, group: int = group, height: int = height, high: Any = high) -> None:
                for start, stop, step in ((self.const(0), high, height), (high, m, 1)):
                    self._stepped(start, stop, step, lambda r, step=step: self._tile(  # type: ignore[misc]
                        (step, group), matrices, factors, sizes, (r, column), (first, width, mask)))

            self._stepped(done, until, group, rows)
            done = until

    def _multiple(self, x: Any, of: int) -> Any:
        return self.b.sub(x, self.b.urem(x, self.const(of)))

    def _stepped(self, start: Any, stop: Any, step: int, body: Any) -> None:
        """``body(k)`` for each ``step``-th k from start to stop."""
        count = self.b.udiv(self.b.sub(stop, start), self.const(step))
        self.count(self.const(0), count, lambda t: body(self.b.add(start, self.b.mul(t, self.const(step)))))

    def _tile(self, shape: tuple[int, int], matrices: Any, factors: Any, sizes: Any, at: Any, block: Any) -> None:
        """Sums of some rows and columns over a block, then what is done with them."""
        (height, group), (a, c), (_, n, k), (first, width, mask), w = shape, matrices, sizes, block, self.b
        rows = [w.add(at[0], self.const(r)) for r in range(height)]
        starts = [w.add(w.mul(r, k), first) for r in rows]
        columns = [w.mul(w.add(at[1], self.const(j)), self.const(self.block + self.lanes)) for j in range(group)]

        def added(place: Any, xs: list[Any], *sums: Any) -> list[Any]:
            ys = [self._vector(self.columns, self.b.add(j, place)) for j in columns]
            return [self.b.call(self.multiply_add, [x, y, s])
                    for (x, y), s in zip(((x, y) for x in xs for y in ys), sums, strict=True)]

        def body(i: Any, *sums: Any) -> list[Any]:
            place = self.b.mul(i, self.const(self.lanes))
            return added(place, [self._vector(a, self.b.add(s, place)) for s in starts], *sums)

        zero = self.ir.Constant(self.vector, None)
        vectors = w.udiv(width, self.const(self.lanes))
        sums = loop(w, self.const(0), vectors, body, *[zero] * (height * group))
        last = w.sub(width, self.const(self.lanes))
        ends = [w.select(mask, self._vector(a, w.add(s, last)), zero) for s in starts]
        sums = added(w.mul(vectors, self.const(self.lanes)), ends, *sums)
        numbers = [w.call(self.sum, [self.ir.Constant(self.real, 0), s], fastmath=("reassoc",)) for s in sums]
        self._put(c, factors, [w.add(w.add(w.mul(r, n), at[1]), self.const(j)) for r in rows for j in range(group)],
                  numbers)

    def _put(self, c: Any, factors: Any, places: list[Any], sums: list[Any]) -> None:
        """``c = alpha sums + beta c``."""
        w, (alpha, beta) = self.b, factors
        scaled = [w.fmul(alpha, s) for s in sums]
        with w.if_else(w.fcmp_ordered("==", beta, self.ir.Constant(self.real, 0))) as (alone, added):
            with alone:
                for place, y in zip(places, scaled, strict=True):
                    w.store(y, self.at(c, place, self.real))
            with added:
                for place, y in zip(places, scaled, strict=True):
                    before = self.load(c, place, self.real)
                    w.store(w.fadd(w.fmul(beta, before), y), self.at(c, place, self.real))
