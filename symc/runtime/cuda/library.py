"""The functions of ``symc.runtime.library`` that a kernel calls, as CUDA C++, and with them whole translation units.

What ``llvm_library`` reads for the CPU is translated here, function by function: so both compute the same numbers, and
random bits are equal. A helper becomes a template, typed by what it is called with. Functions of the C library that
the library has itself (exp, log, pow, ...) are its own, so that code is the same wherever it runs; where a function's
own formula ends (the sine of 1e30), CUDA's stands.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symc.codegen.cpu.text import Unsupported
from symc.codegen.cuda.cxx import LIBM, PRIMITIVES, Translator
from symc.codegen.cuda.prelude import END, PRELUDE
from symc.codegen.cuda.source import CudaSource
from symc.codegen.kernel.user_functions import PREFIX
from symc.ir.facts import Routine
from symc.ir.locks import new_lock
from symc.ir.phases import phase
from symc.ir.record import dataclass
from symc.runtime.compilers.llvm_library import Helper, Library, library
from symc.runtime.cpu.scipy_functions import IN_TEXT
from symc.runtime.cuda.device import Signature
from symc.runtime.cuda.user_text import user_text

#: What the CPU calls by address, and who computes it here: name in the texts -> helper.
INSTEAD = {"scipy_d00_erfcx": "erfcx_number"}
_lock = new_lock()


@dataclass(frozen=True)
class _Part:
    """The text of a function or a table, and the parts that must stand before it."""

    text: str
    needs: tuple[str, ...]


@phase("CUDA text")
def unit(sources: Sequence[CudaSource]) -> str:
    """The text of several kernels, whose entries have different names."""
    names = dict.fromkeys(n for s in sources for n in s.helpers)
    return "".join([PRELUDE, helpers(names), *(s.text for s in sources), END])


def signatures(source: CudaSource) -> list[Signature]:
    """Declarations of the entries of a kernel."""
    width = {"size": 8 if source.wide else 4}
    return [Signature(e.name, tuple(width.get(a.kind, 8) for a in e.arguments)) for e in source.entries]


def helpers(names: Iterable[str]) -> str:
    """The text of functions of the library and of all that they call, each once, after what it needs."""
    done: dict[str, str] = {}
    waiting = [(_known(n), False) for n in sorted(names, reverse=True)]
    while waiting:
        name, ready = waiting.pop()
        if name in done:
            continue
        part = _part(name)
        if ready:
            done[name] = part.text
        else:
            waiting.append((name, True))
            waiting.extend((n, False) for n in reversed(part.needs) if n not in done)
    return "".join(done.values())


# --- single functions; a part is called "module:name" or, where a name means the same in all modules, "name" ----------


@functools.cache
def _part(key: str) -> _Part:
    """A function or a table by its key."""
    with _lock:
        module, _, name = key.rpartition(":")
        found = library()
        if name.startswith(PREFIX):
            text, needs = user_text(name)
            return _Part(text, tuple(map(_known, needs)))
        if module.startswith("table "):
            return _table_part(found, module.removeprefix("table "), name)
        return _function(found.local[module, name]) if module else _choice(found, name)


def _known(name: str) -> str:
    """The key of what kernels call so. Raises Unsupported."""
    with _lock:
        key = _key(library(), name, "")
    if key is None:
        raise _missing(name)
    return key


def _missing(name: str) -> Unsupported:
    """Error for a function that devices do not have."""
    if name.startswith(IN_TEXT):
        name = f"scipy.special.{Routine.of(name.removeprefix(IN_TEXT)).name}, which is SciPy's code for a CPU,"
    return Unsupported(f"the function {name} on a GPU")


def _key(found: Library, name: str, module: str) -> str | None:
    """The key of what a function's name means in a module."""
    if name in found.widths or name.startswith(PREFIX):
        return name
    helper = found.local.get((module, name)) or found.public.get(name)
    return None if helper is None else f"{helper.module}:{name}"


@functools.cache
def _counts() -> Counter[str]:
    """In how many modules a name is that of a function."""
    return Counter(name for _, name in library().local)


def _symbol(helper: Helper) -> str:
    """Name of a helper in C++."""
    alone = _counts()[helper.name] == 1
    return helper.name if alone and helper.name not in library().widths else f"{helper.module}_{helper.name}"


