"""``sc.stats``: distributions under the names and parameters of ``scipy.stats``, as functions of symbolic values.

``sc.stats.norm.logpdf(x, loc, scale)``; with the parameters fixed ``sc.stats.norm(loc, scale).logpdf(x)``; random
numbers by a key, ``sc.stats.norm.sample(key, loc, scale, shape=(3,))``. ``sc.stats.transforms`` has maps from all of
space onto what parameters are constrained to.
"""

from typing import Any

from symc.stats import continuous as _continuous
from symc.stats import discrete as _discrete
from symc.stats import multivariate as _multivariate
from symc.stats import normal as _normal
from symc.stats import transforms
from symc.stats.core import Distribution, Frozen
from symc.stats.kinds import Continuous, Discrete
from symc.stats.multivariate import Multivariate
from symc.tensors.guidance import no_name

#: All distributions by name.
DISTRIBUTIONS: dict[str, Distribution | Multivariate] = {
    d.name: d for m in (_normal, _continuous, _discrete, _multivariate) for d in vars(m).values()
    if isinstance(d, Distribution | Multivariate)}
globals().update(DISTRIBUTIONS)

__all__ = ["DISTRIBUTIONS", "Continuous", "Discrete", "Distribution", "Frozen", "Multivariate", "transforms",
           *DISTRIBUTIONS]


def __getattr__(name: str) -> Any:
    raise no_name("module 'sc.stats'", name, __all__, {})
