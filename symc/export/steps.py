"""Steps of a plan as statements of C: kernels, copies, products, factorizations; what is no C is an ExportError.

Every buffer of a plan is a pointer. Steps that may stop return the number of a message. Memory that lasts for one step
lies behind the arena of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from symc.codegen.c.printer import Unit
from symc.codegen.cpu.render import Source
from symc.codegen.kernel.names import is_kernel, kernel_name, significant_ops
from symc.codegen.kernel.source import Form, kernel_source
from symc.codegen.language.syntax import Unsupported
from symc.codegen.plan.reuse import aligned
from symc.errors import ExportError
from symc.export.interface import Interface
from symc.export.prelude import Prelude
from symc.ir.dim import Size
from symc.ir.function import Function, Input
from symc.ir.ops.collective import all_reduce
from symc.ir.ops.effect import after
from symc.ir.plan import Plan, Step
from symc.ir.requires import Requirement, requirements
from symc.ir.text import print_attrs, print_function, told_attrs
from symc.ir.traverse import every_value
from symc.ir.value import Value
from symc.runtime.library import meaning

Pointers = dict[str, str]  # of the buffers of a plan


class Statements:
    """Writes the steps of plans. ``before``: what is looked at before anything runs; ``behind``: bytes of the workspace
    in front of those of a step; ``certain``: what is written now runs in every call (as often as ``times`` says).

    ``control`` writes loops and branches, ``routine`` the steps that are no kernels; False for what C cannot do."""

    def __init__(self, interface: Interface, behind: Size, control: Callable[[Statements, Step, Pointers], None],
                 routine: Callable[[Statements, Plan, Step, Sequence[str], Sequence[str]], bool]):
        self.interface, self.behind, self.size = interface, behind, interface.size
        self._control, self._routine = control, routine
        self.unit, self.prelude = Unit(meaning), Prelude(interface.name)
        arrays = (*interface.inputs, *interface.results, *interface.states)
        self._names_taken = {*(a.name for a in arrays), *interface.sizes.values()}
        self.lines: list[str] = []
        self.before: list[str] = []
        self.messages = ["", "a size is negative, or too large", "there is no memory for the workspace"]
        self.workspaces: list[Size] = []
        self.counts: list[Size] = []  # bytes of buffers, and what kernels are told
        self.certain, self.times = True, 1
        self.depth, self.count, self._taken = 1, 0, 0  # type: int, int, Size
        self._kernels: dict[Form, tuple[str, Source]] = {}
        self._names: dict[tuple, str] = {}
        self.constants: dict[Value, str] = {}

    # -- text

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A block in braces."""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """Marks statements that may not run."""
        before, self.certain = self.certain, False
        yield
        self.certain = before

    def fresh(self, prefix: str) -> str:
        self.count += 1
        found = f"{prefix}_{self.count}"
        return found if found not in self._names_taken else self.fresh(prefix)

    def pointer(self, name: str, place: str) -> str:
        """A pointer with the name of a buffer; what it is called."""
        found = self.fresh(name)
        self.line(f"void *const {found} = {place};")
        return found

    def at(self, base: str, offset: Size) -> str:
        """The address so many bytes behind another."""
        return base if offset == 0 else f"(char *){base} + {self.size(offset)}"

    def copy(self, to: str, source: str, nbytes: Size) -> None:
        if to != source and nbytes != 0:
            self.line(f"copy({to}, {source}, {self.size(nbytes)});")

    def message(self, text: str) -> int:
        """Number of a message."""
        if text not in self.messages:
            self.messages.append(text)
        return self.messages.index(text)

    def workspace(self, nbytes: Size) -> str:
        """Memory for the step that is written."""
        at = self._taken
        self._taken = at + aligned(nbytes)
        self.workspaces.append(self._taken)
        return f"(void *)({self.at('arena', self.behind + at)})"

    # -- plans

    def plan(self, plan: Plan, pointers: Pointers, base: str) -> None:
        """The steps of a plan, whose temps lie at ``base``."""
        self.counts += [b.nbytes for b in plan.buffers.values()]
        for name, b in plan.buffers.items():
            if b.kind == "constant":
                assert b.value is not None
                pointers[name] = self.constant(b.value)
            elif name in plan.offsets:
                pointers[name] = self.pointer(name, self.at(base, plan.offsets[name]))
        for step in plan.steps:
            self._step(plan, step, pointers)

    def constant(self, v: Value) -> str:
        return self.constants.setdefault(v, f"(void *)constant_{len(self.constants)}")

    def _step(self, plan: Plan, step: Step, pointers: Pointers) -> None:
        v, self._taken = step.value, 0
        reads, writes = [pointers[n] for n in step.reads], [pointers[n] for n in step.writes]
        self.line(f"/* {said(plan, step)} */")
        if step.kind == "control":
            self._control(self, step, pointers)
        elif step.kind == "copy" or v.op in (after, all_reduce):
            self.copy(writes[0], reads[0], v.type.nbytes)  # type: ignore[union-attr]
        elif is_kernel(v):
            self._launch(plan, step, reads, writes)
        elif not self._routine(self, plan, step, reads, writes):
            refuse(plan, v, v.op.name)

    # -- kernels

    def _launch(self, plan: Plan, step: Step, reads: Sequence[str], writes: Sequence[str]) -> None:
        v = step.value
        for r in requirements(v.regions[0]):
            self._require(plan, v, r)
        pairs = tuple((k, r) for k, a in enumerate(step.reads) for r, b in enumerate(step.writes) if a == b)
        name, source = self._kernel(plan, v, (v.regions[0], pairs))
        numbers = source.whole(lambda s: s)  # type: ignore[arg-type, return-value]
        self.counts += numbers
        over = {k for k, _ in pairs}  # which the kernel reads where it writes
        arrays = [*["NULL" if k in over else p for k, p in enumerate(reads)], *writes]
        arrays += [self.workspace(numbers[1] * d.itemsize) for d in source.partial]
        failed = self.fresh("failed")
        call = f"{name}({', '.join([*arrays, *[f'&{failed}'] * source.fails, *map(self.size, numbers)])});"
        if not source.fails:
            self.line(call)
            return
        with self.block(""):
            self.line(f"unsigned char {failed} = 0;")
            self.line(call)
            checks = [o for o in every_value(v.regions[0]) if "checks" in o.op.traits]
            there = dict.fromkeys(o.type.size for o in checks)  # type: ignore[union-attr]
            if not any(isinstance(n, int) and n for n in there):  # a check may be made ahead of a loop of no steps
                failed = f"{failed} && ({' || '.join(f'{self.size(n)} > 0' for n in there)})"
            names = ", ".join(sorted({o.op.name for o in checks}))
            self.stop(failed, plan, v, f"{names}: an index is out of bounds, or a number has no place")

    def stop(self, condition: str, plan: Plan, v: Value, why: str) -> None:
        """Return a message where something holds."""
        self.line(f"if ({condition}) return {self.message(why + _lines(plan, v))};")

    def _require(self, plan: Plan, v: Value, r: Requirement) -> None:
        """Look whether a kernel has a value at these sizes: before anything runs, if it runs in any case."""
        number = self.message(f"{r.value.op.name} has no value at these sizes{_lines(plan, v)}")
        bad = [f"{self.size(n)} {sign} 0" for n, sign, known in (
            (r.margin, "<", None), (r.count, ">", 1), (self.times if self.certain else 1, ">", 1)) if n != known]
        text = f"if ({' && '.join(bad)}) return {number};"
        if self.certain:
            self.before.append(f"  {text}")
        else:
            self.line(text)

    def _kernel(self, plan: Plan, v: Value, form: Form) -> tuple[str, Source]:
        """The name of the function of C, which is written at first."""
        if form in self._kernels:
            return self._kernels[form]
        try:
            source = kernel_source(form)
            name = self._names.get((source.text, source.arrays))
            if name is None:
                name = f"k{len(self._names)}_{'_'.join(significant_ops(form[0]))}"
                self.unit.kernel(source, name)
                how = f"{self.interface.name.upper()}_CLONES static "
                self.unit.functions[-1] = _comment(plan, v) + how + self.unit.functions[-1]
                self._names[source.text, source.arrays] = name
        except Unsupported as e:
            ops = {o.op.name: o for o in every_value(v.regions[0])}
            guilty = next((n for n in ops if n in str(e)), ", ".join(significant_ops(form[0])))
            refuse(plan, v, guilty, f"{e}: C has no such thing")
        self._kernels[form] = name, source
        return name, source


