"""Functions of the language: Python functions that are not run, but read. What they name is what Python says it is.

The decorators say how a function is called. ``by_width`` makes one name of a function for 32 bits and one for 64.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from symc.codegen.language.names import Scheme, fused_horner


class Helper:
    """A function. ``called``: it is too large to be inlined; ``rarely``: that too, and loops are vectorized around the
    branch that calls it. ``scope``: what its names mean."""

    def __init__(self, function: Callable[..., Any], called: bool = False, rarely: bool = False):
        self.function, self.called, self.rarely = function, called, rarely
        self.name, self.module = function.__name__, function.__module__.rpartition(".")[2]
        self.scope: Mapping[str, Any] = function.__globals__

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """Text of it, which begins at its `def` and goes on while lines are indented."""
        code = self.function.__code__
        lines = linecache.getlines(code.co_filename)
        first = last = next(k for k in range(code.co_firstlineno - 1, len(lines)) if lines[k].startswith("def "))
        while last + 1 < len(lines) and lines[last + 1][:1] in " \n)":
            last += 1
        (tree,) = ast.parse("".join(lines[first : last + 1])).body
        assert isinstance(tree, ast.FunctionDef)
        tree.body = tree.body[ast.get_docstring(tree, clean=False) is not None :]
        return written_out(tree, self.scope)

    @property
    def operands(self) -> list[str]:
        return list(self.function.__code__.co_varnames[: self.function.__code__.co_argcount])


def written_out(tree: ast.FunctionDef, scope: Mapping[str, Any]) -> ast.FunctionDef:
    """A function with polynomials as sums and products (``names.horner``)."""
    return ast.fix_missing_locations(_WrittenOut(scope).visit(tree))


class _WrittenOut(ast.NodeTransformer):
    def __init__(self, scope: Mapping[str, Any]):
        self.scope = scope

    def visit_Call(self, e: ast.Call) -> ast.expr:
        self.generic_visit(e)
        if not isinstance(self.scope.get(getattr(e.func, "id", "")), Scheme):
            return e
        p: Any
        x, p, *rest = e.args
        assert isinstance(x, ast.Name), "it is computed once"
        fused = e.func.id == fused_horner.name  # type: ignore[attr-defined]
        if fused:
            table = [ast.Subscript(p, ast.Constant(k), ast.Load()) for k in range(len(self.scope[p.id]))]
            p, rest = table.pop(), [*table[::-1]]
        for c in rest:
            p = (ast.Call(ast.Name("fma", ast.Load()), [p, x, c], []) if fused
                 else ast.BinOp(ast.BinOp(p, ast.Mult(), x), ast.Add(), c))
        return p


class Widths:
    """A name that stands for one function of 32 bits and one of 64."""

    def __init__(self, narrow: Helper, wide: Helper):
        self.narrow, self.wide = narrow, wide
        self.name, self.module = narrow.name.removesuffix("32").strip("_"), narrow.module

    def of(self, narrow: bool) -> Helper:
        return self.narrow if narrow else self.wide


def inlined(function: Callable[..., Any]) -> Helper:
    """A function that becomes part of the loop that calls it, so that it vectorizes."""
    return Helper(function)


def called(function: Callable[..., Any]) -> Helper:
    """A function that is compiled once, and called."""
    return Helper(function, called=True)


def rarely(function: Callable[..., Any]) -> Helper:
    """A function for operands that are hardly ever met: called in one side of a conditional expression."""
    return Helper(function, called=True, rarely=True)


def by_width(narrow: Helper, wide: Helper) -> Widths:
    """A function that is ``narrow`` for f32 and u32 and ``wide`` for others."""
    return Widths(narrow, wide)
