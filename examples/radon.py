"""Radon in 85 counties (Gelman and Hill 2006, chapter 12): a hierarchical regression, sampled by NUTS.

The no-U-turn sampler (Hoffman and Gelman 2014, multinomial as in Betancourt 2017) as one compiled function: four chains
side by side (``vmap``); the warm-up, in which each chain finds its step size by dual averaging and the variances of its
parameters; trees without recursion: of the leaves of a subtree only those are kept that a later test for a U-turn
needs, one for each bit of a leaf's number. R-hat and effective sample sizes are those of ``examples.eight_schools``.

The data are drawn from the model with what is known of Minnesota's 919 houses: ``data(seed)``. ``sample`` takes others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import symc as sc
from examples.eight_schools import diagnostics
from symc.stats import halfcauchy, norm, transforms

COUNTIES, HOUSES, DEPTH = 85, 919, 10
TRUTH = {"mean": 1.49, "floor": -0.66, "spread": 0.32, "noise": 0.73}
T = sc.Tensor
Density = Callable[[T], T]


def data(seed: int = 0) -> dict[str, np.ndarray]:
    """Log radon, floor (0 basement, 1 first floor) and county of each house; counties have 1 to about 110 houses."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(COUNTIES, 0.7))
    county = np.concatenate([np.arange(COUNTIES), rng.choice(COUNTIES, HOUSES - COUNTIES, p=shares)])
    floor = (rng.random(HOUSES) < 0.17).astype(float)
    level = TRUTH["mean"] + TRUTH["spread"] * rng.normal(size=COUNTIES)
    radon = level[county] + TRUTH["floor"] * floor + TRUTH["noise"] * rng.normal(size=HOUSES)
    return {"radon": radon, "floor": floor, "county": county}


def log_density(free: T, houses: dict[str, T]) -> T:
    """Log density, up to a constant, of free parameters: mean, floor, logs of spread and noise, the counties."""
    spread, noise = (transforms.positive.forward(free[i]) for i in (2, 3))
    level = free[0] + spread * free[4:]
    prior = sc.sum(norm.logpdf(free[:2], 0, 10)) + halfcauchy.logpdf(spread, 0, 5) + halfcauchy.logpdf(noise, 0, 5)
    prior = prior + transforms.positive.log_det(free[2]) + transforms.positive.log_det(free[3])
    expected = level[houses["county"]] + free[1] * houses["floor"]
    return prior + sc.sum(norm.logpdf(free[4:])) + sc.sum(norm.logpdf(houses["radon"], expected, noise))


def turns(total: T, left: T, right: T, scale: T) -> T:
    """True where a trajectory begins to come back: its sum of momenta, against the momenta at its ends."""
    middle = total - (left + right) / 2
    return (sc.sum(scale * middle * left) <= 0) | (sc.sum(scale * middle * right) <= 0)


def subtree(density: Density, end: dict, depth: T, step: T, scale: T, start: T, key: T):
    """The 2**depth leaves beyond an end of the trajectory: its new end, its proposal, weight, momenta, acceptance."""

    def leaf(state):
        p = state["p"] + step / 2 * state["slope"]
        q = state["q"] + step * scale * p
        value = density(q)
        slope = sc.grad(value, q)
        p = p + step / 2 * slope
        weight = value - sc.sum(scale * p * p) / 2 - start
        weight = sc.where(sc.isnan(weight), -np.inf, weight)
        total, number = state["total"] + p, state["number"]
        together = sc.logaddexp(state["weight"], weight)
        taken = sc.log(sc.random.uniform(sc.random.fold_in(key, number))) < weight - together
        # An even leaf is kept in the slot of its bits above the last; an odd one ends a subtree for each trailing one.
        above = sc.bitwise_count(number >> 1).astype("int64")
        ending = sc.bitwise_count(number & ~(number + 1)).astype("int64")
        slots = sc.arange(DEPTH)
        even = (slots == above) & (number % 2 == 0)
        firsts = sc.where(even[:, None], p, state["firsts"])
        before = sc.where(even[:, None], total - p, state["before"])
        spans = (slots <= above) & (slots > above - ending)
        bent = sc.vmap(lambda first, past: turns(total - past, first, p, scale))(firsts, before)
        return {
            "q": q, "p": p, "slope": slope, "total": total, "number": number + 1,
            "proposal": sc.where(taken, q, state["proposal"]), "weight": together,
            "firsts": firsts, "before": before, "bent": sc.any(bent & spans), "diverged": weight < -1000,
            "accepted": state["accepted"] + sc.exp(sc.minimum(weight, 0.0)),
        }  # fmt: skip

    rows = sc.zeros((DEPTH, end["q"].shape[0]))
    first = {
        **end, "total": sc.zeros_like(end["q"]), "number": sc.asarray(0), "proposal": end["q"],
        "weight": sc.asarray(-np.inf), "firsts": rows, "before": rows, "bent": sc.asarray(False),
        "diverged": sc.asarray(False), "accepted": sc.asarray(0.0),
    }  # fmt: skip
    leaves = sc.asarray(1) << depth
    return sc.while_loop(lambda s: (s["number"] < leaves) & ~s["bent"] & ~s["diverged"], leaf, first)


