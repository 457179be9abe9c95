"""Patterns of graphs that are linear in a leaf: the elements of the leaf that elements of a result depend on.

A pattern is a boolean matrix: a row for each element of a value, a column for each element of the leaf. The graph of a
tangent is linear, so what an op does to patterns follows from how it moves, adds up and scales elements, which its
record states: the lowering, the traits, the derivative. Where nothing is stated, every element of the result depends on
every element that can meet it. So a pattern may have too many entries, never too few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from symc.errors import GradientError, ShapeError
from symc.ir.dim import Dim
from symc.ir.op import Decompose, Fold, Linear, Running, Update, View, picks
from symc.ir.ops.effect import IDENTITY
from symc.ir.reference import run_values
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, first_line, fresh_input
from symc.tensors.constants import stands_alone

#: Entries that a pattern has at most, and values that the bodies of a loop have at most, over all its steps.
MOST, STEPS = 10**8, 20_000

Pattern = Any  # scipy.sparse.csr_array of bool
Found = list[Any]  # the pattern of each result; None for one that depends on nothing


def empty(rows: int, columns: int) -> Pattern:
    """The pattern of what depends on nothing."""
    return _csr(np.empty(0, np.int64), np.empty(0, np.int64), (rows, columns))


def every(n: int) -> Pattern:
    """The pattern of the leaf itself."""
    return _csr(np.arange(n), np.arange(n), (n, n))


def _csr(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Pattern:
    from scipy.sparse import csr_array

    return csr_array((np.ones(rows.size, np.bool_), (rows, columns)), shape=shape)


class Patterns:
    """The patterns of the values of a graph, found once each.

    ``given``: those of leaves. ``arrays``: the numbers of values that are known, which others are computed from where
    a pattern depends on them (indices, masks, constant matrices). ``transposed``: the graph is the transpose of an op.
    """

    def __init__(self, given: Mapping[Value, Found | None], arrays: Mapping[Value, np.ndarray], width: int,
                 transposed: bool = False):
        self.found: dict[Value, Found | None] = dict(given)
        self.arrays, self.width, self.transposed = dict(arrays), width, transposed
        self._closed: dict[Value, bool] = {v: v in self.arrays for v in self.found}

    def of(self, roots: Sequence[Value]) -> list[Pattern | None]:
        """The pattern of each root; None where it does not depend on the leaf."""
        for v in postorder(roots, stop=self.found.__contains__):
            if v not in self.found:
                self._closed[v] = v in self.arrays or stands_alone(v) and all(self._closed[o] for o in v.operands)
                moved = any(self.found[o] is not None for o in v.operands)
                self.found[v] = self._one(v) if moved and not self._closed[v] else None
        return [(self.found[r] or [None])[0] for r in roots]

    def first(self, v: Value) -> Pattern | None:
        """The pattern of a value with one result that has been met."""
        found = self.found[v]
        return None if found is None else found[0]

    def known(self, v: Value) -> np.ndarray | None:
        """The numbers of a value that has been met, if they are known."""
        if not self._closed[v]:
            return None
        with np.errstate(all="ignore"):
            return np.asarray(run_values([v], self.arrays, {})[0])

    def _one(self, v: Value) -> Found | None:
        for x in (v, *v.operands):
            for t in x.types:
                count(x, t)
        for rule in RULES:
            found = rule(self, v)
            if found is not NotImplemented:
                return None if all(p is None for p in found) else found
        return _mixed(self, v)

    def together(self, parts: Sequence[Pattern | None]) -> Pattern | None:
        """Pattern of what depends on anything that one of the parts does."""
        some = [p for p in parts if p is not None]
        out = some[0] if some else None
        for p in some[1:]:
            out = out + p
        return out

    def filled(self, p: Pattern | None, rows: int) -> Pattern:
        """A pattern, also of what depends on nothing."""
        return empty(rows, self.width) if p is None else p


def count(v: Value, t: TensorType | None = None) -> int:
    """The number of elements. Raises ShapeError where it is not known."""
    t = t or v.type
    for a, s in enumerate(t.shape):
        if not isinstance(s, int):
            raise unknown_size((v.op.name, t, first_line(v)), a, s)
    return prod(t.shape)  # type: ignore[arg-type]


def unknown_size(row: tuple[str, Any, Any], axis: int, size: Any) -> ShapeError:
    """The error for a size that is not known when a pattern is looked for."""
    return ShapeError(
        f"the pattern of a derivative needs sizes that are numbers: axis {axis} of {row[0]} : {row[1]} is {size}",
        values=[row], help="declare sizes as numbers: sc.input(name, dtype, shape=(1000,)); a function under sc.jit "
        "has those of the call")


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of a value or a type whose sizes are numbers."""
    return x.shape  # type: ignore[no-any-return]


