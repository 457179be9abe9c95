"""``sc.special``: special functions under SciPy's names, and the stable forms that machine learning uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from symc.errors import DTypeError, InputError
from symc.ir.op import Elementwise, lookup, splat
from symc.ir.ops.complex_functions import NAMES as NAMES_COMPLEX
from symc.ir.ops.complex_functions import OF_ORDER as OF_ORDER_COMPLEX
from symc.ir.ops.special import INTEGER, OF_ORDER, SEVERAL, TABLE, WHOLE
from symc.ir.types import complex_dtype
from symc.ir.value import Value
from symc.numpy_api.elementwise import float_value, float_values, relu
from symc.numpy_api.promotion import common_dtype, together
from symc.numpy_api.reductions import log_softmax, logcumsumexp, logsumexp, softmax
from symc.tensors.convert import as_operand, inexact_dtype
from symc.tensors.public import API, called, located
from symc.tensors.tensor import Tensor


def _function(name: str, op: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Any) -> Tensor:
        return Tensor(lookup(op)(float_value(x, name)))
    return located(called(call, name, doc))


erf = _function("erf", "erf", "The error function.")
erfc = _function("erfc", "erfc", "1 - erf(x), accurate for large x.")
erfcx = _function("erfcx", "erfcx", "exp(x*x) * erfc(x), without overflow.")
erfinv = _function("erfinv", "erfinv", "The inverse of erf.")
gammaln = _function("gammaln", "lgamma", "The logarithm of |gamma(x)|.")
digamma = _function("digamma", "digamma", "The derivative of gammaln.")
trigamma = _function("trigamma", "trigamma", "The derivative of digamma.")
log1mexp, sigmoid, softplus = API["log1mexp"], API["sigmoid"], API["softplus"]
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
def gelu(x: Any) -> Tensor:
    """x * ndtr(x)."""
    return API["multiply"](x, ndtr(x))


@located
def silu(x: Any) -> Tensor:
    """x * expit(x)."""
    return API["multiply"](x, sigmoid(x))


# --- functions of the tables of ops -----------------------------------------------------------------------------------


def _of_table(name: str, operands: tuple[str, ...], ops: tuple[str, ...], doc: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if len(args) != len(operands):
            raise TypeError(f"{name} takes {', '.join(operands)}: {len(operands)} operands, not {len(args)}")
        whole = as_operand(args[0]).dtype.kind in "biu"
        if name in INTEGER and not whole:
            raise DTypeError(f"{name}: {operands[0]} must be an integer, not {as_operand(args[0]).dtype}")
        suffix = WHOLE if whole and name in OF_ORDER else ""
        values = float_values(args, name)
        found = tuple(Tensor(lookup(op + suffix)(*values)) for op in ops)
        return found if name in SEVERAL else found[0]
    return located(called(call, name, doc))


globals().update({n: _of_table(n, names, (n,), lookup(n).doc) for n, names in TABLE.items()})
globals().update({n: _of_table(n, names, tuple(f"{n}_{k}" for k in range(count)), doc)
                  for n, (count, names, doc) in SEVERAL.items()})
binom, jv, poch = (globals()[n] for n in ("binom", "jv", "poch"))
if TYPE_CHECKING:
    def __getattr__(name: str) -> Callable[..., Any]: ...

# --- functions made of others -----------------------------------------------------------------------------------------


@located
def loggamma(x: Any) -> Tensor:
    """The logarithm of gamma(x) of positive numbers; nan of others, where it is not real."""
    v = float_value(x, "loggamma")
    return Tensor(lookup("where")(lookup("lt")(v, 0), splat(math.nan, v.type), lookup("lgamma")(v)))


@located
def multigammaln(a: Any, d: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension d, a constant."""
    t = Tensor(float_value(a, "multigammaln"))
    return sum((gammaln(t - j / 2) for j in range(d)), d * (d - 1) / 4 * math.log(math.pi))  # type: ignore[return-value]


@located
def zeta(x: Any, q: Any = None) -> Tensor:
    """The sum of (k + q)**-x over k = 0, 1, ..., Hurwitz' zeta function; without q Riemann's, of all real numbers."""
    if q is not None:
        return Tensor(lookup("zeta")(*float_values([x, q], "zeta")))
    return API["add"](Tensor(lookup("zetac")(float_value(x, "zeta"))), 1.0)


@located
def rel_entr(x: Any, y: Any) -> Tensor:
    """x log(x / y); 0 where x is 0 and y is not negative, inf where either is negative or y alone is 0."""
    return _divergence(x, y, "rel_entr", lambda a, b, log: log)


@located
def kl_div(x: Any, y: Any) -> Tensor:
    """rel_entr(x, y) - x + y."""
    return _divergence(x, y, "kl_div", lambda a, b, log: log - a + b)


def _divergence(x: Any, y: Any, name: str, of: Callable[..., Value]) -> Tensor:
    a, b = float_values([x, y], name)
    where, lt, one = lookup("where"), lookup("lt"), splat(1, a.type)
    some = lookup("and")(lt(0 * one, a), lt(0 * one, b))
    p, q = where(some, a, one), where(some, b, one)
    none = lookup("and")(lookup("eq")(a, 0), lookup("ge")(b, 0))
    rest = where(none, of(0 * a, b, 0 * one), splat(math.inf, a.type))
    known = where(some, of(p, q, p * lookup("log")(p / q)), rest)
    return Tensor(where(lookup("or")(lookup("isnan")(a), lookup("isnan")(b)), a + b, known))


