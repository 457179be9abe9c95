"""Comparison of two symbolic sizes in bytes: is one at least the other, for every call?"""

from __future__ import annotations

import functools

from symc.ir.dim import Call, Dim, Monomial, Size, known_nonnegative, nonnegative_call


@functools.lru_cache(maxsize=4096)
def at_least(a: Size, b: Size, given: frozenset[Size] = frozenset()) -> bool:
    """True when ``a >= b`` for all sizes; False means not known. ``given``: sizes that are not negative, as those of
    arrays that exist.

    Besides what polynomials say: rounding up does not make smaller, and a ``max`` is at least either of its arguments.
    """
    difference = a - b
    return _not_negative(difference, given) or any(
        at_least(lower, 0, given) for lower in _lower_bounds(difference))


def _not_negative(x: Size, given: frozenset[Size]) -> bool:
    """True for sums of products of what is not negative."""
    return known_nonnegative(x) or x in given or bool(given) and isinstance(x, Dim) and all(
        c >= 0 and all(power % 2 == 0 or _atom_not_negative(atom, given) for atom, power in monomial)
        for monomial, c in x.terms)


def _atom_not_negative(atom: str | Call, given: frozenset[Size]) -> bool:
    return isinstance(atom, str) or atom.nonnegative or nonnegative_call(
        atom.fn, *[_not_negative(x, given) for x in atom.args])


def multiple(size: Size, of: int) -> bool:
    """True if a size is known to be a multiple of a number."""
    if not isinstance(size, Dim):
        return size % of == 0
    return all(c % of == 0 or _multiple_atom(monomial, of) for monomial, c in size.terms)


def _multiple_atom(monomial: Monomial, of: int) -> bool:
    """True if one factor of a monomial is the larger or smaller of two multiples."""
    return any(isinstance(a, Call) and a.fn in ("max", "min") and all(multiple(x, of) for x in a.args)
               for a, _ in monomial)


#: In sizes of more calls only the deepest is left out.
_MOST_CALLS = 4


def _lower_bounds(x: Size) -> list[Size]:
    """Sizes that are never above ``x``, with one of its calls less: of every call, as one may hold only with another
    left out before it, and which comes first depends on names.

    The deepest comes first, and of two an extreme: what it holds may be what the others are taken from, as they are.
    """
    found: list[tuple[int, list[Size]]] = []
    for monomial, c in x.terms if isinstance(x, Dim) else ():
        if len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Call):
            call = monomial[0][0]
            rest = x - Dim(((monomial, c),))
            a, b = call.args
            if call.fn == ("max" if c > 0 else "min"):
                found.append((2 * _depth(call) + 1, [rest + a * c, rest + b * c]))
            elif call.fn == "floordiv" and isinstance(b, int) and b > 0 and c % b == 0:
                bound = rest + (a - (b - 1) * (c > 0)) * (c // b)  # a / b >= a // b >= (a - b + 1) / b
                found.append((2 * _depth(call), [bound]))
    found.sort(key=lambda f: -f[0])
    return [bound for _, bounds in found[: None if len(found) <= _MOST_CALLS else 1] for bound in bounds]


@functools.lru_cache(maxsize=4096)
def _depth(call: Call) -> int:
    """The number of calls that are nested in a call, itself included."""
    return 1 + max((_depth(atom) for x in call.args if isinstance(x, Dim) for monomial, _ in x.terms
                    for atom, _ in monomial if isinstance(atom, Call)), default=0)
