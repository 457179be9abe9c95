"""Special functions, continued: those of Bessel, Airy, Kelvin and Struve, exponential and trigonometric integrals.

Partials by orders are not known. DLMF 10.6, 10.29, 10.51, 9.2, 11.4, 6.2 and 7.2 have the others.
"""

from __future__ import annotations

import math

from symc.ir.op import all_ops
from symc.ir.ops.arithmetic import maximum, neg, sign
from symc.ir.ops.compare import eq, ne
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
from symc.ir.ops.math import cos, cosh, exp, sin, sinh, spherical_j0, sqrt
from symc.ir.ops.special import Partial, f, registered, several, special
from symc.ir.value import Value

_BEFORE = all_ops()

# --- Bessel functions -------------------------------------------------------------------------------------------------


def _by_neighbours(name: str, before: float, after: float) -> Partial:
    """Partial of functions of an order, by those of the orders before and after."""
    return lambda out, v, x: before * f(name, v - 1, x) + after * f(name, v + 1, x)


def _spherical(name: str, before: int, after: int) -> Partial:
    """The same of a spherical function, whose order is 0 or more (DLMF 10.51.2, 10.51.5)."""

    def slope(out: Value, n: Value, x: Value) -> Value:
        below = where(eq(n, 0), like(x, 0), before * n * f(name, where(eq(n, 0), n, n - 1), x))
        return (below + after * (n + 1) * f(name, n + 1, x)) / (2 * n + 1)

    return slope


def _first(name: str, second: str, plus: float) -> Partial:
    """Partial of a function of order 1 by those of orders 0 and 2: half their difference, or plus their sum."""
    zero, two = name[0] + "0" + name[2:], second
    return lambda out, x: 0.5 * (f(zero, x) + plus * f(two, like(x, 2), x))


special("j0", "x", "The Bessel function of the first kind of order 0.", lambda out, x: -f("j1", x))
special("j1", "x", "The Bessel function of the first kind of order 1.", _first("j1", "jv", -1))
special("y0", "x", "The Bessel function of the second kind of order 0.", lambda out, x: -f("y1", x))
special("y1", "x", "The Bessel function of the second kind of order 1.", _first("y1", "yv", -1))
special("i0", "x", "The modified Bessel function of the first kind of order 0.", lambda out, x: f("i1", x))
special("i1", "x", "The modified Bessel function of the first kind of order 1.", _first("i1", "iv", 1))
special("i0e", "x", "exp(-|x|) i0(x).", lambda out, x: f("i1e", x) - sign(x) * out)
special("i1e", "x", "exp(-|x|) i1(x).", lambda out, x: 0.5 * (f("i0e", x) + f("ive", like(x, 2), x)) - sign(x) * out)
special("k0", "x", "The modified Bessel function of the second kind of order 0.", lambda out, x: -f("k1", x))
special("k1", "x", "The modified Bessel function of the second kind of order 1.", lambda out, x: -f("k0", x) - out / x)
special("k0e", "x", "exp(x) k0(x).", lambda out, x: out - f("k1e", x))
special("k1e", "x", "exp(x) k1(x).", lambda out, x: out - f("k0e", x) - out / x)
special("jv", "v x", "The Bessel function of the first kind.", "?", _by_neighbours("jv", 0.5, -0.5))
special("jve", "v x", "jv of real numbers.", "?", _by_neighbours("jve", 0.5, -0.5))
special("yv", "v x", "The Bessel function of the second kind.", "?", _by_neighbours("yv", 0.5, -0.5))
special("yve", "v x", "yv of real numbers.", "?", _by_neighbours("yve", 0.5, -0.5))
special("iv", "v x", "The modified Bessel function of the first kind.", "?", _by_neighbours("iv", 0.5, 0.5))
special("ive", "v x", "exp(-|x|) iv(v, x).", "?",
        lambda out, v, x: 0.5 * (f("ive", v - 1, x) + f("ive", v + 1, x)) - sign(x) * out)
