"""Functions by name, of modules that are imported when the function is first called: for what few programs need."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any


def late(path: str) -> Callable[..., Any]:
    """The function of this name, that of its module included."""

    @functools.cache
    def found() -> Callable[..., Any]:
        module, name = path.rsplit(".", 1)
        return getattr(import_module(module), name)

    return lambda *given, **options: found()(*given, **options)
