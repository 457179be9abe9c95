"""Kernels: `fused` groups ops into one unit; `generate` and `fold` say the same as scalar loops.

`fused` is what the optimizer decides: a closed region of ordinary ops. `generate`/`fold` are what code generation makes
of it: element i of the result is a scalar expression, a fold combines scalars over an extent. All three have
references, so every stage of a kernel can be evaluated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.ir import ranges
from symc.ir.dim import Size, product
from symc.ir.facts import Facts
from symc.ir.op import Element, Op, View, register
from symc.ir.ops.index import counts_from_end, out_of_bounds
from symc.ir.ops.reduce import FOLDS, gives_place
from symc.ir.types import TensorType, TupleType, Type
from symc.ir.value import Region, Value


def results_type(types: Sequence[TensorType]) -> Type:
    """The type of an op with these results."""
    return types[0] if len(types) == 1 else TupleType(types)


def _check_operands(name: str, types: Sequence[Type], params: Sequence[Type]) -> None:
    if tuple(types) != tuple(params):
        raise InternalError(f"{name}: operands {types} are not the region's params {params}")


# --- fused ------------------------------------------------------------------------------------------------------------


def _fused_infer(*types: TensorType, regions: Sequence[Region]) -> Type:
    _check_operands("fused", types, regions[0].params)
    return results_type([r.type for r in regions[0].results])


def _fused_reference(*arrays, regions: Sequence[Callable]):
    results = regions[0](*arrays)
    return results[0] if len(results) == 1 else tuple(results)


fused = register(
    Op("fused", _fused_infer, _fused_reference, doc="The region's results, computed together by one kernel.")
)


# --- generate and fold ------------------------------------------------------------------------------------------------


def _generate_infer(*types: TensorType, shape: tuple[Size, ...], regions: Sequence[Region]) -> Type:
    index = [TensorType("i64", ())] * len(shape)
    _check_operands("generate", [*index, *types], regions[0].params)
    return results_type([TensorType(r.type.dtype, (*shape, *r.type.shape)) for r in regions[0].results])


def _generate_reference(*arrays, shape, regions):
    parts: list[Any] = []
    for index in itertools.product(*map(range, shape)):
        parts.append(regions[0](*map(np.int64, index), *arrays))
    if not parts:
        raise InternalError("generate over an empty extent has no reference; evaluate the fused form")
    out = [
        np.stack([np.asarray(p[k]) for p in parts]).reshape((*shape, *np.shape(parts[0][k])))
        for k in range(len(parts[0]))
    ]
    return out[0] if len(out) == 1 else tuple(out)


generate = register(
    Op(
        "generate",
        _generate_infer,
        _generate_reference,
        traits=frozenset({"unchecked"}),
        doc="Element i, j, ... (over `shape`) is what the region gives for the index i, j, ...: a loop nest. "
        "A region that gives arrays appends their axes.",
    )
)


def fold_result(kind: str, t: TensorType) -> TensorType:
    """Type of folding elements of type ``t`` with ``kind``."""
    return TensorType("i64", ()) if gives_place(kind) else t


def _fold_infer(*types: TensorType, shape: tuple[Size, ...], kinds: tuple[str, ...], regions: Sequence[Region],
                keeps: tuple[int, ...] = ()) -> Type:
    index = [TensorType("i64", ())] * len(shape)
    _check_operands("fold", [*index, *types], regions[0].params)
    if len(kinds) + len(keeps) != len(regions[0].results):
        raise InternalError(f"fold: {len(kinds)} kinds and {len(keeps)} kept for {len(regions[0].results)} results")
    kept = [TensorType(r.type.dtype, shape) for r in regions[0].results[len(kinds) :]]
    return results_type([*(fold_result(k, r.type) for k, r in zip(kinds, regions[0].results)), *kept])


def _fold_reference(*arrays, shape, kinds, regions, keeps=()):
    rows = [regions[0](*map(np.int64, index), *arrays) for index in itertools.product(*map(range, shape))]
    if not rows:
        raise InternalError("fold over an empty extent has no reference; evaluate the fused form")
    columns = [np.stack([np.asarray(r[n]) for r in rows]) for n in range(len(kinds) + len(keeps))]
    out = [FOLDS[k].reference(c, axes=(0,)) for k, c in zip(kinds, columns)]
    out += [c.reshape(shape) for c in columns[len(kinds) :]]
    return out[0] if len(out) == 1 else tuple(out)


fold = register(
    Op(
        "fold",
        _fold_infer,
        _fold_reference,
        traits=frozenset({"unchecked"}),
        doc="Combine what the region gives over all indices in `shape`, each result with its kind. What it gives "
        "beyond those is kept, an array over `shape`; `keeps` says in the memory of which results of a kernel.",
    )
)


def _load_infer(t: TensorType, *index: TensorType) -> TensorType:
    if len(index) != t.ndim or any(i is not TensorType("i64", ()) for i in index):
        raise InternalError(f"load: {len(index)} indices into {t}")
    return TensorType(t.dtype, ())


load = register(
    Op(
        "load",
        _load_infer,
        lambda x, *index: np.asarray(x[tuple(int(i) for i in index)]),
        traits=frozenset({"unchecked"}),
        doc="The scalar at an index (i64 scalars, in bounds).",
    )
)


def _bisect_infer(t: TensorType, x: TensorType, *row: TensorType, side: str) -> TensorType:
    if len(row) != t.ndim - 1 or any(i is not TensorType("i64", ()) for i in row) or x is not TensorType(t.dtype, ()):
        raise InternalError(f"bisect: {x} in row {row} of {t}")
    return TensorType("i64", ())


bisect = register(Op(
    "bisect", _bisect_infer,
    lambda a, x, *row, side: np.asarray(np.searchsorted(a[tuple(map(int, row))], x, side), np.int64),
    traits=frozenset({"unchecked"}),
    doc="The number of elements along the last axis of an array before a scalar, in the row that i64 scalars name.",
))  # fmt: skip


# --- functions of numbers in a known range ----------------------------------------------------------------------------


def _exp_nonpositive(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.exp(x)


exp_nonpositive = register(Op(
    "exp_nonpositive", lambda t: t, _exp_nonpositive, lowering=Element(), traits=frozenset({"unchecked"}),
    samples=lambda: iter([((np.array([0.0, -0.5, -30.0, -np.inf, np.nan], d),), {}) for d in ("f2", "f4", "f8")]),
    doc="e**x for x <= 0: fewer instructions than `exp`.", facts=Facts(kinds="f", arity=1, kernel="vectorized"),
))  # fmt: skip


# --- checks -----------------------------------------------------------------------------------------------------------


#: Of ops that are their first operand, after a check of it: a kernel with one notes that it failed.
CHECKS = frozenset({"checks"})


def _index_infer(
    t: TensorType, size: Size, wrapped: bool = False, along: int | None = None, of: str = "", law: str = ""
) -> TensorType:
    if t.dtype.kind not in "iu":
        raise InternalError(f"an index is {t}, not integers")
    return t


def _check_index_reference(index, size, **told):
    out_of_bounds(index, size, **told)
    return np.array(index)


check_index = register(
    Op(
        "check_index",
        _index_infer,
        _check_index_reference,
        lowering=Element(),
        traits=CHECKS,
        samples=lambda: iter([((np.array([0, 2]),), dict(size=3))]),
        doc="The operand, after a check that every element is in [0, size): nothing else checks in kernels. An error "
        "says `along` which axis of which array `of`, takes the size off negative ones that were `wrapped`, or "
        "says that a `law` does not hold.",
        facts=Facts(same=True, range=ranges.of_index, requires=lambda v: [(v.attrs["size"] - 1, product(v.shape))]),
    )
)


def checked_index(index: Value, array: Value, axis: int) -> Value:
    """An index into ``array`` along ``axis``, with a check that says so."""
    return check_index(
        index, size=array.shape[axis], wrapped=counts_from_end(index), along=axis, of=str(array.type)
    )


bounded = register(
    Op(
        "bounded",
        _index_infer,
        lambda index, size: index,
        lowering=View(),
        traits=frozenset({"movement", "unchecked"}),
        samples=lambda: iter([((np.array([0, 2]),), dict(size=3))]),
        doc="The operand, of which it is known (outside of this loop, perhaps) that every element is in [0, size).",
        facts=Facts(element=lambda v, index, at: at(0, index), same=True, range=ranges.of_index),
    )
)


def results_of(v: Value) -> list[Value]:
    """The results of a value: its projections, or itself."""
    return [v[k] for k in range(len(v.type.items))] if isinstance(v.type, TupleType) else [v]


def projection(v: Value) -> tuple[Value, int]:
    """The value of which another is a result, and which one: of no projection itself, and the first."""
    return (v.operands[0], v.attrs["index"]) if v.op.name == "get" else (v, 0)
