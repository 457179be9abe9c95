"""Scalar functions that users give for ops of their own, by the name that kernels call them.

This is the part of the backend's table of intrinsics that grows at run time (``sc.op(numba=...)``). It holds Python
functions; ``symc.runtime.compilers.numba_compile`` compiles those that a kernel's text calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from symc.codegen.cpu.intrinsics import TABLE
from symc.codegen.kernel.c_functions import CFunction

PREFIX = "user_"
_functions: dict[str, Callable[..., Any]] = {}
_of_cuda: dict[str, tuple[list[str], str]] = {}  # names of operands and attributes, and statements that compute `out`


def add(op: str, function: Callable[..., Any], arity: int, attributes: Iterable[str] = (),
        cuda: tuple[list[str], str] | None = None) -> None:
    """Let kernels compute ``op`` on floats with ``function``, which takes operands and then the attributes named.
    ``cuda``: the same in C++, as names of what it takes and statements that compute ``out``.

    Kernels of an earlier definition keep the earlier one.
    """
    c = of_c(function)
    first = name = f"{PREFIX}{op}" if c is None else f"{PREFIX}{c.letters}_{op}"
    k = 2
    while _functions.get(name, function) is not function:
        name, k = f"{first}_{k}", k + 1
    _functions[name] = function
    if cuda is not None:
        _of_cuda[name] = cuda
    TABLE[op] = {"f": f"{name}({', '.join(f'{{{i}}}' for i in (*range(arity), *attributes))})"}


def is_users(op: str) -> bool:
    """True if kernels compute an op with a user's function."""
    return f"{PREFIX}{op}" in _functions


def python_function(name: str) -> Callable[..., Any]:
    """The function that kernels call so."""
    return _functions[name]


def of_cuda(name: str) -> tuple[list[str], str] | None:
    """The same in C++, if the user gave it."""
    return _of_cuda.get(name)


def of_c(function: Callable[..., Any] | None) -> CFunction | None:
    """The function of C that a function in Python calls, and nothing else."""
    return getattr(function, "c_function", None)


def c_symbol(name: str) -> str:
    """The symbol in machine code of the function of C that kernels call ``name``."""
    return f"symc_{name}"


def c_addresses(text: str) -> dict[str, int]:
    """The addresses of the functions of C that a kernel's text calls, by their symbols."""
    found = {name: of_c(f) for name, f in called_in(text).items()}
    return {c_symbol(name): c.address for name, c in found.items() if c is not None}


def c_function(name: str) -> CFunction | None:
    """The function of C that kernels call so."""
    return of_c(_functions.get(name))


def called_in(text: str) -> dict[str, Callable[..., Any]]:
    """The functions that a kernel's text calls, by name."""
    return {name: _functions[name] for name in re.findall(rf"\b{PREFIX}\w+(?=\()", text) if name in _functions}
