"""The reference evaluator with a hook: every result of an op passes through a function that may look at it or change
it. What perturbed and wider evaluations are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.ops.effect import quiet
from symc.ir.reference import Schedule, bind_sizes, schedule
from symc.ir.traverse import region_params
from symc.ir.types import TupleType, concrete_shape
from symc.ir.value import Region, Value

#: ``compute(value, operands, attrs)`` gives the result of an op: an array, or a tuple of them.
Compute = Callable[[Value, list[Any], dict[str, Any]], Any]


def by_reference(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """Result of an op by its reference."""
    return v.op.reference(*operands, **attrs)


class Evaluator:
    """Evaluates functions and regions, op by op, with ``compute`` for each op, in the bodies of loops too.

    ``entered(region, arrays)`` is called when a region starts.
    """

    def __init__(self, sizes: Mapping[str, int], compute: Compute = by_reference,
                 entered: Callable[[Region, Sequence[Any]], None] | None = None):
        self.sizes, self.compute, self.entered = sizes, compute, entered
        self._schedules: dict[Region, Schedule] = {}

    def region(self, region: Region, arrays: Sequence[Any]) -> list[Any]:
        """The results of a region."""
        s = self._schedules.get(region)
        if s is None:
            s = self._schedules[region] = schedule(region_params(region), region.results)
        if self.entered is not None:
            self.entered(region, arrays)
        frame: list[Any] = [*arrays, *[None] * len(s.steps)]
        for at, (v, slots, last) in enumerate(s.steps, len(arrays)):
            frame[at] = self.apply(v, [frame[k] for k in slots])
            for k in last:
                frame[k] = None
        return [frame[k] for k in s.results]

    def apply(self, v: Value, operands: list[Any]) -> Any:
        """The result of one op."""
        attrs = v.attrs.concrete(self.sizes) if v.attrs else {}
        if v.regions:
            attrs["regions"] = [_Body(self, r) for r in v.regions]
        return self.compute(v, operands, attrs)


class _Body:
    """A region as its op's reference is given it."""

    def __init__(self, evaluator: Evaluator, region: Region):
        self._evaluator, self._region = evaluator, region
        self.types = [(r.type.dtype, concrete_shape(r.type.shape, evaluator.sizes)) for r in region.results]

    def __call__(self, *arrays: Any) -> list[Any]:
        return self._evaluator.region(self._region, arrays)


def sizes_of(f: Function, arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """The sizes that arrays bind."""
    return bind_sizes([i.declared or i.type for i in f.inputs], [np.shape(a) for a in arrays])


def evaluate(f: Function, arrays: Sequence[np.ndarray], compute: Compute = by_reference) -> list[Any]:
    """The results of a function; nothing is printed."""
    with quiet(), np.errstate(all="ignore"):
        return Evaluator(sizes_of(f, arrays), compute).region(f.body, [np.array(a) for a in arrays])


def every_array(f: Function, arrays: Sequence[np.ndarray]) -> dict[Value, np.ndarray]:
    """The array of every value of the body of a function, parts of tuples included."""
    found: dict[Value, np.ndarray] = dict(zip(f.params, map(np.asarray, arrays), strict=True))
    evaluator = Evaluator(sizes_of(f, arrays))
    tuples: dict[Value, Any] = {}
    with quiet(), np.errstate(all="ignore"):
        for v, _, _ in schedule(f.params, f.body.results).steps:
            operands = [tuples[o] if o in tuples else found[o] for o in v.operands]
            out = evaluator.apply(v, operands)
            if isinstance(v.type, TupleType):
                tuples[v] = out
            else:
                found[v] = np.asarray(out)
    return found


def first_entries(f: Function, arrays: Sequence[np.ndarray]) -> dict[Region, list[np.ndarray]]:
    """Arrays that each region inside a function is given when it first runs."""
    found: dict[Region, list[np.ndarray]] = {}

    def enter(region: Region, given: Sequence[Any]) -> None:
        if region is not f.body:
            found.setdefault(region, [np.array(a) for a in given])

    with quiet(), np.errstate(all="ignore"):
        Evaluator(sizes_of(f, arrays), entered=enter).region(f.body, [np.array(a) for a in arrays])
    return found
