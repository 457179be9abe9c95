"""Products of small matrices in batches, with their sizes as part of the code.

BLAS takes 50 ns and more to find out what it has to do. Here a row of the result is one vector, and the rows of the
right matrix are loaded once; a result that has room in one vector is one. 2,000 of 8 x 8, f32: 38 instead of 150 us.
"""

from __future__ import annotations

from typing import Any

from symc.ir.dim import Size
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import few_rows_ir, native_ir

#: The largest sizes: a row is a vector or two, and the right matrix stays in registers.
MOST = 8


def serves(letter: str, *sizes: Size) -> bool:
    """True if products of these sizes are computed here."""
    return letter in "sd" and all(isinstance(n, int) and 1 <= n <= MOST for n in sizes)


def entry(name: str) -> Symbol:
    """``product_<n|t><n|t>_<letter>_<m>_<n>_<k>(a, b, c, alpha, beta, count, step, step_b)``: c = alpha op(a) @ op(b) +
    beta c for each matrix of a batch; c is not read if beta is 0. The steps are elements from one matrix to the next.
    """
    return native_ir.entry(name, _Functions, name)


class _Functions(few_rows_ir.Vectors):
    def write(self) -> None:
        _, how, letter, *sizes = self.letter.split("_")
        self.m, self.n, self.k = map(int, sizes)
        self.trans_a, self.trans_b = (c == "t" for c in how)
        elements = max(self.m * self.n, self.m * self.k, self.k * self.n)
        self.flat = elements * (4 if letter == "s" else 8) <= 64
        self.width = self.m * self.n if self.flat else self.n
        self.vectors(letter, self.width)
        with self.function(self.letter, 8) as (a, b, c, alpha, beta, count, *steps):
            w = self.b
            factors = [self.load(x, self.const(0), self.real) for x in (alpha, beta)]
            step_a, step_b = map(self.number, steps)
            plain = w.fcmp_ordered("==", factors[1], self.ir.Constant(self.real, 0))

            def one(i: Any) -> None:
                starts = w.mul(i, step_a), w.mul(i, step_b), w.mul(i, self.const(self.m * self.n))
                rows = self._rows(a, b, starts)
                with w.if_else(plain) as (alone, added):
                    for chosen, add in ((alone, False), (added, True)):
                        with chosen:
                            self._store(c, starts[2], rows, factors, add)

            self.count(self.const(0), self.number(count), one)

    def _rows(self, a: Any, b: Any, starts: Any) -> list[Any]:
        """``op(a) @ op(b)``: in one vector if it has room, or its rows."""
        if self.flat:
            return [self._whole(a, b, starts)]
        w, right, out = self.b, [self._row(b, starts[1], k) for k in range(self.k)], []
        for i in range(self.m):
            found = self.ir.Constant(self.vector, None)
            for k, row in enumerate(right):
                place = k * self.m + i if self.trans_a else i * self.k + k
                x = self.load(a, w.add(starts[0], self.const(place)), self.real)
                found = w.call(self.multiply_add, [self._splat(x), row, found])
            out.append(found)
        return out

    def _whole(self, a: Any, b: Any, starts: Any) -> Any:
        """All elements side by side: term k is a shuffle of all of a times one of all of b."""
        w, (m, n, count) = self.b, (self.m, self.n, self.k)
        left, right = (self._loaded(x, start, size * count) for x, start, size in
                       ((a, starts[0], m), (b, starts[1], n)))
        found = self.ir.Constant(self.vector, None)
        for k in range(count):
            rows = [k * m + i if self.trans_a else i * count + k for i in range(m) for _ in range(n)]
            columns = [j * count + k if self.trans_b else k * n + j for _ in range(m) for j in range(n)]
            terms = [self._shuffled(left, rows), self._shuffled(right, columns)]
            found = w.call(self.multiply_add, [*terms, found])
        return found

    def _loaded(self, base: Any, start: Any, size: int) -> Any:
        kind = self.ir.VectorType(self.real, size)
        return self.b.load(self.at(base, start, self.real), align=self.bytes, typ=kind)

    def _shuffled(self, x: Any, places: list[int]) -> Any:
        nothing = self.ir.Constant(x.type, self.ir.Undefined)
        return self.b.shuffle_vector(x, nothing, self.ir.Constant(self.ir.VectorType(self.i32, len(places)), places))

    def _row(self, b: Any, start: Any, k: int) -> Any:
        """Row k of ``op(b)``."""
        w = self.b
        if self.trans_b:
            places = [w.add(start, self.const(j * self.k + k)) for j in range(self.n)]
            return self._beside([self.load(b, p, self.real) for p in places])
        return self._vector(b, w.add(start, self.const(k * self.n)))

    def _store(self, c: Any, start: Any, rows: list[Any], factors: list[Any], add: bool) -> None:
        w = self.b
        alpha, beta = map(self._splat, factors)
        for i, row in enumerate(rows):
            place = w.add(start, self.const(i * self.width))
            y = w.fmul(alpha, row)
            if add:
                y = w.call(self.multiply_add, [beta, self._vector(c, place), y])
            w.store(y, self._at(c, place), self.bytes)

    def _beside(self, numbers: list[Any]) -> Any:
        out = self.ir.Constant(self.vector, self.ir.Undefined)
        for k, x in enumerate(numbers):
            out = self.b.insert_element(out, x, self.ir.Constant(self.i32, k))
        return out
