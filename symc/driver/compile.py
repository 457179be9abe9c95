"""``compile``: the road from what a user writes to a compiled function.

    build      values -> a closed function                       build.py
    optimize   function -> function, by passes                   stages.py, symc.opt
    plan       function -> order and memory                      stages.py, symc.codegen.plan.planner
    load       plan -> kernels and a program that runs them      stages.py, backends.py

A function that another process has compiled goes from ``build`` to its program at once (``warm.py``); the other stages
are then made when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symc.driver.backends import check_target
from symc.driver.build import build
from symc.driver.finish import compile_built
from symc.driver.max_bytes import read_max_bytes
from symc.driver.modes import check_options, chosen, read_threads
from symc.driver.target import target_of
from symc.errors import SymcError
from symc.ir.dim import Measured
from symc.ir.function import measured_names
from symc.ir.phases import Record, recording
from symc.notebook import CompileProgress
from symc.tensors.callsite import caller
from symc.tensors.deferred import contains_deferred
from symc.tensors.pytree import flatten
from symc.tensors.tensor import Tensor
from symc.transforms.substitution import pairs


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
    denormals: str = "keep",
    specialize: Any = None,
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
      ``f.source``, compiled by Numba: slower to compile, the yardstick for the first, which leaves ``sc.op(numba=)``
      to it), "numpy" (no kernels: what the optimizer made, op by op).
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
      ``precision``: how products of f32 are multiplied there: "highest", "tf32", "bf16" (sums are f32; on
      the CPU the first alone).
    * ``denormals``: what becomes on the CPU of numbers below the least normal one (1.2e-38 in f32, 2.2e-308 in f64).
      "keep", the default: they are what NumPy makes of them. "flush": as operands and results they are zeros while the
      function runs, and only then. Processors take up to a hundred times as long for them, which recurrent networks
      with vanishing gradients notice; ``f.profile`` says when they were met.
    * ``specialize``: variants for sizes that calls have often: ``{"n": [32, 1024]}``, all combinations of several,
      or a list of those that go together, ``[{"n": 32, "m": 4}]``. There the sizes are constants, so that loops unroll
      and small matrices have code of their own; all other sizes are served as without it. ``f.variants`` has them.
    * ``accuracy_report``: print how far the results are from the exact ones on sampled inputs, as written and as
      optimized (``f.accuracy()`` gives the same at any time).

    Returns a ``CompiledFunction``; for expressions over variables of unknown type a ``DeferredFunction``, which makes
    one per signature of the call. Results are arrays of their own, 0-d ones included.

    >>> x, y = sc.vector("x"), sc.scalar("y")
    >>> f = sc.compile({"twice": 2 * x, "shifted": x + y}, [x, y])
    >>> f([1.0, 2.0], y=10)
    {'twice': array([2., 4.]), 'shifted': array([11., 12.])}
    """
    loc = caller()
    try:
        options = _options(
            mode=mode, pipeline=pipeline, name=str(name or "f"), threads=threads, max_bytes=max_bytes,
            accuracy_report=bool(accuracy_report), device=device, backend=backend, split=split, transfers=transfers,
            precision=precision, denormals=denormals, specialize=specialize)
        nests = [outputs, inputs, pairs(updates, "updates"), pairs(givens, "givens")]
        given = [flatten(x)[0] for x in nests]
        if contains_deferred(given):
            from symc.driver.deferred_function import DeferredFunction

            return DeferredFunction(compile, outputs, inputs, updates, givens, donate, options, loc)
        record = Record()
        with recording(record), progress_of(record, options["name"]):
            if Measured.made and measured_names([t.value for leaves in given for t in leaves if isinstance(t, Tensor)]):
                from symc.driver.measured import compile_measured

                chain = compile_measured(outputs, inputs, updates, givens, donate, options, loc, compile_built)
                if chain is not None:
                    return chain
            built = record.run("build", "",
                               lambda: build(outputs, inputs, updates, givens, donate, options["name"], loc))
            compiled = compile_built(built, options)
        if hasattr(updates, "gradients") and not givens:
            compiled._made_of = outputs, updates
        if accuracy_report:
            print(compiled.accuracy())
        return compiled
    except SymcError as e:
        e.attach((), (loc,))
        raise


def _options(**given: Any) -> dict[str, Any]:
    """Options of a call of ``compile``, with what ``sc.config`` says. Raises for those that do not exist, or not
    together."""
    mode, pipeline, backend = chosen(given["mode"], given["pipeline"], given["backend"], given["device"])
    check_options(mode, pipeline)
    given["threads"] = read_threads(given["threads"])
    target = target_of({**given, "backend": backend})
    check_target(target, mode)
    options = dict(given, mode=mode, pipeline=pipeline, backend=backend, device=target.asked,
                   split=target.split or given["split"], max_bytes=read_max_bytes(given["max_bytes"]), specialize=None)
    if given["specialize"]:
        from symc.driver.specialized import read_specialize

        options["specialize"] = read_specialize(given["specialize"])
    return options


@contextmanager
def progress_of(record: Record, name: str) -> Iterator[None]:
    """Shows which phase it is, where it takes long."""
    record.watch = bar = CompileProgress(name)
    try:
        yield
    finally:
        record.watch = None
        bar.close()
