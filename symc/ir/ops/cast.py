"""Conversion between dtypes."""

from __future__ import annotations

import numpy as np

from symc.ir import ranges
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Element, Linear, Op, register
from symc.ir.types import DTYPES, TensorType, is_inexact
from symc.ir.value import Value


def _reference(x, dtype):
    if x.dtype.kind == "c" and dtype.kind != "c" and dtype.kind != "b":
        x = x.real  # silently, as the front end has already warned or meant it
    return np.asarray(x).astype(dtype)


def _transpose(g, v):
    source = v.operands[0].dtype
    if not is_inexact(source) or not is_inexact(v.dtype):
        return (None,)
    return (cast(g, dtype=source),)


def _samples():
    x = np.array([-2.5, -1.0, -0.0, 0.0, 0.5, 1.5, 100.0])
    for dtype in ARITHMETIC:
        yield (x if dtype.kind != "u" else abs(x),), dict(dtype=dtype)
    yield (np.array([True, False]),), dict(dtype=DTYPES["f32"])
    for name in ("c64", "f64", "bool"):
        yield (np.array([1 + 2j, -1j, 0, 3.5 + 0.5j]),), dict(dtype=DTYPES[name])


def _infer(t: TensorType, dtype: np.dtype) -> TensorType:
    return TensorType(dtype, t.shape)


cast = register(Op(
    "cast", _infer, _reference, Linear(_transpose), Element(),
    frozenset({"elementwise", "complex_kernel"}), _samples,
    "Convert to `dtype` as NumPy's astype does; complex to real drops the imaginary part.",
    facts=Facts(rounding="short", range=ranges.of_cast),
))  # fmt: skip


def in_dtype(x: Value, dtype: np.dtype) -> Value:
    """Converts a value that has another dtype; of complex numbers the real part stays where others are wanted."""
    return x if x.dtype == dtype else cast(x, dtype=dtype)
