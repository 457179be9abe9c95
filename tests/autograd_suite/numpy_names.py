"""``autograd.numpy``: NumPy itself, whose functions dispatch on symbolic values, and stand-ins for those that cannot.

NumPy looks for ``__array_function__`` on arguments, never inside lists, and its constructors and index objects do not
look at all. Those few names get a stand-in here, used only where a symbolic value is involved.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

import symc as sc


def numpy_module() -> types.ModuleType:
    """A module with all names of NumPy and the stand-ins below."""
    module = types.ModuleType("autograd.numpy")
    module.__dict__.update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    module.__dict__.update(STAND_INS, __version__=np.__version__, random=np.random, linalg=linalg_module())
    return module


def is_symbolic(x: Any) -> bool:
    """Whether ``x`` is a symbolic value or a list or tuple with one somewhere inside."""
    if isinstance(x, list | tuple):
        return any(is_symbolic(item) for item in x)
    return isinstance(x, sc.Tensor)


def array(a: Any, *args: Any, **kwargs: Any) -> Any:
    return sc.asarray(a) if is_symbolic(a) else np.array(a, *args, **kwargs)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    arr, values = array(arr), array(values)
    if axis is None:
        arr, values, axis = np.ravel(arr), np.ravel(values), 0
    return np.concatenate((arr, values), axis=axis)


def make_diagonal(d: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """autograd's own complement of ``np.diagonal``, for the only arguments that it accepts."""
    assert (offset, axis1, axis2) == (0, -1, -2)
    return d[..., :, None] * np.eye(d.shape[-1])


def _of_list(name: str) -> Callable[..., Any]:
    """The reduction called ``name``, which also takes a list of symbolic values."""

    def reduce(a: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(np, name)(array(a) if isinstance(a, list | tuple) else a, *args, **kwargs)

    return reduce


class int64(np.int64):
    """NumPy's int64, which also casts symbolic values."""

    def __new__(cls, x: Any) -> Any:
        return x.astype("int64") if is_symbolic(x) else np.int64(x)


class _Rows:
    """``np.r_`` and ``np.c_`` for what the tests write: arrays and slices of integers, joined along ``axis``."""

    def __init__(self, axis: int):
        self.axis = axis

    def __getitem__(self, items: Any) -> Any:
        items = items if isinstance(items, tuple) else (items,)
        return np.concatenate([self._part(item) for item in items], axis=self.axis)

    @staticmethod
    def _part(item: Any) -> Any:
        return np.arange(item.start, item.stop, item.step) if isinstance(item, slice) else item


def linalg_module() -> types.ModuleType:
    """``numpy.linalg``, with two helpers of autograd's and norms of lists."""
    module = types.ModuleType("autograd.numpy.linalg")
    module.__dict__.update({name: getattr(np.linalg, name) for name in dir(np.linalg) if not name.startswith("__")})
    module.__dict__.update(
        T=lambda a: np.swapaxes(a, -1, -2), _dot=np.matmul,
        norm=lambda x, *args, **kwargs: np.linalg.norm(array(x) if isinstance(x, list | tuple) else x, *args, **kwargs))
    return module


STAND_INS: dict[str, Any] = {
    "array": array,
    "append": append,
    "make_diagonal": make_diagonal,
    "mean": _of_list("mean"),
    "std": _of_list("std"),
    "var": _of_list("var"),
    "row_stack": np.vstack,
    "int64": int64,
    "r_": _Rows(0),
    "c_": _Rows(-1),
}
