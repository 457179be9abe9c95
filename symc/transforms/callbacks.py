"""Calls of the functions that users give to loops and branches, which are traced; those that cannot be called that way
are refused before."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from symc.errors import InputError
from symc.tensors.callsite import user_code
from symc.tensors.tensor import Tensor

#: The function of a loop that is being traced, for what means something else inside a loop.
traced_loop: ContextVar[str] = ContextVar("traced_loop", default="")
_LOOPS = ("scan", "while_loop")


def check_callback(fn: Any, what: str, *given: str) -> None:
    """Raise InputError unless ``fn`` is a function of the positional arguments that are called ``given``.

    Functions of C whose parameters are not known are let through.
    """
    if not callable(fn):
        raise InputError(f"{what} must be a function, not {said(fn)}")
    try:
        takes = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    try:
        takes.bind(*given)
    except TypeError as e:
        many = len(takes.parameters) > len(given)
        nest = "carry" if "carry" in given else given[0] if given else ""
        raise InputError(
            f"{what} is called with {_listed(given)}, but takes {takes}: {e}",
            help=f"a tuple is one argument, taken apart inside: a, b = {nest}" if many and nest else None) from None


def _listed(given: tuple[str, ...]) -> str:
    return f"({', '.join(given)})" if given else "no arguments"


def call_traced(fn: Callable[..., Any], what: str, *args: Any) -> Any:
    """The results of a user's function of symbolic values; ``what`` is "scan: step", for messages."""
    with user_code():
        if not what.startswith(_LOOPS):
            return fn(*args)
        token = traced_loop.set(what)
        try:
            return fn(*args)
        finally:
            traced_loop.reset(token)


def said(item: Any) -> str:
    """Type and value of what a user gave, for messages."""
    return f"{type(item).__name__} {item!r:.40}".rstrip() if not isinstance(item, Tensor) else "a tensor"
