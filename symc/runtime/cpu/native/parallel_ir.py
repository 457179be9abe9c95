"""The functions of the pool of threads that make and run launches. ``pool_ir`` says what they do."""

from __future__ import annotations

import platform
import signal
from typing import Any

from symc.runtime.cpu.native import float_state
from symc.runtime.cpu.native.loops import loop
from symc.runtime.cpu.native.pool_ir import LOOKS, Writer
from symc.runtime.cpu.native.pool_words import MOST_WORDS, Pool


class Parallel(Writer):
    """Writes ``symc_parallel``, and what threads run."""

    def write(self) -> None:
        void = self.ir.VoidType()
        self.run = self.begin("run", self.i64, [self.i64])
        self.write_run()
        self.worker = self.begin("worker", self.word, [])
        self.write_worker()
        self.grow = self.begin("grow", void, [self.i64])
        self.write_grow()
        self.begin("symc_parallel", void, [self.i64, self.word, *[self.i64] * 6])
        self.write_parallel()

    # -- parts of functions

    def part(self, ticket: Any, k: int) -> Any:
        """Word of a ticket: 0 the next chunk, 1 how many there are, 2 how many threads may join, 3 the generation."""
        return self.b.and_(self.b.lshr(ticket, self.const(16 * k)), self.const(0xFFFF))

    def look(self, done: Any) -> None:
        """Look a few times whether a condition holds; go on in any case. ``done()`` gives the condition."""
        b = self.b
        before, again, wait, after = b.block, self.block("look"), self.block("wait"), self.block("looked")
        b.branch(again)
        b.position_at_end(again)
        k = b.phi(self.i64)
        k.add_incoming(self.const(0), before)
        stop = b.or_(done(), self.equal(k, self.const(LOOKS)))
        b.cbranch(stop, after, wait)
        b.position_at_end(wait)
        self.pause()
        k.add_incoming(b.add(k, self.const(1)), wait)
        b.branch(again)
        b.position_at_end(after)

    def pause(self) -> None:
        """Tell the processor that a loop waits."""
        hint = "llvm.aarch64.hint", [self.ir.Constant(self.i32, 1)]
        name, operands = {"x86_64": ("llvm.x86.sse2.pause", []), "amd64": ("llvm.x86.sse2.pause", []), "aarch64": hint,
                          "arm64": hint}.get(platform.machine().lower(), ("", []))
        if name:
            self.b.call(self.outside(name, self.ir.VoidType(), [x.type for x in operands]), operands)

    # -- functions

    def write_run(self) -> None:
        """``run(generation)``: run chunks as long as there are some for a thread that belongs to this launch, or may
        join another. The generation it belonged to last."""
        b = self.b
        (given,) = self.given
        entry = b.block
        own = b.alloca(self.i64, MOST_WORDS)
        look, have, take, work, finished, tell, out = map(
            self.block, ("look", "have", "take", "work", "finished", "tell", "out"))
        b.branch(look)
        b.position_at_end(look)
        mine = b.phi(self.i64, "mine")
        mine.add_incoming(given, entry)
        ticket = self.load(Pool.TICKET)
        chunk = self.part(ticket, 0)
        b.cbranch(b.icmp_unsigned("<", chunk, self.part(ticket, 1)), have, out)
        b.position_at_end(have)
        stranger = b.icmp_unsigned("!=", self.part(ticket, 3), mine)
        refused = b.and_(stranger, self.equal(self.part(ticket, 2), self.const(0)))
        b.cbranch(refused, out, take)
        b.position_at_end(take)
        less = b.select(stranger, self.const(1 << 32), self.const(0))
        new = b.sub(b.add(ticket, self.const(1)), less)
        won = b.extract_value(b.cmpxchg(self.at(Pool.TICKET), ticket, new, "seq_cst", "seq_cst"), 1)
        b.cbranch(won, work, look)
        mine.add_incoming(mine, take)
        b.position_at_end(work)
        self.write_chunk(own, chunk)
        generation, chunks = self.part(ticket, 3), self.part(ticket, 1)
        done = b.add(self.add(Pool.DONE, 1), self.const(1))
        mine.add_incoming(generation, b.block)
        b.cbranch(self.equal(done, chunks), finished, look)
        b.position_at_end(finished)
        b.cbranch(self.equal(self.load(Pool.WAITING), self.const(0)), look, tell)
        mine.add_incoming(generation, finished)
        b.position_at_end(tell)
        self.lock()
        self.call("pthread_cond_signal", self.at(Pool.FOR_END))
        self.unlock()
        mine.add_incoming(generation, tell)
        b.branch(look)
        b.position_at_end(out)
        b.ret(mine)

    def write_chunk(self, own: Any, chunk: Any) -> None:
        """Run a chunk with words of its own."""
        b = self.b
        args = b.inttoptr(b.load(self.at(Pool.ARGS), typ=self.i64), self.word)
        count, units = (b.load(self.at(w), typ=self.i64) for w in (Pool.COUNT, Pool.UNITS))
        length = b.load(self.at(Pool.GRAINS), typ=self.i64)
        memcpy = self.outside("memcpy", self.word, [self.word, self.word, self.i64])
        b.call(memcpy, [own, args, b.shl(count, self.const(3))])
        first = b.mul(chunk, length)
        last = b.add(first, length)
        chunks = self.part(self.load(Pool.TICKET), 1)
        end = b.select(self.equal(b.add(chunk, self.const(1)), chunks), units, last)
        b.store(first, own)
        with b.if_then(b.icmp_unsigned("!=", b.load(self.at(Pool.ENDS), typ=self.i64), self.const(0))):
            b.store(self.const(0), b.gep(own, [self.const(2)], source_etype=self.i64))
        b.store(end, b.gep(own, [self.const(1)], source_etype=self.i64))
        float_state.restore(b, self.ir, self.at(Pool.STATE))
        self.enter(b.load(self.at(Pool.ENTRY), typ=self.i64), own)

    def enter(self, entry: Any, args: Any) -> None:
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.word]).as_pointer()
        self.b.call(self.b.inttoptr(entry, kind), [args])

    def write_worker(self) -> None:
        """Writes the loop of a thread."""
        b = self.b
        entry, again, sleep, nap, awake = b.block, *map(self.block, ("again", "sleep", "nap", "awake"))
        b.branch(again)
        b.position_at_end(again)
        mine = b.phi(self.i64, "mine")
        mine.add_incoming(self.const(0), entry)
        seen = self.load(Pool.WAKE)
        found = b.call(self.run, [self.pool, mine])
        self.look(lambda: b.icmp_unsigned("!=", self.load(Pool.WAKE), seen))
        mine.add_incoming(found, b.block)
        b.cbranch(self.equal(self.load(Pool.WAKE), seen), sleep, again)
        b.position_at_end(sleep)
        self.lock()
        b.cbranch(self.equal(self.load(Pool.WAKE), seen), nap, awake)
        b.position_at_end(nap)
        self.add(Pool.SLEEPERS, 1)
        self.call("pthread_cond_wait", self.at(Pool.FOR_WORK), self.at(Pool.LOCK))
        self.add(Pool.SLEEPERS, -1)
        b.branch(awake)
        b.position_at_end(awake)
        self.unlock()
        mine.add_incoming(found, awake)
        b.branch(again)

    def write_grow(self) -> None:
        """``grow(n)``: make threads until there are n, as far as the system lets us; no signal is for them."""
        b = self.b
        (n,) = self.given
        thread, every, before = (b.alloca(self.i64, k) for k in (1, 16, 16))
        null = self.ir.Constant(self.word, None)
        test, make, made, done = map(self.block, ("test", "make", "made", "done"))
        set_mask = self.ir.Constant(self.i32, int(signal.SIG_SETMASK))
        self.call("sigfillset", every)
        self.call("pthread_sigmask", set_mask, every, before)
        b.branch(test)
        b.position_at_end(test)
        b.cbranch(b.icmp_signed("<", self.load(Pool.THREADS), n), make, done)
        b.position_at_end(make)
        status = self.call("pthread_create", thread, null, b.bitcast(self.worker, self.word), self.pool)
        b.cbranch(self.equal(status, self.ir.Constant(self.i32, 0)), made, done)
        b.position_at_end(made)
        self.add(Pool.THREADS, 1)
        self.call("pthread_detach", b.inttoptr(b.load(thread, typ=self.i64), self.word))
        b.branch(test)
        b.position_at_end(done)
        self.call("pthread_sigmask", set_mask, before, null)
        b.ret_void()

    def write_parallel(self) -> None:
        b = self.b
        entry, args, count, units, grain, threads, each, ends = self.given
        try_, have, several, alone, free_alone = map(self.block, ("try", "have", "several", "alone", "free_alone"))
        ready = self.prepared()
        b.cbranch(self.equal(ready, self.const(1)), try_, alone)
        b.position_at_end(try_)
        won = b.cmpxchg(self.at(Pool.BUSY), self.const(0), self.const(1), "seq_cst", "seq_cst")
        b.cbranch(b.extract_value(won, 1), have, alone)
        b.position_at_end(have)
        b.call(self.grow, [self.pool, b.sub(threads, self.const(1))])
        length, chunks = self.chunks(units, grain, b.mul(threads, each))
        b.cbranch(b.icmp_unsigned(">", chunks, self.const(1)), several, free_alone)
        b.position_at_end(several)
        for word, value in ((Pool.ENTRY, entry), (Pool.ARGS, b.ptrtoint(args, self.i64)), (Pool.COUNT, count),
                            (Pool.UNITS, units), (Pool.GRAINS, length), (Pool.ENDS, ends)):
            b.store(value, self.at(word))
        float_state.save(b, self.ir, self.at(Pool.STATE))
        self.launch(chunks, b.sub(threads, self.const(1)))
        with b.if_then(b.icmp_unsigned("!=", ends, self.const(0))):
            b.store(units, args)
            self.enter(entry, args)
            b.store(self.const(0), args)
        b.ret_void()
        b.position_at_end(free_alone)
        self.store(self.const(0), Pool.BUSY)
        b.branch(alone)
        b.position_at_end(alone)
        self.add(Pool.ALONE, 1)
        self.enter(entry, args)
        b.ret_void()

    def chunks(self, units: Any, grain: Any, most: Any) -> tuple[Any, Any]:
        """Length of chunks, a multiple of the grain, and their number. What is left over is the last one's."""
        b = self.b
        grains = b.udiv(units, grain)
        each = self.rounded_up(grains, most)
        each = b.select(self.equal(each, self.const(0)), self.const(1), each)
        return b.mul(each, grain), self.rounded_up(grains, each)

    def rounded_up(self, a: Any, c: Any) -> Any:
        """The least integer that is not below ``a / c``."""
        return self.b.udiv(self.b.add(a, self.b.sub(c, self.const(1))), c)

    def launch(self, chunks: Any, helpers: Any) -> None:
        """Offer the chunks, take part, wait for those that others have."""
        b = self.b
        generation = b.and_(b.add(b.load(self.at(Pool.GENERATION), typ=self.i64), self.const(1)), self.const(0x7FFF))
        generation = b.or_(generation, self.const(0x8000))  # never 0, that of threads that were nowhere yet
        b.store(generation, self.at(Pool.GENERATION))
        self.add(Pool.LAUNCHES, 1)
        self.store(self.const(0), Pool.DONE)
        ticket = b.or_(b.shl(generation, self.const(48)), b.or_(b.shl(helpers, self.const(32)),
                                                                b.shl(chunks, self.const(16))))
        self.store(ticket, Pool.TICKET)
        self.wake(helpers)
        b.call(self.run, [self.pool, generation])

        def finished() -> Any:
            return self.equal(self.load(Pool.DONE), chunks)

        self.look(finished)
        wait, test, sleep, awake, done = map(self.block, ("wait", "test", "sleep", "awake", "done"))
        b.cbranch(finished(), done, wait)
        b.position_at_end(wait)
        self.lock()
        self.store(self.const(1), Pool.WAITING)
        b.branch(test)
        b.position_at_end(test)
        b.cbranch(finished(), awake, sleep)
        b.position_at_end(sleep)
        self.call("pthread_cond_wait", self.at(Pool.FOR_END), self.at(Pool.LOCK))
        b.branch(test)
        b.position_at_end(awake)
        self.store(self.const(0), Pool.WAITING)
        self.unlock()
        b.branch(done)
        b.position_at_end(done)
        self.store(self.const(0), Pool.BUSY)

    def wake(self, helpers: Any) -> None:
        """As many of those who sleep as may join."""
        b = self.b
        self.lock()
        self.add(Pool.WAKE, 1)
        sleepers = self.load(Pool.SLEEPERS)
        n = b.select(b.icmp_signed("<", sleepers, helpers), sleepers, helpers)
        loop(b, self.const(0), n, lambda k: self.call("pthread_cond_signal", self.at(Pool.FOR_WORK)))
        self.unlock()
