"""Programs of finance: prices of options, risk, indicators, portfolios."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import program, repeat, running


def prices(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [100 * np.exp(np.cumsum(r.normal(0, 0.01, n)))]


@program(100_000, 40, lambda r, n: [r.uniform(50, 150, n), r.uniform(50, 150, n), r.uniform(0.1, 2, n)])
def option_prices(xp: Any, spot: Any, strike: Any, years: Any) -> Any:
    """Black and Scholes, with the normal distribution by Abramowitz and Stegun's polynomial."""
    rate, vol = 0.03, 0.2
    d1 = (xp.log(spot / strike) + (rate + vol * vol / 2) * years) / (vol * xp.sqrt(years))
    d2 = d1 - vol * xp.sqrt(years)

    def normal(x: Any) -> Any:
        t = 1 / (1 + 0.2316419 * xp.abs(x))
        p = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        tail = p * xp.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        return xp.where(x > 0, 1 - tail, tail)

    return spot * normal(d1) - strike * xp.exp(-rate * years) * normal(d2)


@program(4_000, 20, lambda r, n: [r.normal(size=(n, 50))])
def asian_option(xp: Any, z: Any) -> Any:
    path = 100 * xp.exp(xp.cumsum((0.03 - 0.02) / 50 + 0.2 / np.sqrt(50) * z, axis=1))
    return np.exp(-0.03) * xp.mean(xp.maximum(xp.mean(path, axis=1) - 100, 0))


@program(500, 12, lambda r, n: [np.linspace(80, 120, 40), np.arange(n + 1.0)])
def binomial_tree(xp: Any, spot: Any, k: Any) -> Any:
    """American puts: values at all nodes of a level, 40 spots side by side."""
    n = k.shape[0] - 1
    up = xp.exp(0.2 * xp.sqrt(1 / n))
    p = (xp.exp(0.03 / n) - 1 / up) / (up - 1 / up)
    price = spot[:, None] * up ** (2 * k - n)

    def back(i: Any, v: Any) -> Any:
        later = xp.concatenate([v[:, 1:], v[:, -1:]], axis=1)
        return xp.maximum(xp.exp(-0.03 / n) * (p * later + (1 - p) * v), 100 - price * up ** (i + 1.0))

    return repeat(xp, n, back, xp.maximum(100 - price, 0))[:, 0]


@program(100_000, 50, prices)
def drawdown(xp: Any, price: Any) -> Any:
    return xp.min(price / running(xp, "maximum", price) - 1)


@program(100_000, 50, prices)
def bollinger_bands(xp: Any, price: Any) -> Any:
    s, s2 = xp.cumsum(price), xp.cumsum(price * price)
    mean = (s[20:] - s[:-20]) / 20
    deviation = xp.sqrt(xp.maximum((s2[20:] - s2[:-20]) / 20 - mean * mean, 0))
    return mean - 2 * deviation, mean + 2 * deviation


@program(5_000, 40, prices)
def exponential_average(xp: Any, price: Any) -> Any:
    n = price.shape[0]
    return repeat(xp, n, lambda i, m: m + 0.1 * (price[i] - m), price[0])


@program(100_000, 50, prices)
def relative_strength(xp: Any, price: Any) -> Any:
    change = xp.diff(price)
    up, down = xp.cumsum(xp.maximum(change, 0)), xp.cumsum(xp.maximum(-change, 0))
    gain, loss = up[14:] - up[:-14], down[14:] - down[:-14]
    return 100 - 100 / (1 + gain / xp.maximum(loss, 1e-12))


@program(2_000, 30, lambda r, n: [r.normal(0, 0.01, (n, 60)), r.dirichlet(np.ones(60))])
def portfolio_risk(xp: Any, returns: Any, weights: Any) -> Any:
    cov = xp.cov(returns, rowvar=False)
    total = xp.sqrt(weights @ cov @ weights)
    return total, weights * (cov @ weights) / total


@program(100_000, 100, lambda r, n: [r.standard_t(4, n)])
def value_at_risk(xp: Any, returns: Any) -> Any:
    limit = xp.quantile(returns, 0.05)
    tail = returns <= limit
    return limit, xp.sum(xp.where(tail, returns, 0)) / xp.sum(tail)


@program(20_000, 30, lambda r, n: [r.uniform(80, 120, n), r.uniform(1, 8, n)])
def bond_yields(xp: Any, price: Any, coupon: Any) -> Any:
    y = coupon / 100
    for _ in range(6):
        d = 1 / (1 + y)
        f = df = 0.0
        power = d
        for t in range(1, 11):
            f = f + coupon * power
            df = df - t * coupon * power * d
            power = power * d
        last = d**10 * 100
        y = y - (f + last - price) / (df - 10 * last * d)
    return y


@program(300, 12, lambda r, n: [np.corrcoef(r.normal(size=(n, 2 * n))), r.normal(size=(n, 100))])
def correlated_draws(xp: Any, correlation: Any, z: Any) -> Any:
    return xp.linalg.cholesky(correlation) @ z


@program(2_000, 12, lambda r, n: [r.uniform(0.01, 0.2, n), r.uniform(1e4, 1e6, n)])
def loan_interest(xp: Any, rate: Any, loan: Any) -> Any:
    """All interest of a loan that is paid back in five years, from the balance of each month."""
    monthly = rate[:, None] / 12
    pay = loan[:, None] * monthly / (1 - (1 + monthly) ** -60)
    grown = (1 + monthly) ** xp.arange(60)
    balance = loan[:, None] * grown - pay * (grown - 1) / monthly
    return xp.sum(balance * monthly, axis=1)
