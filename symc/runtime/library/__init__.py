"""The functions of numbers that kernels call, in their language: read by its compilers and printers, never run.

A module is imported when a kernel first calls one of its functions.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import re
from typing import Any

from symc.codegen.language import names
from symc.codegen.language.helpers import Helper, Widths

_DEFINED = re.compile(r"\n(?:def ([a-z]\w*)\(|([a-z]\w*) = by_width\()")


def _index() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in os.scandir(os.path.dirname(__file__)):
        if file.name.endswith(".py") and file.name != "__init__.py":
            with open(file.path, encoding="utf-8") as f:
                found |= {a or b: file.name.removesuffix(".py") for a, b in _DEFINED.findall(f.read())}
    return dict(sorted(found.items()))


#: The module of each function: where its text is.
MODULE_OF = _index()
_NUMBERS = {"INF": names.INF, "NAN": names.NAN, "math": math}


@functools.cache
def meaning(name: str) -> Any:
    """Meaning of a name in the text of a kernel: a function of the library, a number; None if nothing."""
    if name in MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{MODULE_OF[name]}"), name)
    return _NUMBERS.get(name)


def helper(name: str) -> Helper | Widths | None:
    """The function of the library that texts of kernels call so."""
    found = meaning(name)
    return found if isinstance(found, Helper | Widths) else None
