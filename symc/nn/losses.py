"""Losses, stable and from logits, under PyTorch's names.

``reduction`` is "mean" (over all that the loss has one number for), "sum" or "none". Classes are integers, along the
last axis of the logits.
"""

from __future__ import annotations

import math
from typing import Any

from symc import numpy_api as xp
from symc import special
from symc.errors import DTypeError, InputError, ShapeError
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.tensor import Tensor
from symc.transforms.control import scan

_REDUCTIONS = {"mean": xp.mean, "sum": xp.sum, "none": lambda x: x}


def _reduced(x: Tensor, reduction: str) -> Tensor:
    if reduction not in _REDUCTIONS:
        raise InputError(f"reduction={reduction!r}", help="mean, sum or none")
    return _REDUCTIONS[reduction](x)


def _at_class(x: Tensor, target: Tensor, name: str) -> Tensor:
    """The element of the last axis of x that each of the classes ``target`` names."""
    if target.dtype.kind not in "iu":
        raise DTypeError(f"sc.nn.{name}: classes are integers", values=rows([x, target]),
                         help="y.astype('int64'); for probabilities the target has the shape of the logits")
    if target.ndim != x.ndim - 1:
        raise ShapeError(f"sc.nn.{name}: {x.ndim} axes of numbers need {x.ndim - 1} of classes",
                         values=rows([x, target]), help="classes are the last axis: x [..., classes], target [...]")
    return xp.take_along_axis(x, target[..., None], axis=-1)[..., 0]


