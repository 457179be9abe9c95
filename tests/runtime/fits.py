"""Source of the coefficients in `symc/runtime/library`: minimax fits by E. Remez's exchange, in 180 bits.

``python -m tests.runtime.fits NAME ...`` prints those of ``FITS``, and how far each polynomial is from its
function. It needs mpmath.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Real = Any  # a number of mpmath
Function = Callable[[Any, Real], Real]  # of (mpmath, x)
POINTS, ROUNDS, BITS = 24, 14, 180


@dataclass(frozen=True)
class Fit:
    """A polynomial with ``terms`` coefficients, next to ``function`` between ``low`` and ``high``.

    The error is multiplied by ``weight``. ``bits``: precision of the coefficients. ``one_by_one``: they are rounded one
    after another, lowest power first, and the rest is fitted to what is left, which pays where the weight is 0 at 0.
    """

    function: Function
    terms: int
    low: float
    high: float
    weight: Function
    bits: int = 53
    one_by_one: bool = False


def fit(f: Fit) -> tuple[list[Real], Real]:
    """The coefficients, lowest power first, and the greatest weighted error."""
    from mpmath import mp

    with mp.workprec(BITS):
        fixed: list[Real] = []
        while len(fixed) < f.terms:
            found = _remez(mp, f, fixed)
            fixed += [_rounded(mp, c, f.bits) for c in (found[:1] if f.one_by_one else found)]
        low, high = mp.mpf(f.low), mp.mpf(f.high)
        grid = [low + (high - low) * k / 2000 for k in range(2001)]
        return fixed, max(abs((f.function(mp, x) - _value(mp, fixed, x)) * f.weight(mp, x)) for x in grid)


def _rounded(mp: Any, x: Real, bits: int) -> Real:
    with mp.workprec(bits):
        return +x


def _value(mp: Any, coefficients: Sequence[Real], x: Real) -> Real:
    return mp.fsum(c * x**k for k, c in enumerate(coefficients))


def _remez(mp: Any, f: Fit, fixed: Sequence[Real]) -> list[Real]:
    """The coefficients that are not fixed, for which the error alternates between its extremes."""
    powers = range(len(fixed), f.terms)
    n, m = len(powers), POINTS * (len(powers) + 1)
    low, high = mp.mpf(f.low), mp.mpf(f.high)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / m) for k in range(m + 1)]
    weights = [f.weight(mp, x) for x in grid]
    goal = [(f.function(mp, x) - _value(mp, fixed, x)) * w for x, w in zip(grid, weights, strict=True)]
    basis = [[x**p * w for p in powers] for x, w in zip(grid, weights, strict=True)]
    places, best, least = [round(m * k / n) for k in range(n + 1)], [], mp.inf
    for _ in range(ROUNDS):
        matrix = mp.matrix([[*basis[k], (-1) ** i] for i, k in enumerate(places)])
        solved = list(mp.lu_solve(matrix, mp.matrix([goal[k] for k in places])))
        errors = [goal[k] - mp.fdot(solved[:n], basis[k]) for k in range(m + 1)]
        worst = max(map(abs, errors))
        if worst < least:
            best, least = solved[:n], worst
        places = _extremes(errors, n + 1)
        if worst < abs(solved[n]) * mp.mpf("1.02") or len(places) < n + 1:
            break
    return best


def _extremes(errors: Sequence[Real], count: int) -> list[int]:
    """Points where the error is greatest between its changes of sign, and of these the ``count`` neighbours to keep."""
    found: list[int] = []
    for k, e in enumerate(errors):
        if found and (e > 0) == (errors[found[-1]] > 0):
            if abs(e) > abs(errors[found[-1]]):
                found[-1] = k
        else:
            found.append(k)
    size = [abs(errors[k]) for k in found]
    while len(found) > count:
        k = min(range(len(found) - 1), key=lambda i: min(size[i], size[i + 1]))
        if len(found) == count + 1 or k in (0, len(found) - 2):
            k = 0 if size[0] < size[-1] else len(found) - 1
            del found[k], size[k]
        else:
            del found[k : k + 2], size[k : k + 2]
    return found


# --- the functions ----------------------------------------------------------------------------------------------------


def _odd(name: str) -> Function:
    """(f(s) / s - 1) / z of an odd function with f'(0) = 1, in z = s**2."""

    def rest(mp: Any, z: Real) -> Real:
        if z < mp.mpf(10) ** -25:
            return mp.diff(getattr(mp, name), 0, 3) / 6
        s = mp.sqrt(z)
        return (getattr(mp, name)(s) / s - 1) / z

    return rest


