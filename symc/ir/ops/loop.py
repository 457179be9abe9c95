"""A whole loop inside one kernel: `loop` on scalars, and `pack`, which puts scalars side by side.

A small `scan` or `while` (carries of a few numbers, bodies of scalar arithmetic) is one kernel: its carries are local
variables, its rows are loaded and stored at the step's index. ``symc.opt.loops.small`` makes this form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.ir.dim import Size
from symc.ir.op import Op, register
from symc.ir.ops.kernel import results_type
from symc.ir.traverse import postorder
from symc.ir.types import TensorType, Type
from symc.ir.value import Region, Value

INDEX = TensorType("i64", ())


def _loop_infer(*types: TensorType, carry: int, length: Size | None, max_steps: Size | None, reverse: bool,
                regions: Sequence[Region]) -> Type:
    body = regions[0]
    if tuple(body.params) != (INDEX, *types) or (length is None) != (len(regions) == 2):
        raise InternalError(f"loop: operands {types} are not the body's params {body.params}")
    results = [r.type for r in body.results]
    if results[:carry] != list(types[:carry]) or any(t.ndim for t in results):
        raise InternalError(f"loop: {results} are not scalars that begin with the carries {types[:carry]}")
    if length is None:
        return results_type([*results, INDEX])
    return results_type([*results[:carry], *[TensorType(t.dtype, (length,)) for t in results[carry:]]])


def _loop_reference(*arrays: Any, carry: int, length: int | None, max_steps: int | None, reverse: bool, regions: Any):
    body, state, captured = regions[0], list(arrays[:carry]), arrays[carry:]
    if length is None:
        k = 0
        while (max_steps is None or k < max_steps) and regions[1](np.int64(k), *state, *captured)[0]:
            state, k = body(np.int64(k), *state, *captured), k + 1
        out = [*state, np.asarray(k, np.int64)]
    else:
        stacks = [np.empty((length, *shape), dtype) for dtype, shape in body.types[carry:]]
        for t in reversed(range(length)) if reverse else range(length):
            results = body(np.int64(t), *state, *captured)
            state = results[:carry]
            for stack, y in zip(stacks, results[carry:], strict=True):
                stack[t] = y
        out = [*state, *stacks]
    return out[0] if len(out) == 1 else tuple(out)


loop = register(Op(
    "loop",
    _loop_infer,
    _loop_reference,
    traits=frozenset({"unchecked"}),
    doc="A loop of scalars inside a kernel. Operands: `carry` scalars, captured values. The region takes the step's "
    "index, carries and captured values, and gives new carries, then ys. Results: last carries, then the ys of all "
    "steps. Without `length` a second region says whether to go on, and the last result is the number of steps.",
    defaults={"length": None, "max_steps": None, "reverse": False},
))  # fmt: skip


#: A loop that may take more steps than this, those of loops inside counted, looks for signals in between.
LONG = 4096


def most_steps(v: Value) -> float:
    """Bound of the steps a value takes, as far as it is known: 0 if it is no loop."""
    if v.op is not loop:
        return 0
    most = v.attrs["max_steps"] if v.attrs["length"] is None else v.attrs["length"]
    return most * max(1, steps_inside(v)) if isinstance(most, int) and most else 0 if most == 0 else math.inf


def steps_inside(v: Value) -> float:
    """Bound of the steps that the loops in one step of a loop take, all in all."""
    return sum(most_steps(x) for r in v.regions for x in postorder(r.results))


def is_long(v: Value) -> bool:
    """True for a loop that looks for signals."""
    return most_steps(v) > LONG


def _pack_infer(*types: TensorType, shape: tuple[Size, ...]) -> TensorType:
    if any(t is not types[0] for t in types):
        raise InternalError(f"pack: operands of types {types}")
    return TensorType(types[0].dtype, shape)


pack = register(Op(
    "pack",
    _pack_infer,
    lambda *xs, shape: np.stack(xs, -1).reshape(shape),
    traits=frozenset({"unchecked"}),
    doc="The operands (scalars, or the values of all steps) side by side on new last axes.",
))  # fmt: skip
