"""``sc.bisect``: which pass, which firing of which rule, or which kernel makes a function wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symc.driver.deferred_function import Specializing
from symc.driver.function import CompiledFunction
from symc.errors import InputError
from symc.ir.ops.effect import quiet
from symc.notebook import Shown
from symc.opt import DEFAULT
from symc.tensors.callsite import at_caller, caller
from symc.tensors.pytree import match
from symc.tools.debugging.blame import Blame, attempt, blame_backend, blame_pass, text_of, wrong_stage
from symc.tools.debugging.repro import write_repro
from symc.tools.debugging.tolerance import Oracle
from symc.tools.inspection import bound


class BisectReport(Shown):
    """Result of ``bisect``. ``bool(report)`` says that something is wrong; ``print(report)`` tells all of it.

    ``kind``: "nothing", "program", "pass", "kernel", "plan" or "backend". ``name``: of the pass or kernel.
    ``rule``, ``firing``: the rule, and which of its firings in the pass it is, from 1. ``value``, ``lines``: the first
    wrong value of the user's and its lines. ``text``: the smallest IR that shows it. ``write(path)``: as a script.
    """

    def __init__(self, blame: Blame):
        self._blame = blame
        self.kind, self.name, self.rule, self.firing = blame.kind, blame.name, blame.rule, blame.firing
        self.value, self.lines = blame.value, list(blame.lines)
        self.difference, self.error = blame.difference, blame.error

    def __bool__(self) -> bool:
        return self.kind != "nothing"

    @property
    def text(self) -> str:
        """The smallest function that shows it, with what it is called on as comments; empty if there is none."""
        return text_of(self._blame.sample) if self._blame.sample is not None else ""

    def __str__(self) -> str:
        g = self._blame
        lines = [g.headline()]
        if g.said:
            lines.append(f"  {g.said}")
        if g.change:
            lines.append(f"  it turned {g.change}")
        if g.value:
            lines.append(f"  first wrong value: {g.value}")
        lines += [f"  in {loc}    {loc.text}".rstrip() for loc in g.lines]
        if g.sample is not None:
            lines += ["  smallest function that shows it:", self.text.rstrip("\n")]
        return "\n".join(lines)

    __repr__ = __str__

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a script that shows it, which is a test, too; long arrays go into an ``.npz`` file beside it.

        Raises InputError when there is nothing to show.
        """
        g = self._blame
        if g.sample is None:
            raise InputError("there is nothing to write: " + g.headline(), where=[caller()])
        what = g.said
        return write_repro(path, g.sample, g.headline(), "Found: " + what,
                           pipeline=g.pipeline if g.kind == "pass" else None)


def bisect(f: Any, /, *args: Any, expected: Any = None, tolerance: float | None = None, **kwargs: Any) -> BisectReport:
    """Find what makes ``f(*args, **kwargs)`` wrong: a pass and the rule in it, a kernel, the memory plan; or say that
    nothing is. State is read and stays as it is.

    Right is what the function means, op by op, by NumPy; or ``expected``, in the nest of the outputs. By default
    results may differ by what rounding can change in this very program; ``tolerance`` is a relative error instead.
    """
    with at_caller():
        compiled, args, kwargs = _compiled(f, args, kwargs)
        arrays, _ = bound(compiled, args, kwargs)
        return BisectReport(find(compiled, arrays, _expected(compiled, expected), tolerance))


def _compiled(f: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[CompiledFunction, tuple, dict[str, Any]]:
    """The compiled function behind ``f`` for these arguments, and what it takes itself."""
    if isinstance(f, CompiledFunction):
        return f, args, kwargs
    if isinstance(f, Specializing):
        compiled, arrays = f.compiled_for(*args, **kwargs)
        return compiled, tuple(arrays), {}
    raise InputError(f"bisect takes a compiled function, not {type(f).__name__}", help="sc.bisect(sc.compile(y), x)")


def _expected(f: CompiledFunction, expected: Any) -> list[np.ndarray] | None:
    if expected is None:
        return None
    leaves = match(f._built.outputs, expected, "bisect: expected")
    return [np.asarray(a).astype(v.dtype) for a, v in zip(leaves, f._built.function.outputs, strict=True)]


def find(f: CompiledFunction, arrays: Sequence[np.ndarray], expected: list[np.ndarray] | None = None,
         tolerance: float | None = None) -> Blame:
    """Finds who is wrong about a compiled function on the arrays of its inputs, states included."""
    c, pipeline = f._compilation, f._options.get("pipeline")
    source = c.source
    oracle = Oracle(source, arrays, tolerance=tolerance)
    if expected is not None:
        whole = [*expected, *oracle.reference[len(expected):]]
        given = Oracle(source, arrays, expected=whole, tolerance=tolerance)
        other = given.difference(oracle.reference)
        if other is not None:
            return Blame("program", difference=other, lines=source.locations(source.outputs[other.result]))
        oracle = given
    stage = wrong_stage(c.stages, oracle)
    if stage is not None:
        return blame_pass(*stage, oracle, DEFAULT if pipeline is None else pipeline)
    found = attempt(lambda: _run(f, arrays), oracle) or attempt(lambda: _run(f, arrays), oracle)
    if found is None:
        return Blame()
    return blame_backend(c.final, found, oracle, f._built.donated, settings=c.settings)


def _run(f: CompiledFunction, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The program's results on copies."""
    program = getattr(f._compilation.program, "unchecked", f._compilation.program)
    given = [np.array(a, order="C") for a in arrays]
    with quiet():
        return [np.array(a) for a in program.run(given, f._signature.sizes(given))]
