"""Calls of NumPy's functions with its arguments at random: axes out of order, negative, several or none, keepdims,
ddof, methods, sides and modes; numbers, lists, vectors and arrays where NumPy takes any of them; nan, inf and nothing.

The parameters of a function are found by name, so a function that is added is called as well.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import symc
from symc.driver.measured import MeasuredFunction
from symc.ir.record import dataclass
from symc.numpy_api.dispatch import found_for
from symc.tensors.public import DISPATCH
from symc.testing.choices import one_of
from symc.testing.fuzz.grower import refusals
from symc.testing.fuzz.programs import Program, generator

sc: Any = symc
Rng = np.random.Generator
SHAPES = ((3,), (3, 3), (2, 3), (2, 3, 2), (1, 3), (), (0,), (2, 0), (1,), (4,))
DTYPES = ("f8", "f8", "f8", "i8", "f4", "?", "u1", "c16")
INTS = (0, 1, 2, -1)
BOTH = (False, True)
AXES = (None, 0, -1, 1, (0,), (1, 0), (-1, 0), (), 5)

#: Choices of a parameter, by its name; a choice that is a function is asked for a value.
CHOICES: dict[str, tuple[Any, ...]] = {
    "axis": AXES, "axes": ((1, 0), (0, 1), None, 1), "keepdims": BOTH, "ddof": (0, 1, 3, 9),
    "dtype": ("float64", "float32", "complex128"), "correction": (0, 1, 9), "initial": (2, 0.5),
    "k": INTS, "offset": INTS, "n": (0, 1, 2, 3), "decimals": (0, 1, -1),
    "axis1": INTS, "axis2": INTS, "axisa": INTS, "axisb": INTS, "axisc": INTS, "source": INTS, "destination": INTS,
    "q": (0.25, 0, 1, [0.0, 0.5, 1.0]), "side": ("left", "right"), "right": (*BOTH, 5.0), "left": (None, -5.0),
    "period": (None, 2.0, 3), "discont": (None, 1.0, 4.0), "edge_order": (1, 2), "rowvar": BOTH, "bias": BOTH,
    "increasing": BOTH, "invert": BOTH, "endpoint": BOTH, "retstep": BOTH, "returned": BOTH, "equal_nan": BOTH,
    "include_initial": BOTH, "deg": BOTH, "sparse": BOTH, "indexing": ("xy", "ij"), "order": ("C", "F"),
    "N": (None, 2, 4), "num": (0, 1, 5), "start": (1, 2.5), "stop": (3, 0.5), "base": (2.0,), "fill_value": (2, 0.5),
    "shift": (1, -4, 0, (1, 2), [2], np.array([1, 2]), np.array(2)), "dims": ((2, 3), (4, 4)),
    "repeats": (2, 0, [2], [1, 0, 2], np.array([2, 1])), "reps": (2, (2, 1), [0], np.array([1, 2])),
    "shape": ((-1,), (6,), (3, 2), (2, 3), (3, 3), (1, -1)),
    "obj": (0, -1, 5, [0, 2], [1], slice(None, None, 2), np.array([1, 1]), np.array([True, False, True])),
    "kth": (0, 1, -1, 7, [0, 1]), "pad_width": (1, (1, 2), ((0, 1), (2, 0)), 0),
    "indices": (0, -1, [0, 2, -1], np.array([[0, 1], [2, 2]]), np.array([3]), []),
    "multi_index": (([0, 1], [2, 0]), ([0, 5], [1, 1]), np.array([[0, 1], [-1, 2]])), "minlength": (0, 4, -1),
    "indices_or_sections": (1, 2, 3, [1], [1, 2], np.array([0, 2])),
    "values": (7, [1, 2, 3], [[1], [2]], np.array([[5, 6, 7]])),
    "bins": ([0, 1, 2], [2.0, 0.5, 0.0], np.array([-1.0, 0, 0, 3]), np.array([3, 2]), [1]),
    "method": (*symc.numpy_api.quantiles.METHODS, "none"), "constant_values": (3, (1, 2)), "dx": (0.5, 2),
    "a_min": (None, 0, -0.5), "a_max": (1, None), "nan": (0.0, 2.0), "posinf": (None, 9.0), "neginf": (None, -9.0),
    "ord": (None, 1, 2, 0, np.inf, -np.inf, 3, -1, "fro", "none"), "upper": BOTH, "full_matrices": BOTH,
    "compute_uv": BOTH, "rtol": (1e-5, 0.5), "atol": (1e-8, 1.0), "hermitian": (False,), "ind": (1, 2),
    "polyder.m": INTS, "polyint.m": INTS, "cond.p": (None, 1, -2, "fro"),
    "s": (None, (2,), (3, 2), (-1, 4), (0, 1)), "norm": (None, "ortho", "forward", "backward", "none"),
    "transpose.axes": (None, (1, 0), 0, (2, 0, 1)),
    "searchsorted.a": (np.array([-1.0, 0.0, 0.0, 2.5]), [1, 2], np.array([], "f8")), "unwrap.period": (2, 3, 0.5),
    "choices": ([10, 20, 30, 40], [np.array([1, 2, 3]), 4]),
}  # fmt: skip
MODES = {"take": ("raise", "wrap", "clip"), "choose": ("raise", "wrap", "clip"), "pad": ("constant", "edge", "wrap",
         "reflect", "symmetric", "none"), "convolve": ("full", "same", "valid"), "correlate": ("full", "same", "valid"),
         "qr": ("reduced", "complete", "r"),
         "ravel_multi_index": ("raise", "wrap", "clip", ("clip", "wrap"))}  # fmt: skip
#: Parameters that hold values.
VALUES = frozenset(
    "a x m v array arr ary y f p val z b a1 a2 element test_elements xp fp weights min max tup arrays c A x1 x2 keys "
    "prepend append condition".split()
)
SEQUENCES = frozenset({"tup", "arrays", "keys"})
#: Functions whose arguments go together, or of which there is nothing to compare.
ALONE = frozenset(
    "einsum einsum_path min_scalar_type piecewise select common_type result_type can_cast empty_like".split()
)


@dataclass(frozen=True)
class Call:
    """A call: NumPy's function, arguments by position and by name."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        given = [*map(_shown, self.args), *(f"{k}={_shown(v)}" for k, v in self.kwargs.items())]
        return f"{self.function.__name__}({', '.join(given)})"


