"""Continuous and discrete families: densities and probabilities, quantiles by what a record states or by search."""

from __future__ import annotations

import math
from typing import Any

from symc import numpy_api as xp
from symc.random.continuous import exponential, uniform
from symc.stats.core import INF, Bound, Distribution, Formula
from symc.stats.search import least_integer, solve_increasing
from symc.tensors.public import located
from symc.tensors.tensor import Tensor


def _open_uniform(key: Any, shape: tuple, dtype: Any) -> Tensor:
    u = uniform(key, shape, dtype)
    return xp.where(u == 0, xp.finfo(u.dtype).eps / 4, u)


class Continuous(Distribution):
    """A distribution with a density. ``logppf`` and ``logisf`` are formulas for the inverses of ``logcdf`` and
    ``logsf``: of them follow quantiles with all digits in both tails, and samples."""

    def _own_functions(self, cumulative: bool) -> set[str]:
        return {"pdf", "logpdf", "sample", *(("ppf", "isf") if cumulative else ())}

    @located
    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density at ``x``; -inf outside the support."""
        bound, (x,) = self._bind(args, kwargs, x)
        out = self._log_density(self._point(bound, x), bound.shapes)
        return out if bound.scale is None else out - xp.log(bound.scale)

    def _log_density(self, z: Tensor, p: tuple) -> Any:
        f = self.formulas["logpdf"]
        if self.support is None:
            return f(z, *p)
        a, b = self._ends(p)
        outside = (z < a if self.closed else z <= a) | (z > b) | xp.isinf(z)
        return Bound(z.dtype, p).known(xp.where(outside, -INF, f(xp.where(outside, self._fill(p), z), *p)))

    @located
    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The density at ``x``; 0 outside the support."""
        return xp.exp(self.logpdf(x, *args, **kwargs))

    def _inverse(self, lower: bool) -> Formula:
        f = self.formulas
        for stated, same in (("logppf", lower), ("logisf", not lower)):
            if stated in f:
                return lambda q, *p, g=f[stated], same=same: g(xp.log(q) if same else xp.log1p(-q), *p)
        if ("ppf" if lower else "isf") in f:
            return f["ppf" if lower else "isf"]
        if "ppf" in f:
            return lambda q, *p: -f["ppf"](q, *p) if self.symmetric else f["ppf"](1 - q, *p)
        name = "cdf" if lower else "sf"
        self._formula(name)  # raises if there is none
        sign = 1 if lower else -1

        def solve(q: Any, *p: Any) -> Any:
            bound = Bound(q.dtype, p)
            a, b = self._ends(p)
            return solve_increasing(lambda z: sign * (self._within(name, z, bound) - q), self._fill(p) + 0 * q, a, b)

        return solve

    def _draw(self, key: Any, shape: tuple, dtype: Any, p: tuple) -> Tensor:
        if "draw" in self.formulas:
            return super()._draw(key, shape, dtype, p)
        for stated in ("logppf", "logisf"):
            if stated in self.formulas:
                return self.formulas[stated](-exponential(key, shape, dtype), *p)
        return self._inverse(True)(_open_uniform(key, shape, dtype), *p)


class Discrete(Distribution):
    """A distribution of whole numbers: it has ``pmf`` and ``logpmf``, and no scale."""

    whole = True

    def _own_functions(self, cumulative: bool) -> set[str]:
        return {"pmf", "logpmf", "sample", *(("ppf", "isf") if cumulative else ())}

    def _names(self) -> tuple[str, ...]:
        return (*self.shapes, "loc")

    @located
    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability of ``k``; -inf where there is none, as for what is not whole."""
        bound, (k,) = self._bind(args, kwargs, k)
        z, p = bound.standard(k), bound.shapes
        a, b = self._ends(p)
        outside = (z < a) | (z > b) | (xp.floor(z) != z) & ~xp.isnan(z) | xp.isinf(z)
        f = self.formulas["logpmf"]
        return bound.known(xp.where(outside, -INF, f(xp.where(outside, self._fill(p), z), *p)))

    @located
    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of ``k``."""
        return xp.exp(self.logpmf(k, *args, **kwargs))

    def _fill(self, p: tuple) -> Any:
        a, _ = self._ends(p)
        return a if not isinstance(a, float) or math.isfinite(a) else 0.0

    def _point(self, bound: Bound, x: Tensor) -> Tensor:
        return xp.floor(bound.standard(x))

    def _sides(self, z: Tensor, p: tuple) -> tuple[Tensor, Tensor]:
        a, b = self._ends(p)
        return z < a, z >= b

    def _quantile_ends(self, p: tuple) -> tuple[Any, Any]:
        a, b = self._ends(p)
        return a - 1, b

    def _draw(self, key: Any, shape: tuple, dtype: Any, p: tuple) -> Tensor:
        if "draw" in self.formulas:
            return super()._draw(key, shape, dtype, p)
        return self._inverse(True)(_open_uniform(key, shape, dtype), *p)

    def _inverse(self, lower: bool) -> Formula:
        if "ppf" in self.formulas:
            f = self.formulas["ppf"]
            return f if lower else self.formulas["isf"]
        name = "cdf" if lower else "sf"
        self._formula(name)

        def search(q: Any, *p: Any) -> Any:
            bound = Bound(q.dtype, p)

            def enough(k: Any) -> Any:
                found = self._within(name, k, bound)
                return found >= q if lower else found <= q

            a, b = self._ends(p)
            return least_integer(enough, a, b, bound.known(0 * q))

        return search
