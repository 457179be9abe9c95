"""Quotients and remainders of integers, and whole powers, as what loops vectorize around."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from symc.codegen.language.helpers import Helper
from symc.codegen.language.typed import Scalar, width
from symc.runtime.compilers.llvm_scalars import NEAR, WORD, Instructions, Interval, divided, within
from symc.runtime.library import meaning, power

#: The greatest whole power that is made of products.
MAX_POWER = 64


def vectorized(f: Instructions, helper: Helper, xs: Sequence[Scalar]) -> Scalar | None:
    """The function of these operands as what loops vectorize around, where that is known; else None."""
    known = _KNOWN.get(helper.name)
    if known is None:
        return None
    number = xs[1].number
    if number is not None:
        return known(f, xs[0], number)
    return _near(f, helper.name, *xs) if helper.name in ("int_floordiv", "int_mod") else None


# -- integers


def _division(sign: str) -> Callable[[Instructions, Scalar, int | float], Scalar | None]:
    """An integer divided downwards by a number: LLVM's division by a number is one of scalars."""

    def by(f: Instructions, x: Scalar, number: int | float) -> Scalar | None:
        d, known = int(number), f.interval(x)
        if d < 1 or known is None or x.type == "bool":
            return None
        t = "u64" if x.type == "u64" else "i64"
        wide = f.cast(x, t)
        found = (_by_power(f, sign, wide.ref, d, t) if not d & (d - 1) else _of_16_bits(f, sign, x, wide.ref, d)
                 or _short(f, sign, wide.ref, d, known) or _counted(f, sign, x, d, known) or _of_halves(f, sign, x, d))
        return None if found is None else f.cast(f.bounded(Scalar(t, found), divided(sign, known, d, d)), x.type)

    return by


def _by_power(f: Instructions, sign: str, x: str, d: int, t: str) -> str:
    if sign == "%":
        return f.emit(f"and i64 {x}, {d - 1}")
    return f.emit(f"{'lshr' if t == 'u64' else 'ashr'} i64 {x}, {d.bit_length() - 1}")


def _of_16_bits(f: Instructions, sign: str, given: Scalar, wide: str, d: int) -> str | None:
    """A number that is given in 16 bits (others have fewer to a vector before and after). Of one with a sign, n = x if
    x >= 0 else ~x, and floor(x / d) is floor(n / d) or its ~. LLVM makes of a quotient of 16 bits the upper half of a
    product, for which there is an instruction of vectors; of bytes the product itself has 16 bits."""
    known = f.interval(given)
    if width(given.type) > 16 or known is None or d >= 2 ** (16 - (known[0] < 0)):
        return None
    signed, most = known[0] < 0, max(known[1], ~known[0])
    n = x = f.emit(f"trunc i64 {wide} to i16")
    if signed:
        negative = f.emit(f"ashr i16 {x}, 15")
        n = f.emit(f"xor i16 {x}, {negative}")
    factor, shift = _factor(most, d) if most < 256 else (0, 0)
    q = (f.emit(f"lshr i16 {f.emit(f'mul i16 {n}, {factor}')}, {shift}") if 0 < most * factor < 2**16
         else f.emit(f"udiv i16 {n}, {d}"))
    if signed:
        q = f.emit(f"xor i16 {q}, {negative}")
    if sign == "%":
        q = f.emit(f"sub i16 {x}, {f.emit(f'mul i16 {q}, {d}')}")
    return f.emit(f"{'sext' if signed and sign == '//' else 'zext'} i16 {q} to i64")


