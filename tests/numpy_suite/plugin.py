"""A pytest plugin: in NumPy's test modules its functions also call symc's and note what differs."""

from __future__ import annotations

import copy
import json
import os
import types
from typing import Any
from zlib import crc32

import numpy as np

import symc as sc
from symc.ir.types import DTYPES
from symc.numpy_api.dispatch import run_function, run_ufunc
from symc.numpy_api.ufuncs import UFUNCS
from symc.tensors.public import DISPATCH
from tests.numpy_api.numpy_compare import DIFFERENCES, outcome

SAMPLE = int(os.environ.get("SYMC_NUMPY_SAMPLE", "1"))
LARGEST = 5000
KNOWN = set(DTYPES.values())
found: dict[str, str] = {}
counts: dict[str, int] = {}
refused: dict[str, int] = {}


class Unsupported(Exception):
    """An argument that has no counterpart."""


def symbolic(x: Any, leaves: list[Any], arrays: list[np.ndarray]) -> Any:
    """``x`` with inputs for the arrays in it."""
    if type(x) in (list, tuple):
        return type(x)(symbolic(i, leaves, arrays) for i in x)
    if isinstance(x, np.ndarray | np.generic):
        if type(x) is not np.ndarray and not isinstance(x, np.generic) or x.dtype not in KNOWN or x.size > LARGEST:
            raise Unsupported
        arrays.append(np.array(x))
        leaves.append(sc.input(f"x{len(leaves)}", x.dtype, x.shape))
        return leaves[-1]
    if x is None or callable(x) or isinstance(x, str | bool | int | float | complex | slice | np.dtype):
        return x
    raise Unsupported


class Compared:
    """A function of NumPy that makes the same call on symbolic values."""

    inside = False

    def __init__(self, function: Any, run: Any):
        self.function, self.run, self.__name__ = function, run, function.__name__
        self.__wrapped__ = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Compared.inside or kwargs.get("out") is not None:
            return self.function(*args, **kwargs)
        Compared.inside = True
        try:
            given = copy.deepcopy((args, kwargs)) if not any(map(callable, args)) else (args, kwargs)
            want = error = None
            try:
                want = self.function(*args, **kwargs)
            except Exception as e:
                error = e
            if not isinstance(error, FloatingPointError | Warning | MemoryError):
                self.compare(*given, want, error)
            if error is not None:
                raise error
            return want
        finally:
            Compared.inside = False

    def compare(self, args: Any, kwargs: Any, want: Any, error: Exception | None) -> None:
        leaves: list[Any] = []
        arrays: list[np.ndarray] = []
        try:
            made = symbolic(args, leaves, arrays), {k: symbolic(v, leaves, arrays) for k, v in kwargs.items()}
        except Unsupported:
            return
        if leaves:
            kind, text = outcome(lambda: self.run(*made), leaves, arrays, want, error)
            counts[kind] = counts.get(kind, 0) + 1
            if kind == "refused":
                refused[f"{self.__name__}: {text}"] = refused.get(f"{self.__name__}: {text}", 0) + 1
            if kind in DIFFERENCES:
                found.setdefault(f"{kind} {self.__name__}", f"{text} :: {args} {kwargs}"[:400])


TABLE: dict[Any, Compared] = {f: Compared(f, lambda a, k, f=f: run_function(f, a, k)) for f in DISPATCH}
TABLE |= {u: Compared(u, lambda a, k, u=u: run_ufunc(u, "__call__", a, k)) for u in UFUNCS}


class Package(types.ModuleType):
    """NumPy, or ``numpy.linalg``, with those functions."""

    def __init__(self, real: Any):
        super().__init__(real.__name__)
        self.__dict__["real"] = real

    def __getattr__(self, name: str) -> Any:
        return replaced(getattr(self.__dict__["real"], name))


def replaced(item: Any) -> Any:
    if item is np or item is np.linalg:
        return Package(item)
    try:
        return TABLE.get(item, item)
    except TypeError:
        return item


def pytest_collection_modifyitems(items: list[Any]) -> None:
    items[:] = [i for i in items if crc32(f"{i.module.__name__}.{i.name}".encode()) % SAMPLE == 0]
    for module in {i.module for i in items}:
        vars(module).update({n: replaced(v) for n, v in vars(module).items()})
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        params.update({n: replaced(v) for n, v in params.items()})


def pytest_sessionfinish() -> None:
    with open(os.environ["SYMC_NUMPY_FOUND"], "w") as f:
        json.dump({"counts": counts, "found": found, "refused": refused}, f)
