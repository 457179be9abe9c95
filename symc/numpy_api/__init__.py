"""NumPy's functions on symbolic values, one file a family. The array namespace of a tensor is this package.

The functions are those in ``symc.tensors.public.API``; importing this package fills the table.
"""

import math as _math
import sys as _sys
from collections.abc import Callable as _Callable
from importlib import import_module as _import
from typing import Any as _Any

import numpy as _np

from symc.ir.types import DTYPES as _DTYPES
from symc.numpy_api import fourier, matrices, updates
from symc.tensors import convert as _convert
from symc.tensors.public import API as _API
from symc.tensors.public import PROTOCOLS as _PROTOCOLS

for _family in """
    assembling creation decompositions differences dtypes elementwise equations histograms indexing joining linear
    manipulation matrix_functions measured methods missing padding polynomials quantiles reductions replacing selection
    sorting special_matrices statistics ufuncs window_functions
""".split():
    _import(f"{__name__}.{_family}")  # which registers its functions
for _d in _DTYPES.values():
    globals()[_d.name] = _d
bool = _DTYPES["bool"]  # spelled out for the type checker
pi, e, inf, nan, euler_gamma, newaxis = _np.pi, _math.e, _np.inf, _np.nan, _np.euler_gamma, None
#: The version of the array API standard that the namespace follows.
__array_api_version__ = "2024.12"
CONSTANTS = ("pi", "e", "inf", "nan", "euler_gamma", "newaxis")

#: Functions that Python's operators and indexing call; they have no name of their own for users.
_INTERNAL = {"getitem", "operator_pow", "make_complex"}
_ALL = {n: f for n, f in _API.items() if n not in _INTERNAL and f.__module__.startswith((__name__, _convert.__name__))}
_OWN = {n: f for n, f in _ALL.items() if not n.startswith((matrices.PREFIX, fourier.PREFIX))}
#: The functions that ``sc.linalg`` and ``sc.fft`` alone have, by their names there.
LINALG, FFT = ({n.removeprefix(p): f for n, f in _ALL.items() if n.startswith(p)}
               for p in (matrices.PREFIX, fourier.PREFIX))
globals().update(_OWN)
for _f in _OWN.values():
    if not hasattr(_sys.modules[_f.__module__], _f.__name__):
        _f.__module__ = __name__  # made by a table: a pickle finds it here
FUNCTIONS = tuple(sorted(_OWN))
_NAMES = sorted(_d.name for _d in _DTYPES.values() if _d.name != "bool")
__all__ = [*CONSTANTS, "__array_api_version__", *_NAMES, *FUNCTIONS]


def _late(module: str, name: str) -> _Callable[..., _Any]:
    """A function of a module that is imported when NumPy first meets a tensor, or a function is first traced."""
    return lambda *args: getattr(_import(f"{__name__}.{module}"), name)(*args)


def __getattr__(name: str) -> _Any:
    """The extensions of the array API. (Functions are put here by a table, which type checkers do not see.)"""
    if name in ("fft", "linalg"):
        return _import(f"symc.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_PROTOCOLS.update(ufunc=_late("dispatch", "run_ufunc"), function=_late("dispatch", "run_function"), at=updates.At,
                  namespace=lambda: _sys.modules[__name__])
_PROTOCOLS.update({n: _late("aliasing", n) for n in ("settled", "current", "flat")})
_PROTOCOLS["accumulate"] = lambda *args, **options: _import("symc.transforms.accumulate").accumulate(*args, **options)
_PROTOCOLS.update({n: _late("mutation", n) for n in ("assign", "in_place", "write_by")})
