"""``compile(..., accuracy_report=True)``: how far results are from the exact ones, as written and as optimized.

Both forms run on sampled inputs; mpmath computes the real function that the user wrote. Errors are in units in the
last place of the output's dtype; a result that is not finite where the exact one is counts as lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError, named_packages
from symc.ir.function import Function
from symc.ir.ops.effect import quiet
from symc.ir.record import dataclass, field
from symc.ir.reference import run_region
from symc.notebook import Shown
from symc.tools.precise import PRECISION, NotPrecise, precise_values, to_precise, ulps
from symc.tools.sampling import Sample, leaves_of, samples, sizes_of


@dataclass
class Errors:
    """Errors of one form of an output: ulps of finite results, how many are lost, and where it is worst."""

    ulps: list[float] = field(default_factory=list)
    lost: int = 0
    worst: float = 0.0
    at: str = ""

    @property
    def median(self) -> float:
        return float(np.median(self.ulps)) if self.ulps else 0.0

    def add(self, found: np.ndarray, label: str) -> None:
        lost = np.isinf(found)
        self.lost += int(lost.sum())
        self.ulps += found[~lost].tolist()
        most = float(found.max(initial=0.0))
        if most > self.worst:
            self.worst, self.at = most, label


@dataclass
class OutputAccuracy:
    """One output: its errors as written and as optimized, over ``points`` numbers that exist. ``why``: why it was not
    measured."""

    name: str
    dtype: np.dtype
    written: Errors = field(default_factory=Errors)
    optimized: Errors = field(default_factory=Errors)
    points: int = 0
    why: str = ""


@dataclass
class AccuracyReport(Shown):
    """Table of ``f.accuracy_report``; ``str`` of it is a table."""

    outputs: list[OutputAccuracy]

    def __str__(self) -> str:
        head = ("output", "form", "median ulp", "worst ulp", "lost", "worst for inputs")
        rows: list[Sequence[str]] = [head]
        for o in self.outputs:
            name = f"{o.name} {o.dtype}"
            if o.why or not o.points:
                rows.append((name, "not measured: " + (o.why or "no sampled input has a result"), "", "", "", ""))
                continue
            for form, e in (("as written", o.written), ("optimized", o.optimized)):
                rows.append((name, form, _number(e.median), _number(e.worst), f"{e.lost} of {o.points}", e.at))
        widths = [max(len(r[k]) for r in rows if r[2] or r is head) for k in range(len(head))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows)


def _number(x: float) -> str:
    return "all digits" if np.isinf(x) else f"{x:.2g}"


def accuracy_report(written: Function, run: Any, names: Sequence[str]) -> AccuracyReport:
    """Compare the outputs of ``written``, as its ops' references compute them, with ``run(arrays, sizes, None)``."""
    outputs = [OutputAccuracy(n, v.dtype) for n, v in zip(names, written.outputs, strict=True)]
    wanted = [k for k, o in enumerate(outputs) if _measurable(written, k, o)]
    for s in samples(written):
        if wanted:
            _compare(written, run, s, outputs, wanted)
    return AccuracyReport(outputs)


def _measurable(f: Function, k: int, o: OutputAccuracy) -> bool:
    if o.dtype.kind != "f":
        o.why = "it is not of real numbers"
        return False
    sample = next(samples(f))
    try:
        _exact(f, k, sample)
    except NotPrecise as e:
        o.why = e.what
        return False
    return True


def _exact(f: Function, k: int, s: Sample) -> np.ndarray:
    with named_packages():
        import mpmath as mp

    env = {p: to_precise(a) for p, a in leaves_of(f, s.arrays).items()}
    with mp.workprec(PRECISION):
        return precise_values([f.outputs[k]], env, sizes_of(f))[0]


def _compare(f: Function, run: Any, s: Sample, outputs: list[OutputAccuracy], wanted: Sequence[int]) -> None:
    """Add the errors at one sample. A sample that the function refuses says nothing."""
    sizes = sizes_of(f)
    try:
        with quiet():
            as_written = run_region(f.body, s.arrays, sizes)
            optimized = run([np.array(a, order="C") for a in s.arrays], sizes, None)
    except SymcError:
        return
    for k in wanted:
        exact = _exact(f, k, s)
        errors = [ulps(x[k], exact, outputs[k].dtype) for x in (as_written, optimized)]
        exists = ulps(np.full(exact.shape, np.nan), exact, outputs[k].dtype) > 0
        outputs[k].points += int(exists.sum())
        outputs[k].written.add(errors[0][exists], s.label)
        outputs[k].optimized.add(errors[1][exists], s.label)
