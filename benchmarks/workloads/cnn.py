"""Convolution and pooling: value and gradients of the cross-entropy of a small network on images of 28 x 28."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

SIZE, FILTERS, CLASSES = 28, (16, 32), 10
FEATURES = FILTERS[1] * 5 * 5


@dataclass(frozen=True)
class Images(Case):
    batch: int = 0


WORKLOAD: Workload[Images] = Workload(
    "cnn", "conv3x3(16) relu pool conv3x3(32) relu pool dense(10) cross-entropy, value and gradients")
WORKLOAD.add(Images("b32-f32", "float32", 1e-4, batch=32))


@WORKLOAD.inputs
def inputs(case: Images) -> list[Array]:
    """Images, class numbers, then filters or weights and a bias a layer."""
    random = np.random.default_rng(0)

    def normal(shape: int | tuple[int, ...], fan_in: int) -> Array:
        return (random.standard_normal(shape) / np.sqrt(fan_in)).astype(case.dtype)

    images = normal((case.batch, 1, SIZE, SIZE), 1)
    labels = random.integers(0, CLASSES, case.batch)
    first, second = FILTERS
    return [
        images, labels, normal((first, 1, 3, 3), 9), normal(first, 100), normal((second, first, 3, 3), 9 * first),
        normal(second, 100), normal((FEATURES, CLASSES), FEATURES), normal(CLASSES, 100),
    ]


# --- by hand ----------------------------------------------------------------------------------------------------------


def columns(x: Array) -> Array:
    """The 3 x 3 windows of [n, c, h, w], as [n, h - 2, w - 2, c * 9]."""
    view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    return np.ascontiguousarray(view).reshape(*view.shape[:3], -1)


def convolve(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    """The convolution, and the columns that its gradient needs."""
    found = columns(x)
    return (found @ w.reshape(len(w), -1).T + b).transpose(0, 3, 1, 2), found


def filter_gradients(g: Array, found: Array, w: Array) -> tuple[Array, Array]:
    flat = np.ascontiguousarray(g.transpose(0, 2, 3, 1)).reshape(-1, len(w))
    return (flat.T @ found.reshape(len(flat), -1)).reshape(w.shape), flat.sum(0)


def image_gradient(g: Array, w: Array, shape: tuple[int, ...]) -> Array:
    spread = (np.ascontiguousarray(g.transpose(0, 2, 3, 1)) @ w.reshape(len(w), -1)).reshape(
        len(g), *g.shape[2:], *w.shape[1:])
    out = np.zeros(shape, g.dtype)
    for i in range(3):
        for j in range(3):
            out[:, :, i : i + g.shape[2], j : j + g.shape[3]] += spread[..., i, j].transpose(0, 3, 1, 2)
    return out


def pool(x: Array) -> tuple[Array, Array]:
    """The greatest of each 2 x 2, and all of them."""
    n, c, h, w = x.shape[0], x.shape[1], x.shape[2] // 2, x.shape[3] // 2
    tiles = x[:, :, : 2 * h, : 2 * w].reshape(n, c, h, 2, w, 2)
    return tiles.max((3, 5)), tiles


def pool_gradient(g: Array, top: Array, tiles: Array, shape: tuple[int, ...]) -> Array:
    n, c, h, _, w, _ = tiles.shape
    out = np.zeros(shape, g.dtype)
    hit = (tiles == top[:, :, :, None, :, None]) * g[:, :, :, None, :, None]
    out[:, :, : 2 * h, : 2 * w] = hit.reshape(n, c, 2 * h, 2 * w)
    return out


def numpy_step(x: Array, labels: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array) -> list[Any]:
    """The loss and its gradients, derived by hand."""
    a1, columns1 = convolve(x, w1, b1)
    r1 = np.maximum(a1, 0)
    p1, tiles1 = pool(r1)
    a2, columns2 = convolve(p1, w2, b2)
    r2 = np.maximum(a2, 0)
    p2, tiles2 = pool(r2)
    flat = p2.reshape(len(x), -1)
    scores = flat @ w3 + b3
    scores = scores - scores.max(1, keepdims=True)
    powers = np.exp(scores)
    total, each = powers.sum(1, keepdims=True), np.arange(len(labels))
    loss = (np.log(total[:, 0]) - scores[each, labels]).mean()
    g = powers / total
    g[each, labels] -= 1
    g /= np.array(len(labels), g.dtype)
    g3, gb3 = flat.T @ g, g.sum(0)
    g = pool_gradient((g @ w3.T).reshape(p2.shape), p2, tiles2, r2.shape) * (a2 > 0)
    g2, gb2 = filter_gradients(g, columns2, w2)
    g = pool_gradient(image_gradient(g, w2, p1.shape), p1, tiles1, r1.shape) * (a1 > 0)
    return [loss, *filter_gradients(g, columns1, w1), g2, gb2, g3, gb3]


@WORKLOAD.reference
def reference(case: Images, *arrays: Array) -> list[Any]:
    return numpy_step(*arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Images], *arrays: Array) -> Callable[..., Any]:
    return numpy_step


# --- derived ----------------------------------------------------------------------------------------------------------


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Images], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def layer(x: Any, w: Any, b: Any) -> Any:
        a = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "VALID") + b[:, None, None])
        return jax.lax.reduce_window(a, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(parameters: Sequence[Any], x: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        scores = layer(layer(x, w1, b1), w2, b2).reshape(len(x), -1) @ w3 + b3
        return -jax.nn.log_softmax(scores)[jnp.arange(len(x)), labels].mean()

    def step(x: Any, labels: Any, *parameters: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, x, labels)
        return value, *gradients

    return jax.jit(step)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Images], x: Any, labels: Any, *parameters: Any) -> Built:
    import torch.nn.functional as F

    w1, b1, w2, b2, w3, b3 = parameters

    def loss(x: Any, labels: Any) -> Any:
        h = F.max_pool2d(F.relu(F.conv2d(x, w1, b1)), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, w2, b2)), 2)
        return F.cross_entropy(h.flatten(1) @ w3 + b3, labels)

    return Built(kit.torch_value_and_grad(run, loss, parameters), [x, labels])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Images], x: Array, labels: Array, *parameters: Array) -> Callable[..., Any]:
    """Any number of images; their size and those of the layers are known."""
    import symc as sc

    images = sc.input("x", "float32", shape=("n", 1, SIZE, SIZE))
    classes = sc.input("labels", "int64", shape=("n",))
    weights = [sc.input(f"p{i}", "float32", shape=p.shape) for i, p in enumerate(parameters)]
    w1, b1, w2, b2, w3, b3 = weights
    h = sc.max_pool(sc.relu(sc.conv(images, w1, b1)), 2)
    h = sc.max_pool(sc.relu(sc.conv(h, w2, b2)), 2)
    scores = sc.log_softmax(h.reshape((-1, FEATURES)) @ w3 + b3, axis=1)
    loss = -scores[sc.arange(images.shape[0]), classes].mean()
    return sc.compile([loss, *sc.grad(loss, weights)], [images, classes, *weights], threads=run.threads)
