"""The helper functions that kernel texts call, as syntax trees: read from their modules' sources, not imported.

``library.math`` and its kin are written in the subset of Python that ``llvm_function`` compiles. Reading their text
instead of importing them keeps Numba out of a process that does not need it. A module's constants are computed from
its own text, in a scope that knows the dtypes' names as NumPy's types. Sources are cut into top-level statements by
their lines; what a kernel does not ask for is not parsed.
"""

from __future__ import annotations

import ast
import functools
import math
import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

import symc.runtime.library
from symc.ir.record import dataclass
from symc.runtime.library import MODULES

_DTYPES = {f"{k}{8 * w}": np.dtype(f"{k}{w}").type for k, w in
           (("u", 1), ("i", 1), ("u", 2), ("i", 2), ("u", 4), ("i", 4), ("u", 8), ("i", 8), ("f", 4), ("f", 8))}
#: What the right sides of assignments name that Numba alone needs.
_OF_NUMBA = {"vars", "njit", "_function", "_of_c", "of_scipy", "OPTIONS"}
#: How functions are decorated that are helpers.
_KINDS = ("", "inlined", "called", "rarely")
#: The beginnings of top-level statements: a function, the names on the left of an assignment, an import of a module of
#: references, a name that stands for two functions.
_FUNCTION = re.compile(r"(?:@(.+)\n)?def (\w+)\(")
_ASSIGNMENT = re.compile(r"(\w+(?:, \w+)*) = ")
_REFERENCE = re.compile(r"from symc\.ir\.ops import (\w+)(?: as (\w+))?")
_BY_WIDTH = re.compile(r"_(?:\w+_)?by_width\((\w+), (\w+), (\w+)")


class Helper:
    """A function. ``scope``: the constants of its module; ``called``: it is too large to be inlined; ``rarely``: that
    too, and loops are vectorized around the branch that calls it."""

    def __init__(self, module: str, name: str, text: str, scope: Mapping[str, Any], kind: str):
        self.module, self.name, self.scope, self._text = module, name, scope, text
        self.called, self.rarely = kind in ("called", "rarely"), kind == "rarely"

    @cached_property
    def tree(self) -> ast.FunctionDef:
        (tree,) = ast.parse(self._text).body
        assert isinstance(tree, ast.FunctionDef)
        return tree


class Scope(Mapping[str, Any]):
    """Names of a module that are numbers (or tuples and arrays of them), computed when they are asked for.

    ``above``: the modules before, of which the first that defines a name is meant where the module itself does not.
    """

    def __init__(self, above: tuple[Scope, ...]):
        self.above = above
        self.texts: dict[str, str] = {}  # the assignment of each name
        self.known: dict[str, Any] = {"math": math, "np": np, **_DTYPES} if not above else {}

    def __getitem__(self, name: str) -> Any:
        if name in self.texts and name not in self.known:
            self._compute(self.texts[name])
        if name in self.known:
            return self.known[name]
        for scope in self.above:
            if scope.has(name):
                return scope[name]
        raise KeyError(name)

    def has(self, name: str) -> bool:
        """True if the module itself defines the name."""
        if name in self.texts and name not in self.known:
            self._compute(self.texts[name])
        return name in self.known

    def _compute(self, text: str) -> None:
        """Carry out an assignment, if it is of numbers; anything else is Numba's own affair."""
        (node,) = ast.parse(text).body
        assert isinstance(node, ast.Assign)
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        left = [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]
        found: dict[str, Any] = {}
        if _OF_NUMBA.isdisjoint(names):
            there = {n: self[n] for n in names if n not in left and n in self}
            try:
                exec(compile(ast.Module([node], []), "<constants of kernels>", "exec"), there)
                found = {n: there[n] for n in left if not isinstance(there[n], type | dict)}
            except NameError:
                pass
        for name in left:
            del self.texts[name]
        self.known.update(found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self.has(name) or any(s.has(name) for s in self.above))

    def __iter__(self) -> Iterator[str]:
        names = [n for s in (self, *self.above) for n in (*s.known, *s.texts)]
        return iter([n for n in dict.fromkeys(names) if n in self])

    def __len__(self) -> int:
        return len(list(iter(self)))


@dataclass
class Library:
    """Helpers by module and name, and by name alone; ``widths``: names that stand for a helper for 32 bits and one for
    64; ``constants``: those of all modules."""

    local: dict[tuple[str, str], Helper]
    public: dict[str, Helper]
    widths: dict[str, tuple[Helper, Helper]]
    constants: Scope

    def find(self, name: str, module: str, narrow: bool) -> Helper | None:
        """The helper that a name means in a module (the last module that defines it, elsewhere)."""
        if name in self.widths:
            return self.widths[name][0 if narrow else 1]
        return self.local.get((module, name)) or self.public.get(name)


@functools.cache
def library() -> Library:
    """All of them."""
    found = Library({}, {}, {}, Scope(()))
    scopes: tuple[Scope, ...] = ()
    for path in _modules():
        scope = Scope(scopes)
        _read(path, scope, found)
        scopes += (scope,)
    found.constants = Scope(scopes)
    return found


def _modules() -> list[str]:
    """The sources, in order: what Numba knows by intrinsics defines constants that the others use."""
    library, here = os.path.dirname(symc.runtime.library.__file__), os.path.dirname(__file__)
    return [os.path.join(here, "numba_primitives.py"), *(os.path.join(library, f"{name}.py") for name in MODULES)]


def statements(source: str) -> Iterator[str]:
    """The top-level statements of a module, but for its docstring: each begins at the start of a line, and goes on in
    lines that are indented or close a bracket."""
    begun: list[str] = []
    lines = iter(source.split("\n"))
    for line in lines:
        if line.startswith('"""'):
            while line.count('"""') % 2:
                line += next(lines)
        elif line[:1] in ("", " ", "#", ")", "]", "}"):
            begun.append(line)
        else:
            if begun and not begun[-1].startswith("@"):
                yield "\n".join(begun)
                begun = []
            begun.append(line)
    yield "\n".join(begun)


def _read(path: str, scope: Scope, found: Library) -> None:
    module = os.path.basename(path).removesuffix(".py")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    for text in statements(source):
        text = text.lstrip("\n")
        if m := _FUNCTION.match(text):
            if (m[1] or "") in _KINDS:
                found.local[module, m[2]] = found.public[m[2]] = Helper(module, m[2], text, scope, m[1] or "")
        elif m := _ASSIGNMENT.match(text):
            scope.texts.update(dict.fromkeys(m[1].split(", "), text))
        elif m := _REFERENCE.match(text):
            name = m[2] or m[1]
            scope.texts[name] = f"{name} = __import__('importlib').import_module('symc.ir.ops.{m[1]}')"
        elif m := _BY_WIDTH.match(text):
            found.widths[m[1]] = found.local[module, m[2]], found.local[module, m[3]]
