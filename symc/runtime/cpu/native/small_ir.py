"""Factorizations and solves of small real matrices, as many at once as a vector has places.

A routine of LAPACK takes 200 ns and more for a matrix of 3 x 3, nearly all of it for finding out what to do. Here the
size is part of the code: element (i, j) of several matrices is one vector, loops over rows and columns are written out,
and rows are exchanged by selects, so that each matrix has the pivots that LAPACK would take. Places beyond the last
matrix compute that one again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.ir.dim import Size
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import few_rows_ir, native_ir

#: The largest matrices: of more rows the vectors are kept in memory, and LAPACK catches up.
MOST = 8

Matrix = list[list[Any]]


def serves(letter: str, n: Size) -> bool:
    """True if real matrices of this size are taken here."""
    return letter in "sd" and isinstance(n, int) and 1 <= n <= MOST


def entry(name: str) -> Symbol:
    """A function by its name, ``<what>_<letter><n>``, for matrices of n rows that lie one behind the other.

    ``lu(lu, perm, a, count)`` as the op `lu_factor`. ``cholesky(info, l, a, count)``, ``solve_<n|t>(info, x, lu, perm,
    b, count, k)`` with k columns a matrix, ``triangular_<l|u><n|t><d|u>(info, x, a, b, count, k)`` of a lower or upper
    triangle, as it is or transposed, with its diagonal or a unit one. ``info`` is set to 1 where there is no answer.
    ``<n>x1`` takes one matrix after the other, which is faster where there is one.
    """
    return native_ir.entry(name, _Functions, name)


class _Functions(few_rows_ir.Vectors):
    def write(self) -> None:
        what, _, kind = self.letter.rpartition("_")
        size, _, lanes = kind[1:].partition("x")
        self.n = int(size)
        self.vectors(kind[0], int(lanes or few_rows_ir.lanes(kind[0])))
        self.bits = self.ir.VectorType(self.ir.IntType(1), self.lanes)
        self.made: dict[str, Any] = {}
        what, *how = what.split("_")
        getattr(self, f"_{what}")(*how)

    def _lu(self) -> None:
        with self.function(self.letter, 4) as (lu, perm, a, count):
            self._blocks(count, lambda at: self._factored(at, lu, perm, a))

    def _factored(self, at: list[Any], lu: Any, perm: Any, a: Any) -> None:
        b, n = self.b, self.n
        m, order = self._matrix(a, at), [self._number(i) for i in range(n)]
        for c in range(n):
            largest, which = self._call("fabs", m[c][c]), self._number(c)
            for r in range(c + 1, n):
                size = self._call("fabs", m[r][c])
                more = b.fcmp_ordered(">", size, largest)
                largest, which = b.select(more, size, largest), b.select(more, self._number(r), which)
            for r in range(c + 1, n):
                here = b.fcmp_ordered("==", which, self._number(r))
                for x, y, k in [(m[c], m[r], j) for j in range(n)] + [(order, order, 0)]:
                    i, j = (c, r) if x is order else (k, k)
                    x[i], y[j] = b.select(here, y[j], x[i]), b.select(here, x[i], y[j])
            none = b.fcmp_ordered("==", m[c][c], self._number(0))
            for r in range(c + 1, n):
                m[r][c] = b.select(none, m[r][c], b.fdiv(m[r][c], m[c][c]))
                for j in range(c + 1, n):
                    m[r][j] = self._less(m[r][j], m[r][c], m[c][j])
        self._put(lu, self._starts(at, n * n), [x for row in m for x in row])
        for k, first in enumerate(self._starts(at, n)):
            for i, x in enumerate(order):
                row = b.fptosi(b.extract_element(x, self._lane(k)), self.i64)
                b.store(row, self.at(perm, b.add(first, self.const(i)), self.i64))

    def _cholesky(self) -> None:
        with self.function(self.letter, 4) as (info, to, a, count):
            self.b.store(self.const(0), info)
            self._blocks(count, lambda at: self._root(at, info, to, a))

    def _root(self, at: list[Any], info: Any, to: Any, a: Any) -> None:
        b, n = self.b, self.n
        m, bad = self._matrix(a, at, lambda i, j: j <= i), self.ir.Constant(self.bits, None)
        for j in range(n):
            for i in range(j, n):
                for k in range(j):
                    m[i][j] = self._less(m[i][j], m[i][k], m[j][k])
                if i == j:
                    bad = b.or_(bad, b.fcmp_ordered("<=", m[j][j], self._number(0)))
                m[i][j] = self._call("sqrt", m[j][j]) if i == j else b.fdiv(m[i][j], m[j][j])
        self._put(to, self._starts(at, n * n), [m[i][j] if j <= i else self._number(0) for i in range(n)
                                                for j in range(n)])
        self._note(info, bad)

    def _solve(self, trans: str) -> None:
        with self.function(self.letter, 7) as (info, x, lu, perm, right, count, columns):
            self.b.store(self.const(0), info)

            def block(at: list[Any]) -> None:
                m = self._matrix(lu, at)
                self._no_zeros(info, m)
                rows = [[self._row(info, perm, first, i) for first in self._starts(at, self.n)] for i in range(self.n)]

                def solved(b: list[Any]) -> list[Any]:
                    if trans == "n":
                        return self._substituted(m, self._substituted(m, b, True, "n", True), False, "n", False)
                    return self._substituted(m, self._substituted(m, b, False, "t", False), True, "t", True)

                own = [[self.const(i)] * self.lanes for i in range(self.n)]
                self._columns(at, x, right, columns, solved, *((own, rows) if trans == "n" else (rows, own)))

            self._blocks(count, block)

    def _triangular(self, how: str) -> None:
        lower, trans, unit = how[0] == "l", how[1], how[2] == "u"
        with self.function(self.letter, 6) as (info, x, a, right, count, columns):
            self.b.store(self.const(0), info)
            own = [[self.const(i)] * self.lanes for i in range(self.n)]

            def block(at: list[Any]) -> None:
                m = self._matrix(a, at, lambda i, j: i == j and not unit or (j < i if lower else j > i))
                if not unit:
                    self._no_zeros(info, m)
                self._columns(at, x, right, columns, lambda b: self._substituted(m, b, lower, trans, unit), own, own)

            self._blocks(count, block)

    # --- parts ---------------------------------------------------------------------------------------------------

    def _substituted(self, m: Matrix, b: list[Any], lower: bool, trans: str, unit: bool) -> list[Any]:
        """The x of ``op(T) x = b`` for a triangle T of ``m``."""
        b, forwards = list(b), lower == (trans == "n")
        for i in range(self.n) if forwards else reversed(range(self.n)):
            for j in range(i) if forwards else reversed(range(i + 1, self.n)):
                b[i] = self._less(b[i], m[i][j] if trans == "n" else m[j][i], b[j])
            if not unit:
                b[i] = self.b.fdiv(b[i], m[i][i])
        return b

    def _columns(self, at: list[Any], x: Any, right: Any, columns: Any, solved: Callable[[list[Any]], list[Any]],
                 to: list[list[Any]], source: list[list[Any]]) -> None:
        """``solved`` of every column of the right sides; rows i of ``source`` are read and rows i of ``to`` written."""
        b, k = self.b, self.number(columns)
        first = [b.mul(b.mul(i, self.const(self.n)), k) for i in at]
        read, written = ([[b.add(s, b.mul(r, k)) for s, r in zip(first, rows, strict=True)] for rows in each]
                         for each in (source, to))

        def column(c: Any) -> None:
            for where, y in zip(written, solved([self._get(right, where, c) for where in read]), strict=True):
                self._put(x, [b.add(s, c) for s in where], [y])

        self.count(self.const(0), k, column)

    def _row(self, info: Any, perm: Any, first: Any, i: int) -> Any:
        """Element i of an order of rows; 0, and a note, where it is none."""
        b = self.b
        row = self.load(perm, b.add(first, self.const(i)), self.i64)
        good = b.icmp_unsigned("<", row, self.const(self.n))
        b.store(b.or_(self.number(info), b.zext(b.not_(good), self.i64)), info)
        return b.select(good, row, self.const(0))

    def _no_zeros(self, info: Any, m: Matrix) -> None:
        bad = self.ir.Constant(self.bits, None)
        for i in range(self.n):
            bad = self.b.or_(bad, self.b.fcmp_ordered("==", m[i][i], self._number(0)))
        self._note(info, bad)

    def _note(self, info: Any, bad: Any) -> None:
        b, whole = self.b, self.ir.IntType(self.lanes)
        any_ = b.icmp_unsigned("!=", b.bitcast(bad, whole), self.ir.Constant(whole, 0))
        b.store(b.or_(self.number(info), b.zext(any_, self.i64)), info)

    def _blocks(self, count: Any, body: Callable[[list[Any]], None]) -> None:
        """``body`` of the numbers of the matrices that are in the places of a vector, until it had all."""
        b, total = self.b, self.number(count)
        last = b.sub(total, self.const(1))

        def block(k: Any) -> None:
            at = [b.add(b.mul(k, self.const(self.lanes)), self.const(i)) for i in range(self.lanes)]
            body([b.select(b.icmp_signed("<", i, last), i, last) for i in at])

        self.count(self.const(0), b.udiv(b.add(total, self.const(self.lanes - 1)), self.const(self.lanes)), block)

    def _starts(self, at: list[Any], elements: int) -> list[Any]:
        return [self.b.mul(i, self.const(elements)) for i in at]

    def _matrix(self, a: Any, at: list[Any], wanted: Callable[[int, int], bool] = lambda i, j: True) -> Matrix:
        starts = self._starts(at, self.n * self.n)
        return [[self._get(a, starts, self.const(self.n * i + j)) if wanted(i, j) else None for j in range(self.n)]
                for i in range(self.n)]

    def _get(self, base: Any, starts: list[Any], offset: Any) -> Any:
        """The element at an offset from each start."""
        x = self.ir.Constant(self.vector, self.ir.Undefined)
        for k, first in enumerate(starts):
            x = self.b.insert_element(x, self.load(base, self.b.add(first, offset), self.real), self._lane(k))
        return x

    def _put(self, base: Any, starts: list[Any], values: list[Any]) -> None:
        """Store values side by side from each start."""
        for k, first in enumerate(starts):
            for offset, x in enumerate(values):
                place = self.at(base, self.b.add(first, self.const(offset)), self.real)
                self.b.store(self.b.extract_element(x, self._lane(k)), place)

    def _lane(self, k: int) -> Any:
        return self.ir.Constant(self.i32, k)

    def _number(self, x: float) -> Any:
        return self.ir.Constant(self.vector, [x] * self.lanes)

    def _less(self, x: Any, y: Any, z: Any) -> Any:
        """``x - y * z``, rounded once."""
        return self._call("fma", self.b.fneg(y), z, x)

    def _call(self, name: str, *given: Any) -> Any:
        if name not in self.made:
            kind = self.ir.FunctionType(self.vector, [self.vector] * len(given))
            self.made[name] = self.ir.Function(self.module, kind, f"llvm.{name}.v{self.lanes}f{8 * self.bytes}")
        return self.b.call(self.made[name], given)
