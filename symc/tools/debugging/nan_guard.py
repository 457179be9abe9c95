"""``mode="nan_guard"``: stops at the first op that makes a nan or an infinity out of finite numbers, in loops too.

Calls run kernels that look at all they make (``finite_flag``). Where these find anything, and for programs that print
or assert, the references run one by one and say what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import NonFiniteError, SymcError
from symc.ir import location
from symc.ir.function import Function, Hints
from symc.ir.locks import new_lock
from symc.ir.ops.effect import has_effect
from symc.ir.value import Value
from symc.runtime.cpu.commit import replace_arrays
from symc.tools.debugging.finite_flag import with_flag
from symc.tools.debugging.native import Native, lowered


class NanGuard:
    """A reference program whose ops are looked at as they run."""

    def __init__(self, program: Any):
        self.unchecked = program
        self._lock = new_lock()
        self._compiled: Any = None

    def __reduce__(self) -> Any:
        return NanGuard, (self.unchecked,)

    def _flagged(self) -> Any:
        """The program with a flag; False where there is none."""
        with self._lock:
            if self._compiled is None:
                self._compiled = _flagged(self.unchecked.function)
            return self._compiled

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unchecked, name)

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], out: Any = None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        found = self._run_flagged(arrays, sizes)
        if found is not None:
            results = self.unchecked.deliver(found, arrays, out)
            replace_arrays(cells, results[len(results) - len(cells) :])
            return results
        f = self.unchecked.function
        for i, a in zip(f.inputs, arrays, strict=True):
            if not _finite(a):
                raise NonFiniteError(
                    f"nan_guard: the input {i.name} holds {_what(a)}", values=[(f"%{i.name}", i.type, i.loc)]
                )

        def look(v: Value, result: Any, operands: list[Any]) -> None:
            _look(v, result, operands, f.hints)

        return self.unchecked.run(arrays, sizes, out, cells, observe=look, within=_look)

    def _run_flagged(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int]) -> list[np.ndarray] | None:
        """Results of kernels, if all that they made was finite."""
        program = self._flagged()
        if not program:
            return None
        try:
            *results, fine = program.run(arrays, sizes)
        except SymcError:  # the references say which op it was
            return None
        return results if fine else None


def _flagged(f: Function) -> Any:
    if any(has_effect(v) for v in f.values()):
        return False
    try:
        return Native(lowered(with_flag(f)), reuse=True).program
    except SymcError:
        return False


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
