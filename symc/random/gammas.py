"""The gamma distribution and what is made of gamma numbers. Gradients are those of implicit reparameterisation."""

from __future__ import annotations

from typing import Any

from symc.errors import ShapeError
from symc.ir.ops.arithmetic import neg
from symc.ir.ops.compare import lt
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp, logaddexp, sqrt
from symc.ir.ops.random import gamma_draw, log_gamma_draw, unit_normal, wald_draw
from symc.ir.value import Value
from symc.random.core import Draw, distribution, location_scale, more, prepare, sizes
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API
from symc.tensors.sizes import user_shape
from symc.tensors.tensor import Tensor


@distribution
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, scale: Any = 1.0) -> Tensor:
    """Numbers with density proportional to x**(a - 1) exp(-x / scale)."""
    d = prepare("gamma", key, shape, dtype, a=(a, "nonnegative"), scale=(scale, "nonnegative"))
    return location_scale(gamma_draw(d.bits(), d.parameters[0]), None, d.parameters[1])


@distribution
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """The logarithms of gamma numbers; for small ``a``, where the numbers themselves are too small for floats."""
    d = prepare("loggamma", key, shape, dtype, a=(a, "nonnegative"))
    return Tensor(log_gamma_draw(d.bits(), d.parameters[0]))


@distribution
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Sums of ``df`` squares of standard normal numbers; ``df`` need not be whole."""
    d = prepare("chisquare", key, shape, dtype, df=(df, "nonnegative"))
    return Tensor(2 * gamma_draw(d.bits(), d.parameters[0] * 0.5))


@distribution
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers in [0, 1] with density proportional to x**(a - 1) (1 - x)**(b - 1)."""
    d = prepare("beta", key, shape, dtype, a=(a, "positive"), b=(b, "positive"))
    x, y = _two_logs(d, *d.parameters)
    return Tensor(exp(x - logaddexp(x, y)))


def _two_logs(d: Draw, a: Value, b: Value) -> tuple[Value, Value]:
    """The logarithms of two independent gamma numbers."""
    bits = d.bits()
    return log_gamma_draw(more(bits, 0), a), log_gamma_draw(more(bits, 1), b)


@distribution
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Quotients of two chi-square numbers, each divided by its degrees of freedom."""
    d = prepare("f", key, shape, dtype, dfnum=(dfnum, "positive"), dfden=(dfden, "positive"))
    m, n = d.parameters
    x, y = _two_logs(d, m * 0.5, n * 0.5)
    return Tensor(exp(x - y) * (n / m))


@distribution
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Student's numbers: normal ones divided by the root of chi-square ones over their degrees of freedom."""
    d = prepare("t", key, shape, dtype, df=(df, "positive"), loc=(loc, "any"), scale=(scale, "nonnegative"))
    df_, centre, width = d.parameters
    bits, half = d.bits(), df_ * 0.5
    return location_scale(_normal(more(bits, 0), d) * sqrt(half / gamma_draw(more(bits, 1), half)), centre, width)


def _normal(bits: Value, d: Draw) -> Value:
    return convert(unit_normal(bits), d.dtype)


@distribution
def generalized_normal(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers with density proportional to exp(-abs(x)**p)."""
    d = prepare("generalized_normal", key, shape, dtype, p=(p, "positive"))
    inverse = 1 / d.parameters[0]
    bits = d.bits()
    x = exp(log_gamma_draw(more(bits, 0), inverse) * inverse)
    return Tensor(where(lt(bits, 2**63), neg(x), x))


@distribution
def maxwell(key: Any, shape: Any = None, dtype: Any = None, *, scale: Any = 1.0) -> Tensor:
    """The lengths of vectors of three normal numbers with mean 0 and standard deviation ``scale``."""
    d = prepare("maxwell", key, shape, dtype, scale=(scale, "nonnegative"))
    bits = d.bits()
    x, y, z = (_normal(b, d) for b in (bits, more(bits, 0), more(bits, 1)))
    return location_scale(sqrt(x * x + y * y + z * z), None, d.parameters[0])


@distribution
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, scale: Any = 1.0) -> Tensor:
    """Inverse Gaussian numbers: the times at which a Brownian motion with drift first reaches a level."""
    d = prepare("wald", key, shape, dtype, mean=(mean, "positive"), scale=(scale, "positive"))
    return Tensor(wald_draw(d.bits(), *d.parameters))


@distribution
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Positive numbers along the last axis that sum to 1, with density proportional to the product of x**(alpha - 1).

    ``shape`` is that of the draws: the result has one axis more.
    """
    a = as_tensor(alpha)
    if not a.ndim:
        raise ShapeError("dirichlet: alpha needs an axis", values=[a.describe("alpha")])
    full = None if shape is None else (*user_shape(sizes(shape, "dirichlet")), a.shape[-1])
    logs = loggamma(key, a, full, dtype)
    return API["softmax"](logs, -1)
