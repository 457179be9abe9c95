"""Native pieces of the executor: the runner of scripts, and kernels in the subset of Python that the kernel
compiler takes. All are compiled once and kept on disk.

The runner takes batches one after the other (forward, or back) and runs the script of each one's block: calls of
kernels, and of compiled functions through the words of their frames. Operands are ``k + base + start * stride``: a
number, a word of the table of bases, a word of the batch's record. So a script is written once, and what changes from
minibatch to minibatch are bases and records.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.codegen.cpu.render import Source
from symc.ir.record import Numbers
from symc.runtime.cache.machine_code import compile_text, load_module
from symc.runtime.cpu.native.interpreter import executor
from symc.runtime.cpu.native.loops import loop


class Ctx(metaclass=Numbers):
    """The words that the runner is given. ``BATCH`` and ``AT`` say where it stopped, and where it goes on."""

    BATCH = 0  #   the batch that runs now
    END = 1  #     the batch to stop before
    STEP = 2  #    1, or -1
    RECORDS = 3  # the address of the records of batches, of RECORD words each
    SCRIPTS = 4  # the address of a table of scripts, by the block of a batch
    BASES = 5  #   the address of the table of bases; base 0 is 0
    AT = 6  #      where in the script of the batch
    RUN = 7  #     native functions of the interpreter of plans
    PREPARE = 8


class Rec(metaclass=Numbers):
    """The words of a batch."""

    BLOCK = 0
    COUNT = 1  #     instances
    ROW = 2  #       of the first in the arena of its type
    PLACE = 3  #     of the first among the instances of the block
    ELEMENT = 4  #   the first value at the ragged port, among all of the block
    ELEMENTS = 5  #  how many
    ZERO = 6
    WORDS = 7


#: What a word of a script means that is no address of a kernel.
STOP, FRAME = 0, 1
#: Words of an operand of a kernel, and of an argument of a frame.
OPERAND, ARGUMENT = 4, 5

#: The most operands of a kernel.
MOST_OPERANDS = 64


class _Runner:
    """Writes ``fold_run``, whose argument are the words of ``Ctx``."""

    def __init__(self, ir: Any):
        self.ir, self.i64 = ir, ir.IntType(64)
        self.words = self.i64.as_pointer()
        self.module = ir.Module()
        self.f = ir.Function(self.module, ir.FunctionType(self.i64, [self.words]), "fold_run")
        self.b, self.ctx = ir.IRBuilder(self.f.append_basic_block("entry")), self.f.args[0]

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, int(k))

    def at(self, base: Any, k: Any) -> Any:
        return self.b.gep(base, [self.const(k) if isinstance(k, int) else k], source_etype=self.i64)

    def get(self, base: Any, k: Any) -> Any:
        return self.b.load(self.at(base, k), typ=self.i64)

    def pointer(self, word: Any) -> Any:
        return self.b.inttoptr(word, self.words)

    def plus(self, a: Any, k: int) -> Any:
        return self.b.add(a, self.const(k))

    def is_zero(self, word: Any) -> Any:
        return self.b.icmp_unsigned("==", word, self.const(0))

    def write(self) -> str:
        """The text of the module: batches one after the other, and for each the script of its block."""
        b, ctx = self.b, self.ctx
        first, end, step, start = (self.get(ctx, k) for k in (Ctx.BATCH, Ctx.END, Ctx.STEP, Ctx.AT))
        records, scripts, self.bases = (self.pointer(self.get(ctx, k)) for k in (Ctx.RECORDS, Ctx.SCRIPTS, Ctx.BASES))
        self.args = b.alloca(self.i64, self.const(MOST_OPERANDS))
        entry, (test, batch, op, some, over, finish) = b.block, (self.f.append_basic_block() for _ in range(6))
        b.branch(test)
        b.position_at_end(test)
        self.i, at = b.phi(self.i64), b.phi(self.i64)
        self.i.add_incoming(first, entry)
        at.add_incoming(start, entry)
        b.cbranch(b.icmp_signed("==", self.i, end), finish, batch)
        b.position_at_end(batch)
        self.record = self.at(records, b.mul(self.i, self.const(Rec.WORDS)))
        self.script = self.pointer(self.get(scripts, self.get(self.record, Rec.BLOCK)))
        b.branch(op)
        b.position_at_end(op)
        self.pc = b.phi(self.i64)
        self.pc.add_incoming(at, batch)
        function = self.get(self.script, self.pc)
        b.cbranch(self.is_zero(function), over, some)
        b.position_at_end(some)
        following = b.add(self.pc, self.word(1))
        with b.if_else(b.icmp_signed("==", function, self.const(FRAME))) as (frame, kernel):
            with frame:
                self.run_frame()
            with kernel:
                self.call_kernel(function)
        self.pc.add_incoming(following, b.block)
        b.branch(op)
        b.position_at_end(over)
        self.i.add_incoming(b.add(self.i, step), over)
        at.add_incoming(self.const(0), over)
        b.branch(test)
        b.position_at_end(finish)
        self.stop(self.const(0), self.const(0))
        return str(self.module)

    def word(self, k: int) -> Any:
        """Word k of the instruction that runs."""
        return self.get(self.script, self.plus(self.pc, k))

    def stop(self, at: Any, status: Any) -> None:
        """Say which batch it is, and where in its script."""
        self.b.store(self.i, self.at(self.ctx, Ctx.BATCH))
        self.b.store(at, self.at(self.ctx, Ctx.AT))
        self.b.ret(status)

    def moved(self, base: Any, start: Any, stride: Any) -> Any:
        """``base + start * stride`` of words of the tables."""
        return self.b.add(self.get(self.bases, base), self.b.mul(self.get(self.record, start), stride))

    def call_kernel(self, function: Any) -> None:
        """Put its operands in a row, and call it."""
        def operand(k: Any) -> None:
            q = self.at(self.script, self.b.add(self.plus(self.pc, 3), self.b.mul(k, self.const(OPERAND))))
            number, *moved = (self.get(q, n) for n in range(OPERAND))
            self.b.store(self.b.add(number, self.moved(*moved)), self.at(self.args, k))

        loop(self.b, self.const(0), self.word(2), operand)
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.words]).as_pointer()
        self.b.call(self.b.inttoptr(function, kind), [self.args])

    def run_frame(self) -> None:
        """Give a compiled function its arguments, as addresses or in headers of arrays, and run its code."""
        b, words, slot = self.b, self.pointer(self.word(3)), self.word(4)

        def argument(k: Any) -> None:
            q = self.at(self.script, b.add(self.plus(self.pc, 5), b.mul(k, self.const(ARGUMENT))))
            header, *moved, rows = (self.get(q, n) for n in range(ARGUMENT))
            address, plain = self.moved(*moved), self.is_zero(header)
            with b.if_then(b.not_(plain)):
                made = self.pointer(header)
                b.store(address, self.at(made, 2))
                b.store(self.get(self.record, rows), self.at(made, 6))
            b.store(b.select(plain, address, header), self.at(words, b.add(slot, k)))

        loop(b, self.const(0), self.word(2), argument)
        kind = self.ir.FunctionType(self.i64, [self.words]).as_pointer()
        for which in (Ctx.PREPARE, Ctx.RUN):
            status = b.call(b.inttoptr(self.get(self.ctx, which), kind), [words])
            with b.if_then(b.not_(self.is_zero(status))):
                self.stop(self.pc, status)


def _runner_text() -> str:
    from symc.runtime.cpu.native import assembly

    return _Runner(assembly).write()


@functools.cache
def runner() -> tuple[Callable[[int], int], int, int]:
    """``run(address of the words of Ctx)``: 0, or what a frame stopped with; and the interpreter's functions."""
    digest = hashlib.sha256(inspect.getsource(_Runner).encode()).hexdigest()[:16]
    address = load_module(f"symc.fold.{digest}", _runner_text, 2)("fold_run")
    run, prepare = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in executor()[:2])  # type: ignore[arg-type]
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address), run, prepare


