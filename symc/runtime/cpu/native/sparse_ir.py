"""Products with sparse matrices, by native code: every argument is an address.

Indices are checked where they are read: at the first that is out of bounds a function ends, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import native_ir

#: By the character of a dtype, its type in LLVM, how many make an element, and how many elements are in a vector.
LETTERS: dict[str, tuple[Any, int, int]] = {
    "f": ("FloatType", 1, 16), "d": ("DoubleType", 1, 8), "F": ("FloatType", 2, 1), "D": ("DoubleType", 2, 1),
    "l": (64, 1, 8), "q": (64, 1, 8), "i": (32, 1, 16)}
Number = Sequence[Any]


def entry(name: str) -> Symbol:
    """``spmm_<char><bits>(to, indptr, indices, data, x, rows, entries, columns, width, status)``, and likewise
    ``spmm_across`` and ``sddmm``: ``char`` is the dtype, indices have so many ``bits``. ``status`` is 1 for
    a pattern that is none; what was written then means nothing."""
    return native_ir.entry(name, _Functions, name.rpartition("_")[2])


class _Functions(native_ir.Functions):
    vectorized = True

    def write(self) -> None:
        kind, self.parts_, self.lanes = LETTERS[self.letter[0]]
        self.real = self.ir.IntType(kind) if isinstance(kind, int) else getattr(self.ir, kind)()
        self.index = self.ir.IntType(int(self.letter[1:]))
        for name, body in (("spmm", self.spmm), ("spmm_across", self.across), ("sddmm", self.sddmm)):
            with self.function(f"{name}_{self.letter}", 10) as (*arrays, rows, entries, columns, width, status):
                self.wrong = self.b.function.append_basic_block("wrong")
                self.b.store(self.const(0), status)
                self.rows, self.entries, self.columns, self.width = map(self.number, (rows, entries, columns, width))
                self.require("==", self.place(arrays[1], self.const(0)), self.const(0))
                self.require("==", self.place(arrays[1], self.rows), self.entries)
                body(*arrays)
                with self.b.goto_block(self.wrong):
                    self.b.store(self.const(1), status)
                    self.b.ret_void()

    def require(self, sign: str, x: Any, y: Any) -> None:
        """Go on if two numbers without a sign compare so; else all ends here."""
        good = self.b.function.append_basic_block()
        self.b.cbranch(self.b.icmp_unsigned(sign, x, y), good, self.wrong)
        self.b.position_at_end(good)

    def place(self, indices: Any, k: Any) -> Any:
        found = self.load(indices, k, self.index)
        return found if self.index.width == 64 else self.b.sext(found, self.i64)

    def column(self, indices: Any, p: Any) -> Any:
        k = self.place(indices, p)
        self.require("<", k, self.columns)
        return k

    def each_row(self, indptr: Any, body: Callable[[Any, Any, Any], None]) -> None:
        """``body(r, first, end)``"""
        def row(r: Any) -> None:
            first, end = self.place(indptr, r), self.place(indptr, self.b.add(r, self.const(1)))
            self.require("<=", first, end)
            self.require("<=", end, self.entries)
            body(r, first, end)
        self.count(self.const(0), self.rows, row)

    # --- numbers: of one part or two, scalars or vectors ------------------------------------------------------------

    def type(self, w: int) -> Any:
        return self.real if w == 1 else self.ir.VectorType(self.real, w)

    def zero(self, w: int) -> Any:
        scalar = self.ir.Constant(self.real, 0)
        return scalar if w == 1 else self.ir.Constant(self.type(w), [scalar] * w)

    def numbers(self, base: Any, k: Any, w: int = 1) -> list[Any]:
        return [self.b.load(self._address(base, k, w, part), typ=self.type(w), align=self._alignment())
                for part in range(self.parts_)]

    def _address(self, base: Any, k: Any, w: int, part: int) -> Any:
        at = self.b.add(self.b.mul(k, self.const(self.parts_)), self.const(part))
        return self.b.bitcast(self.at(base, at, self.real), self.type(w).as_pointer())

    def _alignment(self) -> int:
        return 4 if isinstance(self.real, self.ir.FloatType) or self.real == self.ir.IntType(32) else 8

    def put(self, x: Number, base: Any, k: Any, w: int = 1) -> None:
        for part, y in enumerate(x):
            self.b.store(y, self._address(base, k, w, part), align=self._alignment())

    def spread(self, x: Number, w: int) -> Number:
        if w == 1:
            return x
        b, none = self.b, self.ir.Constant(self.type(w), self.ir.Undefined)
        first = b.insert_element(none, x[0], self.ir.Constant(self.i32, 0))
        return [b.shuffle_vector(first, none, self.ir.Constant(self.ir.VectorType(self.i32, w), [0] * w))]

    def add(self, x: Any, y: Any, minus: bool = False) -> Any:
        if isinstance(self.real, self.ir.IntType):
            return self.b.add(x, y)
        return (self.b.fsub if minus else self.b.fadd)(x, y, flags=("contract",))

    def mul(self, x: Any, y: Any) -> Any:
        if isinstance(self.real, self.ir.IntType):
            return self.b.mul(x, y)
        return self.b.fmul(x, y, flags=("contract",))

    def multiply_add(self, to: Number, x: Number, y: Number) -> Number:
        if len(to) == 1:
            return [self.add(to[0], self.mul(x[0], y[0]))]
        real = self.add(self.add(to[0], self.mul(x[0], y[0])), self.mul(x[1], y[1]), minus=True)
        return [real, self.add(self.add(to[1], self.mul(x[0], y[1])), self.mul(x[1], y[0]))]

    def sum(self, w: int) -> list[Any]:
        """Memory for a sum that is 0."""
        with self.b.goto_entry_block():
            cells = [self.b.alloca(self.type(w)) for _ in range(self.parts_)]
        for c in cells:
            self.b.store(self.zero(w), c)
        return cells

    def read(self, cells: Sequence[Any], w: int) -> list[Any]:
        return [self.b.load(c, typ=self.type(w)) for c in cells]

    def grow(self, cells: Sequence[Any], w: int, x: Number, y: Number) -> None:
        for c, z in zip(cells, self.multiply_add(self.read(cells, w), x, y), strict=True):
            self.b.store(z, c)

    def pieces(self, body: Callable[[Any, int], None], widths: Sequence[int]) -> None:
        """``body(j, w)``: columns of matrices from j on, as many as fit in vectors first."""
        start = self.const(0)
        for w in widths:
            many = self.b.sdiv(self.b.sub(self.width, start), self.const(w))
            self.count(self.const(0), many, partial(self._piece, body, start, w))
            start = self.b.add(start, self.b.mul(many, self.const(w)))

    def _piece(self, body: Callable[[Any, int], None], start: Any, w: int, i: Any) -> None:
        body(self.b.add(start, self.b.mul(i, self.const(w))), w)

    @property
    def widths(self) -> list[int]:
        return [1] if self.lanes == 1 else [4 * self.lanes, self.lanes, 4, 2, 1]

    # --- products -----------------------------------------------------------------------------------------------------

    def spmm(self, to: Any, indptr: Any, indices: Any, data: Any, x: Any) -> None:
        """A column alone has a loop of its own."""
        def row(r: Any, first: Any, end: Any, j: Any, w: int, width: Any) -> None:
            cells = self.sum(w)

            def one(p: Any) -> None:
                at = self.b.add(self.b.mul(self.column(indices, p), width), j)
                self.grow(cells, w, self.spread(self.numbers(data, p), w), self.numbers(x, at, w))

            self.count(first, end, one)
            self.put(self.read(cells, w), to, self.b.add(self.b.mul(r, width), j), w)

        zero, single = self.const(0), self.const(1)
        with self.b.if_else(self.b.icmp_signed("==", self.width, single)) as (alone, many):
            with alone:
                self.each_row(indptr, lambda r, first, end: row(r, first, end, zero, 1, single))
            with many:
                self.each_row(indptr, lambda r, first, end: self.pieces(
                    lambda j, w: row(r, first, end, j, w, self.width), self.widths))

    def across(self, to: Any, indptr: Any, indices: Any, data: Any, x: Any) -> None:
        zero = [self.zero(1)] * self.parts_
        self.count(self.const(0), self.b.mul(self.columns, self.width), lambda k: self.put(zero, to, k))

        def row(r: Any, first: Any, end: Any) -> None:
            def one(p: Any) -> None:
                out, own = self.b.mul(self.column(indices, p), self.width), self.b.mul(r, self.width)
                factor = self.numbers(data, p)

                def piece(j: Any, w: int) -> None:
                    at = self.b.add(out, j)
                    read = self.numbers(x, self.b.add(own, j), w)
                    self.put(self.multiply_add(self.numbers(to, at, w), self.spread(factor, w), read), to, at, w)

                self.pieces(piece, self.widths[1:] or [1])
            self.count(first, end, one)
        self.each_row(indptr, row)

    def sddmm(self, to: Any, indptr: Any, indices: Any, x: Any, y: Any) -> None:
        def row(r: Any, first: Any, end: Any) -> None:
            def one(p: Any) -> None:
                left, right = self.b.mul(r, self.width), self.b.mul(self.column(indices, p), self.width)
                total = self.sum(1)

                def piece(j: Any, w: int) -> None:
                    a, c = self.numbers(x, self.b.add(left, j), w), self.numbers(y, self.b.add(right, j), w)
                    if w == 1:
                        return self.grow(total, 1, a, c)
                    products = self.mul(a[0], c[0])
                    for k in range(w):
                        element = self.b.extract_element(products, self.ir.Constant(self.i32, k))
                        self.b.store(self.add(self.read(total, 1)[0], element), total[0])

                self.pieces(piece, [1] if self.lanes == 1 else [self.lanes, 1])
                self.put(self.read(total, 1), to, p)
            self.count(first, end, one)
        self.each_row(indptr, row)
