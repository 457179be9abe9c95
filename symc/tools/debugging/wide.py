"""Evaluations of a function in wider numbers: float32 in float64, float64 in the platform's long double."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.op import is_lossless
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value
from symc.tools.debugging.observe import by_reference, evaluate
from symc.tools.debugging.perturb import stepped, unsaturated

WIDER: dict[str, Any] = {"float16": np.float64, "float32": np.float64, "float64": np.longdouble,
                         "complex64": np.complex128, "complex128": np.clongdouble}


def wide(f: Function, arrays: Sequence[np.ndarray], seed: int | None = None) -> list[Any]:
    """The results in wider numbers, as far as the references of the ops can compute in them.

    ``seed``: what overflows or underflows even so is a random number instead, and every other result is moved by a few
    units in the last place of the wider numbers.
    """
    rng = np.random.default_rng([20_012, seed or 0])

    def widened(a: Any, t: TensorType) -> Any:
        want = WIDER.get(t.dtype.name)
        a = np.asarray(a)
        return a if want is None or a.dtype == want or a.dtype.kind not in "fc" else a.astype(want)

    def compute(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
        out = _wide_op(v, operands, attrs)
        if isinstance(v.type, TupleType):
            return tuple(widened(a, t) for a, t in zip(out, v.type.items, strict=True))
        out = widened(out, v.type)
        if seed is not None and out.dtype.kind == "f" and not is_lossless(v.op):
            known = [np.asarray(o) for o in operands if not isinstance(o, tuple | list)]
            return unsaturated(stepped(out, rng), known, v.op, rng)
        return out

    start = [widened(a, i.type) for a, i in zip(arrays, f.inputs, strict=True)]
    return evaluate(f, start, compute)


def _wide_op(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
    if v.op.name == "cast":
        target = np.dtype(WIDER.get(attrs["dtype"].name, attrs["dtype"]))
        return np.asarray(operands[0]).astype(target)
    if not v.op.facts.bits and not v.regions:  # (the stacks of loops have the declared dtype)
        try:
            out = by_reference(v, operands, attrs)
            expected = v.types
            arrays = out if isinstance(v.type, TupleType) else (out,)
            if all(np.asarray(a).dtype.kind == t.dtype.kind for a, t in zip(arrays, expected, strict=True)):
                return out
        except Exception:  # a reference may know the declared dtypes only
            pass
    narrow = [
        tuple(np.asarray(a).astype(t.dtype) for a, t in zip(x, o.type.items, strict=True))
        if isinstance(o.type, TupleType) else np.asarray(x).astype(o.type.dtype)
        for x, o in zip(operands, v.operands, strict=True)
    ]
    return by_reference(v, narrow, attrs)
