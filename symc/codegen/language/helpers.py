"""Functions of the language: Python functions that are not run, but read. What they name is what Python says it is.

The decorators say how a function is called. ``by_width`` makes one name of a function for 32 bits and one for 64.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from symc.codegen.language import names
from symc.codegen.language.names import Scheme, fused_horner


class Helper:
    """A function. ``called``: it is too large to be inlined; ``rarely``: that too, and loops are vectorized around the
    branch that calls it. ``bits``: 32 or 64, of a function that is for both (``both``). ``scope``: what its names mean.
    """

    def __init__(self, function: Callable[..., Any], called: bool = False, rarely: bool = False, bits: int = 0):
        self.function, self.called, self.rarely, self.bits = function, called, rarely, bits
        self.name = f"_{function.__name__}{bits}" if bits else function.__name__
        self.module = function.__module__.rpartition(".")[2]
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
        tree.name = self.name
        if self.bits == 32:
            tree = _Narrow(self.scope, code.co_varnames).visit(tree)
        return written_out(tree, self.scope)

    @property
    def operands(self) -> list[str]:
        return list(self.function.__code__.co_varnames[: self.function.__code__.co_argcount])


def written_out(tree: ast.FunctionDef, scope: Mapping[str, Any]) -> ast.FunctionDef:
    """A function with polynomials as sums and products (``names.horner``), which have no lines."""
    schemes = {n for n, x in scope.items() if isinstance(x, Scheme)}
    return _WrittenOut(scope).visit(tree) if schemes else tree


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


class _Narrow(ast.NodeTransformer):
    """Makes a text for 64 bits one for 32: numbers are rounded, and ``HIGH64`` is ``HIGH32``."""

    def __init__(self, scope: Mapping[str, Any], own: tuple[str, ...]):
        self.scope, self.own = scope, own

    def visit_Constant(self, e: ast.Constant) -> ast.expr:
        return ast.Call(ast.Name("f32", ast.Load()), [e], []) if isinstance(e.value, float) else e

    def visit_Name(self, e: ast.Name) -> ast.expr:
        if e.id in self.own:
            return e
        narrow = e.id.removesuffix("64") + "32"
        if e.id.endswith("64") and (narrow in self.scope or hasattr(names, narrow)):
            return ast.Name(narrow, ast.Load())
        return ast.Call(ast.Name("f32", ast.Load()), [e], []) if isinstance(self.scope.get(e.id), float) else e

    def visit_Call(self, e: ast.Call) -> ast.expr:
        self.generic_visit(e)
        if getattr(e.func, "id", "") == "float64_of":  # integers are 64 bits wide in arithmetic
            narrow = ast.Call(ast.Name("i32", ast.Load()), e.args, [])
            return ast.Call(ast.Name("float32_of", ast.Load()), [narrow], [])
        return e


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


def native(function: Callable[..., Any]) -> Helper:
    """A function that others call, with addresses: its parameters say what lies there (``llvm_natives``)."""
    return Helper(function)


def plain(function: Callable[..., Any]) -> Helper:
    """A function that others call, with addresses of arrays and with numbers."""
    return Helper(function, called=True)


def called(function: Callable[..., Any]) -> Helper:
    """A function that is compiled once, and called."""
    return Helper(function, called=True)


def rarely(function: Callable[..., Any]) -> Helper:
    """A function for operands that are hardly ever met: called in one side of a conditional expression."""
    return Helper(function, called=True, rarely=True)


def both(function: Callable[..., Any]) -> Widths:
    """A function that is inlined, for f32 and others, by one text: that for 64 bits, which ``_Narrow`` makes the
    other of."""
    return Widths(Helper(function, bits=32), Helper(function, bits=64))


def by_width(narrow: Helper, wide: Helper) -> Widths:
    """A function that is ``narrow`` for f32 and u32 and ``wide`` for others."""
    return Widths(narrow, wide)
