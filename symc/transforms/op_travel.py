"""Pickles of a user's ops: found by importing the module that defines them, or made again of their functions.

An op that a module holds is imported where it arrives. One of ``__main__``, of a notebook or of inside a function
travels with its functions, by cloudpickle where they have no name of their own; what arrives a second time is known.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

from symc.errors import InputError
from symc.ir.op import Op, all_ops

MAIN = ("__main__", "__mp_main__")  # how the processes of multiprocessing call the main module
#: How the ops of this process are made again, by name: a token that no other definition has, the arguments of sc.op.
_made: dict[str, tuple[str, Callable[..., Any], dict[str, Any]]] = {}


def note(name: str, token: str, fn: Callable[..., Any], options: dict[str, Any]) -> None:
    """An op was made."""
    _made[name] = token, fn, options


def home(file: str) -> str:
    """The module of a file; "" for what is none that can be imported by name."""
    found = [name for name, m in list(sys.modules.items()) if getattr(m, "__file__", None) == file]
    return next((name for name in found if name not in MAIN), "")


def packed(op: Op) -> tuple[str, str, str, bytes | None]:
    """Arguments of ``found``: name, module, token and functions."""
    custom = op.facts.custom
    assert custom is not None
    module = home(custom.line.file)
    if module and any(getattr(x, "op", None) is op for x in list(vars(sys.modules[module]).values())):
        return op.name, module, "", None
    token, fn, options = _made.get(op.name, ("", None, {}))
    return op.name, module, token, None if fn is None else _packed(fn, options)


def _packed(fn: Callable[..., Any], options: Mapping[str, Any]) -> bytes | None:
    """The functions of an op; None where they cannot travel, as those of C."""
    try:
        import cloudpickle
    except ModuleNotFoundError:
        cloudpickle = pickle
    try:
        return cloudpickle.dumps((fn, dict(options)))
    except Exception:  # whatever their own objects raise
        return None


def found(name: str, module: str, token: str, data: bytes | None) -> Op | None:
    """The op of a pickle, if it is here or can be imported; None for one that is made again of ``data``. Raises
    InputError that names the op, and its module, if it is not to be had at all."""
    here = _made.get(name, ("",))[0]
    if token and here == token:
        return _known()[name]
    if module:
        try:
            importlib.import_module(module)
        except ImportError as e:
            if data is None:
                raise InputError(f"the op {name} is of the module {module}, which cannot be imported here: {e}",
                                 help="install it here, or put it on the path") from None
    known = _known().get(name)
    if data is None or (module and _is_of(known, module)):
        if known is None:
            where = f"the module {module}, which does not define it when it is imported" if module else "__main__"
            raise InputError(f"the op {name} is of {where}, and its functions cannot be pickled",
                             help="define it in a module, outside of functions")
        return known
    return None


def _known() -> dict[str, Op]:
    return {o.name: o for o in all_ops() if o.facts.custom is not None}


def _is_of(op: Op | None, module: str) -> bool:
    custom = None if op is None else op.facts.custom
    return custom is not None and home(custom.line.file) == module
