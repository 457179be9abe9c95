"""A plan on a device: kernels compiled and loaded, arguments in, arrays of the device out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.cuda.sorting import is_sort, sort_form
from symc.codegen.cuda.source import CudaSource
from symc.codegen.cuda.templates import Family, family
from symc.codegen.cuda.user import UserLaunch, has_user_kernel, user_launch
from symc.codegen.kernel.names import kernel_name, region_name
from symc.codegen.kernel.source import Form, kernel_form_of
from symc.codegen.language.syntax import Unsupported
from symc.codegen.plan.cells import nominal
from symc.codegen.plan.gemm import as_gemm, is_product
from symc.errors import DeviceError, InputError, did_you_mean
from symc.ir.dim import Size
from symc.ir.ops.collective import all_reduce
from symc.ir.phases import current, phase, recording
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, replace
from symc.ir.requires import Requirement, requirements
from symc.ir.value import Region
from symc.runtime.cpu.commit import replace_arrays
from symc.runtime.cpu.program import KernelRecord, every_step
from symc.runtime.cpu.timing import Laps
from symc.runtime.cuda import checks, products, solver
from symc.runtime.cuda.arrays import DeviceArray
from symc.runtime.cuda.device import Communicator, Kernel, Memory, Resources, Signature
from symc.runtime.cuda.devices import Context
from symc.runtime.cuda.frame import Frame
from symc.runtime.cuda.library import helpers, signatures, unit
from symc.runtime.cuda.lower import DeviceLowered, Fresh, lower
from symc.runtime.cuda.lowering import VECTOR
from symc.runtime.cuda.timed import TimedFrame

#: For how many combinations of sizes a program keeps frames.
MOST_SIZES = 16
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class CudaKernelRecord(KernelRecord):
    """A kernel as the user sees it, and what the compiler says each of its entries needs (None on an emulated device).
    """

    resources: Mapping[str, Resources | None]
    entries: Mapping[str, Kernel]

    def raw(self, entry: str | None = None) -> Any:
        """The ``cupy.RawKernel`` of an entry, by its name where there are several: ``raw()(grid, block, arguments)``.
        Arguments are those of the entry in ``source``: arrays, then sizes."""
        names = list(self.entries)
        if entry is None and len(names) > 1 or entry is not None and entry not in names:
            raise InputError(f"{self.name} has {len(names)} entries: {', '.join(names)}",
                             help="name one: raw(entry)" + ("" if entry is None else "; " + did_you_mean(entry, names)))
        found = getattr(self.entries[entry or names[0]], "raw", None)
        if found is None:
            raise DeviceError(f"{self.name} is on a device that is emulated: there is no cupy.RawKernel of it",
                              help="kernel.source is its text")
        return found


class LoadedFamily:
    """The variants of a kernel that have been needed so far, on one device."""

    def __init__(self, of: Family, form: Form, name: str):
        self.family, self.form, self.name = of, form, name
        self._variants: dict[str, tuple[CudaSource, dict[str, Kernel]]] = {}
        self.missing: dict[str, CudaSource] = {}

    def source(self, number: Callable[[Size], int]) -> CudaSource:
        """The text of the variant for these sizes."""
        choice = self.family.choose(number)
        return self.family.source(choice, f"{self.name}_{choice}" if choice else self.name)

    def at(self, number: Callable[[Size], int]) -> tuple[CudaSource, Mapping[str, Kernel | None]]:
        """The variant for these sizes. One that is not loaded has no entries yet, and is noted in ``missing``."""
        choice = self.family.choose(number)
        if choice not in self._variants:
            source = self.missing.setdefault(choice, self.source(number))
            return source, {e.name: None for e in source.entries}
        return self._variants[choice]

    def load(self, kernels: Mapping[str, Kernel]) -> None:
        """Adds the variants that were missing, of kernels that were loaded together with others."""
        for choice, source in self.missing.items():
            self._variants[choice] = source, {e.name: kernels[e.name] for e in source.entries}
        self.missing.clear()

    @property
    def text(self) -> str:
        return "\n".join(source.text for source, _ in self._variants.values())

    @property
    def resources(self) -> dict[str, Resources | None]:
        return {name: k.resources for name, k in self.entries.items()}

    @property
    def entries(self) -> dict[str, Kernel]:
        """All that were loaded, by name."""
        return {name: k for _, kernels in self._variants.values() for name, k in kernels.items()}


@phase("kernel", lambda where, sources: ", ".join(e.name for s in sources for e in s.entries)[:80])
def load_sources(where: Context, sources: Sequence[CudaSource]) -> dict[str, Kernel]:
    """Compile sources as one translation unit and load what it defines."""
    return where.kernels(unit(sources), [s for x in sources for s in signatures(x)])


class CudaProgram:
    """A loaded plan. Calls are given to the device one after the other, whoever makes them. ``rank``: of several
    devices that run it together."""

    def __init__(self, plan: Plan, where: Context, precision: str = "highest", rank: Communicator | None = None):
        self.rank = rank
        self.plan, self.context, self.precision, self._record = plan, where, precision, current()
        self.families: dict[Form, LoadedFamily] = {}
        self.launches: dict[Any, Any] = {}  # the same, and the users' kernels by the name of the op
        self.required: dict[Region, list[Requirement]] = {}
        self._constants: dict[int, tuple[np.ndarray, Memory]] = {}
        self._arena: Memory | None = None
        self._frames: dict[tuple, Frame] = {}
        self.replayed: Frame | None = None  # what the last call was a replay on, whose states stayed
        self._load()

    # -- loading

    def _load(self) -> None:
        """Render every kernel, and compile those of sizes as they will probably be."""
        names: dict[str, str] = {}
        for plan, step in every_step(self.plan):
            for form in forms_of(plan, step, self.context.name):
                if form in self.families:
                    continue
                try:
                    found = family(form)
                    plain = found.source(found.choose(nominal), "kernel")
                    helpers(plain.helpers)
                except Unsupported as e:
                    raise refusal(plan, step, self.context.name, str(e)) from None
                self.required[form[0]] = requirements(form[0])
                name = names.setdefault(plain.text, region_name(form[0]) + "_in_place" * bool(form[1]))
                self.families[form] = LoadedFamily(found, form, name)
                self.families[form].at(nominal)
        for _, step in every_step(self.plan):
            if step.kind == "call" and has_user_kernel(step.value):
                self.launches[step.value.op.name] = self._user_kernel
                types = step.value.types
                self._user_kernel(user_launch(step.value, nominal), len(step.value.operands) + len(types))
            elif step.kind == "call" and solver.is_solved(step.value):
                self.launches[solver.key(step.value)] = solver.load(step.value, self.context.kernels)
        self._load_missing()
        self.launches.update(self.families)

    def _load_missing(self) -> bool:
        """Compile all variants that were missing together: what they share is read once. False if there were none."""
        late = [loaded for loaded in self.families.values() if loaded.missing]
        if late:
            distinct = {s.text: s for loaded in late for s in loaded.missing.values()}
            kernels = load_sources(self.context, list(distinct.values()))
            for loaded in late:
                loaded.load(kernels)
        return bool(late)

    def _user_kernel(self, launch: UserLaunch, arrays: int) -> Kernel:
        """The entry of a user's kernel, which takes so many addresses and then numbers."""
        signature = Signature(launch.name, (8,) * (arrays + len(launch.numbers)))
        return self.context.kernels(launch.text, [signature])[launch.name]

    def constant(self, array: np.ndarray) -> Memory:
        """Memory of the device that holds a constant."""
        found = self._constants.get(id(array))
        if found is None:
            memory = self.context.device.alloc(max(array.nbytes, 1))
            if array.nbytes:
                self.context.device.upload(memory.address, array, self.context.stream)
            found = self._constants[id(array)] = array, memory
        return found[1]

    # -- what it holds

    @property
    def source(self) -> str:
        """The CUDA text of every distinct kernel, in the variants that were needed so far."""
        texts = {loaded.name: loaded.text for loaded in self.families.values()}
        for _, step in every_step(self.plan):
            if step.kind == "call" and solver.is_solved(step.value):
                texts[step.value.op.name] = solver.text(step.value)
        return "\n".join(texts.values())

    @property
    def kernels(self) -> list[CudaKernelRecord]:
        """One record a distinct kernel."""
        found: dict[str, list] = {}
        for plan, step in every_step(self.plan):
            for form in forms_of(plan, step, self.context.name):
                loaded = self.families[form]
                row = found.setdefault(loaded.name, [loaded, 0, {}])
                row[1] += 1
                row[2].update(dict.fromkeys(map(str, plan.function.locations(step.value))))
        return [CudaKernelRecord(n, k.text, count, tuple(lines), "cuda", k.resources, k.entries)
                for n, (k, count, lines) in found.items()]

    # -- running

    def lower(self, sizes: Sizes) -> DeviceLowered:
        """The actions for some sizes."""
        return self._lowered(self.plan, sizes)[0]

    def _lowered(self, plan: Plan, sizes: Sizes, timed: bool = False) -> tuple[DeviceLowered, Laps | None]:
        """A plan for some sizes: once more if kernels had to be compiled, which are then known."""
        with recording(self._record):
            found = lower(plan, self.launches, self.required, sizes, self.precision, timed)
            return lower(plan, self.launches, self.required, sizes, self.precision, timed) \
                if self._load_missing() else found

    def frame(self, sizes: Sizes) -> Frame:
        """The frame for some sizes; frames take turns with one arena."""
        key = tuple(sizes.values())
        found = self._frames.get(key)
        if found is None:
            lowered = self.lower(sizes)
            if self._arena is None or lowered.arena > self._arena.nbytes or len(self._frames) >= MOST_SIZES:
                self._frames.clear()
                self.context.release()
                self._arena = self.replayed = None  # the old one goes before the new one is made
                self._arena = self.context.device.alloc(lowered.arena)
            found = self._frames[key] = Frame(lowered, self.context, self._arena, self.constant, self.rank)
        return found

    def run(self, arrays: Sequence[Any], sizes: Sizes, out: Sequence[DeviceArray | None] | None = None,
            cells: Sequence[Any] = ()) -> list[DeviceArray]:
        """Outputs as arrays of the device that may still be being computed, then new states, or these in ``cells``.

        ``arrays``: arrays of this device, or contiguous ones of the host, which are copied. States are on the device,
        and written in place where the plan says so. ``out[k]``: where to write output k.
        """
        with self.context.lock:
            frame = self.frame(sizes)
            used = self._used(frame, arrays, out)
            self.replayed = frame if frame.call(used) and not (cells and frame.moved) else None
            if not cells:
                return self.results(frame, used)
            if frame.moved:
                moved = [cells[j] for j, _, _ in frame.moved]
                replace_arrays(moved, [self._result(used[k], shape) for _, k, shape in frame.moved])
                for cell in moved:
                    cell.disclaim()
            return self.results(frame, used, -len(cells))

    def prepare(self, arrays: Sequence[Any], sizes: Sizes) -> tuple[Frame, list[DeviceArray]]:
        """The frame for a call, and all arrays that it is to be run with."""
        with self.context.lock:
            frame = self.frame(sizes)
            return frame, self._used(frame, arrays, None)

    def results(self, frame: Frame, used: Sequence[DeviceArray], end: int | None = None) -> list[DeviceArray]:
        """Arrays of a call that it returns."""
        return [self._result(used[k], shape) for k, shape in frame.lowered.returned[:end]]

    def timer(self, sizes: Sizes) -> TimedFrame:
        """Frame that runs the plan and times each step of it, and of the bodies in it: one after the other, as the
        times of what runs at once could not be told apart."""
        plan = replace(self.plan, steps=tuple(replace(s, lane=0, waits=()) for s in self.plan.steps))
        lowered, laps = self._lowered(plan, sizes, timed=True)
        assert laps is not None
        with self.context.lock:
            frame = TimedFrame(lowered, self.context, self.context.device.alloc(lowered.arena), self.constant)
        frame.laps, frame.run_with = laps, lambda arrays: frame.call(self._used(frame, arrays, None))
        return frame

    def _used(self, frame: Frame, arrays: Sequence[Any], out: Sequence[DeviceArray | None] | None
              ) -> list[DeviceArray]:
        """All arrays of a call: the given ones, on the device where vectors may start, and those that it makes."""
        found = [self._placed(frame, k, a) for k, a in enumerate(arrays)]
        for k, fresh in enumerate(frame.lowered.fresh):
            array = out[fresh.output] if out is not None and fresh.output is not None else None
            found.append(self._fresh(frame, k, fresh) if array is None else array)
        return found

    def _result(self, a: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
        return a if a.shape == shape else DeviceArray(self.context, a.address, shape, a.dtype, a.owner, a.check)

    def _fresh(self, frame: Frame, k: int, fresh: Fresh) -> DeviceArray:
        memory = frame.fresh(k, fresh.dtype.itemsize * math.prod(fresh.shape))
        return DeviceArray(self.context, memory.address, fresh.shape, fresh.dtype, memory, frame.check)

    def _placed(self, frame: Frame, k: int, array: Any) -> DeviceArray:
        """An array on the device, where vectors may start."""
        where = self.context
        if not isinstance(array, DeviceArray):
            memory = frame.upload(k, array)
        elif array.address % VECTOR:
            memory = frame.staged(k, array.nbytes)
            where.device.copy(memory.address, array.address, array.nbytes, where.stream)
        else:
            return array
        return DeviceArray(where, memory.address, array.shape, array.dtype, memory)


def forms_of(plan: Plan, step: Step, device: str) -> Sequence[Form]:
    """The kernels that a step may launch. Raises DeviceError for one that would have to run on the host."""
    if step.kind == "launch":
        return (kernel_form_of(step, shared=False),)
    v = step.value
    if step.kind != "call" or v.op is all_reduce or has_user_kernel(v) or solver.is_solved(v):
        return ()
    if is_sort(step.value):
        return (sort_form(step.value),)
    if checks.is_check(step.value):
        form = checks.form_of(step.value)
        return () if form is None else (form,)
    if not is_product(step.value):
        raise refusal(plan, step, device)
    product = as_gemm(step.value, narrow=True)
    return (products.summed_form(step.value),) if product is None else products.forms_of(step.value)


def refusal(plan: Plan, step: Step, device: str, why: str = "") -> DeviceError:
    """Error for a step that a device cannot run."""
    v = step.value
    return DeviceError(f"{v.op.name if v.op.name != 'fused' else kernel_name(v)} cannot run on {device}"
                       + (f": no kernel for {why}" if why else ""),
                       values=[(f"operand {k}", o.type, None) for k, o in enumerate(v.operands)],
                       where=plan.function.locations(v),
                       help="compile it for device='cpu', or split the function there")
