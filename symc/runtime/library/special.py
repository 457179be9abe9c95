# mypy: ignore-errors
"""Special functions inside kernels: those that SciPy has only as array functions."""

from __future__ import annotations

import math

from symc.codegen.language.helpers import inlined
from symc.codegen.language.names import INF, NAN, f64, floor, like

#: (2k)! / B(2k), k = 1, 2, ...: of the tail in Euler and Maclaurin's formula.
_TAIL = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
         -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17,
         -7.1661652561756670113e18)


@inlined
def _hurwitz(s, q):
    """The sum of (q + k)**-s over k = 0, 1, ..., for an integer s > 1."""
    if q > 1e8:
        return (1.0 / (s - 1.0) + 0.5 / q) * math.pow(q, 1.0 - s)
    if q <= 0.0 and q == floor(q):
        return INF
    if q != q:
        return q
    total = math.pow(q, -s)
    a = q
    b = total
    k = 0
    while k < 9 or a <= 9.0:
        k += 1
        a += 1.0
        b = math.pow(a, -s)
        total += b
        if abs(b) < 1.1102230246251565e-16 * abs(total):
            return total
    total += b * a / (s - 1.0) - 0.5 * b
    rising = 1.0
    w = 0.0
    for t in _TAIL:
        rising *= s + w
        b /= a
        term = rising * b / t
        total += term
        if abs(term) < 1.1102230246251565e-16 * abs(total):
            return total
        rising *= s + w + 1.0
        b /= a
        w += 2.0
    return total


@inlined
def polygamma(order, x):
    n = f64(order)
    sign = 1.0 if order % 2 == 1 else -1.0
    return like(x, sign * math.gamma(n + 1.0) * _hurwitz(n + 1.0, f64(x)))


@inlined
def zeta(x, q):
    s = f64(x)
    edge = INF if s == 1.0 else NAN
    return like(x, _hurwitz(s, f64(q)) if s > 1.0 else edge)
