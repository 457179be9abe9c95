"""``compile`` and the function object it returns: arguments in, arrays out, state replaced after success.

What a program is made of is decided elsewhere: ``build`` closes the graph, ``modes`` optimizes, plans and loads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc import views
from symc.build import Built, build, pairs
from symc.callsite import caller
from symc.deferred import contains_deferred
from symc.errors import DTypeError, InputError, InternalError, PipelineError, ShapeError, SymcError, did_you_mean
from symc.ir.text import print_function
from symc.ir.types import concrete_shape
from symc.keeping import Keeping
from symc.max_bytes import budget_of, read_max_bytes
from symc.modes import Prepared, check_options, chosen, prepare
from symc.nest import filler, flatten, match
from symc.runtime.kept_program import KeptProgram
from symc.signature import Signature
from symc.state import Cell, SharedVariable


def compile(
    outputs: Any,
    inputs: Any = None,
    *,
    updates: Any = None,
    givens: Any = None,
    donate: Any = (),
    device: str = "cpu",
    mode: str = "default",
    pipeline: str | None = None,
    name: str | None = None,
    threads: int | None = None,
    max_bytes: Any = None,
    accuracy_report: bool = False,
) -> Any:
    """A callable that computes ``outputs``, a value or any nest (tuples, lists, dicts, dataclasses) of values.

    * ``inputs``: values (or nests of values) in positional order, or a dict of them by name. By default every input
      found, in order of creation.
    * ``updates``: ``{shared: value}``, all carried out together after a call has succeeded.
    * ``givens``: ``{value: expression or array}``, replaced before anything else.
    * ``donate``: inputs whose arrays a call may overwrite.
    * ``mode``: "default", "reference" (NumPy, op by op), "fast_compile", "debug" (checks every pass and every result
      against the reference), "nan_guard" (stops at the first op that makes a nan or an infinity).
    * ``pipeline``: a pipeline string instead of the mode's own.
    * ``threads``: how many threads a call may use at most; kernels run on the calling thread in this version.
    * ``max_bytes``: the most memory that a call may take (inputs, states and results included), an int or a string such
      as "200MB"; ``("200MB", {"n": 1000})`` for symbolic sizes. Values are computed a second time instead of being
      kept, at as little cost as is found; MemoryBudgetError says what takes most when that is not enough. It holds for
      ``f.memory``, the peak of the plan, at these sizes; ``f.dump("max_bytes")`` shows what is computed again.
    * ``accuracy_report``: print how far the results are from the exact ones on sampled inputs, as written and as
      optimized (``f.accuracy()`` gives the same at any time).

    Returns a ``CompiledFunction``; for expressions over variables of unknown type a ``DeferredFunction``, which makes
    one per signature of the call. Results are arrays of their own, 0-d ones included.
    """
    loc = caller()
    try:
        mode, pipeline = chosen(mode, pipeline)
        check_options(mode, pipeline, device, threads)
        options: dict[str, Any] = dict(mode=mode, pipeline=pipeline, name=str(name or "f"), threads=threads)
        options["max_bytes"] = read_max_bytes(max_bytes)
        options["accuracy_report"] = bool(accuracy_report)
        nests = [outputs, inputs, pairs(updates, "updates"), pairs(givens, "givens")]
        if contains_deferred([flatten(x)[0] for x in nests]):
            from symc.deferred_function import DeferredFunction

            return DeferredFunction(outputs, inputs, updates, givens, donate, options, loc)
        built = build(outputs, inputs, updates, givens, donate, options["name"], loc)
        budget = budget_of(options["max_bytes"], built.function)
        prepared = prepare(built.function, mode, pipeline, built.donated, threads, budget)
        compiled = CompiledFunction(built, prepared, options)
        if accuracy_report:
            print(compiled.accuracy())
        return compiled
    except SymcError as e:
        e.attach((), (loc,))
        raise


class CompiledFunction(views.Views):
    """A compiled function. Call it by position or by name; ``out=`` takes buffers in the nest of the outputs."""

    def __init__(self, built: Built, prepared: Prepared, options: Mapping[str, Any]):
        self._built, self._prepared, self._options = built, prepared, dict(options)
        f = built.function
        self._signature = Signature(f.name, built.slots, f.inputs, f.guards, built.donated)
        self._program = prepared.program
        self._run = prepared.program.run
        self._fill = filler(built.outputs)
        self._outputs = len(f.outputs)
        self._bind_cells(built.cells)

    def _bind_cells(self, cells: Sequence[Cell]) -> None:
        self._cells = tuple(cells)
        self._locked = sorted(self._cells, key=lambda c: c.serial)
        first = len(self._built.function.inputs) - len(self._cells)
        self._updated = [self._cells[k - first] for k in self._built.function.updates]
        if isinstance(self._program, KeptProgram):
            self._run = Keeping(self._program, [self._cells[k - first] for k in self._program.reads]).run

    # --- calling ------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            arrays = self._signature.arrays(args, kwargs)
            if self._cells:
                return self._call_with_state(arrays, out)
            sizes = self._signature.sizes(arrays)
            if out is None:
                return self._fill(self._run(arrays, sizes, None))
            return self._call_into(arrays, sizes, out)[0]
        except SymcError as e:
            e.attach((), (caller(),))
            raise
        except MemoryError as e:
            e.add_note(f"in {caller()}: {self.name}")
            raise
        except Exception as e:
            text = print_function(self._prepared.final)
            raise InternalError(f"{self.name}: {type(e).__name__}: {e}", where=[caller()], text=text) from e

    def _call_with_state(self, arrays: list[np.ndarray], out: Any) -> Any:
        """Hold the locks of all states; replace them when everything has succeeded."""
        taken = []
        try:
            for cell in self._locked:
                cell.lock.acquire()
                taken.append(cell)
            arrays += [c.array for c in self._cells]
            self._keep_apart(arrays)
            sizes = self._signature.sizes(arrays)
            for cell in self._updated:
                cell.version += 1
            if out is None:
                results = self._run(arrays, sizes, None)
                filled = self._fill(results[: self._outputs])
            else:
                filled, results = self._call_into(arrays, sizes, out)
            for cell, new in zip(self._updated, results[self._outputs :], strict=True):
                cell.array = new
            return filled
        finally:
            for cell in reversed(taken):
                cell.lock.release()

    def _keep_apart(self, arrays: list[np.ndarray]) -> None:
        """An argument that lies in the memory of a borrowed state is copied, as the state may be written in place."""
        first = len(arrays) - len(self._cells)
        for cell in self._cells:
            if cell.borrowed:
                for k in range(first):
                    if np.may_share_memory(arrays[k], cell.array):
                        arrays[k] = arrays[k].copy()

    def _call_into(self, arrays: list[np.ndarray], sizes: Mapping[str, int], out: Any) -> tuple[Any, list[np.ndarray]]:
        """Write the outputs into the caller's buffers; by way of fresh arrays where one overlaps what is read."""
        buffers = self._buffers(out, sizes)
        direct: list[np.ndarray | None] = []
        for k, b in enumerate(buffers):
            others = [*arrays, *buffers[:k], *buffers[k + 1 :]]
            direct.append(b if b.flags.carray and not any(np.may_share_memory(b, a) for a in others) else None)
        results = self._run(arrays, sizes, direct)
        for b, d, r in zip(buffers, direct, results):
            if d is None or r is not d:
                np.copyto(b, r)
        return self._fill(buffers), results

    def _buffers(self, out: Any, sizes: Mapping[str, int]) -> list[np.ndarray]:
        nest = self._built.outputs
        what = f"{self.name}: out"
        buffers = match(nest, out, what)
        for b, path, v in zip(buffers, nest.paths(what), self._built.function.outputs, strict=True):
            if not isinstance(b, np.ndarray):
                raise InputError(f"{path} must be an array to write into, not {type(b).__name__}")
            if not b.flags.writeable:
                raise InputError(f"{path} is read-only")
            if b.dtype != v.dtype:
                raise DTypeError(f"{path} has dtype {b.dtype}, the result is {v.dtype}")
            if b.shape != concrete_shape(v.shape, sizes):
                raise ShapeError(f"{path} has shape {b.shape}, the result has {concrete_shape(v.shape, sizes)}")
        for k, b in enumerate(buffers):
            if any(np.may_share_memory(b, c) and np.shares_memory(b, c) for c in buffers[:k]):
                raise InputError(f"{what}: two of the buffers overlap")
        return buffers

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._built.function.name

    @property
    def inputs(self) -> tuple:
        """The arguments of a call: records with ``name``, ``type`` and ``loc``, one an array."""
        return tuple(i for i in self._built.function.inputs if i.role == "arg")

    @property
    def shared(self) -> dict[str, SharedVariable]:
        """The states by name, for functions that were loaded and have no other way to them."""
        from symc.state import variable_of

        states = [i for i in self._built.function.inputs if i.role == "state"]
        return {i.name: variable_of(c) for i, c in zip(states, self._cells, strict=True)}

    @property
    def stages(self) -> dict[str, str]:
        """The text after every pass that changed something, in order; "input" is what was compiled."""
        return {name: print_function(f) for name, f in self._prepared.stages.items()}

    def dump(self, stage: str | None = None) -> str:
        """IR text: final, or after the pass ``stage``. Raises PipelineError for one that is not in ``stages``."""
        if stage is None:
            return print_function(self._prepared.final)
        if stage not in self._prepared.stages:
            raise PipelineError(
                f"{self.name} has no stage {stage!r}", help=did_you_mean(stage, self._prepared.stages), where=[caller()]
            )
        return print_function(self._prepared.stages[stage])

    def __str__(self) -> str:
        return self.dump()

    def __repr__(self) -> str:
        size = len(self._prepared.final.values())
        return f"<compiled {self._signature.arguments.usage()}, {size} values, mode {self._options['mode']!r}>"

    def copy(self, swap: Mapping[SharedVariable, SharedVariable] | None = None) -> CompiledFunction:
        """The same program with other states. ``swap`` maps shared variables to others of the same dtype and shape."""
        other = object.__new__(CompiledFunction)
        other.__dict__.update(self.__dict__)
        cells = list(self._cells)
        for old, new in (swap or {}).items():
            places = [k for k, c in enumerate(self._cells) if isinstance(old, SharedVariable) and c is old.cell]
            if not places:
                raise InputError(
                    f"copy: {self.name} has no state {getattr(old, 'name', old)!r}",
                    where=[caller()],
                    help=did_you_mean(str(getattr(old, "name", old)), [c.name for c in self._cells]),
                )
            if not isinstance(new, SharedVariable) or new.value.type is not old.value.type:
                rows = [t.describe() for t in (old, new) if isinstance(t, SharedVariable)]
                raise InputError(
                    "copy: a state can be swapped only for a shared variable of the same type",
                    values=rows,
                    where=[caller()],
                )
            cells[places[0]] = new.cell
        other._bind_cells(cells)
        return other
