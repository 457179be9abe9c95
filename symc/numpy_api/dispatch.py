"""Dispatch of NumPy's own functions that meet a tensor: NEP 13 (ufuncs and their methods) and NEP 18 (functions)."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from symc import special
from symc.errors import SymbolicValueError
from symc.ir.ops.ensure import at_least
from symc.numpy_api.absent import ABSENT
from symc.numpy_api.aliasing import settled
from symc.numpy_api.fourier import PREFIX
from symc.numpy_api.mutation import into, ufunc_at
from symc.numpy_api.promotion import no_out
from symc.numpy_api.ufuncs import UFUNCS
from symc.tensors.callsite import active
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, DISPATCH, MEMORY, PROTOCOLS, located
from symc.tensors.tensor import Tensor

_kept = partial(located, memory="same")

#: ufunc.reduce and ufunc.accumulate, by the function that computes them.
REDUCE: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
    np.logaddexp: "logsumexp",
}
ACCUMULATE: dict[np.ufunc, str] = {np.add: "cumsum", np.multiply: "cumprod"}
#: Functions for the ufuncs of scipy.special, by name: those of ``sc.special``, which functions of SciPy may call.
_OF_SCIPY = {n: getattr(special, n) for n in special.__all__} | {"_riemann_zeta": special.zeta, "_zeta": special.zeta}
#: Generalized ufuncs: functions of whole axes.
GENERAL: dict[str, str] = {"matmul": "matmul", "vecdot": "vecdot", "matvec": "matvec", "vecmat": "vecmat"}


@_kept
def run_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Body of ``__array_ufunc__``: the function of symc for a ufunc or one of its methods."""
    scope, outs = active(), kwargs.get("out", ())
    if scope is None:
        return _run_ufunc(ufunc, method, inputs, kwargs)
    if not (outs and all(isinstance(o, Tensor) for o in outs)):
        made = _run_ufunc(ufunc, method, inputs, kwargs)
        return settled("ufunc" if method == "__call__" else "", scope, tuple(inputs), kwargs, made)
    where = kwargs.get("where", True)
    found = _run_ufunc(ufunc, method, inputs, {k: v for k, v in kwargs.items() if k not in ("out", "where")})
    parts = found if isinstance(found, tuple) else (found,)
    written = tuple([into(o, r, where, ufunc.__name__) for o, r in zip(outs, parts, strict=True)])
    return written if isinstance(found, tuple) else written[0]


def _run_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    package = _package(ufunc)
    shown = f"{package}.{name}" if package else name
    kwargs = _keywords(ufunc, shown, method, inputs, kwargs)
    if method == "__call__" and ufunc in UFUNCS:
        return API[name](*inputs, **kwargs)
    if method == "__call__" and name in GENERAL and GENERAL[name] in API:
        return API[GENERAL[name]](*inputs, **kwargs)
    if method == "reduce" and ufunc in REDUCE:
        axis = kwargs.pop("axis", 0) if "axis" in kwargs else (inputs[1] if len(inputs) > 1 else 0)
        return API[REDUCE[ufunc]](inputs[0], axis=axis, **kwargs)
    if method == "accumulate" and ufunc in UFUNCS and ufunc.nin == 2 and ufunc.nout == 1:
        axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
        return (API[ACCUMULATE[ufunc]](inputs[0], axis=axis, **kwargs) if ufunc in ACCUMULATE
                else PROTOCOLS["accumulate"](ufunc, inputs[0], axis, **kwargs))
    if method == "reduceat" and ufunc in REDUCE and not isinstance(inputs[1], Tensor):
        return _reduceat(ufunc, as_tensor(inputs[0]), inputs[1:], kwargs)
    if method == "at" and active() is not None:
        return ufunc_at(ufunc, inputs)
    if method == "outer" and ufunc in UFUNCS and ufunc.nin == 2:
        a, b = map(as_tensor, inputs)
        return API[name](API["reshape"](a, a.shape + (1,) * b.ndim), b, **kwargs)
    if method == "reduce" and ufunc in UFUNCS and ufunc.nin == 2 and ufunc.nout == 1:
        return _fold(ufunc, inputs, kwargs)
    if package == "scipy.special" and method == "__call__" and not kwargs and name in _OF_SCIPY:
        return _OF_SCIPY[name](*inputs)
    shown += "" if method == "__call__" else f".{method}"
    hint = {"at": "use x.at[i].add(v), .multiply, .max, .min or .set", "reduceat": "sc.ragged has segments"}.get(
        method
    )
    if package != "np":
        hint = hint or (
            _near(name, special.__all__, "sc.special.", "docs/special.md") if package
            else "sc.op makes an op of a Python function"
        )
    hint = hint or _near(name)
    raise SymbolicValueError(f"{shown} is not available on symbolic values", values=_rows(inputs), help=hint)


