"""Sizes of axes: canonical integer polynomials over named sizes.

A size is an ``int`` or a ``Dim``. A ``Dim`` is a sum of ``coefficient * product of atoms``; an atom is a size name
(``"n"``) or a call ``floordiv / mod / min / max`` that does not simplify. Two sizes are equal when they are the same
polynomial; otherwise equality is *not known*, unless they differ by a nonzero constant. Sizes are never negative.

Sizes that nobody named are ``?0``, ``?1``, ... in the order in which they are made, which no user can write. A closed
function numbers its own (``symc.ir.function``): nothing that is made of it depends on what was made before.
"""

from __future__ import annotations

import itertools
import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Union

from symc.errors import SymbolicValueError

Size = Union[int, "Dim"]
Atom = Union[str, "Call"]
Monomial = tuple[tuple[Atom, int], ...]  # ((atom, power), ...), sorted by the atoms' text

#: From so many terms on one more is put among them: sums of thousands of sizes grow term by term.
MANY = 16
#: What the name of a size without a name begins with.
_MARK = "?"
_fresh = itertools.count()
#: Tells processes apart: what is numbered in one is something else in another.
PROCESS = os.urandom(16).hex()
_foreign: dict[tuple[str, str], str] = {}


class Call:
    """An integer function of sizes that is no polynomial, such as ``floordiv(n, 2)``."""

    __slots__ = ("_hash", "_text", "args", "fn", "nonnegative")

    def __init__(self, fn: str, args: tuple[Size, Size]):
        self.fn, self.args = fn, args
        self._text = ""
        self._hash = hash((fn, args))
        self.nonnegative = nonnegative_call(fn, *map(known_nonnegative, args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.fn == other.fn and self.args == other.args

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        self._text = self._text or f"{self.fn}({self.args[0]}, {self.args[1]})"
        return self._text

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.fn, self.args)


class Dim:
    """A non-constant polynomial. Build with ``size_name`` and Python arithmetic; constants collapse to ``int``."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]):
        self.terms = terms
        self._hash = hash(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.terms, PROCESS)

    def __add__(self, other: Size) -> Size:
        return _sum(self, other)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + other * -1

    def __rsub__(self, other: Size) -> Size:
        return self * -1 + other

    def __mul__(self, other: Size) -> Size:
        return _product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return mod(self, other)

    def __rmod__(self, other: Size) -> Size:
        return mod(other, self)

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of the symbolic size {self} is not known")

    def __str__(self) -> str:
        out = ""
        for monomial, c in self.terms:
            body = "*".join(str(a) if p == 1 else f"{a}**{p}" for a, p in monomial)
            if not body:
                text = str(abs(c))
            else:
                text = body if abs(c) == 1 else f"{abs(c)}*{body}"
            if out:
                out += (" - " if c < 0 else " + ") + text
            else:
                out = ("-" if c < 0 else "") + text
        return out

    __repr__ = __str__


def terms_of(x: Size) -> list[tuple[Monomial, int]]:
    if isinstance(x, Dim):
        return list(x.terms)
    return [((), int(x))] if x else []


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, p in b:
        powers[atom] = powers.get(atom, 0) + p
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _order(term: tuple[Monomial, int]) -> tuple:
    """Highest degree first, then by text, higher powers first: an order that products keep, as division needs it."""
    return (-sum(p for _, p in term[0]), tuple((str(a), -p) for a, p in term[0]))


def polynomial(terms: Iterable[tuple[Monomial, int]]) -> Size:
    total: dict[Monomial, int] = {}
    for m, c in terms:
        total[m] = total.get(m, 0) + c
    if any(type(atom) is Call and atom.fn == "max" for m in total for atom, _ in m):
        shorter = _without_max({m: c for m, c in total.items() if c})
        if shorter is not None:
            return shorter
    kept = [(m, c) for m, c in total.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(tuple(sorted(kept, key=_order)))


def _without_max(total: Mapping[Monomial, int]) -> Size | None:
    """The same sum where ``max(0, n - k) + min(k, n)`` is n, as of what is left of an axis and what was taken off it.
    None if it has no such terms."""
    least = [(k, d, atom, tuple(x for x in k if x[0] != atom)) for k, d in total.items() for atom, power in k
             if power == 1 and isinstance(atom, Call) and atom.fn == "min"]
    for m, c in total.items() if least else ():
        for atom, power in m if c > 0 else ():
            if power != 1 or not isinstance(atom, Call) or atom.fn != "max" or 0 not in atom.args:
                continue
            over = atom.args[1 if atom.args[0] == 0 else 0]
            around = tuple(x for x in m if x[0] != atom)
            for k, d, other, rest in least:
                if d != c or rest != around or k == m:
                    continue
                whole = next((b for a, b in (other.args, other.args[::-1]) if b - a == over), None)
                if whole is not None:
                    others = polynomial([x for x in total.items() if x[0] not in (k, m)])
                    return others + _product(polynomial([(around, c)]), whole)
    return None


class Measured(str):
    """The name of a size that is data: the number that ``value``, an i64 scalar, is in a call. The name keeps the graph
    that computes it alive, and nothing keeps the name but the types and attributes that mention it."""

    value: Any
    where: Any  # the user's lines
    made = 0  # how many there have been

    def __reduce__(self) -> Any:
        raise SymbolicValueError("a size that is data cannot be pickled before the graph is compiled",
                                 help="compile it first: compiled functions can be pickled")


def size_name(name: str) -> Dim:
    """The size called ``name``."""
    return _named(name) if type(name) is str else Dim((((((name, 1),)), 1),))


@lru_cache(maxsize=8192)
def _named(name: str) -> Dim:
    return Dim((((((name, 1),)), 1),))


def fresh_size() -> Dim:
    """A size without a name, unlike every other."""
    return size_name(f"{_MARK}{next(_fresh)}")


def measured_size(value: Any, where: Any) -> Dim:
    """A new size that is the number ``value``, a free i64 scalar, is in a call."""
    name = Measured(f"{_MARK}{next(_fresh)}")
    name.value, name.where = value, where
    Measured.made += 1
    return size_name(name)


def is_fresh(name: str) -> bool:
    """True if nobody gave this name to a size."""
    return name.startswith(_MARK)


def in_order(names: Iterable[str]) -> list[str]:
    """Names by their text, then those that nobody gave in the order of their creation, however many were made."""
    return sorted(names, key=lambda n: (len(n), n) if is_fresh(n) else (0, n))


def _unpickled(terms: tuple[tuple[Monomial, int], ...], process: str) -> Size:
    """The size; one without a name is the same for all pickles of a process, and none that this process made."""
    if process == PROCESS:
        return Dim(terms)
    moved = [(tuple((_here(a, process), p) for a, p in m), c) for m, c in terms]
    return polynomial([(tuple(sorted(m, key=lambda item: str(item[0]))), c) for m, c in moved])


def _here(atom: Atom, process: str) -> Atom:
    if isinstance(atom, Call) or not is_fresh(atom):
        return atom
    if (process, atom) not in _foreign:
        _foreign[process, atom] = f"{_MARK}{next(_fresh)}"
    return _foreign[process, atom]


def _keeps_graph(*sizes: Size) -> bool:
    """Test for sizes that are data: what keeps them keeps the graphs that compute them."""
    pending: list[Any] = [atom for s in sizes for m, _ in terms_of(s) for atom, _ in m]
    while pending:
        atom = pending.pop()
        if isinstance(atom, Measured):
            return True
        if isinstance(atom, Call):
            pending += [inner for s in atom.args for m, _ in terms_of(s) for inner, _ in m]
    return False


def _sum(a: Size, b: Size) -> Size:
    one_more = isinstance(a, Dim) and len(a.terms) > MANY and len(terms_of(b)) < 2
    return (_new_sum if one_more or Measured.made and _keeps_graph(a, b) else _known_sum)(a, b)


def _product(a: Size, b: Size) -> Size:
    return (_new_product if Measured.made and _keeps_graph(a, b) else _known_product)(a, b)


def _new_sum(a: Size, b: Size) -> Size:
    if isinstance(a, Dim) and len(a.terms) > MANY and len(more := terms_of(b)) < 2:
        key = _order(more[0]) if more else ()
        first = bisect_left(a.terms, key, key=_order)
        known = first < len(a.terms) and _order(a.terms[first]) == key
        if not known and all(type(x) is str for m, _ in more for x, _ in m):
            return Dim((*a.terms[:first], *more, *a.terms[first:]))
    return polynomial(terms_of(a) + terms_of(b))


def _new_product(a: Size, b: Size) -> Size:
    return polynomial([(_times(m, k), c * d) for m, c in terms_of(a) for k, d in terms_of(b)])


#: A program has few sizes, and adds and multiplies them often.
_known_sum, _known_product = lru_cache(maxsize=8192)(_new_sum), lru_cache(maxsize=8192)(_new_product)


def call_of(fn: str, a: Size, b: Size) -> Size:
    return polynomial([(((Call(fn, (a, b)), 1),), 1)])


def divide_term(term: tuple[Monomial, int], by: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    """``term / by`` when it is exact, else None."""
    powers = dict(term[0])
    for atom, p in by[0]:
        powers[atom] = powers.get(atom, 0) - p
        if powers[atom] < 0:
            return None
    if term[1] % by[1]:
        return None
    return tuple((a, p) for a, p in powers.items() if p), term[1] // by[1]


def floordiv(a: Size, b: Size) -> Size:
    """``a // b``: exact where the polynomial divides, with whole multiples of ``b`` taken out."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if a == b:
        return 1
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError(f"the size {a} divided by zero")
    divisor = terms_of(b)
    if len(divisor) == 1:
        exact, rest = [], []
        for term in terms_of(a):
            q = divide_term(term, divisor[0])
            (rest.append(term) if q is None else exact.append(q))
        remainder = polynomial(rest)
        if isinstance(remainder, int) and isinstance(b, int):
            return polynomial(exact) + remainder // b
        if isinstance(remainder, int) and remainder == 0:
            return polynomial(exact)
        return polynomial(exact) + call_of("floordiv", remainder, b)
    quotient = _long_division(a, b)
    return call_of("floordiv", a, b) if quotient is None else quotient


def _long_division(a: Size, b: Size) -> Size | None:
    """Exact polynomial quotient (leading-term division), or None."""
    quotient: Size = 0
    lead = terms_of(b)[0]
    for _ in range(64):
        if isinstance(a, int):
            return quotient if a == 0 else None
        q = divide_term(terms_of(a)[0], lead)
        if q is None:
            return None
        q_size = polynomial([q])
        quotient, a = quotient + q_size, a - q_size * b
    return None


def ceildiv(a: Size, b: Size) -> Size:
    """The smallest integer not below ``a / b`` (b positive)."""
    return floordiv(a + b - 1, b)


def mod(a: Size, b: Size) -> Size:
    """``a % b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    q = floordiv(a, b)
    if not any(isinstance(atom, Call) for m, _ in terms_of(q) for atom, _ in m):
        return a - q * b
    return call_of("mod", a, b)


def nonnegative_call(fn: str, a: bool, b: bool) -> bool:
    """True if a call is not negative where these of its arguments are not."""
    return {"floordiv": a and b, "mod": b, "min": a and b, "max": a or b}[fn]


def known_nonnegative(x: Size) -> bool:
    """True when ``x >= 0`` for all sizes; False means not known."""
    if isinstance(x, int):
        return x >= 0
    return all(c >= 0 and (not m or _nonnegative(m)) for m, c in x.terms)


def _nonnegative(monomial: Monomial) -> bool:
    """Names are never negative; calls may be (``floordiv(n - 5, 2)``)."""
    return all(isinstance(atom, str) or atom.nonnegative or power % 2 == 0 for atom, power in monomial)


def known_equal(a: Size, b: Size) -> bool | None:
    """True or False when it is known for all sizes, None when it depends on them."""
    if a == b:
        return True
    difference = a - b
    if isinstance(difference, int):
        return False
    if known_nonnegative(difference - 1) or known_nonnegative(-1 - difference):
        return False
    return None


def known_different(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """True when two shapes differ for all sizes."""
    return len(a) != len(b) or any(known_equal(x, y) is False for x, y in zip(a, b, strict=True))


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes; 1 for none."""
    total: Size = 1
    for s in sizes:
        total = total * s
    return total
