"""Running a plan on the CPU: kernels and BLAS by pointer, everything else by its reference.

A program prepares, for each combination of sizes it meets, frames: an arena and the argument words of every step with
all addresses that do not change. A call takes a frame, fills in the addresses of its arrays, and runs the steps in
order; frames are pooled, so that concurrent calls never share memory and repeated calls allocate only results.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from symc.codegen.collapse import collapse
from symc.codegen.gemm import as_gemm
from symc.codegen.names import kernel_name
from symc.codegen.numba_cpu import Unsupported, render
from symc.codegen.scalarize import scalarize
from symc.errors import ShapeError
from symc.ir.dim import Size, evaluate, product
from symc.ir.plan import Plan, Step
from symc.ir.reference import apply
from symc.ir.traverse import postorder
from symc.ir.types import TensorType, TupleType, concrete_shape
from symc.ir.value import Region, Value
from symc.runtime import blas
from symc.runtime.numba_compile import Kernel, compile_kernel

ALIGN = 64
#: For how many combinations of sizes a program keeps prepared frames.
MOST_SIZES = 64
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class KernelRecord:
    """What a user sees of one kernel: its name, source, how many steps launch it, and the lines it computes."""

    name: str
    source: str
    launches: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Launch:
    """How a region is launched: a kernel, and what its size arguments are among this region's sizes."""

    kernel: Kernel
    sizes: tuple[Size, ...]