special("kv", "v x", "The modified Bessel function of the second kind.", "?", _by_neighbours("kv", -0.5, -0.5))
special("kve", "v x", "exp(x) kv(v, x).", "?",
        lambda out, v, x: out - 0.5 * (f("kve", v - 1, x) + f("kve", v + 1, x)))
special("yn", "n x", "The Bessel function of the second kind of a whole order.", "?", _by_neighbours("yn", 0.5, -0.5),
        takes="ld", least=-30)
special("kn", "n x", "The modified Bessel function of the second kind of a whole order.", "?",
        _by_neighbours("kn", -0.5, -0.5), takes="ld", least=-30)
special("spherical_jn", "n x", "The spherical Bessel function of the first kind.", "?",
        _spherical("spherical_jn", 1, -1), takes="ldo", least=0)
special("spherical_yn", "n x", "The spherical Bessel function of the second kind.", "?",
        _spherical("spherical_yn", 1, -1), takes="ldo", least=0)
special("spherical_in", "n x", "The modified spherical Bessel function of the first kind.", "?",
        _spherical("spherical_in", 1, 1), takes="ldo", least=0)
special("spherical_kn", "n x", "The modified spherical Bessel function of the second kind.", "?",
        _spherical("spherical_kn", -1, -1), takes="ldo", least=0)
special("besselpoly", "a lmb nu", "The integral of x**lmb jv(nu, 2 a x) from 0 to 1.", "?", "?", "?")
special("wright_bessel", "a b x", "Wright's generalized Bessel function.", "?", "?",
        lambda out, a, b, x: f("wright_bessel", a, a + b, x))
special("log_wright_bessel", "a b x", "The logarithm of wright_bessel.", "?", "?",
        lambda out, a, b, x: exp(f("log_wright_bessel", a, a + b, x) - out))

# --- Struve's, Kelvin's and Airy's functions, parabolic cylinders -----------------------------------------------------


def _not_at_zero(x: Value, quotient: Value) -> Value:
    """A quotient by x that is 0 where x is."""
    return where(eq(x, 0), like(x, 0), quotient)


def _kelvin(name: str, other: str, sign_: float) -> None:
    """A function y and its derivative: y'' = -y'/x -+ the other one (of x² y'' + x y' = i x² y, DLMF 10.61.3)."""
    special(name, "x", f"Kelvin's function {name}.", lambda out, x: f(name + "p", x))
    special(name + "p", "x", f"The derivative of {name}.",
            lambda out, x: sign_ * f(other, x) - _not_at_zero(x, out / where(eq(x, 0), like(x, 1), x)))


special("struve", "v x", "The Struve function.", "?", lambda out, v, x: f("struve", v - 1, x) - v * out / x)
special("modstruve", "v x", "The modified Struve function.", "?",
        lambda out, v, x: f("modstruve", v - 1, x) - v * out / x)
special("itstruve0", "x", "The integral of struve(0, t) up to x.", lambda out, x: f("struve", like(x, 0), x))
special("it2struve0", "x", "The integral of struve(0, t) / t from x on.",
        lambda out, x: -f("struve", like(x, 0), x) / x)
special("itmodstruve0", "x", "The integral of modstruve(0, t) up to x.",
        lambda out, x: f("modstruve", like(x, 0), x))
several("itj0y0", "x", "the integrals of j0 and y0 from 0 to x.", [lambda out, x: f("j0", x)],
        [lambda out, x: f("y0", x)])
several("it2j0y0", "x", "the integrals of (1 - j0(t)) / t up to x, and of y0(t) / t from x on.",
        [lambda out, x: (1 - f("j0", x)) / x], [lambda out, x: -f("y0", x) / x])
several("iti0k0", "x", "the integrals of i0 and k0 from 0 to x.", [lambda out, x: f("i0", x)],
        [lambda out, x: f("k0", x)])
