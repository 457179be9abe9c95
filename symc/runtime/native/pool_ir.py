"""The native thread pool: the memory that its threads share, and an LLVM module of the functions that use it.

``symc_parallel(pool, entry, args, count, units, grain, threads, most)`` runs ``entry(args)`` for pieces of
``range(units)``: the first two of the ``count`` words at ``args``, 0 and ``units``, become where a piece begins and
ends, in a copy of them. Pieces begin at multiples of ``grain``, so that a number in memory is made by the same instructions whichever
piece it is in; there are ``most`` of them for each thread, or fewer.

One launch has the pool at a time. A caller that finds it taken, or a piece that would be the only one, runs all of
``range(units)`` itself: nobody waits for threads. Threads are made when they are first wanted, by the launch itself,
and sleep on a condition between launches. They know nothing of Python, and get no signals. After ``fork`` the process
id is another, and the child makes threads of its own.

The word ``Pool.TICKET`` holds what is to be had: ``generation | threads that may still join | pieces | next piece``, 16
bits each. Who exchanges it for one with the next piece counted up owns that piece, and only then reads what the launch
is: until that piece is done, the launch is not.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import signal
from typing import Any

from symc.runtime.machine_code import load_module
from symc.runtime.native import product_ir

#: How many words a launch may have, and how many threads.
MOST_WORDS, MOST_THREADS = 256, 256
#: A line of the cache, or two that are fetched together, in words.
LINE = 16
#: How many times a thread looks again before it sleeps: about 2 us.
LOOKS = 64


class Pool(enum.IntEnum):
    """Words of the pool. What several threads write often is on lines of the cache of its own."""

    PID = 0  #        the process the threads are of; -1 while it is prepared
    THREADS = 1  #    how many there are, callers not counted
    LAUNCHES = 2  #   how many launches had the pool
    ALONE = 3  #      how many found it taken
    GENERATION = 4
    BUSY = 16
    TICKET = 32
    DONE = 48  #      how many pieces are done
    WAKE = 64  #      counts launches, for those who sleep
    SLEEPERS = 65
    WAITING = 66  #   1 while the caller sleeps
    ENTRY = 80  #     the launch
    ARGS = 81
    COUNT = 82
    UNITS = 83
    GRAINS = 84  #    how many times the grain a piece is long
    LOCK = 96  #      128 bytes each
    FOR_WORK = 112
    FOR_END = 128
    BLAS_LOCK = 144
    USERS = 160  #    how many runs have BLAS limited to one thread
    BEFORE = 161  #   how many threads it had; 0 if it is not limited
    GET = 162  #      where its function is that tells that, and the one that sets it
    SET = 163
    PARALLEL = 164  # functions of this module, and of `product_ir`
    LIMIT = 165
    UNLIMIT = 166
    OF_ROWS = 167
    OF_MATRICES = 168
    ROWS = 169


#: The functions that others call.
FUNCTIONS = {Pool.PARALLEL: "symc_parallel", Pool.LIMIT: "symc_limit", Pool.UNLIMIT: "symc_unlimit",
             Pool.OF_ROWS: "symc_rows_of_product", Pool.OF_MATRICES: "symc_products_of_batch"}
#: What is called by name: result, then arguments ("p": a pointer, "i": an int).
LIBC = {
    "getpid": "i",
    "pthread_create": "ipppp",
    "pthread_detach": "ip",
    "pthread_mutex_init": "ipp",
    "pthread_mutex_lock": "ip",
    "pthread_mutex_unlock": "ip",
    "pthread_cond_init": "ipp",
    "pthread_cond_wait": "ipp",
    "pthread_cond_signal": "ip",
    "sigfillset": "ip",
    "pthread_sigmask": "iipp",
}


@functools.cache
def address() -> int:
    """Where the pool is, with its functions; 0 where there are no POSIX threads."""
    if not available():
        return 0
    found = load_module("pool", _text, 0)  # the least code: what matters is how long it takes to be made
    for word, name in FUNCTIONS.items():
        words()[word] = found(name)
    return ctypes.addressof(words())


def counted(word: Pool) -> int:
    """A word of the pool, such as how many launches it has had."""
    return words()[word]


def available() -> bool:
    """Whether there are POSIX threads here."""
    try:
        libc = ctypes.CDLL(None)
        return all(hasattr(libc, name) for name in LIBC)
    except (OSError, TypeError):
        return False


@functools.cache
def words() -> Any:
    """The pool of this process. It is never given back: threads may look at it until the process has ended."""
    allocate = ctypes.CDLL(None).calloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
    start = allocate(Pool.ROWS + LINE, 8)
    if not start:
        raise MemoryError("no memory for a pool of threads")
    return (ctypes.c_int64 * Pool.ROWS).from_address(-(-start // (8 * LINE)) * 8 * LINE)


def _text() -> str:
    from llvmlite import ir

    module = ir.Module("symc_pool")
    _Writer(module, ir).write()
    product_ir.write(module, ir)
    return str(module)


class _Writer:
    """Writes the functions."""

    def __init__(self, module: Any, ir: Any):
        self.module, self.ir, self.i64, self.i32 = module, ir, ir.IntType(64), ir.IntType(32)
        self.word = self.i64.as_pointer()
        types = {"p": self.word, "i": self.i32}
        self.libc = {n: ir.Function(module, ir.FunctionType(types[s[0]], [types[t] for t in s[1:]]), n)
                     for n, s in LIBC.items()}
        self.b: Any = None

    def write(self) -> None:
        void = self.ir.VoidType()
        self.run = self.begin("run", self.i64, [self.i64])
        self.write_run()
        self.worker = self.begin("worker", self.word, [])
        self.write_worker()
        self.grow = self.begin("grow", void, [self.i64])
        self.write_grow()
        self.prepare = self.begin("prepare", self.i64, [])
        self.write_prepare()
        self.begin("symc_parallel", void, [self.i64, self.word, *[self.i64] * 5])
        self.write_parallel()
        self.begin("symc_limit", self.i64, [])
        self.write_limit()
        self.begin("symc_unlimit", void, [])
        self.write_unlimit()

    # -- pieces

    def begin(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """A function whose first argument is the pool."""
        f = self.ir.Function(self.module, self.ir.FunctionType(result, [self.word, *arguments]), name)
        f.linkage = "external" if name in FUNCTIONS.values() else "internal"
        self.pool, *self.given = f.args
        self.b = self.ir.IRBuilder(f.append_basic_block("entry"))
        return f

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, int(k))

    def block(self, name: str = "") -> Any:
        return self.b.function.append_basic_block(name)

    def at(self, word: int) -> Any:
        return self.b.gep(self.pool, [self.const(word)], source_etype=self.i64)

    def load(self, word: int) -> Any:
        return self.b.load_atomic(self.at(word), "seq_cst", 8, typ=self.i64)

    def store(self, value: Any, word: int) -> None:
        self.b.store_atomic(value, self.at(word), "seq_cst", 8)

    def add(self, word: int, k: int) -> Any:
        """The word before."""
        return self.b.atomic_rmw("add", self.at(word), self.const(k), "seq_cst")

    def call(self, name: str, *arguments: Any) -> Any:
        return self.b.call(self.libc[name], arguments)

    def lock(self, word: Pool = Pool.LOCK) -> None:
        self.call("pthread_mutex_lock", self.at(word))

    def unlock(self, word: Pool = Pool.LOCK) -> None:
        self.call("pthread_mutex_unlock", self.at(word))

    def equal(self, a: Any, b: Any) -> Any:
        return self.b.icmp_unsigned("==", a, b)

    def part(self, ticket: Any, k: int) -> Any:
        """Of a ticket: 0 the next piece, 1 how many there are, 2 how many threads may join, 3 the generation."""
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
        from llvmlite import binding

        processor = binding.get_default_triple().partition("-")[0]
        name, operands = {"x86_64": ("llvm.x86.sse2.pause", []),
                          "aarch64": ("llvm.aarch64.hint", [self.ir.Constant(self.i32, 1)])}.get(processor, ("", []))
        if name:
            kind = self.ir.FunctionType(self.ir.VoidType(), [x.type for x in operands])
            self.b.call(self.module.globals.get(name) or self.ir.Function(self.module, kind, name), operands)

    # -- functions

    def write_run(self) -> None:
        """``run(generation)``: run pieces as long as there are some for a thread that belongs to this launch, or may
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
        piece = self.part(ticket, 0)
        b.cbranch(b.icmp_unsigned("<", piece, self.part(ticket, 1)), have, out)
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
        self.write_piece(own, piece)
        generation, pieces = self.part(ticket, 3), self.part(ticket, 1)
        done = b.add(self.add(Pool.DONE, 1), self.const(1))
        b.cbranch(self.equal(done, pieces), finished, look)
        mine.add_incoming(generation, work)
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

    def write_piece(self, own: Any, piece: Any) -> None:
        """Run a piece with words of its own."""
        b = self.b
        args = b.inttoptr(b.load(self.at(Pool.ARGS), typ=self.i64), self.word)
        count, units = (b.load(self.at(w), typ=self.i64) for w in (Pool.COUNT, Pool.UNITS))
        length = b.load(self.at(Pool.GRAINS), typ=self.i64)
        memcpy = self.module.globals.get("memcpy") or self.ir.Function(
            self.module, self.ir.FunctionType(self.word, [self.word, self.word, self.i64]), "memcpy")
        b.call(memcpy, [own, args, b.shl(count, self.const(3))])
        first = b.mul(piece, length)
        last = b.add(first, length)
        pieces = self.part(self.load(Pool.TICKET), 1)
        end = b.select(self.equal(b.add(piece, self.const(1)), pieces), units, last)
        b.store(first, own)
        b.store(end, b.gep(own, [self.const(1)], source_etype=self.i64))
        self.enter(b.load(self.at(Pool.ENTRY), typ=self.i64), own)

    def enter(self, entry: Any, args: Any) -> None:
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.word]).as_pointer()
        self.b.call(self.b.inttoptr(entry, kind), [args])

    def write_worker(self) -> None:
        """What a thread does."""
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

    def write_prepare(self) -> None:
        """``prepare()``: 1 if the pool is this process's. In a new process most words start again; who comes while
        another thread prepares them does without the pool."""
        b = self.b
        known, other, mine, no = map(self.block, ("known", "other", "mine", "no"))
        process = b.zext(self.call("getpid"), self.i64)
        before = self.load(Pool.PID)
        b.cbranch(self.equal(before, process), known, other)
        b.position_at_end(known)
        b.ret(self.const(1))
        b.position_at_end(other)
        busy = self.equal(before, self.const(-1))
        attempt = self.block("attempt")
        b.cbranch(busy, no, attempt)
        b.position_at_end(attempt)
        won = b.cmpxchg(self.at(Pool.PID), before, self.const(-1), "seq_cst", "seq_cst")
        b.cbranch(b.extract_value(won, 1), mine, no)
        b.position_at_end(mine)
        for word in range(Pool.ROWS):
            if word < Pool.BEFORE and word not in (Pool.PID, Pool.LAUNCHES, Pool.ALONE, Pool.GENERATION):
                b.store(self.const(0), self.at(word))
        null = self.ir.Constant(self.word, None)
        for lock in (Pool.LOCK, Pool.BLAS_LOCK):
            self.call("pthread_mutex_init", self.at(lock), null)
        for condition in (Pool.FOR_WORK, Pool.FOR_END):
            self.call("pthread_cond_init", self.at(condition), null)
        self.store(process, Pool.PID)
        b.ret(self.const(1))
        b.position_at_end(no)
        b.ret(self.const(0))

    def write_parallel(self) -> None:
        b = self.b
        entry, args, count, units, grain, threads, each = self.given
        try_, have, several, alone, free_alone = map(self.block, ("try", "have", "several", "alone", "free_alone"))
        ready = b.call(self.prepare, [self.pool])
        b.cbranch(self.equal(ready, self.const(1)), try_, alone)
        b.position_at_end(try_)
        won = b.cmpxchg(self.at(Pool.BUSY), self.const(0), self.const(1), "seq_cst", "seq_cst")
        b.cbranch(b.extract_value(won, 1), have, alone)
        b.position_at_end(have)
        b.call(self.grow, [self.pool, b.sub(threads, self.const(1))])
        length, pieces = self.pieces(units, grain, b.mul(threads, each))
        b.cbranch(b.icmp_unsigned(">", pieces, self.const(1)), several, free_alone)
        b.position_at_end(several)
        for word, value in ((Pool.ENTRY, entry), (Pool.ARGS, b.ptrtoint(args, self.i64)), (Pool.COUNT, count),
                            (Pool.UNITS, units), (Pool.GRAINS, length)):
            b.store(value, self.at(word))
        self.launch(pieces, b.sub(threads, self.const(1)))
        b.ret_void()
        b.position_at_end(free_alone)
        self.store(self.const(0), Pool.BUSY)
        b.branch(alone)
        b.position_at_end(alone)
        self.add(Pool.ALONE, 1)
        self.enter(entry, args)
        b.ret_void()

    def pieces(self, units: Any, grain: Any, most: Any) -> tuple[Any, Any]:
        """How long pieces are, a multiple of the grain; how many there are. What is left over is the last one's."""
        b = self.b
        grains = b.udiv(units, grain)
        each = b.udiv(b.add(grains, b.sub(most, self.const(1))), most)
        each = b.select(self.equal(each, self.const(0)), self.const(1), each)
        return b.mul(each, grain), b.udiv(grains, each)

    def launch(self, pieces: Any, helpers: Any) -> None:
        """Offer the pieces, take part, wait for those that others have."""
        b = self.b
        generation = b.and_(b.add(b.load(self.at(Pool.GENERATION), typ=self.i64), self.const(1)), self.const(0x7FFF))
        generation = b.or_(generation, self.const(0x8000))  # never 0, that of threads that were nowhere yet
        b.store(generation, self.at(Pool.GENERATION))
        self.add(Pool.LAUNCHES, 1)
        self.store(self.const(0), Pool.DONE)
        ticket = b.or_(b.shl(generation, self.const(48)), b.or_(b.shl(helpers, self.const(32)),
                                                                b.shl(pieces, self.const(16))))
        self.store(ticket, Pool.TICKET)
        self.wake(helpers)
        b.call(self.run, [self.pool, generation])

        def finished() -> Any:
            return self.equal(self.load(Pool.DONE), pieces)

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
        before, test, one, done = b.block, *map(self.block, ("each", "one", "woken"))
        b.branch(test)
        b.position_at_end(test)
        k = b.phi(self.i64)
        k.add_incoming(self.const(0), before)
        b.cbranch(b.icmp_signed("<", k, n), one, done)
        b.position_at_end(one)
        self.call("pthread_cond_signal", self.at(Pool.FOR_WORK))
        k.add_incoming(b.add(k, self.const(1)), one)
        b.branch(test)
        b.position_at_end(done)
        self.unlock()

    def write_limit(self) -> None:
        """Have BLAS use one thread until ``symc_unlimit``, of which there may be several at a time; 0 where that is not
        to be called, as BLAS has one anyway."""
        b = self.b
        ours, several, first, limit, taken, no, out = map(
            self.block, ("ours", "several", "first", "limit", "taken", "no", "out"))
        b.cbranch(self.equal(b.call(self.prepare, [self.pool]), self.const(1)), ours, out)
        b.position_at_end(ours)
        self.lock(Pool.BLAS_LOCK)
        b.cbranch(self.equal(self.load(Pool.USERS), self.const(0)), first, taken)
        b.position_at_end(first)
        get = b.inttoptr(self.load(Pool.GET), self.ir.FunctionType(self.i32, []).as_pointer())
        now = b.zext(b.call(get, []), self.i64)
        b.cbranch(b.icmp_unsigned(">", now, self.const(1)), limit, several)
        b.position_at_end(several)  # a process may have been forked while BLAS was limited
        b.cbranch(self.equal(self.load(Pool.BEFORE), self.const(0)), no, taken)
        b.position_at_end(limit)
        self.store(now, Pool.BEFORE)
        self.set_threads(self.const(1))
        b.branch(taken)
        b.position_at_end(taken)
        self.add(Pool.USERS, 1)
        self.unlock(Pool.BLAS_LOCK)
        b.ret(self.const(1))
        b.position_at_end(no)
        self.unlock(Pool.BLAS_LOCK)
        b.branch(out)
        b.position_at_end(out)
        b.ret(self.const(0))

    def write_unlimit(self) -> None:
        b = self.b
        self.lock(Pool.BLAS_LOCK)
        last = self.equal(self.add(Pool.USERS, -1), self.const(1))
        with b.if_then(last):
            self.set_threads(self.load(Pool.BEFORE))
            self.store(self.const(0), Pool.BEFORE)
        self.unlock(Pool.BLAS_LOCK)
        b.ret_void()

    def set_threads(self, n: Any) -> None:
        """Let BLAS use n threads."""
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.i32]).as_pointer()
        self.b.call(self.b.inttoptr(self.load(Pool.SET), kind), [self.b.trunc(n, self.i32)])
