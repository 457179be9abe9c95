"""Compiled functions as StableHLO text: ``f.to_stablehlo()``, with sizes that a caller decides, or with numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from symc.errors import InputError, did_you_mean
from symc.export.pure import pure
from symc.export.stablehlo_module import Module, mlir_type, types
from symc.export.stablehlo_ops import spelled
from symc.ir.at_sizes import at_sizes
from symc.ir.function import Function, bound_names
from symc.tensors.callsite import caller


def to_stablehlo(f: Any, sizes: Mapping[str, int]) -> str:
    """The text; ``CompiledFunction.to_stablehlo`` says what it holds."""
    function = _with_numbers(pure(f, "to_stablehlo"), sizes)
    m = Module(function, spelled)
    m.known = dict(zip(function.params, m.inputs, strict=True))
    results = [m.value(r) for r in function.body.results]
    m.line(f"return {', '.join(results)} : {types(r.type for r in function.body.results)}" if results else "return")
    args = ", ".join(f"{n}: {mlir_type(i.type)} loc({json.dumps(i.name)})"
                     for n, i in zip(m.inputs, function.inputs, strict=True))
    name = re.sub(r"\W", "_", f.name, flags=re.ASCII) or "f"
    body = "\n".join("    " + line for line in [*m.first, *m.nodes])
    return (f"module @{name} {{\n  func.func public @main({args}) -> ({types(r.type for r in function.body.results)}) "
            f"{{\n{body}\n  }}\n}}\n")


def _with_numbers(f: Function, sizes: Mapping[str, int]) -> Function:
    known = bound_names(i.type for i in f.inputs)
    for n, k in sizes.items():
        if n not in known or not isinstance(k, int) or k < 0:
            raise InputError(f"{f.name} has no size {n!r}" if n not in known else f"the size {n} cannot be {k!r}",
                             where=[caller()], help=did_you_mean(n, known))
    return at_sizes(f, sizes) if sizes else f
