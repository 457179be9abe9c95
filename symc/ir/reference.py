"""The reference evaluator: runs each op's NumPy reference. It defines what a program means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import ExecutionError, InternalError, SymcError
from symc.ir import location
from symc.ir.dim import Dim, names, solve
from symc.ir.function import Function, Hints
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType, TupleType, concrete_shape
from symc.ir.value import Region, Value


def bind_sizes(types: Sequence[TensorType], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """Numbers for the size names in ``types``, read off actual shapes.

    A name is bound by the first axis that determines it (``n``, then ``2*n + 1``); agreement of the other axes is the
    caller's to check. Raises InternalError when a name is not determined.
    """
    sizes: dict[str, int] = {}
    pairs = [
        (s, k)
        for t, shape in zip(types, shapes, strict=True)
        for s, k in zip(t.shape, shape, strict=True)
        if isinstance(s, Dim)
    ]
    waiting = pairs
    while waiting:
        later = []
        for s, number in waiting:
            unknown = sorted(names(s) - sizes.keys())
            if len(unknown) == 1:
                from symc.ir.dim import substitute

                value = solve(substitute(s, sizes), number, unknown[0])
                if isinstance(value, int):
                    sizes[unknown[0]] = value
                    continue
            if unknown:
                later.append((s, number))
        if len(later) == len(waiting):
            raise InternalError(f"the sizes {', '.join(str(s) for s, _ in later)} do not determine their names")
        waiting = later
    return sizes


def run_region(
    region: Region,
    arrays: Sequence[np.ndarray],
    sizes: Mapping[str, int],
    *,
    check: bool = False,
    hints: Hints | None = None,
) -> list[Any]:
    """The results of a region on arrays. ``check``: every op's result must have the inferred dtype and shape."""
    env: dict[Value, Any] = dict(zip(region_params(region), arrays, strict=True))
    with np.errstate(all="ignore"):
        return run_values(region.results, env, sizes, check=check, hints=hints)


def run_values(
    roots: Sequence[Value],
    env: dict[Value, Any],
    sizes: Mapping[str, int],
    *,
    check: bool = False,
    hints: Hints | None = None,
) -> list[Any]:
    """Evaluate ``roots``, given arrays for their leaves; ``env`` gains every value evaluated."""
    for v in postorder(roots, stop=env.__contains__):
        if v not in env:
            env[v] = apply(v, [env[o] for o in v.operands], sizes, check, hints)
    return [env[r] for r in roots]


def apply(v: Value, arrays: list[Any], sizes: Mapping[str, int], check: bool, hints: Hints | None) -> Any:
    """The result of one op. Raises what its reference raises: SymcErrors with the user's lines, NumPy's own errors as
    ExecutionError."""
    attrs = v.attrs.concrete(sizes) if v.attrs else {}
    if v.regions:
        attrs["regions"] = [lambda *xs, r=r: run_region(r, xs, sizes, check=check) for r in v.regions]
    try:
        out = v.op.reference(*arrays, **attrs)
    except SymcError as e:
        e.attach(_rows(arrays), location.in_order((hints or {}).get(v, ())))
        raise
    except MemoryError as e:
        e.add_note(f"in {v.op.name} : {v.type} {', '.join(map(str, location.in_order((hints or {}).get(v, ()))))}")
        raise
    except Exception as e:
        raise ExecutionError(
            f"{v.op.name}: {e}", values=_rows(arrays), where=location.in_order((hints or {}).get(v, ()))
        ) from e
    if check:
        _check(v, out, sizes)
    return out


def _rows(arrays: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    return [
        (f"operand {i}", f"{getattr(a, 'dtype', '')}{list(getattr(a, 'shape', ()))}", None)
        for i, a in enumerate(arrays)
    ]


def _check(v: Value, out: Any, sizes: Mapping[str, int]) -> None:
    types = v.type.items if isinstance(v.type, TupleType) else (v.type,)
    for t, array in zip(types, out if isinstance(v.type, TupleType) else (out,), strict=True):
        got = (getattr(array, "dtype", None), np.shape(array))
        if got != (t.dtype, concrete_shape(t.shape, sizes)):
            raise InternalError(f"{v.op.name}: the reference gives {got[0]}{list(got[1])}, its type is {t}")


def evaluate_function(f: Function, arrays: Sequence[np.ndarray], *, check: bool = False) -> list[np.ndarray]:
    """All results (outputs, then updates) of a function on arrays of its input types."""
    sizes = bind_sizes([i.type for i in f.inputs], [np.shape(a) for a in arrays])
    return run_region(f.body, [np.asarray(a) for a in arrays], sizes, check=check, hints=f.hints)
