"""``sc.optim``: optimizers as transforms of a graph, schedules, and a small training loop.

``opt = sc.optim.adam(1e-3)``; ``u = opt.updates(loss, P)``; ``step = sc.compile(u.loss, [x, y], updates=u)``. The
rate is a number, a schedule, or a state of yours. Recurrences and default values are PyTorch's.
"""

from typing import Any

from symc.optim import rules as _rules
from symc.optim import schedules, transforms
from symc.optim.optimizer import Optimizer, Transform, Updates
from symc.optim.schedules import *  # noqa: F403
from symc.optim.schedules import cyclical
from symc.optim.sparse import SparseRows
from symc.optim.training import Fit, fit
from symc.optim.transforms import *  # noqa: F403
from symc.tensors.guidance import no_name


def sgd(rate: Any, sparse: str = "lazy") -> Optimizer:
    """Gradient descent: p - rate g."""
    return Optimizer(_rules.SGD(), rate, sparse)


def cyclical_sgd(low: float, high: float, period: int, factor: float = 1.0, sparse: str = "lazy") -> Optimizer:
    """Gradient descent with a rate that goes up and down between two, ``period`` steps each way (Smith 2017)."""
    return sgd(cyclical(low, high, period, factor), sparse)


def momentum(rate: Any, mu: float = 0.9, sparse: str = "lazy") -> Optimizer:
    """Gradient descent with momentum: v = mu v + g; p - rate v."""
    return Optimizer(_rules.Momentum(mu), rate, sparse)


def nesterov(rate: Any, mu: float = 0.9, sparse: str = "lazy") -> Optimizer:
    """Nesterov's momentum: v = mu v + g; p - rate (g + mu v)."""
    return Optimizer(_rules.Momentum(mu, nesterov=True), rate, sparse)


def adagrad(rate: Any = 0.01, eps: float = 1e-10, start: float = 0.0, sparse: str = "lazy") -> Optimizer:
    """Rates that fall where gradients were large: s = s + g²; p - rate g / (sqrt(s) + eps)."""
    return Optimizer(_rules.Adagrad(eps, start), rate, sparse)


def adadelta(rate: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, sparse: str = "lazy") -> Optimizer:
    """Steps in the units of the parameter (Zeiler 2012)."""
    return Optimizer(_rules.Adadelta(rho, eps), rate, sparse)


def rmsprop(rate: Any = 0.01, rho: float = 0.99, eps: float = 1e-8, sparse: str = "lazy") -> Optimizer:
    """Gradients over the root of a moving mean of their squares."""
    return Optimizer(_rules.RMSProp(rho, eps), rate, sparse)


def adam(rate: Any = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, sparse: str = "lazy") -> Optimizer:
    """Moving means of gradients over the roots of those of their squares (Kingma and Ba 2015)."""
    return Optimizer(_rules.Adam(b1, b2, eps), rate, sparse)


def adamw(rate: Any = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, decay: float = 0.01,
          sparse: str = "lazy") -> Optimizer:
    """Adam, with parameters that shrink by rate * decay beside it (Loshchilov and Hutter 2019)."""
    return Optimizer(_rules.Adam(b1, b2, eps, decay), rate, sparse)


def amsgrad(rate: Any = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, sparse: str = "lazy") -> Optimizer:
    """Adam whose mean of squares never falls (Reddi et al. 2018)."""
    return Optimizer(_rules.Adam(b1, b2, eps, most=True), rate, sparse)


def eg(rate: Any, mu: float = 0.0, axis: int | None = None) -> Optimizer:
    """Exponentiated gradient: parameters are distributions over ``axis`` (or all of them), and stay so."""
    return Optimizer(_rules.EG(mu, axis), rate, "dense")


#: The optimizers by name.
OPTIMIZERS = {f.__name__: f for f in (
    sgd, cyclical_sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw, amsgrad, eg)}

__all__ = ["Fit", "Optimizer", "SparseRows", "Transform", "Updates", "adadelta", "adagrad", "adam", "adamw", "amsgrad",
           "cyclical_sgd", "eg", "fit", "momentum", "nesterov", "rmsprop", "sgd"]
__all__ += [*schedules.__all__, *transforms.__all__]


def __getattr__(name: str) -> Any:
    raise no_name("module 'sc.optim'", name, __all__, {})
