"""The instruction set of the native interpreter: instructions, the first words of data, and what a run returns."""

from __future__ import annotations

from symc.ir.record import Numbers

#: How many pointers routines are called with: BLAS, LAPACK, and what is beside it. One that takes fewer is given its
#: last one again: by the conventions of C a caller may pass more arguments than are looked at.
ARITIES = (4, 7, 11, 15)


class Op(metaclass=Numbers):
    """Instructions, with their operands. ``S[a]`` is the word of data at index a."""

    HALT = 0  #          ()                           stop, return 0
    LAUNCH = 1  #        (entry, args, first, n, *s)  data[first + k] = S[s[k]] for k < n; entry(address of data[args])
    COPY = 2  #          (to, from, nbytes)           copy bytes between the addresses S[to], S[from], unless equal
    CLEAR = 3  #         (to, nbytes)                 zero bytes at address S[to]
    MOVE = 4  #          (a, b, k)                    S[a] = S[b] + k
    SET = 5  #           (a, k)                       S[a] = k
    SWAP = 6  #          (a, b)                       exchange S[a] and S[b]
    JUMP = 7  #          (target)                     forward
    LOOP = 8  #          (a, target)                  S[a] -= 1; jump if it is still positive
    JUMP_IF_ZERO = 9  #  (a, target)                  jump if the byte at address S[a] is 0
    JUMP_IF_LESS = 10  # (a, k, target)               jump if S[a] < k
    SWITCH = 11  #       (a, n, *targets)             jump to the target that the i64 at address S[a], clamped, chooses
    STORE = 12  #        (a, b)                       the i64 at address S[a] = S[b]
    OPEN = 13  #         (first, n, type)             for n slots from first on: where the data of array S[i] is
    CALLBACK = 14  #     (number)                     call Python; stop with FAILED if that fails
    AGAIN = 15  #        (target)                     jump back
    LAP = 16  #          (a, limit)                   a lap of the clock, see `Lap`; logged as one of the first `limit`
    PIECES = 17  #       (entry, args, first, n, count, units, grain, most, ends, worth, *s)  as LAUNCH, by several
    #                                                 threads if it is worth it (1, else 0), see `pool_functions`;
    #                                                 the entry may be the number of a word of the pool
    JUMP_UNLESS_ZERO = 18  # (a, target)              jump if the i64 at address S[a] is not 0
    STOP_IF_FAILED = 19  # ()                         stop if Python has failed in a kernel, which was given SELF
    ARGUMENT = 20  #     (a, n, dims, type)           S[a], an array object of n axes, becomes where its data is; its
    #                                                 sizes go to data[dims...]; S[CHANGED] = 1 if one was another
    ADD = 21  #          (a, b, c)                    S[a] = S[b] + S[c]; what exceeds 64 bits sets S[BAD]
    MUL = 22  #          (a, b, c)
    FLOORDIV = 23  #     (a, b, c)                    0, and S[BAD], for S[c] = 0
    MOD = 24  #          (a, b, c)
    MIN = 25  #          (a, b, c)
    MAX = 26  #          (a, b, c)
    LESS = 27  #         (a, b, c)                    S[a] = 1 if S[b] < S[c], else 0
    STOP_IF_LESS = 28  # (a, b, status)               stop with a status if S[a] < S[b]
    STOP_UNLESS_EQUAL = 29  # (a, b, status)          stop with a status unless S[a] = S[b]
    SECTIONS = 30  #     (first, n, worth, after, routine, *targets)  run the n sections at targets, by several threads
    #                                                 if it is worth it (1, else 0), by a routine, and jump; else go on.
    #                                                 S[first + k]: a place
    JOIN = 31  #         ()                           the end of a section: of one thread's work, if there are several
    CALL = 32  #         (entry, *s)                  entry(S[s[0]], ...), with as many slots as CALL + n says


class Word(metaclass=Numbers):
    """The first words of data."""

    CODE = 0  #      where the code starts
    FAILED = 1  #    1 while Python is called; it becomes 0 when the call has succeeded
    LEFT = 2  #      LOOP, AGAIN and kernels that are loops count this down; at 0 Python is called with the number PULSE
    CALLBACK = 3  #  the address of a function void(i64) for kernels, which give it what PULSE holds
    PULSE = 4
    CLOCK = 5  #     what the clock showed at the last lap
    LOGGED = 6  #    how many laps are in the log
    LOG = 7  #       the address of the log: for each lap its slot and what the clock showed
    POOL = 8  #      the address of the pool of threads, 0 until it is needed
    THREADS = 9  #   how many threads PIECES may use
    LIMIT = 10  #    1: BLAS is limited to one thread during the run
    SELF = 11  #     the address of these words
    PREPARE = 12  #  where the code starts that looks at arguments
    CHANGED = 13  #  1 if the sizes are not those that the words were computed for
    BAD = 14  #      1 if a number did not fit
    ARENA = 15  #    the address of the arena, how many bytes it has, and how many are needed
    HAVE = 16
    NEED = 17
    LONG = 18  #     1 if a run takes so long that other threads should run meanwhile
    LARGE = 19  #    1 if a result is so large that its memory is kept
    MAY_LIMIT = 20  # 1: BLAS is to be limited where it multiplies much
    BUSY = 21  #     1 while a call of an entry runs
    WANTS = 22  #    1 if the pool is needed: threads are worth it, or BLAS is to be limited
    POOLED = 23  #   1 if it is there, or never needed
    PYTHON = 24  #   the address of a function void(i64 number) for CALLBACK and pulses
    STATE = 25  #    not 0: the floating-point state of a run, see `float_state`
    CALLER = 26  #   that of the caller meanwhile
    SCRATCH = 27
    MET = 28  #      not 0: a run has met denormal numbers


class Lap(metaclass=Numbers):
    """The words of laps, from the slot a on: the time from the lap before, of whatever slot, to here."""

    RUNS = 0  #   how many
    TICKS = 1  #  all in all
    LEAST = 2  #  the shortest


class Section(metaclass=Numbers):
    """Words of a section that runs: LEFT for it, and the place at which it stopped."""

    LEFT = 0
    PLACE = 1


#: A number of steps that no loop takes.
NEVER = 2**62
#: The number of the Python step that looks at signals.
PULSE_STEP = 0
#: What the run returns where Python has failed.
FAILED = 1
#: What OPEN returns where an object is no array.
NOT_ARRAY = -2
#: What preparing returns where sizes are not those that the code is for, and where the arena is too small or the pool
#: is not there.
REFUSED, GROW = -3, -4
#: What a section returns that has come to an instruction which may need Python: the thread of the call goes on there.
STOPPED = -5
#: Where an array object holds the address of its data: in the first field of its struct. The word before is its type.
DATA = object.__basicsize__

#: The instructions that plans of kernels alone are made of: no loops, branches, calls of routines or of Python.
STRAIGHT = frozenset({
    Op.HALT, Op.LAUNCH, Op.COPY, Op.CLEAR, Op.MOVE, Op.SET, Op.JUMP, Op.JUMP_IF_LESS, Op.OPEN, Op.PIECES, Op.ARGUMENT,
    Op.ADD, Op.MUL, Op.FLOORDIV, Op.MOD, Op.MIN, Op.MAX, Op.LESS, Op.STOP_IF_LESS, Op.STOP_UNLESS_EQUAL,
})  # fmt: skip
#: The numbers of all instructions.
ALL = frozenset({*Op} - {Op.CALL} | {Op.CALL + n for n in ARITIES})