def refuse(plan: Plan, v: Value, name: str, why: str = "no routine of C computes it") -> NoReturn:
    """Raise the error for an op that has no form in C."""
    raise ExportError(f"{plan.function.name.partition('.')[0]}: {name} cannot be exported to C ({why})",
                      where=plan.function.locations(v),
                      help="export a function without it, and compute it where the export is called")


def _lines(plan: Plan, v: Value) -> str:
    found = plan.function.locations(v)
    return f" ({', '.join(map(str, found))})" if found else ""


def said(plan: Plan, step: Step) -> str:
    """A step as a comment: what the plan does, and the user's lines."""
    v = step.value
    what = kernel_name(v) if is_kernel(v) else "copy" if step.kind == "copy" else v.op.name
    attrs = told_attrs(v) if step.kind in ("call", "control") else {}
    shown = " " + print_attrs(attrs) if attrs and len(str(attrs)) < 80 else ""
    text = f"{', '.join(step.writes)} <- {what} {', '.join(step.reads)}{shown}{_lines(plan, v)}"
    return _in_comment(text)


def _in_comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\\n", " \n")


def _comment(plan: Plan, v: Value) -> str:
    """The statements of the IR that a kernel computes, and the user's lines."""
    (region,) = v.regions
    inputs = tuple(Input(f"a{k}", t) for k, t in enumerate(region.params))  # type: ignore[arg-type]
    text = print_function(Function(kernel_name(v), inputs, region, hints=plan.function.inside.get(region, {})))
    head = f"/*{_lines(plan, v)}\n" if plan.function.locations(v) else "/*\n"
    return head + "".join(f"   {_in_comment(line)}\n" for line in text.splitlines()) + "*/\n"
