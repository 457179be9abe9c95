"""Variants that nobody asked for: of a first call with many short rows, or of loops on few numbers (see
``specialized.py``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.dim import Dim
from symc.ir.function import Function
from symc.ir.op import Update
from symc.ir.ops.control import scan, while_
from symc.ir.size_values import names, substitute

#: Rows of so many elements at most are worth a variant, where an array has so many of them.
SHORT, MANY = 10, 100
#: A loop hands so many elements of an array on at most from step to step, that steps of constant sizes are worth it.
FEW = 32


#: Options with which a call may have variants that nobody asked for.
_PLAIN = {"specialize": None, "split": (), "device": "cpu", "backend": "llvm", "max_bytes": None, "mode": "default"}


def short_rows(arrays: Sequence[np.ndarray], options: Mapping[str, Any]) -> Any:
    """The option for a first call with many short rows or small matrices (colours of pixels, points in space), or of
    loops on few numbers (bodies, compartments, states of a filter). These loops unroll, and the long axis is the one
    that vectors are of. What the caller said stays."""
    if any(options.get(name, plain) not in (None, plain) for name, plain in _PLAIN.items()):
        return options.get("specialize")
    rows = [(k, axis) for k, a in enumerate(arrays)
            if a.ndim > 1 and 1 < a.shape[-1] <= SHORT and a.size >= MANY * a.shape[-1]
            for axis in (a.ndim - 2, a.ndim - 1) if 1 < a.shape[axis] <= SHORT]

    shapes = [a.shape for a in arrays]

    def named(f: Function) -> list[dict[str, int]] | None:
        every = {str(size): n for i, shape in zip(f.inputs, shapes)
                 for size, n in zip((i.declared or i.type).shape, shape) if isinstance(size, Dim)}
        found = {str((f.inputs[k].declared or f.inputs[k].type).shape[axis]) for k, axis in rows}
        found |= {name for carried in _loops(f) for name in _few(carried, every)}
        sizes = {name: n for name, n in every.items() if name in found}
        return [sizes] if sizes else None

    return named


def _loops(f: Function) -> Iterator[list[tuple]]:
    """For each loop the shapes of what a step hands on; not of series that are written place by place."""
    for v in f.values():
        written = v.op in (scan, while_) and any(isinstance(o.op.lowering, Update) for o in v.regions[-1].values)
        if v.op in (scan, while_) and not written and not names(v.attrs.get("length", 0)):
            yield [o.shape for o in v.operands[:v.attrs["carry"]]]


def _few(shapes: Sequence[tuple], sizes: Mapping[str, int]) -> set[str]:
    """The names of the sizes of what a loop hands on, if it is few numbers."""
    known = [[n if isinstance(n, int) else substitute(n, sizes) for n in shape] for shape in shapes]
    if any(not isinstance(n := math.prod(shape), int) or n > FEW for shape in known):
        return set()
    return {name for shape in shapes for n in shape if isinstance(n, Dim) for name in names(n)}
