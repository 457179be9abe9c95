"""Calls of every public function with operands of every dtype. A new function is found by its name in the namespace.

A *form* is one way of calling a function: the shapes of its array operands, and what else it is given. Which forms a
function has is found by trying them on NumPy's (or SciPy's) function and on symc's.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

import symc as sc
from symc import numpy_api
from symc.errors import SymcError
from symc.inputs import input as sc_input
from symc.ir.types import DTYPES, real_dtype
from symc.numpy_api.__main__ import numpy_names
from symc.public import API
from symc.tensor import Tensor
from tests.numpy_compare import evaluate

ALL = tuple(DTYPES.values())
#: Small numbers, none 0: rows, columns and vectors of them are in no order, second operands in increasing order.
NUMBERS = np.array([3, 1, 2, 5, 4, 7, 6, 9, 8, 11, 10, 12])


@dataclass(frozen=True)
class Form:
    """One way of calling: ``build(fn, *arrays)`` with an array of every shape."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    build: Callable[..., Any]


_MASK = np.array([True, False, True, False])
_ONE: dict[str, Callable[..., Any]] = {
    "a": lambda f, a: f(a),
    "a, 1": lambda f, a: f(a, 1),
    "a, 0, 1": lambda f, a: f(a, 0, 1),
    "a, (0,)": lambda f, a: f(a, (0,)),
    "a, axis=0": lambda f, a: f(a, axis=0),
    "1, a": lambda f, a: f(1, a),
    "[a]": lambda f, a: f([a]),
    "'ij->j', a": lambda f, a: f("ij->j", a),
    "[1, 2], a": lambda f, a: f([1, 2], a),
    "a, [0], axis=0": lambda f, a: f(a, np.array([0]), axis=0),
    "a, length=13": lambda f, a: f(a, length=13),
    "(2, 2), a": lambda f, a: f((2, 2), a),
    "[a > 2], [1]": lambda f, a: f(a, [a > 2], [1]),
    "(0,), (2,)": lambda f, a: f(a, (0,), (2,)),
}
_TWO: dict[str, Callable[..., Any]] = {
    "mask, a, b": lambda f, a, b: f(_MASK, a, b),
    "a, b": lambda f, a, b: f(a, b),
    "[a, b]": lambda f, a, b: f([a, b]),
    "'ij,jk', a, b": lambda f, a, b: f("ij,jk->ik", a, b),
    "[mask], [a], b": lambda f, a, b: f([_MASK], [a], b),
    "a, 1, b": lambda f, a, b: f(a, 1, b),
    "[0, 1], [a, b]": lambda f, a, b: f(np.array([0, 1, 1, 0]), [a, b]),
    "a, weights=b": lambda f, a, b: f(a, weights=b),
    "a, constant_values=b": lambda f, a, b: f(a, 1, constant_values=b),
}
_SHAPES1 = [((4,),), ((2, 3),), ((3, 3),), ((2, 2, 3),), ((),)]
_SHAPES2 = [((4,), (4,)), ((2, 3), (3, 2)), ((3, 3), (3, 3)), ((4,), ())]
#: Forms by how they call, each with the shapes to try.
FORMS: list[list[Form]] = [
    [Form(name, s, build) for s in shapes] for table, shapes in ((_ONE, _SHAPES1), (_TWO, _SHAPES2))
    for name, build in table.items()
]  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A public function, and the one that says what is right: NumPy's, SciPy's, or itself on floats."""

    name: str
    call: Callable[..., Any]
    other: Callable[..., Any] | None
    scipy: bool


def functions() -> list[Function]:
    """Every function of ``sc``, ``sc.linalg`` and ``sc.special``, once."""
    names, out, seen = numpy_names(), [], set()

    def add(name: str, fn: Callable[..., Any], other: Callable[..., Any] | None, scipy: bool = False) -> None:
        if fn not in seen:
            seen.add(fn)
            out.append(Function(name, fn, other, scipy or other is None))

    def numpys(path: str) -> Any:
        found: Any = np
        for part in path.split(".")[1:]:
            found = getattr(found, part)
        return found

    for name in sc.special.__all__:
        add(f"special.{name}", getattr(sc.special, name), getattr(scipy.special, name, None), True)
    for name in numpy_api.FUNCTIONS:
        own = names.get(API[name])
        add(name, API[name], numpys(own[0]) if own else getattr(np, name, None))
    for name, fn in numpy_api.LINALG.items():
        add(f"linalg.{name}", fn, getattr(np.linalg, name, None))
    return out


def array(shape: tuple[int, ...], d: np.dtype, place: int = 0) -> np.ndarray:
    """Operand number ``place``: small numbers."""
    n = int(np.prod(shape))
    a = NUMBERS[:n] if not place else np.sort(np.roll(NUMBERS, 3 * place)[:n]) if len(shape) < 2 else NUMBERS[::-1][:n]
    return (a % 3 != place).reshape(shape) if d.kind == "b" else a.reshape(shape).astype(d)


def arrays_of(form: Form, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
    """Operands of these dtypes."""
    return [array(s, d, i) for i, (s, d) in enumerate(zip(form.shapes, dtypes, strict=True))]


def _flat(out: Any) -> list[Any]:
    return [x for o in out for x in _flat(o)] if isinstance(out, list | tuple) else [out]


def expected(f: Function, form: Form, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """What NumPy gives, or None where it refuses.

    SciPy's functions differ among each other in what they make of integers and float16; and symc's own have no other.
    They are held to one rule: operands in their common dtype, integers in float64, results in the same.
    """
    fn = f.other or _by_reference(f.call)
    try:
        if not f.scipy:
            out = _flat(form.build(fn, *arrays))
        else:
            common = np.result_type(*[a.dtype for a in arrays])
            d = common if common.kind in "fc" else np.dtype("float64")
            wide = np.promote_types(d, np.float32)
            out = [
                np.asarray(o).astype(d if np.asarray(o).dtype == wide else real_dtype(d) if d.kind == "c" else d)
                if np.asarray(o).dtype.kind in "fc" else o
                for o in _flat(form.build(fn, *[a.astype(wide) for a in arrays]))
            ]  # fmt: skip
    except Exception:
        return None
    good = all(isinstance(o, np.ndarray | np.generic) and o.dtype.kind in "biufc" for o in out)
    return [np.asarray(o) for o in out] if good else None


def _by_reference(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of symc on arrays."""
    def call(*args: Any, **kwargs: Any) -> Any:
        out = fn(*args, **kwargs)
        return tuple(evaluate(_flat(out), [], []))
    return call


