"""``mode="nan_guard"``: stops at the first op that makes a nan or an infinity out of finite numbers, in loops too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import NonFiniteError
from symc.ir import location
from symc.ir.function import Hints
from symc.ir.value import Value


class NanGuard:
    """A reference program whose ops are looked at as they run."""

    def __init__(self, program: Any):
        self.unchecked = program

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unchecked, name)

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], out: Any = None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        f = self.unchecked.function
        for i, a in zip(f.inputs, arrays, strict=True):
            if not _finite(a):
                raise NonFiniteError(
                    f"nan_guard: the input {i.name} holds {_what(a)}", values=[(f"%{i.name}", i.type, i.loc)]
                )

        def look(v: Value, result: Any, operands: list[Any]) -> None:
            _look(v, result, operands, f.hints)

        return self.unchecked.run(arrays, sizes, out, cells, observe=look, within=_look)


def _look(v: Value, result: Any, operands: list[Any], hints: Hints | None) -> None:
    results = result if isinstance(result, tuple | list) else (result,)
    for r in results:
        if _finite(r) or (v.op.name in ("constant", "broadcast") and not any(map(_finite, operands))):
            continue
        if not all(_finite(a) for a in operands):
            continue  # it was said to be so on purpose: a constant, or a choice that `where` undoes
        rows = [
            (f"operand {k}, in {_range(a)}", o.type, None)
            for k, (o, a) in enumerate(zip(v.operands, operands, strict=True))
        ]
        if v.op.name == "constant":
            continue
        raise NonFiniteError(
            f"nan_guard: {v.op.name} gives {_what(r)}", values=rows,
            where=location.in_order((hints or {}).get(v, ()))
        )


def _finite(a: Any) -> bool:
    a = np.asarray(a) if not isinstance(a, tuple | list) else np.zeros(())
    return a.dtype.kind not in "fc" or bool(np.isfinite(a).all())


def _what(a: Any) -> str:
    a = np.asarray(a)
    bad = np.argwhere(~np.isfinite(a))[0]
    number = a[tuple(bad)]
    return f"{number}" + (f" at index {tuple(map(int, bad))}" if a.ndim else "")


def _range(a: Any) -> str:
    a = np.asarray(a)
    if not a.size or a.dtype.kind in "bc":
        return "no numbers" if not a.size else "..."
    return f"[{a.min():.6g}, {a.max():.6g}]"
