"""Functions by name, of modules that are imported when the function is first called: for what few programs need."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def late(path: str) -> Callable[..., Any]:
    """The function of this name, that of its module included."""
    module, name = path.rsplit(".", 1)
    return lambda *given, **options: getattr(import_module(module), name)(*given, **options)
