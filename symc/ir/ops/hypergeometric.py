"""Special functions, continued: hypergeometric and elliptic functions, orthogonal polynomials, zeta functions, those of
Mathieu, and small ones.

Partials by parameters are not known. DLMF 15.5, 13.3, 19.4, 22.13 and 18.9 have the others.
"""

from __future__ import annotations

import math

import numpy as np

from symc.ir.facts import Facts
from symc.ir.op import Unknown, all_ops
from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.compare import eq, gt, lt
from symc.ir.ops.elementwise import elementwise, like
from symc.ir.ops.logic import where
from symc.ir.ops.math import cos, exp, log, log1p, rint, sin, sqrt
from symc.ir.ops.special import WHOLE, f, inverse, of_order, partial, registered, several, some_samples, special
from symc.ir.value import Value

_BEFORE = all_ops()

# --- hypergeometric functions -----------------------------------------------------------------------------------------

special("hyp2f1", "a b c z", "Gauss' hypergeometric function.", "?", "?", "?",
        lambda out, a, b, c, z: a * b / c * f("hyp2f1", a + 1, b + 1, c + 1, z), least=-30)
special("hyp1f1", "a b x", "Kummer's confluent hypergeometric function M.", "?", "?",
        lambda out, a, b, x: a / b * f("hyp1f1", a + 1, b + 1, x), least=-30)
special("hyperu", "a b x", "The confluent hypergeometric function U.", "?", "?",
        lambda out, a, b, x: -a * f("hyperu", a + 1, b + 1, x), least=-30)
special("hyp0f1", "v z", "The confluent hypergeometric limit function.", "?",
        lambda out, v, z: f("hyp0f1", v + 1, z) / v)

# --- elliptic integrals and functions ---------------------------------------------------------------------------------


def _hyp2f1(a: float, b: float, c: float, z: Value) -> Value:
    return f("hyp2f1", like(z, a), like(z, b), like(z, c), z)


def _sine_part(phi: Value, m: Value) -> Value:
    """The integral of sin² / sqrt(1 - m sin²) up to phi, by Carlson's (DLMF 19.25.10 and .13), a period apart."""
    turns = rint(phi / math.pi)
    r = phi - turns * math.pi
    s, c = sin(r), cos(r)
    whole = f("elliprd", like(m, 0), 1 - m, like(m, 1)) / 3
    return 2 * turns * whole + s * s * s * f("elliprd", c * c, 1 - m * s * s, like(m, 1)) / 3


def _root(phi: Value, m: Value) -> Value:
    s = sin(phi)
    return sqrt(1 - m * s * s)


def _ellipkinc_partial(out: Value, phi: Value, m: Value) -> Value:
    """DLMF 19.4.5, without the differences that cancel for small m."""
    flat = sin(phi) * cos(phi) / _root(phi, m)
    return (out - _sine_part(phi, m) - flat) / (2 * (1 - m))


special("ellipk", "m", "The complete elliptic integral of the first kind.",
        lambda out, m: _hyp2f1(1.5, 1.5, 2.0, m) * (math.pi / 8))
special("ellipkm1", "p", "ellipk(1 - p), accurate near p = 0.",
        lambda out, p: _hyp2f1(1.5, 1.5, 2.0, 1 - p) * (-math.pi / 8))
special("ellipe", "m", "The complete elliptic integral of the second kind.",
        lambda out, m: _hyp2f1(0.5, 1.5, 2.0, m) * (-math.pi / 8))
special("ellipkinc", "phi m", "The incomplete elliptic integral of the first kind.",
        lambda out, phi, m: 1 / _root(phi, m), _ellipkinc_partial)
special("ellipeinc", "phi m", "The incomplete elliptic integral of the second kind.",
        lambda out, phi, m: _root(phi, m), lambda out, phi, m: -0.5 * _sine_part(phi, m))


def _j(k: int, u: Value, m: Value) -> Value:
    """A result of ellipj: sn, cn, dn, and the amplitude."""
    return f(f"ellipj_{k}", u, m)


