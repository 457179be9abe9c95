"""Ops that end a kernel (updates, running sums, sorting), and what the loops do there: `store`.

A store is made by code generation alone. As a value it is the scalar that comes; that it also changes the memory of a
result is what the kernel around it means, and the reference of that is the reference of the op.
"""

from __future__ import annotations

import numpy as np

from symc.errors import InternalError
from symc.ir.dim import Size
from symc.ir.op import Op, PackedConcat, Running, Sorting, Update, register
from symc.ir.types import TensorType
from symc.ir.value import Value

_INDEX = TensorType("i64", ())


def is_epilogue(v: Value) -> bool:
    """True if ``v`` ends a kernel: its elements are not made one by one, so nothing in the kernel can read them."""
    return isinstance(v.op.lowering, Update | PackedConcat | Running | Sorting)


def space_of(v: Value) -> tuple[Size, ...]:
    """The indices at which a kernel computes ``v``."""
    if isinstance(v.op.lowering, PackedConcat):
        return v.operands[0].shape
    return v.operands[1].shape if isinstance(v.op.lowering, Update) else v.shape


def _store_infer(value: TensorType, *place: TensorType, shape: tuple[Size, ...], kind: str) -> TensorType:
    if value.ndim or len(place) != len(shape) or any(p is not _INDEX for p in place):
        raise InternalError(f"store: {value} at {len(place)} places in {len(shape)} axes")
    return value


store = register(Op(
    "store", _store_infer, lambda value, *place, shape, kind: value,
    traits=frozenset({"unchecked"}),
    doc="Write the scalar into a result of `shape` at a place (i64 scalars, in bounds), or combine what is there with "
    "it by the op `kind`.",
))  # fmt: skip


def _packed_concat_infer(*types: TensorType, axis: int) -> TensorType:
    t = types[0]
    if any(other is not t for other in types) or not 0 <= axis < t.ndim:
        raise InternalError(f"packed_concat: {types} along axis {axis}")
    return TensorType(t.dtype, (*t.shape[:axis], t.shape[axis] * len(types), *t.shape[axis + 1 :]))


packed_concat = register(Op(
    "packed_concat", _packed_concat_infer, lambda *xs, axis: np.concatenate(xs, axis), lowering=PackedConcat(),
    doc="As `concat`, of operands of one type: a kernel computes an element of each and writes it where it belongs.",
))  # fmt: skip


def _store_packed_infer(*types: TensorType, shape: tuple[Size, ...], axis: int) -> TensorType:
    values = types[: len(types) - len(shape)]
    if not values or any(t.ndim for t in types) or any(t is not values[0] for t in values):
        raise InternalError(f"store_packed: {types} in {len(shape)} axes")
    return values[0]


store_packed = register(Op(
    "store_packed", _store_packed_infer, lambda *values, shape, axis: values[0],
    traits=frozenset({"unchecked"}),
    doc="Write scalars at a place in a row each; rows of `shape` lie side by side along `axis`.",
))  # fmt: skip


def _run_infer(*types: TensorType, shape: tuple[Size, ...], kind: str, axis: int, reverse: bool) -> TensorType:
    values = types[: len(types) - len(shape) - 1]
    if len(values) != 1 + (kind == "linear") or any(t.ndim for t in types) or any(t is not values[0] for t in values):
        raise InternalError(f"store_running: {types} for {kind} in {len(shape)} axes")
    return values[0]


store_running = register(Op(
    "store_running", _run_infer, lambda *values, shape, kind, axis, reverse: values[0],
    traits=frozenset({"unchecked"}),
    doc="Combine the scalars by `kind` with the element before along `axis`. After the values come how many elements "
    "along `axis` are done (the first is the last value alone) and the place.",
))  # fmt: skip

def _insert_infer(x: TensorType, *index: TensorType, shape: tuple[Size, ...], axis: int) -> TensorType:
    if len(index) != len(shape) + 1 or any(p is not _INDEX for p in index):
        raise InternalError(f"insert: {x} at {len(index) - 1} places in {len(shape)} axes")
    return TensorType(x.dtype, ())


insert = register(Op(
    "insert", _insert_infer, lambda x, *index, shape, axis: x,
    traits=frozenset({"unchecked"}),
    doc="Put the scalar among those before it along `axis`, which are in order. How many they are, and the place, "
    "follow the value.",
))  # fmt: skip
insert_place = register(Op(
    "insert_place", lambda x, *index, **attrs: _insert_infer(x, *index, **attrs).with_dtype(_INDEX.dtype),
    lambda x, *index, shape, axis: index[0],
    traits=frozenset({"unchecked"}),
    doc="As `insert`, of places along `axis`, ordered by the elements of the array there.",
))  # fmt: skip
