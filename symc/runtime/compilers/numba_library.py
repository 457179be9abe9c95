# mypy: ignore-errors
"""The functions of ``symc.runtime.library`` as Numba compiles them: each once, in a scope where names mean Numba's own.

Where Numba has a function of that name from elsewhere (``numba_primitives``), that is meant.
"""

from __future__ import annotations

import ast
import functools
import sys
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from symc.codegen.language import names
from symc.codegen.language.helpers import Helper, Widths
from symc.runtime.compilers import numba_primitives
from symc.runtime.compilers.numba_primitives import CALLED, OPTIONS
from symc.runtime.cpu.scipy_functions import IN_TEXT
from symc.runtime.library import MODULE_OF, meaning

_scopes: dict[str, dict[str, Any]] = {}  # of modules of the library


@functools.cache
def everything() -> dict[str, Any]:
    """Namespace of the texts of kernels."""
    own = {n: x for n, x in vars(numba_primitives).items() if not n.startswith("_")}
    return own | {n: _of(n, meaning(n)) for n in MODULE_OF}


def _of(name: str, x: Any) -> Any:
    """Stand-in that Numba sees for a name's meaning."""
    if isinstance(x, Helper | Widths | names.Primitive) and hasattr(numba_primitives, name):
        return getattr(numba_primitives, name)
    if isinstance(x, type) and issubclass(x, np.generic):
        return getattr(numba_primitives, name)
    if isinstance(x, names.Primitive):
        return routine(name)
    if not isinstance(x, Helper | Widths):
        return x
    _scope(x if isinstance(x, Helper) else x.wide)  # which knows the function itself
    return _function(x) if isinstance(x, Helper) else _choice(x)


@functools.cache
def routine(name: str) -> Any:
    """A special function of SciPy's that texts call so."""
    from symc.runtime.compilers.numba_routines import of_scipy

    return of_scipy(name.removeprefix(IN_TEXT))


def _scope(helper: Helper) -> dict[str, Any]:
    module = helper.function.__module__
    if module not in _scopes:
        scope = _scopes[module] = {}
        known = {**vars(names), **vars(sys.modules[module])}
        scope.update({n: _of(n, x) for n, x in known.items() if not n.startswith("__")})
    return _scopes[module]


def _plain(helper: Helper) -> FunctionType:
    made: dict[str, Any] = {}
    module = ast.fix_missing_locations(ast.Module([helper.tree], []))
    exec(compile(module, helper.function.__code__.co_filename, "exec"), made)
    return FunctionType(made[helper.name].__code__, _scope(helper), helper.name)


@functools.cache
def _function(helper: Helper) -> Any:
    return njit(_plain(helper), nogil=True, **(CALLED if helper.called else OPTIONS))


@functools.cache
def _choice(x: Widths) -> Any:
    """A function that Numba replaces by one for 32 bits where all operands have these."""
    narrow, wide = _plain(x.narrow), _plain(x.wide)
    operands = ", ".join(x.narrow.operands)
    scope = {"narrow": narrow, "wide": wide, "of_32": (types.float32, types.uint32)}
    test = " and ".join(f"{a} in of_32" for a in x.narrow.operands)
    exec(f"def stub({operands}): pass\ndef choose({operands}): return narrow if {test} else wide", scope)
    overload(scope["stub"], jit_options=OPTIONS)(scope["choose"])
    return scope["stub"]
