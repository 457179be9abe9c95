"""The native interpreter of plans: one LLVM function, compiled once in the life of a machine.

``i64 run(i64 *memory)`` runs the instructions in ``memory`` and returns 0, or the number that stopped it. ``memory``
begins with data, the first words of which are those in ``instructions.Word``. ``i64 prepare(i64 *memory)`` runs those
from ``Word.PREPARE`` on, which look at the arguments of a call and compute what depends on their sizes.

An instruction is a word that says what to do and words that say with what: a *slot* is the index of a word of data,
which holds an address or a number; a *target* is a position relative to the start of the code. (Instructions are words
too: what depends on sizes may be moved into them.) What they do is said in ``instructions.Op``; what a plan becomes,
in ``symc.runtime.cpu.lower``.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from symc.runtime.cpu.native import assembly, float_state
from symc.runtime.cpu.native.instructions import (
    ARITIES,
    DATA,
    FAILED,
    NOT_ARRAY,
    PULSE_STEP,
    STOPPED,
    Lap,
    Op,
    Section,
    Word,
)
from symc.runtime.cpu.native.pool_words import Pool
from symc.runtime.cpu.native.sizes_ir import Sizes


def counter() -> str:
    """LLVM's name of a clock that user code may read: of time on ARM, of cycles (at a constant rate) elsewhere."""
    arm = platform.machine().lower() in ("aarch64", "arm64")
    return "llvm.readsteadycounter" if arm else "llvm.readcyclecounter"


def text(instructions: frozenset[int]) -> str:
    """The text of the module of an interpreter that knows these."""
    module = assembly.Module()
    Interpreter(module, assembly).build(instructions)
    return str(module)


