"""``theano.tensor.nnet``, ``.signal`` and ``.nnet.conv``: activations, losses, convolution and pooling."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano.functions import specify_shape
from symc.compat.theano.variable import TensorVariable, lifted, tensor_of, wrap
from symc.errors import InputError


def _rows(x: Any) -> sc.Tensor:
    t = tensor_of(x)
    return t[None] if t.ndim == 1 else t


def softmax(c: Any) -> TensorVariable:
    """Softmax of rows. A vector is one row, so that the result has two axes, as in Theano."""
    return wrap(sc.softmax(_rows(c), -1))


def logsoftmax(c: Any) -> TensorVariable:
    return wrap(sc.log_softmax(_rows(c), -1))


def softmax_with_bias(x: Any, b: Any) -> TensorVariable:
    return softmax(wrap(tensor_of(x) + tensor_of(b)))


def relu(x: Any, alpha: Any = 0) -> TensorVariable:
    t = tensor_of(x)
    return wrap(sc.relu(t) if isinstance(alpha, int) and alpha == 0 else sc.where(t > 0, t, tensor_of(alpha) * t))


def elu(x: Any, alpha: float = 1) -> TensorVariable:
    return wrap(sc.nn.elu(tensor_of(x), alpha))


def hard_sigmoid(x: Any) -> TensorVariable:
    return wrap(sc.clip(0.2 * tensor_of(x) + 0.5, 0, 1))


def binary_crossentropy(output: Any, target: Any) -> TensorVariable:
    p, t = tensor_of(output), tensor_of(target)
    return wrap(-(t * sc.log(p) + (1 - t) * sc.log(1 - p)))


def sigmoid_binary_crossentropy(output: Any, target: Any) -> TensorVariable:
    return wrap(sc.nn.binary_cross_entropy(tensor_of(output), tensor_of(target), reduction="none"))


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> TensorVariable:
    """Cross-entropy of rows of probabilities with rows, or with numbers of classes."""
    p, t = sc.log(tensor_of(coding_dist)), tensor_of(true_dist)
    if t.ndim == p.ndim:
        return wrap(-sc.sum(t * p, -1))
    return wrap(-sc.take_along_axis(p, t[..., None], -1)[..., 0])


def crossentropy_softmax_1hot(x: Any, y_idx: Any, **options: Any) -> list[TensorVariable]:
    p = softmax(x)
    return [categorical_crossentropy(p, y_idx), p]


def conv2d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None, border_mode: Any = "valid",
           subsample: Any = (1, 1), filter_flip: bool = True, image_shape: Any = None, filter_dilation: Any = (1, 1),
           num_groups: int = 1, **options: Any) -> TensorVariable:
    """Convolution of [samples, channels, rows, columns] with filters that are flipped, unless ``filter_flip=False``."""
    x, w = tensor_of(input), tensor_of(filters)
    known = input_shape or image_shape
    x = specify_shape(x, known).tensor if known else x
    w = specify_shape(w, filter_shape).tensor if filter_shape else w
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], filter_dilation, strict=True)]
    if border_mode in ("full", "half"):
        padding: Any = [k - 1 if border_mode == "full" else k // 2 for k in spans]
        if not all(isinstance(k, int) for k in padding):  # a convolution pads by numbers alone
            x, padding = sc.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding))), 0
    else:
        padding = 0 if border_mode == "valid" else border_mode
    return wrap(sc.conv(x, w[:, :, ::-1, ::-1] if filter_flip else w, stride=tuple(subsample), padding=padding,
                        dilation=tuple(filter_dilation), groups=num_groups))


def pool_2d(input: Any, ws: Any = None, ignore_border: bool | None = None, stride: Any = None, pad: Any = (0, 0),
            mode: str = "max", ds: Any = None, st: Any = None, padding: Any = None) -> TensorVariable:
    """The last two axes in windows: "max", "sum", "average_inc_pad" or "average_exc_pad". Rows and columns that fill no
    window make one of their own, unless ``ignore_border``."""
    x, window = tensor_of(input), tuple(int(k) for k in (ws if ws is not None else ds))
    step = tuple(int(k) for k in (stride or st or window))
    around, lead = tuple(padding or pad), x.shape[:-2]
    x = x.reshape((-1, 1, *x.shape[-2:]))  # type: ignore[attr-defined]
    fill: Any = -np.inf if mode == "max" else 0
    if not ignore_border:
        if any(around) or any(s > k for s, k in zip(step, window, strict=True)):
            raise InputError("pool_2d: without ignore_border there is no padding, and no step larger than the window")
        more = [(k - n) % s for n, k, s in zip(x.shape[-2:], window, step, strict=True)]
        ones = sc.pad(sc.ones(x.shape[-2:], x.dtype), [(0, m) for m in more])[None, None]
        x = sc.pad(x, [(0, 0), (0, 0), *[(0, m) for m in more]], constant_values=fill)
    if mode == "max":
        out = sc.max_pool(x, window, step, around)
    elif mode in ("sum", "average_inc_pad", "average_exc_pad"):
        out = sc.avg_pool(x, window, step, around, count_include_pad=mode != "average_exc_pad")
        if mode == "sum":
            out = out * (window[0] * window[1])
        elif not ignore_border:  # what was filled up does not count
            out = out / sc.avg_pool(ones, window, step)
    else:
        raise InputError(f"pool_2d: mode={mode!r} is none of max, sum, average_inc_pad, average_exc_pad")
    return wrap(out.reshape((*lead, *out.shape[-2:])))  # type: ignore[attr-defined]


def max_pool_2d(input: Any, ds: Any, ignore_border: bool | None = None, st: Any = None, padding: Any = (0, 0),
                mode: str = "max") -> TensorVariable:
    return pool_2d(input, ds, ignore_border, st, padding, mode)


def signal_conv2d(input: Any, filters: Any, image_shape: Any = None, filter_shape: Any = None,
                  border_mode: str = "valid", subsample: Any = (1, 1), **options: Any) -> TensorVariable:
    """Convolution of images without channels, each with each filter."""
    x, w = tensor_of(input), tensor_of(filters)
    x = specify_shape(x, image_shape).tensor if image_shape else x
    w = specify_shape(w, filter_shape).tensor if filter_shape else w
    images, several = (x if x.ndim == 3 else x[None]), (w if w.ndim == 3 else w[None])
    out = conv2d(images[:, None], several[:, None], border_mode=border_mode, subsample=subsample).tensor
    out = out if w.ndim == 3 else out[:, 0]
    return wrap(out if x.ndim == 3 else out[0])


def batch_normalization(inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem"
                        ) -> TensorVariable:
    return wrap((tensor_of(inputs) - tensor_of(mean)) / tensor_of(std) * tensor_of(gamma) + tensor_of(beta))


NNET = {
    "sigmoid": lifted(sc.sigmoid), "softplus": lifted(sc.softplus), "softsign": lifted(sc.nn.softsign),
    "selu": lifted(sc.nn.selu), "ultra_fast_sigmoid": lifted(sc.sigmoid), "categorical_crossentropy":
    categorical_crossentropy, "log_softmax": logsoftmax, "crossentropy_categorical_1hot": categorical_crossentropy,
    **{f.__name__: f for f in (
        softmax, logsoftmax, softmax_with_bias, relu, elu, hard_sigmoid, binary_crossentropy, conv2d,
        sigmoid_binary_crossentropy, crossentropy_softmax_1hot, batch_normalization)},
}  # fmt: skip
