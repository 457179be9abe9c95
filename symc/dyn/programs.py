"""Compiled functions of recordings: one for all recordings with the same key, whatever their arrays and sizes are.

A recording that is seen for the first time runs op by op, by NumPy references, as it may never come again. When it
comes again it is compiled. Floats that differ from those of the first time become arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.driver.compile import compile
from symc.driver.deferred_function import typed_input
from symc.dyn.recording import Call, Node, Trace, array_leaf
from symc.errors import SymcError
from symc.ir import location
from symc.ir.locks import new_lock
from symc.tensors.deferred import mapped
from symc.tensors.tensor import Tensor

#: How many programs are kept; the oldest go.
MOST = 1024
#: What is computed of a trace, from what its nodes are on symbolic leaves, and the gradient that is given, if any.
Results = Callable[[Trace, dict[Node, Any], Any], list[Any]]


class Program:
    """Program that computes one kind of recording. ``floats``: those of the first time."""

    def __init__(self, floats: list[float]):
        self.floats = floats
        self.met = False  # once, when it ran by references, which nobody keeps
        self.fixed: Any = None  # compiled, with the floats of the first time
        self.general: Any = None  # compiled, with floats as arguments

    def run(self, trace: Trace, arrays: list[Any], given: np.ndarray | None, results: Results) -> Any:
        if self.floats and (trace.floats != self.floats
                            or 0.0 in self.floats and _signs(trace.floats) != _signs(self.floats)):
            if self.general is None:
                self.general = _compiled(trace, given, results, "default", True)
            return self.general(*arrays, *trace.floats)
        if self.fixed is not None:
            return self.fixed(*arrays)
        if not self.met:
            self.met = True
            return _compiled(trace, given, results, "reference", False)(*arrays)
        self.fixed = _compiled(trace, given, results, "default", False)
        return self.fixed(*arrays)


_programs: dict[Any, Program] = {}
_lock = new_lock()


def run(trace: Trace, given: np.ndarray | None, results: Results) -> Any:
    """Runs what ``results`` makes of the nodes of a trace. ``given``: an array that is an argument beside the
    leaves."""
    arrays = [node.value for node in trace.leaves]
    key = trace.key
    if given is not None:
        arrays.append(given)
        key = key, Trace(array_leaf(given), False).key
    program = _programs.get(key)
    if program is not None and program.fixed is not None and not program.floats:
        return program.fixed(*arrays)
    if program is None:
        with _lock:
            program = _programs.setdefault(key, Program(trace.floats))
            if len(_programs) > MOST:
                del _programs[next(iter(_programs))]
    return program.run(trace, arrays, given, results)


def _signs(numbers: list[float]) -> list[float]:
    """Signs, which tell zeros apart."""
    return [math.copysign(1, x) for x in numbers]


def count() -> int:
    """The number of programs."""
    return len(_programs)


def _compiled(trace: Trace, given: np.ndarray | None, results: Results, mode: str, general: bool) -> Any:
    """The trace typed and compiled; with the floats as arguments if ``general``."""
    leaves = [typed_input(f"x{k}", n.value, False, n.loc) for k, n in enumerate(trace.leaves)]
    seeds = [] if given is None else [typed_input("g", given, False, None)]
    floats = [typed_input(f"c{k}", np.asarray(c), True, None) for k, c in enumerate(trace.floats)] if general else []
    replaced = iter(floats) if general else None
    done: dict[Node, Any] = dict(zip(trace.leaves, leaves, strict=True))
    for node in trace.nodes:
        if node not in done:
            done[node] = _replayed(node, done, replaced)
    found = results(trace, done, seeds[0] if seeds else None)
    return compile(found, [*leaves, *seeds, *floats], mode=mode)


def _replayed(node: Node, done: dict[Node, Any], floats: Any) -> Any:
    """A call on symbolic values, as if it were written with them on its own line."""
    assert isinstance(node, Call) and node.fn is not None
    parents = iter(node.parents)

    def filled(item: Any) -> Any:
        if item is Node:
            return done[next(parents)]
        return next(floats) if type(item) is float and floats is not None else item

    args, kwargs = mapped(filled, node.args), mapped(filled, node.kwargs or {})
    loc = node.loc
    with location.at((loc,) if loc else ()):
        try:
            return node.fn(*args, **kwargs)
        except SymcError as e:
            e.attach((), (loc,) if loc else ())
            raise


def as_tensor(x: Any) -> Tensor:
    """The result of a call, where one array is wanted."""
    if not isinstance(x, Tensor):
        raise SymcError(f"a call gave {type(x).__name__}, not an array", help="take one of its items first")
    return x
