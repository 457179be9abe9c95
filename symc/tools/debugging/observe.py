"""The reference evaluator with a hook: every result of an op passes through a function that may look at it or change
it. What perturbed and wider evaluations are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.ops.effect import quiet
from symc.ir.reference import RegionCall, bind_sizes, schedule
from symc.ir.types import TupleType
from symc.ir.value import Region, Value

#: ``compute(value, operands, attrs)`` gives the result of an op: an array, or a tuple of them.
Compute = Callable[[Value, list[Any], dict[str, Any]], Any]


def by_reference(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """Result of an op by its reference."""
    return v.op.reference(*operands, **attrs)


class Evaluator:
    """Evaluates functions and regions, op by op, with ``compute`` for each op, in the bodies of loops too. ``call``:
    the type of regions as functions."""

    def __init__(self, sizes: Mapping[str, int], compute: Compute = by_reference,
                 call: type[RegionCall] = RegionCall):
        self.sizes, self.compute, self.call = sizes, compute, call

    def region(self, region: Region) -> RegionCall:
        """A region as a function of arrays."""
        return self.call(region, self.sizes, self.apply)

    def apply(self, v: Value, operands: list[Any]) -> Any:
        """The result of one op."""
        attrs = v.attrs.concrete(self.sizes) if v.attrs else {}
        if v.regions:
            attrs["regions"] = [self.region(r) for r in v.regions]
        return self.compute(v, operands, attrs)


def sizes_of(f: Function, arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """The sizes that arrays bind."""
    return bind_sizes([i.declared or i.type for i in f.inputs], [np.shape(a) for a in arrays])


def evaluate(f: Function, arrays: Sequence[np.ndarray], compute: Compute = by_reference) -> list[Any]:
    """The results of a function; nothing is printed."""
    with quiet():
        return Evaluator(sizes_of(f, arrays), compute).region(f.body)(*[np.array(a) for a in arrays])


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

    class Noted(RegionCall):
        def __call__(self, *given: Any) -> list[Any]:
            if self.region is not f.body:
                found.setdefault(self.region, [np.array(a) for a in given])
            return super().__call__(*given)

    with quiet():
        Evaluator(sizes_of(f, arrays), call=Noted).region(f.body)(*[np.array(a) for a in arrays])
    return found
