# mypy: ignore-errors
"""Functions of the native thread pool, in the language of kernels. Their first argument is the pool.

``parallel(pool, entry, args, count, units, grain, threads, most, ends)`` runs ``entry(args)`` for chunks of
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

import signal

from symc.codegen.language.helpers import called, inlined, plain
from symc.codegen.language.names import i64, u64
from symc.codegen.language.native import (
    Outside,
    Texts,
    address,
    array,
    atomic_add,
    atomic_exchange,
    atomic_load,
    atomic_store,
    memory,
)
from symc.runtime.cpu.native.float_state import ARM, X86
from symc.runtime.cpu.native.pool_words import LIBC, MOST_WORDS, Pool

#: How many times a thread looks again before it sleeps: about 2 us.
LOOKS = 64
#: The process while one prepares the pool, and what is added to count down: -1. A thread that joins, in a ticket.
NONE, JOINED, SET_MASK = 2**64 - 1, 1 << 32, int(signal.SIG_SETMASK)
LOCKS, CONDITIONS = (Pool.LOCK, Pool.BLAS_LOCK), (Pool.FOR_WORK, Pool.FOR_END)
(getpid, pthread_create, pthread_detach, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
 pthread_cond_init, pthread_cond_wait, pthread_cond_signal, sigfillset, pthread_sigmask) = (
    Outside(name, letters) for name, letters in LIBC.items())
memcpy = Outside("memcpy", "vppl")
pause_x86, pause_arm = Outside("llvm.x86.sse2.pause", "v"), Outside("llvm.aarch64.hint", "vi")
save_x86, load_x86 = Outside("llvm.x86.sse.stmxcsr", "vp"), Outside("llvm.x86.sse.ldmxcsr", "vp")
save_arm, load_arm = Outside("llvm.aarch64.get.fpcr", "l"), Outside("llvm.aarch64.set.fpcr", "vl")
kernel, get_threads, set_threads = Outside("", "vp"), Outside("", "i"), Outside("", "vi")
gemm = Outside("", "v" + "p" * 13)


def texts() -> Texts:
    """The functions that others call (``pool_words.FUNCTIONS``)."""
    return {f.name: (f, {}) for f in (parallel, limit, unlimit, rows_of_product, products_of_batch)}


@called
def prepare(pool):
    """1 if the pool is this process's. In a new process most words start again; who comes while another thread prepares
    them does without the pool."""
    process, before = u64(getpid()), atomic_load(pool[Pool.PID :])
    if before == process:
        return u64(1)
    if before == NONE or not atomic_exchange(pool[Pool.PID :], before, NONE):
        return u64(0)
    for word in range(Pool.BEFORE):
        if word != Pool.PID and word != Pool.LAUNCHES and word != Pool.ALONE and word != Pool.GENERATION:
            pool[word] = 0
    for lock in LOCKS:
        pthread_mutex_init(pool[lock:], 0)
    for condition in CONDITIONS:
        pthread_cond_init(pool[condition:], 0)
    atomic_store(pool[Pool.PID :], process)
    return u64(1)


@inlined
def part(ticket, k):
    """Word of a ticket: 0 the next chunk, 1 how many there are, 2 how many threads may join, 3 the generation."""
    return ticket >> 16 * k & 0xFFFF


@called
def run(pool, mine):
    """Run chunks as long as there are some for a thread that belongs to this launch, or may join another. The
    generation it belonged to last."""
    own = memory(u64, MOST_WORDS)
    while True:
        ticket = atomic_load(pool[Pool.TICKET :])
        stranger = part(ticket, 3) != mine
        if part(ticket, 0) >= part(ticket, 1) or (stranger and part(ticket, 2) == 0):
            return mine
        new = ticket + 1 - JOINED if stranger else ticket + 1
        if atomic_exchange(pool[Pool.TICKET :], ticket, new):
            run_chunk(pool, own, ticket)
            mine = part(ticket, 3)
            if atomic_add(pool[Pool.DONE :], 1) + 1 == part(ticket, 1) and atomic_load(pool[Pool.WAITING :]) != 0:
                pthread_mutex_lock(pool[Pool.LOCK :])
                pthread_cond_signal(pool[Pool.FOR_END :])
                pthread_mutex_unlock(pool[Pool.LOCK :])


@called
def run_chunk(pool, own, ticket):
    """Run the next chunk of a ticket with words of its own."""
    memcpy(own, pool[Pool.ARGS], 8 * pool[Pool.COUNT])
    own[0] = part(ticket, 0) * pool[Pool.GRAINS]
    own[1] = own[0] + pool[Pool.GRAINS]
    if part(ticket, 0) + 1 == part(ticket, 1):
        own[1] = pool[Pool.UNITS]
    if pool[Pool.ENDS] != 0:
        own[2] = 0
    restore_state(pool[Pool.STATE :])
    kernel(pool[Pool.ENTRY], own)


@called
def worker(pool: array[u64]):
    """The loop of a thread."""
    mine = u64(0)
    while True:
        seen = atomic_load(pool[Pool.WAKE :])
        mine = run(pool, mine)
        for _ in range(LOOKS):
            if atomic_load(pool[Pool.WAKE :]) != seen:
                break
            wait()
        if atomic_load(pool[Pool.WAKE :]) == seen:
            pthread_mutex_lock(pool[Pool.LOCK :])
            if atomic_load(pool[Pool.WAKE :]) == seen:
                atomic_add(pool[Pool.SLEEPERS :], 1)
                pthread_cond_wait(pool[Pool.FOR_WORK :], pool[Pool.LOCK :])
                atomic_add(pool[Pool.SLEEPERS :], NONE)
            pthread_mutex_unlock(pool[Pool.LOCK :])


@called
def grow(pool, n):
    """Make threads until there are n, as far as the system lets us; no signal is for them."""
    thread, every, before = memory(u64, 1), memory(u64, 16), memory(u64, 16)
    sigfillset(every)
    pthread_sigmask(SET_MASK, every, before)
    while i64(atomic_load(pool[Pool.THREADS :])) < i64(n):
        if pthread_create(thread, 0, worker, pool) != 0:
            break
        atomic_add(pool[Pool.THREADS :], 1)
        pthread_detach(thread[0])
    pthread_sigmask(SET_MASK, before, 0)


@inlined
def wait():
    """Tell the processor that a loop waits."""
    if X86:
        pause_x86()
    if ARM:
        pause_arm(1)


@inlined
def save_state(to):
    """The state of the floating-point unit, as in ``float_state``."""
    if X86:
        to[0] = 0
        save_x86(to)
    if ARM:
        to[0] = save_arm()


@inlined
def restore_state(source):
    if X86:
        load_x86(source)
    if ARM:
        load_arm(source[0])


@inlined
def rounded_up(a, c):
    """The least integer that is not below ``a / c``."""
    return (a + c - 1) // c


@plain
def parallel(pool: array[u64], entry: u64, args: array[u64], count: u64, units: u64, grain: u64, threads: u64,
             most: u64, ends: u64):
    if prepare(pool) == 1 and atomic_exchange(pool[Pool.BUSY :], 0, 1):
        grow(pool, threads - 1)
        grains = units // grain
        each = max(rounded_up(grains, threads * most), 1)
        chunks = rounded_up(grains, each)
        if chunks > 1:
            pool[Pool.ENTRY], pool[Pool.ARGS], pool[Pool.COUNT] = entry, u64(address(args)), count
            pool[Pool.UNITS], pool[Pool.GRAINS], pool[Pool.ENDS] = units, each * grain, ends
            save_state(pool[Pool.STATE :])
            launch(pool, chunks, threads - 1)
            if ends != 0:
                args[0] = units
                kernel(entry, args)
                args[0] = 0
            return
        atomic_store(pool[Pool.BUSY :], 0)
    atomic_add(pool[Pool.ALONE :], 1)
    kernel(entry, args)


@called
def launch(pool, chunks, helpers):
    """Offer the chunks, take part, wait for those that others have."""
    generation = pool[Pool.GENERATION] + 1 & 0x7FFF | 0x8000  # never 0, that of threads that were nowhere yet
    pool[Pool.GENERATION] = generation
    atomic_add(pool[Pool.LAUNCHES :], 1)
    atomic_store(pool[Pool.DONE :], 0)
    atomic_store(pool[Pool.TICKET :], generation << 48 | helpers << 32 | chunks << 16)
    pthread_mutex_lock(pool[Pool.LOCK :])  # and wake as many of those who sleep as may join
    atomic_add(pool[Pool.WAKE :], 1)
    for _ in range(i64(min(atomic_load(pool[Pool.SLEEPERS :]), helpers))):
        pthread_cond_signal(pool[Pool.FOR_WORK :])
    pthread_mutex_unlock(pool[Pool.LOCK :])
    run(pool, generation)
    for _ in range(LOOKS):
        if atomic_load(pool[Pool.DONE :]) == chunks:
            break
        wait()
    if atomic_load(pool[Pool.DONE :]) != chunks:
        pthread_mutex_lock(pool[Pool.LOCK :])
        atomic_store(pool[Pool.WAITING :], 1)
        while atomic_load(pool[Pool.DONE :]) != chunks:
            pthread_cond_wait(pool[Pool.FOR_END :], pool[Pool.LOCK :])
        atomic_store(pool[Pool.WAITING :], 0)
        pthread_mutex_unlock(pool[Pool.LOCK :])
    atomic_store(pool[Pool.BUSY :], 0)


# --- BLAS, of which the pool knows functions --------------------------------------------------------------------------


@plain
def limit(pool: array[u64]):
    """Have BLAS use one thread until ``unlimit``, of which there may be several at a time; 0 where that is not to be
    called, as BLAS has one anyway."""
    if prepare(pool) != 1:
        return u64(0)
    pthread_mutex_lock(pool[Pool.BLAS_LOCK :])
    if pool[Pool.USERS] == 0:
        now = u64(get_threads(pool[Pool.GET]))
        if now > 1:
            pool[Pool.BEFORE] = now
            set_threads(pool[Pool.SET], 1)
        elif pool[Pool.BEFORE] == 0:  # else a process was forked while BLAS was limited
            pthread_mutex_unlock(pool[Pool.BLAS_LOCK :])
            return u64(0)
    pool[Pool.USERS] += 1
    pthread_mutex_unlock(pool[Pool.BLAS_LOCK :])
    return u64(1)


@plain
def unlimit(pool: array[u64]):
    pthread_mutex_lock(pool[Pool.BLAS_LOCK :])
    pool[Pool.USERS] -= 1
    if pool[Pool.USERS] == 0:
        set_threads(pool[Pool.SET], pool[Pool.BEFORE])
        pool[Pool.BEFORE] = 0
    pthread_mutex_unlock(pool[Pool.BLAS_LOCK :])


# Chunks of products: some rows of one, or some of a batch. ``words``: the range of rows or products, the address of a
# routine of BLAS, how many bytes a row or matrix has in a, b and c, the routine's 13 arguments. Matrices are row-major,
# which BLAS sees as their transposes, so the rows of our result are BLAS's columns, each of which it computes alike
# whichever others there are.


@inlined
def moved_product(words, rows, a, b, c):
    """Call the routine with so many rows, a, b and c so many bytes further."""
    gemm(words[2], words[6], words[7], words[8], rows, words[10], words[11], words[12] + b, words[13], words[14] + a,
         words[15], words[16], words[17] + c, words[18])


@plain
def rows_of_product(words: array[u64]):
    number, first = memory(u64, 1), words[0]
    number[0] = words[1] - first  # a library whose integers have 32 bits reads the lower half
    moved_product(words, u64(address(number)), first * words[3], u64(0), first * words[5])


@plain
def products_of_batch(words: array[u64]):
    for k in range(i64(words[0]), i64(words[1])):
        unit = u64(k)
        moved_product(words, words[9], unit * words[3], unit * words[4], unit * words[5])
