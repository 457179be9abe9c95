"""Ops of several ranks: devices that run the same program on parts of a batch, and join what they have computed.

Where there is one rank (the CPU, one device, the reference) they are identities. Every rank asks for the same ones in
the same order, as all run one plan; so no pass moves them into a branch, which might run on some ranks only (the trait
"barrier", and ``has_collective``).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import InternalError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, register
from symc.ir.ops.arithmetic import maximum
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq
from symc.ir.ops.elementwise import check_arity, check_kind, like
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

#: How numbers of several ranks become one, and for which kinds of dtypes.
KINDS = {"add": "iufc", "mean": "fc", "maximum": "iuf", "minimum": "iuf"}


def _infer(*types: TensorType, kind: str) -> TensorType:
    check_arity("all_reduce", types, 1)
    if kind not in KINDS:
        raise InternalError(f"all_reduce: {kind!r} is none of {', '.join(KINDS)}")
    check_kind("all_reduce", types[0], KINDS[kind])
    return types[0]


def _share(v: Value) -> Value:
    """The part of each element in the greatest or smallest: 1, where no other rank has the same number; 0, where
    another one has a greater one."""
    x = v.operands[0]
    hit = cast(eq(x, v), dtype=x.dtype)
    return hit / maximum(all_reduce(hit, kind="add"), like(hit, 1))


def _jvp(tangents: Sequence[Value | None], v: Value) -> Value | None:
    t, kind = tangents[0], v.attrs["kind"]
    if t is None:
        return None
    return all_reduce(t, kind=kind) if kind in ("add", "mean") else all_reduce(t * _share(v), kind="add")


def _vjp(g: Value, v: Value) -> tuple[Value]:
    kind = v.attrs["kind"]
    return (all_reduce(g, kind=kind) if kind in ("add", "mean") else all_reduce(g, kind="add") * _share(v),)


def _batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    return v.op(operands[0], **v.attrs)


def _samples() -> Iterator[tuple[tuple, dict]]:
    for kind, kinds in KINDS.items():
        for dtype in ("f8", "f4", "c16", "i8"):
            if np.dtype(dtype).kind in kinds:
                yield (np.array([[1, 0, 3]], dtype),), {"kind": kind}
    yield (np.array(0.5),), {"kind": "mean"}


all_reduce = register(Op(
    "all_reduce", _infer, lambda x, kind: np.array(x), Custom(_jvp, _vjp), Extern("all_reduce"), frozenset({"barrier"}),
    _samples, "x of all ranks, made one by `kind` (add, mean, maximum, minimum): the same on all of them. x itself "
    "where there is one rank.", Facts(batch=_batch, kinds="iufc", result="same"),
))  # fmt: skip

_of_region: weakref.WeakKeyDictionary[Region, bool] = weakref.WeakKeyDictionary()


def has_collective(v: Value) -> bool:
    """True if computing ``v`` from its operands takes all ranks."""
    return v.op is all_reduce or any(map(_region_has, v.regions))


def _region_has(region: Region) -> bool:
    found = _of_region.get(region)
    if found is None:
        found = _of_region[region] = any(map(has_collective, postorder(region.results)))
    return found
