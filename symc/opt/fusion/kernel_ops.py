"""Ops that kernels can compute, and how these read their operands: the facts that fusion decides by."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from symc.ir import bodies
from symc.ir.dim import known_nonnegative, product
from symc.ir.dtypes import is_foreign, is_narrow
from symc.ir.op import Element, Fold, Sorting, Update
from symc.ir.ops.cast import cast
from symc.ir.ops.index import index_operands
from symc.ir.ops.shape import reshape, slice_
from symc.ir.ops.store import is_epilogue, space_of
from symc.ir.traverse import users
from symc.ir.types import TupleType
from symc.ir.value import Value
from symc.opt.facts.bounds import indices_checked

#: A kernel chooses the operand of a concat element by element; with many operands a copy of each is better.
MAX_CONCAT = 8

#: The most ops that are computed for a row, and the most elements of a row that is too short for them: places of many
#: such rows are computed, and checked, several at a time. (Rows of 2: 1.3 times as long; of 64: 0.85.)
MOST_OPS, SHORT = 12, 4


def is_movement(v: Value) -> bool:
    """An op that only says where each element comes from."""
    return "movement" in v.op.traits and element_form(v) is not None


def element_form(v: Value) -> Element | None:
    """The form in which one element of ``v`` is computed, if it can be."""
    if isinstance(v.op.lowering, Element):
        return v.op.lowering
    if v.op.facts.element is not None and _same_places(v):
        return Element(v.op.facts.element)
    return None


def _same_places(v: Value) -> bool:
    """The index of an element is that in the operand, but for axes of one. What asserts sizes is checked before a call
    runs."""
    return "asserts" in v.op.traits or [s for s in v.shape if s != 1] == [s for s in v.operands[0].shape if s != 1]


def is_kernel_op(v: Value) -> bool:
    """True if generated kernels can compute ``v``."""
    kinds = set()
    for x in (v, *v.operands):
        if isinstance(x.type, TupleType):
            return False
        kinds.add(x.type.dtype.kind)
    if v.op.name == "concat" and len(v.operands) > MAX_CONCAT:
        return False
    if is_epilogue(v):
        return indices_checked(v) and _is_short(v)
    if "c" in kinds:
        return is_movement(v) or not {"complex_kernel", "indexing"}.isdisjoint(v.op.traits)
    return is_fold(v) or element_form(v) is not None


def is_fold(v: Value) -> bool:
    return isinstance(v.op.lowering, Fold)


def reads_in_place(v: Value) -> bool:
    """Operands are read at the index at which the value is computed."""
    form = element_form(v)
    return is_fold(v) or form is not None and form.f is None


def reads_anywhere(v: Value) -> bool:
    """Operands are read at indices that depend on data: they must be finished."""
    return "indexing" in v.op.traits and not is_epilogue(v)


def reads_element(v: Value, update: Value) -> bool:
    """True if ``v`` looks up one element of what has one element updated."""
    return (v is not update and reads_anywhere(v) and not v.shape and not space_of(update)
            and v.operands[0] is update.operands[0])


def read_in_step(v: Value) -> Sequence[Value]:
    """The operands of an end, or of a look-up, that are read at the index at which it is computed: what is written or
    looked for, and places, each of one element."""
    given = v.operands[1:] if isinstance(v.op.lowering, Update) or reads_anywhere(v) else v.operands
    return [] if reads_lines(v) else [o for o in given if o.shape == space_of(v)]


def needs_memory(v: Value) -> Sequence[Value]:
    """The operands that must be arrays in memory where ``v`` is computed."""
    if not is_kernel_op(v):
        return v.operands
    return v.operands[:1] if reads_anywhere(v) or reads_lines(v) else ()


def part_of(v: Value) -> Value:
    """The array of which ``v`` is a part, or which it is with other axes of one: a kernel looks up where that lies."""
    while v.op is slice_ or v.op is reshape and [n for n in v.shape if n != 1] == [
            n for n in v.operands[0].shape if n != 1]:
        v = v.operands[0]
    return v


def _is_short(v: Value) -> bool:
    """True if a kernel sorts ``v``, if sorting it is. (A library does that faster where there is much to sort.)"""
    size = v.shape[v.attrs["axis"]] if isinstance(v.op.lowering, Sorting) else 0
    return isinstance(size, int) and size <= Sorting.MOST


def reads_lines(v: Value) -> bool:
    """True if an element of ``v`` depends on all along an axis, again and again: they must be in memory."""
    return isinstance(v.op.lowering, Sorting) and v.op.lowering.places


def is_free(v: Value) -> bool:
    """Costs nothing to repeat: a movement, or a leaf that is no array in memory."""
    if v.op.name == "constant":
        return not v.shape
    if v.operands and "movement" not in v.op.traits:
        return False
    return is_kernel_op(v) and (is_movement(v) or not v.operands)


def chooses(v: Value) -> bool:
    """A movement with elements of several operands: where an element lies says of which."""
    return "movement" in v.op.traits and len(v.operands) > 1


def is_number(v: Value, numbers: set[Value]) -> bool:
    """True if a kernel computes ``v`` from these scalars alone."""
    return bool(v.operands) and all(o in numbers for o in v.operands) and is_kernel_op(v) and not v.shape


# --- places of rows ---------------------------------------------------------------------------------------------------
#
# What says which rows a look-up takes is computed in the kernel that takes them, a row at a time. Places that have the
# shape of what is looked up are values of the kernel like any other. Those of rows are fewer, and so belong to no group
# of its shape: they are inlined, as movements are.


def places_of_rows(values: Sequence[Value], keeps: bool) -> set[Value]:
    """Integers that nothing reads but look-ups of rows, each of which computes them. ``keeps``: states are written; no
    kernel that may fail can write over one."""
    readers: Mapping[Value, Sequence[Value]] = {}
    found: set[Value] = set()
    for v in values:
        if not _takes_rows(v):
            continue
        readers = readers or users(values)
        if any(map(is_movement, readers.get(v, ()))):
            continue  # rows that are moved may be taken in another order: their places would be computed anew
        for k, _ in index_operands(v):
            own = _computed(v.operands[k], readers)
            if not (keeps and any("checks" in o.op.traits for o in own)):
                found.update(own)
    return found


def moved_casts(values: Sequence[Value], given: Container[Value]) -> set[Value]:
    """Casts of narrower arrays that are ``given``, some reader of which moves them: a conversion costs no more than a
    load, and the operand is less to read than an array of its own. (In place they are values of a kernel like any.)"""
    found = {v for v in values if v.op is cast and v.shape and v.operands[0] in given and _widens(v)}
    readers: Mapping[Value, Sequence[Value]] = users(values) if found else {}
    return {v for v in found if any(map(is_movement, readers.get(v, ())))}


def _widens(v: Value) -> bool:
    source = v.operands[0].dtype
    return (v.dtype.kind in "iuf" and not is_foreign(source) and not is_narrow(source)
            and source.itemsize < v.dtype.itemsize and np.can_cast(source, v.dtype, "safe"))


def _takes_rows(v: Value) -> bool:
    """True if a kernel looks up one row, or rows that are known not to be short."""
    if not isinstance(v.op.lowering, Element) or not index_operands(v):
        return False
    depth = v.operands[1].ndim
    return v.ndim > depth and (not depth or known_nonnegative(product(v.shape[depth:]) - SHORT - 1))


def _computed(index: Value, readers: Mapping[Value, Sequence[Value]]) -> list[Value]:
    """Values that compute an index for this alone, users first; none if they are many."""
    inside: dict[Value, None] = {}
    arrays: set[Value] = set()
    pending = [index]
    while pending:
        v = pending.pop()
        if v in inside or bodies.is_free(v):
            continue
        if _is_cheap(v) and all(u in inside or _takes_rows(u) and u.operands[0] is not v for u in readers.get(v, ())):
            inside[v] = None
            pending.extend(v.operands)
        elif v.shape:
            arrays.add(v)
    return list(inside) if len(inside) <= MOST_OPS and len(arrays) <= 1 else []


def _is_cheap(v: Value) -> bool:
    """An op on numbers that are places, or say how places are moved."""
    return is_movement(v) or not {"elementwise", "checks"}.isdisjoint(v.op.traits) and (
        v.dtype.kind in "iub" and v.op.facts.kernel not in ("vectorized", "scalar"))
