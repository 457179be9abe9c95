"""The functions of ``symc.runtime.library`` that a kernel calls, and those of users (``sc.op(numba=...)``,
``sc.op(cuda="out = ...")``), as CUDA C++, and with them whole translation units.

What is compiled for the CPU is translated here, function by function: so both compute the same numbers, and
random bits are equal. A helper becomes a template, typed by what it is called with. Functions of the C library that
the library has itself (exp, log, pow, ...) are its own, so that code is the same wherever it runs; where a function's
own formula ends (the sine of 1e30), CUDA's stands.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symc.codegen.cuda.cxx import LIBM, PRIMITIVES, Translator
from symc.codegen.cuda.prelude import END, PRELUDE
from symc.codegen.cuda.source import CudaSource
from symc.codegen.kernel.user_functions import PREFIX, of_cuda, python_function
from symc.codegen.language.helpers import Helper, Widths
from symc.codegen.language.syntax import Unsupported
from symc.ir.facts import Routine
from symc.ir.locks import new_lock
from symc.ir.phases import phase
from symc.ir.record import dataclass
from symc.ir.types import DTYPE_NAMES
from symc.runtime.cpu.scipy_functions import IN_TEXT
from symc.runtime.cuda.device import Signature
from symc.runtime.library import helper

_lock = new_lock()


@dataclass(frozen=True)
class _Table:
    """A constant array."""

    name: str
    numbers: tuple[Any, ...]


#: A function, a function of either width, a user's function, or a table.
_Key = Helper | Widths | str | _Table


@dataclass(frozen=True)
class _Part:
    """The text of a function or a table, and the parts that must stand before it."""

    text: str
    needs: tuple[_Key, ...]


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
    done: dict[_Key, str] = {}
    waiting = [(_known(n), False) for n in sorted(names, reverse=True)]
    while waiting:
        key, ready = waiting.pop()
        if key in done:
            continue
        part = _part(key)
        if ready:
            done[key] = part.text
        else:
            waiting.append((key, True))
            waiting.extend((n, False) for n in reversed(part.needs) if n not in done)
    return "".join(done.values())


# --- single functions and tables --------------------------------------------------------------------------------------


@functools.cache
def _part(key: _Key) -> _Part:
    with _lock:
        if isinstance(key, str):
            text, needs = user_text(key)
            return _Part(text, tuple(map(_known, needs)))
        if isinstance(key, _Table):
            return _table_part(key)
        return _function(key) if isinstance(key, Helper) else _choice(key)


def _known(name: str) -> _Key:
    """The function that kernels call so. Raises Unsupported."""
    if name.startswith(PREFIX):
        return name
    found = helper(name)
    if found is None:
        raise _missing(name)
    return found


def _missing(name: str) -> Unsupported:
    """Error for a function that devices do not have."""
    if name.startswith(IN_TEXT):
        name = f"scipy.special.{Routine.of(name.removeprefix(IN_TEXT)).name}, which is SciPy's code for a CPU,"
    return Unsupported(f"the function {name} on a GPU")


def _choice(found: Widths) -> _Part:
    """A name that stands for one function of 32 bits and one of 64."""
    operands = found.narrow.operands
    types = ", ".join(f"class T{k}" for k in range(len(operands)))
    typed = ", ".join(f"T{k} {a}" for k, a in enumerate(operands))
    test = " && ".join(f"is_narrow<T{k}>" for k in range(len(operands)))
    calls = [f"return {h.name}({', '.join(operands)});" for h in (found.narrow, found.wide)]
    text = (f"template <{types}> SYMC_FUNCTION auto {found.name}({typed}) {{\n  if constexpr ({test}) {calls[0]}\n"
            f"  else {calls[1]}\n}}\n")
    return _Part(text, (found.narrow, found.wide))


def _function(found: Helper) -> _Part:
    """A helper as a template."""
    translator = _Translator(found)
    lines = translator.body(found.tree.body, found.operands)
    types = ", ".join(f"class T{k}" for k in range(len(found.operands)))
    typed = ", ".join(f"T{k} {translator.value(ast.Name(n))}" for k, n in enumerate(found.operands))
    how = "SYMC_CALLED" if found.called else "SYMC_FUNCTION"
    text = f"template <{types}> {how} auto {found.name}({typed}) {{\n" + "\n".join(lines) + "\n}\n"
    return _Part(text, tuple(translator.needs))


def _table_part(table: _Table) -> _Part:
    text, name = ", ".join(map(_text, table.numbers)), np.asarray(table.numbers).dtype
    return _Part(f"static __device__ const {DTYPE_NAMES[name]} {table.name}[{len(table.numbers)}] = {{{text}}};\n", ())


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

    def __init__(self, found: Helper):
        super().__init__("i64", {})
        self.found, self.needs = found, dict[_Key, None]()
        self.known = {*found.operands, *found.function.__code__.co_varnames}

    def function(self, name: str) -> str:
        if name in PRIMITIVES:
            return name
        key = self.found.scope.get(name)
        if not isinstance(key, Helper | Widths):
            key = helper(name)
        if key is None:
            raise _missing(name)
        self.needs[key] = None
        return key.name

    def math_function(self, name: str) -> str:
        own = self.found.scope.get(name)
        if name in LIBM and isinstance(own, Helper | Widths) and own.module == self.found.module:
            return f"libm_{name}"  # for what the module itself cannot compute
        return super().math_function(name)

    def constant(self, name: str) -> str | None:
        if name in self.known:
            return None
        known = super().constant(name)
        return known if known is not None else _text(self.found.scope[name])

    def table(self, e: ast.expr) -> Sequence[str] | None:
        numbers = None if not isinstance(e, ast.Name) or e.id in self.known else self.found.scope.get(e.id)
        return [_text(x) for x in numbers] if isinstance(numbers, tuple | np.ndarray) else None

    def table_name(self, e: ast.expr) -> str:
        assert isinstance(e, ast.Name)
        table = _Table(f"table_{self.found.module}_{e.id.strip('_')}", tuple(self.found.scope[e.id]))
        self.needs[table] = None
        return table.name


# --- functions of users: what was given for CUDA, or translated if it is as plain as the library's --------------------


def user_text(name: str) -> tuple[str, dict[str, None]]:
    """The text of the function that kernels call ``name``, and what it calls of the library."""
    given, helpers = of_cuda(name), dict[str, None]()
    if given is not None:
        parameters, statements = given
        first = parameters[0] if parameters else "f64(0)"
        lines = [f"  SYMC_TYPE({first}) out;", f"  {{ {statements} }}", "  return out;"]
    else:
        function = python_function(name)
        tree = _tree(function)
        parameters = [a.arg for a in tree.args.args]
        body = [ast.Return(tree.body)] if isinstance(tree, ast.Lambda) else tree.body
        lines = _UsersTranslator(function, tree, helpers).body(body, parameters)
    types = ", ".join(f"class T{k}" for k in range(len(parameters)))
    typed = ", ".join(f"T{k} {p}" for k, p in enumerate(parameters))
    template = f"template <{types}> " if types else ""
    return f"{template}SYMC_FUNCTION auto {name}({typed}) {{\n" + "\n".join(lines) + "\n}\n", helpers


def _tree(function: Callable[..., Any]) -> ast.Lambda | ast.FunctionDef:
    """The syntax of a function: what stands where it was made."""
    try:
        whole = ast.parse("".join(inspect.findsource(function)[0]))
    except (OSError, TypeError, SyntaxError):
        raise _refused() from None
    for node in ast.walk(whole):
        if isinstance(node, ast.Lambda | ast.FunctionDef) and _is_of(node, function):
            return node
    raise _refused()


def _is_of(node: ast.Lambda | ast.FunctionDef, function: Callable[..., Any]) -> bool:
    wanted = function.__code__
    first = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", ())]])
    names = [a.arg for a in node.args.args]
    if first != wanted.co_firstlineno or names != list(wanted.co_varnames[: wanted.co_argcount]):
        return False
    if isinstance(node, ast.FunctionDef):
        return node.name == function.__name__
    body = node.body  # several functions may begin on a line: code knows of where it was made
    begin, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [p for p in wanted.co_positions() if None not in p and p[3]]
    return bool(places) and all(begin <= (p[0], p[2]) and (p[1], p[3]) <= end for p in places)  # type: ignore[operator]


def _refused() -> Unsupported:
    return Unsupported('a function whose source is not at hand; sc.op(cuda="out = ...") says the same in C++')


class _UsersTranslator(Translator):
    """Names that the function does not assign are numbers around it; `math` is the library."""

    def __init__(self, function: Callable[..., Any], tree: ast.AST, helpers: dict[str, None]):
        super().__init__("i64", helpers)
        closed = inspect.getclosurevars(function)
        self.around = {**closed.builtins, **closed.globals, **closed.nonlocals}
        self.own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}

    def function(self, name: str) -> str:
        meant = self.around.get(name, getattr(math, name, None))
        if meant is not getattr(math, name, None) and meant not in (abs, min, max, int, float):
            raise Unsupported(f'the function {name}; sc.op(cuda="out = ...") says the same in C++')
        return super().function(name)

    def constant(self, name: str) -> str | None:
        if name in self.own:
            return None
        number = self.around.get(name)
        if isinstance(number, bool | int | float):
            return self.literal(number)
        return super().constant(name)
