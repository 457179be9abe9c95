"""Softmax and its relatives: logs of sums of exponentials, which overflow or vanish where the log is ordinary."""

from __future__ import annotations

from symc.ir.ops.math import exp, log, log1mexp, logaddexp
from symc.ir.ops.reduce import logsumexp, spread, sum_
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.pattern import flatten, join, leaves
from symc.opt.rule import rewrite, rule

# --- logs of sums of exponentials -------------------------------------------------------------------------------------


@rule
def log_add_exp(x, y):
    """The exponentials overflow or underflow where the log is ordinary."""
    return log(exp(x) + exp(y)), logaddexp(x, y)


@rule
def log_add_exp3(x, y, z):
    """The same for three terms."""
    return log(exp(x) + exp(y) + exp(z)), logaddexp(logaddexp(x, y), z)


@rule(domain={"x": (-300, 300), "y": (-300, 300)})
def log_sub_exp(x, y):
    """exp(x) - exp(y) overflows, and cancels for equal arguments."""
    return log(exp(x) - exp(y)), x + log1mexp(y - x)


def _matrix() -> Value:
    return leaves(1, {}, (3, 4))[0]


def _rows(x: Value) -> Value:
    return spread(x, _matrix(), (1,))


def without_shift(x: Value, axes: tuple[int, ...]) -> tuple[Value, Value | None]:
    """``x`` as ``y - m`` where m does not vary along ``axes``: (y, m reduced), else (x, None)."""
    if x.op.name == "sub" and x.operands[1].op.name == "broadcast":
        y, b = x.operands
        if b.attrs["axes"] == tuple(a for a in range(x.ndim) if a not in axes):
            return y, b.operands[0]
    return x, None


@rewrite(
    "log",
    kinds="f",
    weight=3,
    equation="log(sum(exp(x), axes)) -> logsumexp(x, axes)",
    examples=lambda: [log(sum_(exp(_matrix()), axes=(1,))), log(sum_(exp(_matrix()), axes=(0, 1)))],
)
def log_sum_exp(v: Value) -> Value | None:
    """exp(x) overflows or vanishes where the log of its sum is ordinary."""
    (s,) = v.operands
    if s.op.name == "sum" and s.operands[0].op.name == "exp":
        return logsumexp(s.operands[0].operands[0], axes=s.attrs["axes"])
    return None


@rewrite(
    "log",
    kinds="f",
    weight=4,
    equation="log(sum(exp(x), axes) / n) -> logsumexp(x, axes) - log(n)",
    examples=lambda: [log(sum_(exp(_matrix()), axes=(1,)) / 3), log(sum_(exp(_matrix()), axes=(1,)) / 4)],
)
def log_mean_exp(v: Value) -> Value | None:
    """The same for a mean, or any multiple of the sum that does not depend on x."""
    (q,) = v.operands
    if q.op.name not in ("div", "mul"):
        return None
    s, n = q.operands
    if s.op.name != "sum" or s.operands[0].op.name != "exp" or not _is_constant_like(n):
        return None
    total = logsumexp(s.operands[0].operands[0], axes=s.attrs["axes"])
    return total - log(n) if q.op.name == "div" else total + log(n)


def _is_constant_like(v: Value) -> bool:
    """A positive number that the user did not compute from data: a splat, or a size."""
    number = splat_of(v)
    if number is not None:
        return bool(number > 0)
    while v.op.name in ("cast", "broadcast"):
        v = v.operands[0]
    return v.op.name == "size"


@rewrite(
    "logsumexp",
    kinds="f",
    equation="logsumexp(x - m, axes) -> logsumexp(x, axes) - m",
    examples=lambda: [logsumexp(_matrix() - _rows(leaves(1, {}, (3,))[0]), axes=(1,))],
)
def logsumexp_of_shifted(v: Value) -> Value | None:
    """A shift that was made by hand: logsumexp makes its own."""
    x, m = without_shift(v.operands[0], v.attrs["axes"])
    return None if m is None else logsumexp(x, axes=v.attrs["axes"]) - m


@rewrite(
    "add",
    "sub",
    kinds="f",
    needs=["logsumexp"],
    equation="m + (logsumexp(x) - m) -> logsumexp(x)",
    examples=lambda: [(lambda x, m: m + (logsumexp(x, axes=(1,)) - m))(_matrix(), leaves(1, {}, (3,))[0])],
)
def shift_put_back(v: Value) -> Value | None:
    """The other half of a shift by hand: m + log(sum(exp(x - m)))."""
    terms = flatten(v, "sum")
    if not any(x.op.name == "logsumexp" for _, x in terms):
        return None
    for i, (s, x) in enumerate(terms):
        for j, (t, y) in enumerate(terms):
            if x is y and s > 0 > t and x.op.name != "logsumexp":
                return join([term for k, term in enumerate(terms) if k not in (i, j)], "sum")
    return None


# --- softmax ----------------------------------------------------------------------------------------------------------


@rewrite(
    "div",
    "mul",
    kinds="f",
    weight=4,
    needs=["exp", "broadcast"],
    equation="exp(x) / sum(exp(x), axes) -> exp(x - logsumexp(x, axes))",
    examples=lambda: [
        (lambda e: e / spread(sum_(e, axes=(1,)), e, (1,)))(exp(_matrix())),
        (lambda e, y: y * e / spread(sum_(e, axes=(0,)), e, (0,)))(exp(_matrix()), _matrix()),
    ],
)
def softmax(v: Value) -> Value | None:
    """inf / inf for large x, 0 / 0 for very negative ones."""
    terms = flatten(v, "product")
    for i, (s, e) in enumerate(terms):
        if s < 0 or e.op.name != "exp":
            continue
        for j, (t, b) in enumerate(terms):
            if (
                t > 0
                or b.op.name != "broadcast"
                or b.operands[0].op.name != "sum"
                or b.operands[0].operands[0] is not e
            ):
                continue
            axes = b.operands[0].attrs["axes"]
            if b.attrs["axes"] != tuple(a for a in range(e.ndim) if a not in axes):
                continue
            x, _ = without_shift(e.operands[0], axes)
            made = exp(x - spread(logsumexp(x, axes=axes), x, axes))
            return join([(1, made), *[term for k, term in enumerate(terms) if k not in (i, j)]], "product")
    return None
