"""Reductions: over the axes in attribute `axes`, which the result does not have. `axes = ()` reduces nothing.

The reductions of no elements are 0 for sum and norm, 1 for prod, false for any, true for all, -inf for logsumexp; max,
min, argmax and argmin have none. A nan anywhere makes the result nan; argmax and argmin give the place of the first.
Where a reduction has no derivative one is chosen: max and min split it evenly between equal elements, the norm of
zeros has gradient 0, logsumexp of nothing but -inf has gradient 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from symc.errors import InternalError, ShapeError
from symc.ir.dim import product
from symc.ir.dtypes import ARITHMETIC, computed, is_narrow
from symc.ir.facts import Facts
from symc.ir.op import Custom, Decompose, Derivative, Fold, Linear, Lowering, Op, lookup, register
from symc.ir.ops.arithmetic import abs_, complex_, conjugate, maximum, minimum, mulz, real
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq, isnan, lt
from symc.ir.ops.cumulative import cumprod, shifted
from symc.ir.ops.elementwise import check_kind, like
from symc.ir.ops.leaf import iota
from symc.ir.ops.logic import or_, where
from symc.ir.ops.math import exp, log, sqrt
from symc.ir.ops.shape import broadcast, inverse_permutation, reshape, transpose
from symc.ir.types import DTYPES, TensorType, real_dtype
from symc.ir.value import Value

Axes = tuple[int, ...]


def check_axes(name: str, t: TensorType, axes: Axes) -> None:
    """Axes must be sorted, distinct and in range."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < t.ndim for a in axes):
        raise ShapeError(f"{name}: axes {axes} are not distinct axes of {t}")


def without_axes(t: TensorType, axes: Axes) -> TensorType:
    return t.with_shape([s for a, s in enumerate(t.shape) if a not in axes])


def other_axes(v: Value, axes: Axes) -> Axes:
    return tuple(a for a in range(v.ndim) if a not in axes)


def spread(x: Value, over: Value, axes: Axes) -> Value:
    """Broadcast a reduction of `over` back over the reduced axes."""
    return broadcast(x, axes=other_axes(over, axes), shape=over.shape)


def identity(kind: str, dtype: np.dtype) -> np.generic:
    """Identity that a fold of ``kind`` starts from: e with kind(x, e) == x."""
    found = lookup(kind).facts.identity
    if found is None:
        raise InternalError(f"{kind} has no identity")
    return found(dtype)


#: The reduction that a fold of each kind is, by the kind; by its name, the op that puts together what those of the
#: parts are.
FOLDS: dict[str, Op] = {}
COMBINING: dict[str, Op] = {}


def gives_place(kind: str) -> bool:
    """True if a fold of ``kind`` gives where an element is, not what."""
    return "positions" in FOLDS[kind].traits


def one_by_one(x: np.ndarray, axes: Axes, kind: str) -> np.ndarray:
    """The elements over ``axes`` combined one after another, by the reference of the op itself."""
    moved = np.moveaxis(x.astype(computed(x.dtype)), axes, range(len(axes)))
    kept = moved.shape[len(axes) :]
    rows = moved.reshape((product(moved.shape[: len(axes)]), *kept))
    return functools.reduce(lookup(kind).reference, rows, np.full(kept, identity(kind, rows.dtype)))


