"""Code of plans on disk: what a plan was lowered to, so that another process runs it without a plan, at any sizes.

A recording is data: words, the names of what they call, and numbers. Code that runs Python (ops without native code;
what it runs only where native code fails is found when it must be), machine code that is not on disk (kernels of Numba)
and large constants are not recorded.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.ir.record import dataclass
from symc.ir.types import as_dtype
from symc.runtime.cpu.calls import Calls, CallStep, LateStep, only_where_native_code_fails
from symc.runtime.cpu.executable import Template
from symc.runtime.cpu.lowered import Fresh, Lowered
from symc.runtime.cpu.native.instructions import NEVER
from symc.runtime.cpu.symbols import find

#: The most bytes of constants and memory that a recording holds.
LIMIT = 1 << 20
#: No number of a plan is as large as this, and no address as small.
LEAST_ADDRESS = 1 << 44
#: Numbers that are.
FAR = (NEVER, 2**63 - 1, 2**62)

Recording = dict[str, Any]


def recorded(lowered: Lowered) -> Recording | None:
    """The recording of some code; None if it is bound to this process."""
    t = lowered.template
    constants = list({id(a): a for _, a, _ in t.constants}.values())
    rare = all(map(only_where_native_code_fails, lowered.steps[1:]))
    if not rare or sum(a.nbytes for a in (t.pool, *constants)) > LIMIT:
        return None
    words = t.words.copy()
    for k, _ in t.symbols:
        words[k] = 0
    if np.any((np.abs(words) >= LEAST_ADDRESS) & ~np.isin(words, FAR)):
        return None
    places = {id(a): k for k, a in enumerate(constants)}
    return {
        "words": words.tolist(), "straight": t.straight, "symbols": [[k, s.name] for k, s in t.symbols],
        "arena_at": t.arena.tolist(), "kept_at": t.kept.tolist(), "pool": t.pool.tobytes(),
        "constants": [[as_dtype(a.dtype).str, a.shape, a.tobytes()] for a in constants],
        "constants_at": [[slot, places[id(a)], offset] for slot, a, offset in t.constants],
        "first": lowered.first, "given": lowered.given, "returned": lowered.returned, "updates": lowered.updates,
        "fresh": [[f.dims, f.ndim, f.dtype.str, f.output] for f in lowered.fresh], "names": dict(lowered.names),
        "loops": lowered.loops, "torn": lowered.torn, "polls": lowered.polls, "steps": len(lowered.steps),
    }  # fmt: skip


def restored(r: Recording, steps: Callable[[], Sequence[CallStep]]) -> Lowered:
    """The code of a recording. ``steps``: how to find its Python steps, should one run.

    Raises LookupError if the machine code it calls is not on disk any more.
    """
    words = np.array(r["words"], np.int64)
    symbols = tuple((k, find(name)) for k, name in r["symbols"])
    for k, s in symbols:
        words[k] = s
    arrays = [np.frombuffer(data, as_dtype(dtype)).reshape(shape) for dtype, shape, data in r["constants"]]
    template = Template(
        words, r["straight"], symbols, _rows(r["arena_at"]), _rows(r["kept_at"]), np.frombuffer(r["pool"], np.uint8),
        tuple((slot, arrays[k], offset) for slot, k, offset in r["constants_at"]))
    return Lowered(
        template, r["first"], r["given"],
        tuple(Fresh(dims, ndim, as_dtype(dtype), output) for dims, ndim, dtype, output in r["fresh"]),
        tuple(map(tuple, r["returned"])), tuple(r["updates"]), r["names"],
        [Calls.pulse, *(LateStep(steps, k) for k in range(1, r["steps"]))], (), r["loops"], r["torn"], r["polls"])


def _rows(pairs: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


@dataclass
class Recordings:
    """Files of a function on disk: the recording of its program (``rest``), and of its prologue (``first``), if there
    is one (``reads`` is None if not). ``final``: fingerprint of the function that was planned."""

    rest: Recording | None = None
    first: Recording | None = None
    reads: list[int] | None = None
    final: str = ""

    @property
    def whole(self) -> bool:
        """True if a call can run."""
        return self.rest is not None and (self.reads is None or self.first is not None)

    def encoded(self) -> bytes:
        """As ``marshal`` writes it: built in, where importing ``json`` takes 2 ms."""
        return marshal.dumps([self.rest, self.first, self.reads, self.final])

    @classmethod
    def decoded(cls, data: bytes) -> Recordings:
        return cls(*marshal.loads(data))
