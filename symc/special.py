"""``sc.special``: special functions under SciPy's names, and the stable forms that machine learning uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.ir.op import lookup
from symc.ir.value import Value
from symc.numpy_api.elementwise import float_value, float_values, log1mexp, relu, sigmoid, softplus
from symc.numpy_api.reductions import log_softmax, logcumsumexp, logsumexp, softmax
from symc.tensors.public import API, located
from symc.tensors.tensor import Tensor


def _function(name: str, op: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Any) -> Tensor:
        return Tensor(lookup(op)(float_value(x, name)))
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return located(call)


erf = _function("erf", "erf", "The error function.")
erfc = _function("erfc", "erfc", "1 - erf(x), accurate for large x.")
erfcx = _function("erfcx", "erfcx", "exp(x*x) * erfc(x), without overflow.")
erfinv = _function("erfinv", "erfinv", "The inverse of erf.")
gammaln = _function("gammaln", "lgamma", "The logarithm of |gamma(x)|.")
digamma = _function("digamma", "digamma", "The derivative of gammaln.")
trigamma = _function("trigamma", "trigamma", "The derivative of digamma.")
lgamma, psi, expit = gammaln, digamma, sigmoid


@located
def polygamma(n: int, x: Any) -> Tensor:
    """The derivative of digamma of order n, a constant."""
    if n == 0:
        return digamma(x)
    return Tensor(lookup("polygamma")(float_value(x, "polygamma"), order=int(n)))


@located
def logit(p: Any) -> Tensor:
    """log(p / (1 - p)), the inverse of expit."""
    v = float_value(p, "logit")
    return Tensor(lookup("log")(v) - lookup("log1p")(-v))


@located
def log_expit(x: Any) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
    return Tensor(-lookup("softplus")(-float_value(x, "log_expit")))


@located
def xlogy(x: Any, y: Any) -> Tensor:
    """x * log(y), and 0 where x is 0."""
    a, b = float_values([x, y], "xlogy")
    return Tensor(_known(b, lookup("mulz")(a, lookup("log")(b))))


@located
def xlog1py(x: Any, y: Any) -> Tensor:
    """x * log1p(y), and 0 where x is 0."""
    a, b = float_values([x, y], "xlog1py")
    return Tensor(_known(b, lookup("mulz")(a, lookup("log1p")(b))))


def _known(y: Value, out: Value) -> Value:
    """``out``, but nan where y is, even times 0."""
    return lookup("where")(lookup("isnan")(y), y, out)


@located
def entr(x: Any) -> Tensor:
    """-x * log(x); 0 at 0 and -inf below."""
    t = Tensor(float_value(x, "entr"))
    return API["where"](API["less"](t, 0), -float("inf"), API["negative"](xlogy(t, t)))


@located
def ndtr(x: Any) -> Tensor:
    """The distribution function of the standard normal distribution."""
    v = float_value(x, "ndtr")
    return Tensor(0.5 * lookup("erfc")(v * -(0.5**0.5)))


@located
def ndtri(p: Any) -> Tensor:
    """The inverse of ndtr."""
    v = float_value(p, "ndtri")
    return Tensor(2**0.5 * lookup("erfinv")(2 * v - 1))


@located
def gelu(x: Any) -> Tensor:
    """x * ndtr(x)."""
    return API["multiply"](x, ndtr(x))


@located
def silu(x: Any) -> Tensor:
    """x * expit(x)."""
    return API["multiply"](x, sigmoid(x))


__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "expit",
    "gammaln",
    "gelu",
    "lgamma",
    "log1mexp",
    "log_expit",
    "log_softmax",
    "logcumsumexp",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "trigamma",
    "xlog1py",
    "xlogy",
]
