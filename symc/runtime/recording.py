"""Code of plans on disk: what a plan was lowered to at given sizes, so that another process runs it without a plan.

A recording is data: words, the names of what they call, and numbers. Code that runs Python (ops without native code;
what it runs only where native code fails is found when it must be), machine code that is not on disk (kernels of Numba)
and large constants are not recorded.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.record import dataclass, field
from symc.runtime.calls import Calls, CallStep, LateStep, ReferenceStep
from symc.runtime.executor import NEVER, Template
from symc.runtime.lowered import Fresh, Lowered
from symc.runtime.machine_code import Symbol
from symc.runtime.symbols import find

#: The most bytes of constants and memory that a recording holds.
LIMIT = 1 << 20
#: No number of a plan is as large as this, and no address as small.
LEAST_ADDRESS = 1 << 44

Recording = dict[str, Any]


def recorded(lowered: Lowered) -> Recording | None:
    """The recording of some code; None if it is bound to this process."""
    t = lowered.template
    constants = list({id(a): a for _, a, _ in t.constants}.values())
    rare = all(isinstance(s, ReferenceStep) and s.rare for s in lowered.steps[1:])
    if not rare or sum(a.nbytes for a in (t.pool, *constants)) > LIMIT:
        return None
    words = t.words.copy()
    for k, _ in t.symbols:
        words[k] = 0
    if np.any((np.abs(words) >= LEAST_ADDRESS) & (words != NEVER)):
        return None
    places = {id(a): k for k, a in enumerate(constants)}
    return {
        "words": words.tolist(), "symbols": [[k, s.name] for k, s in t.symbols], "arena_at": t.arena.tolist(),
        "kept_at": t.kept.tolist(), "pool": t.pool.tobytes(),
        "constants": [[a.dtype.str, a.shape, a.tobytes()] for a in constants],
        "constants_at": [[slot, places[id(a)], offset] for slot, a, offset in t.constants],
        "sizes": list(lowered.sizes.items()), "arena": lowered.arena,
        "first": lowered.first, "given": lowered.given, "returned": lowered.returned, "updates": lowered.updates,
        "fresh": [[f.shape, f.dtype.str, f.output] for f in lowered.fresh], "loops": lowered.loops,
        "work": lowered.work, "torn": lowered.torn, "polls": lowered.polls, "steps": len(lowered.steps),
        "operations": sorted(t.operations),
    }  # fmt: skip


def restored(r: Recording, steps: Callable[[], Sequence[CallStep]]) -> Lowered:
    """The code of a recording. ``steps``: how to find its Python steps, should one run.

    Raises LookupError if the machine code it calls is not on disk any more.
    """
    words = np.array(r["words"], np.int64)
    symbols = tuple((k, Symbol(find(name), name)) for k, name in r["symbols"])
    for k, s in symbols:
        words[k] = s
    arrays = [np.frombuffer(data, dtype).reshape(shape) for dtype, shape, data in r["constants"]]
    template = Template(
        words, symbols, _rows(r["arena_at"]), _rows(r["kept_at"]), np.frombuffer(r["pool"], np.uint8),
        tuple((slot, arrays[k], offset) for slot, k, offset in r["constants_at"]),
        frozenset(r["operations"]))
    return Lowered(
        template, dict(r["sizes"]), r["arena"], r["first"], tuple(r["given"]),
        tuple(Fresh(tuple(shape), np.dtype(dtype), output) for shape, dtype, output in r["fresh"]),
        tuple((k, tuple(shape)) for k, shape in r["returned"]), tuple(r["updates"]),
        [Calls.pulse, *(LateStep(steps, k) for k in range(1, r["steps"]))], r["loops"], r["work"], r["torn"],
        r["polls"])


def _rows(pairs: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


@dataclass
class Recordings:
    """What is on disk of a function: recordings of its program, or of the two that it is (``TwoPrograms``; ``reads`` is
    None for one)."""

    rest: list[Recording] = field(default_factory=list)
    first: list[Recording] = field(default_factory=list)
    reads: list[int] | None = None
    names: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether a call can run."""
        return bool(self.rest) and (self.reads is None or bool(self.first))

    def encoded(self) -> bytes:
        """As ``marshal`` writes it: built in, where importing ``json`` takes 2 ms."""
        return marshal.dumps([self.rest, self.first, self.reads, self.names])

    @classmethod
    def decoded(cls, data: bytes) -> Recordings:
        return cls(*marshal.loads(data))


def sizes_of(r: Recording) -> Mapping[str, int]:
    """At which sizes it runs."""
    return dict(r["sizes"])
