# mypy: ignore-errors
"""Lines of an array sorted one after the other, along any axis, by a function for one: NumPy's (``numpy_sorts``).

Where it finds places of equals in any order, these are sorted too: so the places are those of a stable sort, for a look
at each pair of neighbours. The last axes of ``x`` are rows, n, and inner, and n is sorted; ``line``, ``places`` are
memory for n, not used if inner is 1 (but for keys); ``status`` is not 0 if memory has ended.

Floats of 16 bits are sorted as integers of the same order, their keys: their bits, all but the sign turned around below
zero. Nans are none of them, and stand behind as they come.
"""

from __future__ import annotations

from symc.codegen.language.helpers import inlined, native
from symc.codegen.language.names import i64
from symc.codegen.language.native import Open, Outside, T, Texts, array, memory, pointer, unlikely
from symc.ir.dtypes import DTYPES, RECORDS

#: Longer lines are sorted by counting: of 16 bits 2.4 ns an element where vectors of the compared take 3 to 16 (Zen 5,
#: whose instruction that packs what is less is slow into memory), or there are none; of bytes, where it takes 150 ns
#: before it begins.
LONG, LONG_BYTES = 512, 16
#: So many places of equals are sorted in less time than it takes to call a sort.
FEW = 4

ZEROS = MENDED = KEYS = PACKED = before = Open
line_sorter, places_sorter = Outside("", "ippp"), Outside("", "ipppp")
packer, unpacker, counter = Outside("", "vpppl"), Outside("", "vpppl"), Outside("", "vppl")


def texts(name: str) -> Texts:
    """The function of that name, which ends in a dtype."""
    what, dtype = name.split("_")
    known = RECORDS[DTYPES[dtype]]
    halves, floats, size = known.name == "f16", known.memory in ("f32", "f64"), known.numpy.itemsize
    functions = {"sort": sort, "argsort": argsort, "top": top, "bottom": top}
    order = (float_above, float_below) if floats else (above, below)
    return {name: (functions[what], {
        "T": known.memory, "ZEROS": int(floats), "MENDED": int(size >= 4), "KEYS": int(halves), "FEW": FEW,
        "LONG": LONG_BYTES if size == 1 else LONG, "PACKED": LONG if size <= 2 else 2**32,
        "before": order[what == "bottom"]})}


@native
def sort(words: array[i64]):
    """Words: first row, end of rows, n, inner; addresses of the results, ``x``, ``line``, ``status``, functions for a
    line, a long one, and for zeros. If ``inner`` is 1, and there are no keys, the results are the elements of ``x``."""
    n, inner, failed = words[2], words[3], 0
    to, x, line = pointer(T, words[4]), pointer(T, words[5]), pointer(T, words[6])
    sorter = words[8] if n <= LONG else words[9]
    half = 1
    while half <= n >> 1:
        half = half << 1
    for r in range(words[0], words[1]):
        for c in range(inner):
            first = r * n * inner + c
            own = to[first:] if inner == 1 else line
            if KEYS:
                numbers = keys_of_halves(own, x[first:], n, inner)
                failed |= line_sorter(sorter, own, numbers, 0)
                halves_of_keys(own, x[first:], numbers, n, inner)
            else:
                if inner != 1:
                    for k in range(n):
                        own[k] = x[first + k * inner]
                failed |= line_sorter(sorter, own, n, 0)
            if ZEROS:
                zeros_in_order(own, x[first:], n, inner, half, words[10])
            if inner != 1:
                for k in range(n):
                    to[first + k * inner] = own[k]
    if failed != 0:
        pointer(i64, words[7])[0] = failed


@inlined
def zeros_in_order(own, x, n, inner, half, zeros):
    """Put zeros of both signs in the order in which they were given. ``half``: the greatest power of 2 up to n;
    ``zeros``: the function that counts those with a sign."""
    start, step, signs = 0, half, memory(i64, 1)
    while step > 0:  # how many are less than 0
        further = start + step
        if further <= n and own[further - 1] < 0:
            start = further
        step = step >> 1
    if start + 1 < n and own[start + 1] == 0:
        signs[0] = 1
        if inner == 1:
            counter(zeros, x, signs, n)
        if signs[0] > 0:
            for k in range(n):
                if x[k * inner] == 0:
                    own[start] = x[k * inner]
                    start += 1


