"""Small loops become one kernel: a `scan` or `while` on a few numbers is a `loop` of scalar expressions.

Every value of the body is taken apart into its elements, which must be few and known by their place: elementwise ops,
movements, reductions and products of small arrays of known shape. Rows are loaded at the index of the step, elements of
a constant table where they are looked up. What does not fit stays a step of the plan with a body of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from symc.ir.attrs import Attrs
from symc.ir.bodies import is_free, is_loop_or_branch
from symc.ir.dim import known_nonnegative
from symc.ir.function import Function
from symc.ir.location import NOWHERE
from symc.ir.op import Element, Fold, View, lookup
from symc.ir.ops.cast import cast
from symc.ir.ops.control import cond, scan, while_
from symc.ir.ops.kernel import fused, load, results_of
from symc.ir.ops.leaf import constant, get, input_, scalar, size
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.loop import INDEX, loop, pack
from symc.ir.ops.reduce import gives_place
from symc.ir.ops.remat import again
from symc.ir.reference import run_values
from symc.ir.requires import required
from symc.ir.traverse import close_over, dependent, postorder, rebuild, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input, make
from symc.opt.engine.pass_registry import standard_pass

#: Compile time grows faster than the number of scalar operations.
MOST_OPERATIONS = 256
#: Elements of one value inside a body.
MOST_ELEMENTS = 32

Scalars = list[Value]
#: Constants of which a kernel looks up elements, and the leaves that stand for them in it.
Tables = dict[Value, Value]


class TooLarge(Exception):
    """The loop is not small: it keeps its own step."""


@standard_pass(
    after=("check_indices",),
    why="check_indices looks at ordinary ops; what is made here is a kernel",
    records=False, on=("scan", "while"), bodies="outer", reasons="of_small_loops", makes=("loop",), for_kernels=True,
)
def small_loops(f: Function) -> Function:
    """Loops on a few numbers become one kernel each."""
    done: dict[Value, Value] = {}
    hints = dict(f.hints)
    for v in f.values():
        new = rebuild(v, [done[o] for o in v.operands])
        if v.op in (scan, while_):
            region = kernel_of(v)
            if region is not None:
                found, tables = region
                new = fused(*[o for o in new.operands if not is_free(o)], *tables, regions=(found,))
                hints[new] = f.hints.get(v, NOWHERE).union(*f.inside.get(v.regions[-1], {}).values())
        done[v] = new
    results = [done[r] for r in f.body.results]
    return f if results == list(f.body.results) else f.with_results(results, hints)


def kernel_of(v: Value) -> tuple[Region, list[Value]] | None:
    """The region of a kernel that is the whole loop ``v``, over its operands that are not free and constant tables,
    which it gives as well; None if not small."""
    leaves = [fresh_input(o.type) for o in v.operands if not is_free(o)]
    waiting = iter(leaves)
    tables: Tables = {}
    try:
        operands = [_Free(o, tables) if is_free(o) else _Array(next(waiting)) for o in v.operands]
        made = _loop(v, operands, tables)
        results = [pack(*scalars, shape=t.shape) if t.shape != scalars[0].shape else scalars[0]
                   for scalars, t in zip(made, [r.type for r in results_of(v)], strict=True)]
    except TooLarge:
        return None
    if _operations(results) > MOST_OPERATIONS:
        return None
    return close_over([*leaves, *tables.values()], results), list(tables)


def _operations(results: Sequence[Value]) -> int:
    """The number of scalar operations of a kernel, loops inside included."""
    count, pending = 0, [list(results)]
    while pending:
        for v in postorder(pending.pop()):
            count += bool(v.operands)
            pending.extend(list(r.results) for r in v.regions)
    return count


# --- elements ---------------------------------------------------------------------------------------------------------


class _Array:
    """An operand in memory (of which ``index`` says the first axes): its elements are loaded where they are used."""

    def __init__(self, array: Value, *index: Value):
        self.array, self.index = array, index

    def at(self, index: Sequence[Value]) -> Value:
        return load(self.array, *self.index, *index)

    @property
    def shape(self) -> tuple:
        return self.array.shape[len(self.index):]


class _Known:
    """A value taken apart: its elements in row-major order."""

    def __init__(self, scalars: Scalars, shape: tuple):
        self.scalars, self.shape = scalars, shape

    def at(self, index: Sequence[Value]) -> Value:
        place = 0
        for i, n in zip(index, self.shape, strict=True):
            k = _number(i)
            if k is None:
                raise TooLarge
            place = place * n + min(max(k, 0), n - 1)  # a choice may ask for what it does not take
        return self.scalars[place]


class _Free:
    """A number, an index along an axis, or one repeated: its elements are formulas of their place. Those of constant
    data are elements of one of ``tables``, where their place is not known."""

    def __init__(self, v: Value, tables: Tables, *index: Value):
        self.v, self.tables, self.index = v, tables, index

    def at(self, index: Sequence[Value]) -> Value:
        return _formula(self.v, [*self.index, *index], self.tables)

    @property
    def shape(self) -> tuple:
        return self.v.shape[len(self.index):]


def _formula(v: Value, index: Sequence[Value], tables: Tables) -> Value:
    if not v.shape:
        return v
    form = v.op.lowering
    if v.data is not None:
        return _constant(v, v.data, index, tables)
    if not isinstance(form, Element) or form.f is None:
        raise TooLarge
    return form.f(v, list(index), lambda k, at: _formula(v.operands[k], at, tables))


def _constant(v: Value, data: np.ndarray, index: Sequence[Value], tables: Tables) -> Value:
    """An element of constant data: a number where the place is known, of numbers at equal distances a formula, else
    what lies there."""
    places = [_number(i) for i in index]
    if None not in places:
        return scalar(data[tuple(places)], data.dtype)
    if data.ndim == 1 and data.dtype.kind in "iu":
        first, step = int(data[0]), int(data[min(1, data.size - 1)]) - int(data[0])
        if max(abs(first), abs(step)) < 2**62 and np.all(np.diff(data.astype(np.int64)) == step):
            return cast(index[0] * step + first, dtype=data.dtype)
    if v not in tables:
        tables[v] = fresh_input(v.type)
    return load(tables[v], *index)


Elements = _Array | _Known | _Free


def _number(v: Value) -> int | None:
    """An index that is known."""
    return int(run_values([v], {}, {})[0]) if _is_known(v) else None


def _is_known(v: Value) -> bool:
    """A number made of numbers alone."""
    leaves = [x for x in postorder([v]) if not x.operands]
    return all(x.op is constant or (x.op is size and isinstance(x.attrs["value"], int)) for x in leaves)


def _scalars(x: Elements) -> Scalars:
    if isinstance(x, _Known):
        return x.scalars
    return [x.at([scalar(i, "i64") for i in index]) for index in _places(x.shape)]


def _places(shape: Sequence) -> list[tuple[int, ...]]:
    if any(not isinstance(n, int) for n in shape) or math.prod(shape) > MOST_ELEMENTS or 0 in shape:
        raise TooLarge
    return list(itertools.product(*map(range, shape)))


class _Body:
    """A region taken apart, given what its params are."""

    def __init__(self, region: Region, params: Sequence[Elements], tables: Tables):
        self.tables = tables
        self.known: dict[Value, Elements] = dict(zip(region_params(region), params, strict=True))
        self.made: dict[Value, list[Scalars]] = {}
        for v in postorder(region.results):
            if is_free(v):
                self.known[v] = _Free(v, tables)
            elif v not in self.known and v.op is not get and v not in self.made:
                self._take_apart(v)
            elif v.op is get:
                self.known[v] = _Known(self.made[v.operands[0]][v.attrs["index"]], v.shape)
        self.results = [_scalars(self.known[r]) for r in region.results]

    def _take_apart(self, v: Value) -> None:
        if v.op in (scan, while_) or v.op is cond:
            self.made[v] = self._nested(v)
            if len(self.made[v]) == 1 and isinstance(v.type, TensorType):
                self.known[v] = _Known(self.made[v][0], v.shape)
            return
        held = v.op.traits & {"effect", "barrier"} and v.op is not again  # scalars take no memory to wait in
        if not isinstance(v.type, TensorType) or v.dtype.kind == "c" or held:
            raise TooLarge
        self.known[v] = _Known(self._scalars_of(v), v.shape)

    def _scalars_of(self, v: Value) -> Scalars:
        places = _places(v.shape)
        operands = [self.known[o] for o in v.operands]
        form = v.op.lowering
        if isinstance(form, View):
            return _scalars(operands[0])
        if isinstance(form, Fold):
            return self._fold(v, form, operands[0])
        if v.op is dot:
            return self._dot(v, *operands)
        if "searches" in v.op.traits and not isinstance(operands[0], _Array):
            raise TooLarge
        if isinstance(form, Element) or v.op.facts.element is not None:
            f = form.f if isinstance(form, Element) else v.op.facts.element
            if f is None:
                flat = [_scalars(o) for o in operands]
                return [make(v.op, parts, v.attrs) for parts in zip(*flat, strict=True)] if flat else [v]
            if "checks" not in v.op.traits and any(not known_nonnegative(r.margin) for r in required(v)):
                raise TooLarge  # a kernel that is a loop loads what it is told to load
            return [_decided(f(v, [scalar(i, "i64") for i in place], lambda k, at: operands[k].at(at)))
                    for place in places]
        raise TooLarge

    def _fold(self, v: Value, form: Fold, x: Elements) -> Scalars:
        if gives_place(form.kind):
            raise TooLarge
        axes = v.attrs["axes"]
        sums: dict[tuple[int, ...], Value] = {}
        combine = lookup(form.kind)
        for place, element in zip(_places(x.shape), _scalars(x), strict=True):
            kept = tuple(i for a, i in enumerate(place) if a not in axes)
            sums[kept] = combine(sums[kept], element) if kept in sums else element
        return [sums[p] for p in _places(v.shape)]

    def _dot(self, v: Value, a: Elements, b: Elements) -> Scalars:
        """Sums of products, term by term."""
        if v.dtype.kind == "b":
            raise TooLarge
        (ca, cb), (ba, bb) = v.attrs["contract"], v.attrs["batch"]
        terms = _places([a.shape[k] for k in ca])
        fa, fb = free_axes(v.operands[0], ca, ba), free_axes(v.operands[1], cb, bb)
        out: Scalars = []
        for place in _places(v.shape):
            batch, left, right = place[: len(ba)], place[len(ba) : len(ba) + len(fa)], place[len(ba) + len(fa) :]
            total: Value | None = None
            for term in terms:
                x = a.at(_index(len(a.shape), (ba, batch), (fa, left), (ca, term)))
                y = b.at(_index(len(b.shape), (bb, batch), (fb, right), (cb, term)))
                total = x * y if total is None else total + x * y
            if total is None or len(out) * len(terms) > MOST_OPERATIONS:
                raise TooLarge
            out.append(total)
        return out

    def _nested(self, v: Value) -> list[Scalars]:
        operands = [self.known[o] for o in v.operands]
        if v.op is scan and len(v.regions[0].results) > v.attrs["carry"]:
            return _unrolled(v, operands, self.tables)  # a loop inside a loop has no memory for what every step makes
        if v.op is not cond:
            return _loop(v, operands, self.tables)
        if any(is_loop_or_branch(x) for r in v.regions for x in postorder(r.results)):
            raise TooLarge  # a branch that is not taken must not run a loop
        which = _scalars(operands[0])[0]
        branches = [_Body(r, operands[1:], self.tables).results for r in v.regions]
        out: list[Scalars] = branches[-1]
        for k in reversed(range(len(branches) - 1)):
            take = which if which.dtype == np.dtype(bool) else lookup("le")(which, k)
            out = [[lookup("where")(take, x, y) for x, y in zip(xs, ys, strict=True)]
                   for xs, ys in zip(branches[k], out, strict=True)]
        return out


def _index(rank: int, *parts: tuple[Sequence[int], Sequence[int]]) -> list[Value]:
    index = [0] * rank
    for axes, place in parts:
        for a, i in zip(axes, place, strict=True):
            index[a] = i
    return [scalar(i, "i64") for i in index]


def _decided(v: Value) -> Value:
    """A choice whose condition is known is what it chooses."""
    while v.op.name == "where" and _is_known(v.operands[0]):
        v = v.operands[1] if bool(run_values([v.operands[0]], {}, {})[0]) else v.operands[2]
    return v


# --- loops ------------------------------------------------------------------------------------------------------------


def _loop(v: Value, operands: Sequence[Elements], tables: Tables) -> list[Scalars]:
    """The results of a loop, each as its elements: of a y, the values of one element in all steps."""
    n, xs = v.attrs["carry"], v.attrs.get("xs", 0)
    starts = [_scalars(o) for o in operands[:n]]
    index = fresh_input(INDEX)
    state = [[fresh_input(s.type) for s in start] for start in starts]
    carries: list[Elements] = [_Known(s, o.shape) for s, o in zip(state, operands[:n], strict=True)]
    rows = [_row(o, index) for o in operands[n : n + xs]]
    params = [*carries, *rows, *operands[n + xs :]]
    flat = [s for start in starts for s in start]
    leaves = [index, *[s for group in state for s in group]]
    body = _Body(v.regions[-1], params, tables).results
    if v.op is while_:
        test = _Body(v.regions[0], params, tables).results[0]
        return _made(v, flat, leaves, [body, [test]], [len(s) for s in starts])
    return _made(v, flat, leaves, [body], [len(s) for s in starts] + [len(y) for y in body[n:]])


def _unrolled(v: Value, operands: Sequence[Elements], tables: Tables) -> list[Scalars]:
    """The results of a short scan, step after step."""
    n, xs, length = v.attrs["carry"], v.attrs["xs"], v.attrs["length"]
    if not isinstance(length, int) or not 0 < length <= MOST_ELEMENTS:
        raise TooLarge
    state: list[Elements] = list(operands[:n])
    steps: list[list[Scalars]] = []
    for t in reversed(range(length)) if v.attrs["reverse"] else range(length):
        rows = [_row(o, scalar(t, "i64")) for o in operands[n : n + xs]]
        made = _Body(v.regions[0], [*state, *rows, *operands[n + xs :]], tables).results
        state = [_Known(x, o.shape) for x, o in zip(made[:n], operands[:n], strict=True)]
        steps.append(made[n:])
    in_order = reversed(steps) if v.attrs["reverse"] else steps
    stacks = [[x for row in rows for x in row] for rows in zip(*in_order, strict=True)]
    return [*[_scalars(x) for x in state], *stacks]


def _row(x: Elements, index: Value) -> Elements:
    if isinstance(x, _Array):
        return _Array(x.array, *x.index, index)
    if isinstance(x, _Free):
        return _Free(x.v, x.tables, *x.index, index)
    t = _number(index)
    if t is None:
        raise TooLarge
    width = len(x.scalars) // x.shape[0]
    return _Known(x.scalars[t * width : (t + 1) * width], x.shape[1:])


def _made(v: Value, starts: Scalars, leaves: Sequence[Value], parts: Sequence[list[Scalars]],
          widths: Sequence[int]) -> list[Scalars]:
    """The `loop`: its regions are closed over what depends on the index or a carry."""
    flat = [[s for group in part for s in group] for part in parts]
    captured: dict[Value, None] = {}
    for results in flat:
        captured.update(dict.fromkeys(_outside(leaves, results)))
    regions = [close_over([*leaves, *captured], results) for results in flat]
    attrs = {"carry": len(starts), "length": v.attrs.get("length"), "max_steps": v.attrs.get("max_steps"),
             "reverse": v.attrs.get("reverse", False)}
    made = iter(results_of(make(loop, [*starts, *captured], Attrs(attrs), regions)))
    out = [[next(made) for _ in range(w)] for w in widths]
    return [*out, [next(made)]] if v.op is while_ else out


def _outside(leaves: Sequence[Value], results: Sequence[Value]) -> list[Value]:
    """Values that the body of a loop uses and that do not depend on its step: computed before it."""
    values = postorder(results, stop=set(leaves).__contains__)
    depends = dependent(values, leaves)
    used = {o for v in values if v in depends and v not in leaves for o in v.operands} | set(results)
    return [v for v in values if v in used and v not in depends and (v.operands or v.op is input_)]


