"""Control flow: `scan`, `while` and `cond`, ordinary ops whose bodies are closed regions.

The params of a body are the phi nodes of its loop. Everything a body uses from outside is an operand, so loops nest,
print, optimize and differentiate like any other value. How a body is traced and closed is in ``symc.ir.bodies``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, InternalError, ShapeError
from symc.ir.dim import Size
from symc.ir.op import Control, Op, Regional, lookup, register
from symc.ir.ops.kernel import results_type
from symc.ir.types import TensorType, Type
from symc.ir.value import Region, Value, param

BOOL = TensorType("bool", ())
COUNT = TensorType("i64", ())


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise InternalError(message)


def _same_types(what: str, have: Sequence[Type], want: Sequence[Type]) -> None:
    _check(tuple(have) == tuple(want), f"{what}: {list(map(str, have))} is not {list(map(str, want))}")


# --- scan -------------------------------------------------------------------------------------------------------------


def element_type(t: TensorType) -> TensorType:
    """The type of ``x[t]``."""
    return TensorType(t.dtype, t.shape[1:])


def _scan_infer(*types: TensorType, carry: int, xs: int, length: Size, reverse: bool,
                regions: Sequence[Region]) -> Type:
    (body,) = regions
    _check(carry >= 0 and xs >= 0 and carry + xs <= len(types), f"scan: {carry} carries and {xs} xs of {len(types)}")
    for t in types[carry : carry + xs]:
        if t.ndim == 0 or t.shape[0] != length:
            raise ShapeError(f"scan: an x of type {t} has no leading axis of size {length}")
    elements = [element_type(t) for t in types[carry : carry + xs]]
    _same_types("scan: the params of the body", body.params, [*types[:carry], *elements, *types[carry + xs :]])
    results = [r.type for r in body.results]
    _same_types("scan: the new carries", results[:carry], types[:carry])
    return results_type([*types[:carry], *[TensorType(t.dtype, (length, *t.shape)) for t in results[carry:]]])


def _scan_reference(*arrays: np.ndarray, carry: int, xs: int, length: int, reverse: bool, regions: Sequence[Any]):
    (body,) = regions
    state, rows, captured = list(arrays[:carry]), arrays[carry : carry + xs], arrays[carry + xs :]
    stacks = [np.empty((length, *shape), dtype) for dtype, shape in body.types[carry:]]
    for t in reversed(range(length)) if reverse else range(length):
        results = body(*state, *[x[t, ...] for x in rows], *captured)
        state = results[:carry]
        for stack, y in zip(stacks, results[carry:], strict=True):
            stack[t] = y
    out = [*state, *stacks]
    return out[0] if len(out) == 1 else tuple(out)


def _params(*types: TensorType) -> list[Value]:
    return [param(k, t) for k, t in enumerate(types)]


def _scan_samples() -> Iterator[tuple[tuple, dict]]:
    add, mul, sin = lookup("add"), lookup("mul"), lookup("sin")
    f64, row = TensorType("f64", ()), TensorType("f64", (3,))
    h, x, w = _params(f64, f64, f64)
    new = add(mul(h, w), sin(x))
    body = Region((f64, f64, f64), [new, mul(new, x)])
    xs = np.linspace(-1, 1, 4)
    for reverse in (False, True):
        yield ((np.array(0.5), xs, np.array(0.9)),
               dict(carry=1, xs=1, length=4, reverse=reverse, regions=(body,)))
    h, x = _params(row, row)
    body = Region((row, row), [mul(h, x)])
    yield (np.arange(1.0, 4.0), np.ones((2, 3)) * 1.5), dict(carry=1, xs=1, length=2, reverse=False, regions=(body,))
    yield (np.arange(1.0, 4.0), np.ones((0, 3))), dict(carry=1, xs=1, length=0, reverse=False, regions=(body,))


scan = register(Op(
    "scan",
    _scan_infer,
    _scan_reference,
    derivative=Regional(),
    lowering=Control(),
    samples=_scan_samples,
    doc="A loop of `length` steps. Operands: `carry` first carries, `xs` arrays with one row a step, captured values. "
    "The region takes carries, rows and captured values, and gives new carries, then ys. Results: the last carries, "
    "then the ys of all steps, stacked. `reverse` visits the rows from the last to the first.",
    defaults={"reverse": False},
))  # fmt: skip
scan.facts.least = lambda v: [(v.attrs["length"], 0, "length")]


# --- while ------------------------------------------------------------------------------------------------------------


def _while_infer(*types: TensorType, carry: int, max_steps: Size | None, regions: Sequence[Region]) -> Type:
    condition, body = regions
    _check(0 <= carry <= len(types), f"while: {carry} carries of {len(types)} operands")
    _same_types("while: the params of the condition", condition.params, types)
    _same_types("while: the params of the body", body.params, types)
    _same_types("while: the condition", [r.type for r in condition.results], [BOOL])
    _same_types("while: the new carries", [r.type for r in body.results], types[:carry])
    return results_type([*types[:carry], COUNT])


def _while_reference(*arrays: np.ndarray, carry: int, max_steps: int | None, regions: Sequence[Callable]):
    condition, body = regions
    state, captured, steps = list(arrays[:carry]), arrays[carry:], 0
    while (max_steps is None or steps < max_steps) and condition(*state, *captured)[0]:
        state = body(*state, *captured)
        steps += 1
    out = [*state, np.asarray(steps, np.int64)]
    return out[0] if len(out) == 1 else tuple(out)


def _while_samples() -> Iterator[tuple[tuple, dict]]:
    add, mul, lt = lookup("add"), lookup("mul"), lookup("lt")
    f64 = TensorType("f64", ())
    x, limit = _params(f64, f64)
    regions = Region((f64, f64), [lt(x, limit)]), Region((f64, f64), [add(mul(x, 1.5), 0.1)])
    for max_steps in (None, 3, 0):
        yield (np.array(0.3), np.array(9.0)), dict(carry=1, max_steps=max_steps, regions=regions)
    yield (np.array(10.0), np.array(9.0)), dict(carry=1, max_steps=None, regions=regions)


while_ = register(Op(
    "while",
    _while_infer,
    _while_reference,
    derivative=Regional(),
    lowering=Control(),
    samples=_while_samples,
    doc="A loop while the first region holds, at most `max_steps` steps. Operands: `carry` initial carries, captured "
    "values; both regions take them, the second gives new carries. Results: the last carries, and the number of steps.",
    defaults={"max_steps": None},
))  # fmt: skip


# --- cond -------------------------------------------------------------------------------------------------------------


def _cond_infer(which: TensorType, *types: TensorType, regions: Sequence[Region]) -> Type:
    if which is not BOOL and which is not COUNT:
        raise DTypeError(f"cond: the choice must be a bool[] or an i64[], not {which}")
    _check(len(regions) == 2 if which is BOOL else len(regions) > 0, f"cond: {len(regions)} regions for {which}")
    for r in regions:
        _same_types("cond: the params of a branch", r.params, types)
        _same_types("cond: the results of a branch", [v.type for v in r.results],
                    [v.type for v in regions[0].results])
    return results_type([v.type for v in regions[0].results])


def chosen(which: Any, branches: int) -> int:
    """The number of the branch that runs: True means the first of two, an index is moved into range."""
    if np.asarray(which).dtype == bool:
        return 0 if which else 1
    return min(max(int(which), 0), branches - 1)


def _cond_reference(which, *arrays, regions):
    out = regions[chosen(which, len(regions))](*arrays)
    return out[0] if len(out) == 1 else tuple(out)


def _cond_samples() -> Iterator[tuple[tuple, dict]]:
    sin, mul = lookup("sin"), lookup("mul")
    row = TensorType("f64", (3,))
    x, y = _params(row, row)
    first, second, third = (Region((row, row), rs) for rs in ([sin(x), mul(x, y)], [mul(y, y), x], [x, y]))
    data = np.linspace(0.1, 1, 3), np.linspace(-1, 2, 3)
    for which in (True, False):
        yield (np.array(which), *data), dict(regions=(first, second))
    for k in (-1, 1, 7):
        yield (np.array(k), *data), dict(regions=(first, second, third))


cond = register(Op(
    "cond",
    _cond_infer,
    _cond_reference,
    derivative=Regional(),
    lowering=Control(),
    samples=_cond_samples,
    doc="One of several regions, the only one that runs. The first operand chooses: a bool[] (True: the first of two) "
    "or an i64[] (its number, moved into range). The others are what every region takes.",
))  # fmt: skip
