"""Eight schools (Rubin 1981; Gelman et al., *Bayesian Data Analysis*, 5.5): how much do coaching programs help?

A hierarchical model, sampled by Hamiltonian Monte Carlo. Everything is one compiled function: four chains side by side
(``vmap``), their warm-up, in which each finds its step size, the leapfrog steps with the gradient of the log density,
and the diagnostics (R-hat and effective sample size, Vehtari et al. 2021). Known results: mu about 4.4, tau about 3.6.
"""

import numpy as np

import symc as sc
from symc.stats import halfcauchy, norm, transforms

EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def parameters(free: sc.Tensor) -> tuple[sc.Tensor, sc.Tensor, sc.Tensor]:
    """The mean and spread of the schools' effects, and the effects in units of the spread."""
    return free[0], transforms.positive.forward(free[1]), free[2:]


def log_density(free: sc.Tensor) -> sc.Tensor:
    """Log density of the parameters without constraints, up to a constant."""
    mu, tau, eta = parameters(free)
    prior = norm.logpdf(mu, 0, 5) + halfcauchy.logpdf(tau, 0, 5) + transforms.positive.log_det(free[1])
    return prior + sc.sum(norm.logpdf(eta)) + sc.sum(norm.logpdf(EFFECTS, mu + tau * eta, ERRORS))


def chain(key: sc.Tensor, warmup: int, draws: int, leaps: int) -> tuple[sc.Tensor, sc.Tensor]:
    """The draws after the warm-up (draws, parameters), and the rate of acceptance."""

    def draw(state, k):
        q, log_step = state
        momentum_key, step_key, accept_key = sc.random.split(sc.random.fold_in(key, k), 3)
        start = sc.random.normal(momentum_key, q.shape)
        step = sc.exp(log_step) * sc.random.uniform(step_key, low=0.6, high=1.4)  # no two steps resonate

        def leapfrog(_, state):
            q, p = state
            p = p + step / 2 * sc.grad(log_density(q), q)
            q = q + step * p
            return q, p + step / 2 * sc.grad(log_density(q), q)

        proposal, end = sc.fori_loop(0, leaps, leapfrog, (q, start))
        gain = log_density(proposal) - 0.5 * sc.sum(end * end) - log_density(q) + 0.5 * sc.sum(start * start)
        chance = sc.exp(sc.minimum(sc.where(sc.isnan(gain), -np.inf, gain), 0.0))
        q = sc.where(sc.random.uniform(accept_key) < chance, proposal, q)
        better = log_step + (chance - 0.8) / (k + 5.0) ** 0.6  # Robbins and Monro's rule for a rate of 0.8
        return (q, sc.where(k < warmup, better, log_step)), (q, chance)

    first = sc.random.normal(sc.random.fold_in(key, -1), (2 + len(EFFECTS),))
    _, (found, chances) = sc.scan(draw, (first, sc.asarray(-1.0)), sc.arange(warmup + draws))
    return found[warmup:], sc.mean(chances[warmup:])


def diagnostics(x: sc.Tensor, lags: int) -> tuple[sc.Tensor, sc.Tensor]:
    """R-hat of chains that are halved, and the effective sample size by Geyer's initial positive sequence.

    x is (chains, draws).
    """
    half = x.shape[1] // 2
    x = sc.reshape(x[:, : 2 * half], (-1, half))
    within, between = sc.mean(sc.var(x, axis=1, ddof=1)), sc.var(sc.mean(x, axis=1), ddof=1)
    total = within * (half - 1) / half + between
    centred = x - sc.mean(x, axis=1, keepdims=True)
    places = sc.arange(lags)[:, None] + sc.arange(half)
    shifted = sc.where(places < half, centred[:, sc.minimum(places, half - 1)], 0.0)
    products = sc.mean(sc.sum(centred[:, None] * shifted, axis=-1), axis=0) / half
    correlation = 1 - (within - products * half / (half - 1)) / total
    pairs = correlation[::2] + correlation[1::2]
    positive = sc.cumprod(sc.where(pairs > 0, 1.0, 0.0))
    return sc.sqrt(total / within), x.size / (2 * sc.sum(positive * pairs) - 1)


def main(warmup: int = 500, draws: int = 1000, leaps: int = 12, chains: int = 4) -> dict[str, float]:
    """Means and diagnostics of mu and tau."""
    seed = sc.input("seed", "int64", ())
    keys = sc.random.split(sc.random.key(seed), chains)
    found, rate = sc.vmap(lambda key: chain(key, warmup, draws, leaps))(keys)
    of_interest = {"mu": found[..., 0], "tau": sc.exp(found[..., 1])}
    results = {"acceptance": sc.mean(rate)}
    for name, x in of_interest.items():
        r_hat, size = diagnostics(x, min(100, draws // 4 * 2))
        results |= {f"{name} mean": sc.mean(x), f"{name} r_hat": r_hat, f"{name} size": size}
    sample = sc.compile(results, [seed], name="sample")
    summary = {name: float(v) for name, v in sample(0).items()}
    for name, v in summary.items():
        print(f"{name:12} {v:8.3f}")
    return summary


if __name__ == "__main__":
    main()