def given(f: Function, form: Form, arrays: Sequence[np.ndarray]) -> tuple[list[Tensor], list[Tensor]]:
    """The results of symc, and the inputs they are of. Raises what symc raises; TypeError for other results."""
    leaves = [sc_input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
    out = _flat(form.build(f.call, *leaves))
    if not all(isinstance(o, Tensor) for o in out):
        raise TypeError("not tensors")
    return out, leaves


#: Parameters that are no operand. An array in their place is no form.
_NO_OPERANDS = {"out", "dtype", "axis", "copy", "order", "mode", "rtol", "atol", "subok", "deg", "hermitian", "rcond"}


def _fits(form: Form, f: Function) -> bool:
    """The arrays of a form are no options of NumPy's function."""
    seen: list[dict[str, Any]] = []

    def probe(*args: Any, **kwargs: Any) -> Any:
        for fn in (f.call, f.other):
            try:
                seen.append(dict(inspect.signature(fn).bind(*args, **kwargs).arguments))  # type: ignore[arg-type]
            except (TypeError, ValueError):
                pass

    form.build(probe, *[np.zeros(s) for s in form.shapes])
    return not any(isinstance(a, np.ndarray) and a.dtype == float for s in seen for k, a in s.items() if k in _NO_OPERANDS)


def forms(f: Function) -> list[Form]:
    """The ways of calling a function that both know: up to two with one array operand, and one with two."""
    found: list[Form] = []
    for group in FORMS:
        arity = len(group[0].shapes)
        if sum(len(x.shapes) == arity for x in found) < 3 - arity:
            found += next(([form] for form in group if _fits(form, f) and _works(f, form)), [])
    return found


def _works(f: Function, form: Form) -> bool:
    for name in ("f64", "i64", "bool"):
        arrays = arrays_of(form, [DTYPES[name]] * len(form.shapes))
        try:
            if expected(f, form, arrays) is not None and given(f, form, arrays):
                return True
        except Exception:  # a call that one of them does not know
            continue
    return False


TOLERANCE = {2: 4e-3, 4: 1e-5, 8: 1e-9}


def difference(got: np.ndarray, want: np.ndarray, values: bool = True) -> str | None:
    """How a result differs from NumPy's, in words."""
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, not {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        same = np.array_equal(got, want)
    else:
        t = TOLERANCE[real_dtype(want.dtype).itemsize]
        same = np.allclose(got, want, rtol=t, atol=t, equal_nan=True)
    return None if same or not values else f"{got.ravel()[:4]}, not {want.ravel()[:4]}"


def problems(f: Function, form: Form, pairs: Sequence[tuple[np.dtype, ...]]) -> list[tuple[tuple[np.dtype, ...], str]]:
    """What is not as NumPy has it, by dtypes of the operands. All values of a form are computed at once."""
    out: list[tuple[tuple[np.dtype, ...], str]] = []
    todo: list[tuple[tuple[np.dtype, ...], list[np.ndarray], list[Tensor]]] = []
    leaves: list[Tensor] = []
    data: list[np.ndarray] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtypes in pairs:
            arrays = arrays_of(form, dtypes)
            want = expected(f, form, arrays)
            try:
                got, own = given(f, form, arrays)
            except SymcError as e:
                out += [(dtypes, f"refused: {str(e).splitlines()[0]}")] if want is not None else []
                continue
            if want is not None and len(want) == len(got):
                todo.append((dtypes, want, got))
                leaves += own
                data += arrays
            elif want is not None:
                out.append((dtypes, f"{len(got)} results, not {len(want)}"))
        results = iter(evaluate([t for _, _, got in todo for t in got], leaves, data))
    for dtypes, want, got in todo:
        said = [difference(next(results), w) for _, w in zip(got, want, strict=True)]
        out += [(dtypes, s) for s in said if s]
    return out
