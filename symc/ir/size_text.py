"""Sizes read from text: the inverse of ``str`` of a size."""

from __future__ import annotations

import re

from symc.ir.dim import Size, product, size_name, terms_of
from symc.ir.size_values import CALLS, SIMPLIFYING

_TOKEN = r"\s*(\d+|[^\W\d]\w*|\*\*|[-+*(),])"


def parse_dim(text: str) -> Size:
    """The inverse of ``str``. Raises ValueError on anything else."""
    text = text.rstrip()
    tokens = [text] if _is_name(text) else _tokens(text)
    value, end = parse_tokens(tokens, 0)
    if end != len(tokens):
        raise ValueError(f"not a size: {text!r}")
    return value


def _is_name(text: str) -> bool:
    """True for the names that nearly all sizes are, found without an expression, whose compilation takes longer."""
    return text.isascii() and text.isidentifier()


def _tokens(text: str) -> list[str]:
    found, at, token = [], 0, re.compile(_TOKEN)
    while at < len(text):
        match = token.match(text, at)
        if not match:
            raise ValueError(f"not a size: {text!r}")
        found.append(match[1])
        at = match.end()
    return found


#: How deep calls in sizes may be nested in text, how many terms one may have, and how high a power may be.
_DEEPEST, _LONGEST, _HIGHEST = 32, 256, 64


def parse_tokens(tokens: list[str], at: int, depth: int = 0) -> tuple[Size, int]:
    """Parse a size from ``tokens[at:]``; returns it and the position after it. Raises ValueError on anything else."""
    if depth > _DEEPEST:
        raise ValueError("a size is nested too deep")
    total: Size = 0
    sign = 1
    if tokens[at : at + 1] == ["-"]:
        sign, at = -1, at + 1
    while True:
        term, at = _parse_product(tokens, at, depth)
        total = _bounded(total + term * sign)
        if at < len(tokens) and tokens[at] in ("+", "-"):
            sign, at = (1 if tokens[at] == "+" else -1), at + 1
        else:
            return total, at


def _bounded(size: Size) -> Size:
    """A size as it was written, if it is no longer and has no larger numbers than sizes have."""
    if len(terms_of(size)) > _LONGEST or any(abs(c) >= 2**63 for _, c in terms_of(size)):
        raise ValueError("a size is too large")
    return size


def _parse_product(tokens: list[str], at: int, depth: int) -> tuple[Size, int]:
    term: Size = 1
    while True:
        factor, at = _parse_factor(tokens, at, depth)
        term = _bounded(term * factor)
        if at < len(tokens) and tokens[at] == "*":
            at += 1
        else:
            return term, at


def _parse_factor(tokens: list[str], at: int, depth: int) -> tuple[Size, int]:
    base, at = _parse_atom(tokens, at, depth)
    if at + 1 < len(tokens) and tokens[at] == "**":
        power = tokens[at + 1]
        if not power.isdecimal() or len(power) > 2 or int(power) > _HIGHEST:
            raise ValueError(f"not a power of a size: {power[:40]!r}")
        return product([base] * int(power)), at + 2
    return base, at


def _parse_atom(tokens: list[str], at: int, depth: int) -> tuple[Size, int]:
    token = tokens[at] if at < len(tokens) else "the end"
    if token.isdecimal():
        if len(token) > 20:
            raise ValueError("a size is too large")
        return int(token), at + 1
    if not _is_name(token) and not re.fullmatch(r"[^\W\d]\w*", token):
        raise ValueError(f"not a size: {token!r}")
    if token not in CALLS or tokens[at + 1 : at + 2] != ["("]:
        return size_name(token), at + 1
    a, comma = parse_tokens(tokens, at + 2, depth + 1)
    b, end = parse_tokens(tokens, comma + 1, depth + 1)
    if [*tokens[at + 1 : at + 2], *tokens[comma : comma + 1], *tokens[end : end + 1]] != ["(", ",", ")"]:
        raise ValueError(f"{token} takes two sizes")
    if b == 0 and token in ("floordiv", "mod"):
        raise ValueError(f"{token} by 0")
    return SIMPLIFYING[token](a, b), end + 1
