"""Declarations of a workload file: cases, inputs, a float64 reference, and one builder a peer.

A builder is called once in a fresh process and returns the function to time. Building plus the first call, less a
steady call, is what the tables call compile time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

Array = np.ndarray
Arrays = Sequence[Array]


@dataclass(frozen=True)
class Case:
    """One size and dtype of a workload. Workloads subclass it to add their own parameters."""

    name: str
    dtype: str
    tolerance: float
    units: int = 1
    """Work items in one call (elements, steps), for the time-per-unit column."""
    large: bool = False
    """Arrays so large that page faults show: measured with the pages that ``malloc`` uses by default and huge ones."""
    skip: tuple[str, ...] = ()
    """Peers that this case is not worth waiting for."""
    threads: int = 1
    """With fewer threads than this the case is left out."""


CaseT = TypeVar("CaseT", bound=Case)


@dataclass(frozen=True)
class Run(Generic[CaseT]):
    """Arguments of a builder."""

    case: CaseT
    peer: str
    threads: int


@dataclass(frozen=True)
class Built:
    """A function to time, the arguments of each call, and how to see the result as arrays.

    A builder that takes all inputs at each call may return the bare function instead. ``outputs`` is for state: it
    gets the first call's result and adds the parameters that the call updated.
    """

    function: Callable[..., Any]
    arguments: Sequence[Any]
    outputs: Callable[[Any], Any] = lambda result: result
    stateful: bool = False
    """Later calls give other results than the first one, so only the first can be checked."""


Builder = Callable[..., "Built | Callable[..., Any]"]


def _undeclared(*arguments: Any) -> Any:
    raise NotImplementedError("the workload declares no inputs or no reference")


@dataclass
class Workload(Generic[CaseT]):
    """A named set of cases with the builders of each peer; see README.md for a worked example."""

    name: str
    title: str
    cases: dict[str, CaseT] = field(default_factory=dict)
    builders: dict[str, Builder] = field(default_factory=dict)
    make_inputs: Callable[[CaseT], Arrays] = _undeclared
    compute_reference: Callable[..., Any] = _undeclared

    def add(self, *cases: CaseT) -> None:
        self.cases.update({case.name: case for case in cases})

    def inputs(self, function: Callable[[CaseT], Arrays]) -> Callable[[CaseT], Arrays]:
        """Decorates the function that makes a case's arrays, the same ones in every process."""
        self.make_inputs = function
        return function

    def reference(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates ``function(case, *inputs)``, which computes the expected outputs from float64 inputs."""
        self.compute_reference = function
        return function

    def peer(self, *names: str) -> Callable[[Builder], Builder]:
        """Decorates a builder: ``builder(run, *inputs)`` with the inputs as the peer's own arrays."""

        def register(builder: Builder) -> Builder:
            self.builders.update(dict.fromkeys(names, builder))
            return builder

        return register

    def peers(self, case: CaseT) -> list[str]:
        """Names of those that have a builder, and of those that convert another's."""
        from benchmarks.converted import CONVERTERS

        own = [name for name in self.builders if name not in case.skip]
        return [*own, *(name for name, (source, _) in CONVERTERS.items() if source in own and name not in own)]
