"""Constant folding: what depends on no input is computed now, by the reference, unless the result would be large.

A number stays a splat (canonicalize computes those); sizes that are known become numbers. A constant is made when it is
no larger than what it is made of, or small; nothing with a region is run, so folding takes bounded time.
"""

from __future__ import annotations

import numpy as np

from symc.errors import SymcError
from symc.ir.attrs import Array, Attrs
from symc.ir.dim import size_name
from symc.ir.op import lookup
from symc.ir.ops.leaf import array, iota, scalar, size
from symc.ir.reference import run_values
from symc.ir.types import TensorType
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaves

#: Constants up to this many bytes may be made from nothing.
SMALL = 1024


@rewrite("size", exact=True, equation="size(3) -> 3", examples=lambda: [size(value=3)],
         misses=lambda: [size(value=size_name("n"))], arises="sizes that become known")
def size_is_known(v: Value) -> Value | None:
    """A size that is a number."""
    n = v.attrs["value"]
    return scalar(n, "i64") if isinstance(n, int) else None


def _constant_bytes(v: Value) -> int | None:
    """The bytes of constant data under ``v``, or None if it is not constant: a constant, a splat, a small iota."""
    if v.op.name == "broadcast" and v.operands[0].data is not None:
        return v.operands[0].data.nbytes if _bytes(v) <= SMALL else None
    return None if v.data is None else v.data.nbytes


def _bytes(v: Value) -> float:
    """The size of a result, infinite when it is symbolic."""
    n = v.type.nbytes
    return n if isinstance(n, int) else float("inf")


def _example() -> list[Value]:
    return [
        lookup("exp")(array(np.arange(3.0))),
        lookup("iota")(shape=(4,), axis=0, dtype=np.dtype("i8")),
        lookup("reshape")(array(np.arange(4.0)), shape=(2, 2)),
    ]


@rewrite(exact=True, weight=0, equation="f(constants) -> constant", examples=_example,
         misses=lambda: [example(lookup("exp"), leaves(1))])
def constant_folding(v: Value) -> Value | None:
    """No input is involved: the reference computes it once, here."""
    if (
        v.op.name in ("constant", "param", "input", "broadcast", "get", "size")
        or v.regions
        or not isinstance(v.type, TensorType)
    ):
        return None
    if v.op.reference is None or v.op.traits & {"effect", "barrier"} or (not v.operands and v.op is not iota):
        return None
    parts = [_constant_bytes(o) for o in v.operands]
    if None in parts or _bytes(v) > max(SMALL, sum(p for p in parts if p is not None)):
        return None
    try:
        data = run_values([v], {}, {})[0]
    except (SymcError, KeyError, ValueError, IndexError, ZeroDivisionError):
        return None  # a size may be unknown (KeyError); what cannot be computed raises in a call, with the user's line
    return make(lookup("constant"), (), Attrs({"value": Array(np.asarray(data))}))
