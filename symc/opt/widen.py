"""Arithmetic of dtypes of storage (bfloat16) in the dtype that it is computed in, rounded after every op.

What is left of such a dtype are leaves, movements, casts, and what loops and branches carry: rules, facts and libraries
meet its numbers as float32. It comes before all passes, as NumPy has no arithmetic that they could be written in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.attrs import Attrs
from symc.ir.dtypes import computed, is_foreign
from symc.ir.function import Function
from symc.ir.location import carrying
from symc.ir.op import keeps_storage
from symc.ir.ops.cast import cast
from symc.ir.traverse import every_value, postorder
from symc.ir.types import any_stored
from symc.ir.value import Value, make
from symc.opt.engine.regions import in_bodies


def is_stored(v: Value) -> bool:
    """True if a value, or a part of it, has a dtype of storage."""
    return any(is_foreign(t.dtype) for t in v.types)


def widen(f: Function) -> Function:
    """The function with its arithmetic in dtypes that have some; itself if it stores no others."""
    if not any_stored() or not any(map(is_stored, every_value(f.body))):
        return f
    return in_bodies(_widen, f)


def _widen(f: Function) -> Function:
    hints = dict(f.hints)
    results = widened(f.body.results, carrying(f.hints, hints))
    return f if tuple(results) == f.body.results else f.with_results(results, hints)


def widened(roots: Sequence[Value], note: Callable[[Value, Value], None]) -> list[Value]:
    """Values of the same types, made by arithmetic that is wide. ``note(old, new)`` is called for what was rebuilt."""
    done: dict[Value, Value] = {}
    if not any_stored():
        return list(roots)
    for v in postorder(roots):
        operands = tuple([done[o] for o in v.operands])
        if any(map(is_stored, (v, *v.operands))) and not keeps_storage(v):
            operands = tuple([_wide(o) for o in operands])
            attrs = {k: computed(a) if is_foreign(a) else a for k, a in v.attrs.items()}
            new = make(v.op, operands, Attrs(attrs), v.regions)
        else:
            new = v if operands == v.operands else make(v.op, operands, v.attrs, v.regions)
        if new.type is not v.type and len(v.types) == 1:
            note(v, new)
            new = cast(new, dtype=v.dtype)
        if new is not v:
            note(v, new)
        done[v] = new
    return [done[r] for r in roots]


def _wide(v: Value) -> Value:
    return cast(v, dtype=computed(v.dtype)) if is_stored(v) and len(v.types) == 1 else v
