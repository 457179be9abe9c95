"""Softmax, its logarithm, and cross-entropy, however they are spelled."""

from __future__ import annotations

from symc.ir.ops.assume import promised
from symc.ir.ops.index import gather
from symc.ir.ops.kernel import checked_index
from symc.ir.ops.leaf import iota
from symc.ir.ops.math import exp, log
from symc.ir.ops.reduce import logsumexp, max_, spread, sum_
from symc.ir.ops.shape import broadcast, reshape, slice_, slice_along
from symc.ir.ops.softmax import log_softmax, log_softmax_at, softmax
from symc.ir.ranges import wrapped_index
from symc.ir.traverse import rebuild
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import index, leaves, matrix
from symc.opt.engine.terms import flatten, join, opposites
from symc.opt.facts.forms import Steps, steps_of
from symc.opt.rules.logsumexp import may_go, rows, without_shift

I64 = DTYPES["i64"]


# --- softmax ----------------------------------------------------------------------------------------------------------


def _spread_along(b: Value, x: Value, axes: tuple[int, ...]) -> bool:
    """True if ``b`` repeats a reduction of ``x`` over axes along these."""
    return b.op is broadcast and b.attrs["axes"] == tuple(a for a in range(x.ndim) if a not in axes)


@rewrite(
    "div",
    "mul",
    kinds="f",
    weight=4,
    needs=["exp", "broadcast"],
    equation="exp(x) / sum(exp(x), axes) -> softmax(x, axes)",
    examples=lambda: [
        (lambda e: e / spread(sum_(e, axes=(1,)), e, (1,)))(exp(matrix())),
        (lambda e: e / spread(sum_(e, axes=(0, 1)), e, (0, 1)))(exp(matrix())),
        (lambda e, y: y * e / spread(sum_(e, axes=(0,)), e, (0,)))(exp(matrix()), matrix()),
    ],
    misses=lambda: [
        (lambda e, y: y / spread(sum_(e, axes=(1,)), e, (1,)))(exp(matrix()), exp(matrix())),
        (lambda e: e * spread(sum_(e, axes=(1,)), e, (1,)))(exp(matrix())),
    ],
)
def softmax_by_hand(v: Value) -> Value | None:
    """inf / inf for large x, 0 / 0 for very negative ones."""
    for e, b, rest in opposites(flatten(v, "product")):
        total = b.operands[0] if e.op is exp and b.op is broadcast else e
        if total.op is sum_ and total.operands[0] is e and _spread_along(b, e, total.attrs["axes"]):
            return join([(1, softmax(e.operands[0], axes=total.attrs["axes"])), *rest], "product")
    return None


def _part(e: Value, size: int = 1) -> Value:
    """The first columns of ``e``."""
    return slice_along(e, 1, 0, size)


@rewrite(
    "div",
    kinds="f",
    weight=4,
    needs=["slice"],
    equation="exp(x)[k] / sum(exp(x), axes) -> softmax(x, axes)[k]",
    examples=lambda: [
        (lambda e: _part(e) / reshape(sum_(e, axes=(1,)), shape=(3, 1)))(exp(matrix())),
        (lambda e: _part(e, size=2) / broadcast(sum_(e, axes=(1,)), axes=(0,), shape=(3, 2)))(exp(matrix())),
    ],
    misses=lambda: [
        (lambda e, y: _part(e) / reshape(sum_(y, axes=(1,)), shape=(3, 1)))(exp(matrix()), exp(matrix())),
    ],
)
def softmax_read_in_part(v: Value) -> Value | None:
    """The part that is read of a softmax is divided alone; it is inf / inf all the same."""
    part, below = v.operands
    total = below.operands[0] if below.op in (reshape, broadcast) else below
    e = part.operands[0] if part.op is slice_ else part
    if part is e or e.op is not exp or total.op is not sum_ or total.operands[0] is not e:
        return None
    axes = total.attrs["axes"]
    kept = tuple(a for a in range(e.ndim) if a not in axes)
    if any(part.shape[a] != e.shape[a] or part.attrs["start"][a] != 0 or part.attrs["step"][a] != 1 for a in kept):
        return None
    if below.op is broadcast and below.attrs["axes"] != kept:
        return None
    if below.op is reshape and any(part.shape[a] != 1 for a in axes):
        return None
    return rebuild(part, [softmax(e.operands[0], axes=axes)])


