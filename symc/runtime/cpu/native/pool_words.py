"""Words of the native thread pool (``pool_functions``), and what its module calls and has."""

from __future__ import annotations

from symc.ir.record import Numbers

#: How many words a launch may have, and how many threads.
MOST_WORDS, MOST_THREADS = 256, 256
#: A line of the cache, or two that are fetched together, in words.
LINE = 16


class Pool(metaclass=Numbers):
    """Words of the pool. What several threads write often is on lines of the cache of its own."""

    PID = 0  #        the process the threads are of; -1 while it is prepared
    THREADS = 1  #    how many there are, callers not counted
    LAUNCHES = 2  #   how many launches had the pool
    ALONE = 3  #      how many found it taken
    GENERATION = 4
    BUSY = 16
    TICKET = 32
    DONE = 48  #      how many chunks are done
    WAKE = 64  #      counts launches, for those who sleep
    SLEEPERS = 65
    WAITING = 66  #   1 while the caller sleeps
    ENTRY = 80  #     the launch
    ARGS = 81
    COUNT = 82
    UNITS = 83
    GRAINS = 84  #    how long a chunk is
    ENDS = 85
    STATE = 86  #     the floating-point state of the caller
    LOCK = 96  #      128 bytes each
    FOR_WORK = 112
    FOR_END = 128
    BLAS_LOCK = 144
    USERS = 160  #    how many runs have BLAS limited to one thread
    BEFORE = 161  #   how many threads it had; 0 if it is not limited
    GET = 162  #      where its function is that tells that, and the one that sets it
    SET = 163
    PARALLEL = 164  # functions of this module, of BLAS among them
    LIMIT = 165
    UNLIMIT = 166
    OF_ROWS = 167
    OF_MATRICES = 168
    ROWS = 169


#: The functions that others call.
FUNCTIONS = {Pool.PARALLEL: "symc_parallel", Pool.LIMIT: "symc_limit", Pool.UNLIMIT: "symc_unlimit",
             Pool.OF_ROWS: "symc_rows_of_product", Pool.OF_MATRICES: "symc_products_of_batch"}
#: Where a product's routine is among the words of its chunks.
ROUTINE = 2
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
