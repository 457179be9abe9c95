"""From a fused region to loops over scalars: `generate` and `fold`, still IR, still with a reference.

Every scalar lives in the outermost loop in which its operands are known: regions are closed over what depends on their
index, and everything else is computed outside and captured. Row statistics (max, sum, mean) are hoisted that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from symc.codegen.kernel.contraction import with_rounded_products
from symc.codegen.plan.costs import FUNCTION, of_element
from symc.codegen.plan.inplace import region_pairs
from symc.ir.attrs import Attrs
from symc.ir.dim import Size
from symc.ir.op import Element, Fold, PackedConcat, Running, Sorting, Update, make, splat
from symc.ir.ops.index import index_operands
from symc.ir.ops.kernel import fold, generate, load, projection, results_of
from symc.ir.ops.leaf import constant, size
from symc.ir.ops.reduce import gives_place, identity
from symc.ir.ops.store import insert, insert_place, is_epilogue, space_of, store, store_packed, store_running
from symc.ir.record import dataclass, field
from symc.ir.traverse import close_over, dependent, postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input
from symc.opt.fusion.column_folds import column_folds

Shape = tuple[Size, ...]
Index = tuple[Value, ...]
_INDEX = TensorType("i64", ())


@dataclass(frozen=True)
class Loops:
    """A kernel as loops. ``region`` has the params and results of the fused region; each result is a scalar or comes
    from a `generate`. ``columns``: the generate's last axis should run innermost, around which folds accumulate.
    ``starts``: what results that are updated hold before: result number -> an operand's number, or a region that
    makes it.
    """

    region: Region
    columns: bool
    starts: dict[int, int | Region] = field(default_factory=dict)


def scalarize(region: Region, by_rows: bool = False) -> Loops:
    """The loops of a fused region. ``by_rows``: what says which rows are read is computed outside of a loop over a
    row, and each place of an extreme is found by a fold of its own."""
    return _Scalarizer(with_rounded_products(region), by_rows).run()


class _Scalarizer:
    def __init__(self, region: Region, by_rows: bool):
        self.region, self.by_rows = region, by_rows
        self.arrays = {p: fresh_input(p.type) for p in region_params(region)}
        self.column_folds = column_folds(region)
        folds = [v for v in postorder(region.results) if isinstance(v.op.lowering, Fold)]
        self.folds = [v for v in folds if v not in self.column_folds]
        self.memo: dict[tuple[Value, Index], Value] = {}
        self.hosts: set[int] = set()  # results whose rows hold what is kept
        self.rowwise: list[Value] = []  # loops that write rows of results: once a row, also if rows are equal
        self.rows: set[Value] = set()  # what is kept
        space = folds[0].operands[0].shape if folds else space_of(region.results[0])
        axes = self.folds[0].attrs["axes"] if self.folds else self._axes_of_rows(len(space)) if by_rows else ()
        self.space: Shape = space
        leaves = [fresh_input(_INDEX) for _ in space]
        self.full: Index = tuple(leaves)
        self.inner: Index = tuple(i for a, i in enumerate(leaves) if a in axes)
        self.outer: Index = tuple(i for a, i in enumerate(leaves) if a not in axes)
        self.inner_shape: Shape = tuple(s for a, s in enumerate(space) if a in axes)
        self.outer_shape: Shape = tuple(s for a, s in enumerate(space) if a not in axes)
        last = len(space) - 1
        self.columns = bool(self.folds) and bool(self.outer) and last not in axes

    def _axes_of_rows(self, rank: int) -> tuple[int, ...]:
        """The last axes, along which places that are computed here do not vary."""
        results = self.region.results
        if self.column_folds or any(is_epilogue(r) or r.ndim < rank for r in results):
            return ()
        depths = [v.operands[1].ndim for v in postorder(results) if index_operands(v)
                  and v.ndim == rank and v.operands[1] not in self.arrays]
        return tuple(range(max(depths, default=rank), rank))

    def run(self) -> Loops:
        levels = self._fold_levels()
        for k, level in enumerate(levels):
            self._make_folds(level, [v.operands[0] for folds in levels[k + 1 :] for v in folds])
        results = self.region.results
        full = [r for r in results if self._is_full(r)]
        if self.column_folds or any(is_epilogue(r) for r in results):
            return self._ends()
        rows = [None if self._is_full(r) else self.element(r, self.outer) for r in results]
        if not self.inner:  # what is folded over no axes is at the same index
            yields = [self.element(r, self.full) for r in results]
        elif full:
            inner = self._loop(generate, self.inner, [self.element(r, self.full) for r in full], shape=self.inner_shape)
            self.rowwise.append(inner)
            made = iter(results_of(inner))
            yields = [next(made) if r is None else r for r in rows]
        else:
            yields = [r for r in rows if r is not None]
        if self.outer:
            yields = results_of(self._loop(generate, self.outer, yields, self.rowwise, shape=self.outer_shape))
        return Loops(close_over(list(self.arrays.values()), yields), self.columns)

    def _is_remade(self, v: Value) -> bool:
        """True if an element is made of its operands' at the same index, each time it is needed."""
        return _same_index(v) and v not in self.rows

    def _is_full(self, r: Value) -> bool:
        return not isinstance(r.op.lowering, Fold) and r.ndim == len(self.space)

    # -- updates, running sums, sorting

    def _ends(self) -> Loops:
        """Loops whose results are put: one axis in another, so that places are computed as far out as they can be."""
        made: dict[int, Value] = {}
        rows: dict[int, Value] = {}
        for k, r in enumerate(self.region.results):
            if r in self.column_folds or is_epilogue(r):
                made[k] = self._column_fold(r) if r in self.column_folds else self._epilogue(r)
            elif self._is_full(r):
                made[k] = self.element(r, self.full)
            else:
                rows[k] = self.element(r, self.outer)
        for a in reversed(range(len(self.space))):
            if self.folds and a == len(self.outer) - 1:
                made.update(rows)
            if made:
                axis, shape = self.full[a : a + 1], self.space[a : a + 1]
                loop = self._loop(generate, axis, list(made.values()), [projection(r)[0] for r in made.values()],
                                  shape=shape)
                made = dict(zip(made, results_of(loop), strict=True))
        made.update(rows if self.folds and not self.outer else {})
        yields = [made[k] for k in range(len(self.region.results))]
        params = list(region_params(self.region))
        starts: dict[int, int | Region] = {}
        for k, r in enumerate(self.region.results):
            if isinstance(r.op.lowering, Update):
                before = r.operands[0]
                starts[k] = params.index(before) if before in self.arrays else self._filled(before)
            elif r in self.column_folds:
                starts[k] = self._filled(splat(identity(r.op.lowering.kind, r.dtype), r.type))  # type: ignore[union-attr]
        return Loops(close_over(list(self.arrays.values()), yields), False, starts)

    def _filled(self, v: Value) -> Region:
        """Loops that compute all of ``v``."""
        index = tuple(fresh_input(_INDEX) for _ in v.shape)
        found = self.element(v, index)
        whole = self._loop(generate, index, [found], shape=v.shape) if index else found
        return close_over(list(self.arrays.values()), [whole])

    def _column_fold(self, r: Value) -> Value:
        """An element of what is folded, combined with the result."""
        place = [i for a, i in enumerate(self.full) if a not in r.attrs["axes"]]
        found = self.element(r.operands[0], self.full)
        return store(found, *place, shape=r.shape, kind=r.op.lowering.kind)  # type: ignore[union-attr]

    def _epilogue(self, r: Value) -> Value:
        form = r.op.lowering
        if isinstance(form, Update):
            def at(k: int, index: Sequence[Value]) -> Value:
                return self.element(r.operands[k], tuple(index))

            place = form.place(r, list(self.full), at)
            return store(at(1, self.full), *place, shape=r.shape, kind=form.kind(r))
        if isinstance(form, PackedConcat):
            values = [self.element(o, self.full) for o in r.operands]
            return store_packed(*values, *self.full, shape=r.operands[0].shape, axis=r.attrs["axis"])
        if isinstance(form, Sorting):
            axis = r.attrs["axis"]
            first = self.arrays[r.operands[0]] if form.places else self.element(r.operands[0], self.full)
            op = insert_place if form.places else insert
            return op(first, self.full[axis], *self.full, shape=r.shape, axis=axis)
        assert isinstance(form, Running)
        axis, reverse = r.attrs["axis"], r.attrs["reverse"]
        index = list(self.full)
        if reverse:
            index[axis] = size(value=r.shape[axis] - 1) - index[axis]
        values = [self.element(o, tuple(index)) for o in r.operands]
        return store_running(*values, self.full[axis], *index, shape=r.shape, kind=form.kind, axis=axis,
                             reverse=reverse)

    # -- folds

    def _fold_levels(self) -> list[list[Value]]:
        """Folds that do not depend on each other share a loop, but for places by rows: those are found in parts."""
        depth: dict[Value, int] = {}
        for v in postorder(self.region.results):
            depth[v] = max((depth[o] for o in v.operands), default=0) + (v in self.folds)
        levels: dict[tuple[int, int], list[Value]] = {}
        for k, v in enumerate(self.folds):
            alone = k + 1 if self.by_rows and gives_place(v.op.lowering.kind) else 0  # type: ignore[union-attr,arg-type]
            levels.setdefault((depth[v], alone), []).append(v)
        return [levels[d] for d in sorted(levels)]

    def _make_folds(self, folds: list[Value], later: Sequence[Value]) -> None:
        """One loop. ``later``: what is folded in later loops."""
        kept = self._kept([v.operands[0] for v in folds], later)
        elements = [self.element(v, self.full) for v in (*(v.operands[0] for v in folds), *kept.values())]
        kinds = tuple(v.op.lowering.kind for v in folds)  # type: ignore[union-attr]
        keeps: dict[str, Any] = {"keeps": tuple(kept)} if kept else {}
        loop = self._loop(fold, self.inner, elements, shape=self.inner_shape, kinds=kinds, **keeps)
        made = results_of(loop)
        if kept:  # what was made of them is made of the rows from now on
            self.rowwise.append(loop)
            self.memo = {(v, i): x for (v, i), x in self.memo.items() if i != self.full or v in self.rows}
        for v, result in zip(folds, made):
            self.memo[v, self.outer] = result
        for v, row in zip(kept.values(), made[len(folds) :], strict=True):
            self.memo[v, self.full] = load(row, *self.inner)
            self.rows.add(v)

    def _kept(self, now: Sequence[Value], later: Sequence[Value]) -> dict[int, Value]:
        """Values that a loop keeps for later ones, by the result in whose memory."""
        results = self.region.results
        full = {k: r for k, r in enumerate(results) if self._is_full(r)}
        if self.column_folds or not (self.outer and self.inner) or any(is_epilogue(r) for r in results):
            return {}
        found: dict[int, Value] = {}
        free = [k for k in hosts(self.region, full) if k not in self.hosts]
        for v in rows_to_cache(now, [*later, *full.values()], self._is_remade) if free else ():
            k = next((k for k in free if k not in found and full[k].dtype == v.dtype), None)
            if k is not None and v.shape == self.space:
                found[k] = v
        self.hosts.update(found)
        return found

    # -- loops

    def _loop(self, op, index: Index, results: Sequence[Value], each: Iterable[Value] = (), **attrs) -> Value:
        """``op`` over ``index`` with a region that holds what depends on it; the rest is captured. ``each``: what is
        made in every step, also if it does not: a put is more than its value."""
        values = postorder(results)
        depends = dependent(values, [*index, *(m for m in each if m.operands)])
        captured: dict[Value, None] = {}
        for v in values:
            if v in depends and v not in index:
                captured.update((o, None) for o in v.operands if o not in depends and not _repeatable(o))
        captured.update((r, None) for r in results if r not in depends and not _repeatable(r))
        region = close_over([*index, *captured], results)
        return make(op, list(captured), Attrs(attrs), [region])

    # -- scalars

    def element(self, v: Value, index: Index) -> Value:
        """The scalar of ``v`` at ``index``. Elementwise chains are walked with a stack, movements by recursion."""
        stack = [v]
        while stack:
            top = stack[-1]
            if (top, index) in self.memo:
                stack.pop()
                continue
            if _same_index(top):
                waiting = [o for o in top.operands if (o, index) not in self.memo]
                if waiting:
                    stack.extend(waiting)
                    continue
            self.memo[top, index] = self._compute(top, index)
            stack.pop()
        return self.memo[v, index]

    def _compute(self, v: Value, index: Index) -> Value:
        if v in self.arrays:
            return load(self.arrays[v], *index)
        if v.op is constant:
            return v
        if _same_index(v):
            return make(v.op, [self.memo[o, index] for o in v.operands], v.attrs)
        f = v.op.lowering.f if isinstance(v.op.lowering, Element) else v.op.facts.element
        assert f is not None
        return f(v, list(index), lambda k, at: self.element(v.operands[k], tuple(at)))