def transition(density: Density, q: T, step: T, scale: T, key: T) -> dict[str, T]:
    """The next draw, with the mean acceptance, the number of leapfrog steps, and whether the trajectory diverged."""
    p = sc.random.normal(sc.random.fold_in(key, 0), q.shape) / sc.sqrt(scale)
    value = density(q)
    start = value - sc.sum(scale * p * p) / 2
    end = {"q": q, "p": p, "slope": sc.grad(value, q)}

    def double(state):
        keys = sc.random.split(sc.random.fold_in(key, state["depth"] + 1), 3)
        forward = sc.random.uniform(keys[0]) < 0.5
        side = {k: sc.where(forward, state["right"][k], state["left"][k]) for k in end}
        new = subtree(density, side, state["depth"], sc.where(forward, step, -step), scale, start, keys[1])
        ends = {
            "left": {k: sc.where(forward, state["left"][k], new[k]) for k in end},
            "right": {k: sc.where(forward, new[k], state["right"][k]) for k in end},
        }
        total = state["total"] + new["total"]
        whole = ~new["bent"] & ~new["diverged"]
        taken = whole & (sc.log(sc.random.uniform(keys[2])) < new["weight"] - state["weight"])
        return {
            **ends, "total": total, "depth": state["depth"] + 1,
            "proposal": sc.where(taken, new["proposal"], state["proposal"]),
            "weight": sc.logaddexp(state["weight"], new["weight"]),
            "stop": ~whole | turns(total, ends["left"]["p"], ends["right"]["p"], scale), "diverged": new["diverged"],
            "accepted": state["accepted"] + new["accepted"], "leaps": state["leaps"] + new["number"],
        }  # fmt: skip

    first = {
        "left": end, "right": end, "total": p, "depth": sc.asarray(0), "proposal": q, "weight": sc.asarray(0.0),
        "stop": sc.asarray(False), "diverged": sc.asarray(False), "accepted": sc.asarray(0.0), "leaps": sc.asarray(0),
    }  # fmt: skip
    return sc.while_loop(lambda s: (s["depth"] < DEPTH) & ~s["stop"], double, first)


