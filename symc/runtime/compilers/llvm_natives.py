"""Native functions, written in the language, as LLVM. An entry says of each parameter what it is.

A ``plain`` one takes addresses, ``array[T]``, and numbers. A ``native`` one takes addresses alone, as BLAS has it: of
elements, or of a number, which is read before all else. What other names mean that a function leaves open, types among
them, says who asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from symc.codegen.language.helpers import Helper
from symc.codegen.language.native import Texts
from symc.codegen.language.typed import of_type
from symc.runtime.compilers.llvm_contraction import contracted
from symc.runtime.compilers.llvm_expressions import llvm_type
from symc.runtime.compilers.llvm_function import Function, Module


def text(functions: Texts) -> str:
    """The text of a module of entries."""
    module = Module()
    for name, (helper, open_) in functions.items():
        _write(module, f"symc_{name}", helper, open_)
    return module.text()


def _write(module: Module, symbol: str, helper: Helper, open_: Mapping[str, Any]) -> None:
    operands: dict[str, Any] = {}
    numbers = []
    for a in helper.tree.args.args:
        kind = a.annotation
        name = ast.unparse(kind.slice if isinstance(kind, ast.Subscript) else kind)  # type: ignore[arg-type]
        numbers += [a.arg] * (not isinstance(kind, ast.Subscript) and not helper.called)
        by_value = helper.called and not isinstance(kind, ast.Subscript)
        operands[a.arg] = of_type(open_.get(name, name) + "*" * (not by_value), f"%{a.arg}")
    f = Function(module, lambda n: open_.get(n, helper.scope.get(n)), operands)
    for n in numbers:
        f.names[n] = f.element(ast.Subscript(ast.Name(n, ast.Load()), ast.Constant(0), ast.Load()))
    f.given += numbers
    f.body(helper.tree.body)
    head = ", ".join(f"{llvm_type(x.type)} {x.ref}" for x in operands.values())
    text = contracted(f.text(), module.declare)
    module.functions.append(f"define {llvm_type(f.result)} @{symbol}({head}) nounwind {{\n{text}}}\n")
