"""Interfaces of exports: arguments, results, states and sizes by names that C allows, and the plan that is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.codegen.c.prelude import FUNCTIONS, TYPES
from symc.codegen.kernel.names import is_kernel
from symc.codegen.plan.cells import may_fail
from symc.codegen.plan.planner import make_plan
from symc.driver.measured import MeasuredFunction
from symc.errors import ExportError
from symc.export.sizes import c_size
from symc.ir import location
from symc.ir.dim import Size, is_fresh
from symc.ir.dtypes import RECORDS
from symc.ir.function import NUMBERED, Function, Input, bound_names
from symc.ir.ops.cached import cached
from symc.ir.plan import Plan
from symc.ir.record import dataclass, replace
from symc.ir.requires import requirements
from symc.ir.size_values import names
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.passes import optimize
from symc.tensors.callsite import caller

_MATH = ("acos acosh asin asinh atan atan2 atanh cabs cbrt ceil cexp cimag clog conj copysign cos cosh cpow creal csin "
         "csqrt erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint "
         "llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round "
         "scalbn sin sinh sqrt tan tanh tgamma trunc")
#: Words of C, names of its headers and of POSIX's, and what an export calls its own: no argument or function is called
#: so.
TAKEN = frozenset(
    "auto bool break case char complex const continue default do double else enum extern false float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch true typedef union unsigned "
    "void volatile while asm main gamma y0 y1 yn j0 j1 jn I NULL NAN INFINITY CMPLX CMPLXF EOF errno math_errhandling "
    "signgam fpclassify isfinite isinf isnan isnormal signbit linux unix "
    "abort abs access alarm atexit atof atoi atol bind bsearch calloc close connect div dup exec exit fork free getenv "
    "index kill labs ldiv link listen malloc mblen memchr memcmp memcpy memmove memset open pause perror pipe printf "
    "putc puts qsort raise rand random read realloc recv remove rename rewind rindex scanf select send signal sleep "
    "socket srand srandom stat stderr stdin stdout strcat strchr strcmp strcpy strlen strtod strtok strtol sync system "
    "time truncate unlink wait write "
    "workspace memory arena code need own kept steps copy clear blas all_true are_fine".split()) | FUNCTIONS.keys() | {
        f"{name}{kind}" for name in _MATH.split() for kind in ("", "f", "l")}

#: How names of functions and arrays of an export, of types and macros of C begin or end.
OWN = re.compile(r"k\d+_|constant_\d|table\d|size_[a-z]+|[a-z_]+_[sdcz]$|u?int\w*_t$|[UIFDLS][A-Z]*\d*_(C|M[AI][NX])$")
#: How its functions of numbers end: no function is called so.
OF_TYPES = re.compile(rf"\w+_({'|'.join(TYPES)})")


@dataclass(frozen=True)
class Array:
    """An array of the interface. ``type``: with the sizes that callers know; ``const``: calls do not write it."""

    name: str
    type: TensorType
    const: bool = True
    updated: bool = False

    @property
    def c_type(self) -> str:
        return c_type(self.type.dtype)


@dataclass(frozen=True)
class Interface:
    """``sizes``: what C calls each size, by its name in the function. ``flush``: denormal numbers are zeros."""

    name: str
    function: Function
    plan: Plan
    inputs: tuple[Array, ...]
    states: tuple[Array, ...]
    results: tuple[Array, ...]
    sizes: dict[str, str]
    flush: bool = False

    def size(self, s: Size) -> str:
        """A size as an expression of C."""
        return c_size(s, self.sizes)


def c_type(dtype: np.dtype) -> str:
    """Type of elements in the interface: bool for booleans, the bits of half floats."""
    return "bool" if dtype.kind == "b" else TYPES[RECORDS[dtype].memory]


def interface_of(f: Any) -> Interface:
    """The interface of a compiled function, and the plan that its export runs. Raises ExportError."""
    final, outputs = _function_of(f), f._built.outputs
    found = interface(final, [""] if outputs.kind == "leaf" else outputs.paths())
    return replace(found, flush=f._compilation.settings.target.flush)


def interface(final: Function, paths: Sequence[str]) -> Interface:
    """The same of an optimized function. ``paths``: how each result is reached."""
    name = identifier(final.name, set())
    name = f"{name}_" if OF_TYPES.fullmatch(name) else name
    taken = {name}
    inputs = [Array(identifier(i.name, taken), i.declared or i.type) for i in final.inputs if i.role == "arg"]
    states = [Array(identifier(i.name, taken), i.declared or i.type, k not in final.updates, k in final.updates)
              for k, i in enumerate(final.inputs) if i.role == "state"]
    results = [Array(identifier("result" + path, taken), v.type, False)  # type: ignore[arg-type]
               for path, v in zip(paths, final.outputs, strict=True)]
    sizes = {n: identifier(_size_label(n, final.inputs), taken)
             for n in bound_names(i.declared or i.type for i in final.inputs)}
    plan = make_plan(final, frozenset(final.updates), fails=_fails)
    return Interface(name, final, plan, tuple(inputs), tuple(states), tuple(results), sizes)


def _function_of(f: Any) -> Function:
    """The optimized function, which keeps nothing between calls."""
    if isinstance(f, MeasuredFunction):
        raise ExportError(f"{f.name} has sizes that are data, for which results cannot be allocated before a call",
                          where=[caller()], help="export a function whose sizes are those of its arguments")
    settings = f._compilation.settings
    if not settings.target.on_host:
        raise ExportError(f"{f.name} was compiled for {settings.target.device}", where=[caller()],
                          help="compile it for the CPU to export it: device='cpu'")
    plain = settings.backend.plans and settings.mode == "default"
    final = f._compilation.optimized.function if plain else optimize(f._compilation.source).function
    kept = {v: v.operands[0] for v in final.values() if v.op is cached}
    guards = tuple(g for g in final.guards if g.least != "variant")  # variants serve other sizes, this one all
    hints = dict(final.hints)
    if kept:
        made = replace_values(final.body.results, kept, location.carrying(final.hints, hints))
        final = final.with_results(made, hints)
    return replace(final, guards=guards)


def _fails(v: Value) -> bool:
    """True for what may stop an export: states are written after all of these."""
    return may_fail(v) or is_kernel(v) and bool(requirements(v.regions[0]))


def _size_label(name: str, inputs: Sequence[Input]) -> str:
    """The size's own name, or that of the first axis that has it."""
    if not (NUMBERED.fullmatch(name) or is_fresh(name)):
        return name
    return next(f"{i.name}_size{axis}" for i in inputs for axis, s in enumerate((i.declared or i.type).shape)
                if name in names(s))


def identifier(name: str, taken: set[str]) -> str:
    """A name that C allows, unlike those that are taken; it is taken then."""
    base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "f"
    base = f"_{base}" if base[0].isdigit() else base
    base = f"{base}_" if base in TAKEN or OWN.match(base) else base
    found, k = base, 1
    while found in taken:
        found, k = f"{base}_{k}", k + 1
    taken.add(found)
    return found
