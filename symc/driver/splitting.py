"""Splitting of the arguments of a function over devices: equal parts of the first axes whose sizes are split
(``split=`` of ``compile``), the whole of everything else. And what results are then: parts too, or the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver.target import Target
from symc.errors import DTypeError, InputError, did_you_mean
from symc.ir import location
from symc.ir.dim import Dim, Size, size_name
from symc.ir.function import Function, Input, bound_names
from symc.ir.ops.collective import all_reduce
from symc.ir.record import dataclass
from symc.ir.size_values import names
from symc.ir.traverse import every_value
from symc.ir.value import Value
from symc.opt.facts.ranks import varying


@dataclass(frozen=True)
class Split:
    """``inputs``: which inputs are parts; ``names``: the sizes that are smaller for each rank, as users call them;
    ``dims``: as types in the function say them (sizes that must be equal are one there)."""

    inputs: tuple[int, ...] = ()
    names: frozenset[str] = frozenset()
    dims: frozenset[Size] = frozenset()


NOTHING = Split()
#: What NCCL has no reductions of.
NOT_REDUCED = (np.dtype("int16"), np.dtype("uint16"))


def split_of(interface: Sequence[Input], target: Target) -> Split:
    """The inputs of a function that are split. Nothing, where there is one device."""
    if not target.devices:
        return NOTHING
    wanted = {size_name(n) for n in target.split}
    dims = frozenset(i.type.shape[0] for i in interface if _first(i) in wanted)
    inputs = tuple(k for k, i in enumerate(interface) if i.type.shape[:1] and i.type.shape[0] in dims)
    return Split(inputs, frozenset(n for k in inputs for n in names(_first(interface[k]))), dims)


def _first(i: Input) -> Size:
    """The size of the first axis as it was declared."""
    t = i.declared or i.type
    return t.shape[0] if t.shape else 0


def is_part(shape: tuple[Size, ...], split: Split) -> bool:
    """True if a value of this shape is a part of what the function as a whole computes."""
    return bool(shape) and shape[0] in split.dims


def check_split(f: Function, target: Target, donated: frozenset[int]) -> None:
    """Raise for a function that cannot run on several devices, or would give other results on each of them."""
    if not target.devices:
        return
    if donated:
        raise InputError(f"{f.name}: arguments of several devices cannot be donated",
                         values=[_row(f, k) for k in sorted(donated)])
    _check_dtypes(f, target)
    split = split_of(f.inputs, target)
    _check_names(f, target, split)
    _check_results(f, target, split)


def _check_dtypes(f: Function, target: Target) -> None:
    for v in every_value(f.body):
        if v.op is all_reduce and v.dtype in NOT_REDUCED:
            raise DTypeError(f"all_reduce: numbers of dtype {v.dtype} cannot be reduced on {', '.join(target.devices)}",
                             values=[("x", v.type, None)], where=_lines(f, v), help="convert them: x.astype('int32')")


def _check_names(f: Function, target: Target, split: Split) -> None:
    known = bound_names(i.declared or i.type for i in f.inputs)
    for name in target.split:
        if name not in known:
            raise InputError(f"split: {f.name} has no size {name!r}", values=[_row(f, k) for k in range(len(f.inputs))],
                             help=did_you_mean(name, known))
    for d in split.dims:
        if not isinstance(d, Dim) or size_name(str(d)) != d:
            raise InputError(f"split: the size of the first axis must be {d} in all calls, and each device gets a part",
                             values=[_row(f, k) for k in split.inputs], help="constants and states have fixed it")
    mentioned = set().union(*(names(d) for d in split.dims)) | set(target.split)
    for k, i in enumerate(f.inputs):
        for t in (i.declared or i.type, i.type):
            whole = t.shape[1:] if k in split.inputs and i.role == "arg" else t.shape
            found = sorted(n for s in whole for n in names(s) if n in mentioned)
            if found:
                what = "a state" if i.role == "state" else "an argument"
                raise InputError(f"split: {found[0]} is a size of {what} elsewhere than in its first axis",
                                 values=[_row(f, k)], help="only the first axes of arguments are split")


def _check_results(f: Function, target: Target, split: Split) -> None:
    """Results and states are parts, or the same on all devices."""
    flags = varying(f, split.inputs, lambda v: _diverges(f, v))
    outputs = len(f.outputs)
    named = set().union(*(names(d) for d in split.dims))
    for k, (v, varies) in enumerate(zip(f.body.results, flags, strict=True)):
        state = f.inputs[f.updates[k - outputs]] if k >= outputs else None
        what = f"the new value of {state.name}" if state else f"output {k}" if outputs > 1 else "the output"
        rows = [(what, v.type, None)]
        part = is_part(v.shape, split) and state is None
        if named & {n for s in (v.shape[1:] if part else v.shape) for n in names(s)}:
            raise InputError(f"{what} of {f.name} has parts of other sizes than its first axis", values=rows,
                             where=_lines(f, v), help="only first axes can be put together again")
        if varies and not part:
            raise InputError(f"{what} would be another one on each of {', '.join(target.devices)}", values=rows,
                             where=_lines(f, v),
                             help="sc.parallel.all_reduce(value, 'mean') is the same on all: of a loss, of gradients")


def _diverges(f: Function, v: Value) -> None:
    raise InputError(f"all_reduce inside a {v.op.name} that depends on one part of the arguments: some devices would "
                     "wait for others that never come", where=_lines(f, v),
                     help="reduce the condition first: sc.parallel.all_reduce(number, 'maximum')")


def _lines(f: Function, v: Value) -> list[location.Loc]:
    return f.locations(v) or next((location.in_order(h[v]) for h in f.inside.values() if h.get(v)), [])


def _row(f: Function, k: int) -> tuple[str, Any, Any]:
    i = f.inputs[k]
    return (f"%{i.name}", i.declared or i.type, i.loc)


def part_sizes(sizes: Mapping[str, int], split: Split, ranks: int) -> dict[str, int]:
    """The sizes of what each rank gets."""
    return {n: s // ranks if n in split.names else s for n, s in sizes.items()}
