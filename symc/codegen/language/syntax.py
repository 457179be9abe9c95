"""The syntax of the language: a subset of Python's, whose trees are Python's (``ast``).

What belongs to it is said in ``docs/architecture/kernels.md``. A reader has a method for each kind of statement and of
expression that it knows, and raises Unsupported for what it does not.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


class Unsupported(Exception):
    """The backend has no rendering for this; the reference implementation computes it."""


#: The signs of operators.
SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def function(text: str) -> ast.FunctionDef:
    """The tree of a text that is one function."""
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def every(*roots: ast.AST) -> list[ast.AST]:
    """Statements and expressions, and all inside of them; not operators, nor whether a name is read or written.
    (``ast.walk`` took half of the time in which a kernel becomes LLVM's text.)"""
    found = list(roots)
    for node in found:  # which grows
        names = _PARTS.get(type(node))
        for name in _parts(type(node)) if names is None else names:
            x = getattr(node, name, None)
            if type(x) is list:
                found += x
            elif x is not None:
                found.append(x)
    return found


_PARTS: dict[type, tuple[str, ...]] = {}
#: Fields of nodes that are no part of the language, or hold none: names, operators, ...
_OTHER = frozenset({"annotation", "arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "kw_defaults", "module",
                    "name", "names", "op", "ops", "returns", "simple", "type_comment"})


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that hold others. (Nodes may have attributes that others gave them: IPython's
    tracebacks "parent", of singletons too.)"""
    fields = () if kind is ast.Constant else kind._fields
    found = _PARTS[kind] = tuple(f for f in fields if f not in _OTHER)
    return found


def assigned(statements: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """Names that are assigned once, and those that are assigned more often."""
    once: set[str] = set()
    often: set[str] = set()
    pending = list(statements)
    while pending:
        s = pending.pop()
        targets: list[ast.expr] = s.targets if isinstance(s, ast.Assign) else [getattr(s, "target", s)]  # type: ignore
        for target in targets:
            for t in target.elts if isinstance(target, ast.Tuple) else (target,):
                if isinstance(t, ast.Name):
                    (often if t.id in once else once).add(t.id)
        pending += [*getattr(s, "body", ()), *getattr(s, "orelse", ())]
    return once - often, often


def jumps(body: Sequence[ast.stmt]) -> bool:
    """True if statements leave or go on with a loop."""
    return any(isinstance(n, ast.Break | ast.Continue) for n in every(*body))


def as_load(target: ast.expr) -> ast.expr:
    """The names that are read where a target is written."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


#: Words that no name may be in C or C++.
_WORDS = frozenset({"double", "float", "int", "long", "short", "char", "signed", "unsigned", "register", "new", "this",
                    "union", "struct", "auto", "default", "case", "switch", "do", "const", "static", "template",
                    "linux", "unix", "near", "far", "inline", "operator", "using", "void", "bool", "volatile",
                    "restrict"})


def plain(name: str) -> str:
    """A name as C and C++ may have it."""
    return f"{name}_" if name in _WORDS else name
