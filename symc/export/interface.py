"""Interfaces of exports: arguments, results, states and sizes by names that C allows, and the plan that is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symc.codegen.c.prelude import FUNCTIONS, TYPES
from symc.codegen.kernel.names import is_kernel
from symc.codegen.plan.cells import may_fail
from symc.codegen.plan.planner import make_plan
from symc.driver.measured import MeasuredFunction
from symc.errors import ExportError
from symc.ir.dim import Call, Dim, Size, in_order, is_fresh, size_name
from symc.ir.dtypes import RECORDS
from symc.ir.function import NUMBERED, Function, Input, bound_names
from symc.ir.ops.cached import cached
from symc.ir.plan import Plan
from symc.ir.record import dataclass, replace
from symc.ir.requires import requirements
from symc.ir.size_values import names, substitute
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

    def carry(old: Value, new: Value) -> None:
        if old in hints:
            hints[new] = hints[old]

    if kept:
        final = final.with_results(replace_values(final.body.results, kept, carry), hints)
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


_CALLS = {"floordiv": "size_divide", "mod": "size_modulo", "min": "size_least", "max": "size_most"}


def c_size(s: Size, sizes: dict[str, str]) -> str:
    """A size as an expression of C, in parentheses where it is a sum."""
    return _written(s, lambda n: sizes[n], lambda fn, a, b: f"{_CALLS[fn]}({a}, {b})")


def c_bound(s: Size, sizes: dict[str, str]) -> str:
    """Bound of a size and of everything that it is computed from, in floating point, for sizes of at least 0."""
    if not isinstance(s, Dim):
        return f"{abs(s)}.0"
    return " + ".join(" * ".join([f"{abs(c)}.0"] + [
        sizes[a] if isinstance(a, str) else f"({' + '.join(c_bound(x, sizes) for x in a.args)})"
        for a, power in monomial for _ in range(power)]) for monomial, c in s.terms)


def python_size(s: Size, sizes: dict[str, str]) -> str:
    """The same of Python."""
    def call(fn: str, a: str, b: str) -> str:
        sign = {"floordiv": "//", "mod": "%"}.get(fn)
        return f"(({a}) {sign} ({b}))" if sign else f"{fn}({a}, {b})"

    return _written(s, lambda n: sizes[n], call)


def _written(s: Size, name: Callable[[str], str], call: Callable[[str, str, str], str]) -> str:
    if not isinstance(s, Dim):
        return str(s)
    text = ""
    for monomial, c in s.terms:
        factors = [name(a) if isinstance(a, str) else _called(a, name, call) for a, power in monomial
                   for _ in range(power)]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = "-" if c < 0 else "+"
        text += (f" {sign} " if text else sign.replace("+", "")) + " * ".join(factors)
    return text if len(s.terms) == 1 and text[0] != "-" else f"({text})"


def _called(c: Call, name: Callable[[str], str], call: Callable[[str, str, str], str]) -> str:
    return call(c.fn, *(_written(a, name, call) for a in c.args))


def solutions(shapes: Iterable[Sequence[Size]], sizes: dict[str, str]) -> list[tuple[str, str]]:
    """For each size the expression of Python that finds it in ``shapes``, in an order in which each needs those before.
    ``shapes[k][axis]`` are the numbers of a call."""
    axes = [(f"shapes[{k}][{axis}]", s) for k, shape in enumerate(shapes) for axis, s in enumerate(shape)
            if isinstance(s, Dim)]
    found: dict[str, str] = {}
    for plain in (True, False):
        for place, s in axes:
            unknown = sorted(names(s) - found.keys())
            if len(unknown) == 1 and (s == size_name(unknown[0])) >= plain:
                solved = _solution(place, s, unknown[0], sizes)
                if solved is not None:
                    found[unknown[0]] = solved
    missing = in_order(sizes.keys() - found.keys())
    if missing:
        raise ExportError(f"the size {missing[0]} cannot be told from the shapes of arguments",
                          help="declare an input that has it as an axis of its own")
    return [(sizes[n], text) for n, text in found.items()]


def _solution(place: str, s: Dim, name: str, sizes: dict[str, str]) -> str | None:
    """``s = a * name + b`` solved for the name."""
    b = substitute(s, {name: 0})
    a = substitute(s - b, {name: 1})
    if s != a * size_name(name) + b:
        return None
    if a == 1 and b == 0:
        return place
    return f"({place} - {python_size(b, sizes)}) // {python_size(a, sizes)}"