class Interpreter(Sizes):
    """Builds the function."""

    def __init__(self, module: Any, ir: Any):
        super().__init__(module, ir)
        words = self.words
        self.function = ir.Function(module, ir.FunctionType(self.i64, [words, self.i64, words]), "interpret")
        self.function.linkage = "internal"
        self.data, self.start, self.section = self.function.args
        self.memmove = ir.Function(module, ir.FunctionType(words, [words, words, self.i64]), "memmove")
        self.clock = ir.Function(module, ir.FunctionType(self.i64, []), counter())
        self.memset = ir.Function(module, ir.FunctionType(words, [words, ir.IntType(32), self.i64]), "memset")
        self.python = self.build_python()
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))

    def build(self, instructions: frozenset[int]) -> None:
        b, f = self.b, self.function
        entry, fetch, bad = b.block, f.append_basic_block("fetch"), f.append_basic_block("bad")
        inner = f
        self.code = self.code_of(self.data)
        self.alone = self.equal(self.section, self.none())
        b.branch(fetch)
        b.position_at_end(fetch)
        self.fetch, self.ip = fetch, b.phi(self.i64, "ip")
        self.ip.add_incoming(self.start, entry)
        self.here = self.at(self.code, self.ip)
        switch = b.switch(self.operand(-1), bad)
        b.position_at_end(bad)
        b.ret(self.const(-1))
        bodies: dict[int, Callable[[], None]] = {
            op: getattr(self, name.lower()) for name, op in Op.names().items() if op != Op.CALL}
        bodies |= {Op.CALL + n: lambda n=n: self.call(n) for n in ARITIES}  # type: ignore[misc]
        for number in sorted(instructions):
            block = f.append_basic_block(f"op{number}")
            switch.add_case(self.const(number), block)
            b.position_at_end(block)
            bodies[number]()
        self.build_run(inner)
        self.begin("symc_prepare")
        start = self.load(self.data, Word.PREPARE)
        self.b.ret(self.b.call(inner, [self.data, start, self.none()]))

    def begin(self, name: str) -> None:
        """A function that is called from outside."""
        kind = self.ir.FunctionType(self.i64, [self.words])
        self.function = self.ir.Function(self.module, kind, name)
        self.data = self.function.args[0]
        self.b = self.ir.IRBuilder(self.function.append_basic_block("entry"))

    def build_run(self, inner: Any) -> None:
        """The run, with BLAS limited meanwhile if that is wanted."""
        self.begin("symc_run")
        b = self.b
        wanted = self.different(self.load(self.data, Word.LIMIT), self.const(0))
        limited = b.alloca(self.i64)
        b.store(self.const(0), limited)
        with b.if_then(wanted, likely=False):
            b.store(self.of_pool(Pool.LIMIT, self.i64, []), limited)
        self.take_state()
        status = b.call(inner, [self.data, self.const(0), self.none()])
        self.give_state()
        with b.if_then(self.different(b.load(limited, typ=self.i64), self.const(0)), likely=False):
            self.of_pool(Pool.UNLIMIT, self.void, [])
        b.ret(status)

    def build_python(self) -> Any:
        """``python(words, number)`` calls Python in the floating-point state of the caller; ``symc_pulse(words)``."""
        ir, kind, run = self.ir, self.ir.FunctionType(self.void, [self.i64]), (self.function, self.data)
        python = ir.Function(self.module, ir.FunctionType(self.void, [self.data.type, self.i64]), "python")
        python.linkage, self.data = "internal", python.args[0]
        self.b = ir.IRBuilder(python.append_basic_block("entry"))
        self.give_state()
        entry = self.load(self.data, Word.PYTHON)
        self.b.call(self.b.inttoptr(entry, kind.as_pointer()), [python.args[1]])
        self.take_state()
        self.b.ret_void()
        pulse = ir.Function(self.module, kind, "symc_pulse")
        self.b = ir.IRBuilder(pulse.append_basic_block("entry"))
        self.b.call(python, [self.b.inttoptr(pulse.args[0], self.data.type), self.const(PULSE_STEP)])
        self.b.ret_void()
        self.function, self.data = run
        return python

    def take_state(self) -> None:
        """Compute in the floating-point state of the run, if it has one, from here on."""
        b, ir, scratch = self.b, self.ir, self.at(self.data, Word.SCRATCH)
        wanted, caller = self.load(self.data, Word.STATE), self.at(self.data, Word.CALLER)
        with b.if_then(self.different(wanted, self.const(0)), likely=False):
            float_state.save(b, ir, caller)
            b.store(b.or_(wanted, b.and_(b.load(caller, typ=self.i64), self.const(~float_state.MET))), scratch)
            float_state.restore(b, ir, scratch)

    def give_state(self) -> None:
        """Compute in that of the caller again."""
        b, ir, (scratch, met) = self.b, self.ir, [self.at(self.data, k) for k in (Word.SCRATCH, Word.MET)]
        wanted = self.load(self.data, Word.STATE)
        with b.if_then(self.different(wanted, self.const(0)), likely=False):
            float_state.save(b, ir, scratch)
            found = b.and_(b.load(scratch, typ=self.i64), self.const(float_state.MET))
            b.store(b.or_(b.load(met, typ=self.i64), found), met)
            float_state.restore(b, ir, self.at(self.data, Word.CALLER))

    # -- instructions

    def none(self) -> Any:
        """The section of code that is in none: its first word is LEFT itself."""
        return self.at(self.data, Word.LEFT)

    def halt(self) -> None:
        self.b.ret(self.const(0))

    def addresses(self, first: Any, n: Any, operands: int) -> None:
        """Put the words that n operands name, those after the first ``operands``, into the slots from ``first`` on."""
        self.each(n, lambda k: self.b.store(
            self.word(self.b.add(k, self.const(operands))), self.at(self.data, self.b.add(first, k))))

    def launch(self) -> None:
        n = self.operand(3)
        self.addresses(self.operand(2), n, 4)
        self.enter(self.operand(0))
        self.next(self.b.add(n, self.const(4)))

    def enter(self, entry: Any) -> None:
        """Call the kernel of a launch."""
        kind = self.ir.FunctionType(self.void, [self.words]).as_pointer()
        self.b.call(self.b.inttoptr(entry, kind), [self.slot(1)])

    def pieces(self) -> None:
        b, n, entry = self.b, self.operand(3), self.operand(0)
        self.addresses(self.operand(2), n, 10)
        threads = b.mul(self.load(self.data, Word.THREADS), self.operand(9))
        with b.if_else(b.icmp_signed(">", threads, self.const(1))) as (several, one):
            with several:
                # `entry` is a native address, or the index of a word of the pool
                native = b.icmp_unsigned(">", entry, self.const(Pool.ROWS))
                place = self.at(self.pool_words(), b.select(native, self.const(0), entry))
                entry = b.select(native, entry, b.load(place, typ=self.i64))
                how = [*[self.operand(k) for k in (4, 5, 6)], threads, self.operand(7), self.operand(8)]
                self.of_pool(Pool.PARALLEL, self.void, [entry, self.slot(1), *how])
            with one:
                self.enter(self.operand(0))
        self.next(b.add(n, self.const(10)))

    def pool_words(self) -> Any:
        return self.pointer(self.load(self.data, Word.POOL))

    def of_pool(self, function: int, result: Any, arguments: list[Any]) -> Any:
        """Call a function of the pool."""
        pool = self.pool_words()
        kind = self.ir.FunctionType(result, [pool.type, *[a.type for a in arguments]])
        found = self.b.inttoptr(self.load(pool, function), kind.as_pointer())
        return self.b.call(found, [pool, *arguments])

    def call(self, n: int) -> None:
        entry = self.ir.FunctionType(self.void, [self.words] * n).as_pointer()
        arguments = [self.address(k + 1) for k in range(n)]
        self.b.call(self.b.inttoptr(self.operand(0), entry), arguments)
        self.next(n + 1)

    def copy(self) -> None:
        to, source = self.address(0), self.address(1)
        with self.b.if_then(self.different(self.word(0), self.word(1))):
            self.b.call(self.memmove, [to, source, self.operand(2)])
        self.next(3)

    def clear(self) -> None:
        self.b.call(self.memset, [self.address(0), self.ir.Constant(self.ir.IntType(32), 0), self.operand(1)])
        self.next(2)

    def move(self) -> None:
        self.b.store(self.b.add(self.word(1), self.operand(2)), self.slot(0))
        self.next(3)

    def set(self) -> None:
        self.b.store(self.operand(1), self.slot(0))
        self.next(2)

    def swap(self) -> None:
        a, c = self.word(0), self.word(1)
        self.b.store(c, self.slot(0))
        self.b.store(a, self.slot(1))
        self.next(2)

    def jump(self) -> None:
        self.go(self.operand(0))

    def loop(self) -> None:
        self.pulse()
        left = self.b.sub(self.word(0), self.const(1))
        self.b.store(left, self.slot(0))
        self.jump_if(self.b.icmp_signed(">", left, self.const(0)), 1, 2)

    def jump_if_zero(self) -> None:
        byte = self.b.load(self.address(0, self.i8), typ=self.i8)
        self.jump_if(self.equal(byte, self.ir.Constant(self.i8, 0)), 1, 2)

    def jump_unless_zero(self) -> None:
        self.jump_if(self.different(self.unaligned(self.address(0)), self.const(0)), 1, 2)

    def jump_if_less(self) -> None:
        self.jump_if(self.b.icmp_signed("<", self.word(0), self.operand(1)), 2, 3)

    def switch(self) -> None:
        b, zero = self.b, self.const(0)
        index, last = self.unaligned(self.address(0)), b.sub(self.operand(1), self.const(1))
        index = b.select(b.icmp_signed("<", index, zero), zero, index)
        index = b.select(b.icmp_signed(">", index, last), last, index)
        self.go(self.operand(b.add(index, self.const(2))))

    def store(self) -> None:
        self.b.store(self.word(1), self.address(0))
        self.next(2)

    def open(self) -> None:
        """Stop with NOT_ARRAY at an object of another type: what lies there is no address."""
        b, first, n, wanted = self.b, self.operand(0), self.operand(1), self.operand(2)

        def one(k: Any, wrong: Any) -> Any:
            slot = self.at(self.data, b.add(first, k))
            header = self.pointer(b.load(slot, typ=self.i64))
            type_ = self.load(header, DATA // 8 - 1)
            b.store(self.load(header, DATA // 8), slot)
            return b.or_(wrong, b.xor(type_, wanted))

        wrong = self.fold(n, self.const(0), one)
        with b.if_then(self.different(wrong, self.const(0)), likely=False):
            b.ret(self.const(NOT_ARRAY))
        self.next(3)

    def callback(self) -> None:
        self.call_python(self.operand(0))
        self.next(1)

    def sections(self) -> None:
        b, n = self.b, self.operand(1)
        threads = b.mul(self.load(self.data, Word.THREADS), self.operand(2))
        with b.if_then(b.icmp_signed(">", threads, self.const(1))):
            own = [b.ptrtoint(f, self.i64) for f in (self.function, self.python)]
            given = [self.data, self.operand(0), n, threads, self.at(self.here, 6), *own]
            kind = self.ir.FunctionType(self.i64, [x.type for x in given]).as_pointer()
            status = b.call(b.inttoptr(self.operand(4), kind), given)
            with b.if_then(self.different(status, self.const(0)), likely=False):
                b.ret(status)
            self.go(self.operand(3))
        self.next(b.add(n, self.const(5)))

    def join(self) -> None:
        with self.b.if_then(self.b.not_(self.alone), likely=False):
            self.b.ret(self.const(0))
        self.next(0)

    def stop_if_failed(self) -> None:
        self.unless_failed()
        self.next(0)

    def lap(self) -> None:
        b, now = self.b, self.b.call(self.clock, [])
        last, lap = self.at(self.data, Word.CLOCK), self.slot(0)
        runs, ticks, least = (self.at(lap, k) for k in Lap)
        time = b.sub(now, b.load(last, typ=self.i64))
        b.store(now, last)
        b.store(b.add(b.load(runs, typ=self.i64), self.const(1)), runs)
        b.store(b.add(b.load(ticks, typ=self.i64), time), ticks)
        before = b.load(least, typ=self.i64)
        b.store(b.select(b.icmp_signed("<", time, before), time, before), least)
        count = self.at(self.data, Word.LOGGED)
        logged = b.load(count, typ=self.i64)
        with b.if_then(b.icmp_signed("<", logged, self.operand(1))):
            log = self.pointer(self.load(self.data, Word.LOG))
            entry = self.at(log, b.mul(logged, self.const(2)))
            b.store(self.operand(0), entry)
            b.store(now, self.at(entry, 1))
            b.store(b.add(logged, self.const(1)), count)
        self.next(2)

    def again(self) -> None:
        self.pulse()
        self.go(self.operand(0))

    def call_python(self, number: Any) -> None:
        """Call Python; a section stops, for the thread of the call to do it."""
        with self.b.if_then(self.b.not_(self.alone), likely=False):
            self.b.store(self.ip, self.at(self.section, Section.PLACE))
            self.b.ret(self.const(STOPPED))
        self.in_python(number)

    def in_python(self, number: Any) -> None:
        """Call Python. Whatever goes wrong there, even in the call itself, leaves the word FAILED as it is."""
        b, failed = self.b, self.at(self.data, Word.FAILED)
        b.store(self.const(FAILED), failed)
        b.call(self.python, [self.data, number])
        self.unless_failed()

    def unless_failed(self) -> None:
        b, failed = self.b, self.at(self.data, Word.FAILED)
        status = b.load(failed, typ=self.i64)
        with b.if_then(b.icmp_signed("!=", status, self.const(0)), likely=False):
            b.ret(status)

    def pulse(self) -> None:
        b, word = self.b, self.at(self.section, Section.LEFT)
        left = b.sub(b.load(word, typ=self.i64), self.const(1))
        b.store(left, word)
        with b.if_then(b.icmp_signed("<=", left, self.const(0)), likely=False):  # below, if Python failed the last time
            self.call_python(self.const(PULSE_STEP))