def _reduceat(ufunc: np.ufunc, x: Tensor, given: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """``ufunc.reduceat`` at constant places: of the slices from each to the next, or its element where that is less."""
    axis = kwargs.pop("axis", given[1] if len(given) > 1 else 0)
    places = [int(i) for i in np.asarray(given[0])]
    ends = [j if j > i else i + 1 for i, j in itertools.pairwise(places)] + [None]
    x = Tensor(at_least(x.value, axis % x.ndim, max(places, default=-1) + 1))
    head = (slice(None),) * (axis % x.ndim)
    parts = [API["getitem"](x, (*head, slice(i, j))) for i, j in zip(places, ends, strict=True)]
    return API["stack"]([API[REDUCE[ufunc]](p, axis=axis, **kwargs) for p in parts], axis)


_NO_OUT = ("use the result; sc.where selects, x.at[i].set(v) replaces elements; a function under sc.jit may write into "
           "arrays that it made by np.zeros_like(x) or sc.zeros(shape)")


def _keywords(ufunc: np.ufunc, shown: str, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
              ) -> dict[str, Any]:
    """The keywords that matter. Raises SymbolicValueError for those that would change an array."""
    kwargs = {
        k: v
        for k, v in kwargs.items()
        if k == "axis" or not (v is None or (k == "where" and v is True) or k in ("order", "subok"))
    }
    if method != "__call__" or ufunc not in UFUNCS:
        kwargs.pop("casting", None)
    for refused in ("out", "where"):
        if refused in kwargs and not (refused == "where" and method == "reduce" and _has_mask(ufunc)):
            raise SymbolicValueError(
                f"{shown}({refused}=) is not possible with symbolic values: they never change",
                values=_rows(inputs),
                help=f"use the result; sc.where(mask, {shown}(...), other) says what is where a mask does not hold"
                if refused == "where" else _NO_OUT,
            )
    return kwargs


def _has_mask(ufunc: np.ufunc) -> bool:
    return ufunc in REDUCE and "where" in inspect.signature(API[REDUCE[ufunc]]).parameters


def _package(ufunc: np.ufunc) -> str:
    """The module of a ufunc, which does not say so itself: "np", "scipy.special" or nowhere that is known."""
    if getattr(np, ufunc.__name__, None) is ufunc:
        return "np"
    modules = [sys.modules.get(f"scipy.special{inner}") for inner in ("", "._ufuncs")]
    return "scipy.special" if any(getattr(m, ufunc.__name__, None) is ufunc for m in modules) else ""


def _fold(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Reduce with any binary ufunc along one axis whose size is known."""
    x = as_tensor(inputs[0])
    axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
    keepdims = kwargs.pop("keepdims", False)
    if not isinstance(axis, int) or kwargs:
        given = ", ".join(f"{k}=" for k in kwargs) if isinstance(axis, int) else f"axis={axis!r}"
        raise SymbolicValueError(f"np.{ufunc.__name__}.reduce of symbolic values takes one axis and keepdims, "
                                 f"not {given}", values=_rows(inputs))
    rows = API["moveaxis"](x, axis, 0)
    parts = list(rows)
    if not parts:
        raise SymbolicValueError(f"np.{ufunc.__name__}.reduce of no elements has no value", values=_rows(inputs))
    out = parts[0]
    for p in parts[1:]:
        out = API[ufunc.__name__](out, p)
    return API["expand_dims"](out, axis) if keepdims else out


@_kept
def run_function(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Body of ``__array_function__``: the function of symc for a function of NumPy."""
    found = found_for(func)
    if found is None:
        module = (getattr(func, "__module__", "") or "numpy").replace("numpy", "np")
        name = f"{module}.{func.__name__}"
        if func.__name__ in API:  # of the same name, and another meaning
            raise SymbolicValueError(f"{name} changes its argument, which symbolic values never do", values=_rows(args),
                                     help=f"y = sc.{func.__name__}(...) is the changed value")
        raise SymbolicValueError(
            f"{name} is not available on symbolic values", values=_rows(args),
            help=ABSENT.get(func.__name__) or _near(func.__name__),
        )
    out, scope = kwargs.get("out"), active()
    if isinstance(out, Tensor) and scope is not None:
        return into(out, found(*args, **{k: v for k, v in kwargs.items() if k != "out"}), True, f"np.{func.__name__}")
    if out is not None:
        raise SymbolicValueError(
            f"np.{func.__name__}(out=) is not possible with symbolic values: they never change",
            values=_rows(args),
            help="use the result; f(x, out=buffer) of a compiled function writes into an array",
        )
    args, kwargs = _by_name(func, found, args, {k: v for k, v in kwargs.items() if k != "out"})
    try:
        made = found(*args, **kwargs)
        return made if scope is None else settled(MEMORY.get(found, ""), scope, args, kwargs, made)
    except TypeError as e:
        _check_arguments(found, func, args, kwargs, e)
        raise


def found_for(func: Any) -> Callable | None:
    """The function of symc for a function of NumPy. Those of ``numpy.fft``, which NumPy imports late, go by name."""
    if getattr(func, "__module__", None) == "numpy.fft":
        return API.get(PREFIX + getattr(func, "__name__", ""))
    return DISPATCH.get(func)


@cache
def _orders(func: Callable, found: Callable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters by position of NumPy's function and of ours; nothing where one cannot be asked."""
    def names(f: Callable) -> tuple[str, ...]:
        parameters = inspect.signature(f).parameters.values()
        return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    try:
        return names(func), names(found)
    except ValueError:
        return (), ()


def _by_name(func: Callable, found: Callable, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments by NumPy's names from where the order of ours is another; ``out``, which is None, is left out."""
    theirs, ours = _orders(func, found)
    first = next((i for i, n in enumerate(theirs) if n not in ours[i : i + 1] and (n == "out" or n in ours)), len(args))
    if first >= len(args) or len(args) > len(theirs):
        return args, kwargs
    given = dict(zip(theirs[first:], args[first:], strict=False))
    if given.get("out") is not None:
        no_out(given["out"], f"np.{func.__name__}")
    return args[:first], {**{n: v for n, v in given.items() if n != "out"}, **kwargs}


def _check_arguments(found: Callable, func: Callable, args: tuple, kwargs: dict[str, Any], error: TypeError) -> None:
    """Arguments that NumPy's function has and symc's does not are named as such."""
    try:
        inspect.signature(found).bind(*args, **kwargs)
    except TypeError as e:
        known = ", ".join(inspect.signature(found).parameters)
        raise SymbolicValueError(
            f"np.{func.__name__} on symbolic values: {e}", values=_rows(args), help=f"it takes {known}"
        ) from error


def _near(name: str, known: Iterable[str] = API, where: str = "sc.", page: str = "docs/numpy.md") -> str:
    import difflib

    close = difflib.get_close_matches(name, known, 1, 0.7)
    return f"did you mean {where}{close[0]}?" if close else f"{page} lists the functions that are"


def _rows(items: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    return [t.describe(f"operand {i}") for i, t in enumerate(items) if isinstance(t, Tensor)]
