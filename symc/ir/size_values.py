"""Sizes for given names: numbers, other sizes in the place of names, and the names that solve an equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symc.errors import ShapeError
from symc.ir.dim import Call, Dim, Size, divide_term, floordiv, in_order, mod, polynomial, size_name, terms_of
from symc.ir.size_extremes import maximum, minimum


def _floordiv(a: int, b: int) -> int:
    return a // b


def _mod(a: int, b: int) -> int:
    return a % b


#: The functions of sizes, of numbers.
CALLS: dict[str, Callable[[int, int], int]] = {"floordiv": _floordiv, "mod": _mod, "min": min, "max": max}
#: The functions of sizes, simplified.
SIMPLIFYING: dict[str, Callable[[Size, Size], Size]] = {
    "floordiv": floordiv, "mod": mod, "min": minimum, "max": maximum,
}  # fmt: skip
#: The largest size there is: what 64 bits hold.
LARGEST = 2**63 - 1
#: No array has an element so far from another, and twice as much fits in 64 bits.
FAR = 2**62


def evaluate(x: Size, sizes: Mapping[str, int]) -> int:
    """The number ``x`` is, given a number for every name.

    Raises KeyError for a name without one, and ShapeError where there is no number or 64 bits do not hold it.
    """
    if not isinstance(x, Dim):
        return int(x)
    try:
        total = _number(x, sizes)
    except ZeroDivisionError:
        raise ShapeError(f"the size {x} has no value, as it divides by 0", values=_given(x, sizes)) from None
    if not -LARGEST - 1 <= total <= LARGEST:
        raise ShapeError(f"the size {x} is {total}, which does not fit in 64 bits", values=_given(x, sizes))
    return total


def _given(x: Size, sizes: Mapping[str, int]) -> list[tuple[str, Any, Any]]:
    """Rows of an error: the sizes that ``x`` is made of."""
    return [(f"{n} = {sizes[n]}", None, None) for n in in_order(names(x))]


def _number(x: Size, sizes: Mapping[str, int]) -> int:
    if not isinstance(x, Dim):
        return int(x)
    total = 0
    for monomial, c in x.terms:
        for atom, p in monomial:
            c *= (sizes[atom] if isinstance(atom, str) else _call_number(atom, sizes)) ** p
        total += c
    return total


def _call_number(call: Call, sizes: Mapping[str, int]) -> int:
    a, b = call.args
    return CALLS[call.fn](_number(a, sizes), _number(b, sizes))


#: What a symbolic size is taken to be when costs are compared.
NOMINAL = 256


def number(size: Size, nominal: int = NOMINAL) -> int:
    """A size as a number, for comparing costs."""
    return estimate(size, dict.fromkeys(names(size), nominal))


def estimate(cost: Size, sizes: Mapping[str, int]) -> int:
    """The number that a cost is, however large; where it divides by 0, such as ``n // (m - n)``, some number."""
    try:
        return _number(cost, sizes)
    except ZeroDivisionError:
        return NOMINAL


def substitute(x: Size, sizes: Mapping[str, Size]) -> Size:
    """Replace names by sizes, and simplify again."""
    if not isinstance(x, Dim):
        return x
    if x.terms[0][0] and isinstance(x.terms[0][0][0][0], str) and x == (own := size_name(x.terms[0][0][0][0])):
        return sizes.get(x.terms[0][0][0][0], own)  # most are a name
    total: Size = 0
    for monomial, c in x.terms:
        term: Size = c
        for atom, p in monomial:
            if isinstance(atom, str):
                new = sizes.get(atom, None)
                new = size_name(atom) if new is None else new
            else:
                new = SIMPLIFYING[atom.fn](*(substitute(a, sizes) for a in atom.args))
            for _ in range(p):
                term = term * new
        total = total + term
    return total


def names(x: Size) -> set[str]:
    """The size names in ``x``."""
    out: set[str] = set()
    if isinstance(x, Dim):
        for monomial, _ in x.terms:
            for atom, _ in monomial:
                out |= {atom} if isinstance(atom, str) else names(atom.args[0]) | names(atom.args[1])
    return out


def solve(x: Size, value: Size, name: str) -> Size | None:
    """The ``s`` for which ``x == value`` with ``name := s``, if ``x`` is ``a*name + b`` and it is exact; else None."""
    if not isinstance(x, Dim) or name in names(value):
        return None
    a, rest = 0, []
    for monomial, c in x.terms:
        if monomial == ((name, 1),):
            a = c
        else:
            rest.append((monomial, c))
    remainder = polynomial(rest)
    if a == 0 or name in names(remainder):
        return None
    difference = value - remainder
    if abs(a) == 1:
        return difference * a
    quotients = [divide_term(t, ((), a)) for t in terms_of(difference)]
    return None if None in quotients else polynomial([q for q in quotients if q is not None])