def reduction(name: str, kinds: str, reference: Callable | None, lowering: Lowering,
              derivative: Derivative | None = None, *, result: Callable[[np.dtype], np.dtype] = lambda d: d,
              nonempty: bool = False, single: bool = False, traits: tuple[str, ...] = (), doc: str = "",
              facts: Facts | None = None) -> Op:
    """Register a reduction. ``reference``: None for ``one_by_one``, of a fold. ``nonempty``: has no value for no
    elements. ``single``: over exactly one axis."""
    if reference is None:
        assert isinstance(lowering, Fold)
        reference = functools.partial(one_by_one, kind=lowering.kind)

    def infer(t: TensorType, axes: Axes) -> TensorType:
        check_axes(name, t, axes)
        check_kind(name, t, kinds)
        if single and len(axes) != 1:
            raise ShapeError(f"{name} is over one axis, not {axes}")
        _refuse_empty(t, t.shape, axes)
        t = without_axes(t, axes)
        return t.with_dtype(result(t.dtype))

    def _refuse_empty(t, shape, axes):
        if nonempty and any(isinstance(shape[a], int) and shape[a] == 0 for a in axes):
            raise ShapeError(f"{name} of no elements has no value: {t} over axes {axes}")

    def run(x, axes):
        _refuse_empty(f"{x.dtype}{list(x.shape)}", x.shape, axes)
        with np.errstate(all="ignore"):
            return np.array(reference(x, axes[0] if single else tuple(axes)), result(x.dtype))

    facts = facts or Facts()
    facts.kinds, facts.nonempty, facts.requires = kinds, nonempty, _some if nonempty else None
    op = register(Op(name, infer, run, derivative, lowering, frozenset({"reduction", *traits}),
                     lambda: samples(kinds, nonempty, single), doc, facts))
    if isinstance(lowering, Fold) and lowering.kind not in FOLDS:
        FOLDS[lowering.kind] = op
        if not gives_place(lowering.kind):
            COMBINING[name] = lookup(lowering.kind)
    return op


def _some(v: Value):
    """Requirement that there is something to reduce."""
    return [(product(v.operands[0].shape[a] for a in v.attrs["axes"]) - 1, 1)]


def samples(kinds: str, nonempty: bool = False, single: bool = False) -> Iterator[tuple[tuple, dict]]:
    """Small arrays of every dtype over one axis, all, and none: ties, zeros, nan, infinities, size-1 and empty axes."""
    for dtype in ARITHMETIC:
        if dtype.kind not in kinds:
            continue
        x = (np.arange(12).reshape(3, 4) * 7 % 5 - (0 if dtype.kind in "bu" else 2)).astype(dtype)
        cases = [x, x[:, :1]]
        if dtype.kind == "f":
            special = np.array([[1, np.inf, 2], [np.nan, -np.inf, -0.0], [-np.inf, -np.inf, 0.0]], dtype)
            cases += [special, special.T.copy(), np.full((2, 2), -np.inf, dtype)]
            cases += [np.full((2, 3), np.finfo(dtype).max, dtype)]
        if dtype.kind == "c":
            cases += [x + dtype.type(0.5j)]
        if not nonempty:
            cases += [x[:0], x[:, :0]]
        for case in cases:
            for axes in ((0,), (1,), (0, 1), ()):
                if len(axes) == 1 or not single:
                    yield (case,), dict(axes=axes)
        if not single:
            yield (x[1, 1],), dict(axes=())


# --- sum and product --------------------------------------------------------------------------------------------------

sum_ = reduction("sum", "iufc", lambda x, axis: np.sum(x, axis=axis, dtype=x.dtype), Fold("add"),
                 Linear(lambda g, v: (spread(g, v.operands[0], v.attrs["axes"]),)), traits=("complex_kernel",),
                 doc="The sum over `axes`, in the operand's dtype.", facts=Facts(rounding="short", indeterminate=True))


def _products_of_others(x: Value, axes: Axes) -> Value:
    """For each element the product of all others along ``axes``: products from both ends, so zeros do no harm."""
    if not axes:
        return like(x, 1)
    kept = other_axes(x, axes)
    moved = transpose(x, perm=kept + axes)
    last = len(kept)
    rows = reshape(moved, shape=(*moved.shape[:last], product(moved.shape[last:])))
    before = shifted(cumprod(rows, axis=last, reverse=False), last, 1, reverse=False)
    after = shifted(cumprod(rows, axis=last, reverse=True), last, 1, reverse=True)
    return transpose(reshape(before * after, shape=moved.shape), perm=inverse_permutation(kept + axes))


def _prod_jvp(tangents, v):
    return sum_(tangents[0] * _products_of_others(v.operands[0], v.attrs["axes"]), axes=v.attrs["axes"])


def _prod_vjp(g, v):
    x, axes = v.operands[0], v.attrs["axes"]
    return (spread(g, x, axes) * conjugate(_products_of_others(x, axes)),)


prod = reduction("prod", "iufc", lambda x, axis: np.prod(x, axis=axis, dtype=x.dtype), Fold("mul"),
                 Custom(_prod_jvp, _prod_vjp), traits=("complex_kernel",),
                 doc="The product over `axes`, in the operand's dtype. Its derivative divides by nothing.",
                 facts=Facts(underflow="nonzero", indeterminate=True))