@rewrite(
    "sub",
    "add",
    kinds="f",
    weight=3,
    needs=["broadcast"],
    met=["logsumexp"],
    equation="x - logsumexp(x, axes) -> log_softmax(x, axes)",
    examples=lambda: [
        (lambda x: x - spread(logsumexp(x, axes=(1,)), x, (1,)))(matrix()),
        (lambda x, y: x + y - spread(logsumexp(x, axes=(0, 1)), x, (0, 1)))(matrix(), matrix()),
    ],
    misses=lambda: [
        (lambda x, y: x - spread(logsumexp(y, axes=(1,)), x, (1,)))(matrix(), matrix()),
        (lambda x: x + spread(logsumexp(x, axes=(1,)), x, (1,)))(matrix()),
    ],
)
def log_softmax_by_hand(v: Value) -> Value | None:
    """Both terms are rounded to the digits of x, and cancel: subtracting the greatest element first is exact."""
    for x, b, rest in opposites(flatten(v, "sum")):
        total = b.operands[0] if b.op is broadcast else b
        if total.op is logsumexp and total.operands[0] is x and _spread_along(b, x, total.attrs["axes"]):
            return join([(1, log_softmax(x, axes=total.attrs["axes"])), *rest], "sum")
    return None


def _finite() -> Value:
    return promised(leaves(1, {}, (3,))[0], "finite")


@rewrite(
    "softmax",
    "log_softmax",
    kinds="f",
    needs=["sub"],
    equation="softmax(x - m, axes) -> softmax(x, axes) for m = max(x, axes), or any m that does not vary along the "
    "axes and is not nan; so for log_softmax",
    examples=lambda: [
        *[op(matrix() - rows(_finite()), axes=(1,)) for op in (softmax, log_softmax)],
        *[op(x - rows(max_(x, axes=(1,))), axes=(1,)) for op in (softmax, log_softmax) for x in (matrix(),)],
    ],
    misses=lambda: [
        softmax(matrix() - rows(_finite()), axes=(0,)),
        softmax(matrix() - rows(leaves(1, {}, (3,))[0]), axes=(1,)),
    ],
)
def softmax_of_shifted(v: Value, context) -> Value | None:
    """A shift that was made by hand: softmax makes its own."""
    axes = v.attrs["axes"]
    x, m = without_shift(v.operands[0], axes)
    return None if m is None or not may_go(m, x, axes, context) else v.op(x, axes=axes)


@rewrite(
    "log",
    kinds="f",
    equation="log(softmax(x, axes)) -> log_softmax(x, axes)",
    needs=["softmax"],
    examples=lambda: [log(softmax(matrix(), axes=(1,)))],
)
def log_of_softmax(v: Value) -> Value | None:
    """A small probability underflows where its log is ordinary, one near 1 has lost the digits of its log."""
    (s,) = v.operands
    return log_softmax(s.operands[0], axes=s.attrs["axes"]) if s.op is softmax else None


@rewrite(
    "exp",
    kinds="f",
    equation="exp(log_softmax(x, axes)) -> softmax(x, axes)",
    needs=["log_softmax"],
    examples=lambda: [exp(log_softmax(matrix(), axes=(1,)))],
)
def exp_of_log_softmax(v: Value) -> Value | None:
    """Each undoes the other: no log, and one exponential."""
    (s,) = v.operands
    return softmax(s.operands[0], axes=s.attrs["axes"]) if s.op is log_softmax else None


@rewrite(
    "gather",
    kinds="fiu",
    needs=["log_softmax"],
    equation="log_softmax(x, 1)[arange(n), y] -> log_softmax_at(x, y)",
    examples=lambda: [
        gather(log_softmax(matrix(), axes=(1,)), iota(shape=(3,), axis=0, dtype=I64), index(3), axes=(0, 1)),
        gather(log_softmax(leaves(1, {}, (5,))[0], axes=(0,)), index(), axes=(0,)),
    ],
    misses=lambda: [
        gather(log_softmax(matrix(), axes=(1,)), index(3), iota(shape=(3,), axis=0, dtype=I64), axes=(0, 1)),
        gather(log_softmax(matrix(), axes=(1,)), index(3), axes=(0,)),
    ],
)
def cross_entropy(v: Value) -> Value | None:
    """Cross-entropy with labels: its gradient is probabilities minus one-hot rows, without a scatter."""
    s, *indices = v.operands
    if s.op is not log_softmax or len(s.attrs["axes"]) != 1 or v.attrs["axes"] != tuple(range(s.ndim)):
        return None
    (x,), (axis,) = s.operands, s.attrs["axes"]
    if v.shape != tuple(n for a, n in enumerate(x.shape) if a != axis):
        return None
    for a, i in enumerate(indices[:axis] + indices[axis + 1 :]):
        count = wrapped_index(i)
        if steps_of(i if count is None else count) != Steps(a, 0, 1):
            return None
    return log_softmax_at(x, checked_index(indices[axis], x, axis), axis=axis)