def _shown(x: Any) -> str:
    return f"np.array({x.tolist()}, {x.dtype.str!r})" if isinstance(x, np.ndarray) else repr(x)


def array(rng: Rng, shape: tuple[int, ...], dtype: str, edges: bool) -> np.ndarray:
    """Small numbers, of floats some nan and inf if ``edges``."""
    x = rng.integers(-2, 4, shape) if dtype == "i8" else rng.integers(0, 4, shape) if dtype in "u1?" else (
        np.round(rng.normal(size=shape), 2))  # fmt: skip
    if dtype == "c16":
        x = x + 1j * rng.integers(-1, 2, shape)
    out = np.asarray(x, dtype)
    if edges and out.dtype.kind == "f" and out.size:
        out.flat[rng.integers(out.size)] = [np.nan, np.inf, -np.inf, 0.0][int(rng.integers(4))]
    return out


def functions() -> dict[str, Callable[..., Any]]:
    """NumPy's functions that symc has, by name."""
    own = [f for f in vars(np.fft).values() if callable(f) and found_for(f)]
    found = {"".join(f"{p}." for p in ("linalg", "fft") if p in (f.__module__ or "")) + f.__name__: f
             for f in (*DISPATCH, *own)}
    return {n: f for n, f in sorted(found.items()) if f.__name__ not in ALONE}


def ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of symc for one of these."""
    found = found_for(function)
    assert found is not None
    return found


def draw(rng: Rng, function: Callable[..., Any]) -> Call | None:
    """A call of ``function``; None where a parameter that it needs is not known here."""
    shape, dtype = one_of(rng, SHAPES), one_of(rng, DTYPES)
    edges, usual = bool(rng.random() < 0.3), bool(rng.random() < 0.7)

    def value(name: str, similar: bool) -> Any:
        if name in ("x", "xp", "fp") and function is np.interp and name != "x":
            points = array(rng, (3,) if usual else (1,), "f8", edges)
            return np.sort(points) if name == "xp" else points
        own = shape if usual or similar else one_of(rng, SHAPES)
        x: Any = array(rng, own, dtype if usual else one_of(rng, DTYPES), edges)
        if name in SEQUENCES:
            return [x, x * 2] if x.dtype.kind != "b" else [x, x]
        return x.tolist() if rng.random() < 0.15 else x

    try:
        accepted = inspect.signature(function).parameters
    except ValueError:
        accepted = inspect.signature(ours(function)).parameters
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for k, (name, p) in enumerate(inspect.signature(ours(function)).parameters.items()):
        needed = p.default is p.empty and p.kind is not p.VAR_KEYWORD
        if not needed and (name not in accepted or rng.random() < 0.6):
            continue
        whole = f"{function.__name__}.{name}"
        choices = MODES.get(function.__name__, ()) if name == "mode" else CHOICES.get(whole) or CHOICES.get(name, ())
        if p.kind is p.VAR_POSITIONAL:
            args += [value("x", True) for _ in range(int(rng.integers(1, 3)))] if name != "varargs" else []
        elif name in VALUES and whole not in CHOICES and not (k and choices):
            kwargs[name] = value(name, not k)
        elif choices:
            kwargs[name] = one_of(rng, choices)
        elif needed:
            return None
        if needed and name in kwargs:
            args.append(kwargs.pop(name))
    return Call(function, tuple(args), kwargs)


def symbolic(call: Call, rng: Rng, leaves: list[Any], arrays: list[np.ndarray]) -> Call:
    """The call with inputs for its arrays (of every third call for the first alone), which are appended."""
    first_only = rng.random() < 0.3

    def change(x: Any) -> Any:
        if isinstance(x, list) and any(isinstance(i, np.ndarray) for i in x):
            return [change(i) for i in x]
        if not isinstance(x, np.ndarray) or (leaves and first_only):
            return x
        arrays.append(x)
        leaves.append(sc.input(f"x{len(leaves)}", x.dtype, x.shape))
        return leaves[-1]

    return Call(call.function, tuple(map(change, call.args)), {k: change(v) for k, v in call.kwargs.items()})


@generator("arguments")
def arguments(seed: int, aim: str = "") -> Program:
    """The results of one call to three calls of functions."""
    rng = np.random.default_rng(seed)
    names = functions()
    leaves: list[Any] = []
    arrays: list[np.ndarray] = []
    outputs: list[Any] = []
    while not outputs:
        with refusals(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name = aim or list(names)[int(rng.integers(len(names)))]
            call = draw(rng, names[name])
            if call is not None:
                own: list[Any] = []
                data: list[np.ndarray] = []
                made = symbolic(call, rng, own, data)
                out = ours(made.function)(*made.args, **made.kwargs)
                outputs = [t for t in (out if isinstance(out, list | tuple) else [out]) if isinstance(t, sc.Tensor)]
                leaves, arrays = own, data
    f = sc.compile(outputs, leaves, mode="reference")
    given: list[Any] = [arrays, [a * a.dtype.type(2) if a.dtype.kind in "fc" else a for a in arrays]]
    if isinstance(f, MeasuredFunction):  # the function that has the sizes which those in front found
        given = [f.extended(arrays) for arrays in given]
    return Program(f"arguments:{seed}" + (f":{aim}" if aim else ""), f._compilation.source, tuple(map(tuple, given)))
