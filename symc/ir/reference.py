"""The reference evaluator: runs each op's NumPy reference. It defines what a program means."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import ExecutionError, IndexingError, InternalError, SymcError, missing_package, of_handler
from symc.ir import location
from symc.ir.dim import Dim, Measured
from symc.ir.dtypes import computed, foreign, is_foreign
from symc.ir.function import Function, Hints, measured_names
from symc.ir.op import keeps_storage
from symc.ir.ops.effect import program_order
from symc.ir.ops.index import explain_bounds
from symc.ir.record import dataclass
from symc.ir.size_values import names, solve
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType, TupleType, concrete_shape
from symc.ir.value import Region, Value

#: Called in every step of a body, after every op: the value, its result, its operands, the user's lines of the body.
Within = Callable[[Value, Any, list[Any], "Hints | None"], None]
#: What gives the result of an op on its operands.
Step = Callable[[Value, list[Any]], Any]


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
                from symc.ir.size_values import substitute

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
    inside: location.Inside | None = None,
) -> list[Any]:
    """The results of a region on arrays. ``check``: every op's result must have the inferred dtype and shape."""
    env: dict[Value, Any] = dict(zip(region_params(region), arrays, strict=True))
    with np.errstate(all="ignore"):
        return run_values(region.results, env, sizes, check=check, hints=hints, inside=inside)


def run_values(
    roots: Sequence[Value],
    env: dict[Value, Any],
    sizes: Mapping[str, int],
    *,
    check: bool = False,
    hints: Hints | None = None,
    inside: location.Inside | None = None,
) -> list[Any]:
    """Evaluate ``roots``, given arrays for their leaves; ``env`` gains every value evaluated."""
    for v in postorder(roots, stop=env.__contains__):
        if v not in env:
            env[v] = apply(v, [env[o] for o in v.operands], sizes, check, hints, inside)
    return [env[r] for r in roots]


def run_free(roots: Sequence[Value], env: Mapping[Value, Any], *, check: bool = False) -> list[Any]:
    """Evaluate free values, given arrays for their leaves. Sizes that are data are computed first."""
    sizes = bind_sizes([v.type for v in env], [np.shape(a) for a in env.values()])
    for name in measured_names(roots) if Measured.made else ():
        sizes[name] = int(run_values([name.value], dict(env), sizes)[0])
    return run_values(roots, dict(env), sizes, check=check)


class RegionCall:
    """A region as a function of arrays: what the reference of an op with regions is given.

    ``types`` are dtype and shape of every result. The sequence of ops is found once for a region, so that a loop's body
    does not walk its graph in every step, nor a loop in a loop its own.
    """

    def __init__(self, region: Region, sizes: Mapping[str, int], step: Step):
        self.region, self._step = region, step
        self.types = [(r.type.dtype, concrete_shape(r.type.shape, sizes)) for r in region.results]
        found = _schedules.get(region)
        if found is None:
            found = _schedules[region] = schedule(region.leaves, region.results)
        self._schedule = found

    def __call__(self, *arrays: Any) -> list[Any]:
        with np.errstate(all="ignore"):
            return self._schedule.run(arrays, self._step)


@dataclass(frozen=True)
class Schedule:
    """Values in the order of their computation: (value, slots of its operands, slots that nobody reads after it).

    Slots are numbered: leaves, then steps. Leaves are never among the last.
    """

    steps: list[tuple[Value, list[int], list[int]]]
    results: list[int]

    def run(self, arrays: Sequence[Any], step: Step) -> list[Any]:
        """The results on arrays of the leaves, by what ``step`` gives for each op on its operands."""
        frame: list[Any] = [*arrays, *[None] * len(self.steps)]
        for at, (v, slots, last) in enumerate(self.steps, len(arrays)):
            frame[at] = step(v, [frame[k] for k in slots])
            for k in last:
                frame[k] = None
        return [frame[k] for k in self.results]


#: Those of regions, as long as the regions live.
_schedules: weakref.WeakKeyDictionary[Region, Schedule] = weakref.WeakKeyDictionary()


