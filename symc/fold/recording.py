"""Graphs that are recorded and run by hand, values in the middle, and examples in lock step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.fold.record import Node, Recorder
from symc.tensors.callsite import caller
from symc.tensors.state import SharedVariable


class Recording(Recorder):
    """A graph recorded by hand, and its values."""

    def __init__(self, step: Any):
        super().__init__(step.program.blocks)
        self._step = step
        self._known: list[int] = []  # rows of the nodes that have run
        self._sizes = np.zeros(len(step.program.types), np.int64)

    def flush(self) -> None:
        """Run what was recorded since the last time, so that its values are there; what is recorded later may use
        them. Nothing that has run is run again."""
        with self._step._lock:
            self._flush()

    def _flush(self) -> None:
        if self._step._last is None or self._step._last[1] is not self:  # another run is in memory now
            self._known, self._sizes, self._step._last = [], np.zeros_like(self._sizes), None
        first = len(self._known)
        if first == len(self._op):
            return
        g, attrs = self._graph(first)
        old = np.flatnonzero(g.args < 0)
        g.args[old] = [-1 - self._known[a] for a in (g.args[old] + first).tolist()]
        s = self._step._forward_more(g, attrs, self._sizes, self)
        self._known += s.row.tolist()
        self._sizes = s.sizes.copy()

    def value(self, node: Node) -> Any:
        """The value of a node: an array, or the fields of a struct, copied. It runs what has not run yet."""
        with self._step._lock:
            if not isinstance(node, int | np.integer) or not 0 <= node < len(self._op):
                raise InputError(f"there is no node {node!r:.40}, of {len(self._op)}", where=[caller()],
                                 help="what a block records is a number that stands for its value")
            self.flush()
            return self._step._rows(self._blocks[self._op[node]].out, self._known[node])

    def run(self, train: bool | None = None) -> float:
        """The loss of all that was recorded. ``train``: whether parameters are updated; by default if there is an
        optimizer."""
        g, attrs = self._graph()
        step = self._step
        train = step.optimizer is not None if train is None else train
        with step._lock:
            loss = step.run([(g, attrs, self)], train, max(len(self._starts), 1))
            self._take()
        return loss

    def gradients(self) -> tuple[float, dict[SharedVariable, Any]]:
        """The loss of all that was recorded, and the gradient of each parameter, as of ``Step.gradients``."""
        with self._step._lock:
            found = self._step._gradients([(*self._graph(), self)], max(len(self._starts), 1))
            self._take()
        return found

    def _take(self) -> None:
        """Know where everything is after a run of all."""
        assert self._step._last is not None
        s = self._step._last[0]
        self._known, self._sizes = s.row.tolist(), s.sizes.copy()

    def mark(self) -> tuple:
        """A place to come back to."""
        counts = {key: len(values) for key, values in self._attrs.items()}
        return (len(self._op), len(self._args), counts, self._known, len(self._known), self._sizes.copy(),
                len(self._starts), {name: len(nodes) for name, nodes in self._metrics.items()})

    def rewind(self, mark: tuple) -> None:
        """Forget what was recorded since a mark."""
        if not isinstance(mark, tuple) or len(mark) != 8:
            raise InputError(f"g.rewind takes what g.mark() gave, not {mark!r:.40}", where=[caller()])
        nodes, args, counts, list_, known, sizes, starts, metrics = mark
        if nodes > len(self._op):
            raise InputError(f"this mark is after node {nodes - 1}, which was forgotten", where=[caller()])
        del self._op[nodes:], self._aptr[nodes + 1 :], self._args[args:]
        del self._known[nodes:], self._starts[starts:]
        for key, values in self._attrs.items():
            del values[counts[key] :]
        for name, found in self._metrics.items():
            del found[metrics.get(name, 0) :]
        if self._known is list_:  # else everything has run again since, and rows that are not used any more stay
            del self._known[known:]
            self._sizes = sizes.copy()


@contextmanager
def record(step: Any) -> Iterator[Recording]:
    """``with fd.record(step) as g:`` a graph by hand: ``x = g.leaf(word=3)``, ``g.run(train=True)``, ``g.value(x)``."""
    yield Recording(step)


def lockstep(step: Any, fn: Callable[..., Any], examples: Sequence[Any], group: int = 64, train: bool = False) -> list:
    """Run ``fn(g, example)`` for each example. They are generators, of which ``group`` run side by side: ``yield node``
    waits for the value of a node, which then is what the ``yield`` gives (``yield [a, b]`` for several). Everything
    that was recorded when all wait runs in batches. What they return is returned; with ``train`` the losses that a
    group has recorded make a step of the optimizer."""
    results: list[Any] = []
    for first in range(0, len(examples), group):
        g = Recording(step)
        some = examples[first : first + group]
        found: list[Any] = [None] * len(some)
        running = {}
        for k, x in enumerate(some):
            g.example()
            running[k] = fn(g, x)
            if not hasattr(running[k], "send"):
                raise InputError(f"fd.lockstep takes a generator function, which yields nodes; of example {first + k} "
                                 f"this one gives {type(running[k]).__name__}", where=[caller()])
        waiting: dict[int, Any] = dict.fromkeys(running)
        while running:
            asked = {}
            for k, generator in list(running.items()):
                try:
                    asked[k] = generator.send(waiting[k])
                except StopIteration as stop:
                    found[k] = stop.value
                    del running[k]
            g.flush()
            waiting = {k: [g.value(v) for v in nodes] if isinstance(nodes, list | tuple) else g.value(nodes)
                       for k, nodes in asked.items()}
        if train:
            g.run(train=True)
        results += found
    return results
