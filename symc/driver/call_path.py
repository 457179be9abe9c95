"""From the arguments of a call to its results: the way in Python, which serves every call and makes every error.

Calls with plain arrays may be served by native code (``symc.runtime.cpu.entry``), which hands all others to
``CallPath.call``. A ``CallPath`` does not know the function it belongs to, so nothing here keeps itself alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.driver.backend import Runner
from symc.driver.built import Built
from symc.driver.compilation import Compilation
from symc.driver.labelled import filler, labelled_in
from symc.driver.signature import Signature, own_out
from symc.errors import (
    DTypeError,
    InputError,
    InternalError,
    OutOfMemoryError,
    ShapeError,
    SymcError,
    missing_package,
    of_handler,
)
from symc.ir.locks import closed, new_lock, turnstile
from symc.ir.ops.effect import has_effect
from symc.ir.traverse import every_value
from symc.ir.types import concrete_shape
from symc.ir.value import Value
from symc.runtime.cpu.calls import left, raise_left
from symc.runtime.cpu.commit import count_changes, holding, mark, snapshot, some_run, some_wait
from symc.runtime.cpu.frame import Refused
from symc.runtime.cpu.frames import Frames
from symc.runtime.cpu.native.instructions import Word
from symc.runtime.with_prologue import WithPrologue
from symc.tensors.callsite import caller
from symc.tensors.pytree import filler as plain_filler
from symc.tensors.pytree import match
from symc.tensors.state import Cell
from symc.tracebacks import trim

if TYPE_CHECKING:
    from symc.driver.prologue import Prologue


class CallPath:
    """Call path of a compiled function. ``install``: what a native entry is given to, as a function of what serves the
    calls that it does not take."""

    def __init__(self, built: Built, compilation: Compilation, program: Runner, signature: Signature,
                 cells: Sequence[Cell]):
        self._built, self._compilation, self._signature = built, compilation, signature
        self.name, self.program = built.function.name, program
        self._names = [s.name for s in built.slots]
        self._fill = plain_filler(built.outputs)
        self._count = len(built.function.outputs)
        self._cells = tuple(cells)
        self._locked = sorted(self._cells, key=lambda c: c.serial)
        self._locks = [c.lock for c in self._locked]
        before = len(built.function.inputs) - len(self._cells)
        self._updated = [self._cells[k - before] for k in built.function.updates]
        for cell in self._updated:
            cell.updated = True
        self.failed: tuple[tuple, dict[str, Any]] | None = None  # arguments of the last call that raised
        self.prologue: Prologue | None = None
        if isinstance(program, WithPrologue):
            from symc.driver.prologue import Prologue

            self.prologue = Prologue(program, [self._cells[k - before] for k in program.reads])
            program = program.main
        self.run = program.run
        self._frames = program if isinstance(program, Frames) else None
        self.install: Callable[[Callable[[Callable[..., Any]], Callable[..., Any]]], None] | None = None
        self._entry: Any = None
        self._learning = new_lock()
        distinct = len(set(self._cells)) == len(self._cells)
        self.repeat: Callable[[list[Any]], list[Any] | None] | None = None  # serves calls that repeat the last one
        self._called = False
        self._learns = self._frames is not None and signature.simple and distinct and not signature.donated

    def call(self, /, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Every kind of call."""
        if out is not None and own_out(self._names, args):
            kwargs, out = {**kwargs, "out": out}, None
        try:
            if left:
                raise_left()
            arrays = self._signature.arrays(args, kwargs)
            given = labelled_in(args, kwargs)
            fill = filler(self._fill, self._built.labels, given) if given else self._fill
            if self.repeat is not None and out is None and (found := self.repeat(arrays)) is not None:
                filled = fill(found)
            elif self._cells:
                filled = self._call_with_state(arrays, out, fill)
            elif out is not None:
                filled = self._call_into(arrays, out)
            else:
                filled = fill(self._run(arrays))
            if self._learns:
                self._learn()
            return filled
        except SymcError as e:
            self.failed = args, kwargs
            e.attach((), (caller(),))
            trim(e)
            raise
        except MemoryError as e:
            raise self._out_of_memory(e, args, kwargs) from None
        except ModuleNotFoundError as e:
            raise missing_package(e) from e
        except Exception as e:
            if of_handler(e):
                raise
            from symc.ir.text import print_function

            text = print_function(self._compilation.final)
            raise InternalError(f"{self.name}: {type(e).__name__}: {e}", where=[caller()], text=text) from e

    def _out_of_memory(self, e: MemoryError, args: tuple, kwargs: dict[str, Any]) -> OutOfMemoryError:
        """The error for a call that found no memory: what is largest where most is held."""
        rows: list[tuple[str, Any, Any]] = []
        needed = ""
        from symc.codegen.plan.budget import largest_rows  # heavy
        from symc.codegen.plan.memory import memory

        try:
            sizes = self._signature.sizes([*self._signature.arrays(args, kwargs), *snapshot(self._cells)])
            if self._compilation.plan is not None:
                rows = largest_rows(self._compilation.plan, sizes)
                needed = f", of which the call needs {int(memory(self._compilation.plan, sizes)):,} bytes"
        except (SymcError, MemoryError, KeyError):
            pass  # the call was wrong in other ways too, or not even this fits
        own = OutOfMemoryError(f"{self.name}: out of memory{needed}: {e}", values=rows, where=[caller()],
                               help='sc.compile(..., max_bytes="2GB") computes again what does not fit; donate=, '
                                    "float32, smaller arrays at once; f.memory(n=...) says what a call needs")
        for note in (*getattr(e, "__notes__", ()), f"in {caller()}: {self.name}"):
            own.add_note(note)
        return own

    def _run(self, arrays: Sequence[Any], out: Any = None, cells: Sequence[Cell] = ()) -> list[Any]:
        """Outputs, then the new arrays of states, which the cells have at the same moment."""
        sizes = None if self._frames is not None else self._signature.sizes(arrays)  # code for the CPU finds them
        try:
            hidden = () if self.prologue is None else self.prologue.arrays(arrays, sizes)
            return self.run([*arrays, *hidden] if hidden else arrays, sizes, out, cells)
        except Refused:
            sizes = self._signature.sizes(arrays)
            self.program.refuse(sizes)  # type: ignore[attr-defined]
            raise InternalError(f"sizes were refused for no reason: {sizes}") from None

    def _learn(self) -> None:
        """Let an entry serve calls from now on; or one more at the same time."""
        from symc.runtime.cpu import entry

        assert self._frames is not None
        with self._learning:
            if self._entry is None:
                if not (self._called or entry.kept()):  # a function that is called once need not wait for its compile
                    self._called = True
                    return
                native = entry.supported() if entry.serves(self._frames.code) else None
                if native is None:
                    self._learns = False
                    return
                self._entry = self._new_entry(self._frames.code, native)
                fill = None if self._built.outputs.kind == "leaf" else self._fill
                if self.install is not None:
                    entry_of = self._entry.builtin
                    self.install(lambda slow: entry_of(slow, fill))
            if self._entry.wants():
                frame = self._frames.lend()
                if frame.words[Word.LARGE]:  # what keeps the memory of its results is called from here
                    self._frames.give(frame)
                else:
                    self._entry.add(frame)

    def _new_entry(self, lowered: Any, native: Any) -> Any:
        from symc.runtime.cpu import entry

        slots, new = lowered.made()
        arguments = [(np.dtype(i.type.dtype), i.type.ndim) for i in self._built.function.inputs]
        made = [(np.dtype(lowered.fresh[k - lowered.given].dtype), k, dims, ndim) for k, dims, ndim in slots]
        updated = list(zip(self._updated, new, strict=True))
        nest = self._built.outputs
        flat = nest.kind == "leaf" or nest.kind == "tuple" and all(c.kind == "leaf" for c in nest.children)
        into = flat and not own_out(self._names, ())
        states = None
        if self._cells:
            p = self.prologue
            hidden, reads = ((), ()) if p is None else (p.hidden, p.cells)
            arguments += [(h.array.dtype, h.array.ndim) for h in hidden]
            states = entry.States((*self._cells, *hidden), self._locked, updated, reads)
        found = entry.Entry(arguments, made, self._count, states, lowered.first, self._names, into, native)
        if self.prologue is not None:
            self.prologue.told = found.know
            found.know(self.prologue.versions)  # others that come between tell it again in their next call
        return found

    def _call_with_state(self, arrays: list[np.ndarray], out: Any, fill: Callable[[list[Any]], Any]) -> Any:
        """Hold the locks of all states, which the program replaces when everything has succeeded."""
        marked: list[Cell] = []
        taking, giving = holding(self._locks, marked)
        if some_wait(self._locked):
            for cell in self._locked:
                cell.settle()
        if closed.value:
            with turnstile:  # until the process has been forked
                pass
        try:
            any(taking)
            free: Sequence[Cell] = self._locked
            if some_run(free):
                for cell in self._updated:
                    cell.check_free(f"a call of {self.name}")
                free = [c for c in free if c.running is None]
            if self._calls_out:
                mark(marked, free, self.name)
            arrays += self._states()
            self._keep_apart(arrays)
            count_changes(self._updated)
            if out is None:
                return fill(self._run(arrays, None, self._updated)[: self._count])
            return self._call_into(arrays, out)
        finally:
            any(giving)

    @cached_property
    def _calls_out(self) -> bool:
        """True if somebody else's Python may run in a call, and call other functions."""
        return any(v.op.facts.custom is not None or has_effect(v) for v in every_value(self._built.function.body))

    def _states(self) -> list[np.ndarray]:
        """The arrays of all states."""
        return [c.host() for c in self._cells]

    def _keep_apart(self, arrays: list[np.ndarray]) -> None:
        """An argument that lies in the memory of a borrowed state is copied, as the state may be written in place."""
        first = len(arrays) - len(self._cells)
        for cell in self._cells:
            if cell.borrowed:
                for k in range(first):
                    if np.may_share_memory(arrays[k], cell.array):
                        arrays[k] = arrays[k].copy()

    def _call_into(self, arrays: list[np.ndarray], out: Any) -> Any:
        """Write the outputs into the caller's buffers; by way of fresh arrays where one overlaps what is read."""
        buffers = self._buffers(out, self._signature.sizes(arrays))
        direct: list[np.ndarray | None] = []
        for k, b in enumerate(buffers):
            others = [*arrays, *buffers[:k], *buffers[k + 1 :]]
            direct.append(b if b.flags.carray and not any(np.may_share_memory(b, a) for a in others) else None)
        results = self._run(arrays, direct, self._updated)
        for b, d, r in zip(buffers, direct, results):
            if d is None or r is not d:
                np.copyto(b, r)
        return self._fill(buffers)

    def _buffers(self, out: Any, sizes: Mapping[str, int]) -> list[np.ndarray]:
        nest = self._built.outputs
        what = f"{self.name}: out"
        buffers = match(nest, out, what)
        for b, path, v in zip(buffers, nest.paths(what), self._built.function.outputs, strict=True):
            if not isinstance(b, np.ndarray):
                raise InputError(f"{path} must be an array to write into, not {type(b).__name__}")
            if not b.flags.writeable:
                raise InputError(f"{path} is read-only")
            check_buffer(path, b, v, sizes)
        for k, b in enumerate(buffers):
            if any(np.may_share_memory(b, c) and np.shares_memory(b, c) for c in buffers[:k]):
                raise InputError(f"{what}: two of the buffers overlap")
        return buffers


def check_buffer(path: str, b: Any, v: Value, sizes: Mapping[str, int]) -> None:
    """Raise for a buffer, of a host or a device, that has another dtype or shape than the result."""
    if b.dtype != v.dtype:
        raise DTypeError(f"{path} has dtype {b.dtype}, the result is {v.dtype}")
    if b.shape != concrete_shape(v.shape, sizes):
        raise ShapeError(f"{path} has shape {b.shape}, the result has {concrete_shape(v.shape, sizes)}")
