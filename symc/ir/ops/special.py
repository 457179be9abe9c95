"""Special functions: gamma and beta functions, error functions, and distribution functions with their inverses.

They are scipy.special's, by name, order of operands and values at edges. Kernels call SciPy's own code for one number
(``symc.ir.facts.Routine``), which computes in float64, or the other ops that ``parts`` says. Partials are formulas of
NIST's Digital Library of Mathematical Functions; where there is none in closed form, asking for it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts, Routine
from symc.ir.op import Elementwise, Op, Unknown, all_ops, lookup
from symc.ir.ops.arithmetic import mulz
from symc.ir.ops.compare import eq, ge, gt, le, lt
from symc.ir.ops.elementwise import edge_values, elementwise, like, samples
from symc.ir.ops.logic import and_, where
from symc.ir.ops.math import TWO_OVER_SQRT_PI, cos, digamma, erf, erfc, erfcx, exp, floor, lgamma, log, log1p, sqrt
from symc.ir.ops.random import gamma_slope, normal_inverse
from symc.ir.value import Value

Partial = Callable[..., Value] | None
#: The operands' names of each function that is one op; of the others how many ops, called ``name_0``, ``name_1``, ...,
#: they are, the operands and what is said of them.
TABLE: dict[str, tuple[str, ...]] = {}
SEVERAL: dict[str, tuple[int, tuple[str, ...], str]] = {}
#: Functions with an op of their own for a first operand that is an integer, called so with this added; and those that
#: take nothing else there.
WHOLE, OF_ORDER = "_whole", set[str]()
INTEGER = ("eval_hermite", "eval_hermitenorm", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")
#: Of more than two operands, how many combinations of edge values are samples.
SOME = 120


def f(name: str, *operands: Any) -> Value:
    """The op called ``name``, found when it is used: formulas name ops that come later."""
    return lookup(name)(*operands)


def special(name: str, operands: str, doc: str, *partials: Partial | str, takes: str = "",
            parts: Callable[..., Value] | None = None, scipy: str = "", gives: int = 0, which: int = 0,
            least: float = -math.inf) -> Op:
    """Register a function of scipy.special.

    ``operands``: their names. ``partials``: for each (see ``Elementwise``), "?" where there is no formula.
    ``takes``, ``gives``, ``which``: of the routine (see ``Routine``); ``parts``: the same of operands by other ops.
    ``scipy``: its name there, if it is another. ``least``: of the numbers in samples, where others take forever.
    """
    names = operands.split()
    routine = Routine(scipy or name, takes or "d" * len(names), gives, which)
    known = tuple(Unknown(n) if p == "?" else p for n, p in zip(names, partials, strict=True))
    facts = Facts(wild=True) if parts else Facts(wild=True, kernel="scalar", routine=routine)
    TABLE[name] = tuple(names)
    return elementwise(name, len(names), "f", _reference(routine), Elementwise(known, singular=True),  # type: ignore[arg-type]
                       doc=doc, facts=facts, parts=(lambda v: parts(*v.operands)) if parts else None,
                       sampled=lambda: some_samples(len(names), least))


def registered(before: Sequence[Op]) -> dict[str, Op]:
    """The ops that were registered after others, by name: what a family of rows defines."""
    known = {*before}
    return {op.name: op for op in all_ops() if op not in known}


def several(name: str, operands: str, doc: str, *partials: Sequence[Partial | str], takes: str = "",
            least: float = -math.inf) -> None:
    """Register a function with several results: an op for each, of the partials by each operand."""
    SEVERAL[name] = len(partials), tuple(operands.split()), doc[0].upper() + doc[1:]
    for k, known in enumerate(partials):
        special(f"{name}_{k}", operands, f"Result {k} of {doc}", *known, scipy=name, gives=len(partials), which=k,
                takes=takes, least=least)
        del TABLE[f"{name}_{k}"]


def of_order(name: str, operands: str, doc: str, *partials: Partial | str) -> None:
    """Register a function whose first operand may be whole, and an op for that alone, as SciPy has two."""
    special(name, operands, doc, *partials)
    special(name + WHOLE, operands, doc[:-1] + ", where the first operand is whole.", *partials, scipy=name,
            takes="l" + "d" * (len(partials) - 1), least=-30)
    del TABLE[name + WHOLE]
    OF_ORDER.add(name)


def _reference(routine: Routine) -> Callable[..., np.ndarray]:
    """SciPy's function in float64, of integers where it takes these."""

    def reference(*arrays: np.ndarray) -> np.ndarray:
        import scipy.special

        missing = [np.isnan(a) | (np.isinf(a) & (t == "f")) for t, a in zip(routine.takes, arrays) if t in "lf"]
        nothing = np.any(missing, axis=0) if missing else False
        wide = [np.where(nothing, 0.0, a.astype(np.float64)) for a in arrays]
        given = [_whole(a) if t == "l" else a for t, a in zip(routine.takes, wide)]
        found = getattr(scipy.special, routine.name)(*given)
        return np.where(nothing, np.nan, found[routine.which] if routine.gives else found)

    return reference


