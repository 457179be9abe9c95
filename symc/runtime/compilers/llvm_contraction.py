"""Contraction of products with the sums that they are added to, as LLVM text.

It is decided here, by the text of a function alone. LLVM would choose by what stands around: the order of operands,
what a loop does not change, where a branch is, which elements are left for the end of a row. A number that a kernel
makes twice would not be the same one then, and a maximum no element of what it is the maximum of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

_NAME = re.compile(r"%[\w.]+")
_KINDS = {"float": "f32", "double": "f64"}
_FORM = re.compile(r"(\s*)(%[\w.]+) = (fmul|fadd|fsub) contract (\w+) (\S+), (\S+)$")


def contracted(text: str, declare: Callable[[str, str, Sequence[str]], None]) -> str:
    """The body of a function in which products that one sum reads are one operation with it, those on its left first;
    nothing that is left may be contracted but with the sums of folds."""
    if " contract " not in text:
        return text
    lines, uses = text.split("\n"), Counter(_NAME.findall(text))
    products: dict[str, tuple[int, str, str]] = {}
    for k, line in enumerate(lines):
        found = _FORM.match(line)
        if found is None:
            continue
        space, name, op, t, x, y = found.groups()
        if op == "fmul":
            if uses[name] == 2:  # where it is made, and once more
                products[name] = k, x, y
            continue
        lines[k] = f"{space}{name} = {op} {t} {x}, {y}"
        left = x in products
        if not left and y not in products:
            continue
        at, a, b = products.pop(x if left else y)
        c, before = (y if left else x), ""
        if op == "fsub":
            before = f"{space}{name}.n = fneg {t} {c if left else a}\n"
            a, c = (a, f"{name}.n") if left else (f"{name}.n", c)
        intrinsic = f"llvm.fmuladd.{_KINDS[t]}"
        declare(intrinsic, t, [t] * 3)
        lines[at] = ""
        lines[k] = f"{before}{space}{name} = call {t} @{intrinsic}({t} {a}, {t} {b}, {t} {c})"
    return "\n".join(lines)