def _pair(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    return as_tensor(a), as_tensor(b)


def _alike(a: Any, b: Any, name: str) -> tuple[Tensor, Tensor]:
    """A pair with as many axes: [n, 1] against [n] would make n² differences. Raises ShapeError."""
    x, t = _pair(a, b)
    if x.ndim != t.ndim and x.ndim and t.ndim:
        raise ShapeError(f"sc.nn.{name}: {x.ndim} axes against {t.ndim}", values=rows([x, t]),
                         help="the same shape for both: x[:, 0], or target[:, None]")
    return x, t


# --- classes ----------------------------------------------------------------------------------------------------------


@located
def cross_entropy(logits: Any, target: Any, label_smoothing: float = 0.0, ignore: int | None = None,
                  reduction: str = "mean") -> Tensor:
    """-log softmax(logits) at the class ``target``; or, for a target with the shape of the logits, its mean under those
    probabilities.

    ``label_smoothing`` gives that much probability to all classes alike. Targets equal to ``ignore`` count nothing, in
    the mean either.
    """
    logits, target = _pair(logits, target)
    if ignore is not None:
        counted = target != ignore
        losses = cross_entropy(logits, xp.where(counted, target, xp.zeros((), target.dtype)), label_smoothing,
                               reduction="none")
        losses = xp.where(counted, losses, xp.zeros((), losses.dtype))
        if reduction != "mean":
            return _reduced(losses, reduction)
        return xp.sum(losses) / xp.maximum(xp.sum(counted.astype(losses.dtype)), 1)
    scores = xp.log_softmax(logits, axis=-1)
    if target.ndim == logits.ndim and target.dtype.kind == "f":
        losses = -xp.sum(target * scores, axis=-1)
    else:
        losses = -_at_class(scores, target, "cross_entropy")
    if label_smoothing:
        losses = (1 - label_smoothing) * losses - label_smoothing * xp.mean(scores, axis=-1)
    return _reduced(losses, reduction)


@located
def nll(log_probabilities: Any, target: Any, reduction: str = "mean") -> Tensor:
    """-log p at the class ``target``, given log p (``log_softmax``)."""
    x, target = _pair(log_probabilities, target)
    return _reduced(-_at_class(x, target, "nll"), reduction)


@located
def binary_cross_entropy(logits: Any, target: Any, reduction: str = "mean") -> Tensor:
    """-t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) for targets between 0 and 1."""
    x, t = _alike(logits, target, "binary_cross_entropy")
    return _reduced(xp.softplus(x) - t * x, reduction)


sigmoid_cross_entropy = binary_cross_entropy


@located
def focal(logits: Any, target: Any, gamma: float = 2.0, reduction: str = "mean") -> Tensor:
    """Binary cross entropy, times (1 - p)^gamma of the probability p of what is right (Lin et al. 2017)."""
    x, t = _alike(logits, target, "focal")
    wrong = t * xp.sigmoid(-x) + (1 - t) * xp.sigmoid(x)
    return _reduced((xp.softplus(x) - t * x) * wrong**gamma, reduction)


@located
def hinge(scores: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """max(0, margin - t x) for targets -1 and 1."""
    x, t = _alike(scores, target, "hinge")
    return _reduced(xp.maximum(margin - t * x, 0), reduction)


@located
def soft_margin(scores: Any, target: Any, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-t x)) for targets -1 and 1."""
    x, t = _alike(scores, target, "soft_margin")
    return _reduced(xp.softplus(-t * x), reduction)


@located
def multi_margin(scores: Any, target: Any, margin: float = 1.0, p: int = 1, reduction: str = "mean") -> Tensor:
    """The mean over classes c of max(0, margin - x[target] + x[c])^p, the target itself left out (Crammer, Singer)."""
    x, target = _pair(scores, target)
    right = _at_class(x, target, "multi_margin")[..., None]
    other = xp.arange(x.shape[-1]) != target[..., None]
    each = xp.where(other, xp.maximum(margin - right + x, 0) ** p, xp.zeros((), x.dtype))
    return _reduced(xp.mean(each, axis=-1), reduction)


# --- numbers ----------------------------------------------------------------------------------------------------------


@located
def mse(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x - target)²."""
    x, t = _alike(x, target, "mse")
    return _reduced((x - t) ** 2, reduction)


@located
def mae(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """\\|x - target\\|."""
    x, t = _alike(x, target, "mae")
    return _reduced(xp.abs(x - t), reduction)


@located
def huber(x: Any, target: Any, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Half the square of the distance up to ``delta``, and then a line."""
    x, t = _alike(x, target, "huber")
    d = xp.abs(x - t)
    near = xp.minimum(d, delta)
    return _reduced(near * (d - 0.5 * near), reduction)


@located
def log_cosh(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """log(cosh(x - target)), without overflow."""
    x, t = _alike(x, target, "log_cosh")
    d = x - t
    return _reduced(xp.softplus(2 * d) - d - math.log(2), reduction)


@located
def poisson_nll(x: Any, target: Any, log_input: bool = True, full: bool = False, reduction: str = "mean") -> Tensor:
    """-log of the probability of a count under Poisson's distribution of rate exp(x); of rate x without ``log_input``.

    ``full`` adds log(target!), which does not depend on x.
    """
    x, t = _alike(x, target, "poisson_nll")
    losses = xp.exp(x) - t * x if log_input else x - special.xlogy(t, x)
    return _reduced(losses + special.gammaln(t + 1.0) if full else losses, reduction)


@located
def gaussian_nll(mean: Any, target: Any, variance: Any, eps: float = 1e-6, full: bool = False,
                 reduction: str = "mean") -> Tensor:
    """-log of the density of ``target`` under a normal distribution. A variance below ``eps`` counts as ``eps``.

    ``full`` adds log(2 pi) / 2, which depends on nothing.
    """
    m, t = _alike(mean, target, "gaussian_nll")
    v = xp.maximum(as_tensor(variance), eps)
    losses = 0.5 * (xp.log(v) + (t - m) ** 2 / v)
    return _reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


# --- distributions and distances --------------------------------------------------------------------------------------


@located
def kl_divergence(log_q: Any, p: Any, reduction: str = "mean") -> Tensor:
    """sum(p (log p - log q)) over the last axis, given log q (``log_softmax``) and p; 0 log 0 is 0."""
    q, p = _pair(log_q, p)
    return _reduced(xp.sum(special.xlogy(p, p) - p * q, axis=-1), reduction)


@located
def cosine_similarity(a: Any, b: Any, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between a and b along the last axis; 0 for a vector shorter than ``eps``."""
    a, b = _pair(a, b)
    lengths = [xp.sqrt(xp.maximum(xp.sum(x * x, axis=-1), eps**2)) for x in (a, b)]
    return xp.sum(a * b, axis=-1) / (lengths[0] * lengths[1])


@located
def cosine_embedding(a: Any, b: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1."""
    cosine, t = cosine_similarity(a, b), as_tensor(target)
    return _reduced(xp.where(t > 0, 1 - cosine, xp.maximum(cosine - margin, 0)), reduction)


@located
def margin_ranking(a: Any, b: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """max(0, margin - t (a - b)): a is to be the greater where t is 1, the lesser where it is -1."""
    a, b = _pair(a, b)
    return _reduced(xp.maximum(margin - as_tensor(target) * (a - b), 0), reduction)


@located
def triplet_margin(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|), distances along the last axis."""
    near, far = (xp.norm(as_tensor(anchor) - as_tensor(x), axis=-1) for x in (positive, negative))
    return _reduced(xp.maximum(margin + near - far, 0), reduction)


@located
def ctc(logits: Any, target: Any, lengths: Any = None, target_lengths: Any = None, blank: int = 0,
        reduction: str = "mean") -> Tensor:
    """-log of the probability of all ways to write ``target`` with blanks and repetitions (Graves et al. 2006).

    logits [time, samples, classes]; target [samples, letters], without blanks, of which the first ``target_lengths``
    count; the first ``lengths`` steps of time count. "mean" is over samples.
    """
    x, t = _pair(logits, target)
    scores = xp.log_softmax(x, axis=-1)
    steps, n, letters = x.shape[0], t.shape[0], t.shape[1]
    never = xp.full((), -1e30, scores.dtype)  # -inf would make nan in derivatives
    places = xp.arange(2 * letters + 1)
    odd = places % 2 == 1
    written = xp.concatenate([xp.repeat(t, 2, axis=1), xp.zeros((n, 1), t.dtype)], axis=1)
    written = xp.where(odd, written, xp.full((), blank, t.dtype))
    jumps = xp.logical_and(xp.logical_and(odd, places > 1), written != xp.roll(written, 2, axis=1))
    counts = [xp.full((n,), s) if c is None else as_tensor(c) for s, c in ((steps, lengths), (letters, target_lengths))]

    def step(before: Tensor, row: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        now, k = row
        one = xp.where(places > 0, xp.roll(before, 1, axis=1), never)
        two = xp.where(jumps, xp.roll(before, 2, axis=1), never)
        after = xp.take_along_axis(now, written, axis=-1) + xp.logaddexp(xp.logaddexp(before, one), two)
        return xp.where((k < counts[0])[:, None], after, before), None

    start = xp.where(places == 0, xp.zeros((), scores.dtype), never) + xp.zeros((n, 1), scores.dtype)
    last, _ = scan(step, start, (scores, xp.arange(steps)))
    ends = [xp.take_along_axis(last, (2 * counts[1] - k)[:, None], axis=1)[:, 0] for k in (0, 1)]
    return _reduced(-xp.logaddexp(ends[0], xp.where(counts[1] > 0, ends[1], never)), reduction)


__all__ = ["binary_cross_entropy", "cosine_embedding", "cosine_similarity", "cross_entropy", "ctc", "focal",
           "gaussian_nll", "hinge", "huber", "kl_divergence", "log_cosh", "mae", "margin_ranking", "mse",
           "multi_margin", "nll", "poisson_nll", "sigmoid_cross_entropy", "soft_margin", "triplet_margin"]
