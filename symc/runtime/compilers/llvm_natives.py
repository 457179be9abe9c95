"""Native functions, written in the language, as LLVM: entries all of whose arguments are addresses, as BLAS has them.

An entry says of each parameter what lies at its address: ``array[T]``, elements of a type, or ``T``, a number, which is
read before all else. What other names mean that a function leaves open, types among them, says who asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from symc.codegen.language.helpers import Helper
from symc.codegen.language.native import Texts
from symc.codegen.language.typed import Pointer
from symc.runtime.compilers.llvm_contraction import contracted
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
        if not isinstance(kind, ast.Subscript):
            numbers.append(a.arg)
        name = ast.unparse(kind.slice if isinstance(kind, ast.Subscript) else kind)  # type: ignore[arg-type]
        operands[a.arg] = Pointer(open_.get(name, name), f"%{a.arg}")
    f = Function(module, lambda n: open_.get(n, helper.scope.get(n)), operands)
    for n in numbers:
        f.names[n] = f.element(ast.Subscript(ast.Name(n, ast.Load()), ast.Constant(0), ast.Load()))
    f.given += numbers
    f.body(helper.tree.body)
    head = f"define void @{symbol}({', '.join(f'ptr {p.ref}' for p in operands.values())}) nounwind"
    module.functions.append(f"{head} {{\n{contracted(f.text(), module.declare)}}}\n")
