"""How far apart two right ways to compute a function may be.

A bound that is one number is wrong twice: it blames programs that cancel, and it hides errors where nothing does. Here
the program itself says what it can promise: the reference is run again with every intermediate number moved by a few
units in the last place (the same move wherever a value is used). What the results then spread over is what any other
order of operations may change. Results that jump (an index, a comparison near its border, an overflow) are not
promised at all. Besides, an answer may always be nearer to the truth than the reference: the program is run in wider
numbers too (float32 in float64, float64 in the platform's long double), and what agrees with that is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from symc.debugging.observe import by_reference, evaluate
from symc.errors import AssertError, ExecutionError
from symc.ir.function import Function
from symc.ir.location import NOWHERE, in_order
from symc.ir.op import lookup
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value

#: Ops that lose nothing: their results are not moved, so that equal numbers stay equal.
EXACT = frozenset({
    "param", "get", "constant", "broadcast", "reshape", "transpose", "slice", "pad", "concat", "gather", "where", "neg",
    "abs", "conj", "real", "imag", "complex", "maximum", "minimum", "fmax", "fmin", "max", "min", "floor", "ceil",
    "rint", "trunc", "sign", "copysign", "sort", "dynamic_slice", "dynamic_update_slice", "ensure_shape", "scan",
    "while", "cond", "checkpoint", "call", "print", "assert", "after", "stop_gradient", "grad_scale", "random_bits",
    "unit_uniform", "iota", "size", "assume", "again", "isnan", "breakpoint",
})  # fmt: skip
#: Ops that are exact on short numbers (few bits), which tests are full of: 0, 1, -2.5.
EXACT_ON_SHORT = frozenset({"add", "sub", "mul", "sum", "dot", "cumsum", "cast", "scatter", "mulz", "sqrt"})
#: The units in the last place by which numbers are moved, and how many of those a result may be off.
MOVED, ALLOWED = 4.0, 48.0
#: How far a result may be from wide numbers where the reference overflows, by bytes: nothing else is known there.
ASTRAY = {2: np.inf, 4: 1e-2, 8: 1e-4}
#: Units in the last place of a result that are never looked at.
FREE = 256.0
RUNS, MORE_RUNS = 6, 40
WIDER: dict[str, Any] = {"float16": np.float64, "float32": np.float64, "float64": np.longdouble,
                         "complex64": np.complex128, "complex128": np.clongdouble}


@dataclass(frozen=True)
class Difference:
    """Result ``result`` is wrong at ``index``: ``got`` instead of ``want``, where ``allowed`` would be rounding."""

    result: int
    index: tuple[int, ...]
    got: Any
    want: Any
    allowed: float
    what: str = ""

    def __str__(self) -> str:
        if self.what:
            return f"result {self.result} {self.what}"
        where = f" at {list(self.index)}" if self.index else ""
        bound = f" (rounding explains {self.allowed:.2g})" if np.isfinite(self.allowed) and self.allowed else ""
        return f"result {self.result}{where} is {self.got}, not {self.want}{bound}"


def _as_promised(f: Function, v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """The result of an op of ``f``; what is assumed is checked."""
    if v.op.name != "assume":
        return v.op.reference(*operands, **attrs)
    try:
        return lookup("check_assumption").reference(*operands, **attrs)
    except AssertError as e:
        lines = f.locations(v) or in_order(NOWHERE.union(*(own.get(v, NOWHERE) for own in f.inside.values())))
        e.attach([("x", v.type, lines[0] if lines else None)], lines)
        raise


#: What a reference says of operands for which an op has no meaning.
REFUSED = (ExecutionError, ValueError, IndexError, np.linalg.LinAlgError, ArithmeticError)


class Trusted:
    """The results of a function on arrays, and which others are as good. Raises AssertError where an assumption does
    not hold.

    ``expected``: what the results should be instead of the reference's. ``tolerance``: a relative error of each number
    that is allowed, instead of what the program itself promises.
    """

    def __init__(self, f: Function, arrays: Sequence[np.ndarray], *, expected: Sequence[Any] | None = None,
                 tolerance: float | None = None):
        self.function, self.arrays, self.tolerance = f, [np.asarray(a) for a in arrays], tolerance
        self.reference = [np.asarray(a) for a in evaluate(f, arrays, partial(_as_promised, f))]
        self.want = self.reference if expected is None else [np.asarray(a) for a in expected]
        self._given = expected is not None
        self._runs: list[list[np.ndarray]] = []
        self._wide: list[tuple[np.ndarray, np.ndarray]] | None = None

    def difference(self, got: Sequence[Any]) -> Difference | None:
        """The first wrong result, or None."""
        for k, want in enumerate(self.want):
            g = np.asarray(got[k])
            if g.dtype != want.dtype or g.shape != want.shape:
                have, wish = (f"{a.dtype.name}{list(a.shape)}" for a in (g, want))
                return Difference(k, (), g, want, 0.0, f"is {have}, not {wish}")
            found = self._compare(k, g, want)
            if found is not None:
                return found
        return None

    def promised(self, k: int) -> np.ndarray:
        """Where result ``k`` is a number that rounding does not decide."""
        return self._bounds(k, self.want[k], RUNS)[1]

    def _compare(self, k: int, got: np.ndarray, want: np.ndarray) -> Difference | None:
        wrong = ~_near(got, want, np.abs(_float(want)) * (self.tolerance or FREE * _eps(want.dtype)))
        if not wrong.any():
            return None
        if self.tolerance is not None:
            return _first(k, wrong, got, want, np.abs(_float(want)) * self.tolerance)
        allowed = np.zeros(want.shape)
        for runs in (RUNS, MORE_RUNS):
            allowed, promised = self._bounds(k, want, runs)
            wrong &= ~_near(got, want, allowed)
            if wrong.any() and not self._given:
                wide, sure = self._in_wide(k)
                wrong &= ~_near(got, wide, allowed + FREE * _eps(want.dtype) * np.abs(_float(wide)))
                astray = np.zeros(want.shape, bool)
                if want.dtype.kind == "f":
                    far = ASTRAY[want.dtype.itemsize] * np.abs(_float(wide))
                    astray = np.isinf(want) & sure & ~_near(got, wide, far)
                wrong &= promised | astray
            else:
                wrong &= promised
            if not wrong.any():
                return None
        return _first(k, wrong, got, want, allowed)

    def _bounds(self, k: int, want: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
        """What rounding may change of each number, and where there is a promise."""
        while len(self._runs) < runs:
            try:
                self._runs.append(moved(self.function, self.arrays, len(self._runs)))
            except REFUSED:  # on the edge of what an op accepts: nothing is promised
                self._runs.append([np.full_like(a, np.nan if a.dtype.kind in "fc" else 99) for a in self.reference])
        have, all_runs = self.reference[k], [np.asarray(r[k]) for r in self._runs]
        if want.dtype.kind not in "fc":
            same = np.ones(want.shape, bool)
            for r in all_runs:
                same &= r == have
            return np.zeros(want.shape), same
        promised, spread = np.ones(want.shape, bool), np.zeros(want.shape)
        with np.errstate(all="ignore"):
            for r in all_runs:
                finite = np.isfinite(have)
                promised &= np.where(finite, np.isfinite(r), _same_kind(r, have))
                spread = np.fmax(spread, np.where(finite, np.abs(_float(r) - _float(have)), 0.0))
            allowed = ALLOWED * spread + FREE * _eps(want.dtype) * np.abs(_float(have)) + _floor(want.dtype)
        return np.where(np.isfinite(allowed), allowed, 0.0), promised

    def _in_wide(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Result ``k`` in wider numbers, and where it is finite and nothing overflowed there either."""
        if self._wide is None:
            runs = [wide(self.function, self.arrays), wide(self.function, self.arrays, unsaturated=True)]
            self._wide = [(np.asarray(a), np.asarray(b)) for a, b in zip(*runs, strict=True)]
        a, b = self._wide[k]
        if a.shape != self.want[k].shape:
            return self.reference[k], np.zeros(self.want[k].shape, bool)
        if a.dtype.kind != "f":
            return a, np.zeros(a.shape, bool)
        with np.errstate(all="ignore"):
            return a, np.isfinite(a) & (np.abs(a - b) <= 1e-6 * np.abs(a))