def _choice(found: Library, name: str) -> _Part:
    """A name that stands for one function of 32 bits and one of 64."""
    narrow, wide = found.widths[name]
    operands = [a.arg for a in narrow.tree.args.args]
    types = ", ".join(f"class T{k}" for k in range(len(operands)))
    typed = ", ".join(f"T{k} {a}" for k, a in enumerate(operands))
    test = " && ".join(f"is_narrow<T{k}>" for k in range(len(operands)))
    calls = [f"return {_symbol(h)}({', '.join(operands)});" for h in (narrow, wide)]
    text = (f"template <{types}> SYMC_FUNCTION auto {name}({typed}) {{\n  if constexpr ({test}) {calls[0]}\n"
            f"  else {calls[1]}\n}}\n")
    return _Part(text, tuple(f"{h.module}:{h.name}" for h in (narrow, wide)))


def _function(helper: Helper) -> _Part:
    """A helper as a template."""
    tree = helper.tree
    translator = _Translator(helper)
    names = [a.arg for a in tree.args.args]
    lines = translator.body([s for s in tree.body if not _is_doc(s)], names)
    types = ", ".join(f"class T{k}" for k in range(len(names)))
    typed = ", ".join(f"T{k} {translator.value(ast.Name(n))}" for k, n in enumerate(names))
    how = "SYMC_CALLED" if helper.called else "SYMC_FUNCTION"
    text = f"template <{types}> {how} auto {_symbol(helper)}({typed}) {{\n" + "\n".join(lines) + "\n}\n"
    return _Part(text, tuple(translator.needs))


def _is_doc(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _table_part(found: Library, module: str, name: str) -> _Part:
    numbers = np.asarray(_scope(found, module)[name])
    kind = {"f": "f", "i": "i", "u": "u"}[numbers.dtype.kind]
    text = ", ".join(_text(x) for x in numbers)
    declared = f"{kind}{8 * numbers.dtype.itemsize} {_table_symbol(module, name)}[{len(numbers)}]"
    return _Part(f"static __device__ const {declared} = {{{text}}};\n", ())


def _table_symbol(module: str, name: str) -> str:
    return f"table_{module}_{name.strip('_')}"


def _scope(found: Library, module: str) -> Any:
    return next(h.scope for (m, _), h in found.local.items() if m == module)


def _text(x: Any) -> str:
    """A number of NumPy or Python, with its dtype."""
    plain = Translator("i64", {})
    if isinstance(x, np.generic) and x.dtype.kind in "iuf" and x.dtype != np.float64:
        name = f"{x.dtype.kind}{8 * x.dtype.itemsize}"
        if x.dtype.kind == "f":
            return f"{name}({plain.literal(float(x))})"
        return f"{name}({plain.literal(int(x))})"
    return plain.literal(x.item() if isinstance(x, np.generic) else x)


class _Translator(Translator):
    """Writes a helper: names mean what they mean in its module."""

    def __init__(self, helper: Helper):
        super().__init__("i64", {})
        self.helper, self.needs = helper, dict[str, None]()
        self.known: set[str] = {a.arg for a in helper.tree.args.args}
        self.known |= {n.id for n in ast.walk(helper.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def function(self, name: str) -> str:
        found = library()
        if name in INSTEAD:
            name = INSTEAD[name]
        key = None if name in PRIMITIVES else _key(found, name, self.helper.module)
        if key is None:
            if name not in PRIMITIVES:
                raise _missing(name)
            return name
        self.needs[key] = None
        module, _, name = key.rpartition(":")
        return _symbol(found.local[module, name]) if module else name

    def math_function(self, name: str) -> str:
        found = library()
        own = any(module == self.helper.module for module, n in found.local if n == name)
        if name in LIBM and own:  # for what the module itself cannot compute
            return f"libm_{name}"
        return super().math_function(name)

    def constant(self, name: str) -> str | None:
        if name in self.known:
            return None
        known = super().constant(name)
        return known if known is not None else _text(self.helper.scope[name])

    def table(self, e: ast.expr) -> Sequence[str] | None:
        if not isinstance(e, ast.Name) or e.id in self.known or e.id not in self.helper.scope:
            return None
        numbers = self.helper.scope[e.id]
        return [_text(x) for x in numbers] if isinstance(numbers, tuple | np.ndarray) else None

    def table_name(self, e: ast.expr) -> str:
        assert isinstance(e, ast.Name)
        module = next(m for m in _owners(self.helper.module) if e.id in _own(m))
        self.needs[f"table {module}:{e.id}"] = None
        return _table_symbol(module, e.id)


def _owners(module: str) -> list[str]:
    """Modules in which to look for a name: the own one, then the others in order."""
    every = list(dict.fromkeys(m for m, _ in library().local))
    return [module, *[m for m in every if m != module]]


def _own(module: str) -> Any:
    scope = _scope(library(), module)
    return {n for n in (*scope.known, *scope.texts) if scope.has(n)}
