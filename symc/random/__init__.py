"""``sc.random``: random numbers as functions of a key, under the names of ``jax.random`` and NumPy's ``Generator``.

``key = sc.random.key(0)``; ``x = sc.random.normal(key, (3,))``. The same key, shape and dtype give the same numbers: in
every mode, on every backend, in every process, and in whatever batch they are drawn; up to rounding, where they are
computed from uniform, normal, exponential and Gumbel numbers, which are the same to the last bit. Independent numbers
need independent keys: ``split`` and ``fold_in``, or a ``Generator``, which keeps a key between calls.
"""

from typing import Any

from symc.random.choices import categorical, choice, permutation
from symc.random.continuous import (
    bits,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    normal,
    pareto,
    power,
    random,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    weibull,
)
from symc.random.core import DISTRIBUTIONS
from symc.random.discrete import (
    bernoulli,
    binomial,
    geometric,
    integers,
    multinomial,
    negative_binomial,
    poisson,
    rademacher,
    randint,
)
from symc.random.gammas import beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, maxwell, t, wald
from symc.random.generator import Generator, install
from symc.random.keys import fold_in, key, split
from symc.random.vectors import ball, multivariate_normal, sphere
from symc.tensors.guidance import no_name

#: The same functions under the names of NumPy's Generator and of jax.random.
SYNONYMS: dict[str, Any] = {
    "standard_normal": normal,
    "standard_exponential": exponential,
    "standard_gamma": gamma,
    "standard_cauchy": cauchy,
    "standard_t": t,
}
standard_normal, standard_exponential, standard_gamma, standard_cauchy, standard_t = SYNONYMS.values()
install(SYNONYMS)
PRNGKey, default_rng = key, Generator

__all__ = [
    "DISTRIBUTIONS", "Generator", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "default_rng", "dirichlet", "exponential", "f", "fold_in", "gamma", "generalized_normal",
    "geometric", "gumbel", "integers", "key", "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial",
    "multivariate_normal", "negative_binomial", "normal", "pareto", "permutation", "poisson", "power", "rademacher",
    "randint", "random", "rayleigh", "sphere", "split", "standard_cauchy", "standard_exponential", "standard_gamma",
    "standard_normal", "standard_t", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise no_name("module 'sc.random'", name, __all__, {})
