"""Promises about values: `assume` is its operand, of which rules may believe what the attributes say.

* ``low``, ``high``: every element is at least, or at most, this number (None: nothing is said), so none is nan;
  ``nonzero``; ``finite``: neither infinite nor nan; ``integer``: a whole number.
* ``structure``: of the matrices in the last two axes, or of what lies along the last axis; see ``STRUCTURES``.

Nothing checks a promise unless a program is compiled with ``mode="debug"`` or ``mode="nan_guard"``: then
`check_assumption` stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import AssertError, InternalError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, View, register
from symc.ir.ops.effect import IDENTITY
from symc.ir.types import TensorType
from symc.ir.value import Value

# --- structure --------------------------------------------------------------------------------------------------------


def adjoint_array(a: np.ndarray) -> np.ndarray:
    """The conjugated transposed matrices."""
    return np.conj(np.swapaxes(a, -1, -2))


def _tolerance(a: np.ndarray) -> float:
    """Tolerance for what rounding may leave of a matrix that was computed."""
    size = float(np.abs(a).max()) if a.size else 0.0
    eps = float(np.finfo(a.dtype).eps) if a.dtype.kind in "fc" else 0.0
    return 64 * eps * size * max(a.shape[-1:] or (1,))


def _near(a: np.ndarray, b: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return (np.abs(a - b) <= _tolerance(a)) | (a == b)


def _eigenvalues(a: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh((a + adjoint_array(a)) / 2)


def _definite(a: np.ndarray, strictly: bool) -> np.ndarray:
    """True where matrices are hermitian and have no eigenvalue below 0 (or none that is not above)."""
    same = _near(a, adjoint_array(a)).all((-1, -2))
    if not a.size or not np.isfinite(a).all():
        return same & np.isfinite(a).all((-1, -2))
    least = _eigenvalues(a.astype(np.result_type(a, np.float32))).min(-1)
    return same & (least > 0 if strictly else least >= -_tolerance(a))


def _unique(a: np.ndarray) -> np.ndarray:
    """False where an element was there before along the last axis."""
    order = np.argsort(a, -1, kind="stable")
    line = np.take_along_axis(a, order, -1)
    again = np.zeros(a.shape, bool)
    again[..., 1:] = line[..., 1:] == line[..., :-1]
    out = np.empty(a.shape, bool)
    np.put_along_axis(out, order, ~again, -1)
    return out


def _sorted(a: np.ndarray) -> np.ndarray:
    out = np.ones(a.shape, bool)
    out[..., 1:] = a[..., 1:] >= a[..., :-1]
    return out


def _triangle(a: np.ndarray, lower: bool) -> np.ndarray:
    inside = np.tri(*a.shape[-2:], dtype=np.bool_) if lower else np.tri(*a.shape[:-3:-1], dtype=np.bool_).T
    return (a == 0) | inside


def _one_each(a: np.ndarray) -> np.ndarray:
    """True where matrices are permutations of the rows of a unit matrix."""
    ones = ((a == 0) | (a == 1)).all((-1, -2))
    return ones & (a.sum(-1) == 1).all(-1) & (a.sum(-2) == 1).all(-1)


def _eye(a: np.ndarray) -> np.ndarray:
    return np.eye(a.shape[-1], dtype=a.dtype)


#: By name: what holds, and the test: true for every element, row or matrix where it does.
STRUCTURES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "symmetric": ("equal to its transpose", lambda a: _near(a, np.swapaxes(a, -1, -2))),
    "hermitian": ("equal to its conjugate transpose", lambda a: _near(a, adjoint_array(a))),
    "psd": ("symmetric (hermitian) with no negative eigenvalue", lambda a: _definite(a, False)),
    "pd": ("symmetric (hermitian) with positive eigenvalues", lambda a: _definite(a, True)),
    "lower": ("zero above the diagonal", lambda a: _triangle(a, True)),
    "upper": ("zero below the diagonal", lambda a: _triangle(a, False)),
    "diagonal": ("zero off the diagonal", lambda a: _triangle(a, True) & _triangle(a, False)),
    "unit": ("one on the diagonal", lambda a: ~np.eye(*a.shape[-2:], dtype=np.bool_) | (a == 1)),
    "orthogonal": ("the inverse of its (conjugate) transpose", lambda a: _near(a @ adjoint_array(a), _eye(a))),
    "permutation": ("the unit matrix with rows in another order", _one_each),
    "identity": ("the unit matrix", lambda a: a == _eye(a)),
    "unique": ("without repetitions along the last axis", _unique),
    "sorted": ("in ascending order along the last axis", _sorted),
}
#: What signs and the like say of elements, as attributes.
ELEMENTS: dict[str, dict[str, Any]] = {
    "positive": dict(low=0, nonzero=True),
    "nonnegative": dict(low=0),
    "negative": dict(high=0, nonzero=True),
    "nonpositive": dict(high=0),
    "nonzero": dict(nonzero=True),
    "finite": dict(finite=True),
    "integer": dict(integer=True),
}
#: Those that are about rows; the others are about matrices, and all but the triangles about square ones.
OF_ROWS = frozenset({"unique", "sorted"})
OF_ANY_MATRIX = frozenset({"lower", "upper", "unit"})

# --- the records ------------------------------------------------------------------------------------------------------

#: An assumption that says nothing.
NOTHING: dict[str, Any] = dict(low=None, high=None, nonzero=False, finite=False, integer=False, structure=())


def _infer(t: TensorType, low: Any, high: Any, nonzero: bool, finite: bool, integer: bool,
           structure: tuple[str, ...]) -> TensorType:
    for name in structure:
        axes = 1 if name in OF_ROWS else 2
        if name not in STRUCTURES or len(t.shape) < axes:
            raise InternalError(f"assume: {name!r} of a value of type {t}")
    if (low is not None or high is not None) and t.dtype.kind not in "iuf":
        raise InternalError(f"assume: a range of a value of type {t}")
    return t


def _batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    return v.op(operands[0], **v.attrs)


def _loose_samples() -> Iterator[tuple[tuple, dict]]:
    """Promises that hold around the sample, too."""
    for dtype in ("f8", "f4", "i8"):
        yield (np.array([[1, 2], [4, 3]], dtype),), {**NOTHING, "low": -5, "high": 9, "finite": True, "nonzero": True}
    yield (np.array([3, 1, 2]),), {**NOTHING, "integer": True, "structure": ("unique",)}
    yield (np.array([1.0, 2.0, 4.0]),), {**NOTHING, "structure": ("sorted",)}
    yield (np.eye(2, dtype="c16"),), {**NOTHING, "finite": True}
    yield (np.ones((0, 2, 2)),), {**NOTHING, "structure": ("symmetric",)}


def _samples() -> Iterator[tuple[tuple, dict]]:
    for dtype in ("f8", "f4", "i8"):
        yield (np.array([[1, 2], [0, 3]], dtype),), {**NOTHING, "low": 0, "finite": True, "structure": ("upper",)}
    yield (np.array([0.5, 2.0]),), {**NOTHING, "low": 0.0, "high": 2.5, "nonzero": True}
    yield (np.array([3, 1, 2]),), {**NOTHING, "integer": True, "structure": ("unique",)}
    yield (np.eye(2, dtype="c16"),), {**NOTHING, "structure": ("hermitian", "orthogonal", "pd")}
    yield (np.array(0.5),), {**NOTHING, "low": 0.25}
    yield (np.ones((0, 2, 2)),), {**NOTHING, "structure": ("symmetric",)}


assume: Op = register(Op(
    "assume",
    _infer,
    lambda x, **promised: np.array(x),
    Custom(lambda tangents, v: tangents[0], lambda g, v: (g,)),
    View(),
    samples=_samples,
    doc="x, of which the attributes are promised: what rules that need a sign, a range or a structure rely on. The "
    "pass `forget_assumptions` replaces it by x.",
    facts=Facts(batch=_batch),
    defaults=NOTHING,
))  # fmt: skip


def _checked(x: np.ndarray, **promised: Any) -> np.ndarray:
    x = np.asarray(x)
    for what, ok in _claims(x, **promised):
        if not np.all(ok):
            raise AssertError(f"assume: x is not {what}", values=_rows(x, np.asarray(ok)),
                              help="what is assumed must be so: rules rely on it without looking")
    return np.array(x)


def _claims(x: np.ndarray, low: Any, high: Any, nonzero: bool, finite: bool, integer: bool,
            structure: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Every claim in words, and where it holds."""
    if low is not None:
        strict = nonzero and low == 0
        words = "positive" if strict else "nonnegative" if low == 0 else f"at least {low}"
        yield words, x > 0 if strict else x >= low
    if high is not None:
        strict = nonzero and high == 0
        words = "negative" if strict else "nonpositive" if high == 0 else f"at most {high}"
        yield words, x < 0 if strict else x <= high
    if nonzero:
        yield "nonzero", x != 0
    if finite:
        yield "finite", np.isfinite(x)
    if integer:
        yield "a whole number everywhere", np.trunc(x) == x
    for name in structure:
        words, test = STRUCTURES[name]
        yield f"{name}: {words}", test(x) if x.size else True


