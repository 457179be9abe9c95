"""Float64 in a program whose inputs are float32: the values where it arises, for ``sc.lint``."""

from __future__ import annotations

from collections.abc import Iterator

from symc.ir.function import Function
from symc.ir.traverse import every_value
from symc.ir.types import TensorType
from symc.ir.value import Value


def arising_doubles(f: Function) -> Iterator[tuple[Value, Value | None]]:
    """Values of float64 (complex128) that are made of none, with the value that uses each: conversions, and states.

    Of a result that is float64 without any of these, the result. Nothing, unless the arguments that are floats are all
    narrower, and there are some.
    """
    leaves = list(zip(f.params, f.inputs, strict=True))
    given = [i.type.dtype for _, i in leaves if i.role == "arg" and i.type.dtype.kind in "fc"]
    if not given or any(d.char in "dD" for d in given):
        return
    wide = [v for v in every_value(f.body) if _is_double(v)]
    users = {o: v for v in reversed(wide) for o in v.operands}
    states = [p for p, i in leaves if i.role == "state" and _is_double(p)]
    casts = [v for v in wide if v.op.name == "cast" and v.operands[0].op.name != "size"]
    found = [v for v in casts if not _is_double(v.operands[0])] + states
    for v in found or [r for r in f.body.results if _is_double(r)]:
        yield v, users.get(v)


def _is_double(v: Value) -> bool:
    return isinstance(v.type, TensorType) and v.dtype.char in "dD"
