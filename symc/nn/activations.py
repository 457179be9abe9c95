"""Activations, under PyTorch's names, elementwise but for softmax and its relatives."""

from __future__ import annotations

from typing import Any

from symc import numpy_api as xp
from symc import special
from symc.errors import InputError, did_you_mean
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.tensor import Tensor

relu, sigmoid, softplus = xp.relu, xp.sigmoid, xp.softplus
softmax, log_softmax, tanh = xp.softmax, xp.log_softmax, xp.tanh
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@located
def log_sigmoid(x: Any) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return special.log_expit(x)


@located
def leaky_relu(x: Any, slope: float = 0.01) -> Tensor:
    """x, and ``slope`` * x where x is negative."""
    x = as_tensor(x)
    return xp.where(x >= 0, x, slope * x)


@located
def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """x, and ``alpha`` * (exp(x) - 1) where x is negative."""
    x = as_tensor(x)
    return xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0)))


@located
def selu(x: Any) -> Tensor:
    """The elu that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    return SELU_SCALE * elu(x, SELU_ALPHA)


@located
def gelu(x: Any, approximate: bool = False) -> Tensor:
    """x times the normal distribution function of x; ``approximate`` by tanh, as GPT-2 computes it."""
    x = as_tensor(x)
    if approximate:
        return 0.5 * x * (1 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
    return 0.5 * x * special.erfc(-0.7071067811865476 * x)


@located
def silu(x: Any) -> Tensor:
    """x * sigmoid(x) ("swish")."""
    x = as_tensor(x)
    return x * sigmoid(x)


swish = silu


@located
def mish(x: Any) -> Tensor:
    """x * tanh(softplus(x))."""
    x = as_tensor(x)
    return x * xp.tanh(softplus(x))


@located
def hard_sigmoid(x: Any) -> Tensor:
    """A line from 0 at -3 to 1 at 3."""
    return xp.clip(as_tensor(x) / 6 + 0.5, 0, 1)


@located
def hard_tanh(x: Any) -> Tensor:
    """x between -1 and 1."""
    return xp.clip(as_tensor(x), -1, 1)


@located
def softsign(x: Any) -> Tensor:
    """x / (1 + |x|)."""
    x = as_tensor(x)
    return x / (1 + xp.abs(x))


@located
def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half of an axis, gated by the sigmoid of the second."""
    a, b = xp.split(as_tensor(x), 2, axis=axis)
    return a * sigmoid(b)


#: Activations by name, for layers that take one.
ACTIVATIONS: dict[str, Any] = {f.__name__: f for f in (
    relu, sigmoid, softplus, softmax, log_softmax, tanh, log_sigmoid, leaky_relu, elu, selu, gelu, silu, mish,
    hard_sigmoid, hard_tanh, softsign, glu)}


def activated(x: Tensor, activation: Any) -> Tensor:
    """``x`` after an activation: a function, a name, or None."""
    if activation is None:
        return x
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            raise InputError(f"there is no activation {activation!r}", help=did_you_mean(activation, ACTIVATIONS))
        activation = ACTIVATIONS[activation]
    return activation(x)


__all__ = [*ACTIVATIONS, "swish"]
