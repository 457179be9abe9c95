"""Words that depend on sizes: a plan is lowered once, and these are computed when the sizes of a call are others.

A *formula* is a size (``symc.ir.dim``), or what is decided by sizes: ``Less``, ``All``, ``Largest``. Formulas become
instructions on slots, each subexpression once. What exceeds 64 bits stops the run; an estimate (``Less`` and what it
compares) stays as large as can be instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from symc.ir.dim import Call, Dim, Size, known_nonnegative
from symc.runtime.cpu.native.instructions import Op


class Less(NamedTuple):
    """1 where ``a < b``, else 0."""

    a: Size
    b: Size | Largest


class All(NamedTuple):
    """1 where all of these are 1, else 0."""

    tests: tuple[Less, ...]


class Largest(NamedTuple):
    """The largest of these, at least 0."""

    of: tuple[Size, ...]


Formula = int | Dim | Less | All | Largest
_CALLS = {"floordiv": Op.FLOORDIV, "mod": Op.MOD, "min": Op.MIN, "max": Op.MAX}


@lru_cache(maxsize=4096)
def less(a: Size, b: Size | Largest) -> Less | int:
    """``a < b``, as a number if that is known."""
    if isinstance(b, Largest):
        return Less(a, b)
    if known_nonnegative(b - a - 1):
        return 1
    return 0 if known_nonnegative(a - b) else Less(a, b)


def at_least(a: Size, b: Size) -> Less | int:
    """``a >= b``, as a number if that is known."""
    return less(b - 1, a)


Test = Less | All | int


def both(*tests: Test) -> Test:
    """1 where all tests are 1."""
    left: dict[Less, None] = {}
    for t in tests:
        if isinstance(t, All):
            left.update(dict.fromkeys(t.tests))
        elif isinstance(t, Less):
            left[t] = None
        elif not t:
            return 0
    return All(tuple(left)) if left else 1


def largest(sizes: Sequence[Size]) -> Size | Largest:
    """The largest of some sizes, at least 0."""
    found = dict.fromkeys(s for s in sizes if not isinstance(s, int))
    number = max([0, *(s for s in sizes if isinstance(s, int))])
    return Largest((number, *found)) if found else number


class Arithmetic:
    """Writes instructions that compute formulas. ``slot``: makes a word of data; ``emit``: adds an instruction;
    ``names``: the slots of sizes that have names."""

    def __init__(self, slot: Callable[[int], int], emit: Callable[..., None]):
        self._slot, self._emit = slot, emit
        self.names: dict[str, int] = {}
        self._numbers: dict[int, int] = {}
        self._known: dict[object, int] = {}

    def number(self, n: int) -> int:
        """The slot of a number that nobody writes."""
        if n not in self._numbers:
            self._numbers[n] = self._slot(n)
        return self._numbers[n]

    def __call__(self, x: Formula) -> int:
        """The slot of a formula's number, which is computed here at first."""
        if isinstance(x, int):
            return self.number(x)
        key = (type(x), x)  # tuples of different types may be equal
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(x)
        return found

    def _compute(self, x: Formula) -> int:
        if isinstance(x, Dim):
            return self._polynomial(x)
        if isinstance(x, Less):
            return self.apply(Op.LESS, self(x.a), self(x.b))
        if isinstance(x, All):
            return self._fold(Op.MUL, [self(t) for t in x.tests])
        assert isinstance(x, Largest)
        return self._fold(Op.MAX, [self(s) for s in x.of])

    def apply(self, op: int, a: int, b: int) -> int:
        """The slot of an operation on two slots."""
        key = (op, a, b)
        if key not in self._known:
            self._known[key] = to = self._slot(0)
            self._emit(op, to, a, b)
        return self._known[key]

    def _fold(self, op: int, slots: Sequence[int]) -> int:
        found = slots[0]
        for s in slots[1:]:
            found = self.apply(op, found, s)
        return found

    def _polynomial(self, x: Dim) -> int:
        total: int | None = None
        for monomial, c in x.terms:
            factors = [self._atom(atom) for atom, power in monomial for _ in range(power)]
            if c != 1 or not factors:
                factors.append(self.number(c))
            term = self._fold(Op.MUL, factors)
            total = term if total is None else self.apply(Op.ADD, total, term)
        assert total is not None
        return total

    def _atom(self, atom: str | Call) -> int:
        if isinstance(atom, str):
            return self.names[atom]
        a, b = map(self, atom.args)
        return self.apply(_CALLS[atom.fn], a, b)
