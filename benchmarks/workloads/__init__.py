"""The workloads. A module here that defines ``WORKLOAD`` is found by its file; nothing else lists it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from benchmarks.workload import Workload


def load_all() -> dict[str, Workload[Any]]:
    """Every workload by name, in the order of the file names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: load(name) for name in names}


def load(name: str) -> Workload[Any]:
    """The workload of that file name, without importing the others."""
    return importlib.import_module(f"{__name__}.{name}").WORKLOAD
