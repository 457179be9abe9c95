# mypy: ignore-errors
"""Places packed with numbers: 31 or 32 bits of each number and 32 of its place are one integer, so that sorting those
(which is faster than sorting places by numbers, and leaves equals in order) gives the places.

Numbers have keys, integers in the same order. Of a key of 64 bits the distance from the least one is shifted until 31
bits are left. What differs in lost bits alone is put in order afterwards.
"""

from __future__ import annotations

from symc.codegen.language.helpers import inlined, plain
from symc.codegen.language.names import bits32, bits64, copysign, i64, like, wrap_sub
from symc.codegen.language.native import Open, T, Texts, array, unlikely
from symc.ir.dtypes import DTYPES, RECORDS

#: The bits of a place; the integers that are greatest and least.
PLACE, MOST, LEAST = 2**32 - 1, 2**63 - 1, -(2**63)
key = Open


def texts(dtype: str) -> Texts:
    """Functions for a dtype, of which numbers of half precision are their keys (``line_sorts``)."""
    known, size = RECORDS[DTYPES[dtype]].memory, DTYPES[dtype].itemsize
    keys = {"f32": single, "f64": double, "u32": unsigned, "u64": unsigned_long}.get(known, signed)
    found = {f"pack_{dtype}": (pack_wide if size == 8 else pack, {"T": known, "key": keys}),
             f"unpack_{dtype}": (unpack_wide if size == 8 else unpack, {"T": known, "key": keys})}
    if known in ("f32", "f64"):
        found[f"zeros_{dtype}"] = zeros, {"T": known}
    return found


@plain
def pack(own: array[i64], x: array[T], done: array[i64], n: i64):
    for k in range(n):
        own[k] = (key(x[k]) << 32) | k


@plain
def unpack(own: array[i64], x: array[T], done: array[i64], n: i64):
    for k in range(n):
        own[k] = own[k] & PLACE


@plain
def pack_wide(own: array[i64], x: array[T], done: array[i64], n: i64):
    """``done`` is 0 if bits are lost in which numbers differ (floats that are whole numbers do not)."""
    first = key(x[0])
    least, most, differ = first, first, 0
    for k in range(n):
        v = key(x[k])
        least, most = min(least, v), max(most, v)
        differ = differ | (v ^ first)
    span = wrap_sub(most, least)
    shift = 33 if span < 0 else 0
    while span >> shift > 2147483647:
        shift += 3
    done[0] = i64(differ & ((1 << shift) - 1) == 0)
    for k in range(n):
        own[k] = (((wrap_sub(key(x[k]), least) >> shift) & 2147483647) << 32) | k


@plain
def unpack_wide(own: array[i64], x: array[T], done: array[i64], n: i64):
    """Put in order those whose leading bits are one, unless ``done`` is 1 before. After it, 0 if they are too many for
    that."""
    moves, i = 0, n if done[0] == 1 else 1
    while i < n and moves <= n:
        if unlikely(own[i] >> 32 == own[i - 1] >> 32):
            place, j = own[i], i
            v = key(x[place & PLACE])
            while j > 0 and own[j - 1] >> 32 == place >> 32 and key(x[own[j - 1] & PLACE]) > v:
                own[j] = own[j - 1]
                j -= 1
            own[j] = place
            moves += i - j
        i += 1
    done[0] = i64(moves <= n)
    for k in range(n):
        own[k] = own[k] & PLACE


@plain
def zeros(x: array[T], found: array[i64], n: i64):
    """The number of zeros that have a sign."""
    count = 0
    for k in range(n):
        count += i64((x[k] == 0) & (copysign(like(x[k], 1), x[k]) < 0))
    found[0] = count


@inlined
def signed(v):
    return i64(v)


@inlined
def unsigned(v):
    return i64(v) - 2147483648


@inlined
def unsigned_long(v):
    return i64(v) ^ LEAST


@inlined
def single(v):
    """The bits of a float, all but the sign turned around below zero: one for both zeros, and for all nans."""
    known = bits32(v) if v == v else 2147483647
    return i64(0 if v == 0 else known ^ ((known >> 31) & 2147483647))


@inlined
def double(v):
    known = bits64(v) if v == v else MOST
    return 0 if v == 0 else known ^ ((known >> 63) & MOST)