class Program:
    """A loaded plan. ``run`` may be called from several threads."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.launches: dict[Region, Launch] = {}  # for the launch steps that the backend can express
        names: dict[tuple, str] = {}
        for step in plan.steps:
            if step.kind == "launch" and step.value.regions[0] not in self.launches:
                launch = _build(step, names)
                if launch is not None:
                    self.launches[step.value.regions[0]] = launch
        self.nonempty = _nonempty_folds(plan)
        self._frames: dict[tuple, list[_Frame]] = {}
        self._lock = threading.Lock()

    # -- what it holds

    @property
    def source(self) -> str:
        """The text of every distinct kernel."""
        distinct = {launch.kernel.name: launch.kernel.source.text for launch in self.launches.values()}
        return "\n".join(distinct.values())

    @property
    def kernels(self) -> list[KernelRecord]:
        """One record a distinct kernel."""
        found: dict[str, list] = {}
        for step in self.plan.steps:
            launch = self.launches.get(step.value.regions[0]) if step.kind == "launch" else None
            if launch is not None:
                row = found.setdefault(launch.kernel.name, [launch.kernel, 0, {}])
                row[1] += 1
                row[2].update(dict.fromkeys(map(str, self.plan.function.locations(step.value))))
        return [KernelRecord(n, k.source.text, count, tuple(lines)) for n, (k, count, lines) in found.items()]

    # -- running

    def run(
        self, arrays: Sequence[np.ndarray], sizes: Sizes, out: Sequence[np.ndarray | None] | None = None
    ) -> list[np.ndarray]:
        """Results (outputs, then the arrays that hold updated states) for contiguous aligned arrays of the input types.

        ``out[k]``: an array to write output k into. States are written in place where the plan says so.
        """
        key = tuple(sizes.values())
        with self._lock:
            pool = self._frames.get(key)
            if pool is None:
                if len(self._frames) >= MOST_SIZES:  # each holds an arena
                    self._frames.clear()
                pool = self._frames[key] = []
            frame = pool.pop() if pool else None
        if frame is None:
            frame = _Frame(self, dict(sizes))
        try:
            return frame.run(arrays, out)
        finally:
            frame.forget()
            pool.append(frame)

    def seconds(self, arrays: Sequence[np.ndarray], sizes: Sizes) -> list[float]:
        """How long each step of the plan takes in one run. Donated arrays and states are written as in any run."""
        frame = _Frame(self, dict(sizes))
        found: list[float] = []

        def timed(step: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                start = time.perf_counter()
                step()
                found.append(time.perf_counter() - start)

            return run

        frame.steps = [timed(step) for step in frame.steps]
        frame.run(arrays, None)
        return found


def load(plan: Plan) -> Program:
    """Compile what the plan launches and make it callable."""
    return Program(plan)


def _nonempty_folds(plan: Plan) -> list[tuple[Size, Value, Value]]:
    """(reduced size, reduction, value of its step) for reductions that have no value for no elements."""
    return [
        (product(v.operands[0].shape[a] for a in v.attrs["axes"]), v, step.value)
        for step in plan.steps
        if step.kind == "launch"
        for v in postorder(step.value.regions[0].results)
        if v.op.facts.get("nonempty")
    ]


def _build(step: Step, names: dict[tuple, str]) -> Launch | None:
    """How to launch a step, or None where the backend has no rendering for it. ``names``: kernels by what they do."""
    (region,) = step.value.regions
    try:
        source = render("kernel", scalarize(collapse(region)))
    except Unsupported:
        return None
    name = names.setdefault((source.text, source.operands, source.results), kernel_name(step.value))
    source = replace(source, text=source.text.replace("def kernel(", f"def {name}(", 1))
    return Launch(compile_kernel(source, name), source.sizes)


class _Frame:
    """Memory and prepared arguments of one call at given sizes."""

    def __init__(self, program: Program, sizes: dict[str, int]):
        self.plan, self.sizes = program.plan, sizes
        plan = self.plan
        for size, fold, value in program.nonempty:
            if evaluate(size, sizes) == 0:
                raise ShapeError(
                    f"{fold.op.name} of no elements has no value: {fold.operands[0].type} over axes "
                    f"{fold.attrs['axes']}",
                    where=plan.function.locations(value),
                )
        arena = evaluate(plan.arena, sizes)
        raw = np.empty(arena + ALIGN, np.uint8)
        start = -raw.ctypes.data % ALIGN
        self.arena = raw[start : start + arena]
        self.memory: dict[str, np.ndarray] = {}  # buffer -> array as allocated
        self.addresses: dict[str, int] = {}
        self.words: dict[str, list[tuple[np.ndarray, int]]] = {name: [] for name in plan.buffers}
        self.views: dict[tuple[str, TensorType], np.ndarray] = {}
        self.shapes = {name: concrete_shape(t.shape, sizes) for name, t in plan.types.items()}
        self.fixed: set[str] = set()
        self.steps: list[Callable[[], None]] = [self._prepare(program, step) for step in plan.steps]
        self._place_fixed()
        given = [(n, b) for n, b in plan.buffers.items() if b.kind in ("input", "state")]
        self.given = [(name, b.value.attrs["index"]) for name, b in given if b.value is not None]
        outputs = plan.results[: len(plan.function.outputs)]
        self.fresh = [
            (name, self.shapes[name], plan.types[name].dtype, outputs.index(name) if name in outputs else None)
            for name, b in plan.buffers.items()
            if b.kind == "result"
        ]
        self.returned = [
            (name, concrete_shape(v.shape, sizes))
            for name, v in zip(plan.results, plan.function.body.results, strict=True)
        ]

    def _place_fixed(self) -> None:
        for name, buffer in self.plan.buffers.items():
            t = self.plan.types[name]
            if buffer.kind == "temp":
                at = evaluate(self.plan.offsets[name], self.sizes)
                nbytes = evaluate(buffer.nbytes, self.sizes)
                self._put(name, self.arena[at : at + nbytes].view(t.dtype).reshape(self.shapes[name]))
            elif buffer.kind == "constant":
                assert buffer.value is not None
                data = (
                    buffer.value.attrs["value"].data
                    if buffer.value.op.name == "constant"
                    else apply(buffer.value, [], self.sizes, False, None)
                )
                self._put(name, np.ascontiguousarray(data).reshape(self.shapes[name]))
            else:
                continue
            self.fixed.add(name)

    def _put(self, name: str, array: np.ndarray) -> None:
        """Let a buffer be an array, in every prepared argument."""
        self.memory[name] = array
        address = self.addresses[name] = array.__array_interface__["data"][0]
        for words, k in self.words[name]:
            words[k] = address

    def forget(self) -> None:
        """Let go of the caller's arrays and of results."""
        for name, _ in self.given:
            self.memory.pop(name, None)
        for name, *_ in self.fresh:
            self.memory.pop(name, None)
        if self.views:
            self.views = {k: v for k, v in self.views.items() if k[0] in self.fixed}

    # -- preparing steps

    def _prepare(self, program: Program, step: Step) -> Callable[[], None]:
        if step.kind == "launch" and step.value.regions[0] in program.launches:
            return self._launch(program.launches[step.value.regions[0]], step)
        if step.kind == "copy":
            return lambda: np.copyto(self.memory[step.writes[0]].reshape(-1), self.memory[step.reads[0]].reshape(-1))
        if step.value.op.name == "dot":
            run = self._blas(step)
            if run is not None:
                return run
        return lambda: self._reference(step)

    def _launch(self, launch: Launch, step: Step) -> Callable[[], None]:
        numbers = [evaluate(s, self.sizes) for s in launch.sizes]
        words = np.zeros(len(numbers) + len(step.reads) + len(step.writes), np.int64)
        words[: len(numbers)] = numbers
        for k, name in enumerate((*step.reads, *step.writes)):
            self.words[name].append((words, len(numbers) + k))
        address, call = words.ctypes.data, launch.kernel.call
        return lambda: call(address)

    def _blas(self, step: Step) -> Callable[[], None] | None:
        form = as_gemm(step.value)
        if form is None:
            return None
        batch, m, n, k = (evaluate(s, self.sizes) for s in (form.batch, form.m, form.n, form.k))
        run = blas.gemm(step.value.dtype, batch, m, n, k, form.trans_a, form.trans_b)
        if run is None:
            return None
        (a, b), (c,) = step.reads, step.writes
        where = self.addresses
        return lambda: run(where[a], where[b], where[c])

    def _reference(self, step: Step) -> None:
        v = step.value
        arrays = [self._view(name, o.type) for name, o in zip(step.reads, v.operands, strict=True)]
        with np.errstate(all="ignore"):
            found = apply(v, arrays, self.sizes, False, self.plan.function.hints)
        results = found if isinstance(found, tuple) else (found,)
        types = v.type.items if isinstance(v.type, TupleType) else (v.type,)
        for name, t, x in zip(step.writes, types, results, strict=True):
            np.copyto(self._view(name, t), x, casting="no")

    def _view(self, name: str, t: TensorType) -> np.ndarray:
        key = (name, t)
        view = self.views.get(key)
        if view is None:
            memory, shape = self.memory[name], concrete_shape(t.shape, self.sizes)
            if memory.dtype != t.dtype or memory.shape != shape:  # a buffer may hold several values, one after another
                memory = memory.reshape(-1).view(np.uint8)[: math.prod(shape) * t.dtype.itemsize].view(t.dtype)
            view = self.views[key] = memory.reshape(shape)
        return view

    # -- running

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray | None] | None) -> list[np.ndarray]:
        for name, index in self.given:
            self._put(name, arrays[index])
        for name, shape, dtype, k in self.fresh:
            array = out[k] if out is not None and k is not None else None
            self._put(name, np.empty(shape, dtype) if array is None else array.reshape(shape))
        for step in self.steps:
            step()
        memory = self.memory
        return [
            memory[name] if memory[name].shape == shape else memory[name].reshape(shape)
            for name, shape in self.returned
        ]
