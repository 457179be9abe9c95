"""The lesser and the greater of two sizes, as far as it is known for all numbers that they can be."""

from __future__ import annotations

from symc.ir.dim import Call, Dim, Size, call_of, floordiv, known_nonnegative, terms_of


def minimum(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if known_nonnegative(b - a):
        return a
    if known_nonnegative(a - b):
        return b
    of = _of_quotients(a, b)
    return floordiv(least, of[2]) if of and (least := minimum(of[0], of[1])) in of[:2] else call_of(
        "min", *sorted((a, b), key=str))


def _of_quotients(a: Size, b: Size) -> tuple[Size, Size, int] | None:
    """The operands and the number of two quotients by one number: they are in the order of their operands."""
    calls = [_quotient(x) for x in (a, b)]
    if calls[0] is None or calls[1] is None or calls[0][1] != calls[1][1]:
        return None
    return calls[0][0], calls[1][0], calls[0][1]


def _quotient(x: Size) -> tuple[Size, int] | None:
    """The operands of a size that is a ``floordiv`` by a number and nothing else."""
    if isinstance(x, Dim) and len(x.terms) == 1 and x.terms[0][1] == 1 and len(x.terms[0][0]) == 1:
        atom, power = x.terms[0][0][0]
        if isinstance(atom, Call) and power == 1 and atom.fn == "floordiv" and isinstance(by := atom.args[1], int):
            return (atom.args[0], by) if by > 0 else None
    return None


def _is_rest(x: Size) -> bool:
    """True for ``n - max(0, n - k)``, which is not negative."""
    for m, c in terms_of(x):
        if c == -1 and len(m) == 1 and m[0][1] == 1 and isinstance(call := m[0][0], Call) and call.fn == "max":
            whole = x + Dim(((m, 1),))
            short = whole - call.args[1 if call.args[0] == 0 else 0]
            if 0 in call.args and isinstance(short, int) and short >= 0 and known_nonnegative(whole):
                return True
    return False


def maximum(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if known_nonnegative(a - b) or b == 0 and _is_rest(a):
        return a
    if known_nonnegative(b - a):
        return b
    if a == 0 or b == 0:
        whole = _less(b if a == 0 else a)
        if whole is not None:
            return maximum(0, whole)
    of = _of_quotients(a, b)
    return floordiv(most, of[2]) if of and (most := maximum(of[0], of[1])) in of[:2] else call_of(
        "max", *sorted((a, b), key=str))


def _less(x: Size) -> Size | None:
    """``n - k`` for ``max(0, n) - k``, k not negative: 0 at least, they are the same, as of slices of slices."""
    for m, c in terms_of(x):
        if c == 1 and len(m) == 1 and m[0][1] == 1 and isinstance(call := m[0][0], Call) and call.fn == "max":
            rest = x - Dim(((m, 1),))
            if 0 in call.args and known_nonnegative(-rest):
                return call.args[1 if call.args[0] == 0 else 0] + rest
    return None


def greatest(x: Size) -> int | None:
    """A number that a size is never above: 5 for ``min(n, 5)``, and for ``n - max(0, n - 5)``. None if none is seen."""
    if isinstance(x, int):
        return x
    found = [most for m, c in terms_of(x) if len(m) == 1 and m[0][1] == 1 and isinstance(call := m[0][0], Call)
             and call.fn == ("min" if c > 0 else "max") for a in call.args
             if (most := greatest(x - Dim(((m, c),)) + a * c)) is not None]
    return min(found, default=None)


def if_any(n: Size) -> Size:
    """The number that ``n`` is if it is not 0: k for ``max(0, k)``. What is said of each of n elements may use it."""
    if isinstance(n, Dim) and len(n.terms) == 1 and n.terms[0][1] == 1 and len(n.terms[0][0]) == 1:
        atom, power = n.terms[0][0][0]
        if isinstance(atom, Call) and power == 1 and atom.fn == "max" and 0 in atom.args:
            return next((a for a in atom.args if a != 0), n)
    return n
