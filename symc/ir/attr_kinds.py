"""Attributes of the kinds that an op's ``infer`` is annotated with: numbers, sizes, tuples of them.

What builds values in Python gives the right kinds; text may say anything.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symc.ir.dim import Dim
from symc.ir.dtypes import is_dtype
from symc.ir.op import Op

Check = Callable[[Any], bool]


def wrong_attr(op: Op, attrs: Mapping[str, Any]) -> str | None:
    """The name of an attribute that is of another kind than the op's ``infer`` says, if there is one."""
    if not attrs:
        return None
    checks = checks_of(op)
    return next((k for k, v in attrs.items() if k in checks and not checks[k](v)), None)


@functools.cache
def checks_of(op: Op) -> dict[str, Check]:
    """Checks of the annotated attributes of an op, by name."""
    hints = typing.get_type_hints(op.infer, localns={"Dim": Dim})
    return {name: check_of(hint) for name, hint in hints.items() if name not in ("return", "regions")}


def check_of(hint: Any) -> Check:
    """The check that an annotation stands for. A bool is no number here."""
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda x: True
    if hint is int:
        return lambda x: type(x) is int and abs(x) < 2**63
    if hint is float:
        return lambda x: type(x) in (int, float)
    if kind in (typing.Union, types.UnionType):
        parts = [check_of(h) for h in inner]
        return lambda x: any(p(x) for p in parts)
    if kind is tuple and inner[-1:] == (...,):
        each = check_of(inner[0])
        return lambda x: isinstance(x, tuple) and all(map(each, x))
    if kind is tuple:
        parts = [check_of(h) for h in inner]
        return lambda x: isinstance(x, tuple) and len(x) == len(parts) and all(p(i) for p, i in zip(parts, x))
    if np.dtype in (hint, kind):
        return is_dtype
    found = kind or hint
    return lambda x: isinstance(x, found)