def met(v: Value, rows: np.ndarray, columns: np.ndarray, number: int, part: Pattern) -> Pattern:
    """The pattern of ``number`` elements, of which those at ``rows`` depend on what elements at ``columns`` of a value
    of this pattern depend on. Raises GradientError where that is not sparse."""
    entries = int(np.diff(part.indptr)[columns].sum()) if columns.size else 0
    if entries > MOST:
        raise GradientError(f"the pattern of the derivative has {entries:.2g} entries at {v.op.name}: it is not sparse",
                            values=[(v.op.name, v.type, first_line(v))],
                            help="sc.jacobian and sc.hessian give dense matrices, sc.hvp and sc.jvp products with them")
    return _csr(rows, columns, (number, part.shape[0])) @ part


# --- the same elements ------------------------------------------------------------------------------------------------


def _same(p: Patterns, v: Value) -> Any:
    """Views and identities."""
    if v.op.name == "get":
        return [(p.found[v.operands[0]] or [])[v.attrs["index"]]]
    same = isinstance(v.op.lowering, View) or v.op.derivative is IDENTITY
    return [p.first(v.operands[0])] if same else NotImplemented


def _elementwise(p: Patterns, v: Value) -> Any:
    """Element by element, without those that a known number multiplies by zero."""
    if "elementwise" not in v.op.traits:
        return NotImplemented
    moving = [k for k, o in enumerate(v.operands) if p.found[o] is not None]
    rest = [p.known(o) if k not in moving else None for k, o in enumerate(v.operands)]
    scaled = any(a is not None for a in rest) and len(rest) - len(moving) == sum(a is not None for a in rest)
    parts = []
    for k in moving:
        part = p.first(v.operands[k])
        parts.append(_scaled(v, k, rest, part) if scaled else part)
    return [p.together(parts)]


def _scaled(v: Value, k: int, rest: Sequence[np.ndarray | None], part: Pattern) -> Pattern:
    """The rows of a pattern where operand ``k`` has a factor: the value of a linear function at one is its factor."""
    arrays = [np.full(shape_of(o), j == k, o.dtype) if a is None else a
              for j, (o, a) in enumerate(zip(v.operands, rest, strict=True))]
    with np.errstate(all="ignore"):
        factor = np.asarray(v.op.reference(*arrays, **v.attrs.concrete({})))
    if np.all(factor != 0):
        return part
    kept = np.flatnonzero(factor.ravel() != 0)
    return met(v, kept, kept, factor.size, part)


def _picked(p: Patterns, v: Value) -> Any:
    """Elements of the first operands at places that are known: the op itself moves their numbers."""
    update = isinstance(v.op.lowering, Update) and v.op.lowering.kind(v) == "set"
    number = 2 if update else picks(v.op) if isinstance(v.op.derivative, Linear) else 0
    fixed = [p.known(o) for o in v.operands[number:]]
    if not number or any(a is None for a in fixed) or any(map(_symbolic, v.attrs.values())):
        return NotImplemented
    ids, start, ends = [], 0, []
    for o in v.operands[:number]:
        n = count(o)
        moves = p.found[o] is not None
        ids.append(np.arange(start, start + n).reshape(shape_of(o)) if moves
                   else np.full(shape_of(o), -1, np.int64))
        start += n
        ends.append(start)
    out = np.asarray(v.op.reference(*ids, *fixed, **v.attrs.concrete({}))).ravel()
    parts = []
    for o, end in zip(v.operands, ends, strict=False):
        part, begin = p.first(o), end - count(o)
        if part is not None:
            rows = np.flatnonzero((out >= begin) & (out < end))
            parts.append(met(v, rows, out[rows] - begin, out.size, part))
    return [p.together(parts)]


def _symbolic(item: Any) -> bool:
    """True if an attribute has a size that is data: elements are picked at places that are not known."""
    return isinstance(item, Dim) or isinstance(item, tuple) and any(isinstance(s, Dim) for s in item)


# --- elements together ------------------------------------------------------------------------------------------------


