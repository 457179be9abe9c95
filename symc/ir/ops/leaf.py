"""Values without operands, and the projection of one result out of several."""

from __future__ import annotations

import numpy as np

from symc.errors import InternalError
from symc.ir import ranges
from symc.ir.attrs import Array
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Element, Op, register
from symc.ir.types import DTYPES, TensorType, TupleType, ir_dtype
from symc.ir.value import Value, make

constant = register(Op(
    "constant",
    infer=lambda value: value.type,
    reference=lambda value: value,
    doc="The array in attribute `value`.", facts=Facts(rounding="none", range=ranges.of_constant),
))  # fmt: skip


def _unbound(**attrs):
    raise InternalError("a leaf without a value was evaluated")


input_ = register(Op(
    "input",
    infer=lambda serial, type: type,
    reference=_unbound,
    doc="A free leaf, told apart from others by `serial`. Never inside a region.",
))  # fmt: skip

param = register(Op(
    "param",
    infer=lambda index, type: type,
    reference=_unbound,
    doc="Param `index` of the region that the value belongs to.", facts=Facts(rounding="none"),
))  # fmt: skip


def _get_infer(t: TupleType, index: int) -> TensorType:
    if not isinstance(t, TupleType) or not 0 <= index < len(t.items):
        raise InternalError(f"get: no result {index} in {t}")
    return t.items[index]


get = register(Op("get", _get_infer, lambda results, index: results[index],
                  doc="Result `index` of an op with several results.", facts=Facts(rounding="none")))


def _iota_infer(shape: tuple[Size, ...], axis: int, dtype: np.dtype) -> TensorType:
    if not 0 <= axis < len(shape):
        raise InternalError(f"iota: no axis {axis} of {len(shape)}")
    return TensorType(dtype, shape)


def _iota_reference(shape, axis, dtype):
    row = np.arange(shape[axis]).astype(dtype).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.array(np.broadcast_to(row, shape))


def _iota_element(v: Value, index, at):
    from symc.ir.ops.cast import cast

    return cast(index[v.attrs["axis"]], dtype=v.dtype)


#: Ops of values that are given, not computed; and of those, or of parts of what has several results.
GIVEN = frozenset({constant, input_, param})
UNCOMPUTED = GIVEN | {get}


iota = register(Op(
    "iota", _iota_infer, _iota_reference, lowering=Element(_iota_element),
    samples=lambda: iter([((), dict(shape=(4,), axis=0, dtype=DTYPES["i64"])),
                          ((), dict(shape=(2, 3), axis=1, dtype=DTYPES["f32"]))]),
    doc="The index along `axis`, in every element of `shape`, as `dtype`.", facts=Facts(rounding="none",
                                                                                        range=ranges.of_iota),
))  # fmt: skip


def _size_infer(value: Size) -> TensorType:
    return TensorType("i64", ())


size = register(Op(
    "size",
    infer=_size_infer,
    reference=lambda value: np.asarray(value, np.int64),
    lowering=Element(),
    samples=lambda: iter([((), dict(value=3))]),
    doc="A size as data: an i64 scalar.", facts=Facts(rounding="none", range=ranges.of_size),
))  # fmt: skip


def scalar(number, dtype) -> Value:
    """A 0-d constant."""
    return make(constant, (), _value_attrs(np.asarray(number, ir_dtype(dtype))))


def array(data) -> Value:
    """A constant holding `data`."""
    return make(constant, (), _value_attrs(data))


def _value_attrs(data):
    from symc.ir.attrs import Attrs

    return Attrs({"value": Array(data)})