def _first(k: int, wrong: np.ndarray, got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> Difference:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(k, index, got[index], want[index], float(allowed[index]) if allowed.shape else float(allowed))


def _float(a: np.ndarray) -> np.ndarray:
    """Numbers as they are subtracted: wide, so that unsigned integers and float16 do not overflow."""
    if a.dtype.kind == "c":
        return a.astype(np.clongdouble)
    return a.astype(np.longdouble)


def _eps(d: np.dtype) -> float:
    return float(np.finfo(d).eps) if d.kind in "fc" else 0.0


def _floor(d: np.dtype) -> float:
    """What gradual underflow may lose."""
    return 1024 * float(np.finfo(d).smallest_normal) if d.itemsize > 2 and d.kind in "fc" else 1e-6


def _same_kind(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Both nan, or the same infinity."""
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        return ~np.isfinite(a) & ~np.isfinite(b)  # which part of a complex number is infinite, NumPy does not promise
    return (np.isnan(a) & np.isnan(b)) | (a == b)


def _near(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Where numbers are equal, or finite and as near as allowed."""
    if want.dtype.kind not in "fc":
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        if want.dtype != got.dtype:  # wide: what overflows in the dtype of the result is infinite there
            narrow = want.astype(got.dtype)
            close = np.isfinite(want) & (np.abs(_float(got) - want) <= allowed)
            return close | (~np.isfinite(narrow) & _same_kind(got, narrow))
        close = np.isfinite(want) & np.isfinite(got) & (np.abs(_float(got) - _float(want)) <= allowed)
        return np.where(np.isfinite(want), close | (got == want), _same_kind(got, want))


# --- other evaluations ------------------------------------------------------------------------------------------------


def _short(a: np.ndarray) -> np.ndarray:
    """Numbers of few bits, and those that are not finite."""
    with np.errstate(all="ignore"):
        part = np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)
        scaled = part.astype(np.float64) * 16
        return ~np.isfinite(scaled) | ((scaled == np.rint(scaled)) & (scaled < 2**14))


#: What run k does besides moving numbers, by k % 3: nothing; overflow and underflow become large and small numbers;
#: a nan that comes of 0 * inf, inf - inf, 0 / 0 or inf / inf becomes a number, and -0.0 becomes 0.0.
KIND_SATURATED, KIND_NAN = 1, 2
#: Ops whose infinities are no overflow, but poles; and those whose zeros may be underflow.
POLES = frozenset({"log", "log1p", "log2", "log10", "log1mexp", "atanh", "lgamma", "digamma", "erfinv", "trigamma",
                   "polygamma", "normal_inverse"})  # fmt: skip
UNDERFLOW = frozenset({"exp", "exp2", "sigmoid", "softplus", "softmax", "mul", "div", "pow", "erfc", "erfcx", "prod",
                       "cumprod", "square", "mulz"})  # fmt: skip


def moved(f: Function, arrays: Sequence[np.ndarray], seed: int) -> list[Any]:
    """The results with every number moved by a few units in the last place, each value in its own way.

    What else a run does, see ``KIND_SATURATED``: what depends on that is not promised. A nan of an indeterminate form
    is not promised either: ``x * log(x)`` may be 0 at 0. A nan of a log, a root, or an input is.
    """
    rng = np.random.default_rng([20_011, seed])

    def move(a: Any, operands: Sequence[np.ndarray], name: str) -> Any:
        a = np.asarray(a)
        if a.dtype.kind not in "fc" or not a.size:
            return a
        size = MOVED * float(np.finfo(a.dtype).eps)
        with np.errstate(all="ignore"):
            step = (rng.random(a.shape) * 2 - 1) * size
            out = (a + a * step.astype(a.real.dtype)).astype(a.dtype)
        keep = _short(a)
        if name and name not in EXACT_ON_SHORT or not all(_short(o).all() for o in operands if o.dtype.kind in "fc"):
            keep = ~np.isfinite(a) | (a == 0)
        out = np.where(keep, a, out).astype(a.dtype)
        if name and a.dtype.kind == "f" and seed % 3 == KIND_SATURATED:
            return _unsaturated(out, operands, name, rng)
        if seed % 3 == KIND_NAN:
            return (_determined(out, operands, rng) if name in INDETERMINATE else out) + a.dtype.type(0)
        return out

    def compute(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
        if v.op.name in NORMWISE:
            operands = [_moved_in_norm(o, rng) for o in operands]
        out = by_reference(v, operands, attrs)
        if v.op.name in EXACT:
            return out
        if v.op.name in NORMWISE:
            several = isinstance(v.type, TupleType)
            out = tuple(_moved_in_norm(a, rng) for a in out) if several else _moved_in_norm(out, rng)
        known = [np.asarray(o) for o in operands if not isinstance(o, tuple | list)]
        if isinstance(v.type, TupleType):
            parts = [move(a, known, v.op.name) for a in out]
            return tuple(_turned(v.op.name, parts, rng) if v.op.name in VECTORS and seed % 3 else parts)
        if v.op.name == "eigvals" and seed % 3:
            out = rng.permutation(out, axis=-1)
        return move(out, known, v.op.name)

    start = [move(a, (), "") for a in map(np.asarray, arrays)]
    return evaluate(f, start, compute)


#: Ops with indeterminate forms: a nan of theirs that no operand has comes of two infinities, zeros, or one of each.
INDETERMINATE = frozenset({"add", "sub", "mul", "mulz", "div", "dot", "gemm", "sum", "prod", "cumsum", "cumprod",
                           "pow", "mod", "fmod", "logaddexp", "logsumexp", "softmax", "log_softmax", "norm", "solve",
                           "linrec"})  # fmt: skip


#: Ops that are right up to rounding of the largest number of a matrix, not of each.
NORMWISE = frozenset({"inv", "solve", "det", "slogdet", "lu_factor", "lu_solve", "cholesky", "cho_solve", "qr", "svd",
                      "solve_triangular", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "expm", "pinv"})  # fmt: skip


def _moved_in_norm(a: Any, rng: np.random.Generator) -> Any:
    """A matrix whose elements are moved by a few units in the last place of the largest."""
    a = np.asarray(a)
    if a.dtype.kind not in "fc" or a.ndim < 2 or not a.size:
        return a
    with np.errstate(all="ignore"):
        size = MOVED * float(np.finfo(a.dtype).eps) * np.abs(a).max(axis=(-2, -1), keepdims=True)
        return (a + (rng.random(a.shape) * 2 - 1) * size).astype(a.dtype)


#: Ops whose vectors have no sign of their own: which results are columns, and which are rows.
VECTORS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "eig": ((1,), ()), "eigh": ((1,), ()), "svd": ((0,), (2,)), "qr": ((0,), (1,))}  # fmt: skip


def _turned(name: str, parts: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Vectors in other directions, and the eigenvalues of ``eig`` in another order: nobody may rely on those."""
    columns, rows = VECTORS[name]
    n = max(max(parts[k].shape[-2:]) for k in (*columns, *rows))
    signs = rng.choice([-1.0, 1.0], n)
    out = list(parts)
    for k in columns:
        out[k] = (out[k] * signs[: out[k].shape[-1]]).astype(out[k].dtype)
    for k in rows:
        out[k] = (out[k] * signs[: out[k].shape[-2], None]).astype(out[k].dtype)
    if name == "eig" and n:
        order = rng.permutation(parts[0].shape[-1])
        out = [out[0][..., order], out[1][..., order]]
    return out


def _determined(a: np.ndarray, operands: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """A nan that no operand has becomes a number."""
    given = np.zeros(a.shape, bool)
    for o in operands:
        if o.dtype.kind in "fc":
            given |= np.isnan(o) if o.shape == a.shape else np.isnan(o).any()
    return np.where(np.isnan(a) & ~given, rng.uniform(0.5, 1.5, a.shape), a).astype(a.dtype)


def _unsaturated(a: np.ndarray, operands: Sequence[np.ndarray], name: str, rng: np.random.Generator) -> np.ndarray:
    """Overflow becomes a large number, underflow a small one; each a random one."""
    inexact = [o for o in operands if o.dtype.kind in "fc"]
    alike = all(o.shape == a.shape for o in inexact)
    finite, nonzero = np.ones(a.shape, bool), np.ones(a.shape, bool)
    for o in inexact:
        finite &= np.isfinite(o) if alike else np.isfinite(o).all()
        nonzero &= (o != 0) if alike else bool((o != 0).all())
    if name in ("div", "pow") and alike and inexact:
        finite &= inexact[-1 if name == "div" else 0] != 0
    if name not in POLES:
        large = float(np.finfo(a.dtype).max) * rng.uniform(0.01, 0.5, a.shape)
        a = np.where(np.isinf(a) & finite, np.copysign(large, a), a).astype(a.dtype)
    if name in UNDERFLOW:
        always = name in ("exp", "exp2", "sigmoid", "softplus", "softmax", "erfc", "erfcx")
        small = float(np.finfo(a.dtype).tiny) * rng.uniform(0.01, 0.9, a.shape)
        a = np.where((a == 0) & finite & (nonzero | always), np.copysign(small, a), a).astype(a.dtype)
    return a


def wide(f: Function, arrays: Sequence[np.ndarray], unsaturated: bool = False) -> list[Any]:
    """The results in wider numbers, as far as the references of the ops can compute in them.

    ``unsaturated``: what overflows or underflows even so is a random number instead.
    """
    rng = np.random.default_rng(20_012)

    def widened(a: Any, t: TensorType) -> Any:
        want = WIDER.get(t.dtype.name)
        a = np.asarray(a)
        return a if want is None or a.dtype == want or a.dtype.kind not in "fc" else a.astype(want)

    def compute(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
        out = _wide_op(v, operands, attrs)
        if isinstance(v.type, TupleType):
            return tuple(widened(a, t) for a, t in zip(out, v.type.items, strict=True))
        out = widened(out, v.type)
        if unsaturated and out.dtype.kind == "f" and v.op.name not in EXACT:
            known = [np.asarray(o) for o in operands if not isinstance(o, tuple | list)]
            return _unsaturated(out, known, v.op.name, rng)
        return out

    start = [widened(a, i.type) for a, i in zip(arrays, f.inputs, strict=True)]
    return evaluate(f, start, compute)


#: References that must see numbers of the declared dtype: bits, loops (whose stacks have it), and casts.
NARROW = frozenset({"random_bits", "nextafter", "position", "scan", "while", "call", "root", "loop", "cond",
                    "checkpoint"})  # fmt: skip


def _wide_op(v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
    if v.op.name == "cast":
        target = np.dtype(WIDER.get(attrs["dtype"].name, attrs["dtype"]))
        return np.asarray(operands[0]).astype(target)
    if v.op.name not in NARROW:
        try:
            out = by_reference(v, operands, attrs)
            expected = v.type.items if isinstance(v.type, TupleType) else (v.type,)
            arrays = out if isinstance(v.type, TupleType) else (out,)
            if all(np.asarray(a).dtype.kind == t.dtype.kind for a, t in zip(arrays, expected, strict=True)):
                return out
        except Exception:  # a reference may know the declared dtypes only
            pass
    narrow = [
        tuple(np.asarray(a).astype(t.dtype) for a, t in zip(x, o.type.items, strict=True))
        if isinstance(o.type, TupleType) else np.asarray(x).astype(o.type.dtype)
        for x, o in zip(operands, v.operands, strict=True)
    ]
    return by_reference(v, narrow, attrs)


def allowed_between(trusted: Trusted, j: int, k: int) -> float:
    """How far apart two results may be (numbers) that should be one number, each computed in its own way."""
    total = 0.0
    for r in (j, k):
        allowed, _ = trusted._bounds(r, trusted.reference[r], MORE_RUNS)
        total += float(allowed)
    return total
