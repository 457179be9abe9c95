"""Distributions of vectors and matrices, along the last axes: the last for vectors, the last two for matrices. What
comes before them is a batch, and broadcasts. Formulas: Gelman et al., *Bayesian Data Analysis*, appendix A; for
Cholesky factors of correlations Lewandowski, Kurowicka and Joe (2009)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc import random
from symc import special as S
from symc.errors import InputError, ShapeError
from symc.ir.dtypes import finfo
from symc.ir.record import dataclass
from symc.numpy_api.promotion import common_dtype, rows
from symc.stats.core import INF, NAN, Frozen
from symc.tensors.convert import as_operand, inexact_dtype
from symc.tensors.public import API, located
from symc.tensors.tensor import Tensor

cholesky, solve_triangular = API["linalg.cholesky"], API["linalg.solve_triangular"]
diagonal, eigh = API["linalg.diagonal"], API["linalg.eigh"]
LOG_2, LOG_PI = math.log(2), math.log(math.pi)


@dataclass(frozen=True)
class Multivariate:
    """A family of distributions of vectors or matrices. ``density`` is the logarithm of the density or probability, a
    function of the point and the parameters, whose signature is that of the public functions."""

    name: str
    doc: str
    density: Callable[..., Any]
    draw: Callable[..., Any] | None = None
    whole: bool = False
    entropy_of: Callable[..., Any] | None = None  #: of the parameters

    def signature(self) -> str:
        """The parameters as SciPy writes them."""
        return str(inspect.signature(self.density))[1:].partition(")")[0].replace(": 'Any'", "").partition(", ")[2]

    def functions(self) -> set[str]:
        """The names of the functions that the distribution has."""
        kind = {"pmf", "logpmf"} if self.whole else {"pdf", "logpdf"}
        return kind | ({"sample"} if self.draw else set()) | ({"entropy"} if self.entropy_of else set())

    def _log(self, name: str, x: Any, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        if self.whole != ("pmf" in name):
            raise self._missing(name)
        return self._of(self.density, (x, *args), kwargs)

    def _missing(self, name: str) -> InputError:
        return InputError(f"{self.name} has no {name}", help=f"it has {', '.join(sorted(self.functions()))}")

    def _of(self, formula: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Tensor:
        try:
            given = inspect.signature(formula).bind(*args, **kwargs).arguments
        except TypeError as e:
            raise InputError(f"{self.name}: {e}", help=f"its parameters are {self.signature()}") from None
        numbers = {k: as_operand(v) for k, v in given.items() if v is not None}
        dtype = inexact_dtype(common_dtype([*numbers.values(), as_operand(1.0)]))
        return xp.asarray(formula(**{k: xp.asarray(v, dtype=dtype) for k, v in numbers.items()}))

    @located
    def entropy(self, *args: Any, **kwargs: Any) -> Tensor:
        """The differential entropy, in nats."""
        if self.entropy_of is None:
            raise self._missing("entropy")
        return self._of(self.entropy_of, args, kwargs)

    @located
    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density at ``x``."""
        return self._log("logpdf", x, args, kwargs)

    @located
    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The density at ``x``."""
        return xp.exp(self._log("pdf", x, args, kwargs))

    @located
    def logpmf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability of ``x``."""
        return self._log("logpmf", x, args, kwargs)

    @located
    def pmf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of ``x``."""
        return xp.exp(self._log("pmf", x, args, kwargs))

    @located
    def sample(self, key: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Random vectors by a key; ``shape`` is that of the draws, without the axis of a vector (``size`` for
        ``multivariate_t``, whose matrix is ``shape``)."""
        if self.draw is None:
            raise self._missing("sample")
        if "shape" in kwargs and "shape" not in inspect.signature(self.density).parameters:
            kwargs["size"] = kwargs.pop("shape")
        return self.draw(key, *args, **kwargs)

    @located
    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Tensor:
        """``sample`` with SciPy's arguments: ``random_state`` is a key."""
        return self.sample(random_state, *args, size=size, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters fixed."""
        return Frozen(self, args, kwargs)

    def __repr__(self) -> str:
        return f"sc.stats.{self.name}"


def _factor(cov: Any, chol: Any, x: Any) -> Any:
    """The lower triangular L with L @ L.T = cov. A number or vector is a diagonal, as in SciPy."""
    if chol is not None:
        return xp.asarray(chol)
    cov = xp.asarray(cov, dtype=x.dtype)
    if cov.ndim >= 2:
        return cholesky(cov)
    return xp.sqrt(cov)[..., None] * xp.eye(x.shape[-1], dtype=x.dtype)


def _whitened(factor: Any, x: Any) -> Any:
    """inv(L) @ x for vectors along the last axis, and log det L."""
    if factor.ndim == 2:
        z = solve_triangular(factor, xp.reshape(x, (-1, x.shape[-1])).mT, lower=True)
        z = xp.reshape(z.mT, x.shape)
    else:
        z = solve_triangular(factor, x[..., None], lower=True)[..., 0]
    return z, xp.sum(xp.log(diagonal(factor)), axis=-1)


def _normal(x: Any, mean: Any = None, cov: Any = 1.0, chol: Any = None, allow_singular: bool = False) -> Any:
    away = x if mean is None else x - mean
    if allow_singular:
        return _singular_normal(away, xp.asarray(cov) if chol is None else chol @ xp.asarray(chol).mT)
    z, log_det = _whitened(_factor(cov, chol, x), away)
    return -0.5 * xp.sum(z * z, axis=-1) - log_det - x.shape[-1] * (LOG_2 + LOG_PI) / 2


def _singular_normal(away: Any, cov: Any) -> Any:
    """The density in the span of a covariance that may be singular, and none outside of it, as SciPy decides."""
    w, q = eigh(cov if cov.ndim >= 2 else cov[..., None] * xp.eye(away.shape[-1], dtype=away.dtype))
    least = xp.max(xp.abs(w), axis=-1, keepdims=True) * (1e3 if w.dtype == np.float32 else 1e6) * finfo(w.dtype).eps
    kept = w > least
    safe, z = xp.where(kept, w, 1.0), (away[..., None, :] @ q)[..., 0, :]
    found = xp.sum(xp.where(kept, -0.5 * (z * z / safe + xp.log(safe) + LOG_2 + LOG_PI), 0.0), axis=-1)
    outside = xp.sum(xp.where(kept, 0.0, z * z), axis=-1) >= xp.squeeze(least, -1) ** 2
    return xp.where(outside & ~xp.all(kept, axis=-1), -np.inf, found)


def _normal_draw(key: Any, mean: Any = None, cov: Any = 1.0, chol: Any = None, size: Any = None,
                 dtype: Any = None) -> Any:
    vectors = [xp.asarray(i) for i in (mean, chol, cov) if i is not None]
    d = next((v.shape[-1] for v in vectors if v.ndim), 1)
    mean = xp.zeros(d) if mean is None else mean
    if chol is None:
        cov = xp.asarray(cov)
        cov = cov if cov.ndim >= 2 else cov[..., None] * xp.eye(d)
        return random.multivariate_normal(key, mean, cov, size, dtype)
    return random.multivariate_normal(key, mean, None, size, dtype, cholesky=chol)


def _normal_entropy(mean: Any = None, cov: Any = 1.0, chol: Any = None) -> Any:
    vectors = [v for v in map(xp.asarray, (cov, mean) if mean is not None else (cov,)) if v.ndim]
    factor = _factor(cov, chol, vectors[0] if vectors else xp.ones(1))
    return xp.sum(xp.log(diagonal(factor)), axis=-1) + factor.shape[-1] * (1 + LOG_2 + LOG_PI) / 2


def _student(x: Any, loc: Any = None, shape: Any = 1.0, df: Any = 1.0, chol: Any = None) -> Any:
    z, log_det = _whitened(_factor(shape, chol, x), x if loc is None else x - loc)
    d = x.shape[-1]
    norm = S.gammaln(xp.asarray(d / 2, dtype=x.dtype)) - S.betaln(df / 2, d / 2)
    return (norm - d / 2 * (xp.log(df) + LOG_PI) - log_det
            - (df + d) / 2 * xp.log1p(xp.sum(z * z, axis=-1) / df))


def _student_draw(key: Any, loc: Any = None, shape: Any = 1.0, df: Any = 1.0, chol: Any = None, size: Any = None,
                  dtype: Any = None) -> Any:
    first, second = random.split(key)
    z = _normal_draw(first, loc, shape, chol, size, dtype)
    stretch = xp.sqrt(df / random.chisquare(second, df, z.shape[:-1], z.dtype))[..., None]
    return z * stretch if loc is None else loc + (z - loc) * stretch


def _dirichlet(x: Any, alpha: Any) -> Any:
    alpha = xp.where(alpha > 0, alpha, NAN)
    norm = xp.sum(S.gammaln(alpha), axis=-1) - S.gammaln(xp.sum(alpha, axis=-1))
    inside = xp.all(x >= 0, axis=-1) & (xp.abs(xp.sum(x, axis=-1) - 1) < 10 * x.shape[-1] * xp.finfo(x.dtype).eps)
    out = xp.sum(S.xlogy(alpha - 1, xp.where(inside[..., None], x, 0.5)), axis=-1)
    return xp.where(inside, out, -INF) - norm


def _dirichlet_entropy(alpha: Any) -> Any:
    """ln B(alpha) + (alpha_0 - K) psi(alpha_0) - sum (alpha_j - 1) psi(alpha_j) (Wikipedia)."""
    alpha = xp.where(alpha > 0, alpha, NAN)
    total = xp.sum(alpha, axis=-1)
    norm = xp.sum(S.gammaln(alpha), axis=-1) - S.gammaln(total)
    return norm + (total - alpha.shape[-1]) * S.digamma(total) - xp.sum((alpha - 1) * S.digamma(alpha), axis=-1)


def _multinomial(x: Any, n: Any, p: Any) -> Any:
    legal = xp.all((p >= 0) & (p <= 1), axis=-1) & (n >= 0) & (xp.abs(xp.sum(p, axis=-1) - 1) < 1e-6)
    inside = xp.all((x >= 0) & (xp.floor(x) == x), axis=-1) & (xp.sum(x, axis=-1) == n)
    safe = xp.where(inside[..., None], x, 0.0)
    out = S.gammaln(n + 1) + xp.sum(S.xlogy(safe, p) - S.gammaln(safe + 1), axis=-1)
    return xp.where(legal, xp.where(inside, out, -INF), NAN)


def _log_multigamma(a: Any, p: int) -> Any:
    return p * (p - 1) / 4 * LOG_PI + sum(S.gammaln(a - j / 2) for j in range(p))


def _size(x: Any, name: str) -> int:
    if x.ndim < 2 or not isinstance(p := x.shape[-1], int) or x.shape[-2] != p:
        raise ShapeError(f"{name}: a square matrix of a size that is known", values=rows([x]))
    return p


def _log_det(factor: Any) -> Any:
    return 2 * xp.sum(xp.log(diagonal(factor)), axis=-1)


def _share(low: Any, x: Any) -> Any:
    """The trace of inv(low @ low.T) @ x @ x.T."""
    z = solve_triangular(low, x, lower=True)
    return xp.sum(z * z, axis=(-2, -1))


def _wishart(x: Any, df: Any, scale: Any) -> Any:
    p, factor, low = _size(x, "wishart"), cholesky(x), cholesky(scale)
    df = xp.where(df > p - 1, df, NAN)
    return ((df - p - 1) / 2 * _log_det(factor) - _share(low, factor) / 2 - df * p / 2 * LOG_2
            - df / 2 * _log_det(low) - _log_multigamma(df / 2, p))


def _invwishart(x: Any, df: Any, scale: Any) -> Any:
    p, factor, low = _size(x, "invwishart"), cholesky(x), cholesky(scale)
    df = xp.where(df > p - 1, df, NAN)
    return (df / 2 * _log_det(low) - _share(factor, low) / 2 - df * p / 2 * LOG_2
            - (df + p + 1) / 2 * _log_det(factor) - _log_multigamma(df / 2, p))


def _lkj(x: Any, eta: Any = 1.0) -> Any:
    p = _size(x, "lkj_cholesky")
    eta = xp.asarray(eta, dtype=x.dtype)
    eta = xp.where(eta > 0, eta, NAN)
    norm = sum(k / 2 * LOG_PI + S.gammaln(eta + (p - 1 - k) / 2) - S.gammaln(eta + (p - 1) / 2) for k in range(1, p))
    order = xp.arange(p - 2, -1, -1, dtype=x.dtype) + 2 * eta[..., None] - 2
    return xp.sum(order * xp.log(diagonal(x)[..., 1:]), axis=-1) - norm


multivariate_normal = Multivariate(
    "multivariate_normal", "Normal vectors; chol: a Cholesky factor instead of cov.", _normal, _normal_draw,
    entropy_of=_normal_entropy)
multivariate_t = Multivariate("multivariate_t", "Student's t of vectors; chol: a factor instead of shape.", _student,
                              _student_draw)
dirichlet = Multivariate("dirichlet", "Probabilities that sum to 1.", _dirichlet, random.dirichlet,
                         entropy_of=_dirichlet_entropy)
multinomial = Multivariate("multinomial", "How often each category occurs in n trials.", _multinomial,
                           random.multinomial, whole=True)
wishart = Multivariate("wishart", "Covariances of df normal vectors, times df.", _wishart)
invwishart = Multivariate("invwishart", "Inverses of Wishart matrices.", _invwishart)
lkj_cholesky = Multivariate("lkj_cholesky", "Cholesky factors of correlations; eta = 1: uniform correlations.", _lkj)
