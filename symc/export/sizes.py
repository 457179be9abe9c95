"""Sizes as expressions of C and Python, and from which axes of arrays they are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.dim import Dim, Size, size_name
from symc.ir.size_values import names, substitute

_CALLS = {"floordiv": "size_divide", "mod": "size_modulo", "min": "size_least", "max": "size_most"}


def c_size(s: Size, sizes: dict[str, str]) -> str:
    """A size as an expression of C, in parentheses where it is a sum."""
    return _written(s, sizes, lambda fn, a, b: f"{_CALLS[fn]}({a}, {b})")


def c_bound(s: Size, sizes: dict[str, str]) -> str:
    """Bound of a size and of everything that it is computed from, in floating point, for sizes of at least 0."""
    if not isinstance(s, Dim):
        return f"{abs(s)}.0"
    return " + ".join(" * ".join([f"{abs(c)}.0"] + [
        sizes[a] if isinstance(a, str) else f"({' + '.join(c_bound(x, sizes) for x in a.args)})"
        for a, power in monomial for _ in range(power)]) for monomial, c in s.terms)


def python_size(s: Size, sizes: dict[str, str]) -> str:
    """The same of Python."""
    def call(fn: str, a: str, b: str) -> str:
        sign = {"floordiv": "//", "mod": "%"}.get(fn)
        return f"(({a}) {sign} ({b}))" if sign else f"{fn}({a}, {b})"

    return _written(s, sizes, call)


def _written(s: Size, sizes: dict[str, str], call: Callable[[str, str, str], str]) -> str:
    if not isinstance(s, Dim):
        return str(s)
    text = ""
    for monomial, c in s.terms:
        factors = [sizes[a] if isinstance(a, str) else call(a.fn, *[_written(x, sizes, call) for x in a.args])
                   for a, power in monomial for _ in range(power)]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = "-" if c < 0 else "+"
        text += (f" {sign} " if text else sign.replace("+", "")) + " * ".join(factors)
    return text if len(s.terms) == 1 and text[0] != "-" else f"({text})"


def solved(shapes: Sequence[Sequence[Size]]) -> dict[str, tuple[int, int, Size, Size]]:
    """For each size that shapes tell (array, axis, a, b), in an order in which each needs those before: the axis has
    the size a * name + b."""
    axes = [(k, axis, s) for k, shape in enumerate(shapes) for axis, s in enumerate(shape) if isinstance(s, Dim)]
    found: dict[str, tuple[int, int, Size, Size]] = {}
    for plain in (True, False):
        for k, axis, s in axes:
            unknown = sorted(names(s) - found.keys())
            if len(unknown) == 1 and (s == size_name(unknown[0])) >= plain:
                b = substitute(s, {unknown[0]: 0})
                a = substitute(s - b, {unknown[0]: 1})
                if s == a * size_name(unknown[0]) + b:
                    found[unknown[0]] = k, axis, a, b
    return found