def _by_m(u: Value, m: Value) -> Value:
    """The partial of the amplitude by m: along it ellipkinc stays the same."""
    return -partial("ellipkinc", 1, _j(3, u, m), m) * _j(2, u, m)


several("ellipj", "u m", "Jacobi's elliptic functions: sn, cn, dn, and the amplitude.",
        [lambda out, u, m: _j(1, u, m) * _j(2, u, m), lambda out, u, m: _j(1, u, m) * _by_m(u, m)],
        [lambda out, u, m: -_j(0, u, m) * _j(2, u, m), lambda out, u, m: -_j(0, u, m) * _by_m(u, m)],
        [lambda out, u, m: -m * _j(0, u, m) * _j(1, u, m),
         lambda out, u, m: -_j(0, u, m) * (_j(0, u, m) + 2 * m * _j(1, u, m) * _by_m(u, m)) / (2 * out)],
        [lambda out, u, m: _j(2, u, m), lambda out, u, m: _by_m(u, m)])
special("elliprf", "x y z", "Carlson's symmetric elliptic integral of the first kind.",
        lambda out, x, y, z: f("elliprd", y, z, x) / -6, lambda out, x, y, z: f("elliprd", x, z, y) / -6,
        lambda out, x, y, z: f("elliprd", x, y, z) / -6)
special("elliprg", "x y z", "Carlson's symmetric elliptic integral of the second kind.",
        lambda out, x, y, z: (f("elliprf", x, y, z) - x * f("elliprd", y, z, x) / 3) / 4,
        lambda out, x, y, z: (f("elliprf", x, y, z) - y * f("elliprd", x, z, y) / 3) / 4,
        lambda out, x, y, z: (f("elliprf", x, y, z) - z * f("elliprd", x, y, z) / 3) / 4)
special("elliprc", "x y", "Carlson's degenerate elliptic integral, elliprf(x, y, y).",
        lambda out, x, y: f("elliprd", y, y, x) / -6, lambda out, x, y: f("elliprd", x, y, y) / -3)
special("elliprd", "x y z", "Carlson's symmetric elliptic integral of the second kind, of degree -3/2.", "?", "?", "?")
special("elliprj", "x y z p", "Carlson's symmetric elliptic integral of the third kind.", "?", "?", "?", "?")


def _agm_partial(out: Value, a: Value, b: Value) -> Value:
    """Partial of pi/4 (a + b) / ellipk(r²), r = (a - b) / (a + b), by a (DLMF 19.8.6)."""
    s = a + b
    r = (a - b) / s
    k = f("ellipk", r * r)
    return (math.pi / 4) / k * (1 - 4 * b * r / s * partial("ellipk", 0, r * r) / k)


special("agm", "a b", "The arithmetic-geometric mean.", _agm_partial, lambda out, a, b: _agm_partial(out, b, a))

# --- orthogonal polynomials -------------------------------------------------------------------------------------------


def _polynomial(out: Value, name: str, n: Value, *more: float | Value) -> Value:
    """A polynomial one degree below that of ``out``, 0 below degree 0; by the op of whole degrees, if ``out`` is."""
    name += WHOLE if out.op.name.endswith(WHOLE) else ""
    last = next(x for x in reversed(more) if isinstance(x, Value))
    rest = [x if isinstance(x, Value) else like(last, x) for x in more]
    below = eq(n, 0)
    return where(below, like(last, 0), f(name, where(below, n, n - 1), *rest))


of_order("eval_legendre", "n x", "The Legendre polynomial of degree n.", "?",
         lambda out, n, x: _polynomial(out, "eval_gegenbauer", n, 1.5, x))
of_order("eval_chebyt", "n x", "The Chebyshev polynomial of the first kind.", "?",
         lambda out, n, x: n * _polynomial(out, "eval_chebyu", n, x))
of_order("eval_chebyu", "n x", "The Chebyshev polynomial of the second kind.", "?",
         lambda out, n, x: 2 * _polynomial(out, "eval_gegenbauer", n, 2.0, x))