@located
def huber(delta: Any, r: Any) -> Tensor:
    """r²/2 where |r| <= delta, else delta (|r| - delta/2); inf of a negative delta."""
    d, x = map(Tensor, float_values([delta, r], "huber"))
    size = API["absolute"](x)
    loss = API["where"](API["less_equal"](size, d), x * x * 0.5, d * (size - 0.5 * d))
    return API["where"](API["less"](d, 0), math.inf, loss)


@located
def pseudo_huber(delta: Any, r: Any) -> Tensor:
    """delta² (sqrt(1 + (r/delta)²) - 1); inf of a negative delta, 0 of 0."""
    d, x = map(Tensor, float_values([delta, r], "pseudo_huber"))
    v = x / API["where"](API["equal"](d, 0), 1.0, d)
    loss = d * d * API["expm1"](0.5 * API["log1p"](v * v))
    flat = API["logical_not"](API["isfinite"](d * d))
    none = API["logical_or"](API["equal"](d, 0), API["logical_and"](flat, API["equal"](x, 0)))
    return API["where"](API["less"](d, 0), math.inf, API["where"](none, 0.0, loss))


@located
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Tensor:
    """The combinations of k of N things, as floats; 0 where there are none."""
    if exact:
        raise InputError("comb(exact=True) is not possible with symbolic values", help="exact=False computes in floats")
    n, c = map(Tensor, float_values([N, k], "comb"))
    n = n + c - 1 if repetition else n
    there = API["logical_and"](API["less_equal"](c, n), API["logical_and"](n >= 0, c >= 0))
    found = API["where"](there, binom(n, c), 0.0)
    return API["where"](API["equal"](c, 0), 1.0, found) if repetition else found


@located
def perm(N: Any, k: Any, exact: bool = False) -> Tensor:
    """The permutations of k of N things, as floats; 0 where there are none."""
    if exact:
        raise InputError("perm(exact=True) is not possible with symbolic values", help="exact=False computes in floats")
    n, c = map(Tensor, float_values([N, k], "perm"))
    there = API["logical_and"](API["less_equal"](c, n), API["logical_and"](n >= 0, c >= 0))
    return API["where"](there, poch(n - c + 1, c), 0.0)


@located
def radian(d: Any, m: Any, s: Any) -> Tensor:
    """An angle in degrees, minutes and seconds in radians."""
    degrees, minutes, seconds = map(Tensor, float_values([d, m, s], "radian"))
    return ((degrees * 60 + minutes) * 60 + seconds) * (math.pi / 648000)


def _derivative_of(name: str) -> Callable[..., Tensor]:
    function = globals()[name]

    def call(n: Any, z: Any, derivative: bool = False) -> Tensor:
        out = function(n, z)
        if not derivative:
            return out
        given = lookup(name).derivative
        assert isinstance(given, Elementwise)
        slope = given.partials[1]
        assert callable(slope)
        value = slope(out.value, *out.value.operands)
        assert value is not None
        return Tensor(value)
    return located(called(call, name, lookup(name).doc))


globals().update({n: _derivative_of(n) for n in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")})


@located
def kelvin(x: Any) -> tuple[Tensor, ...]:
    """Kelvin's functions as complex numbers: Be, Ke and their derivatives."""
    parts = {n: globals()[n](x) for n in ("ber", "bei", "ker", "kei", "berp", "beip", "kerp", "keip")}
    names = list(parts)
    return tuple(API["make_complex"](parts[a], parts[b]) for a, b in zip(names[::2], names[1::2], strict=True))


# --- complex numbers --------------------------------------------------------------------------------------------------


def _of_complex(name: str, args: Sequence[Any]) -> Tensor:
    """The function of complex numbers, its order before them."""
    tensors = [as_operand(a) for a in args]
    if len(tensors) != 1 + (name in OF_ORDER_COMPLEX):
        raise TypeError(f"{name} takes {1 + (name in OF_ORDER_COMPLEX)} operands, not {len(tensors)}")
    if any(t.dtype.kind == "c" for t in tensors[:-1]):
        raise DTypeError(f"{name}: the order must be real, not {tensors[0].dtype}")
    values = together(tensors, name, complex_dtype(inexact_dtype(common_dtype(tensors))))
    op = lookup("complex_function_of_order" if len(values) > 1 else "complex_function")
    return Tensor(op(*map(lookup("real"), values[:-1]), values[-1], name=name))


def _either(name: str, function: Callable[..., Any] | None) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if function is not None and not (args and as_operand(args[-1]).dtype.kind == "c"):
            return function(*args, **kwargs)
        return _of_complex(name, args)
    return located(called(
        call, name, function.__doc__ if function is not None else f"SciPy's ``{name}``: always complex."))


globals().update({n: _either(n, globals().get(n)) for n in NAMES_COMPLEX if n != "lambertw"})
psi = digamma


@located
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Tensor:
    """Branch k of Lambert's function, whose w exp(w) is z; always complex."""
    return _of_complex("lambertw", [k, z])


cbrt, exp2, expm1, log1p, sinc = (API[n] for n in ("cbrt", "exp2", "expm1", "log1p", "sinc"))
round, jn = API["rint"], jv

#: What is above, and under SciPy's names.
COMPOSED = ("cbrt", "comb", "exp2", "expm1", "hankel1", "hankel1e", "hankel2", "hankel2e", "huber", "jn", "kelvin",
            "kl_div", "lambertw", "log1p", "loggamma", "multigammaln", "perm", "pseudo_huber", "radian", "rel_entr",
            "round", "sinc", "wofz", "zeta")
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
    *(n for n in TABLE if n not in COMPOSED),
    *SEVERAL,
    *COMPOSED,
]
