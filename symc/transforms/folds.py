"""Functions of the rows of arrays that are made of loops: ``map``, folds, and all prefixes by halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.errors import InputError, ShapeError
from symc.tensors import pytree as nest
from symc.tensors.public import API, public
from symc.tensors.tensor import Tensor
from symc.transforms.callbacks import call_traced, check_callback
from symc.transforms.control import _length, _match, _strong, _tensors, scan


@public()
def map_(fn: Callable[..., Any], *xs: Any) -> Any:
    """``fn`` of every row, in a loop, stacked: ``stack([fn(x) for x in xs])`` (several nests: ``fn(x, y, ...)``).

    ``sc.vmap`` computes all rows at once and is usually faster; this takes less memory.

    >>> x = sc.matrix("x")
    >>> sc.compile(sc.map(lambda row: sc.sum(row**2), x))([[1.0, 2.0], [3.0, 4.0]])
    array([ 5., 25.])
    """
    if not xs:
        raise InputError("map: there is nothing to map over")
    check_callback(fn, "map: fn", *(f"row {k}" for k in range(len(xs))))
    return scan(lambda _, row: (None, fn(*row)), None, tuple(xs))[1]


@public()
def foldl(fn: Callable[[Any, Any], Any], init: Any, xs: Any) -> Any:
    """``carry = fn(carry, x)`` over the rows of ``xs`` from the first to the last; returns the last carry.

    >>> x = sc.vector("x")
    >>> sc.compile(sc.foldl(lambda carry, row: 10 * carry + row, 0.0, x))([1.0, 2.0, 3.0])
    array(123.)
    """
    check_callback(fn, "foldl: fn", "carry", "x")
    return scan(lambda carry, x: (fn(carry, x), None), init, xs)[0]


@public()
def foldr(fn: Callable[[Any, Any], Any], init: Any, xs: Any) -> Any:
    """``carry = fn(carry, x)`` over the rows of ``xs`` from the last to the first; returns the last carry."""
    check_callback(fn, "foldr: fn", "carry", "x")
    return scan(lambda carry, x: (fn(carry, x), None), init, xs, reverse=True)[0]


@public()
def reduce(fn: Callable[[Any, Any], Any], xs: Any, init: Any = None) -> Any:
    """``functools.reduce``: ``fn(fn(x0, x1), x2)...`` over the rows of ``xs``, from ``init`` on if it is given.

    Raises ShapeError for no rows without ``init``.

    >>> x = sc.vector("x")
    >>> sc.compile(sc.reduce(sc.maximum, x))([1.0, 3.0, 2.0])
    array(3.)
    """
    check_callback(fn, "reduce: fn", "carry", "x")
    if init is not None:
        return foldl(fn, init, xs)
    rows, structure = _tensors(xs, "xs")
    n = _length(rows, structure, None)
    if n == 0:
        raise ShapeError("reduce: there are no rows and no init", values=[r.describe() for r in rows])
    first = nest.unflatten(structure, [r[0] for r in rows])
    rest = nest.unflatten(structure, [r[1:] for r in rows])
    return foldl(fn, first, rest)


@public()
def associative_scan(fn: Callable[[Any, Any], Any], xs: Any, reverse: bool = False) -> Any:
    """All prefixes ``x0, fn(x0, x1), fn(fn(x0, x1), x2), ...`` of an associative ``fn`` over the rows of ``xs``.

    ``fn`` must work on whole batches of rows (elementwise functions and products over the last axes do). It is applied
    to halves, quarters, ...: about 2 log2(n) large steps in place of n small ones (Blelloch 1990). Rows whose number
    is not known while building are taken one after another, by ``sc.scan``.

    >>> x = sc.input("x", shape=(4,))
    >>> sc.compile(sc.associative_scan(sc.multiply, x))([1.0, 2.0, 3.0, 4.0])
    array([ 1.,  2.,  6., 24.])
    """
    check_callback(fn, "associative_scan: fn", "left", "right")
    rows, structure = _tensors(xs, "xs")
    n = _length(rows, structure, None)
    rows = [_strong(r) for r in rows]
    if reverse:
        rows = [API["flip"](r, 0) for r in rows]

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        left, right = (nest.unflatten(structure, p) for p in (a, b))
        out = call_traced(fn, "associative_scan: fn", left, right)
        return _match(structure, out, "associative_scan", "the result of fn")

    out = _prefixes(combine, rows, n) if isinstance(n, int) else _one_by_one(combine, rows)
    return nest.unflatten(structure, [API["flip"](r, 0) for r in out] if reverse else out)


def _one_by_one(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor]) -> list[Tensor]:
    """The same by a loop, in which a row is a batch of one; without rows the loop begins with zeros."""

    def step(carry: list[Tensor], row: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        combined = combine([c[None] for c in carry], [r[None] for r in row])
        after = [c[0] for c in combined]
        return after, after

    first = [API["concatenate"]([r[:1], API["zeros_like"](r, shape=(1, *r.shape[1:]))])[0] for r in rows]
    rest = scan(step, first, [r[1:] for r in rows])[1]
    return [API["concatenate"]([r[:1], others]) for r, others in zip(rows, rest, strict=True)]


def _prefixes(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor],
              n: int) -> list[Tensor]:
    if n < 2:
        return rows
    pairs = combine([r[0 : n - 1 : 2] for r in rows], [r[1::2] for r in rows])
    odd = _prefixes(combine, pairs, n // 2)  # prefixes that end at 1, 3, 5, ...
    if n == 2:
        return [API["concatenate"]([r[:1], o]) for r, o in zip(rows, odd, strict=True)]
    m = (n - 1) // 2  # of those that end at 2, 4, 6, ...
    even = combine([o[:m] for o in odd], [r[2::2] for r in rows])
    return [_interleave(r[:1], o, e, n) for r, o, e in zip(rows, odd, even, strict=True)]


def _interleave(first: Tensor, odd: Tensor, even: Tensor, n: int) -> Tensor:
    evens, m = API["concatenate"]([first, even]), n // 2
    paired = API["reshape"](API["stack"]([evens[:m], odd], 1), (2 * m, *first.shape[1:]))
    return API["concatenate"]([paired, evens[m:]]) if n % 2 else paired
