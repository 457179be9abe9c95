"""``compile`` and the function object it returns: arguments in, arrays out, state replaced after success.

What a program is made of is decided elsewhere: ``build`` closes the graph, ``modes`` optimizes, plans and loads it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symc import views
from symc.build import Built, build, pairs
from symc.calling import CALL_SIGNATURE, Calling
from symc.callsite import caller
from symc.deferred import contains_deferred
from symc.errors import InputError, PipelineError, SymcError, did_you_mean
from symc.ir.phases import Record, recording
from symc.ir.text import print_function
from symc.max_bytes import budget_of, read_max_bytes
from symc.modes import check_options, chosen
from symc.nest import flatten
from symc.signature import Signature
from symc.state import Cell, SharedVariable
from symc.target import check_target, target_of
from symc.warm import prepare

if TYPE_CHECKING:
    from symc.prepared import Prepared


def compile(
    outputs: Any,
    inputs: Any = None,
    *,
    updates: Any = None,
    givens: Any = None,
    donate: Any = (),
    device: Any = "cpu",
    backend: str | None = None,
    split: Any = (),
    mode: str = "default",
    pipeline: str | None = None,
    name: str | None = None,
    threads: int | None = None,
    max_bytes: Any = None,
    accuracy_report: bool = False,
    transfers: str = "explicit",
    precision: str = "highest",
) -> Any:
    """A callable that computes ``outputs``, a value or any nest (tuples, lists, dicts, dataclasses) of values.

    * ``inputs``: values (or nests of values) in positional order, or a dict of them by name. By default every input
      found, in order of creation.
    * ``updates``: ``{shared: value}``, all carried out together after a call has succeeded.
    * ``givens``: ``{value: expression or array}``, replaced before anything else.
    * ``donate``: inputs whose arrays a call may overwrite.
    * ``mode``: "default", "reference" (NumPy, op by op), "fast_compile", "debug" (checks every pass and every result
      against the reference), "nan_guard" (stops at the first op that makes a nan or an infinity).
    * ``backend``: what makes the kernels of the CPU. "llvm" (the default), "numba" (the same kernels, whose Python is
      ``f.source``, compiled by Numba: slower to compile, the yardstick for the first, which leaves complex numbers and
      ``sc.op(numba=)`` to it), "numpy" (no kernels: what the optimizer made, op by op).
    * ``pipeline``: a pipeline string instead of the mode's own.
    * ``threads``: how many threads a call may use at most, the calling one included. By default as many as the variable
      ``SYMC_NUM_THREADS`` says, else as many as there are processors for this process. Results have the same bits for
      any number; BLAS uses one thread of its own while the function runs.
    * ``max_bytes``: the most memory that a call may take (inputs, states and results included), an int or a string such
      as "200MB"; ``("200MB", {"n": 1000})`` for symbolic sizes. Values are computed a second time instead of being
      kept, at as little cost as is found; MemoryBudgetError says what takes most when that is not enough. It holds for
      ``f.memory``, the peak of the plan, at these sizes; ``f.dump("max_bytes")`` shows what is computed again.
    * ``device``: "cpu", or "cuda" ("cuda:1" is the second one): results are then arrays of the device
      (``sc.DeviceArray``), and states stay there. What cannot run on the device is an error now. ``transfers``: what
      becomes of NumPy arrays that are given: "explicit" copies them, "forbid" raises, "auto" returns results as NumPy
      arrays too. Several devices in a tuple run the function together, each on its part of the arguments whose first
      axis has a size named by ``split`` ("n", or a tuple of names); ``sc.parallel.all_reduce`` joins what they compute.
      ``precision``: how products of f32 are multiplied there: "highest", "tf32", "bf16" (sums are f32).
    * ``accuracy_report``: print how far the results are from the exact ones on sampled inputs, as written and as
      optimized (``f.accuracy()`` gives the same at any time).

    Returns a ``CompiledFunction``; for expressions over variables of unknown type a ``DeferredFunction``, which makes
    one per signature of the call. Results are arrays of their own, 0-d ones included.
    """
    loc = caller()
    try:
        mode, pipeline, backend = chosen(mode, pipeline, backend, device)
        check_options(mode, pipeline, threads)
        target = target_of(dict(device=device, backend=backend, split=split, transfers=transfers, precision=precision))
        check_target(target, mode)
        options: dict[str, Any] = dict(mode=mode, pipeline=pipeline, name=str(name or "f"), threads=threads)
        options["max_bytes"] = read_max_bytes(max_bytes)
        options["accuracy_report"] = bool(accuracy_report)
        options.update(device=target.asked, backend=backend, split=target.split or split, transfers=transfers,
                       precision=precision)
        nests = [outputs, inputs, pairs(updates, "updates"), pairs(givens, "givens")]
        if contains_deferred([flatten(x)[0] for x in nests]):
            from symc.deferred_function import DeferredFunction

            return DeferredFunction(outputs, inputs, updates, givens, donate, options, loc)
        record = Record()
        with recording(record):
            built = record.run("build", "",
                               lambda: build(outputs, inputs, updates, givens, donate, options["name"], loc))
            if target.devices:
                from symc.splitting import check_split

                check_split(built.function, target, built.donated)
            budget = budget_of(options["max_bytes"], built.function)
            prepared = prepare(built.function, mode, pipeline, built.donated, threads, budget, target)
        compiled = CompiledFunction(built, prepared, options, record)
        if accuracy_report:
            print(compiled.accuracy())
        return compiled
    except SymcError as e:
        e.attach((), (loc,))
        raise


class CompiledFunction(views.Views):
    """A compiled function. Call it by position or by name; ``out=`` takes buffers in the nest of the outputs."""

    #: What a call calls, found here by the interpreter itself: at first ``Calling.call``, later perhaps native code.
    __slots__ = ("__call__",)

    def __init__(self, built: Built, prepared: Prepared, options: Mapping[str, Any], record: Record | None = None):
        self._built, self._prepared, self._options = built, prepared, dict(options)
        self._record = record or Record()
        f = built.function
        self._target = target_of(self._options)
        kind: Any = Signature
        if self._target.devices:
            from symc.on_devices import RanksSignature as kind
        elif not self._target.on_host:
            from symc.on_device import DeviceSignature as kind
        self._signature = kind(f.name, built.slots, f.inputs, f.guards, built.donated)
        self._program = prepared.program
        self._bind_cells(built.cells)

    def _bind_cells(self, cells: Sequence[Cell]) -> None:
        self._cells = tuple(cells)
        self._calling = self._new_calling(cells)
        self.__call__: Callable[..., Any] = self._calling.call
        self.__signature__ = CALL_SIGNATURE
        me = weakref.ref(self)

        def install(entry: Callable[..., Any]) -> None:
            f = me()
            if f is not None:
                f.__call__ = entry

        self._calling.install = install

    def _new_calling(self, cells: Sequence[Cell]) -> Calling:
        if self._target.on_host:
            return Calling(self._built, self._prepared, self._signature, cells)
        if self._target.devices:
            from symc.on_devices import RanksCalling

            return RanksCalling(self._built, self._prepared, self._signature, cells, self._target)
        from symc.on_device import DeviceCalling
        from symc.runtime.cuda.devices import context

        self._signature.where, self._signature.transfers = context(self._target.device), self._target.transfers
        return DeviceCalling(self._built, self._prepared, self._signature, cells, self._target)

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
        backend = f", backend {self._target.backend!r}" if self._target.backend else ""
        return f"<compiled {self._signature.arguments.usage()}, {size} values, mode {self._options['mode']!r}{backend}>"

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
