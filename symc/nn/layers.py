"""Layers: functions of a collection of parameters and of an input.

``h = sc.nn.dense(P.sub("hidden"), x, 128, activation="relu")``. A layer makes its parameters in the collection where it
is first called, of the sizes that the input says, and finds them there when it is called again. Layers that act
otherwise in training (``batch_norm``, ``dropout``) have ``train=``; what they want their states to become they put into
``P.updates``.
"""

from __future__ import annotations

import math
from typing import Any

from symc import numpy_api as xp
from symc import random
from symc.errors import InputError, ShapeError
from symc.ir.dtypes import finfo
from symc.nn import windows
from symc.nn.activations import activated
from symc.numpy_api.promotion import rows
from symc.params.collection import Params
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.sizes import entries, holds_entries
from symc.tensors.tensor import Tensor


def known_size(x: Tensor, axis: int, layer: str) -> int:
    """The size of an axis that parameters are made for. Raises ShapeError where it is not a number."""
    n = x.value.shape[axis] if -x.ndim <= axis < x.ndim else None
    if not isinstance(n, int):
        raise ShapeError(f"{layer}: axis {axis} of x must have a size that is known", values=rows([x]),
                         help="declare it: sc.input('x', 'float32', shape=('n', 784))")
    return n


def check_params(P: Any, layer: str) -> Params:
    """The collection that a layer was given. Raises InputError for anything else."""
    if not isinstance(P, Params):
        raise InputError(f"sc.nn.{layer}: the first argument is a collection of parameters, not {type(P).__name__}",
                         help=f"P = sc.Params(); y = sc.nn.{layer}(P.sub('name'), x, ...)")
    return P


# --- affine ----------------------------------------------------------------------------------------------------------


@located
def dense(P: Params, x: Any, units: int, activation: Any = None, bias: bool = True, init: Any = None) -> Tensor:
    """x @ w + b over the last axis, w of shape (in, units); then an activation, a function or its name."""
    x = as_tensor(x)
    w = check_params(P, "dense").weight("w", (known_size(x, -1, "dense"), units), init)
    y = x @ w
    return activated(y + P.weight("b", units, 0.0) if bias else y, activation)


affine = dense


@located
def bilinear(P: Params, x: Any, y: Any, units: int, bias: bool = True, init: Any = None) -> Tensor:
    """x @ w[k] @ y for each of ``units`` matrices w[k], over the last axes of x and y."""
    x, y = as_tensor(x), as_tensor(y)
    check_params(P, "bilinear")
    a, b = known_size(x, -1, "bilinear"), known_size(y, -1, "bilinear")
    z = xp.einsum("...i,kij,...j->...k", x, P.weight("w", (units, a, b), init), y)
    return z + P.weight("b", units, 0.0) if bias else z


@located
def embedding(P: Params, index: Any, n: int, d: int, init: Any = None) -> Tensor:
    """Rows of a table of n rows of d numbers, at ``index``. Optimizers update the rows that were read."""
    return check_params(P, "embedding").lookup("table", n, d, init)[as_tensor(index)]


# --- convolution ------------------------------------------------------------------------------------------------------


