"""Fourier transforms of lines of an array, along any axis, by a loop of NumPy's (``numpy_ffts``): a kernel, as it takes
numbers and addresses in one array, and does any part of a range of lines.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.native import native_ir

#: What the first bits of a result are before a loop runs: still there if it had no memory.
UNWRITTEN = 0x7FE3A5C1


def entry(name: str) -> Symbol:
    """``transform(words)``: first line, end of lines, elements side by side (lines of one row), points, results, bytes
    of a point, bytes of a result; the addresses of the array, of the factor, of the results, of a byte that becomes 1
    if memory has ended, of the loop and of its data."""
    return native_ir.entry(name, _Functions)


class _Functions(native_ir.Functions):
    def write(self) -> None:
        ir = self.ir
        words = self.i64.as_pointer()
        with self.function("transform", 1) as (given,):
            b = self.b
            (first, stop, inner, points, results, width_in, width_out, x, factor, to, failed, loop,
             data) = (self.load(given, self.const(k), self.i64) for k in range(13))
            arrays, sizes, steps, line = (b.alloca(self.i64, k) for k in (3, 3, 5, 1))
            kind = ir.FunctionType(ir.VoidType(), [words] * 4).as_pointer()
            alone = b.icmp_signed("==", inner, self.const(1))
            b.store(first, line)
            self.fill(sizes, [None, points, results])
            across_in, across_out = b.mul(inner, width_in), b.mul(inner, width_out)
            next_in, next_out = (b.select(alone, b.mul(n, w), w) for n, w in ((points, width_in), (results, width_out)))
            self.fill(steps, [next_in, self.const(0), next_out, across_in, across_out])
            test, body, done = (b.function.append_basic_block() for _ in range(3))
            b.branch(test)
            b.position_at_end(test)
            at = self.number(line)
            b.cbranch(b.icmp_signed("<", at, stop), body, done)
            b.position_at_end(body)
            row, column, left = b.sdiv(at, inner), b.srem(at, inner), b.sub(stop, at)
            rest = b.sub(inner, column)
            count = b.select(b.or_(alone, b.icmp_signed("<", left, rest)), left, rest)
            result = b.add(to, self.place(row, column, across_out, results, width_out))
            self.fill(arrays, [b.add(x, self.place(row, column, across_in, points, width_in)), factor, result])
            b.store(count, sizes)
            mark = b.inttoptr(result, self.i32.as_pointer())
            b.store(ir.Constant(self.i32, UNWRITTEN), mark)
            b.call(b.inttoptr(loop, kind), [arrays, sizes, steps, b.inttoptr(data, words)])
            same = b.icmp_unsigned("==", b.load(mark, typ=self.i32), ir.Constant(self.i32, UNWRITTEN))
            with b.if_then(same, likely=False):
                b.store(ir.Constant(ir.IntType(8), 1), b.inttoptr(failed, ir.IntType(8).as_pointer()))
            b.store(b.add(at, count), line)
            b.branch(test)
            b.position_at_end(done)

    def fill(self, array: Any, numbers: list[Any]) -> None:
        """Write numbers one after the other; None leaves what is there."""
        for k, n in enumerate(numbers):
            if n is not None:
                self.b.store(n, self.at(array, self.const(k), self.i64))

    def place(self, row: Any, column: Any, across: Any, length: Any, width: Any) -> Any:
        """The number of bytes from its array's start to a line."""
        return self.b.add(self.b.mul(row, self.b.mul(across, length)), self.b.mul(column, width))
