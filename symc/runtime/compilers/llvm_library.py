"""The helper functions that kernel texts call, as syntax trees: read from their modules' sources, not imported.

``library.math`` and its kin are written in the subset of Python that ``llvm_function`` compiles. Reading their text
instead of importing them keeps Numba out of a process that does not need it. A module's constants are computed from
its own text, in a scope that knows the dtypes' names as NumPy's types.
"""

from __future__ import annotations

import ast
import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

import symc.runtime.library
from symc.ir.record import dataclass, field
from symc.runtime.library import MODULES

_DTYPES = {f"{k}{8 * w}": np.dtype(f"{k}{w}").type for k, w in
           (("u", 1), ("i", 1), ("u", 2), ("i", 2), ("u", 4), ("i", 4), ("u", 8), ("i", 8), ("f", 4), ("f", 8))}
#: What the right sides of assignments name that Numba alone needs.
_OF_NUMBA = ("vars", "njit", "_function", "_of_c", "_of_scipy", "OPTIONS")


@dataclass
class Helper:
    """A function. ``scope``: the constants of its module; ``called``: it is too large to be inlined; ``rarely``: that
    too, and loops are vectorized around the branch that calls it."""

    module: str
    name: str
    tree: ast.FunctionDef
    scope: dict[str, Any]
    called: bool = False
    rarely: bool = False


@dataclass
class Library:
    """Helpers by module and name; ``widths``: names that stand for a helper for 32 bits and one for 64."""

    local: dict[tuple[str, str], Helper] = field(default_factory=dict)
    public: dict[str, Helper] = field(default_factory=dict)
    widths: dict[str, tuple[Helper, Helper]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str, module: str, narrow: bool) -> Helper | None:
        """What a name means in a module (the last module that defines it, elsewhere)."""
        if name in self.widths:
            return self.widths[name][0 if narrow else 1]
        return self.local.get((module, name)) or self.public.get(name)


@functools.cache
def library() -> Library:
    """All of them. Reading takes some milliseconds, once in a process."""
    found = Library()
    for module in _modules():
        _read(module, found)
    return found


def _modules() -> list[Path]:
    """The sources, in order: what Numba knows by intrinsics defines constants that the others use."""
    library, here = Path(symc.runtime.library.__file__).parent, Path(__file__).parent
    return [here / "numba_primitives.py", *(library / f"{name}.py" for name in MODULES)]


def _read(path: Path, found: Library) -> None:
    tree, module = ast.parse(path.read_text(encoding="utf-8")), path.stem
    scope: dict[str, Any] = {"math": math, "np": np, **_DTYPES, **found.constants}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "symc.ir.ops":
            _import(node, scope)
        elif isinstance(node, ast.Assign):
            _constant(node, scope, found)
        elif isinstance(node, ast.FunctionDef):
            how = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
            if how in (["inlined"], ["called"], ["rarely"], []):
                helper = Helper(module, node.name, node, scope, how in (["called"], ["rarely"]), how == ["rarely"])
                found.local[module, node.name] = found.public[node.name] = helper
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if getattr(call.func, "id", "") == "_by_width":
                stub, narrow, wide = (a.id for a in call.args if isinstance(a, ast.Name))
                found.widths[stub] = found.local[module, narrow], found.local[module, wide]


def _import(node: ast.ImportFrom, scope: dict[str, Any]) -> None:
    """The NumPy references that constants come from."""
    import importlib

    for alias in node.names:
        scope[alias.asname or alias.name] = importlib.import_module(f"{node.module}.{alias.name}")


def _constant(node: ast.Assign, scope: dict[str, Any], found: Library) -> None:
    """Compute a module's constant, if it is numbers; anything else is Numba's own affair."""
    if any(isinstance(n, ast.Name) and n.id in _OF_NUMBA for n in ast.walk(node)):
        return
    text = compile(ast.Module([node], []), "<constants of kernels>", "exec")
    before = dict(scope)
    try:
        exec(text, scope)
    except NameError:
        return
    scope.pop("__builtins__", None)
    found.constants.update({k: v for k, v in scope.items() if k not in before and not isinstance(v, type | dict)})