@located
def convolution(P: Params, x: Any, filters: int, window: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                groups: int = 1, activation: Any = None, bias: bool = True, init: Any = None) -> Tensor:
    """``sc.conv`` by parameters: x [samples, channels, *sizes] for 1, 2, 3 or more sizes, w of shape
    (filters, channels / groups, *window), and b. ``window`` is a number, or one for each size."""
    x = as_tensor(x)
    rank = x.ndim - 2
    if rank < 1:
        raise ShapeError(f"sc.nn.convolution: x has {x.ndim} axes", values=rows([x]),
                         help="x is [samples, channels, *sizes]")
    sizes = entries(window) if holds_entries(window) else (window,) * rank
    channels = known_size(x, 1, "convolution")
    w = check_params(P, "convolution").weight("w", (filters, channels // groups, *sizes), init)
    b = P.weight("b", filters, 0.0) if bias else None
    return activated(windows.conv(x, w, b, stride, padding, dilation, groups), activation)


# --- normalization ----------------------------------------------------------------------------------------------------


def _scaled(P: Params, x: Tensor, sizes: tuple[int, ...], view: tuple[int, ...], affine: bool) -> Tensor:
    if not affine:
        return x
    scale, shift = P.weight("scale", sizes, 1.0), P.weight("shift", sizes, 0.0)
    return x * xp.reshape(scale, view) + xp.reshape(shift, view)


@located
def batch_norm(P: Params, x: Any, train: bool, momentum: float = 0.1, eps: float = 1e-5, axis: int = 1,
               affine: bool = True) -> Tensor:
    """x with mean 0 and variance 1 in every channel (``axis``), over all other axes; then scaled and shifted.

    With ``train`` mean and variance are the batch's, and the running ones, P["mean"] and P["variance"], are to move
    towards them by ``momentum`` (the variance with n - 1 for n, as in PyTorch): ``P.updates``. Without it they are the
    running ones.
    """
    x = as_tensor(x)
    channels = known_size(x, axis, "batch_norm")
    axis %= x.ndim
    view = tuple(channels if a == axis else 1 for a in range(x.ndim))
    mean, variance = (check_params(P, "batch_norm").state(name, channels, start)
                      for name, start in (("mean", 0.0), ("variance", 1.0)))
    m, v = mean, variance
    if train:
        over = tuple(a for a in range(x.ndim) if a != axis)
        m, v = xp.mean(x, axis=over), xp.var(x, axis=over)
        n = (x.size // channels) * xp.ones((), x.dtype)
        for state, now in ((mean, m), (variance, v * (n / xp.maximum(n - 1, 1)))):
            before = P.updates.get(state, state)  # called twice, a layer moves twice
            P.updates[state] = xp.astype((1 - momentum) * before + momentum * now, state.dtype)
    y = (x - xp.reshape(m, view)) / xp.sqrt(xp.reshape(v, view) + eps)
    return _scaled(P, y, (channels,), view, affine)


@located
def layer_norm(P: Params, x: Any, eps: float = 1e-5, axes: int = 1, affine: bool = True) -> Tensor:
    """x with mean 0 and variance 1 over the last ``axes`` axes; then scaled and shifted, each element by its own."""
    x = as_tensor(x)
    check_params(P, "layer_norm")
    over = tuple(range(-axes, 0))
    y = (x - xp.mean(x, axis=over, keepdims=True)) / xp.sqrt(xp.var(x, axis=over, keepdims=True) + eps)
    if not affine:
        return y
    sizes = tuple(known_size(x, a, "layer_norm") for a in over)
    return _scaled(P, y, sizes, sizes, affine)


@located
def rms_norm(P: Params, x: Any, eps: float = 1e-6) -> Tensor:
    """x over the root of the mean of its squares along the last axis; then scaled."""
    x = as_tensor(x)
    scale = check_params(P, "rms_norm").weight("scale", known_size(x, -1, "rms_norm"), 1.0)
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + eps) * scale


@located
def group_norm(P: Params, x: Any, groups: int, eps: float = 1e-5, affine: bool = True) -> Tensor:
    """x [samples, channels, *sizes] with mean 0 and variance 1 in every group of channels; then scaled and shifted."""
    x = as_tensor(x)
    check_params(P, "group_norm")
    channels = known_size(x, 1, "group_norm")
    if groups < 1 or channels % groups:
        raise ShapeError(f"sc.nn.group_norm: {channels} channels cannot be taken in {groups} groups", values=rows([x]))
    z = x.reshape((x.shape[0], groups, channels // groups, *x.shape[2:]))
    over = tuple(range(2, z.ndim))
    z = (z - xp.mean(z, axis=over, keepdims=True)) / xp.sqrt(xp.var(z, axis=over, keepdims=True) + eps)
    return _scaled(P, z.reshape(x.shape), (channels,), (1, channels, *[1] * (x.ndim - 2)), affine)


# --- noise ------------------------------------------------------------------------------------------------------------


@located
def dropout(key: Any, x: Any, rate: float, train: bool, shape: Any = None) -> Tensor:
    """x with each element 0 with probability ``rate`` and else divided by 1 - rate, if ``train``; otherwise x.

    ``key``: a key of ``sc.random``, or the collection of parameters, which then gives fresh ones (``P.key()``).
    ``shape``: that of the mask, where several elements share their fate (1 for an axis along which they do).
    """
    x = as_tensor(x)
    if not 0 <= rate < 1:
        raise InputError(f"sc.nn.dropout: the rate is {rate}", help="a probability, below 1")
    if not train or rate == 0:
        return x
    if isinstance(key, Params):
        key = key.key()
    keep = random.bernoulli(key, 1 - rate, x.shape if shape is None else shape)
    return xp.where(keep, x / (1 - rate), xp.zeros((), x.dtype))


# --- attention --------------------------------------------------------------------------------------------------------


@located
def attention(query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False) -> Tensor:
    """softmax(query @ key.T / sqrt(d)) @ value over the last two axes, [..., length, d].

    ``mask`` is true where a query (row) sees a key (column); with ``causal`` it sees none after itself. A query that
    sees nothing gets zeros.
    """
    q, k, v = as_tensor(query), as_tensor(key), as_tensor(value)
    scores = (q / math.sqrt(known_size(q, -1, "attention"))) @ k.mT
    if causal:
        seen = xp.arange(k.shape[-2])[None, :] <= xp.arange(q.shape[-2])[:, None]
        mask = seen if mask is None else xp.logical_and(as_tensor(mask), seen)
    if mask is None:
        return xp.softmax(scores, axis=-1) @ v
    # a finite number for what is not seen: a row of nothing but infinities has no softmax
    low = xp.where(mask, scores, float(finfo(scores.dtype).min))
    return xp.where(mask, xp.softmax(low, axis=-1), xp.zeros((), scores.dtype)) @ v


@located
def multi_head_attention(P: Params, query: Any, key: Any = None, value: Any = None, *, heads: int, mask: Any = None,
                         causal: bool = False, bias: bool = True, init: Any = None) -> Tensor:
    """Attention in ``heads`` parts of the last axis: [samples, length, d], each operand and the result projected.

    By default key and value are the query (self-attention). ``mask`` broadcasts to [samples, heads, queries, keys].
    """
    q = as_tensor(query)
    check_params(P, "multi_head_attention")
    k = q if key is None else as_tensor(key)
    v = k if value is None else as_tensor(value)
    d = known_size(q, -1, "multi_head_attention")
    if heads < 1 or d % heads:
        raise ShapeError(f"sc.nn.multi_head_attention: {d} cannot be taken in {heads} heads", values=rows([q]))

    def split(x: Tensor) -> Tensor:
        return xp.swapaxes(xp.reshape(x, (*x.shape[:-1], heads, d // heads)), -2, -3)

    parts = [
        split(dense(P.sub(name), x, d, bias=bias, init=init))
        for name, x in (("query", q), ("key", k), ("value", v))
    ]
    y = xp.swapaxes(attention(parts[0], parts[1], parts[2], mask, causal), -2, -3)
    return dense(P.sub("out"), y.reshape(q.shape), d, bias=bias, init=init)


__all__ = ["affine", "attention", "batch_norm", "bilinear", "convolution", "dense", "dropout", "embedding",
           "group_norm", "layer_norm", "multi_head_attention", "rms_norm"]