def _grouped(v: Value, part: Pattern, shape: Sequence[int], axes: Sequence[int], out: Sequence[int],
             kept: Sequence[int]) -> Pattern:
    """Every element of the result depends on all elements of an operand with the same index along the axes that
    correspond: ``axes`` of the operand, of this ``shape``, and ``kept`` of the result, of shape ``out``."""
    groups = [shape[a] for a in axes]
    number = prod(groups)

    def group(whole: Sequence[int], which: Sequence[int]) -> np.ndarray:
        places = np.arange(number).reshape(groups) if groups else np.zeros((), np.int64)
        order = np.argsort(np.array(which, np.int64))
        widened = np.transpose(places, order).reshape([s if a in which else 1 for a, s in enumerate(whole)])
        return np.broadcast_to(widened, whole).ravel()

    inside, outside = group(shape, axes), group(out, kept)
    union = met(v, inside, np.arange(inside.size), number, part)
    return met(v, np.arange(outside.size), outside, outside.size, union)


def _folded(p: Patterns, v: Value) -> Any:
    """A reduction: all elements along the axes that the result does not have."""
    if not isinstance(v.op.lowering, Fold):
        return NotImplemented
    (x,) = v.operands
    rest = [a for a in range(x.ndim) if a not in v.attrs["axes"]]
    return [_grouped(v, p.first(x), shape_of(x), rest, shape_of(v), range(v.ndim))]


