"""``mode="debug"``: the real program, the reference, every pass and every kernel side by side, in every call.

Compared with the reference of the function as written: the program; every prefix of the pipeline, by the references of
its ops and by the real backend; and every kernel and library call of the final function alone, on what it reads.
Besides: no call writes into its arguments or returns memory that is not its own, and a plan without reuse of memory
gives the same bits. What is wrong is named: the pass and the rule, the kernel, or the plan; with the user's lines and
the smallest function that shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver.backend import Settings
from symc.errors import InternalError
from symc.ir.function import Function
from symc.ir.ops.effect import quiet
from symc.ir.record import replace
from symc.ir.value import Region
from symc.opt import DEFAULT
from symc.runtime.cpu.commit import replace_arrays
from symc.runtime.reference_program import ReferenceProgram
from symc.tools.debugging.blame import (
    BROKEN,
    Blame,
    attempt,
    blame_backend,
    blame_pass,
    steps_alone,
    text_of,
    wrong_stage,
)
from symc.tools.debugging.native import ON_CPU, Native, lowered
from symc.tools.debugging.sample import Sample
from symc.tools.debugging.tolerance import Difference, Oracle


class DebugProgram:
    """Runs the real program, and raises InternalError when it, a pass or a kernel disagrees with the reference."""

    def __init__(self, source: Function, final: Function, stages: Mapping[str, Function], program: Any,
                 donated: frozenset[int] = frozenset(), pipeline: str = DEFAULT, settings: Settings = ON_CPU):
        self.unchecked = program
        self._source, self._final, self._stages = source, final, dict(stages)
        self._donated, self._pipeline, self._settings = donated, pipeline, replace(settings, threads=1)
        self._natives: dict[tuple[Region, bool, bool], Native] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unchecked, name)

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], out: Any = None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        kept = [a.copy() for a in arrays]
        mine = [a.copy() for a in arrays]
        with quiet():  # raises what the function itself raises; what is printed, is printed by the program
            ReferenceProgram(self._source).run([a.copy() for a in kept], sizes)
        oracle = Oracle(self._source, kept)
        got = self.unchecked.run(mine, sizes, out)
        blame = self._blame(got, oracle)
        if blame is not None:
            raise self._error(blame)
        replace_arrays(cells, got[len(got) - len(cells) :])
        return got

    def _blame(self, got: Sequence[np.ndarray], oracle: Oracle) -> Blame | None:
        wrong = wrong_stage(self._stages, oracle)
        if wrong is not None:
            return blame_pass(*wrong, oracle, self._pipeline)
        found: Difference | str | None = oracle.difference(got)
        if found is not None:
            return blame_backend(self._final, found, oracle, self._donated, settings=self._settings)
        if not self._settings.backend.plans:
            return None
        return self._prefixes(oracle) or self._steps(oracle) or self._memory(oracle)

    def _native(self, f: Function, reuse: bool = True, alone: bool = False) -> Native:
        key = (f.body, reuse, alone)
        if key not in self._natives:
            self._natives[key] = Native(f, frozenset() if alone else self._donated, reuse, self._settings)
        return self._natives[key]

    def _prefixes(self, oracle: Oracle) -> Blame | None:
        """Every prefix of the pipeline by the real backend."""
        for f in {f.body: f for f in self._stages.values()}.values():
            low = f if f is self._final else lowered(f)
            found = attempt(lambda low=low: self._native(low).run(oracle.arrays), oracle)  # type: ignore[misc]
            if found is not None:
                return blame_backend(low, found, oracle, self._donated, settings=self._settings)
        return None

    def _steps(self, oracle: Oracle) -> Blame | None:
        """Every kernel and call of the final function alone."""
        for _, s in steps_alone(Sample(self._final, tuple(oracle.arrays))):
            alone = Oracle(s.function, s.arrays)
            found = attempt(lambda s=s: self._native(s.function, alone=True).run(s.arrays), alone)  # type: ignore[misc]
            if found is not None:
                return blame_backend(self._final, found, oracle, self._donated, settings=self._settings)
        return None

    def _memory(self, oracle: Oracle) -> Blame | None:
        """Checks that where values lie does not matter: not a bit is different without reuse of memory."""
        try:
            with_reuse, without = (self._native(self._final, r).run(oracle.arrays) for r in (True, False))
        except BROKEN as e:
            return Blame("plan", str(e), sample=Sample(self._final, tuple(oracle.arrays), self._donated))
        for k, (a, b) in enumerate(zip(with_reuse, without, strict=True)):
            if a.tobytes() != b.tobytes() and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                text = f"result {k} depends on whether memory is reused"
                return Blame("plan", text, sample=Sample(self._final, tuple(oracle.arrays), self._donated))
        return None

    def _error(self, blame: Blame) -> InternalError:
        said = blame.said
        what = f"debug: {blame.headline()}" + (f": {said}" if said else "")
        rows = [(blame.value, None, blame.lines[0] if blame.lines else None)] if blame.value else []
        with quiet():
            text = text_of(blame.sample) if blame.sample is not None else ""
        return InternalError(what, values=rows, where=blame.lines, text=text,
                             help=f"it turned {blame.change}" if blame.change else None)
