"""The native thread pool: the memory that its threads share, and an LLVM module of the functions that use it.

``symc_parallel(pool, entry, args, count, units, grain, threads, most, ends)`` runs ``entry(args)`` for chunks of
``range(units)``: the first two of the ``count`` words at ``args``, 0 and ``units``, become where a chunk begins and
ends, in a copy of them. Chunks begin at multiples of ``grain``, so that a number in memory is made by the same
instructions whichever chunk it is in; there are ``most`` of them for each thread, or fewer. If ``ends``, the third
word, which is 1, is 0 for chunks, and ``entry`` is called with 1 and an empty range when all are done.

One launch has the pool at a time. A caller that finds it taken, or a chunk that would be the only one, runs all of
``range(units)`` itself: nobody waits for threads. Threads are made when they are first wanted, by the launch itself,
and sleep on a condition between launches. They know nothing of Python, and get no signals. After ``fork`` the process
id is another, and the child makes threads of its own.

The word ``Pool.TICKET`` holds what is to be had: ``generation | threads that may still join | chunks | next chunk``, 16
bits each. Who exchanges it for one with the next chunk counted up owns that chunk, and only then reads what the launch
is: until that chunk is done, the launch is not.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cpu.native.pool_words import FUNCTIONS, LIBC, Pool

#: How many times a thread looks again before it sleeps: about 2 us.
LOOKS = 64


class Writer:
    """Writes functions of the module; their first argument is the pool."""

    def __init__(self, module: Any, ir: Any):
        self.module, self.ir, self.i64, self.i32 = module, ir, ir.IntType(64), ir.IntType(32)
        self.word = self.i64.as_pointer()
        types = {"p": self.word, "i": self.i32}
        self.libc = {n: self.outside(n, types[s[0]], [types[t] for t in s[1:]]) for n, s in LIBC.items()}
        self.b: Any = None

    def begin(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """A function whose first argument is the pool."""
        f = self.ir.Function(self.module, self.ir.FunctionType(result, [self.word, *arguments]), name)
        f.linkage = "external" if name in FUNCTIONS.values() else "internal"
        self.pool, *self.given = f.args
        self.b = self.ir.IRBuilder(f.append_basic_block("entry"))
        return f

    def outside(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """A function of another library."""
        kind = self.ir.FunctionType(result, arguments)
        return self.module.globals.get(name) or self.ir.Function(self.module, kind, name)

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

    def lock(self, word: int = Pool.LOCK) -> None:
        self.call("pthread_mutex_lock", self.at(word))

    def unlock(self, word: int = Pool.LOCK) -> None:
        self.call("pthread_mutex_unlock", self.at(word))

    def equal(self, a: Any, b: Any) -> Any:
        return self.b.icmp_unsigned("==", a, b)

    def prepared(self) -> Any:
        """1 if the pool is this process's, see ``Prepare``."""
        return self.b.call(self.module.globals["prepare"], [self.pool])


class Prepare(Writer):
    def write(self) -> None:
        """``prepare()``: 1 if the pool is this process's. In a new process most words start again; who comes while
        another thread prepares them does without the pool."""
        self.begin("prepare", self.i64, [])
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
