"""Stability: expressions that overflow, cancel or lose digits, as named ops that do not.

Each left side is what a textbook or a gradient spells; each right side is the same function with an accurate reference.
"""

from __future__ import annotations

from symc.ir.dim import product
from symc.ir.op import splat
from symc.ir.ops.arithmetic import hypot
from symc.ir.ops.index import gather
from symc.ir.ops.leaf import size
from symc.ir.ops.math import (
    cos,
    cosh,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1mexp,
    log1p,
    sigmoid,
    sin,
    sinh,
    softplus,
    sqrt,
    tan,
    tanh,
)  # fmt: skip
from symc.ir.ops.reduce import norm, spread, sum_
from symc.ir.ops.shape import broadcast
from symc.ir.text import splat_of
from symc.ir.traverse import rebuild
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.pattern import leaves
from symc.opt.rule import rewrite, rule

NEGATIVE = {"x": (-700.0, -1e-8)}
POSITIVE = {"x": (1e-8, 1e8)}

# --- log1p and expm1 --------------------------------------------------------------------------------------------------


@rule
def log_one_plus(x):
    """1 + x loses the digits of a small x."""
    return log(1 + x), log1p(x)


@rule
def log_one_minus(x):
    """1 - x loses the digits of a small x."""
    return log(1 - x), log1p(-x)


@rule
def exp_minus_one(x):
    """exp(x) - 1 cancels near 0."""
    return exp(x) - 1, expm1(x)


@rule
def one_minus_exp(x):
    """1 - exp(x) cancels near 0."""
    return 1 - exp(x), -expm1(x)


# --- softplus, log1mexp, sigmoid --------------------------------------------------------------------------------------


@rule
def log_one_plus_exp(x):
    """exp(x) overflows where log(1 + exp(x)) is x."""
    return log1p(exp(x)), softplus(x)


@rule(domain=NEGATIVE)
def log_one_minus_exp(x):
    """1 - exp(x) cancels at one end, and loses exp(x) at the other."""
    return log1p(-exp(x)), log1mexp(x)


@rule(domain=NEGATIVE)
def log_minus_expm1(x):
    """The same function, as it is spelled after expm1."""
    return log(-expm1(x)), log1mexp(x)


@rule
def log_sigmoid(x):
    """sigmoid(x) underflows where its log is x."""
    return log(sigmoid(x)), -softplus(-x)


@rule
def log1p_minus_sigmoid(x):
    """1 - sigmoid(x) rounds to 0 where its log is -x."""
    return log1p(-sigmoid(x)), -softplus(x)


@rule
def exp_over_one_plus_exp(x):
    """inf / inf for large x."""
    return exp(x) / (1 + exp(x)), sigmoid(x)


@rule
def reciprocal_one_plus_exp(x):
    """exp(x) overflows; its derivative is then inf * 0."""
    return 1 / (1 + exp(x)), sigmoid(-x)


@rule
def one_minus_sigmoid(x):
    """1 - sigmoid(x) cancels for large x."""
    return 1 - sigmoid(x), sigmoid(-x)


@rule
def exp_times_sigmoid(x):
    """exp(x) * sigmoid(-x): inf * 0 for large x."""
    return exp(x) * sigmoid(-x), sigmoid(x)


@rule
def sigmoid_odds(x):
    """The odds of a probability given by its logit."""
    return sigmoid(x) / sigmoid(-x), exp(x)


@rule
def softplus_minus_argument(x):
    """softplus(x) - x cancels for large x."""
    return softplus(x) - x, softplus(-x)


def _matrix() -> Value:
    return leaves(1, {}, (3, 4))[0]


# --- error function ---------------------------------------------------------------------------------------------------


@rule
def one_minus_erf(x):
    """1 - erf(x) is 0 from x = 6 on, where erfc(x) has all its digits."""
    return 1 - erf(x), erfc(x)


@rule
def one_plus_erf(x):
    """1 + erf(x) cancels for negative x."""
    return 1 + erf(x), erfc(-x)


@rule
def erf_minus_one(x):
    """erf(x) - 1 cancels for positive x."""
    return erf(x) - 1, -erfc(x)


@rule
def one_minus_erfc(x):
    """1 - erfc(x) cancels near 0."""
    return 1 - erfc(x), erf(x)


# --- hyperbolic and trigonometric -------------------------------------------------------------------------------------


@rule
def sinh_of_exponentials(x):
    """exp(x) - exp(-x) cancels near 0."""
    return (exp(x) - exp(-x)) / 2, sinh(x)


@rule
def cosh_of_exponentials(x):
    """One function for two exponentials; it overflows later."""
    return (exp(x) + exp(-x)) / 2, cosh(x)


@rule
def tanh_of_exponentials(x):
    """inf / inf for large x, cancellation near 0."""
    return (exp(x) - exp(-x)) / (exp(x) + exp(-x)), tanh(x)


@rule
def tanh_of_expm1(x):
    """The same with one exponential, inf / inf for large x."""
    return expm1(x) / (exp(x) + 1), tanh(x / 2)


@rule
def sinh_over_cosh(x):
    """inf / inf for large x."""
    return sinh(x) / cosh(x), tanh(x)