def _whole(x: np.ndarray) -> np.ndarray:
    """Toward zero; the least integer for what is in no range, as kernels have it."""
    inside = np.abs(x) < 2.0**63
    return np.where(inside, np.where(inside, x, 0).astype(np.int64), np.iinfo(np.int64).min)


def some_samples(arity: int, least: float) -> Iterator[tuple[tuple, dict]]:
    """All combinations of edge values, or some of many."""
    if arity < 3 and least == -math.inf:
        yield from samples(arity, "f")
        return
    rng = np.random.default_rng(0)
    for dtype in (d for d in ARITHMETIC if d.kind == "f"):
        edges = edge_values(dtype)
        edges = edges[~(edges < least) & ~(np.isinf(edges) & (least > -math.inf))]
        yield tuple(rng.choice(edges, SOME) for _ in range(arity)), {}
        yield tuple(np.empty((0, 2), dtype) for _ in range(arity)), {}
        yield tuple(np.array(1, dtype) for _ in range(arity)), {}


def partial(name: str, k: int, *operands: Value) -> Value:
    """The partial of op ``name`` by its k-th operand. Raises GradientError where it is not known."""
    out = f(name, *operands)
    derivative = out.op.derivative
    assert isinstance(derivative, Elementwise)
    found = derivative.partials[k]
    if found is None:
        return like(out, 0)
    assert callable(found)
    value = found(out, *operands)
    assert value is not None
    return value


def inverse(name: str, operands: str, of: str, k: int, doc: str, unknown: str = "", takes: str = "") -> Op:
    """Register the inverse of op ``of`` in its operand k, whose place the value of ``of`` takes: by the partials of
    that, 1 over the k-th and minus the j-th over the k-th. ``unknown``: operands whose partials are not known."""
    names = operands.split()

    def by(j: int) -> Partial:
        def slope(out: Value, *given: Value) -> Value:
            whole = [f("trunc", x) if t == "l" else x for x, t in zip(given, takes or "d" * len(given), strict=True)]
            at = (*whole[:k], out, *whole[k + 1:])
            density = partial(of, k, *at)
            return 1 / density if j == k else -partial(of, j, *at) / density

        return slope

    return special(name, operands, doc, *("?" if n in unknown.split() else by(j) for j, n in enumerate(names)),
                   takes=takes)


# --- gamma and beta functions -----------------------------------------------------------------------------------------


def _rgamma_partial(out: Value, x: Value) -> Value:
    """-psi(x) / gamma(x), which has limits at the poles of both: (-1)^n n! at -n (DLMF 5.7.1)."""
    pole = and_(le(x, 0), eq(x, floor(x)))
    at = where(pole, x, like(x, 0))
    return where(pole, cos(at * math.pi) * f("gamma", 1 - at), -out * digamma(where(pole, like(x, 1), x)))


def _over(out: Value, *differences: Value) -> Value:
    """Partial of a product of gamma functions by one of its arguments: itself times digammas."""
    return out * (differences[0] - differences[1])


