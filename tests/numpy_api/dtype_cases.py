"""Calls of every public function with operands of every dtype. A new function is found by its name in the namespace.

A *form* is one way of calling a function: the shapes of its array operands, and what else it is given. Which forms a
function has is found by trying them on NumPy's (or SciPy's) function and on symc's.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

import symc as sc
from symc import numpy_api
from symc.errors import LinAlgError, SymcError
from symc.ir.dtypes import ARITHMETIC
from symc.ir.ops.special import SEVERAL, TABLE
from symc.ir.types import DTYPES, real_dtype
from symc.numpy_api.__main__ import numpy_names
from symc.tensors.inputs import input as sc_input
from symc.tensors.public import API
from symc.tensors.tensor import Tensor
from tests.numpy_api.numpy_compare import evaluate

ALL = ARITHMETIC
OF_SCIPY = {*TABLE, *SEVERAL, *sc.special.COMPOSED}
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
    "diagonal of a": lambda f, a: f(np.diag(np.diagonal(a))),
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
    """A public function, and the one that says what is right: NumPy's, SciPy's, or itself on floats (``own``)."""

    name: str
    call: Callable[..., Any]
    other: Callable[..., Any]
    special: bool = False
    own: bool = False


def functions() -> list[Function]:
    """Every function of ``sc``, ``sc.linalg`` and ``sc.special``, once; those of SciPy are in ``test_special``."""
    names = numpy_names()
    found = {f"special.{n}": getattr(sc.special, n) for n in sc.special.__all__ if n not in OF_SCIPY}
    found |= {n: API[n] for n in numpy_api.FUNCTIONS}
    found |= {f"linalg.{n}": fn for n, fn in numpy_api.LINALG.items()}
    out: dict[Callable[..., Any], Function] = {}
    for name, fn in found.items():
        room, _, short = name.rpartition(".")
        homes = {"special": [scipy.special], "linalg": [np.linalg, scipy.linalg]}.get(room, [np])
        other = _numpys(names[fn][0]) if fn in names else None
        other = other or next((getattr(h, short) for h in homes if hasattr(h, short)), None)
        made = Function(name, fn, other or _on_arrays(fn), room == "special" or other is None, other is None)
        out.setdefault(fn, made)
    return list(out.values())


def _numpys(path: str) -> Callable[..., Any]:
    found: Any = np
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


def _on_arrays(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of symc, on arrays."""
    return lambda *args, **kwargs: evaluate(_flat(fn(*args, **kwargs)), [], [])


def array(shape: tuple[int, ...], d: np.dtype, place: int = 0) -> np.ndarray:
    """Operand number ``place``: small numbers."""
    n = int(np.prod(shape))
    a = NUMBERS[:n] if not place else NUMBERS[::-1][:n]
    a = np.sort(a) if len(shape) == 1 else a
    return (a % 3 != place).reshape(shape) if d.kind == "b" else a.reshape(shape).astype(d)


def arrays_of(form: Form, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
    """Operands of these dtypes."""
    return [array(s, d, i) for i, (s, d) in enumerate(zip(form.shapes, dtypes, strict=True))]


def _flat(out: Any) -> list[Any]:
    return [x for o in out for x in _flat(o)] if isinstance(out, list | tuple) else [out]


def expected(f: Function, form: Form, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """What NumPy gives, or None where it refuses.

    SciPy's special functions differ among each other in what they make of integers and float16, and symc's own have no
    other. They are held to one rule: operands in their common dtype, integers in float64, results in the same.
    """
    dtype = np.result_type(*[a.dtype for a in arrays]) if arrays else np.dtype("float64")
    dtype = dtype if dtype.kind in "fc" else np.dtype("float64")
    wide = np.promote_types(dtype, np.float32)  # SciPy has no half precision
    try:
        out = _flat(form.build(f.other, *([a.astype(wide) for a in arrays] if f.special else arrays)))
    except Exception:
        return None
    if not all(isinstance(o, np.ndarray | np.generic | bool) and np.asarray(o).dtype.kind in "biufc" for o in out):
        return None
    found = [np.asarray(o) for o in out]
    return [o.astype(dtype) if o.dtype == wide else o for o in found] if f.special else found


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
    seen: dict[str, Any] = {}

    def probe(*args: Any, **kwargs: Any) -> Any:
        for fn in (f.call, f.other):
            with contextlib.suppress(TypeError, ValueError):
                given = inspect.signature(fn).bind(*args, **kwargs).arguments
                seen.update({k: v for k, v in given.items() if k in _NO_OPERANDS})

    try:
        form.build(probe, *[np.zeros(s) for s in form.shapes])
    except ValueError:  # the form itself needs other shapes
        return False
    return not any(isinstance(v, np.ndarray) and v.dtype == float for v in seen.values())


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


def difference(got: np.ndarray, want: np.ndarray) -> str | None:
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
    return None if same else f"{got.ravel()[:4]}, not {want.ravel()[:4]}"


def problems(f: Function, form: Form, pairs: Sequence[tuple[np.dtype, ...]]) -> list[tuple[tuple[np.dtype, ...], str]]:
    """What is not as NumPy has it, by dtypes of the operands. All values of a form are computed at once."""
    out: list[tuple[tuple[np.dtype, ...], str]] = []
    todo: list[tuple[tuple[np.dtype, ...], list[np.ndarray], list[Tensor], list[Tensor], list[np.ndarray]]] = []
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
                todo.append((dtypes, want, got, own, arrays))
            elif want is not None:
                out.append((dtypes, f"{len(got)} results, not {len(want)}"))
        try:
            results = iter(evaluate(*[[x for case in todo for x in case[k]] for k in (2, 3, 4)]))
        except LinAlgError as e:  # of numbers of some dtypes: one by one
            if len(pairs) == 1:
                return [(pairs[0], f"refused: {str(e).splitlines()[0]}")]
            return [found for pair in pairs for found in problems(f, form, [pair])]
    for dtypes, want, *_ in todo:
        for w in want:
            result = next(results)
            # of its own functions symc may know some that keep integers
            said = difference(result, w.astype(result.dtype) if f.own and result.dtype.kind in "biu" else w)
            out += [(dtypes, said)] if said else []
    return out
