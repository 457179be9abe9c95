"""The recurrences of optimizers: from a parameter, its gradient and what is kept of it to the next ones.

A recurrence is elementwise, so the same one serves whole arrays and some rows of a table. ``idle`` is many of its steps
at once for a gradient of zero: what rows of a table miss while they are not read (``sparse="exact"``). In closed form
where there is one; else it is the recurrence itself in a loop, until nothing moves by more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import InputError
from symc.ir.dtypes import finfo
from symc.ir.record import dataclass
from symc.tensors.tensor import Tensor
from symc.transforms.control import while_loop

Slots = dict[str, Tensor]


@dataclass(frozen=True)
class Now:
    """Moment of a step: its number, from 1 on (float64, a scalar or one a row), and the rate at a step."""

    t: Tensor
    rate_at: Callable[[Tensor], Tensor]

    def rate(self, like: Tensor) -> Tensor:
        """The rate of this step, in the dtype of what it multiplies."""
        return _as(self.rate_at(self.t - 1), like)

    def one_minus(self, b: float, like: Tensor) -> Tensor:
        """1 - b^t, by which a mean that began at zero is too small."""
        return _as(1 - b**self.t, like)


def _as(x: Any, like: Tensor) -> Tensor:
    return xp.astype(xp.asarray(x), like.dtype)


class Rule:
    """A recurrence. ``slots``: what is kept of each parameter, and what it begins with."""

    name = "rule"
    slots: tuple[str, ...] = ()
    start = 0.0
    #: A step adds something linear in the gradient, and keeps nothing: rows named twice need no sum.
    additive = False
    #: Each element has its own step: rows can be updated alone.
    elementwise = True
    #: A parameter moves although its gradient was always zero.
    decays = False

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        """The parameter and its slots after a step."""
        raise NotImplementedError

    def idle(self, p: Tensor, s: Slots, done: Tensor, steps: Tensor, rate_at: Callable[[Tensor], Tensor],
             fixed: bool) -> tuple[Tensor, Slots]:
        """The rows p after the steps from ``done`` (int64, one a row) to ``steps``, all of gradient zero.

        ``fixed``: the rate is the same in all of them.
        """
        raise InputError(f"sc.optim.{self.name} has no sparse='exact'", help="sparse='lazy' or sparse='dense'")


def _per_row(x: Tensor, p: Tensor) -> Tensor:
    return xp.reshape(x, (-1, *[1] * (p.ndim - 1)))


def _missed(done: Tensor, steps: Tensor, p: Tensor) -> Tensor:
    return _per_row(xp.astype(steps - done, np.float64), p)


def _loop(rule: Rule, p: Tensor, s: Slots, done: Tensor, steps: Tensor, rate_at: Callable[[Tensor], Tensor],
          most: int | None) -> tuple[Tensor, Slots, Tensor]:
    """The recurrence itself for rows that have steps to make up, at most ``most`` of them; and how far they came."""
    zero = xp.zeros((), p.dtype)
    made = xp.zeros((), np.int64)

    def going(carry: Any) -> Tensor:
        more = xp.any(carry[2] < steps)
        return more if most is None else xp.logical_and(more, carry[3] < most)

    def body(carry: Any) -> Any:
        p, s, at, made = carry
        on = _per_row(at < steps, p)
        now = Now(_per_row(xp.astype(at + 1, np.float64), p), rate_at)
        new, slots = rule.step(p, zero, s, now)
        return (xp.where(on, new, p), {k: xp.where(on, slots[k], s[k]) for k in s},
                xp.where(at < steps, at + 1, at), made + 1)

    p, s, done, _ = while_loop(going, body, (p, s, done, made))
    return p, s, done


def _fading(factor: float, dtype: Any) -> int | None:
    """After how many factors nothing is left but rounding; None for never."""
    if factor <= 0:
        return 1
    return math.ceil(math.log(finfo(dtype).eps / 100) / math.log(factor)) if factor < 1 else None


class SGD(Rule):
    """p - rate g."""

    name, additive = "sgd", True

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        return p - now.rate(p) * g, {}

    def idle(self, p, s, done, steps, rate_at, fixed):  # type: ignore[no-untyped-def]
        return p, s


class Momentum(Rule):
    """v = mu v + g; p - rate v, or with Nesterov's p - rate (g + mu v)."""

    name, slots = "momentum", ("v",)

    def __init__(self, mu: float, nesterov: bool = False):
        self.mu, self.nesterov = mu, nesterov

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        v = self.mu * s["v"] + g
        return p - now.rate(p) * (g + self.mu * v if self.nesterov else v), {"v": v}

    def idle(self, p, s, done, steps, rate_at, fixed):  # type: ignore[no-untyped-def]
        mu = self.mu
        if mu == 0:
            return p, {"v": s["v"] * _as(0.0 ** _missed(done, steps, p), p)}
        if not fixed or mu >= 1:
            p, s, done = _loop(self, p, s, done, steps, rate_at, _fading(mu, p.dtype))
            return p, {"v": s["v"] * _as(mu ** _missed(done, steps, p), p)}
        left = mu ** _missed(done, steps, p)
        far = mu * (1 - left) / (1 - mu) * (mu if self.nesterov else 1)
        return p - _as(rate_at(xp.astype(steps, np.float64)) * far, p) * s["v"], {"v": s["v"] * _as(left, p)}