def schedule(leaves: Sequence[Value], roots: Sequence[Value]) -> Schedule:
    """Schedule that computes ``roots`` from ``leaves``, one op after another."""
    place: dict[Value, int] = {p: k for k, p in enumerate(leaves)}
    steps: list[tuple[Value, list[int], list[int]]] = []
    for v in program_order(roots, stop=place.__contains__):
        if v not in place:
            place[v] = len(place)
            steps.append((v, [place[o] for o in v.operands], []))
    seen = {*(place[r] for r in roots), *range(len(leaves))}
    for _, slots, last in reversed(steps):
        last += [k for k in dict.fromkeys(slots) if k not in seen]
        seen.update(slots)
    return Schedule(steps, [place[r] for r in roots])


def apply(v: Value, arrays: list[Any], sizes: Mapping[str, int], check: bool, hints: Hints | None,
          inside: location.Inside | None = None, within: Within | None = None) -> Any:
    """The result of one op. Raises what its reference raises: SymcErrors with the user's lines, NumPy's own errors as
    ExecutionError."""
    attrs = v.attrs.concrete(sizes) if v.attrs else {}
    if v.regions:
        attrs["regions"] = [_body(r, sizes, check, inside, within) for r in v.regions]
    try:
        try:
            out = referred(v, arrays, attrs)
        except IndexingError:
            explain_bounds(v, arrays)
            raise
    except SymcError as e:
        e.attach(_rows(arrays), location.in_order((hints or {}).get(v, ())))
        raise
    except MemoryError as e:
        e.add_note(f"in {v.op.name} : {v.type} {location.brief((hints or {}).get(v, ()))}")
        raise
    except ModuleNotFoundError as e:
        raise missing_package(e) from e
    except Exception as e:
        if of_handler(e):
            raise
        raise ExecutionError(
            f"{v.op.name}: {e}", values=_rows(arrays), where=location.in_order((hints or {}).get(v, ()))
        ) from e
    if check:
        _check(v, out, sizes)
    return out


def _body(region: Region, sizes: Mapping[str, int], check: bool, inside: location.Inside | None,
          within: Within | None) -> RegionCall:
    hints = (inside or {}).get(region)

    def step(v: Value, operands: list[Any]) -> Any:
        out = apply(v, operands, sizes, check, hints, inside, within)
        if within is not None:
            within(v, out, operands, hints)
        return out

    return RegionCall(region, sizes, step)


def referred(v: Value, arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """The result of the op's reference, which knows dtypes of NumPy: what is stored otherwise is computed in float32,
    and rounded."""
    if not any(is_foreign(t.dtype) for x in (v, *v.operands) for t in x.types) or keeps_storage(v):
        return v.op.reference(*arrays, **attrs)
    wide = [a.astype(computed(a.dtype)) if foreign(a.dtype) is not None else a for a in map(np.asarray, arrays)]
    out = v.op.reference(*wide, **{k: computed(a) if is_foreign(a) else a for k, a in attrs.items()})
    if isinstance(v.type, TupleType):
        return tuple(np.asarray(x).astype(t.dtype) for x, t in zip(out, v.types, strict=True))
    return np.asarray(out).astype(v.dtype)


def _rows(arrays: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    return [
        (f"operand {i}", f"{getattr(a, 'dtype', '')}{list(getattr(a, 'shape', ()))}", None)
        for i, a in enumerate(arrays)
    ]


def _check(v: Value, out: Any, sizes: Mapping[str, int]) -> None:
    types = v.types
    for t, array in zip(types, out if isinstance(v.type, TupleType) else (out,), strict=True):
        got = (getattr(array, "dtype", None), np.shape(array))
        if got != (t.dtype, concrete_shape(t.shape, sizes)):
            raise InternalError(f"{v.op.name}: the reference gives {got[0]}{list(got[1])}, its type is {t}")


def evaluate_function(f: Function, arrays: Sequence[np.ndarray], *, check: bool = False) -> list[np.ndarray]:
    """All results (outputs, then updates) of a function on arrays of its input types."""
    sizes = bind_sizes([i.type for i in f.inputs], [np.shape(a) for a in arrays])
    return run_region(f.body, [np.asarray(a) for a in arrays], sizes, check=check, hints=f.hints,
                      inside=f.inside)