gamma = special("gamma", "x", "The gamma function.", lambda out, x: out * digamma(x))
rgamma = special("rgamma", "x", "1 / gamma(x), 0 at its poles.", _rgamma_partial)
gammasgn = special("gammasgn", "x", "The sign of gamma(x).", None)
poch = special("poch", "z m", "gamma(z + m) / gamma(z), the rising factorial.",
               lambda out, z, m: _over(out, digamma(z + m), digamma(z)), lambda out, z, m: out * digamma(z + m))
beta = special("beta", "a b", "gamma(a) gamma(b) / gamma(a + b).",
               lambda out, a, b: _over(out, digamma(a), digamma(a + b)),
               lambda out, a, b: _over(out, digamma(b), digamma(a + b)))
betaln = special("betaln", "a b", "The logarithm of |beta(a, b)|.",
                 lambda out, a, b: digamma(a) - digamma(a + b), lambda out, a, b: digamma(b) - digamma(a + b))
binom = special("binom", "n k", "gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)).",
                lambda out, n, k: _over(out, digamma(n + 1), digamma(n - k + 1)),
                lambda out, n, k: _over(out, digamma(n - k + 1), digamma(k + 1)))


def _times_log(x: Value, y: Value) -> Value:
    """x log(y), and 0 where x is."""
    return mulz(x, log(y))


def gamma_density(a: Value, x: Value) -> Value:
    """x^(a - 1) exp(-x) / gamma(a), the derivative of gammainc by x (DLMF 8.8.13)."""
    return exp(_times_log(a - 1, x) - x - lgamma(a))


def _by_shape(a: Value, x: Value) -> Value:
    """The derivative of gammainc by a: minus its derivative by log(x) times how log(x) moves with a along it."""
    return -mulz(exp(a * log(x) - x - lgamma(a)), gamma_slope(a, log(x)))


def beta_density(a: Value, b: Value, x: Value) -> Value:
    """x^(a - 1) (1 - x)^(b - 1) / beta(a, b), the derivative of betainc by x (DLMF 8.17.1)."""
    return exp(_times_log(a - 1, x) + mulz(b - 1, log1p(-x)) - betaln(a, b))


gammainc = special("gammainc", "a x", "The regularized lower incomplete gamma function.",
                   lambda out, a, x: _by_shape(a, x), lambda out, a, x: gamma_density(a, x))
gammaincc = special("gammaincc", "a x", "1 - gammainc(a, x).",
                    lambda out, a, x: -_by_shape(a, x), lambda out, a, x: -gamma_density(a, x))
gammaincinv = inverse("gammaincinv", "a y", "gammainc", 1, "The inverse of gammainc in x.")
gammainccinv = inverse("gammainccinv", "a y", "gammaincc", 1, "The inverse of gammaincc in x.")
betainc = special("betainc", "a b x", "The regularized incomplete beta function.", "?", "?",
                  lambda out, a, b, x: beta_density(a, b, x))
betaincc = special("betaincc", "a b x", "1 - betainc(a, b, x).", "?", "?",
                   lambda out, a, b, x: -beta_density(a, b, x))
betaincinv = inverse("betaincinv", "a b y", "betainc", 2, "The inverse of betainc in x.", unknown="a b")
betainccinv = inverse("betainccinv", "a b y", "betaincc", 2, "The inverse of betaincc in x.", unknown="a b")

# --- error functions and the normal distribution ----------------------------------------------------------------------

ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)


def normal_density(x: Value) -> Value:
    """exp(-x²/2) / sqrt(2 pi)."""
    return exp(x * x * -0.5) / ROOT_TWO_PI


def _dawsn_partial(out: Value, x: Value) -> Value:
    """1 - 2 x dawsn(x) (DLMF 7.10.2), which cancels for large x; there, by the asymptotic series."""
    large = gt(x * x, 400 if x.dtype.itemsize > 4 else 30)
    t = 0.5 / where(large, x * x, like(x, 400))
    series = like(x, 1)
    for k in range(15, 1, -2):
        series = 1 + k * t * series
    return where(large, -t * series, 1 - 2 * x * out)


