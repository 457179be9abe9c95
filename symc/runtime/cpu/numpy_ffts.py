"""NumPy's Fourier transforms: loops of generalized ufuncs, which are functions of C that need no Python.

A loop takes arrays, sizes and steps, as NumPy's C API says of all ufuncs (``PyUFuncGenericFunction``), and a word of
data that comes with it; both stand in the public head of the ufunc's object. What they do is tried when they are first
asked for: with other ufuncs, transforms run by their NumPy reference. A loop allocates what it needs; where it cannot,
it leaves the result as it was.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from symc.ir.types import DTYPES
from symc.runtime.cache.machine_code import Symbol

#: The ufuncs that are called, with the dtypes of points and results by the letter of the real dtype.
LOOPS = {"fft": "{0}{1}->{0}", "ifft": "{0}{1}->{0}", "rfft_n_even": "{1}{1}->{0}", "rfft_n_odd": "{1}{1}->{0}",
         "irfft": "{0}{1}->{1}"}
LETTERS = {"d": "D", "f": "F"}
_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class _Head(ctypes.Structure):
    """The first fields of PyUFuncObject (numpy/ufuncobject.h), behind those of every object."""

    _fields_ = [("nin", ctypes.c_int), ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
                ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
                ("ntypes", ctypes.c_int)]  # fmt: skip


@cache
def known() -> bool:
    """True if NumPy has these ufuncs, and their loops do what is expected of them."""
    try:
        return all(_agrees(name, letter) for name in LOOPS for letter in LETTERS)
    except (AttributeError, ImportError, LookupError):
        return False


@cache
def _ufunc(name: str) -> np.ufunc:
    from numpy.fft import _pocketfft_umath  # type: ignore[attr-defined]

    return getattr(_pocketfft_umath, name)


def _loop(name: str, letter: str) -> tuple[int, int]:
    """The addresses of a loop and of its data. Raises LookupError if there is none."""
    ufunc = _ufunc(name)
    head = _Head.from_address(id(ufunc) + object.__basicsize__)
    if (head.nin, head.nout, head.nargs, head.ntypes) != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        raise LookupError(name)
    types = LOOPS[name].format(LETTERS[letter], letter)
    if types not in ufunc.types or (ufunc.nin, ufunc.nout) != (2, 1) or not head.functions:
        raise LookupError(types)
    k = ufunc.types.index(types)
    return head.functions[k] or 0, (head.data[k] or 0) if head.data else 0


def _agrees(name: str, letter: str) -> bool:
    """True if a loop, called on columns of three rows, gives what NumPy does."""
    function, data = _loop(name, letter)
    if not function:
        return False
    n = 5 if name == "rfft_n_odd" else 6
    points, result = (np.dtype(c) for c in (LOOPS[name].format(LETTERS[letter], letter)[i] for i in (0, -1)))
    m = n // 2 + 1 if name == "irfft" else n
    x = np.arange(3 * m).reshape(m, 3).astype(points) ** 2
    x[1] *= points.type(1j if points.kind == "c" else 2)
    want = _expected(name, x, n).astype(result)
    out = np.zeros_like(want)
    factor = np.full(1, 2, letter)
    arrays = np.array([x.ctypes.data, factor.ctypes.data, out.ctypes.data], np.intp)
    sizes = np.array([3, m, len(want)], np.intp)
    steps = np.array([x.strides[1], 0, out.strides[1], x.strides[0], out.strides[0]], np.intp)
    _LOOP(function)(arrays.ctypes.data, sizes.ctypes.data, steps.ctypes.data, data)
    return bool(np.allclose(out, 2 * want, rtol=1e-4))


def _expected(name: str, x: np.ndarray, n: int) -> Any:
    if name == "irfft":
        return np.fft.irfft(x, n, 0, "forward")
    if name == "ifft":
        return np.fft.ifft(x, axis=0, norm="forward")
    return np.fft.fft(x, axis=0) if name == "fft" else np.fft.rfft(x, axis=0)


@cache
def entry(name: str) -> Symbol:
    """``function <ufunc> <dtype>``: void f(char **arrays, intp *sizes, intp *steps, data) of points, a factor and
    results, in this order; ``data <ufunc> <dtype>``. ``dtype``: of real parts. Raises LookupError for others than
    those that are known."""
    what, ufunc, dtype = name.split()
    if not known():
        raise LookupError(name)
    return Symbol(_loop(ufunc, DTYPES[dtype].char)[what == "data"], f"transform {name}")
