"""``sc.stats``: distributions under the names and parameters of ``scipy.stats``, as functions of symbolic values."""

from typing import Any

from symc.errors import did_you_mean
from symc.stats import continuous as _continuous
from symc.stats import discrete as _discrete
from symc.stats.core import Continuous, Discrete, Distribution, Frozen

#: The distributions of numbers by name.
DISTRIBUTIONS: dict[str, Distribution] = {
    d.name: d for m in (_continuous, _discrete) for d in vars(m).values() if isinstance(d, Distribution)}
globals().update(DISTRIBUTIONS)

__all__ = ["DISTRIBUTIONS", "Continuous", "Discrete", "Distribution", "Frozen", *DISTRIBUTIONS]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"sc.stats has no {name!r}: {did_you_mean(name, __all__)}")
