"""Products with few rows: a few rows of numbers times a matrix, which a network has for a small batch and in every step
of a loop.

BLAS copies the matrix before it multiplies, to read it in order many times. With few rows that copy takes as long as
the product. Here the matrix is read where it lies, once for `heights` rows, in panels of two vectors of columns;
the sums stay in registers. On one core with AVX-512, f32: 16 x 784 by 784 x 512 in 62 instead of 124 us, 32 x 128 by
128 x 512 in 19 instead of 31; with AVX2 in 120 instead of 143, and 40 instead of 46.
"""

from __future__ import annotations

from typing import Any

from symc.ir.dim import Size, mod
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.arithmetic import All, Less, at_least, both
from symc.runtime.cpu.native import native_ir

#: Bounds within which this is faster than OpenBLAS for f32 and f64: rows; bytes of the matrix, which has to stay in the
#: cache near the core; terms of a sum, because they are added one after the other. Columns are whole panels.
FEWEST, MOST, BYTES, TERMS, PANEL = 4, {"s": 32, "d": 16}, 2 << 20, 2048, {"s": 32, "d": 16}


def serves(letter: str, m: Size, n: Size, k: Size) -> All | Less | int:
    """1 where a product of row-major matrices, m x k and k x n, is best computed here."""
    if letter not in MOST:
        return 0
    panels = at_least(0, mod(n, PANEL[letter]))
    small = both(at_least(TERMS, k), at_least(BYTES, n * k * (4 if letter == "s" else 8)))
    return both(at_least(m, FEWEST), at_least(MOST[letter], m), panels, small)


def entry(name: str) -> Symbol:
    """A function of this module, by its name.

    ``few_rows_<letter>(a, b, c, alpha, beta, m, n, k)``: c = alpha a @ b + beta c; c is not read if beta is 0."""
    return native_ir.entry(name, _Functions, name[-1])


def vector_bytes() -> int:
    """The number of bytes of a vector of this processor."""
    from llvmlite import binding

    return 64 if binding.get_host_cpu_features().get("avx512f", False) else 32


def lanes(letter: str) -> int:
    """The number of numbers in a vector of this processor."""
    return vector_bytes() // (4 if letter == "s" else 8)


def heights() -> tuple[int, ...]:
    """The rows of a tile that fits the registers of this processor, the most first."""
    return (8, 4, 2, 1) if vector_bytes() == 64 else (6, 4, 2, 1)


class Vectors(native_ir.Functions):
    """Functions of vectors of one kind of numbers."""

    def vectors(self, letter: str, lanes: int) -> None:
        """Declare vectors of so many numbers of a letter of BLAS."""
        self.real, self.bytes = (self.ir.FloatType(), 4) if letter == "s" else (self.ir.DoubleType(), 8)
        self.lanes = lanes
        self.vector = self.ir.VectorType(self.real, self.lanes)
        of_three = self.ir.FunctionType(self.vector, [self.vector] * 3)
        self.multiply_add = self.ir.Function(self.module, of_three, f"llvm.fmuladd.v{self.lanes}f{8 * self.bytes}")

    def _splat(self, x: Any) -> Any:
        """A vector with x in every place."""
        i32, nothing = self.ir.IntType(32), self.ir.Constant(self.ir.VectorType(x.type, self.lanes), self.ir.Undefined)
        first = self.b.insert_element(nothing, x, self.ir.Constant(i32, 0))
        places = self.ir.Constant(self.ir.VectorType(i32, self.lanes), None)
        return self.b.shuffle_vector(first, nothing, places)

    def _vector(self, base: Any, index: Any) -> Any:
        """Numbers that lie side by side, wherever they start."""
        return self.b.load(self._at(base, index), align=self.bytes, typ=self.vector)

    def _at(self, base: Any, index: Any) -> Any:
        return self.b.bitcast(self.at(base, index, self.real), self.vector.as_pointer())


class _Functions(Vectors):
    def write(self) -> None:
        self.vectors(self.letter, lanes(self.letter))
        with self.function(f"few_rows_{self.letter}", 8) as (a, b, c, alpha, beta, *sizes):
            m, n, k = map(self.number, sizes)
            factors = [self.load(x, self.const(0), self.real) for x in (alpha, beta)]
            panels = self.b.udiv(n, self.const(2 * self.lanes))
            self.count(self.const(0), panels, lambda p: self._panel((a, b, c), factors, (m, n, k), p))

    def _panel(self, matrices: Any, factors: Any, sizes: Any, panel: Any) -> None:
        """All rows of two vectors of columns."""
        b, column, left = self.b, self.b.mul(panel, self.const(2 * self.lanes)), sizes[0]
        for height in heights():
            start, rows, tiles = b.sub(sizes[0], left), self.const(height), b.udiv(left, self.const(height))

            def tile(t: Any, height: int = height, start: Any = start, rows: Any = rows) -> None:
                self._tile(height, matrices, factors, sizes, b.add(start, b.mul(t, rows)), column)

            self.count(self.const(0), tiles, tile)
            left = b.sub(left, b.mul(tiles, rows))

    def _tile(self, height: int, matrices: Any, factors: Any, sizes: Any, row: Any, column: Any) -> None:
        """``height`` rows of two vectors: sums over k, then what is done with them."""
        (a, b, c), (_, n, k), w = matrices, sizes, self.b
        rows = [w.add(row, self.const(r)) for r in range(height)]
        starts = [w.mul(r, k) for r in rows]
        before, body, done = w.block, *(w.function.append_basic_block() for _ in range(2))
        w.branch(body)
        w.position_at_end(body)
        i = w.phi(self.i64)
        sums = [[w.phi(self.vector) for _ in range(2)] for _ in rows]
        place = w.add(w.mul(i, n), column)
        found = [self._vector(b, w.add(place, self.const(v * self.lanes))) for v in range(2)]
        new = []
        for start, row_sums in zip(starts, sums, strict=True):
            x = self._splat(self.load(a, w.add(start, i), self.real))
            new.append([w.call(self.multiply_add, [x, y, s]) for y, s in zip(found, row_sums, strict=True)])
        following = w.add(i, self.const(1))
        i.add_incoming(self.const(0), before)
        i.add_incoming(following, body)
        for pair, made in zip(sums, new, strict=True):
            for s, y in zip(pair, made, strict=True):
                s.add_incoming(self.ir.Constant(self.vector, None), before)
                s.add_incoming(y, body)
        w.cbranch(w.icmp_signed("<", following, k), body, done)
        w.position_at_end(done)
        places = [[w.add(w.add(w.mul(r, n), column), self.const(v * self.lanes)) for v in range(2)] for r in rows]
        self._store(c, factors, [p for pair in places for p in pair], [y for pair in new for y in pair])

    def _store(self, c: Any, factors: Any, places: Any, sums: Any) -> None:
        """``c = alpha sums + beta c``."""
        w = self.b
        alpha, beta = map(self._splat, factors)
        scaled = [w.fmul(alpha, y) for y in sums]
        with w.if_else(w.fcmp_ordered("==", factors[1], self.ir.Constant(self.real, 0))) as (alone, added):
            with alone:
                for place, y in zip(places, scaled, strict=True):
                    w.store(y, self._at(c, place), self.bytes)
            with added:
                for place, y in zip(places, scaled, strict=True):
                    z = w.call(self.multiply_add, [beta, self._vector(c, place), y])
                    w.store(z, self._at(c, place), self.bytes)