def _running(p: Patterns, v: Value) -> Any:
    """All elements before along an axis, and the element itself."""
    if not isinstance(v.op.lowering, Running) or any(o.shape != v.shape for o in v.operands):
        return NotImplemented
    axis, n = v.attrs["axis"], v.shape[v.attrs["axis"]]
    if n * count(v) > MOST:
        return NotImplemented
    places = np.moveaxis(np.arange(count(v)).reshape(shape_of(v)), axis, 0).reshape(n, count(v) // max(n, 1))
    late, early = np.nonzero(np.tri(n, dtype=np.bool_).T if v.attrs["reverse"] else np.tri(n, dtype=np.bool_))
    rows, columns = places[late].ravel(), places[early].ravel()
    return [p.together([met(v, rows, columns, count(v), q) for q in map(p.first, v.operands) if q is not None])]


def _product(p: Patterns, v: Value) -> Any:
    """Sums of products: with what is known, where that is not zero."""
    if v.op.facts.meets is None:
        return NotImplemented
    parts: list[Pattern | None] = []
    for k, x in enumerate(v.operands):
        part = p.first(x)
        if part is None:
            continue
        other = p.known(v.operands[1 - k])
        axes, kept = v.op.facts.meets(v, k)
        if other is None or np.all(other) or np.count_nonzero(other) * count(x) > MOST:
            parts.append(_grouped(v, part, shape_of(x), axes, shape_of(v), kept))
        else:
            rows, columns = v.op.facts.meets(v, k, np.nonzero(other))
            parts.append(met(v, rows, columns, count(v), part))
    return [p.together(parts)]


# --- by other graphs --------------------------------------------------------------------------------------------------


def _expanded(p: Patterns, v: Value) -> Any:
    """The ops that an op is made of."""
    by = v.op.facts.lower_batched
    found: Any = None if by is None else by(v)
    if found is None and isinstance(v.op.lowering, Decompose):
        found = v.op.lowering.f(v)
    if found is None or found is v:
        return NotImplemented
    return p.of(found if isinstance(found, list) else [found])


def _adjoint(p: Patterns, v: Value) -> Any:
    """The pattern of the transpose, transposed: of updates, whose transposes are reads."""
    if p.transposed or not isinstance(v.op.lowering, Update):
        return NotImplemented
    derivative: Any = v.op.derivative
    seed = fresh_input(v.type)
    back = (derivative.transpose if isinstance(derivative, Linear) else derivative.vjp)(seed, v)
    known = {o: a for o in v.operands if (a := p.known(o)) is not None}
    inner = Patterns({seed: [every(count(v))], **{o: None for o in v.operands}}, known, count(v), transposed=True)
    moving = [(o, c) for o, c in zip(v.operands, back, strict=True) if c is not None and p.found[o] is not None]
    rows = inner.of([c for _, c in moving])
    return [p.together([q.T.tocsr() @ p.first(o) for (o, _), q in zip(moving, rows, strict=True) if q is not None])]


def _body(p: Patterns, region: Region, operands: Sequence[Value], params: Mapping[int, Found | None],
          numbers: Mapping[int, np.ndarray]) -> Patterns:
    """The values of a region; ``operands``: what its params stand for, but for those in ``params``."""
    leaves = region_params(region)
    given = {x: params[k] if k in params else p.found[operands[k]] for k, x in enumerate(leaves)}
    known = {x: numbers[k] if k in params else p.known(operands[k]) for k, x in enumerate(leaves)
             if k not in params or k in numbers}
    return Patterns(given, {x: a for x, a in known.items() if a is not None}, p.width)


def _regions(p: Patterns, v: Value) -> Any:
    """Blocks and branches: what any of them depends on."""
    regions = v.regions[:1] if "inline" in v.op.traits else v.regions
    if not regions or "length" in v.attrs or "max_steps" in v.attrs:
        return NotImplemented
    operands = v.operands[len(v.operands) - len(regions[0].params):]
    found = [_body(p, r, operands, {}, {}).of(r.results) for r in regions]
    return [p.together(parts) for parts in zip(*found, strict=True)]


def _loop(p: Patterns, v: Value) -> Any:
    """A loop of few steps, one after another."""
    if "length" not in v.attrs or v.attrs["length"] * len(v.regions[0].values) > STEPS:
        return NotImplemented
    carries, xs, body = v.attrs["carry"], v.attrs["xs"], v.regions[0]
    state: dict[int, Found | None] = {k: p.found[v.operands[k]] for k in range(carries)}
    numbers = {k: a for k in range(carries + xs) if (a := p.known(v.operands[k])) is not None}
    steps = range(v.attrs["length"])
    stacks: list[dict[int, Pattern]] = []
    for t in reversed(steps) if v.attrs["reverse"] else steps:
        rows = {k: _row(p, v.operands[k], t) for k in range(carries, carries + xs)}
        now = {k: a[t] if k >= carries else a for k, a in numbers.items()}
        inner = _body(p, body, v.operands, {**state, **rows}, now)
        out = inner.of(body.results)
        state = {k: None if out[k] is None else [out[k]] for k in range(carries)}
        new = {k: inner.known(r) for k, r in enumerate(body.results[:carries])}
        numbers = {k: a for k, a in {**numbers, **new}.items() if a is not None}
        stacks.append({k: p.filled(q, count(r)) for k, (q, r) in enumerate(zip(out, body.results, strict=True))})
    return [*[None if q is None else q[0] for q in state.values()], *_stacked(p, v, stacks)]


def _row(p: Patterns, x: Value, t: int) -> Found | None:
    """The pattern of ``x[t]``."""
    whole, n = p.first(x), prod(x.shape[1:])
    return None if whole is None else [whole[t * n:(t + 1) * n]]


def _stacked(p: Patterns, v: Value, stacks: list[dict[int, Pattern]]) -> list[Pattern]:
    from scipy.sparse import vstack

    ordered = stacks[::-1] if v.attrs["reverse"] else stacks
    types = v.types
    return [vstack([s[k] for s in ordered], format="csr") if ordered else empty(count(v, types[k]), p.width)
            for k in range(v.attrs["carry"], len(types))]


def _mixed(p: Patterns, v: Value) -> Found:
    """Nothing is stated: all elements, but for axes along which an op does the same for every index."""
    out = []
    for t in v.types:
        count(v, t)
        parts = []
        for o in v.operands:
            for part, type_ in zip(p.found[o] or [], o.types, strict=False):
                if part is not None:
                    count(o, type_)
                    kept = _unmixed(v, type_, t)
                    parts.append(_grouped(v, part, shape_of(type_), kept, shape_of(t), kept))
        out.append(p.together(parts))
    return out


def _unmixed(v: Value, operand: TensorType, result: TensorType) -> list[int]:
    """The axes along which elements of an operand and a result with another index do not meet."""
    shape, out = operand.shape, result.shape
    if isinstance(v.attrs.get("axis"), int) and len(shape) == len(out) and not v.regions:
        axes = [a for a in range(len(out)) if a != v.attrs["axis"]]
    elif v.op.traits & {"factorization", "linear_solve"}:
        axes = list(range(min(len(shape), len(out)) - 2))
    else:
        axes = []
    return axes if all(shape[a] == out[a] for a in axes) else []


RULES: tuple[Callable[[Patterns, Value], Any], ...] = (
    _same, _elementwise, _picked, _folded, _running, _product, _expanded, _adjoint, _loop, _regions)
