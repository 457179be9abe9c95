# mypy: ignore-errors
"""The logarithm of the gamma function and its derivative in f32 and f64, that vectorize (as ``library.math``).

For x >= 4 Stirling's series as an own minimax polynomial in 1/x**2. Between 1 and 4 the quotient by what has the same
zeros, (x - 1)(x - 2) or x - 1.4616..., as a polynomial in (x - 2) / (x + 2), which moves the poles at 0, -1, ... away;
below 1 by the recurrence. Where x <= 0, the C library (lgamma) or the reflection computes the element: a side that
loops vectorize around.

Errors in ulp for x > 0, f64 / f32 (measured, and held by a test): lgamma 2.2 / 2.6, digamma 2.3 / 2.3.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import both, inlined, rarely
from symc.codegen.language.names import INF, NAN, copysign, f32, f64, floor, horner
from symc.runtime.library.math import log_parts

#: What is lost where the number with digamma(x) = 0 is rounded.
ZERO_LOW64, ZERO_LOW32 = 9.549995429965697e-17, f32(1.243815e-08)


@inlined
def lgamma_near64(t):
    """The factor of (x - 1)(x - 2), for t = (x - 2) / (x + 2)."""
    z = t * t
    even = horner(z, 0.0396532015403413, 0.0203358827740867, 0.02845917218031185, 0.031185823482555598,
                  0.035706953227456255, 0.04164043303593856, 0.049933396024395754, 0.06232322453059,
                  0.08293806015340371, 0.1261708032410774, 0.42278433509846713)
    odd = horner(z, -0.043682083322562855, -0.022787197726689554, -0.03221722213859422, -0.03595882377436466,
                 -0.04215946713612086, -0.05083371118715269, -0.06410726116841911, -0.08715639048881577,
                 -0.13897748719634603, -0.40126920669741545)
    return even + t * odd


@inlined
def lgamma_far64(z):
    """The rest of Stirling's series, over 1/x, for z = 1/x**2."""
    return horner(z, -0.007937144216967899, 0.004570802685392643, -0.0018162049269074855, 0.0008382292988171555,
                  -0.0005951631275183811, 0.0007936498752456894, -0.0027777777721040052, 0.08333333333332063)


@inlined
def digamma_near64(t):
    """The factor of the distance from the zero, for t = (x - 2) / (x + 2)."""
    return horner(t, -1.2725883948041825, 1.294486640108397, -0.51803529189802, 0.5029624853493138, -0.7100039829571124,
                  0.711675652533015, -0.6829852898736424, 0.6802345462025804, -0.6856899863008243, 0.682698803917673,
                  -0.6860998848282672, 0.6818440789041808, -0.6870424087169045, 0.6806801062641258, -0.6890177901595164,
                  0.6787474752709342, -0.6950676766140028, 0.6777531349129555, -0.7262245808990766, 0.7010428535500058,
                  -1.0429558187320054, 0.7853075386041053)


@inlined
def digamma_far64(z):
    """The rest of Stirling's series, over 1/x**2, for z = 1/x**2."""
    return horner(z, -0.1048332170932349, 0.05601015466505876, -0.019646605565563826, 0.0075273029130914024,
                  -0.004165674130802408, 0.003968242334516824, -0.008333333265254733, 0.08333333333319136)


@inlined
def lgamma_near32(t):
    """The factor of (x - 1)(x - 2), for t = (x - 2) / (x + 2)."""
    return horner(t, f32(-0.064854465), f32(0.063608855), f32(-0.06264109), f32(0.06091932), f32(-0.08721817),
                  f32(0.082995355), f32(-0.13897654), f32(0.12617), f32(-0.4012692), f32(0.42278433))


@inlined
def lgamma_far32(z):
    """The rest of Stirling's series, over 1/x, for z = 1/x**2."""
    return horner(z, f32(0.00072529534), f32(-0.0027751408), f32(0.0833333))


@inlined
def digamma_near32(t):
    """The factor of the distance from the zero, for t = (x - 2) / (x + 2)."""
    return horner(t, f32(0.92101765), f32(-0.9451073), f32(0.6551512), f32(-0.6584579), f32(0.67979765),
                  f32(-0.6965981), f32(0.6777411), f32(-0.7261937), f32(0.7010428), f32(-1.042956), f32(0.7853075))


@inlined
def digamma_far32(z):
    """The rest of Stirling's series, over 1/x**2, for z = 1/x**2."""
    return horner(z, f32(0.0035171227), f32(-0.00831683), f32(0.08333315))


@rarely
def lgamma_below64(x):
    return INF if x == 0.0 else math.lgamma(x)  # a library reads the bits of a denormal number that is to be a zero


@rarely
def lgamma_below32(x):
    return f32(math.lgamma(f64(x)))


@rarely
def digamma_below64(x):
    """Reflection: digamma(1 - x) - pi / tan(pi x)."""
    if x == 0.0 or floor(x) == x:
        return -copysign(INF, x) if x == 0.0 else NAN
    r = x - floor(x + 0.5)
    a = abs(r)
    c = 1.0 / math.tan(3.141592653589793 * a) if a < 0.25 else math.tan(3.141592653589793 * (0.5 - a))
    return digamma_positive(1.0 - x) - 3.141592653589793 * copysign(c, r)


@rarely
def digamma_below32(x):
    return f32(digamma_below64(f64(x)))


@both
def lgamma(x):
    """The logarithm of abs(gamma(x))."""
    high, low = log_parts(x)
    below = x < 1.0
    u = x + 1.0 if below else x
    zeros = x * (x - 1.0) if below else (x - 1.0) * (x - 2.0)
    near = zeros * lgamma_near64((u - 2.0) / (u + 2.0)) + (-(high + low) if below else 0.0)
    w = 1.0 / x
    rest = 0.4189385332046727 + w * lgamma_far64(w * w)
    far = (x - 0.5) * (high - 1.0) + ((x - 0.5) * low + rest)
    y = far if x >= 4.0 else near
    y = y if x < INF else x
    return lgamma_below64(x) if x <= 0.0 else y


@both
def digamma_positive(x):
    high, low = log_parts(x)
    below = x < 1.0
    u = x + 1.0 if below else x
    w = 1.0 / x
    away = (x - (0.46163214496836225 if below else 1.4616321449683622)) - ZERO_LOW64
    near = away * digamma_near64((u - 2.0) / (u + 2.0)) - (w if below else 0.0)
    z = w * w
    far = high - ((0.5 * w - low) + z * digamma_far64(z))
    y = far if x >= 4.0 else near
    return y if x < INF else x


@both
def digamma(x):
    """The derivative of lgamma."""
    y = digamma_positive(x)
    return digamma_below64(x) if x <= 0.0 else y