@rule
def sin_over_cos(x):
    """One function for two and a division."""
    return sin(x) / cos(x), tan(x)


@rule(domain={"x": (-30, 30)})
def one_minus_cos(x):
    """1 - cos(x) cancels near 0."""
    return 1 - cos(x), 2 * (sin(x / 2) * sin(x / 2))


# --- lengths and spreads ----------------------------------------------------------------------------------------------


@rule
def sqrt_of_two_squares(x, y):
    """The squares overflow or underflow where the length is ordinary."""
    return sqrt(x * x + y * y), hypot(x, y)


@rewrite(
    "sqrt",
    kinds="f",
    equation="sqrt(sum(x * x, axes)) -> norm(x, axes)",
    examples=lambda: [(lambda x: sqrt(sum_(x * x, axes=(1,))))(_matrix())],
)
def sqrt_of_sum_of_squares(v: Value) -> Value | None:
    """The squares overflow or underflow where the length is ordinary; norm has a gradient of 0 at 0."""
    (s,) = v.operands
    if s.op.name == "sum" and s.operands[0].op.name == "mul" and s.operands[0].operands[0] is s.operands[0].operands[1]:
        return norm(s.operands[0].operands[0], axes=s.attrs["axes"])
    return None


def _mean_of(v: Value) -> tuple[Value, tuple[int, ...]] | None:
    """(x, axes) when ``v`` is the mean of x over axes, divided or multiplied by a number or a size."""
    if v.op.name not in ("div", "mul") or v.operands[0].op.name != "sum":
        return None
    s, n = v.operands
    x, axes = s.operands[0], s.attrs["axes"]
    count = product(x.shape[a] for a in axes)
    number = splat_of(n)
    if number is not None:
        right = (
            isinstance(count, int)
            and count > 0
            and bool(number == (count if v.op.name == "div" else number.dtype.type(1) / count))
        )
        return (x, axes) if right else None
    while n.op.name in ("cast", "broadcast"):
        n = n.operands[0]
    return (x, axes) if v.op.name == "div" and n.op.name == "size" and n.attrs["value"] == count else None


@rewrite(
    "sub",
    kinds="f",
    needs=["mul"],
    equation="mean(x * x) - mean(x)**2 -> mean((x - mean(x))**2)",
    examples=lambda: [
        (lambda x: sum_(x * x, axes=(1,)) / 4 - (sum_(x, axes=(1,)) / 4) * (sum_(x, axes=(1,)) / 4))(_matrix())
    ],
)
def variance(v: Value) -> Value | None:
    """The difference cancels where the mean is large against the spread: of 1e8 + {0, 1, 2} nothing right is left."""
    squares, square = v.operands
    if square.op.name != "mul" or square.operands[0] is not square.operands[1]:
        return None
    first, second = _mean_of(squares), _mean_of(square.operands[0])
    if first is None or second is None:
        return None
    (xx, axes), (x, other) = first, second
    if axes != other or xx.op.name != "mul" or xx.operands[0] is not x or xx.operands[1] is not x:
        return None
    d = x - spread(square.operands[0], x, axes)
    count = product(x.shape[a] for a in axes)
    return sum_(d * d, axes=axes) / (splat(count, v.type) if isinstance(count, int) else _size_as(count, v.type))


def _size_as(n, t: TensorType) -> Value:
    from symc.ir.ops.cast import cast

    number = cast(size(value=n), dtype=t.dtype)
    return broadcast(number, axes=(), shape=t.shape) if t.shape else number


# --- logs -------------------------------------------------------------------------------------------------------------


@rule
def log_of_exp(x):
    """exp(x) overflows where its log is x."""
    return log(exp(x)), x


@rewrite(
    "log",
    kinds="f",
    equation="log(gather(exp(x), i)) -> gather(x, i); so for slice, reshape, transpose, broadcast",
    examples=lambda: [log(gather(exp(_matrix()), leaves(1, {0: "i64"}, (2,))[0], axes=(0,)))],
)
def log_of_moved_exp(v: Value) -> Value | None:
    """The log of a chosen softmax, however it is chosen: exp(x) underflows where x is ordinary."""
    chain = []
    x = v.operands[0]
    while x.op.name == "gather" or "movement" in x.op.traits and len(x.operands) == 1:
        chain.append(x)
        x = x.operands[0]
    if not chain or x.op is not exp:
        return None
    x = x.operands[0]
    for moved in reversed(chain):
        x = rebuild(moved, [x, *moved.operands[1:]])
    return x


@rule(domain=POSITIVE)
def log_of_sqrt(x):
    """A product for a root."""
    return log(sqrt(x)), 0.5 * log(x)


@rule(domain=POSITIVE)
def log_of_reciprocal(x):
    """A sign for a division, and no overflow for a small x."""
    return log(1 / x), -log(x)


@rule
def log1p_of_expm1(x):
    """Each undoes the other."""
    return log1p(expm1(x)), x


@rule(domain={"x": (-0.999, 1e8)})
def expm1_of_log1p(x):
    """Each undoes the other."""
    return expm1(log1p(x)), x
