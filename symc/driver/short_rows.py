"""Variants that nobody asked for: of a first call with many short rows (see ``specialized.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.dim import Dim
from symc.ir.function import Function

#: Rows of so many elements at most are worth a variant, where an array has so many of them.
SHORT, MANY = 4, 100


#: Options with which a call may have variants that nobody asked for.
_PLAIN = {"specialize": None, "split": (), "device": "cpu", "backend": "llvm", "max_bytes": None, "mode": "default"}


def short_rows(arrays: Sequence[np.ndarray], options: Mapping[str, Any]) -> Any:
    """The option for a first call with many short rows or small matrices: colours of pixels, points in space. These
    loops unroll, and the long axis is the one that vectors are of. What the caller said stays."""
    if any(options.get(name, plain) not in (None, plain) for name, plain in _PLAIN.items()):
        return options.get("specialize")
    found = {(k, axis): a.shape[axis] for k, a in enumerate(arrays)
             if a.ndim > 1 and 1 < a.shape[-1] <= SHORT and a.size >= MANY * a.shape[-1]
             for axis in (a.ndim - 2, a.ndim - 1) if 1 < a.shape[axis] <= SHORT}

    def named(f: Function) -> list[dict[str, int]] | None:
        sizes = {str(size): n for (k, axis), n in found.items()
                 if isinstance(size := (f.inputs[k].declared or f.inputs[k].type).shape[axis], Dim)}
        return [sizes] if sizes else None

    return named if found else None