def _log_ndtr(x: Value) -> Value:
    y = x * -ROOT_HALF
    low = where(lt(x, -1), y, like(x, 1))
    return where(lt(x, -1), log(erfcx(low) * 0.5) - low * low, log1p(erfc(-y) * -0.5))


erfi = special("erfi", "x", "-i erf(i x).", lambda out, x: TWO_OVER_SQRT_PI * exp(x * x))
dawsn = special("dawsn", "x", "Dawson's integral, exp(-x²) times that of exp(t²) up to x.", _dawsn_partial)
erfcinv = special("erfcinv", "y", "The inverse of erfc.", lambda out, y: -exp(out * out) / TWO_OVER_SQRT_PI,
                  parts=lambda y: normal_inverse(y * 0.5) * -ROOT_HALF)
ndtri = special("ndtri", "p", "The inverse of ndtr.", lambda out, p: 1 / normal_density(out), parts=normal_inverse)
ndtri_exp = special("ndtri_exp", "y", "ndtri(exp(y)), accurate for any y < 0.",
                    lambda out, y: exp(y + out * out * 0.5) * ROOT_TWO_PI)
log_ndtr = special("log_ndtr", "x", "The logarithm of ndtr, accurate far below 0.",
                   lambda out, x: 2 * ROOT_HALF / math.sqrt(math.pi) / erfcx(x * -ROOT_HALF), parts=_log_ndtr)
owens_t = special(
    "owens_t", "h a", "Owen's T function.",
    lambda out, h, a: exp(h * h * -0.5) * erf(a * h * ROOT_HALF) * (-0.5 / ROOT_TWO_PI),
    lambda out, h, a: exp(h * h * (1 + a * a) * -0.5) / (2 * math.pi * (1 + a * a)))

# --- distribution functions -------------------------------------------------------------------------------------------


def _binomial(k: Value, n: Value, p: Value) -> Value:
    """Minus the derivative of bdtr by p, whose k and n are whole numbers."""
    k, n = floor(k), f("trunc", n)
    return where(and_(ge(k, 0), lt(k, n)), beta_density(k + 1, n - k, p), like(p, 0))


def _negative_binomial(k: Value, n: Value, p: Value) -> Value:
    return beta_density(f("trunc", n), f("trunc", k) + 1, p)


def _poisson(k: Value, m: Value) -> Value:
    k = floor(k)
    return exp(_times_log(k, m) - m - lgamma(k + 1))


def _student(df: Value, t: Value) -> Value:
    """The density of Student's distribution."""
    return exp((df + 1) * -0.5 * log1p(t * t / df) - betaln(df * 0.5, like(df, 0.5))) / sqrt(df)


def _fisher(dfn: Value, dfd: Value, x: Value) -> Value:
    """The density of the F distribution."""
    share = dfn * x / (dfd + dfn * x)
    return beta_density(dfn * 0.5, dfd * 0.5, share) * share * (1 - share) / x


chdtr = special("chdtr", "v x", "The chi square distribution function.",
                lambda out, v, x: 0.5 * partial("gammainc", 0, v * 0.5, x * 0.5),
                lambda out, v, x: 0.5 * gamma_density(v * 0.5, x * 0.5))
chdtrc = special("chdtrc", "v x", "1 - chdtr(v, x).",
                 lambda out, v, x: -0.5 * partial("gammainc", 0, v * 0.5, x * 0.5),
                 lambda out, v, x: where(lt(x, 0), like(x, 0), -0.5 * gamma_density(v * 0.5, x * 0.5)))
chdtri = inverse("chdtri", "v p", "chdtrc", 1, "The inverse of chdtrc in x.")
chdtriv = inverse("chdtriv", "p x", "chdtr", 0, "The inverse of chdtr in v.")
gdtr = special("gdtr", "a b x", "The gamma distribution function, gammainc(b, a x).",
               lambda out, a, b, x: x * gamma_density(b, a * x), lambda out, a, b, x: _by_shape(b, a * x),
               lambda out, a, b, x: a * gamma_density(b, a * x))