def _same_index(v: Value) -> bool:
    return isinstance(v.op.lowering, Element) and v.op.lowering.f is None


def _repeatable(v: Value) -> bool:
    """Constants and sizes are written where they are used."""
    return not v.operands and v.op.name != "input"


# --- cached rows ------------------------------------------------------------------------------------------------------
#
# Rows that a kernel keeps of one loop for a later one: softmax computes exp once, not for the sum and the result.
#
# Loops along a row compute what they need of its elements, each for itself. What is costly and is needed again is
# written into the row of a result on the way (a result that is written last, and until then is memory in the cache)
# and read back. A result that may lie in the memory of an operand is not used: the operand would be read too late.

#: Dtypes that are in memory what they are in a register.
DTYPES = "fdilqILQ"


def rows_to_cache(now: Sequence[Value], later: Sequence[Value], same_index: Callable[[Value], bool]) -> list[Value]:
    """Values that a loop for ``now`` computes and that loops for ``later`` need too: those nearest to the results, if
    it is worth it. ``same_index``: whether a value's element is made of its operands' elements at the same index."""
    here, after = _cone(now, same_index), _cone(later, same_index)
    found = []
    for v in here:
        if v in after and same_index(v) and v.dtype.char in DTYPES:
            wanted = v in later or any(v in u.operands for u in after if u not in here)
            if wanted and sum(of_element(u.op) for u in _cone([v], same_index) if same_index(u)) >= FUNCTION:
                found.append(v)
    return found


def hosts(region: Region, results: Iterable[int]) -> list[int]:
    """Results whose rows may be used before they are made."""
    taken = {r for _, r in region_pairs(region)}
    return [r for r in results if r not in taken]


def _cone(roots: Iterable[Value], same_index: Callable[[Value], bool]) -> dict[Value, None]:
    """The values whose elements are needed at one index for those of ``roots``, users first."""
    found: dict[Value, None] = {}
    pending = list(roots)
    while pending:
        v = pending.pop()
        if v not in found:
            found[v] = None
            if same_index(v):
                pending.extend(v.operands)
    return found