def _factor(most: int, d: int) -> tuple[int, int]:
    """M and s, of which n * M >> s is n // d for all numbers up to one: M, which is 2**s // d + 1, is off by e / d, and
    no n * e reaches 2**s (Granlund and Montgomery, 1994)."""
    return next(((2**s // d + 1, s) for s in range(64) if most * (d - 2**s % d) < 2**s), (0, 0))


def _short(f: Instructions, sign: str, x: str, d: int, known: Interval) -> str | None:
    """A number of less than 32 bits, or one that is if some multiple of d is added, by a product. As many bits are used
    as that has."""
    more = max(0, -(known[0] // d))
    most = known[1] + more * d
    found = _factor(most, d)
    if not 0 < found[0] <= WORD[1] or most > WORD[1] or d > WORD[1]:
        return None
    word = next(bits for bits in (16, 32, 64) if most * found[0] < 2**bits and found[1] < bits)
    n = f.emit(f"add i64 {x}, {more * d}") if more else x
    n = f.emit(f"trunc i64 {n} to i{word}") if word < 64 else f.emit(f"and i64 {n}, {WORD[1]}")
    q = f.emit(f"lshr i{word} {f.emit(f'mul i{word} {n}, {found[0]}')}, {found[1]}")
    if sign == "%":
        q = f.emit(f"sub i{word} {n}, {f.emit(f'mul i{word} {q}, {d}')}")
    q = f.emit(f"zext i{word} {q} to i64") if word < 64 else q
    return f.emit(f"sub i64 {q}, {more}") if more and sign == "//" else q


def _counted(f: Instructions, sign: str, x: Scalar, d: int, known: Interval) -> str | None:
    """A number of less than 2**50, as counters are, by a product of floats: half as many instructions as of halves."""
    if f.module.afterwards is None or not within(known, NEAR) or _stems_from_variable(f, x.ref):
        return None
    name = "near_int_mod" if sign == "%" else "near_int_floordiv"
    found = f.call(meaning(name), [f.cast(x, "i64"), f.constant("i64", d)])
    return found.ref


def _of_halves(f: Instructions, sign: str, x: Scalar, d: int) -> str | None:
    """An i64 by 2 < d < 2**31, in products of halves, of which there are vectors.

    n = x if x >= 0 else ~x is less than 2**63, and floor(x / d) is floor(n / d) or its ~. With 2**(l - 1) < d < 2**l
    and M = floor(2**(63 + l) / d) + 1 < 2**64, floor(n / d) = n * M >> (63 + l), as 0 < M * d - 2**(63 + l) <= 2**l
    (Granlund and Montgomery, 1994, theorem 4.2).
    """
    if x.type != "i64" or not 2 < d < 2**31 or _stems_from_variable(f, x.ref):
        return None
    shift = 63 + d.bit_length()
    negative = f.emit(f"ashr i64 {x.ref}, 63")
    n = f.emit(f"xor i64 {x.ref}, {negative}")
    q = f.emit(f"lshr i64 {_upper_half(f, n, (1 << shift) // d + 1)}, {shift - 64}")
    q = f.emit(f"xor i64 {q}, {negative}")
    return q if sign == "//" else f.emit(f"sub i64 {x.ref}, {f.emit(f'mul i64 {q}, {d}')}")


def _near(f: Instructions, name: str, x: Scalar, y: Scalar) -> Scalar | None:
    """An integer divided by another: by vectors of floats, where they are exact in those."""
    if f.module.afterwards is None or "u64" in (x.type, y.type) or any(_stems_from_variable(f, v.ref) for v in (x, y)):
        return None
    bits = max(width(v.type) + (v.type[0] == "u") for v in (x, y))
    if bits > 32:
        how = "near" if all(within(f.interval(v), NEAR) for v in (x, y)) else "any"
        return f.cast(f.call(meaning(f"{how}_{name}"), [f.cast(v, "i64") for v in (x, y)]), x.type)
    given = [f.cast(v, t) for t in ("i32", "f32" if bits <= 17 else "f64") for v in (x, y)]
    return f.cast(f.call(meaning(f"short_{name}"), given), x.type)


def _upper_half(f: Instructions, n: str, factor: int) -> str:
    """The upper 64 of the 128 bits of an unsigned product, by those of halves."""
    word = 2**32 - 1
    above, below = f.emit(f"lshr i64 {n}, 32"), f.emit(f"and i64 {n}, {word}")
    ll, lh, hl, hh = [f.emit(f"mul i64 {a}, {b}") for a in (below, above) for b in (factor & word, factor >> 32)]
    t = f.emit(f"add i64 {hl}, {f.emit(f'lshr i64 {ll}, 32')}")
    u = f.emit(f"add i64 {lh}, {f.emit(f'and i64 {t}, {word}')}")
    rest = f.emit(f"add i64 {f.emit(f'lshr i64 {t}, 32')}, {f.emit(f'lshr i64 {u}, 32')}")
    return f.emit(f"add i64 {hh}, {rest}")


def _stems_from_variable(f: Instructions, ref: str) -> bool:
    """True if a number is made of one of a step before: of those no loop makes vectors, and one division is faster."""
    if not any(t[0] in "iu" for t, _ in f.variables.values()):
        return False
    made = dict(line.strip().split(" = ", 1) for line in f.lines if " = " in line)
    todo, seen = [ref], {ref}
    while todo:
        by = made.get(todo.pop(), "")
        if by.startswith("load") and "ptr %m" in by:
            return True
        new = set() if by.startswith("load") else set(re.findall(r"%v\d+", by)) - seen
        todo += new
        seen |= new
    return False


# -- powers


def _power(f: Instructions, x: Scalar, number: int | float) -> Scalar | None:
    """x**n by squaring: of an f32 in f64; of an f64 in two numbers, right to a unit in the last place."""
    n = abs(int(number)) if abs(number) <= MAX_POWER else 0
    if n < 2 or n != abs(number):
        return None
    if x.type == "f32":
        wide = f.cast(x, "f64")
        found = _squaring(n, wide, lambda y: f.binary("*", y, y), lambda y: f.binary("*", y, wide))
        return f.cast(found if number > 0 else f.binary("/", f.constant("f64", 1.0), found), "f32")
    once = power.times_once64 if number > 0 else power.times_twice64
    base = [x] if number > 0 else f.call(power.inverse_twice64, [x])
    found = _squaring(n, base, lambda y: f.call(power.square64 if len(y) == 1 else power.square_twice64, y),
                      lambda y: f.call(once, [*y, *base]))
    return f.call(power.joined64, found)


def _squaring(n: int, base: Any, square: Callable[[Any], Any], times: Callable[[Any], Any]) -> Any:
    found = base
    for bit in f"{n:b}"[1:]:
        found = times(square(found)) if bit == "1" else square(found)
    return found


_KNOWN = {"int_floordiv": _division("//"), "int_mod": _division("%"), "_pow64": _power, "_pow32": _power}