# --- extremes ---------------------------------------------------------------------------------------------------------


def _share(v: Value) -> Value:
    """The part of each element in the result: 1 / (number of equals) where it is the extreme, else 0."""
    (x,), axes = v.operands, v.attrs["axes"]
    hit = cast(eq(x, spread(v, x, axes)), dtype=x.dtype)
    count = sum_(hit, axes=axes)
    return hit / spread(maximum(count, like(count, 1)), x, axes)


_EXTREME = Custom(lambda t, v: sum_(mulz(_share(v), t[0]), axes=v.attrs["axes"]),
                  lambda g, v: (spread(g, v.operands[0], v.attrs["axes"]) * _share(v),))
#: Up to how many elements the fold of an argmax is faster than two without branches.
FEW = 16


def _by_value(best: Callable[..., Value]) -> Callable[[Value], Value | None]:
    """The first place where an element is the extreme, or a nan: two folds, neither of which has a branch."""
    def found(v: Value) -> Value | None:
        (x,), axes = v.operands, v.attrs["axes"]
        (n,) = (x.shape[a] for a in axes)
        if isinstance(n, int) and n <= FEW:
            return None
        narrow = isinstance(n, int) and n <= np.iinfo(np.int32).max
        place = iota(shape=x.shape, axis=axes[0], dtype=DTYPES["i32" if narrow else "i64"])
        hit = eq(x, spread(best(x, axes=axes), x, axes))
        hit = or_(hit, isnan(x)) if x.dtype.kind == "f" else hit
        first = min_(where(hit, place, like(place, np.iinfo(place.dtype).max)), axes=axes)
        return cast(first, dtype=v.dtype)

    return found



max_ = reduction("max", "biuf", np.max, Fold("maximum"), _EXTREME, nonempty=True, traits=("selects",),
                 doc="The greatest element over `axes`.", facts=Facts(rounding="zeros", picks=1))
min_ = reduction("min", "biuf", np.min, Fold("minimum"), _EXTREME, nonempty=True, traits=("selects",),
                 doc="The least element over `axes`.", facts=Facts(rounding="zeros", picks=1))
argmax = reduction("argmax", "biuf", np.argmax, Fold("argmax"), result=lambda d: DTYPES["i64"], nonempty=True,
                   traits=("positions",), single=True,
                   doc="The index of the greatest element along the one axis in `axes`, as i64: the first of equals.")
argmin = reduction("argmin", "biuf", np.argmin, Fold("argmin"), result=lambda d: DTYPES["i64"], nonempty=True,
                   traits=("positions",), single=True,
                   doc="The index of the least element along the one axis in `axes`, as i64: the first of equals.")
argmax.facts.lower_argmax, argmin.facts.lower_argmax = _by_value(max_), _by_value(min_)
sup = reduction("sup", "f", lambda x, axis: np.max(x, axis=axis, initial=-np.inf), Fold("maximum"), _EXTREME,
                traits=("selects",), doc="The greatest element over `axes`, and -inf if there is none.",
                facts=Facts(rounding="zeros"))
any_ = reduction("any", "b", np.any, Fold("or"), doc="True if some element over `axes` is true.")
all_ = reduction("all", "b", np.all, Fold("and"), doc="True if every element over `axes` is true.")

# --- stable forms -----------------------------------------------------------------------------------------------------


def _logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, np.zeros_like(top))
    return np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis)


def shifted_sum(x: Value, axes: Axes) -> tuple[Value, Value, Value]:
    """The greatest element (0 where all are -inf), x minus that, and the sum of the exponentials of the difference.

    Logsumexp, softmax and its logarithm are made of these: of one x they are computed once. The difference is never
    positive, and that of infinities is nan, where the sum is inf.
    """
    top = sup(x, axes=axes)
    top = where(eq(top, like(top, -np.inf)), like(top, 0), top)
    shifted = x - spread(top, x, axes)
    total = sum_(exp(shifted), axes=axes)
    return top, shifted, where(eq(top, like(top, np.inf)), like(top, np.inf), total)