several("it2i0k0", "x", "the integrals of (i0(t) - 1) / t up to x, and of k0(t) / t from x on.",
        [lambda out, x: (f("i0", x) - 1) / x], [lambda out, x: -f("k0", x) / x])
_kelvin("ber", "bei", -1)
_kelvin("bei", "ber", 1)
_kelvin("ker", "kei", -1)
_kelvin("kei", "ker", 1)
several("airy", "x", "Airy's functions: Ai, its derivative, Bi and its derivative.",
        [lambda out, x: f("airy_1", x)], [lambda out, x: x * f("airy_0", x)], [lambda out, x: f("airy_3", x)],
        [lambda out, x: x * f("airy_2", x)])


def _growth(x: Value) -> Value:
    """Derivative of the exponent in the scale of airye: sqrt(x), of Bi where x > 0 alone."""
    return sqrt(maximum(x, like(x, 0)))


several("airye", "x", "Airy's functions, scaled: by exp(2/3 x**1.5), and Bi and its derivative by its inverse.",
        [lambda out, x: f("airye_1", x) + sqrt(x) * out], [lambda out, x: x * f("airye_0", x) + sqrt(x) * out],
        [lambda out, x: f("airye_3", x) - _growth(x) * out],
        [lambda out, x: x * f("airye_2", x) - _growth(x) * out])
several("itairy", "x", "the integrals of Ai(t), Bi(t), Ai(-t) and Bi(-t) from 0 to x.",
        [lambda out, x: f("airy_0", x)], [lambda out, x: f("airy_2", x)], [lambda out, x: f("airy_0", -x)],
        [lambda out, x: f("airy_2", -x)])
several("pbdv", "v x", "Whittaker's parabolic cylinder function D and its derivative.",
        ["?", lambda out, v, x: f("pbdv_1", v, x)],
        ["?", lambda out, v, x: (x * x / 4 - v - 0.5) * f("pbdv_0", v, x)], least=-30)
several("pbvv", "v x", "the parabolic cylinder function V and its derivative.",
        ["?", lambda out, v, x: f("pbvv_1", v, x)],
        ["?", lambda out, v, x: (x * x / 4 - v - 0.5) * f("pbvv_0", v, x)], least=-30)
several("pbwa", "a x", "the parabolic cylinder function W and its derivative.",
        ["?", lambda out, a, x: f("pbwa_1", a, x)],
        ["?", lambda out, a, x: (a - x * x / 4) * f("pbwa_0", a, x)], least=-30)

# --- integrals of exponentials, sines and cosines ---------------------------------------------------------------------


def _expn_partial(out: Value, n: Value, x: Value) -> Value:
    """-expn(n - 1, x), and of expn(0, x) = exp(-x) / x its own (DLMF 8.19.13)."""
    positive = ne(n, 0)
    return -where(positive, f("expn", where(positive, n - 1, n), x), (1 + 1 / x) * out)


special("expi", "x", "The exponential integral Ei.", lambda out, x: exp(x) / x)
special("exp1", "x", "The exponential integral E1.", lambda out, x: neg(exp(-x) / x))
special("expn", "n x", "The exponential integral En.", "?", _expn_partial, takes="ld", least=-30)
several("sici", "x", "the sine and the cosine integral.", [lambda out, x: spherical_j0(x)],
        [lambda out, x: cos(x) / x])
several("shichi", "x", "the hyperbolic sine and cosine integrals.",
        [lambda out, x: where(eq(x, 0), like(x, 1), sinh(x) / where(eq(x, 0), like(x, 1), x))],
        [lambda out, x: cosh(x) / x])
several("fresnel", "x", "the Fresnel integrals S and C.", [lambda out, x: sin(x * x * (math.pi / 2))],
        [lambda out, x: cos(x * x * (math.pi / 2))])

globals().update(registered(_BEFORE))