def address(a: np.ndarray) -> int:
    """Address of the data of an array."""
    return a.__array_interface__["data"][0]


class Kernel:
    """A function in the subset of Python that kernels are written in. Numbers come first, then arrays of ``dtypes``."""

    def __init__(self, fn: Callable[..., Any], numbers: int, dtypes: str):
        text = inspect.getsource(fn)
        text = f"def {fn.__name__}({text.split('(', 1)[1]}" if text.startswith("@") else text
        arrays = tuple(np.dtype(d) for d in dtypes.split())
        self.source = Source(_plain(text), ("",) * numbers, arrays, ())  # type: ignore[arg-type]
        self._words = ctypes.c_int64 * (numbers + len(arrays))

    @functools.cached_property
    def address(self) -> int:
        return compile_text(self.source)

    @functools.cached_property
    def _call(self) -> Any:
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)

    def __call__(self, *args: Any) -> None:
        """Run it on numbers, then arrays."""
        self.run(*(a if isinstance(a, int) else address(a) for a in args))

    def run(self, *words: int) -> None:
        """Run it on numbers, then addresses."""
        array = self._words(*words)
        self._call(ctypes.addressof(array))


def _plain(text: str) -> str:
    """The text of a function without annotations and docstring."""
    import ast

    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    tree.returns, tree.decorator_list = None, []
    for a in tree.args.args:
        a.annotation = None
    if isinstance(tree.body[0], ast.Expr):
        tree.body = tree.body[1:]
    return ast.unparse(tree)
