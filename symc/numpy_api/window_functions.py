"""Windows of signals: weights that fall off to both ends. The number of weights may be symbolic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symc.errors import DTypeError
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor, convert, inexact_dtype
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, user_size
from symc.tensors.tensor import Tensor


def _from_middle(M: Any, name: str) -> Tensor:
    """M places from -1 to 1; 0 alone for one."""
    n = as_size(M, f"{name}: the number of weights")
    n = max(n, 0) if isinstance(n, int) else n
    size = user_size(n)
    return API["divide"](2 * API["arange"](size) + (1 - size), API["maximum"](size - 1, 1))


@public()
def bartlett(M: Any) -> Tensor:
    """A triangle."""
    return 1 - API["abs"](_from_middle(M, "bartlett"))


@public()
def hanning(M: Any) -> Tensor:
    """A raised cosine."""
    return 0.5 + 0.5 * API["cos"](math.pi * _from_middle(M, "hanning"))


@public()
def hamming(M: Any) -> Tensor:
    """A raised cosine that does not reach 0."""
    return 0.54 + 0.46 * API["cos"](math.pi * _from_middle(M, "hamming"))


@public()
def blackman(M: Any) -> Tensor:
    """A sum of two cosines."""
    t = math.pi * _from_middle(M, "blackman")
    return 0.42 + 0.5 * API["cos"](t) + 0.08 * API["cos"](2 * t)


@public()
def kaiser(M: Any, beta: Any) -> Tensor:
    """A Bessel function of half a circle; ``beta`` says how narrow."""
    t = _from_middle(M, "kaiser")
    beta = API["multiply"](beta, API["ones"](()))
    return API["divide"](i0(API["multiply"](beta, API["sqrt"](1 - API["square"](t)))), i0(beta))


#: Of polynomials for exp(-x) * i0(x), the lowest power first: up to 8 in x/4 - 1, beyond in 16/x - 1 for sqrt(x) times
#: it. They are Chebyshev's interpolations, in powers; by Horner's scheme they are right to two units in the last place.
_SMALL = (
    0.2070019212239867, -0.11300432688620536, 0.09451562853995103, -0.08904344136077755, 0.08734341617552313,
    -0.08496338091541732, 0.07927522590716347, -0.06954119563168235, 0.05677703201991695, -0.0429859492954222,
    0.030177912022978357, -0.019682655791721182, 0.011960077907026221, -0.006792394790940051, 0.003617126448897043,
    -0.0018119030567637056, 0.0008563152748272306, -0.00038286526498299526, 0.00016240542162878106,
    -6.556805964401791e-05, 2.520232727107692e-05, -9.183742586936203e-06, 3.2293390826404927e-06,
    -1.142045323881917e-06, 3.675842926555429e-07, -8.591406444264668e-08, 2.6265363151970112e-08,
    -1.6316042856792757e-08, 4.470516727511741e-09,
)
_LARGE = (
    0.4021765094450081, 0.0033605519836677504, 0.00013621607438984735, 1.1143033800708978e-05,
    1.4838476651250266e-06, 2.973596046562712e-07, 8.872034383314144e-08, 3.932889375114634e-08,
    2.1566251453104354e-08, 7.534355843803342e-09, -6.849338188286763e-09, -1.3326094405766385e-08,
    -5.0381064879033035e-09, 7.335968710816151e-09, 6.560138746917092e-09, -3.1346276429240754e-09,
    -4.5755534245350156e-09, 1.105055879442432e-09, 2.196892137882931e-09, -2.803381997886989e-10,
    -6.633287112547212e-10, 3.629355229718713e-11, 9.365086892818422e-11,
)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    found: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        found = x * found + c
    return found


@public(np.i0)
def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
    t = as_tensor(x)
    if t.dtype.kind == "c":
        raise DTypeError("i0 is not defined for complex numbers", values=rows([t]))
    t = API["abs"](Tensor(convert(t.value, inexact_dtype(t.dtype))))
    small = API["less_equal"](t, 8)
    far = API["where"](small, 9.0, t)
    near = API["where"](small, t, 1.0)
    scaled = API["where"](small, _polynomial(near / 4 - 1, _SMALL),
                           _polynomial(16 / far - 1, _LARGE) / API["sqrt"](far))
    return API["multiply"](API["exp"](t), scaled)