of_order("eval_chebyc", "n x", "The Chebyshev polynomial 2 T(x/2).", "?",
         lambda out, n, x: n * _polynomial(out, "eval_chebys", n, x))
of_order("eval_chebys", "n x", "The Chebyshev polynomial U(x/2).", "?",
         lambda out, n, x: _polynomial(out, "eval_gegenbauer", n, 2.0, x * 0.5))
of_order("eval_sh_legendre", "n x", "The Legendre polynomial of 2 x - 1.", "?",
         lambda out, n, x: 2 * _polynomial(out, "eval_gegenbauer", n, 1.5, 2 * x - 1))
of_order("eval_sh_chebyt", "n x", "The Chebyshev polynomial of the first kind of 2 x - 1.", "?",
         lambda out, n, x: 2 * n * _polynomial(out, "eval_chebyu", n, 2 * x - 1))
of_order("eval_sh_chebyu", "n x", "The Chebyshev polynomial of the second kind of 2 x - 1.", "?",
         lambda out, n, x: 4 * _polynomial(out, "eval_gegenbauer", n, 2.0, 2 * x - 1))
of_order("eval_laguerre", "n x", "The Laguerre polynomial.", "?",
         lambda out, n, x: -_polynomial(out, "eval_genlaguerre", n, 1.0, x))
of_order("eval_genlaguerre", "n alpha x", "The generalized Laguerre polynomial.", "?", "?",
         lambda out, n, a, x: -_polynomial(out, "eval_genlaguerre", n, a + 1, x))
of_order("eval_gegenbauer", "n alpha x", "The Gegenbauer polynomial.", "?", "?",
         lambda out, n, a, x: 2 * a * _polynomial(out, "eval_gegenbauer", n, a + 1, x))
of_order("eval_jacobi", "n alpha beta x", "The Jacobi polynomial.", "?", "?", "?",
         lambda out, n, a, b, x: 0.5 * (n + a + b + 1) * _polynomial(out, "eval_jacobi", n, a + 1, b + 1, x))
of_order("eval_sh_jacobi", "n p q x", "The shifted Jacobi polynomial.", "?", "?", "?",
         lambda out, n, p, q, x: (n + p) / f("binom", 2 * n + p - 1, n)
         * _polynomial(out, "eval_jacobi", n, p - q + 1, q, 2 * x - 1))
special("eval_hermite", "n x", "The physicists' Hermite polynomial.", "?",
        lambda out, n, x: 2 * n * _polynomial(out, "eval_hermite", n, x), takes="ld", least=-30)
special("eval_hermitenorm", "n x", "The probabilists' Hermite polynomial.", "?",
        lambda out, n, x: n * _polynomial(out, "eval_hermitenorm", n, x), takes="ld", least=-30)
special("lpmv", "m v x", "The associated Legendre function of an integer order.", "?", "?",
        lambda out, m, v, x: (v * x * out - (v + m) * f("lpmv", m, v - 1, x)) / (x * x - 1), least=-30)

# --- zeta functions, goodness of fit, and others ----------------------------------------------------------------------


def _zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    import scipy.special

    found = scipy.special.zeta(x.astype(np.float64), q.astype(np.float64))
    return np.where(np.isnan(x) | np.isnan(q), np.nan, found)  # SciPy has infinities where q is a pole and x nan


def _exprel_partial(out: Value, x: Value) -> Value:
    """The integral of t exp(t x) from 0 to 1: (exp(x) - exprel(x)) / x, or near 0 its series."""
    small = lt(abs_(x), 0.5)
    near, far = where(small, x, like(x, 0)), where(small, like(x, 1), x)
    series = like(x, 0)
    for k in range(13, -1, -1):
        series = series * near + 1 / (math.factorial(k) * (k + 2))
    return where(small, series, (exp(far) - where(small, like(x, 0), out)) / far)


