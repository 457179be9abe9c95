"""Sums and products as collections of signed terms: how rules look at nests of them, and what is below a value.

``a - b + c`` is {a, c, -b}; ``a / b`` is {a, 1/b}; a number is a splat of any rank and dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dim import Size
from symc.ir.op import splat
from symc.ir.ops.assume import assume
from symc.ir.ops.cast import in_dtype
from symc.ir.ops.leaf import size
from symc.ir.ops.shape import broadcast
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value

#: The ops whose nests are one collection of terms: (op, sign of its first operand, sign of its second).
SUM = {"add": (1, 1), "sub": (1, -1)}
PRODUCT = {"mul": (1, 1), "div": (1, -1)}
#: What a number is called among op names.
NUMBER = "#"
#: How `needs` says that a sum or a product of any kind must be below.
NESTS = {"sum": "+", "product": "*"}
#: A nest is opened up to this many terms, so that matching one value costs a bounded amount.
MAX_TERMS = 6

Term = tuple[int, Value]


def table(kind: str) -> dict[str, tuple[int, int]]:
    """The ops of a kind of nest."""
    return SUM if kind == "sum" else PRODUCT


def kind_of(op_name: str) -> str:
    """The kind of nest that an op makes, or an empty string."""
    return "sum" if op_name in SUM else "product" if op_name in PRODUCT else ""


def bare(v: Value) -> Value:
    """``v`` without what is assumed of it."""
    while v.op is assume:
        (v,) = v.operands
    return v


class Recent(dict):
    """Answers about values that are asked for again and again, one after another: the latest few."""

    MOST, MOST_KEPT = 256, 1 << 16

    def keep(self, key: Any, answer: Any) -> Any:
        if len(self) >= (self.MOST_KEPT if _keeping else self.MOST):
            self.clear()
        self[key] = answer
        return answer


_flat, _below = Recent(), Recent()
_keeping: list[None] = []


def forget() -> None:
    """Let go of the values, and of the graphs and data below them, unless they are kept for what follows."""
    if not _keeping:
        _flat.clear()
        _below.clear()


@contextmanager
def answers_kept() -> Iterator[None]:
    """Many runs over one graph: what was found out about its values is kept till the end."""
    _keeping.append(None)
    try:
        yield
    finally:
        _keeping.pop()
        forget()


def flatten(v: Value, kind: str, limit: int = MAX_TERMS) -> list[Term]:
    """The signed terms of a nest of sums or products; factors of 1 are left out. Not to be changed.

    A difference ``x - x`` in a sum is a term: in another sequence its parts would take digits of the other terms.
    """
    found = _flat.get((v, kind, limit))
    return found if found is not None else _flat.keep((v, kind, limit), _flatten(v, kind, limit))


def ingredients(v: Value) -> frozenset[str]:
    """The op names that a left side can find right below ``v``; ``#`` stands for a number, ``+`` for a sum, ``*`` for a
    product. Not to be changed."""
    known = _below.get(v)
    if known is not None:
        return known
    kind = kind_of(v.op.name)
    below = [*v.operands, *(x for _, x in flatten(v, kind))] if kind else v.operands
    out = {o.op.name for o in below}
    if "assume" in out:
        out |= {bare(o).op.name for o in below}
    if not out.isdisjoint(("constant", "broadcast")) and any(splat_of(o) is not None for o in below):
        out.add(NUMBER)
    out |= {NESTS[k] for name in out if (k := kind_of(name))}
    return _below.keep(v, frozenset(out))


def _flatten(v: Value, kind: str, limit: int) -> list[Term]:
    ops = table(kind)
    out: list[Term] = []
    stack: list[Term] = [(1, v)]
    while stack:
        sign, x = stack.pop()
        if x.op is assume and (bare(x).op.name in ops or bare(x).op.name == "neg"):
            x = bare(x)
        gone = x.op.name == "sub" and x.operands[0] is x.operands[1] and x is not v
        if x.op.name in ops and not gone and len(stack) + len(out) + 2 <= limit:
            first, second = ops[x.op.name]
            stack += [(sign * second, x.operands[1]), (sign * first, x.operands[0])]
        elif x.op.name == "neg" and kind == "sum":
            stack.append((-sign, x.operands[0]))
        elif kind == "sum" and sign < 0 and (number := splat_of(x)) is not None and number.dtype.kind in "ifc":
            out.append((1, splat(Array(-number), x.type)))
        elif kind != "product" or not is_number(x, 1):
            out.append((sign, x))
    return out


def parts(v: Value, holds: Callable[[Value], bool]) -> list[Term]:
    """The signed terms of a sum as it is grouped: what is put together and has no term for which ``holds`` is one."""
    out: list[Term] = []
    stack: list[Term] = [(1, v)]
    while stack:
        sign, x = stack.pop()
        if kind_of(x.op.name) == "sum" and any(holds(y) for _, y in flatten(x, "sum")):
            stack += [(sign * s, y) for s, y in direct(x, "sum")][::-1]
        else:
            out.append((sign, x))
    return out


def cancels_first(v: Value, facts: Callable) -> bool:
    """True if a sum has a number in parentheses with what it may cancel: ``y + (1 + tanh(x))``. In another order what
    is left of both is rounded away."""
    if any(splat_of(o) is not None for o in v.operands):
        return False
    stack = list(v.operands)
    for _ in range(2 * MAX_TERMS):
        if not stack:
            break
        x = bare(stack.pop())
        if kind_of(x.op.name) == "sum":
            (s, a), (t, b) = direct(x, "sum")
            n, other = (splat_of(a), b) if splat_of(a) is not None else (splat_of(b), a)
            if n is not None:
                alike = (float(n.real) > 0) == (s == t)
                return not (facts(other).nonnegative if alike else facts(other).nonpositive)
        if kind_of(x.op.name) == "sum" or x.op.name == "neg":
            stack += x.operands
    return False


def direct(v: Value, kind: str) -> list[Term]:
    """The signed terms of one sum or product, not opened further."""
    first, second = table(kind)[v.op.name]
    pairs = [(first, v.operands[0]), (second, v.operands[1])]
    return [(s, x) for s, x in pairs if kind != "product" or not is_number(x, 1)]


def join(terms: Sequence[Term], kind: str) -> Value:
    """The sum or product of signed terms (at least one): the positive ones first."""
    ordered = [t for t in terms if t[0] > 0] + [t for t in terms if t[0] < 0]
    sign, out = ordered[0]
    if sign < 0:
        out = -out if kind == "sum" else 1 / out
    for sign, x in ordered[1:]:
        if kind == "sum":
            out = out + x if sign > 0 else out - x
        else:
            out = out * x if sign > 0 else out / x
    return out


def without(terms: list[Term], *gone: int) -> list[Term]:
    """The other terms."""
    return [t for k, t in enumerate(terms) if k not in gone]


def opposites(terms: list[Term]) -> Iterator[tuple[Value, Value, list[Term]]]:
    """Every positive term with every negative one, and the terms beside them."""
    for i, (s, x) in enumerate(terms):
        for j, (t, y) in enumerate(terms):
            if s > 0 > t:
                yield x, y, without(terms, i, j)


def number_apart(x: Value) -> tuple[float, Value | None]:
    """``x`` as a number plus another value."""
    terms = flatten(x, "sum")
    for k, (s, y) in enumerate(terms):
        n = splat_of(y)
        if n is not None and len(terms) > 1:
            return s * float(n), join(without(terms, k), "sum")
    return 0.0, x


def scale_apart(x: Value) -> tuple[float, list[Term]]:
    """``x`` as a positive number times other factors: all of them, if the number overflowed or vanished."""
    number, rest = 1.0, list[Term]()
    for s, y in flatten(x, "product"):
        n = splat_of(y)
        if n is not None and 0 < n < np.inf:
            number *= float(n) ** s
        else:
            rest.append((s, y))
    return (number, rest) if 0 < number < np.inf else (1.0, flatten(x, "product"))


def everywhere(v: Value) -> Value | None:
    """The value of rank 0 that ``v`` repeats in all its elements."""
    return v.operands[0] if v.op is broadcast and not v.attrs["axes"] else None


def splat_like(number: Any, like: Value) -> Value:
    """A number in every element of a value of the type of ``like``."""
    return splat(Array(np.asarray(number, like.dtype)), like.type)


def size_like(n: Size, t: TensorType) -> Value:
    """A size in every element of a type."""
    if isinstance(n, int):
        return splat(n, t)
    number = in_dtype(size(value=n), t.dtype)
    return broadcast(number, axes=(), shape=t.shape) if t.shape else number


def number_and(x: Value, scaled: Callable[[Value], tuple[float, Value] | None]) -> tuple[float, float, Value] | None:
    """``x`` as c + k * f(y) for positive numbers c and k: (c, k, y). ``scaled``: k and y of a value k * f(y)."""
    terms = flatten(x, "sum") if x.op.name == "add" else []
    if len(terms) != 2 or any(s < 0 for s, _ in terms):
        return None
    for (_, a), (_, b) in (terms, terms[::-1]):
        c, found = splat_of(a), scaled(b)
        if c is not None and 0 < c < np.inf and found is not None:
            return float(c), *found
    return None


def is_number(v: Value, number: float | np.ndarray, bitwise: bool = False) -> bool:
    """True when every element of ``v`` is this number, as far as the graph shows. ``bitwise``: -0.0 is not 0.0."""
    data = splat_of(v)
    if data is None:
        return False
    if type(number) is int and not bitwise:
        return data.item() == number  # a small whole number is itself in every dtype
    want = _number_in(np.asarray(number).tobytes(), np.asarray(number).dtype, data.dtype)
    if bitwise:
        return data.tobytes() == want.tobytes()
    return bool(data == want)


@lru_cache(maxsize=1024)
def _number_in(number: bytes, dtype: np.dtype, target: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.frombuffer(number, dtype)[0].astype(target)


def apart(pieces: Sequence[Value]) -> bool:
    """True if slices of one value have no element in common: along some axis they follow one another."""
    for axis in range(pieces[0].ndim):
        ends = []
        for v in pieces:
            start, length, step = (v.attrs[k][axis] for k in ("start", "size", "step"))
            if not isinstance(start, int) or not isinstance(length, int) or step != 1:
                break
            ends.append((start, start + length))
        else:
            ends.sort()
            if all(a[1] <= b[0] for a, b in pairwise(ends)):
                return True
    return False
