"""Calls in the text of a kernel: of functions of the library, of steps of searches."""

from __future__ import annotations

import ast

from symc.codegen.language.syntax import every
from symc.runtime.compilers.llvm_primitives import PRIMITIVES
from symc.runtime.library import MODULE_OF


def helpers_in(*roots: ast.AST) -> list[str]:
    """The names of the functions of the library that are called."""
    names = [getattr(n.func, "id", "") for n in every(*roots) if isinstance(n, ast.Call)]
    return [name for name in names if name in MODULE_OF and name not in PRIMITIVES]


def has_extreme(*roots: ast.AST) -> bool:
    """True if the greatest or least is searched for."""
    return any(isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("fold_maximum", "fold_minimum")
               for n in every(*roots))