def _log_difference(u: Value) -> Value:
    """(u / (1 + u) - log(1 + u)) / u², or near 0 its series."""
    small = lt(abs_(u), 0.1)
    near, far = where(small, u, like(u, 0)), where(small, like(u, 1), u)
    series = like(u, 0)
    for k in range(17, -1, -1):
        series = series * near + (k + 1) / (k + 2) * (-1) ** (k + 1)
    return where(small, series, (far / (1 + far) - log1p(far)) / (far * far))


def _kolmogorov_partial(out: Value, y: Value) -> Value:
    """Density by either series of the distribution, each where it converges fast (DLMF 20.2.3 and 20.7.32)."""
    large = gt(y, 1)
    far, near = where(large, y, like(y, 1)), where(large, like(y, 1), y)
    tail, head = like(y, 0), like(y, 0)
    for k in range(1, 5):
        tail = tail + exp(far * far * (-2.0 * k * k)) * ((-1) ** k * k * k)
        c = (2 * k - 1) ** 2 * math.pi**2 / 8 / (near * near)
        head = head + exp(-c) * (1 - 2 * c)
    head = where(gt(near, 0.05), head * math.sqrt(2 * math.pi) / (near * near), like(y, 0))
    return where(large, 8 * far * tail, head)


def _tukey(out: Value, x: Value, shape: Value) -> Value:
    """1 / (p^(lambda - 1) + (1 - p)^(lambda - 1)), the density at the quantile of p."""
    density = 1 / (f("pow", out, shape - 1) + f("pow", 1 - out, shape - 1))
    return where(gt(out * (1 - out), 0), density, like(x, 0))


zeta = elementwise("zeta", 2, "f", _zeta, (Unknown("x"), lambda out, x, q: -x * f("zeta", x + 1, q)), singular=True,
                   doc="The sum of (k + y)**-x over k = 0, 1, ...: Hurwitz' zeta function.",
                   facts=Facts(kernel="scalar", wild=True), sampled=lambda: some_samples(2, -30))
special("zetac", "x", "Riemann's zeta function minus 1.", "?")
special("spence", "z", "Spence's function, the dilogarithm of 1 - z.",
        lambda out, z: where(eq(z, 1), like(z, -1), log(z) / where(eq(z, 1), like(z, 1), 1 - z)))
special("wrightomega", "z", "Wright's omega function, w + log(w) = z.", lambda out, z: out / (1 + out))
special("kolmogorov", "y", "The survival function of Kolmogorov's distribution.", _kolmogorov_partial)
inverse("kolmogi", "p", "kolmogorov", 0, "The inverse of kolmogorov.")
special("smirnov", "n d", "The survival function of Smirnov's one-sided statistic.", "?", "?", takes="ld", least=-30)
inverse("smirnovi", "n p", "smirnov", 1, "The inverse of smirnov.", unknown="n p", takes="ld")
special("tklmbda", "x lmbda", "Tukey's lambda distribution function.", _tukey, "?")
special("voigt_profile", "x sigma gamma", "Voigt's profile.", "?", "?", "?")
special("exprel", "x", "(exp(x) - 1) / x, and 1 at 0.", _exprel_partial)
special("exp10", "x", "10**x.", lambda out, x: out * math.log(10))
special("cosm1", "x", "cos(x) - 1, accurate near 0.", lambda out, x: -sin(x))
special("powm1", "x y", "x**y - 1, accurate near 0.", lambda out, x, y: y * f("pow", x, y - 1),
        lambda out, x, y: (out + 1) * log(x))
special("sindg", "x", "The sine of x degrees.", lambda out, x: f("cosdg", x) * (math.pi / 180))
special("cosdg", "x", "The cosine of x degrees.", lambda out, x: f("sindg", x) * (-math.pi / 180))
special("tandg", "x", "The tangent of x degrees.", lambda out, x: (1 + out * out) * (math.pi / 180))
special("cotdg", "x", "The cotangent of x degrees.", lambda out, x: (1 + out * out) * (-math.pi / 180))
special("boxcox", "x lmbda", "The Box-Cox transformation, (x**lmbda - 1) / lmbda.",
        lambda out, x, l: f("pow", x, l - 1),
        lambda out, x, l: log(x) * log(x) * partial("exprel", 0, l * log(x)))
