"""``sc.diff``, a name that two things have: NumPy's differences of neighbours, and the differences of two functions."""

from __future__ import annotations

from typing import Any

from symc.driver.deferred_function import Specializing
from symc.driver.function import CompiledFunction
from symc.errors import InputError
from symc.ir.function import Function
from symc.numpy_api.differences import diff as diff_of_neighbours
from symc.tensors.callsite import caller
from symc.tools.debugging.diff import diff as diff_of_functions

FUNCTIONS = (CompiledFunction, Specializing, Function, str)


def diff(a: Any, n: Any = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Difference between two functions (compiled ones, IR functions, or IR texts): ``sc.diff(f, g)`` gives a
    ``Diff``, which prints. Of anything else, NumPy's ``diff``: ``n`` times the differences of neighbours along
    ``axis``.
    """
    if not isinstance(a, FUNCTIONS):
        return diff_of_neighbours(a, n, axis, prepend, append)
    if not isinstance(n, FUNCTIONS):
        raise InputError(f"diff compares a function with another one, not with {type(n).__name__}", where=[caller()],
                         help="sc.diff(f, g), or f.diff('stabilize', 'simplify') for two stages of one")
    return diff_of_functions(a, n)
