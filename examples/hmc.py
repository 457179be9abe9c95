"""Hamiltonian Monte Carlo (Neal 2011) for Bayesian logistic regression on the breast cancer data of scikit-learn.

The whole chain is one compiled function: a scan over draws, in which a loop of leapfrog steps uses the gradient of the
log density. Randomness is a function of a key, so the chain is reproducible to the last bit.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import symc as sc


def load() -> list[np.ndarray]:
    """Train and test features (standardized, with a column of ones), and their labels."""
    x, y = load_breast_cancer(return_X_y=True)
    x = np.column_stack([(x - x.mean(0)) / x.std(0), np.ones(len(x))])
    return train_test_split(x, y.astype("float64"), random_state=0)


def log_density(w: sc.Tensor, x: sc.Tensor, y: sc.Tensor) -> sc.Tensor:
    """Log density of the weights, up to a constant: a standard normal prior and the likelihood of the labels."""
    scores = x @ w
    return sc.sum(y * scores - sc.softplus(scores)) - 0.5 * sc.sum(w * w)


def chain(x: sc.Tensor, y: sc.Tensor, key: sc.Tensor, draws: int, leaps: int,
          step: float) -> tuple[sc.Tensor, sc.Tensor]:
    """All draws (draws, features), and whether each proposal was accepted. ``step`` is the longest step.

    Each draw has a step of its own, for where the density is steep (at the start) only short ones are accepted.
    """

    def draw(w, k):
        momentum_key, step_key, accept_key = sc.random.split(sc.random.fold_in(key, k), 3)
        start = sc.random.normal(momentum_key, w.shape)
        size = sc.random.uniform(step_key, low=0.2 * step, high=step)

        def leapfrog(_, state):
            w, p = state
            p = p + size / 2 * sc.grad(log_density(w, x, y), w)
            w = w + size * p
            return w, p + size / 2 * sc.grad(log_density(w, x, y), w)

        proposal, end = sc.fori_loop(0, leaps, leapfrog, (w, start))
        gain = (log_density(proposal, x, y) - 0.5 * sc.sum(end * end)
                - log_density(w, x, y) + 0.5 * sc.sum(start * start))
        accept = sc.log(sc.random.uniform(accept_key)) < gain
        w = sc.where(accept, proposal, w)
        return w, (w, accept)

    _, (found, accepted) = sc.scan(draw, sc.zeros(x.shape[1]), sc.arange(draws))
    return found, accepted


def main(draws: int = 600, leaps: int = 12, step: float = 0.2) -> tuple[float, float]:
    """The accuracy of the averaged prediction on the test rows, and the rate of acceptance."""
    train, test, y_train, y_test = load()
    x, y = sc.input("x", "float64", ("n", train.shape[1])), sc.input("y", "float64", ("n",))
    seed = sc.input("seed", "int64", ())
    sample = sc.compile(chain(x, y, sc.random.key(seed), draws, leaps, step), [x, y, seed], name="sample")
    found, accepted = sample(train, y_train, 0)
    kept = found[draws // 4 :]
    chance = (1 / (1 + np.exp(-test @ kept.T))).mean(1)
    accuracy = float(np.mean((chance > 0.5) == y_test))
    print(f"acceptance {accepted.mean():.2f}, test accuracy {accuracy:.3f}")
    print(f"weights furthest from 0 (in standard deviations): {np.abs(kept.mean(0) / kept.std(0)).max():.1f}")
    return accuracy, float(accepted.mean())


if __name__ == "__main__":
    main()
