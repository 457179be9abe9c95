"""Compiled functions: arguments in, arrays out, state replaced after success.

A function holds what it was compiled to, and hands everything that is asked of it to where that is done:
``symc.driver.call_path`` calls, ``symc.tools.inspection`` and the packages it names show.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.driver.backend import Runner
from symc.driver.built import Built
from symc.driver.compilation import Compilation
from symc.driver.signature import signature_of
from symc.errors import InputError, did_you_mean
from symc.notebook import Listing, Records, Shown
from symc.tensors.callsite import caller
from symc.tensors.pytree import flatten
from symc.tensors.state import Cell, SharedVariable, variable_of

if TYPE_CHECKING:
    from symc.driver.push import PushedCall
    from symc.tools.accuracy import AccuracyReport
    from symc.tools.launches import Launches
    from symc.tools.profiling.compiling import CompileProfile
    from symc.tools.profiling.report import Profile


def _inspection() -> Any:
    """The module that answers; imported when something is asked."""
    from symc.tools import inspection

    return inspection


class _Documentation:
    """Docstring of a class, and of its instances what each of them takes and returns, made when it is asked for."""

    def __init__(self, own: str | None):
        self.own = own

    def __get__(self, f: CompiledFunction | None, owner: type) -> str | None:
        return self.own if f is None else f._signature.documentation(f._built.function)


class CompiledFunction(Shown):
    """A compiled function. Call it by position or by name; ``out=`` takes buffers in the nest of the outputs."""

    __doc__ = _Documentation(__doc__)  # type: ignore[assignment]

    #: What a call calls, found here by the interpreter itself: at first ``CallPath.call``, later perhaps native code.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    #: The outputs and updates that it was compiled from, where an optimizer made these; in the process that did.
    _made_of: Any = None
    #: How a jitted function was called that it was compiled for (``JitFunction._called``); in the process that did.
    _called: Any = None

    def __init_subclass__(cls) -> None:
        cls.__doc__ = _Documentation(cls.__dict__.get("__doc__"))  # type: ignore[assignment]

    def __init__(self, built: Built, compilation: Compilation, program: Runner, options: Mapping[str, Any]):
        self._built, self._compilation, self._program = built, compilation, program
        self._options = dict(options)
        settings, f = compilation.settings, built.function
        self._target = settings.target
        accepts, self._calls = settings.backend.calls()
        self._signature = accepts(f.name, built.slots, f.inputs, f.guards, built.donated, self._target)
        self._bind_cells(built.cells)

    def _bind_cells(self, cells: Sequence[Cell]) -> None:
        self._cells = tuple(cells)
        self._call_path = self._calls(self._built, self._compilation, self._program, self._signature, cells)
        self.__call__: Callable[..., Any] = self._call_path.call
        self.__signature__ = signature_of(self._built.slots)
        me = weakref.ref(self)

        def install(entry: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
            f = me()
            if f is not None:
                f.__call__ = entry(f._call_path.call)

        self._call_path.install = install

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._built.function.name

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def inputs(self) -> tuple:
        """The arguments of a call: records with ``name``, ``type`` and ``loc``, one an array."""
        return tuple(i for i in self._built.function.inputs if i.role == "arg")

    @property
    def shared(self) -> dict[str, SharedVariable]:
        """The states by name, for functions that were loaded and have no other way to them."""
        states = [i for i in self._built.function.inputs if i.role == "state"]
        return {i.name: variable_of(c) for i, c in zip(states, self._cells, strict=True)}

    @property
    def stages(self) -> dict[str, str]:
        """The text after every pass that changed something, in order; "input" is what was compiled."""
        from symc.ir.text import print_function

        return {name: print_function(f) for name, f in self._compilation.stages.items()}

    def dump(self, stage: str | None = None) -> str:
        """IR text: final, or after the pass ``stage``. Raises PipelineError for one that is not in ``stages``."""
        from symc.ir.text import print_function

        found = print_function(_inspection().stage(self, stage))
        return Listing.of(found, f"{self.name} after {stage or 'all passes'}")

    def __str__(self) -> str:
        return self.dump()

    def __repr__(self) -> str:
        size = len(self._compilation.final.values())
        backend = f", backend {self._target.backend!r}" if self._target.backend else ""
        return f"<compiled {self._signature.arguments.usage()}, {size} values, mode {self._options['mode']!r}{backend}>"

    def _html_(self) -> str:
        return _inspection().shown(self)

    def push(self, /, *args: Any, **kwargs: Any) -> PushedCall:
        """A call in the background, which ``wait()`` and ``result()`` wait for. It comes after all that were pushed
        before and use a state that it uses; others may overlap. Arguments may be calls that were pushed: their results
        are given. Arrays are copied, but for those that are donated or in ``out=``, which are to be left alone until
        the call has finished. What uses a state waits for the calls that were pushed: ``get_value``, ``set_value``,
        other functions.

        Errors are raised by ``wait()``, or where one of the states is used next; a call that was pushed after one that
        fails, and uses a state of it, is not run.
        """
        from symc.driver.push import push

        bound = flatten(self._signature.arguments.bind(args, kwargs))[0] if self._signature.donated else ()
        donated = [bound[k] for k in self._signature.donated]
        return push(self.name, self.__call__, self._uses(), donated, args, kwargs)

    def _uses(self) -> Sequence[Cell]:
        return self._cells

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

    # --- what will run ------------------------------------------------------------------------------------------------

    @property
    def plan(self) -> str:
        """The plan's text: buffers, steps and their order."""
        return Listing.of(_inspection().plan_text(self), f"plan of {self.name}")

    @property
    def source(self) -> str:
        """The generated source of every kernel; in reference mode the function, which runs op by op."""
        return Listing.of(self._compilation.program.source, f"source of {self.name}")

    @property
    def kernels(self) -> Any:
        """One record per kernel."""
        found = self._compilation.program.kernels
        return Records(found) if isinstance(found, list) else found

    @property
    def calls(self) -> dict[str, int]:
        """Number of times the plan calls each library routine: ``{"gemm": 1}``. What is in a loop counts once."""
        return _inspection().library_calls(self)

    @property
    def compile_count(self) -> int:
        """Number of kernels that had to be compiled for this function: those that no other function had before."""
        return self._compilation.compiled

    @property
    def compile_profile(self) -> CompileProfile:
        """Profile of compiling, by phase, pass and kernel; prints as a table. What is compiled for the sizes of a call
        is in it after that call."""
        return _inspection().compile_profile(self)

    def memory(self, /, *args: Any, **sizes: int) -> int:
        """Peak bytes of a call, before anything runs; ``.naive`` and ``.lower_bound`` beside it.

        By the names of the sizes, or for the arguments of a call: ``f.memory(n=1000)``, ``f.memory(x)``.
        """
        return _inspection().memory(self, args, sizes)

    def launches(self, /, *args: Any, **sizes: int) -> Launches:
        """Launches of a function for a CUDA device, at some sizes: a record each, with blocks, threads, bytes that are
        moved and that must be, registers, occupancy, and an estimated time. It prints as a table; nothing runs.

        By the names of the sizes, or for the arguments of a call: ``f.launches(n=1000)``, ``f.launches(x)``.
        """
        return _inspection().launches(self, args, sizes)

    # --- what was done ------------------------------------------------------------------------------------------------

    def explain(self, v: Any = None) -> str:
        """Explains what the optimizer did: every rule and pass that changed something, with the user's lines.

        With ``v`` what became of one value, and why: a tensor, the index or name of an output, the name of a state, or
        a line such as "model.py:12". Each step shows the value before and after, and the law behind it.
        """
        return Listing.of(_inspection().explain(self, v), f"explanation of {self.name}")

    def diff(self, first: str, second: str | None = None) -> Any:
        """Difference between two stages, such as ``f.diff("stabilize", "simplify")``; by default the last one
        is the second. ``sc.diff(f, g)`` compares two functions.
        """
        return _inspection().diff(self, first, second)

    def why_not(self, name: str) -> str:
        """Explains why a rule, a family of rules, a pass, or an op such as "gemm" did not happen: what came nearest,
        and the condition that failed."""
        return Listing.of(_inspection().why_not(self, name), f"why not {name}")

    def accuracy(self) -> AccuracyReport:
        """Distance of the outputs from the exact ones on sampled inputs, as written and as optimized, in ulps."""
        return _inspection().accuracy(self)

    # --- what it computes ---------------------------------------------------------------------------------------------

    def trace(self, /, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Every named intermediate of one call, computed by the reference; state is read and not replaced.

        Keys are the names on the left of the assignments on the user's lines (and the lines that called them), or
        ``file:line`` where there is none, below the scopes of ``sc.scope``: ``"encoder/layer2/h"``. Of several values
        made on a line the last one counts; ``name[0]``, ``name[1]`` are earlier turns of a line. Any part of the path
        that tells one is enough: ``trace["layer2/h"]``, ``trace["encoder/layer2"]`` for the last one in there, and
        ``trace["layer2/softmax"]`` for what a function of symc gave there. What loops and branches compute is stacked,
        one entry for each time that the line ran (the last of them if their shapes differ).
        """
        return _inspection().trace(self, args, kwargs)

    def profile(self, /, *args: Any, repeat: int = 5, **kwargs: Any) -> Profile:
        """Time, bytes and operations of every step (kernel, library call or op) of a call, with its user lines; of
        steps inside loops those of all their runs. It prints as a table that compares them with what this machine can
        do.

        The best of ``repeat`` runs on copies of the arguments; state stays as it is. ``.by_line()`` divides the time
        among the user's lines, ``.tree()`` among scopes and calls, which ``.tree().to_speedscope(path)`` writes for a
        flame graph; ``.to_chrome(path)`` writes a trace for a browser, ``.to_json()`` is all of it.
        """
        return _inspection().profile(self, args, kwargs, repeat)

    # --- files and pictures -------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the function as data: IR text, constants, state, options. ``sc.load(path)`` reads it."""
        _inspection().save(self, path)

    def save_repro(self, path: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Write a script that repeats a call: the function as IR text, and its inputs, in an ``.npz`` file beside it
        if they are long. It needs symc and nothing of your program; it is a test, too. Gives the path.

        Without arguments it has those of the last call that failed, else random ones of the right types.
        """
        return _inspection().save_repro(self, path, args, kwargs)

    def __reduce__(self) -> Any:
        return _inspection().reduce(self)

    def __dask_tokenize__(self) -> Any:
        return _inspection().token(self)

    def export_c(self, directory: Any) -> Any:
        """Write the function as C11 that needs no other file: source, header, ``CMakeLists.txt``, an example. The path
        of the source. Raises ExportError for what C cannot compute, by name and line, before a file is written."""
        from symc.export.source import export_c

        return export_c(self, directory)

    def export_library(self, path: Any) -> Any:
        """Compile the same source to a shared library, and write beside it the header and a Python module that calls
        it by NumPy and ctypes alone. The path of the module."""
        from symc.export.library import export_library

        return export_library(self, path)

    def to_onnx(self, path: Any) -> None:
        """Write the function as an ONNX model of opset 18: inputs and results by their names, sizes by theirs, loops as
        ``Scan`` and ``Loop``. States are initializers; new values of states are further results, called ``w_new``, and
        such states inputs with a default. ``sc.from_onnx(path)`` reads it. Raises ExportError for what ONNX has no form
        of, by name and line, before a file is written."""
        from symc.export import onnx_file

        onnx_file.to_onnx(self, path)

    def to_stablehlo(self, **sizes: int) -> str:
        """The function as StableHLO text. States are arguments after the inputs, new values of states results after the
        outputs. Sizes with a name are ``?`` and read from the arguments; ``f.to_stablehlo(n=4)`` puts a number there.
        Raises ExportError for what StableHLO has no form of, by name and line."""
        from symc.export import stablehlo

        return stablehlo.to_stablehlo(self, sizes)

    def to_networkx(self, stage: str | None = None) -> Any:
        """A ``networkx`` graph of the final function (or of a stage): one node a value, edges from operand to user."""
        from symc.tools.draw import to_networkx

        return to_networkx(_inspection().stage(self, stage))

    def to_dot(self, stage: str | None = None) -> str:
        """The graph in Graphviz's language; nothing needs to be installed to write it."""
        from symc.tools.draw import to_dot

        return to_dot(_inspection().stage(self, stage))

    def draw(self, path: Any = None, stage: str | None = None) -> str:
        """The graph as SVG; or written to ``path``, whose suffix says how: ``.svg``, ``.png``, ``.pdf``, ``.dot``.
        Graphviz draws it where it is installed; all but SVG and DOT need it.
        """
        from symc.tools.draw import draw

        return draw(_inspection().stage(self, stage), path)

    def to_html(self, path: Any, /, *args: Any, **kwargs: Any) -> None:
        """One HTML file for a browser, which needs nothing else: the graph and text of every stage with what changed,
        the kernels, the plan and its memory, all linked with the user's lines. With the arguments of a call it has the
        times of that call.
        """
        _inspection().to_html(self, path, args, kwargs)
