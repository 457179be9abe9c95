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


#: Of Chebyshev series for exp(-x) * i0(x): up to 8 in x/2 - 2, beyond in 32/x - 2 for sqrt(x) times it (Cephes).
_SMALL = (
    -4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16, 1.71539128555513303061e-15,
    -1.16853328779934516808e-14, 7.67618549860493561688e-14, -4.85644678311192946090e-13, 2.95505266312963983461e-12,
    -1.72682629144155570723e-11, 9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9,
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7, 1.11738753912010371815e-6,
    -4.41673835845875056359e-6, 1.64484480707288970893e-5, -5.75419501008210370398e-5, 1.88502885095841655729e-4,
    -5.76375574538582365885e-4, 1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2, 1.71620901522208775349e-1,
    -3.04682672343198398683e-1, 6.76795274409476084995e-1)  # fmt: skip
_LARGE = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
    -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
    -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
    1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-9, 2.26666899049817806459e-8,
    2.04891858946906374183e-7, 2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1)  # fmt: skip


def _series(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """A Chebyshev series, by Clenshaw's recurrence."""
    last: Any = 0.0
    now: Any = coefficients[0]
    before: Any = 0.0
    for c in coefficients[1:]:
        last, before, now = before, now, x * now - before + c
    return 0.5 * (now - last)


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
    scaled = API["where"](small, _series(near / 2 - 2, _SMALL), _series(32 / far - 2, _LARGE) / API["sqrt"](far))
    return API["multiply"](API["exp"](t), scaled)