def _cosine(mp: Any, z: Real) -> Real:
    """(cos(r) - 1 + z/2) / z**2 in z = r**2."""
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > mp.mpf(10) ** -20 else mp.mpf(1) / 24


def _of_sine(mp: Any, z: Real) -> Real:
    """z r / sin(r) in z = r**2: errors are relative to the sine."""
    return z * mp.sqrt(z) / mp.sin(mp.sqrt(z)) if z > 0 else z


def _of_cosine(mp: Any, z: Real) -> Real:
    return z * z / mp.cos(mp.sqrt(z))


def _zeros_taken_out(mp: Any, x: Real) -> Real:
    """lgamma without its zeros 1 and 2."""
    x = min((mp.mpf(1), mp.mpf(2)), key=lambda at: abs(x - at)) + mp.mpf(10) ** -20 if _near_zero(mp, x) else x
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def _near_zero(mp: Any, x: Real) -> bool:
    return min(abs(x - 1), abs(x - 2)) < mp.mpf(10) ** -20


def _zero_taken_out(mp: Any, x: Real) -> Real:
    """digamma without its zero next to 1.46."""
    zero = mp.mpf("1.4616321449683623412626595423257213284681962040064462951295984")
    return mp.digamma(x) / (x - zero) if abs(x - zero) > mp.mpf(10) ** -20 else mp.psi(1, zero)


def _turned(f: Function) -> Function:
    """In t = (x - 2) / (x + 2)."""
    return lambda mp, t: f(mp, 2 * (1 + t) / (1 - t))


def _stirling(mp: Any, z: Real) -> Real:
    """The part of lgamma beyond (x - 1/2)(log(x) - 1) + (log(2 pi) - 1) / 2, times x, in z = 1/x**2."""
    if z < mp.mpf(10) ** -12:
        return mp.mpf(1) / 12 - z / 360
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - ((x - mp.mpf(1) / 2) * (mp.log(x) - 1) + (mp.log(2 * mp.pi) - 1) / 2)) * x


def _stirling_slope(mp: Any, z: Real) -> Real:
    """(log(x) - 1/(2x) - digamma(x)) / z in z = 1/x**2."""
    if z < mp.mpf(10) ** -12:
        return mp.mpf(1) / 12 - z / 120
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z


def _of_lgamma(mp: Any, z: Real) -> Real:
    """1 / (x lgamma(x)) in z = 1/x**2."""
    return mp.sqrt(z) / mp.loggamma(1 / mp.sqrt(z)) if z > 0 else mp.mpf(0)


def _of_digamma(mp: Any, z: Real) -> Real:
    return z / mp.digamma(1 / mp.sqrt(z)) if z > 0 else mp.mpf(0)


def _erfinv(mp: Any, w: Real) -> Real:
    """erfinv(x) / x in w = -log(1 - x**2): Newton's method on log(erfc(y))."""
    if w < mp.mpf(10) ** -12:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    goal, y = -w - mp.log1p(x), mp.sqrt(w)
    for _ in range(60):
        tail = mp.erfc(y)
        step = (mp.log(tail) - goal) * tail * mp.sqrt(mp.pi) / (2 * mp.exp(-y * y))
        y += step
        if abs(step) < y * mp.mpf(2) ** -140:
            break
    return y / x


def _relative(f: Function) -> Function:
    return lambda mp, x: 1 / f(mp, x)


