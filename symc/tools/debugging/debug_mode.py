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

from symc.errors import InternalError
from symc.ir.function import Function
from symc.ir.ops.effect import quiet
from symc.ir.value import Region
from symc.opt import DEFAULT
from symc.runtime.cpu.commit import replace_arrays
from symc.runtime.reference_program import ReferenceProgram
from symc.tools.debugging.guilt import (
    BROKEN,
    Guilt,
    attempt,
    blame_backend,
    blame_pass,
    steps_alone,
    text_of,
    wrong_stage,
)
from symc.tools.debugging.native import Native, lowered
from symc.tools.debugging.sample import Sample
from symc.tools.debugging.trust import Difference, Trusted


class DebugProgram:
    """Runs the real program, and raises InternalError when it, a pass or a kernel disagrees with the reference."""

    def __init__(self, source: Function, final: Function, stages: Mapping[str, Function], program: Any,
                 donated: frozenset[int] = frozenset(), pipeline: str = DEFAULT, backend: str = "llvm"):
        self.unchecked = program
        self._source, self._final, self._stages = source, final, dict(stages)
        self._donated, self._pipeline, self._backend = donated, pipeline, backend
        self._natives: dict[tuple[Region, bool, bool], Native] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unchecked, name)

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], out: Any = None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        kept = [a.copy() for a in arrays]
        mine = [a.copy() for a in arrays]
        with quiet():  # raises what the function itself raises; what is printed, is printed by the program
            ReferenceProgram(self._source).run([a.copy() for a in kept], sizes)
        trusted = Trusted(self._source, kept)
        got = self.unchecked.run(mine, sizes, out)
        guilt = self._guilt(got, trusted)
        if guilt is not None:
            raise self._error(guilt)
        replace_arrays(cells, got[len(got) - len(cells) :])
        return got

    def _guilt(self, got: Sequence[np.ndarray], trusted: Trusted) -> Guilt | None:
        wrong = wrong_stage(self._stages, trusted)
        if wrong is not None:
            return blame_pass(*wrong, trusted, self._pipeline)
        found: Difference | str | None = trusted.difference(got)
        if found is not None:
            return blame_backend(self._final, found, trusted, self._donated, backend=self._backend)
        if self._backend == "numpy":
            return None
        return self._prefixes(trusted) or self._steps(trusted) or self._memory(trusted)

    def _native(self, f: Function, reuse: bool = True, alone: bool = False) -> Native:
        key = (f.body, reuse, alone)
        if key not in self._natives:
            self._natives[key] = Native(f, frozenset() if alone else self._donated, reuse, self._backend)
        return self._natives[key]

    def _prefixes(self, trusted: Trusted) -> Guilt | None:
        """Every prefix of the pipeline by the real backend."""
        for f in {f.body: f for f in self._stages.values()}.values():
            low = f if f is self._final else lowered(f)
            found = attempt(lambda low=low: self._native(low).run(trusted.arrays), trusted)  # type: ignore[misc]
            if found is not None:
                return blame_backend(low, found, trusted, self._donated, backend=self._backend)
        return None

    def _steps(self, trusted: Trusted) -> Guilt | None:
        """Every kernel and call of the final function alone."""
        for _, s in steps_alone(Sample(self._final, tuple(trusted.arrays))):
            alone = Trusted(s.function, s.arrays)
            found = attempt(lambda s=s: self._native(s.function, alone=True).run(s.arrays), alone)  # type: ignore[misc]
            if found is not None:
                return blame_backend(self._final, found, trusted, self._donated, backend=self._backend)
        return None

    def _memory(self, trusted: Trusted) -> Guilt | None:
        """Checks that where values lie does not matter: not a bit is different without reuse of memory."""
        try:
            with_reuse, without = (self._native(self._final, r).run(trusted.arrays) for r in (True, False))
        except BROKEN as e:
            return Guilt("plan", str(e), sample=Sample(self._final, tuple(trusted.arrays), self._donated))
        for k, (a, b) in enumerate(zip(with_reuse, without, strict=True)):
            if a.tobytes() != b.tobytes() and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                text = f"result {k} depends on whether memory is reused"
                return Guilt("plan", text, sample=Sample(self._final, tuple(trusted.arrays), self._donated))
        return None

    def _error(self, guilt: Guilt) -> InternalError:
        said = guilt.difference if guilt.difference is not None else guilt.error
        what = f"debug: {guilt.headline()}" + (f": {said}" if said else "")
        rows = [(guilt.value, None, guilt.lines[0] if guilt.lines else None)] if guilt.value else []
        with quiet():
            text = text_of(guilt.sample) if guilt.sample is not None else ""
        return InternalError(what, values=rows, where=guilt.lines, text=text,
                             help=f"it turned {guilt.change}" if guilt.change else None)
