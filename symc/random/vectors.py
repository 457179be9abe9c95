"""Random vectors: normal with a covariance, on spheres and in balls."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.numpy_api.promotion import broadcast_shape, same_dtype
from symc.random.continuous import exponential, normal
from symc.random.core import distribution, known_data, sizes
from symc.random.gammas import generalized_normal
from symc.random.keys import split
from symc.tensors.convert import as_tensor
from symc.tensors.public import API
from symc.tensors.sizes import user_shape
from symc.tensors.tensor import Tensor


@distribution
def multivariate_normal(key: Any, mean: Any, cov: Any = None, shape: Any = None, dtype: Any = None, *,
                        cholesky: Any = None) -> Tensor:
    """Normal vectors with this mean and covariance, along the last axis.

    ``cholesky``: a lower triangular matrix L with cov = L @ L.T, instead of ``cov``. ``shape`` is that of the draws:
    the result has one axis more.
    """
    if (cov is None) == (cholesky is None):
        raise InputError("multivariate_normal: give either cov or cholesky")
    factor = _factor(as_tensor(cov)) if cholesky is None else as_tensor(cholesky)
    m, low = same_dtype([mean, factor], "multivariate_normal")
    if m.ndim < 1 or low.ndim < 2:
        raise ShapeError("multivariate_normal: the mean is a vector and the covariance a matrix",
                         values=[m.describe("mean"), low.describe("covariance")])  # fmt: skip
    if shape is None:
        lead = user_shape(broadcast_shape([m, API["getitem"](low, (..., 0))], "multivariate_normal")[:-1])
    else:
        lead = user_shape(sizes(shape, "multivariate_normal"))
    d = dtype if dtype is not None else (m.dtype if m.dtype.kind == "f" else None)
    z = normal(key, (*lead, m.shape[-1]), d)
    m, low = API["astype"](m, z.dtype), API["astype"](low, z.dtype)
    product = API["matmul"](z, low.mT) if low.ndim == 2 and z.ndim > 1 else \
        API["getitem"](API["matmul"](low, API["getitem"](z, (..., None))), (..., 0))
    return API["add"](m, product)


def _factor(cov: Tensor) -> Tensor:
    """The Cholesky factor: now, for a constant."""
    data = known_data(cov)
    if data is not None and data.ndim > 1:
        try:
            return as_tensor(np.linalg.cholesky(data if data.dtype.kind == "f" else data.astype("float64")))
        except np.linalg.LinAlgError:
            raise InputError("multivariate_normal: the covariance is not positive definite") from None
    return API["linalg.cholesky"](cov)


@distribution
def sphere(key: Any, d: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Vectors of ``d`` numbers and length 1, each direction equally likely."""
    x = normal(key, (*user_shape(sizes(shape, "sphere")), d), dtype)
    return API["divide"](x, API["vector_norm"](x, axis=-1, keepdims=True))


@distribution
def ball(key: Any, d: Any, p: Any = 2, shape: Any = (), dtype: Any = None) -> Tensor:
    """Vectors of ``d`` numbers whose p-norm is at most 1, each place equally likely."""
    first, second = split(key)
    lead = user_shape(sizes(shape, "ball"))
    x = generalized_normal(first, p, (*lead, d), dtype)
    e = exponential(second, lead, x.dtype)
    power = API["add"](API["sum"](API["power"](API["abs"](x), p), -1), e)
    return API["divide"](x, API["getitem"](API["power"](power, 1 / p), (..., None)))