def _power(mp: Any, r: Real) -> Real:
    """(exp(r) - 1 - r) / r**2."""
    return mp.mpf(1) / 2 + r / 6 if abs(r) < mp.mpf(10) ** -20 else (mp.exp(r) - 1 - r) / r**2


def _shifted(f: Function, center: float, root: bool = False) -> Function:
    """In u = w - center, or sqrt(w) - center."""
    return lambda mp, u: f(mp, (u + center) ** 2 if root else max(u + center, mp.mpf(0)))


def _erfinv_fit(terms: int, center: float, low: float, high: float, root: bool, bits: int = 53) -> Fit:
    f = _shifted(_erfinv, center, root)
    return Fit(f, terms, low - center, high - center, _relative(f), bits)


_QUARTER = 0.785398163397448309 * 1.02
_EIGHTH = 0.1716 * 1.001
_HALF_BIT = 0.346573590279972655 * 1.001
_CUBE: Function = lambda mp, m: m ** (-mp.mpf(1) / 3)
_LGAMMA, _DIGAMMA = _turned(_zeros_taken_out), _turned(_zero_taken_out)


def _of_width(width: int, bits: int, terms: Sequence[int]) -> dict[str, Fit]:
    sine, cosine, arc, area, cube, lgamma, digamma, far_lgamma, far_digamma = terms
    return {
        f"sin{width}": Fit(_odd("sin"), sine, 0, _QUARTER**2, _of_sine, bits, one_by_one=True),
        f"cos{width}": Fit(_cosine, cosine, 0, _QUARTER**2, _of_cosine, bits, one_by_one=True),
        f"atan{width}": Fit(_odd("atan"), arc, 0, _EIGHTH, lambda mp, z: z, bits, one_by_one=True),
        f"atanh{width}": Fit(_odd("atanh"), area, 0, 0.0745, lambda mp, z: z, bits, one_by_one=True),
        f"cbrt{width}": Fit(_CUBE, cube, 1, 2, _relative(_CUBE), bits),
        f"lgamma_near{width}": Fit(_LGAMMA, lgamma, -1 / 3, 1 / 3, _relative(_LGAMMA), bits),
        f"digamma_near{width}": Fit(_DIGAMMA, digamma, -1 / 3, 1 / 3, _relative(_DIGAMMA), bits),
        f"lgamma_far{width}": Fit(_stirling, far_lgamma, 0, 1 / 16, _of_lgamma, bits),
        f"digamma_far{width}": Fit(_stirling_slope, far_digamma, 0, 1 / 16, _of_digamma, bits),
    }


FITS: dict[str, Fit] = {
    **_of_width(64, 53, (6, 6, 10, 9, 7, 21, 22, 8, 8)),
    **_of_width(32, 24, (3, 3, 5, 4, 5, 10, 11, 3, 3)),
    "exp32": Fit(_power, 5, -_HALF_BIT, _HALF_BIT, lambda mp, r: r * r / mp.exp(r), 24, one_by_one=True),
    "erfinv64": _erfinv_fit(24, 3.125, 0, 6.25, root=False),
    "erfinv_far64": _erfinv_fit(20, 3.25, 2.5, 4, root=True),
    "erfinv_farthest64": _erfinv_fit(18, 5.0, 4, 6.05, root=True),
    "erfinv32": _erfinv_fit(10, 2.5, 0, 5, root=False, bits=24),
    "erfinv_far32": _erfinv_fit(10, 3.125, 5**0.5, 4.08, root=True, bits=24),
}


def shown(x: Real, bits: int) -> str:
    """A coefficient as sources have it."""
    import numpy as np

    return repr(float(x)) if bits == 53 else str(np.float32(float(x)))


def main() -> None:
    from mpmath import mp

    for name in sys.argv[1:] or FITS:
        coefficients, error = fit(FITS[name])
        print(f"{name}: error 2**{float(mp.log(error, 2)):.1f}, highest power first")
        for c in reversed(coefficients):
            print("   ", shown(c, FITS[name].bits))


if __name__ == "__main__":
    main()
