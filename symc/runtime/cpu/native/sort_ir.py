"""Lines of an array sorted one after the other, along any axis, by a function for one: every argument is an address.

One module for each dtype. The function for a line is NumPy's (``numpy_sorts``). Where it finds places of equals in any
order, these are sorted too: so the places are those of a stable sort, for a look at each pair of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.ir.types import DTYPES
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import native_ir


def entry(name: str) -> Symbol:
    """A function of this module; the last axes of ``x`` are rows, n, and inner, and n is sorted.

    ``sort_<dtype>(to, x, line, status, rows, n, inner, f)``, ``argsort_<dtype>(to, x, line, places, status, rows, n,
    inner, f, g)`` with g to sort i64, ``top_<dtype>(to, x, line, places, rows, n, inner, k)`` of the places of the k
    greatest, which are kept in order while a line is read, ``bottom_<dtype>`` of the least. ``line``, ``places``:
    memory for n, which is not used if inner is 1, or for k. ``status``: an i64, not 0 if memory has ended.
    """
    return native_ir.entry(name, _Functions, name.rpartition("_")[2])


class _Functions(native_ir.Functions):
    def write(self) -> None:
        dtype = DTYPES[self.letter]
        bits = {4: self.ir.FloatType(), 8: self.ir.DoubleType()} if dtype.kind == "f" else {}
        self.element = bits.get(dtype.itemsize, self.ir.IntType(8 * dtype.itemsize))
        self.words = self.i64.as_pointer()
        self.sort()
        self.argsort(dtype)
        if dtype != np.float16:
            self.top("top", lambda x, y: self.above(x, y, dtype.kind))
            self.top("bottom", lambda x, y: self.above(y, x, dtype.kind))

    def sort(self) -> None:
        with self.function(f"sort_{self.letter}", 8) as (to, x, line, status, rows, size, inner, f):
            n, start = self.number(size), self.b.alloca(self.i64)

            def one(alone: Any, first: Any, place: Callable[[Any], Any]) -> None:
                own = self.chosen(alone, to, first, line, self.element)
                self.copy(n, x, place, own, lambda k: k, self.element)
                self.call(f, status, n, own)
                if self.element in (self.ir.FloatType(), self.ir.DoubleType()):
                    self.zeros(n, own, start, lambda k: self.load(x, place(k), self.element))
                self.back(alone, n, own, to, place, self.element)

            self.lines(status, rows, n, inner, one)

    def zeros(self, n: Any, own: Any, start: Any, given: Callable[[Any], Any]) -> None:
        """Put zeros of both signs in the order in which they were given. ``start``: memory for a number."""
        b, zero = self.b, self.ir.Constant(self.element, 0)
        b.store(self.const(0), start)

        def halve(k: Any) -> None:  # how many are less than 0
            next_ = b.add(self.number(start), b.lshr(self.const(1 << 62), k))
            with b.if_then(b.icmp_signed("<=", next_, n)):
                last = self.load(own, b.sub(next_, self.const(1)), self.element)
                b.store(b.select(b.fcmp_ordered("<", last, zero), next_, self.number(start)), start)

        def put(k: Any) -> None:
            x = given(k)
            with b.if_then(b.fcmp_ordered("==", x, zero)):
                first = self.number(start)
                b.store(x, self.at(own, first, self.element))
                b.store(b.add(first, self.const(1)), start)

        self.each(self.const(63), halve)
        second = b.add(self.number(start), self.const(1))
        with (b.if_then(b.icmp_signed("<", second, n)),
              b.if_then(b.fcmp_ordered("==", self.load(own, second, self.element), zero), likely=False)):
            self.each(n, put)

    def argsort(self, dtype: np.dtype) -> None:
        with self.function(f"argsort_{self.letter}", 10) as (to, x, line, places, status, rows, size, inner, f, g):
            b, n = self.b, self.number(size)
            start = b.alloca(self.i64)

            def one(alone: Any, first: Any, place: Callable[[Any], Any]) -> None:
                keys = self.chosen(alone, x, first, line, self.element)
                with b.if_then(b.not_(alone)):
                    self.copy(n, x, place, line, lambda k: k, self.element)
                own = self.chosen(alone, to, first, places, self.i64)
                self.each(n, lambda k: b.store(k, self.at(own, k, self.i64)))
                self.call(f, status, n, keys, own)
                if dtype.itemsize >= 4:
                    b.store(self.const(0), start)
                    real = dtype.kind == "f"
                    self.count(self.const(1), n, lambda k: self.compare(k, keys, own, start, g, status, real))
                    self.equals(start, n, own, g, status)
                self.back(alone, n, own, to, place, self.i64)

            self.lines(status, rows, n, inner, one)

    def top(self, name: str, before: Callable[[Any, Any], Any]) -> None:
        """``before(x, y)``: True if x comes before y."""
        with self.function(f"{name}_{self.letter}", 8) as (to, x, keys, places, rows, size, inner, most):
            b, n, k, width = self.b, self.number(size), self.number(most), self.number(inner)
            place, last = b.alloca(self.i64), b.sub(k, self.const(1))

            def key(j: Any) -> Any:
                return self.load(keys, j, self.element)

            def put(j: Any, v: Any, i: Any) -> None:
                b.store(v, self.at(keys, j, self.element))
                b.store(i, self.at(places, j, self.i64))

            def one(i: Any, v: Any) -> None:
                with b.if_then(b.or_(b.icmp_signed("<", i, k), before(v, key(last))), likely=False):
                    b.store(b.select(b.icmp_signed("<", i, last), i, last), place)
                    test, move, done = (b.function.append_basic_block() for _ in range(3))
                    b.branch(test)
                    b.position_at_end(test)
                    j = self.number(place)
                    some = b.icmp_signed(">", j, self.const(0))
                    one_less = b.select(some, b.sub(j, self.const(1)), j)
                    b.cbranch(b.and_(some, before(v, key(one_less))), move, done)
                    b.position_at_end(move)
                    put(j, key(one_less), self.load(places, one_less, self.i64))
                    b.store(one_less, place)
                    b.branch(test)
                    b.position_at_end(done)
                    put(j, v, i)

            def line(r: Any, c: Any) -> None:
                def at(i: Any, length: Any) -> Any:
                    return b.add(b.mul(b.add(b.mul(r, length), i), width), c)

                self.each(n, lambda i: one(i, self.load(x, at(i, n), self.element)))
                self.copy(k, places, lambda j: j, to, lambda j: at(j, k), self.i64)

            self.each(self.number(rows), lambda r: self.each(width, lambda c: line(r, c)))

    def above(self, x: Any, y: Any, kind: str) -> Any:
        """True if x comes before y where the greatest come first."""
        b = self.b
        if kind == "f":
            return b.or_(b.fcmp_ordered(">", x, y), b.and_(b.fcmp_unordered("uno", x, x), b.fcmp_ordered("ord", y, y)))
        return b.icmp_signed(">", x, y) if kind == "i" else b.icmp_unsigned(">", x, y)

    def compare(self, k: Any, keys: Any, own: Any, start: Any, g: Any, status: Any, real: bool) -> None:
        """Puts equal elements before element k of the sorted line in order, where k is another than the one before."""
        b = self.b
        p, q = (self.load(keys, self.load(own, i, self.i64), self.element) for i in (b.sub(k, self.const(1)), k))
        if real:  # in order, after a nan come only more
            other = b.not_(b.or_(b.fcmp_ordered("==", p, q), b.fcmp_unordered("uno", p, p)))
        else:
            other = b.icmp_signed("!=", p, q)
        with b.if_then(other):
            self.equals(start, k, own, g, status)
            b.store(k, start)

    def equals(self, start: Any, stop: Any, own: Any, g: Any, status: Any) -> None:
        """Sort the places of equals."""
        b, first = self.b, self.number(start)
        count = b.sub(stop, first)
        with b.if_then(b.icmp_signed(">", count, self.const(1)), likely=False):
            self.call(g, status, count, self.at(own, first, self.i64))

    def lines(self, status: Any, rows: Any, n: Any, inner: Any, one: Callable[..., None]) -> None:
        """``one(whether a line lies together, its first element, place of its element k)`` for every line."""
        b, width = self.b, self.number(inner)
        b.store(self.const(0), status)
        alone = b.icmp_signed("==", width, self.const(1))

        def line(r: Any, c: Any) -> None:
            first = b.add(b.mul(b.mul(r, n), width), c)
            one(alone, first, lambda k: b.add(first, b.mul(k, width)))

        self.count(self.const(0), self.number(rows), lambda r: self.count(self.const(0), width, lambda c: line(r, c)))

    def chosen(self, alone: Any, array: Any, first: Any, line: Any, element: Any) -> Any:
        """Memory in which a line is worked on: its array if it lies together, else elsewhere."""
        return self.b.select(alone, self.b.bitcast(self.at(array, first, element), self.words), line)

    def back(self, alone: Any, n: Any, own: Any, to: Any, place: Callable[[Any], Any], element: Any) -> None:
        """Put a line where it belongs if it was worked on elsewhere."""
        with self.b.if_then(self.b.not_(alone)):
            self.copy(n, own, lambda k: k, to, place, element)

    def copy(self, n: Any, source: Any, where: Callable[[Any], Any], to: Any, place: Callable[[Any], Any],
             element: Any) -> None:
        """Copy n elements from where to place."""
        self.each(n, lambda k: self.b.store(self.load(source, where(k), element), self.at(to, place(k), element)))

    def each(self, n: Any, body: Callable[[Any], None]) -> None:
        self.count(self.const(0), n, body)

    def call(self, function: Any, status: Any, n: Any, *pointers: Any) -> None:
        """Call NumPy's function: pointers, how many, nothing."""
        b, ir = self.b, self.ir
        words = [self.words] * len(pointers)
        f = b.bitcast(function, ir.FunctionType(self.i32, [*words, self.i64, self.words]).as_pointer())
        found = b.call(f, [*[b.bitcast(p, self.words) for p in pointers], n, ir.Constant(self.words, None)])
        b.store(b.or_(self.number(status), b.sext(found, self.i64)), status)
