# mypy: ignore-errors
"""Elements that sorted lines have at some places, found without sorting: two elements of a sample enclose one, and what
lies between them is looked at again (Floyd and Rivest, 1975). A long line is read three times, a short one is sorted.

The last axes of ``x`` are rows, n, and inner, and lines go along n; ``places`` are so ``many``. ``work``: memory for
3 n elements. ``f`` sorts elements, ``g`` is ``line_counts``; ``status`` is not 0 if memory has ended.
"""

from __future__ import annotations

from symc.codegen.language.helpers import inlined, native
from symc.codegen.language.names import i64, u8, wrap_add, wrap_mul
from symc.codegen.language.native import Open, Outside, T, Texts, array, memory, unlikely
from symc.ir.dtypes import DTYPES, RECORDS

#: Lines of so many elements are sorted: a vector sort takes a few nanoseconds for each. Elements of a sample; how many
#: of them are left between those that enclose and where the place is expected: three standard deviations.
SHORT, SAMPLE, MARGIN = 512, 256, 24
ZEROS = Open
line_sorter, line_counter = Outside("", "ippp"), Outside("", "vpplpp")


def texts(dtype: str) -> Texts:
    """The function for a dtype."""
    memory = RECORDS[DTYPES[dtype]].memory
    known = {"T": memory, "ZEROS": int(memory in ("f32", "f64")), "SHORT": SHORT, "SAMPLE": SAMPLE, "MARGIN": MARGIN}
    return {f"select_{dtype}": (select, known)}


@native
def select(to: array[T], x: array[T], places: array[i64], work: array[T], status: array[i64], rows: i64, n: i64,
           inner: i64, many: i64, f: array[u8], g: array[u8]):
    status[0] = 0
    counts, sorted_part = memory(i64, 4), memory(i64, 2)
    for r in range(rows):
        for c in range(inner):
            given, found = x[r * n * inner + c :], to[r * many * inner + c :]
            numbers = 0
            for k in range(n):
                v = given[k * inner]
                work[numbers] = v
                numbers += i64(v == v)
            if n <= SHORT:
                status[0] |= line_sorter(f, work, numbers, 0)
            sorted_part[1] = 0
            for k in range(many):
                p = places[k]
                if p >= 0 and p < n:  # else a check has failed
                    if p >= numbers:
                        v = nan_of(given, n, inner, p - numbers)
                    elif n <= SHORT:
                        v = work[p]
                    elif p >= sorted_part[0] and p < sorted_part[0] + sorted_part[1]:
                        v = work[n + p - sorted_part[0]]
                    elif p == numbers - 1:
                        v = greatest(work, numbers)
                    else:
                        v = element_of(work, work[n:], work[2 * n :], numbers, p, status, f, g, counts, sorted_part)
                    if unlikely(ZEROS and v == 0):
                        v = zero_of(given, n, inner, p)
                    found[k * inner] = v


@inlined
def element_of(line, kept, sample, n, p, status, f, g, counts, sorted_part):
    """Element p of a line of n numbers in order; ``kept``, ``sample``: memory for them. ``sorted_part``: from which
    place on, and how many, elements are left in ``kept``, in order."""
    result, done, seed, count, rank = line[0], 0, n, n, p
    for k in range(n):
        kept[k] = line[k]
    while done == 0 and count > SHORT:
        for k in range(SAMPLE):
            seed = wrap_add(wrap_mul(seed, 6364136223846793005), 1442695040888963407)
            at = ((seed >> 24) & 2147483647) % count
            sample[k] = kept[at]
        status[0] |= line_sorter(f, sample, SAMPLE, 0)
        expected = rank * SAMPLE // count
        least, most = max(expected - MARGIN, 0), min(expected + MARGIN, SAMPLE - 1)
        line_counter(g, counts, kept, count, sample[least:], sample[most:])
        low, high = sample[least], sample[most]
        below, to_low, below_high, to_high = counts[0], counts[1], counts[2], counts[3]
        if rank >= below and rank < to_low:
            result, done = low, 1
        elif rank >= below_high and rank < to_high and rank >= to_low:
            result, done = high, 1
        else:
            first, last = i64(rank < below), i64(rank >= to_high)  # what is kept has no end there
            after, before = high if last > 0 else low, low if first > 0 else high
            many = 0
            for k in range(count):
                v = kept[k]
                kept[many] = v
                many += (first | i64(v > after)) & (last | i64(v < before))
            rank -= to_high if last > 0 else (0 if first > 0 else to_low)
            count = many
    if done == 0:
        status[0] |= line_sorter(f, kept, count, 0)
        result = kept[rank]
    sorted_part[0], sorted_part[1] = p - rank, 0 if done > 0 else count
    return result


@inlined
def greatest(line, n):
    result = line[0]
    for k in range(n):
        result = line[k] if line[k] > result else result
    return result


@inlined
def nan_of(given, n, inner, rank):
    """The nan of that rank, as they come last in the order in which they stand."""
    result, before = given[0], 0
    for k in range(n):
        v = given[k * inner]
        result = v if v != v and before == rank else result
        before += i64(v != v)
    return result


@inlined
def zero_of(given, n, inner, p):
    """The zero that a stable sort has at place p."""
    result, before = given[0], 0
    for k in range(n):
        before += i64(given[k * inner] < 0)
    for k in range(n):
        v = given[k * inner]
        result = v if v == 0 and before == p else result
        before += i64(v == 0)
    return result