def chain(density: Density, size: int, key: T, warmup: int, draws: int) -> dict[str, T]:
    """The draws after the warm-up, (draws, size), and what each needed.

    The step size is averaged as Nesterov's dual averages (Hoffman and Gelman, 3.2). The variances of the parameters are
    those of the warm-up's second quarter, then of what follows up to its last tenth, drawn towards 0.001 as in Stan.
    """
    renewals = (warmup // 2, warmup - warmup // 10)

    def draw(state, k):
        new = transition(density, state["q"], sc.exp(state["log_step"]), state["scale"], sc.random.fold_in(key, k))
        q, accepted = new["proposal"], new["accepted"] / new["leaps"]
        t = k - state["since"] + 1.0
        error = state["error"] + ((0.8 - accepted) - state["error"]) / (t + 10)
        log_step = state["centre"] - sc.sqrt(t) / 0.05 * error
        average = state["average"] + t**-0.75 * (log_step - state["average"])
        n = state["n"] + 1.0
        mean = state["mean"] + (q - state["mean"]) / n
        squares = state["squares"] + (q - state["mean"]) * (q - mean)
        renew = (k == renewals[0]) | (k == renewals[1])
        shrunk = (squares / sc.maximum(n - 1, 1.0) * n + 1e-3 * 5) / (n + 5)
        forget, since = renew | (k == warmup // 4), sc.where(renew, k + 1, state["since"])
        centre = sc.where(renew, average + np.log(10.0), state["centre"])
        warm = {
            "q": q, "scale": sc.where(renew, shrunk, state["scale"]), "error": sc.where(renew, 0.0, error),
            "log_step": sc.where(renew, average, log_step), "average": average, "centre": centre, "since": since,
            "n": sc.where(forget, 0.0, n), "mean": sc.where(forget, 0.0, mean),
            "squares": sc.where(forget, 0.0, squares),
        }  # fmt: skip
        kept = {**state, "q": q, "log_step": state["average"]}
        found = {"q": q, "accepted": accepted, "leaps": new["leaps"], "diverged": new["diverged"]}
        return {name: sc.where(k < warmup, warm[name], kept[name]) for name in warm}, found

    zero, zeros = sc.asarray(0.0), sc.zeros(size)
    q = sc.random.uniform(sc.random.fold_in(key, -1), (size,), low=-1.0, high=1.0)
    first = {
        "q": q, "scale": sc.ones(size), "error": zero,
        "log_step": sc.asarray(np.log(0.1)), "average": sc.asarray(np.log(0.1)), "centre": zero,
        "since": sc.asarray(0), "n": zero, "mean": zeros, "squares": zeros,
    }  # fmt: skip
    last, found = sc.scan(draw, first, sc.arange(warmup + draws))
    return {name: value[warmup:] for name, value in found.items()} | {"step": sc.exp(last["average"])}


def sampler(warmup: int = 500, draws: int = 1000, chains: int = 4) -> Any:
    """A compiled function of a seed and the houses."""
    seed = sc.input("seed", "int64", ())
    houses = {name: sc.input(name, "int64" if name == "county" else "float64", ("houses",)) for name in data()}
    keys = sc.random.split(sc.random.key(seed), chains)
    found = sc.vmap(lambda key: chain(lambda q: log_density(q, houses), COUNTIES + 4, key, warmup, draws))(keys)
    q = found["q"]
    of_interest = {"mean": q[..., 0], "floor": q[..., 1], "spread": sc.exp(q[..., 2]), "noise": sc.exp(q[..., 3])}
    summary: dict[str, Any] = {}
    for name, x in of_interest.items():
        r_hat, size = diagnostics(x, min(100, draws // 4 * 2))
        summary[name] = {"mean": sc.mean(x), "sd": sc.std(x), "r_hat": r_hat, "size": size}
    summary["leaps"], summary["acceptance"] = sc.mean(found["leaps"]), sc.mean(found["accepted"])
    summary["divergences"] = sc.sum(found["diverged"])
    return sc.compile(summary, [seed, houses], name="radon")


def main(warmup: int = 500, draws: int = 1000, chains: int = 4) -> dict[str, Any]:
    """Means, spreads and diagnostics, beside what the data were drawn with."""
    summary = sampler(warmup, draws, chains)(0, data())
    for name, true in TRUTH.items():
        found = summary[name]
        print(f"{name:7} {found['mean']:6.3f} sd {found['sd']:5.3f} (true {true:5.2f})", end=" ")
        print(f"r_hat {found['r_hat']:.4f}, of size {found['size']:.0f}")
    print(f"{summary['leaps']:.1f} steps a draw, acceptance {summary['acceptance']:.2f}", end=", ")
    print(f"divergences {summary['divergences']}")
    return summary


if __name__ == "__main__":
    main()