class Adagrad(Rule):
    """s = s + g²; p - rate g / (sqrt(s) + eps) (Duchi et al. 2011)."""

    name, slots = "adagrad", ("s",)

    def __init__(self, eps: float, start: float):
        self.eps, self.start = eps, start

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        total = s["s"] + g * g
        return p - now.rate(p) * g / (xp.sqrt(total) + self.eps), {"s": total}

    def idle(self, p, s, done, steps, rate_at, fixed):  # type: ignore[no-untyped-def]
        return p, s


class Adadelta(Rule):
    """Steps in the units of the parameter (Zeiler 2012)."""

    name, slots = "adadelta", ("s", "d")

    def __init__(self, rho: float, eps: float):
        self.rho, self.eps = rho, eps

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        total = self.rho * s["s"] + (1 - self.rho) * g * g
        move = xp.sqrt(s["d"] + self.eps) / xp.sqrt(total + self.eps) * g
        return p - now.rate(p) * move, {"s": total, "d": self.rho * s["d"] + (1 - self.rho) * move * move}

    def idle(self, p, s, done, steps, rate_at, fixed):  # type: ignore[no-untyped-def]
        left = _as(self.rho ** _missed(done, steps, p), p)
        return p, {k: v * left for k, v in s.items()}


class RMSProp(Rule):
    """s = rho s + (1 - rho) g²; p - rate g / (sqrt(s) + eps) (Tieleman and Hinton 2012)."""

    name, slots = "rmsprop", ("s",)

    def __init__(self, rho: float, eps: float):
        self.rho, self.eps = rho, eps

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        total = self.rho * s["s"] + (1 - self.rho) * g * g
        return p - now.rate(p) * g / (xp.sqrt(total) + self.eps), {"s": total}

    def idle(self, p, s, done, steps, rate_at, fixed):  # type: ignore[no-untyped-def]
        return p, {"s": s["s"] * _as(self.rho ** _missed(done, steps, p), p)}


class Adam(Rule):
    """Kingma and Ba 2015; with ``decay`` AdamW (Loshchilov and Hutter 2019); with ``most`` AMSGrad (Reddi et al.)."""

    name = "adam"

    def __init__(self, b1: float, b2: float, eps: float, decay: float = 0.0, most: bool = False):
        self.b1, self.b2, self.eps, self.decay, self.most = b1, b2, eps, decay, most
        self.slots = ("m", "v", "most") if most else ("m", "v")
        self.decays = decay != 0

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        m = self.b1 * s["m"] + (1 - self.b1) * g
        v = self.b2 * s["v"] + (1 - self.b2) * g * g
        new = {"m": m, "v": v}
        if self.most:
            v = new["most"] = xp.maximum(s["most"], v)
        rate = now.rate(p)
        if self.decay:
            p = p * (1 - rate * self.decay)
        scale = xp.sqrt(v) / xp.sqrt(now.one_minus(self.b2, p)) + self.eps
        return p - rate / now.one_minus(self.b1, p) * m / scale, new

    def idle(self, p, s, done, steps, rate_at, fixed):  # type: ignore[no-untyped-def]
        most = _fading(self.b1 if self.most else self.b1 / math.sqrt(self.b2), p.dtype)
        if self.decay and not fixed:
            most = None  # the product of the decays has no closed form
        p, s, done = _loop(self, p, s, done, steps, rate_at, most)
        left = _missed(done, steps, p)
        if self.decay and fixed:
            p = p * _as((1 - rate_at(xp.astype(steps, np.float64)) * self.decay) ** left, p)
        return p, {**s, "m": s["m"] * _as(self.b1**left, p), "v": s["v"] * _as(self.b2**left, p)}


class EG(Rule):
    """Exponentiated gradient (Kivinen and Warmuth 1997): a parameter is a distribution, and stays one.

    v = mu v - rate g; p = softmax(log p + v) over ``axis``, or over all of it.
    """

    name, slots, elementwise = "eg", ("v",), False

    def __init__(self, mu: float, axis: int | None):
        self.mu, self.axis = mu, axis

    def step(self, p: Tensor, g: Tensor, s: Slots, now: Now) -> tuple[Tensor, Slots]:
        v = self.mu * s["v"] - now.rate(p) * g
        z = xp.log(p) + v
        return xp.exp(z - xp.logsumexp(z, axis=self.axis, keepdims=True)), {"v": v}