def _rows(x: np.ndarray, ok: np.ndarray) -> list[tuple[str, Any, Any]]:
    """The first element, row or matrix where a claim fails."""
    place = tuple(int(k) for k in np.argwhere(~ok)[0]) if ok.ndim else ()
    index = f"[{', '.join(map(str, place))}]" if place else ""
    count = int(np.count_nonzero(~ok))
    more = f", and at {count - 1} more place{'s' * (count > 2)}" if count > 1 else ""
    if ok.shape == x.shape:
        return [(f"x{index} = {x[place]}{more}", None, "")]
    return [(f"the matrix x{index} of shape {list(x.shape[-2:])}{more}", None, "")]


check_assumption: Op = register(Op(
    "check_assumption",
    _infer,
    _checked,
    IDENTITY,
    Extern("check_assumption"),
    frozenset({"effect", "barrier", "python"}),
    _loose_samples,
    "As `assume`, but it is checked: an error names the first element of which a promise does not hold.",
    Facts(batch=_batch),
    defaults=NOTHING,
))  # fmt: skip



def promised(x: Value, *names: str, **attrs: Any) -> Value:
    """``assume`` with some attributes, and with what names of ELEMENTS and STRUCTURES say."""
    out = {**NOTHING, **attrs, "structure": tuple(sorted(n for n in names if n in STRUCTURES))}
    for n in names:
        out.update(ELEMENTS.get(n, {}))
    return assume(x, **out)
