"""What LAPACK has no routine for, as native code with LAPACK's convention: every argument is an address.

One LLVM module, built once in a process through llvmlite when the first plan with linear algebra is loaded. Matrices
are square and contiguous; sizes are addresses of 64-bit integers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_entries: dict[str, int] = {}
_keep: list[Any] = []  # the machine code


def entry(name: str) -> int:
    """The address of a function of this module.

    ``transpose_<letter>(a, n)`` transposes in place, and conjugates complex elements. ``order(perm, pivots, n)`` makes
    LAPACK's exchanges (1-based, 32 bits) the order of the rows they lead to. ``take(to, from, perm, n, nbytes)`` has
    row i of ``to`` be row perm[i] of ``from``, ``put`` the other way round. ``singular_<letter>(info, a, n)`` sets the
    integer ``info`` to 1 + the first place where the diagonal is 0, or to 0; ``outside(info, perm, n)`` to 1 if an
    index is no row.
    """
    if not _entries:
        with _lock:
            if not _entries:
                _entries.update(_compile())
    return _entries[name]


def _compile() -> dict[str, int]:
    from llvmlite import binding, ir

    module = ir.Module("symc_lapack")
    builder = _Functions(module, ir)
    for letter in "sdcz":
        builder.transpose(letter)
        builder.singular(letter)
    builder.order()
    builder.outside()
    builder.rows("take", 0)
    builder.rows("put", 1)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    parsed = binding.parse_assembly(str(module), binding.create_context())
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    _keep.append(engine)
    return {name: engine.get_function_address(f"symc_{name}") for name in builder.names}


class _Functions:
    """Builds the functions. Indices are 64 bits wide."""

    def __init__(self, module: Any, ir: Any):
        self.module, self.ir, self.i64, self.i32 = module, ir, ir.IntType(64), ir.IntType(32)
        self.names: list[str] = []
        self.b: Any = None
        words = self.i64.as_pointer()
        self.memcpy = ir.Function(module, ir.FunctionType(words, [words, words, self.i64]), "memcpy")

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, k)

    @contextmanager
    def function(self, name: str, count: int) -> Iterator[list[Any]]:
        words = self.i64.as_pointer()
        f = self.ir.Function(self.module, self.ir.FunctionType(self.ir.VoidType(), [words] * count), f"symc_{name}")
        self.names.append(name)
        self.b = self.ir.IRBuilder(f.append_basic_block("entry"))
        yield list(f.args)
        self.b.ret_void()

    def at(self, base: Any, index: Any, type_: Any) -> Any:
        return self.b.gep(self.b.bitcast(base, type_.as_pointer()), [index], source_etype=type_)

    def load(self, base: Any, index: Any, type_: Any) -> Any:
        return self.b.load(self.at(base, index, type_), typ=type_)

    def number(self, pointer: Any) -> Any:
        return self.b.load(pointer, typ=self.i64)

    def count(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        """``body(k)`` for start <= k < stop."""
        b, f = self.b, self.b.function
        before, test, inside, done = b.block, *(f.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        k = b.phi(self.i64)
        k.add_incoming(start, before)
        b.cbranch(b.icmp_signed("<", k, stop), inside, done)
        b.position_at_end(inside)
        body(k)
        k.add_incoming(b.add(k, self.const(1)), b.block)
        b.branch(test)
        b.position_at_end(done)

    def parts(self, letter: str) -> tuple[Any, int]:
        """The type of the real numbers of an element, and how many there are."""
        real = self.ir.FloatType() if letter in "sc" else self.ir.DoubleType()
        return real, 2 if letter in "cz" else 1

    def transpose(self, letter: str) -> None:
        real, parts = self.parts(letter)
        with self.function(f"transpose_{letter}", 2) as (a, size):
            b, n = self.b, self.number(size)

            def conjugate(part: int, x: Any) -> Any:
                return b.fneg(x) if part else x

            def exchange(i: Any, j: Any) -> None:
                places = [b.mul(b.add(b.mul(r, n), c), self.const(parts)) for r, c in ((i, j), (j, i))]
                for part in range(parts):
                    p, q = [self.at(a, b.add(x, self.const(part)), real) for x in places]
                    x, y = b.load(p, typ=real), b.load(q, typ=real)
                    b.store(conjugate(part, y), p)
                    b.store(conjugate(part, x), q)

            def row(i: Any) -> None:
                if parts == 2:
                    place = b.mul(b.mul(i, b.add(n, self.const(1))), self.const(2))
                    own = self.at(a, b.add(place, self.const(1)), real)
                    b.store(b.fneg(b.load(own, typ=real)), own)
                self.count(b.add(i, self.const(1)), n, lambda j: exchange(i, j))

            self.count(self.const(0), n, row)

    def singular(self, letter: str) -> None:
        real, parts = self.parts(letter)
        with self.function(f"singular_{letter}", 3) as (info, a, size):
            b, n, zero = self.b, self.number(size), self.ir.Constant(real, 0)
            b.store(self.const(0), info)

            def look(i: Any) -> None:
                first = b.mul(b.mul(i, b.add(n, self.const(1))), self.const(parts))
                found = [
                    b.fcmp_ordered("==", self.load(a, b.add(first, self.const(k)), real), zero) for k in range(parts)
                ]
                both = b.and_(*found) if parts == 2 else found[0]
                with b.if_then(b.and_(both, b.icmp_signed("==", self.number(info), self.const(0))), likely=False):
                    b.store(b.add(i, self.const(1)), info)

            self.count(self.const(0), n, look)

    def order(self) -> None:
        with self.function("order", 3) as (perm, pivots, size):
            b, n = self.b, self.number(size)
            self.count(self.const(0), n, lambda i: b.store(i, self.at(perm, i, self.i64)))

            def exchange(i: Any) -> None:
                other = b.sub(b.sext(self.load(pivots, i, self.i32), self.i64), self.const(1))
                p, q = self.at(perm, i, self.i64), self.at(perm, other, self.i64)
                x, y = b.load(p, typ=self.i64), b.load(q, typ=self.i64)
                b.store(y, p)
                b.store(x, q)

            self.count(self.const(0), n, exchange)

    def outside(self) -> None:
        with self.function("outside", 3) as (info, perm, size):
            b, n = self.b, self.number(size)
            b.store(self.const(0), info)

            def look(i: Any) -> None:
                wrong = b.icmp_unsigned(">=", self.load(perm, i, self.i64), n)
                b.store(b.or_(self.number(info), b.zext(wrong, self.i64)), info)

            self.count(self.const(0), n, look)

    def rows(self, name: str, moved: int) -> None:
        """Row i of one array is row perm[i] of the other; ``moved``: which of (to, from) is the other."""
        byte = self.ir.IntType(8)
        with self.function(name, 5) as (to, source, perm, size, nbytes):
            b, n, length = self.b, self.number(size), self.number(nbytes)

            def one(i: Any) -> None:
                other = self.load(perm, i, self.i64)
                first, second = (other, i) if moved else (i, other)
                p, q = self.at(to, b.mul(first, length), byte), self.at(source, b.mul(second, length), byte)
                words = self.i64.as_pointer()
                b.call(self.memcpy, [b.bitcast(p, words), b.bitcast(q, words), length])

            self.count(self.const(0), n, one)
