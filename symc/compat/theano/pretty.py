"""``theano.printing``: formulas, trees and pictures of variables and functions, and values that print themselves."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano.compiling import Function
from symc.compat.theano.variable import TensorVariable, plain, tensor_of, wrap
from symc.ir.value import Value
from symc.tensors.leaves import leaf_of


def _label(v: Value) -> str:
    """A leaf: the name of an input, or the number."""
    variable = wrap(sc.Tensor(v))
    if v.op.name == "constant":
        data = np.asarray(variable.tensor)
        return f"TensorConstant{{{data[()] if data.ndim == 0 else f'{data.shape} array'}}}"
    return variable.name or (leaf_of(v).name if leaf_of(v).name != "input" else "") or f"<{variable.type}>"


def pp(variable: Any) -> str:
    """A variable as a formula, in the ops of symc."""
    return _formula(variable.outputs if isinstance(variable, Function) else tensor_of(variable))


def _formula(root: Any) -> str:
    if isinstance(root, list | tuple):
        return ", ".join(map(_formula, root))
    text: dict[Value, str] = {}
    for v in sc.ir.traverse.postorder([root.value]):
        parts = [text[o] for o in v.operands]
        if not parts:
            text[v] = _label(v)
        elif v.op.facts.symbol and len(parts) == 2:
            text[v] = f"({parts[0]} {v.op.facts.symbol} {parts[1]})"
        elif v.op.name == "broadcast":
            text[v] = parts[0]
        else:
            text[v] = f"(-{parts[0]})" if v.op.name == "neg" else f"{v.op.name}({', '.join(parts)})"
    return text[root.value]


def debugprint(obj: Any, depth: int = -1, print_type: bool = False, file: Any = None, ids: str = "CHAR",
               **options: Any) -> Any:
    """The tree of a variable, or the text of a function after the optimizer. ``file="str"`` returns it."""
    lines: list[str] = []
    for item in obj if isinstance(obj, list | tuple) else [obj]:
        if isinstance(item, Function):
            lines.append(str(item))
            continue
        names: dict[Value, str] = {}
        stack = [(tensor_of(item).value, 0)]
        while stack:
            v, level = stack.pop()
            seen = v in names
            names.setdefault(v, _letters(len(names)))
            shown = _label(v) if not v.operands else v.op.name
            lines.append(" |" * level + f"{shown} [id {names[v]}]" + (f" <{v.type}>" if print_type else ""))
            if not seen and (depth < 0 or level + 1 < depth):
                stack += [(o, level + 1) for o in reversed(v.operands)]
    text = "\n".join(lines) + "\n"
    if file == "str":
        return text
    (file or sys.stdout).write(text)
    return None


def _letters(k: int) -> str:
    text = ""
    while True:
        text, k = chr(65 + k % 26) + text, k // 26 - 1
        if k < 0:
            return text


class Print:
    """``Print("message", attrs=("shape",))(x)`` is x, which prints a message and itself, or attributes of it, when it
    is computed."""

    def __init__(self, message: str = "", attrs: Sequence[str] = ("__str__",), global_fn: Any = None):
        self.message, self.attrs = message, attrs

    def __call__(self, x: Any) -> TensorVariable:
        said = self.message.replace("{", "{{").replace("}", "}}")
        shown = ["__str__ = {0}" if a == "__str__" else f"{a} = {{0.{a}}}" for a in self.attrs]
        return wrap(sc.debug.print(tensor_of(x), "\n".join(f"{said} {s}" for s in shown)))


def pydotprint(fct: Any, outfile: Any = None, **options: Any) -> None:
    """The picture of a function or variable: Graphviz's text if the file ends in .dot, else HTML beside that name."""
    compiled = fct.compiled if isinstance(fct, Function) else sc.compile(plain(fct))
    name = str(outfile or "pydotprint.html")
    if name.endswith(".dot"):
        with open(name, "w", encoding="utf-8") as out:
            out.write(compiled.to_dot())
        return
    name = name if name.endswith(".html") else name.rpartition(".")[0] + ".html"
    compiled.to_html(name)
    print(f"The output file is available at {name}")


PRINTING = {"pp": pp, "pprint": pp, "debugprint": debugprint, "Print": Print, "pydotprint": pydotprint,
            "min_informative_str": pp, "d3viz": pydotprint}
