"""Identities that differ only in how they are differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Exact, Facts
from symc.ir.op import Custom, Derivative, Element, Op, register
from symc.ir.ops.arithmetic import maximum, minimum
from symc.ir.ops.elementwise import check_arity, check_kind, check_numbers, like
from symc.ir.types import TensorType
from symc.ir.value import Value


def _identity(name: str, kinds: str, derivative: Derivative | None, attrs: Sequence[dict[str, Any]], doc: str) -> Op:
    def infer(*types: TensorType, **given: Any) -> TensorType:
        check_arity(name, types, 1)
        check_kind(name, types[0], kinds)
        if set(given) != set(attrs[0]):
            raise TypeError(f"{name} has attributes {sorted(attrs[0])}, not {sorted(given)}")
        check_numbers(name, given, attrs[0])
        return types[0]

    def samples() -> Iterator[tuple[tuple, dict]]:
        for dtype in ARITHMETIC:
            if dtype.kind in kinds:
                yield from (((np.array([[1, 0, 3]], dtype),), dict(given)) for given in attrs)

    return register(Op(
        name, infer, lambda x, **given: np.array(x), derivative, Element(lambda v, index, at: at(0, index)),
        frozenset({"elementwise", "grad_control", "complex_kernel"}), samples, doc,
        Facts(kinds=kinds, result="same", arity=1, rounding="none", same=True,
              exact=Exact(lambda mp, x, **given: x, far=True)),
    ))  # fmt: skip


def _scaled(t: Any, v: Value) -> Value:
    scale = v.attrs["scale"]
    return like(t, 0) if scale == 0 else t * scale


def _on_cotangent(f: Callable[[Value, Value], Value], forward: Callable[[Any, Value], Value]) -> Custom:
    return Custom(lambda tangents, v: forward(tangents[0], v), lambda g, v: (f(g, v),))


stop_gradient = _identity("stop_gradient", "biufc", None, [{}], "x, without any derivative: a constant to grad.")
grad_scale = _identity("grad_scale", "fc", _on_cotangent(_scaled, _scaled), [{"scale": s} for s in (-1.0, 0.0, 0.5)],
                       "x, whose derivative is `scale`: -1 reverses gradients, 0 gives zeros even for inf and nan.")
grad_clip = _identity("grad_clip", "f", _on_cotangent(
    lambda g, v: minimum(maximum(g, like(g, v.attrs["low"])), like(g, v.attrs["high"])), lambda t, v: t),
    [{"low": -1.0, "high": 1.0}],
    "x, whose cotangent is kept between `low` and `high` on its way back; tangents pass unchanged.")
