"""A user's function of one element (``sc.op(numba=...)``, ``sc.op(cuda="out = ...")``) as a function in CUDA C++.

What was given for CUDA is used as it is; else the Python function is translated, if it is as plain as the functions of
symc's own library: arithmetic, `math`, choices, loops, numbers from around it.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from typing import Any

from symc.codegen.cuda.cxx import Translator
from symc.codegen.kernel.user_functions import of_cuda, python_function
from symc.codegen.language.syntax import Unsupported


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
        lines = _Translator(function, tree, helpers).body(body, parameters)
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


class _Translator(Translator):
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