def _logsumexp_parts(v: Value) -> Value:
    top, _, total = shifted_sum(v.operands[0], v.attrs["axes"])
    return log(total) + top


def _where_any(v: Value, change: Value) -> Value:
    """The change of a logsumexp ``v``: none where every element is -inf."""
    return where(eq(v, like(v, -np.inf)), like(v, 0), change)


def _softmax(v: Value) -> Value:
    return lookup("softmax")(v.operands[0], axes=v.attrs["axes"])


def _logsumexp_vjp(g: Value, v: Value) -> tuple[Value]:
    return (mulz(spread(_where_any(v, g), v.operands[0], v.attrs["axes"]), _softmax(v)),)


logsumexp = reduction("logsumexp", "f", _logsumexp, Decompose(_logsumexp_parts), Custom(
    lambda t, v: _where_any(v, sum_(mulz(t[0], _softmax(v)), axes=v.attrs["axes"])), _logsumexp_vjp),
    doc="log(sum(exp(x))) over `axes`, without overflow. Its gradient is the softmax.",
    facts=Facts(indeterminate=True, absolute=True))


sum_.facts.in_logs, prod.facts.in_logs = logsumexp, sum_


def _norm(x, axis):
    size = np.abs(x)
    top = np.max(size, axis=axis, keepdims=True, initial=0)
    _, top = np.frexp(np.where(np.isfinite(top), top, np.ones_like(top)))
    size = np.ldexp(size, -top)
    return np.ldexp(np.sqrt(np.sum(size * size, axis=axis)), np.squeeze(top, axis))


def _norm_parts(v: Value) -> Value:
    """One pass over x. In wider numbers, where those are as fast, no square overflows or vanishes; else there are
    three sums: of the squares, and of those of x scaled down and up, which count where the first overflows or vanishes.
    What is of no weight there is cut off, so that no square is denormal."""
    (x,), axes = v.operands, v.attrs["axes"]
    size = abs_(x)
    if is_narrow(v.dtype) or v.dtype == DTYPES["f32"] and x.ndim - 1 in axes:  # columns have few elements at a time
        wider = DTYPES["f64"] if v.dtype == DTYPES["f32"] else computed(v.dtype)
        wide = cast(size if x.dtype.kind == "c" else x, dtype=wider)
        return cast(sqrt(sum_(wide * wide, axes=axes)), dtype=v.dtype)
    top, digits = np.finfo(v.dtype).maxexp, np.finfo(v.dtype).nmant + 1
    least, down, up = digits - top + 4, -(top + 42) // 2, top // 2 + digits
    large = maximum(size, like(size, 2.0 ** ((top - digits - 44) // 2))) * 2.0**down
    small = minimum(size, like(size, 2.0 ** (least // 2 + 2))) * 2.0**up
    total, of_large, of_small = (sum_(y * y, axes=axes) for y in (size, large, small))
    over, under = eq(total, like(total, np.inf)), lt(total, like(total, 2.0**least))
    scale = where(over, like(total, 2.0**-down), where(under, like(total, 2.0**-up), like(total, 1)))
    return sqrt(where(over, of_large, where(under, of_small, total))) * scale


def _direction(v: Value) -> Value:
    """x / norm(x), and 0 for zeros."""
    (x,), axes = v.operands, v.attrs["axes"]
    return x / _as(x, spread(where(eq(v, 0), like(v, 1), v), x, axes))


def _as(x: Value, real_value: Value) -> Value:
    """A real value in x's dtype."""
    return complex_(real_value, like(real_value, 0)) if x.dtype.kind == "c" else real_value


def _norm_jvp(tangents, v):
    change = conjugate(_direction(v)) * tangents[0]
    return sum_(real(change) if change.dtype.kind == "c" else change, axes=v.attrs["axes"])


def _norm_vjp(g, v):
    (x,) = v.operands
    return (_as(x, spread(g, x, v.attrs["axes"])) * _direction(v),)


norm = reduction("norm", "fc", _norm, Decompose(_norm_parts), Custom(_norm_jvp, _norm_vjp), result=real_dtype,
                 doc="The square root of the sum of |x|**2 over `axes`, without overflow on the way.",
                 facts=Facts(indeterminate=True))