gdtrc = special("gdtrc", "a b x", "1 - gdtr(a, b, x).",
                lambda out, a, b, x: -x * gamma_density(b, a * x), lambda out, a, b, x: -_by_shape(b, a * x),
                lambda out, a, b, x: -a * gamma_density(b, a * x))
gdtria = inverse("gdtria", "p b x", "gdtr", 0, "The inverse of gdtr in a.")
gdtrib = inverse("gdtrib", "a p x", "gdtr", 1, "The inverse of gdtr in b.")
gdtrix = inverse("gdtrix", "a b p", "gdtr", 2, "The inverse of gdtr in x.")
btdtria = inverse("btdtria", "p b x", "betainc", 0, "The inverse of betainc in a.", unknown="p b x")
btdtrib = inverse("btdtrib", "a p x", "betainc", 1, "The inverse of betainc in b.", unknown="a p x")
stdtr = special("stdtr", "df t", "Student's distribution function.", "?", lambda out, df, t: _student(df, t))
stdtrit = inverse("stdtrit", "df p", "stdtr", 1, "The inverse of stdtr in t.", unknown="df")
stdtridf = inverse("stdtridf", "p t", "stdtr", 0, "The inverse of stdtr in df.", unknown="p t")
fdtr = special("fdtr", "dfn dfd x", "The F distribution function.", "?", "?",
               lambda out, a, b, x: _fisher(a, b, x))
fdtrc = special("fdtrc", "dfn dfd x", "1 - fdtr(dfn, dfd, x).", "?", "?", lambda out, a, b, x: -_fisher(a, b, x))
fdtri = inverse("fdtri", "dfn dfd p", "fdtr", 2, "The inverse of fdtr in x.", unknown="dfn dfd")
fdtridfd = inverse("fdtridfd", "dfn p x", "fdtr", 1, "The inverse of fdtr in dfd.", unknown="dfn p x")
pdtr = special("pdtr", "k m", "Poisson's distribution function: at most k, whose fraction is left out, with mean m.",
               None, lambda out, k, m: -_poisson(k, m))
pdtrc = special("pdtrc", "k m", "1 - pdtr(k, m).", None, lambda out, k, m: _poisson(k, m))
pdtri = inverse("pdtri", "k y", "pdtr", 1, "The inverse of pdtr in m.", takes="ld")
pdtrik = inverse("pdtrik", "p m", "pdtr", 0, "The inverse of pdtr in k, which is no whole number.", unknown="p m")
bdtr = special("bdtr", "k n p", "The binomial distribution function: at most k of n, whose fractions are left out.",
               None, None, lambda out, k, n, p: -_binomial(k, n, p), takes="dld")
bdtrc = special("bdtrc", "k n p", "1 - bdtr(k, n, p).", None, None, lambda out, k, n, p: _binomial(k, n, p),
                takes="dld")
bdtri = inverse("bdtri", "k n y", "bdtr", 2, "The inverse of bdtr in p.", takes="dld")
bdtrik = inverse("bdtrik", "y n p", "bdtr", 0, "The inverse of bdtr in k, no whole number.", unknown="y n p")
bdtrin = inverse("bdtrin", "k y p", "bdtr", 1, "The inverse of bdtr in n, no whole number.", unknown="k y p")
nbdtr = special("nbdtr", "k n p", "The negative binomial distribution function: at most k failures before n successes.",
                None, None, lambda out, k, n, p: _negative_binomial(k, n, p), takes="lld")
nbdtrc = special("nbdtrc", "k n p", "1 - nbdtr(k, n, p).", None, None,
                 lambda out, k, n, p: -_negative_binomial(k, n, p), takes="lld")
nbdtri = inverse("nbdtri", "k n y", "nbdtr", 2, "The inverse of nbdtr in p.", takes="lld")
nbdtrik = inverse("nbdtrik", "y n p", "nbdtr", 0, "The inverse of nbdtr in k, no whole number.", unknown="y n p")
nbdtrin = inverse("nbdtrin", "k y p", "nbdtr", 1, "The inverse of nbdtr in n, no whole number.", unknown="k y p")
