"""``np.zeros(n)`` and the like in a function that is traced: arrays that can hold symbolic values.

NumPy asks nobody when it makes an array of sizes and numbers, and its arrays refuse symbolic elements. So while a
function is traced, what ``np.zeros`` names is asked first: called by the line of a user's function, in the thread that
traces, it gives the array of symc of that name; everybody else gets NumPy's. ``from numpy import zeros`` is not seen:
assigning a symbolic value to such an array is an error, which says what to write.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import numpy as np

from symc.errors import DTypeError
from symc.ir.locks import new_lock
from symc.tensors.callsite import active, is_inside
from symc.tensors.public import API
from symc.tensors.sizes import SymbolicSize
from symc.tensors.tensor import Tensor

#: Always symbolic, since they are made to be written to; and those that are if they are given symbolic values.
MADE = ("zeros", "ones", "empty", "full", "eye", "identity")
MADE_OF = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "arange", "linspace")
OF_FFT = ("fftfreq", "rfftfreq")
_NUMPY: dict[str, Any] = {name: getattr(np, name) for name in (*MADE, *MADE_OF)}
_NUMPY_FFT = {name: getattr(np.fft, name) for name in OF_FFT}
_LIBRARIES = tuple(os.path.join(os.path.dirname(os.path.dirname(np.__file__)), n, "") for n in ("numpy", "scipy"))
_ALIKE = {"asanyarray": "asarray", "asfortranarray": "ascontiguousarray"}
_lock = new_lock()
_traces = 0


class Table(np.ndarray):
    """An array of numbers that a traced function made: a symbolic index makes it a symbolic value."""

    def __getitem__(self, index: Any) -> Any:
        if _is_symbolic(index if isinstance(index, tuple) else (index,)):
            return API["getitem"](API["asarray"](self.view(np.ndarray)), index)
        return super().__getitem__(index)


def _asked(name: str) -> Callable[..., Any]:
    numpys = _NUMPY[name]

    @functools.wraps(numpys)
    def call(*args: Any, **kwargs: Any) -> Any:
        if active() is None:
            return numpys(*args, **kwargs)
        frame = sys._getframe(1)
        if not _is_users(frame.f_code.co_filename) or _called(frame.f_code).get(frame.f_lasti) != name:
            return numpys(*args, **kwargs)  # NumPy's own code, or what is written in C and has no frame, as a property
        if name in MADE_OF and not _is_symbolic((*args, *kwargs.values())):
            made = numpys(*args, **kwargs)
            return made.view(Table) if type(made) is np.ndarray and made.dtype.kind in "biufc" else made
        try:
            return API[_ALIKE.get(name, name)](*args, **kwargs)
        except DTypeError:
            if _is_symbolic((*args, *kwargs.values())):
                raise
            return numpys(*args, **kwargs)  # of strings or objects

    return call


def _is_symbolic(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return any(map(_is_symbolic, item))
    return isinstance(item, Tensor | SymbolicSize)


@functools.cache
def _is_users(filename: str) -> bool:
    return not is_inside(filename) and not filename.startswith(_LIBRARIES)


@functools.lru_cache(maxsize=1024)
def _called(code: CodeType) -> dict[int, str]:
    """The name of what each call in a function calls: the last one loaded where the call begins in the text. Nothing
    where Python was told to keep no positions."""
    out: dict[int, str] = {}
    loaded: dict[Any, str] = {}
    found = list(dis.get_instructions(code))
    ends = [*[i.offset for i in found[1:]], len(code.co_code)]
    for i, end in zip(found, ends, strict=True):
        p = i.positions
        if p is None or p.lineno is None or p.col_offset is None:
            continue
        start = p.lineno, p.col_offset
        if i.opname.startswith("LOAD_") and isinstance(i.argval, str):
            loaded[start] = i.argval
        if "CALL" in i.opname:  # a frame that waits for a call may stand in what is cached behind it
            out.update(dict.fromkeys(range(i.offset, end), loaded.get(start, "")))
    return out


def _of_sizes(name: str) -> Callable[..., Any]:
    """A function of ``np.fft`` that takes numbers alone."""
    numpys = _NUMPY_FFT[name]

    @functools.wraps(numpys)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (API[f"fft.{name}"] if _is_symbolic((*args, *kwargs.values())) else numpys)(*args, **kwargs)

    return call


# --- what is made by an index -----------------------------------------------------------------------------------------


class _Indexed:
    """``np.r_`` and its kin, for symbolic values and sizes."""

    def __init__(self, numpys: Any, made: Callable[[tuple[Any, ...]], Any]):
        self.numpys, self.made = numpys, made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numpys, name)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        ends = [x for k in keys for x in ((k.start, k.stop, k.step) if isinstance(k, slice) else (k,))]
        if active() is None or not _is_symbolic(ends) or any(isinstance(k, str) for k in keys):
            return self.numpys[key]
        return self.made(keys)


def _vector(k: Any) -> Any:
    """A part: a range, so many points of one, or what it is."""
    if not isinstance(k, slice):
        return API["atleast_1d"](k)
    start, step = 0 if k.start is None else k.start, 1 if k.step is None else k.step
    if isinstance(step, complex):
        return API["linspace"](start, k.stop, int(abs(step)))
    return API["arange"](start, k.stop, step)


def _columns(k: Any) -> Any:
    t = _vector(k)
    return API["expand_dims"](t, 1) if t.ndim == 1 else t


def _grid(keys: tuple[Any, ...], sparse: bool) -> Any:
    return API["meshgrid"](*map(_vector, keys), indexing="ij", sparse=sparse)


_SYMBOLIC: dict[str, Any] = {name: _asked(name) for name in _NUMPY}
_SYMBOLIC_FFT = {name: _of_sizes(name) for name in _NUMPY_FFT}
_INDEXED: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "r_": lambda keys: API["concatenate"]([_vector(k) for k in keys]),
    "c_": lambda keys: API["concatenate"]([_columns(k) for k in keys], -1),
    "mgrid": lambda keys: API["stack"](_grid(keys, False)) if len(keys) > 1 else _vector(keys[0]),
    "ogrid": lambda keys: tuple(_grid(keys, True)) if len(keys) > 1 else _vector(keys[0]),
}
for _name, _made in _INDEXED.items():
    _NUMPY[_name] = getattr(np, _name)
    _SYMBOLIC[_name] = _Indexed(_NUMPY[_name], _made)


@contextmanager
def symbolic_arrays() -> Iterator[None]:
    """While a function is traced."""
    global _traces
    with _lock:
        _traces += 1
        if _traces == 1:
            vars(np).update(_SYMBOLIC)
            vars(np.fft).update(_SYMBOLIC_FFT)
    try:
        yield
    finally:
        with _lock:
            _traces -= 1
            if not _traces:
                vars(np).update(_NUMPY)
                vars(np.fft).update(_NUMPY_FFT)