special("boxcox1p", "x lmbda", "boxcox(1 + x, lmbda).", lambda out, x, l: f("pow", 1 + x, l - 1),
        lambda out, x, l: log1p(x) * log1p(x) * partial("exprel", 0, l * log1p(x)))
special("inv_boxcox", "y lmbda", "The inverse of boxcox in x.", lambda out, y, l: out / (1 + l * y),
        lambda out, y, l: out * y * y * _log_difference(l * y))
special("inv_boxcox1p", "y lmbda", "The inverse of boxcox1p in x.", lambda out, y, l: (1 + out) / (1 + l * y),
        lambda out, y, l: (1 + out) * y * y * _log_difference(l * y))

# --- noncentral distributions -----------------------------------------------------------------------------------------


def _noncentral_density(x: Value, df: Value, nc: Value) -> Value:
    """Density of the noncentral chi square distribution, by ive (DLMF 10.25.2)."""
    root, centre = sqrt(x), sqrt(nc)
    scale = exp((root - centre) * (root - centre) * -0.5 + (df * 0.25 - 0.5) * log(x / nc))
    return 0.5 * scale * f("ive", df * 0.5 - 1, root * centre)


special("chndtr", "x df nc", "The noncentral chi square distribution function.",
        lambda out, x, df, nc: _noncentral_density(x, df, nc), "?",
        lambda out, x, df, nc: -_noncentral_density(x, df + 2, nc))
inverse("chndtrix", "p df nc", "chndtr", 0, "The inverse of chndtr in x.", unknown="df")
inverse("chndtridf", "x p nc", "chndtr", 1, "The inverse of chndtr in df.", unknown="x p nc")
inverse("chndtrinc", "x df p", "chndtr", 2, "The inverse of chndtr in nc.", unknown="df")
for _name, _operands, _inverse in (
        ("ncfdtr", "dfn dfd nc f", {"ncfdtri": 3, "ncfdtridfd": 1, "ncfdtridfn": 0, "ncfdtrinc": 2}),
        ("nctdtr", "df nc t", {"nctdtrit": 2, "nctdtridf": 0, "nctdtrinc": 1})):
    _names = _operands.split()
    special(_name, _operands, f"The noncentral {_name[2].upper()} distribution function.", *"?" * len(_names))
    for _of, _k in _inverse.items():
        _level = " ".join([*_names[:_k], "p", *_names[_k + 1:]])
        inverse(_of, _level, _name, _k, f"The inverse of {_name} in {_names[_k]}.", unknown=_level)
special("nrdtrimn", "p std x", "The mean of a normal distribution whose distribution function at x is p.",
        lambda out, p, std, x: -std * partial("ndtri", 0, p), lambda out, p, std, x: -f("ndtri", p),
        lambda out, p, std, x: like(x, 1))
special("nrdtrisd", "mn p x", "The standard deviation of a normal distribution whose distribution function at x is p.",
        lambda out, mn, p, x: -1 / f("ndtri", p),
        lambda out, mn, p, x: -out / f("ndtri", p) * partial("ndtri", 0, p),
        lambda out, mn, p, x: 1 / f("ndtri", p))

# --- functions of Mathieu ----------------------------------------------------------------------------

special("mathieu_a", "m q", "The characteristic value of even Mathieu functions.", "?", "?", least=-3)
special("mathieu_b", "m q", "The characteristic value of odd Mathieu functions.", "?", "?", least=-3)
for _name in ("mathieu_cem", "mathieu_sem", "mathieu_modcem1", "mathieu_modcem2", "mathieu_modsem1",
              "mathieu_modsem2"):
    several(_name, "m q x", f"SciPy's {_name}: a Mathieu function and its derivative.", "???", "???", takes="fff",
            least=0)

globals().update(registered(_BEFORE))