@native
def argsort(words: array[i64]):
    """Words: first row, end of rows, n, inner; addresses of the results, ``x``, ``line``, ``places``, ``status``, the
    functions that sort places and i64, those of ``line_keys``."""
    n, inner, done, failed = words[2], words[3], memory(i64, 1), memory(i64, 1)
    to, x, line, places = pointer(i64, words[4]), pointer(T, words[5]), pointer(T, words[6]), pointer(i64, words[7])
    failed[0] = 0
    for r in range(words[0], words[1] if n > 0 else 0):
        for c in range(inner):
            first = r * n * inner + c
            given, own = line if KEYS or inner != 1 else x[first:], to[first:] if inner == 1 else places
            if KEYS or inner != 1:
                for k in range(n):
                    given[k] = key_of_equals(x[first + k * inner]) if KEYS else x[first + k * inner]
            done[0] = i64(n <= PACKED)
            if n <= PACKED:
                packer(words[11], own, given, done, n)
                failed[0] |= line_sorter(words[10], own, n, 0)
                unpacker(words[12], own, given, done, n)
            if done[0] == 0:
                for k in range(n):
                    own[k] = k
                failed[0] |= places_sorter(words[9], given, own, n, 0)
                if MENDED:
                    equals_in_order(own, given, n, words[10], failed)
            if inner != 1:
                for k in range(n):
                    to[first + k * inner] = own[k]
    if failed[0] != 0:
        pointer(i64, words[8])[0] = failed[0]


@inlined
def equals_in_order(own, keys, n, g, failed):
    start = 0
    for k in range(1, n):
        if apart(keys[own[k - 1]], keys[own[k]]):
            if unlikely(k - start > 1):
                places_in_order(own[start:], k - start, g, failed)
            start = k
    if n - start > 1:
        places_in_order(own[start:], n - start, g, failed)


@inlined
def places_in_order(own, n, g, failed):
    """Sort the places of equals: few of them one by one."""
    if n > FEW:
        failed[0] |= line_sorter(g, own, n, 0)
    else:
        for k in range(1, n):
            place, j = own[k], k
            while j > 0 and own[j - 1] > place:
                own[j] = own[j - 1]
                j -= 1
            own[j] = place


@inlined
def apart(p, q):
    """True for another number than the one before. After a nan come only more."""
    return not (p == q or p != p)


@inlined
def key(bits):
    """Key of a float of 16 bits, an integer with a sign; and the float of a key."""
    return bits ^ ((bits >> 15) * 32767)


@inlined
def key_of_equals(bits):
    """One key for both zeros, and for all nans."""
    return (0 if half_zero(bits) else key(bits)) if is_number(bits) else 32767


@inlined
def is_number(bits):
    return (bits & 32767) <= 31744


@inlined
def half_zero(bits):
    return (bits & 32767) == 0


@inlined
def keys_of_halves(own, x, n, inner):
    """Write the keys of all numbers; how many there are."""
    numbers = 0
    for k in range(n):
        own[numbers] = key(x[k * inner])
        numbers += i64(is_number(x[k * inner]))
    return numbers


@inlined
def halves_of_keys(own, x, numbers, n, inner):
    """Write the numbers of keys; zeros of both signs, and nans, in the order in which they were given."""
    zeros, nans = 0, numbers
    for k in range(numbers):
        own[k] = key(own[k])
        zeros += i64(own[k] > 32768)  # they are behind what is less than 0
    if nans < n or (zeros + 1 < numbers and half_zero(own[zeros + 1])):
        for k in range(n):
            v = x[k * inner]
            if half_zero(v):
                own[zeros] = v
                zeros += 1
            elif not is_number(v):
                own[nans] = v
                nans += 1


@native
def top(to: array[i64], x: array[T], keys: array[T], places: array[i64], rows: i64, n: i64, inner: i64, many: i64):
    """The places of so ``many`` that come before all others, in order. ``keys``, ``places``: memory for them."""
    last = many - 1
    for r in range(rows):
        for c in range(inner):
            line, found = x[r * n * inner + c :], to[r * many * inner + c :]
            for i in range(n):
                v, least = line[i * inner], keys[last]
                if unlikely(i < many or before(v, least)):
                    j = min(i, last)
                    while j > 0 and before(v, keys[j - 1]):
                        keys[j], places[j] = keys[j - 1], places[j - 1]
                        j -= 1
                    keys[j], places[j] = v, i
            for k in range(many):
                found[k * inner] = places[k]


@inlined
def above(x, y):
    return x > y


@inlined
def below(x, y):
    return x < y


@inlined
def float_above(x, y):
    """Nan is above all."""
    return x > y or (x != x and y == y)


@inlined
def float_below(x, y):
    return float_above(y, x)
