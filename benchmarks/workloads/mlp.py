"""A training step: softmax cross-entropy of a small network, its gradients, and SGD on parameters held in place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Built, Case, Run, Workload

SIZES = (784, 512, 256, 10)
RATE = 1e-4


@dataclass(frozen=True)
class Batch(Case):
    """``seed`` is one whose activations stay clear of zero, where float32 and float64 could disagree on relu."""

    batch: int = 0
    seed: int = 0


WORKLOAD: Workload[Batch] = Workload("mlp", f"training step of a {'-'.join(map(str, SIZES))} network, in-place SGD")
WORKLOAD.add(
    Batch("b128-f32", "float32", 2e-5, batch=128, seed=4),
    Batch("b16-f32", "float32", 2e-5, batch=16, seed=0),
)


@WORKLOAD.inputs
def inputs(case: Batch) -> list[Array]:
    """Features, class numbers, then a weight and a bias a layer."""
    random = np.random.default_rng(case.seed)
    x = random.standard_normal((case.batch, SIZES[0])).astype(case.dtype)
    labels = random.integers(0, SIZES[-1], case.batch)
    parameters = []
    for fan_in, fan_out in pairwise(SIZES):
        weight = random.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)
        parameters += [weight.astype(case.dtype), np.zeros(fan_out, case.dtype)]
    return [x, labels, *parameters]


def layers(parameters: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The parameters as pairs of weight and bias."""
    return list(zip(parameters[::2], parameters[1::2]))


def stateful(step: Callable[..., Any], x: Any, labels: Any, parameters: Callable[[], Sequence[Any]]) -> Built:
    """A step whose check covers the loss and the parameters after one update."""
    return Built(step, [x, labels], lambda loss: [loss, *parameters()], stateful=True)


def numpy_step(x: Array, labels: Array, parameters: Sequence[Array]) -> Array:
    """The hand-derived step; updates the parameters and returns the loss."""
    hidden = [x]
    for weight, bias in layers(parameters)[:-1]:
        hidden.append(np.maximum(hidden[-1] @ weight + bias, 0))
    logits = hidden[-1] @ parameters[-2] + parameters[-1]
    logits -= logits.max(axis=1, keepdims=True)
    powers = np.exp(logits)
    total = powers.sum(axis=1, keepdims=True)
    each = np.arange(len(labels))
    loss = (np.log(total[:, 0]) - logits[each, labels]).mean()
    delta = powers / total
    delta[each, labels] -= 1
    delta /= len(labels)
    for (weight, bias), below in zip(reversed(layers(parameters)), reversed(hidden)):
        upward = delta
        if below is not x:
            delta = (upward @ weight.T) * (below > 0)
        weight -= RATE * (below.T @ upward)
        bias -= RATE * upward.sum(axis=0)
    return loss


@WORKLOAD.reference
def reference(case: Batch, x: Array, labels: Array, *parameters: Array) -> list[Array]:
    return [numpy_step(x, labels, parameters), *parameters]


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Batch], x: Array, labels: Array, *parameters: Array) -> Built:
    return stateful(lambda x, labels: numpy_step(x, labels, parameters), x, labels, lambda: parameters)


def relu_kernel(hidden: Array, bias: Array) -> None:
    for i in prange(hidden.shape[0]):
        for j in range(hidden.shape[1]):
            hidden[i, j] = max(hidden[i, j] + bias[j], hidden.dtype.type(0))


def loss_kernel(logits: Array, bias: Array, labels: Array) -> float:
    """Turns the logits into their gradient and returns the loss."""
    real = logits.dtype.type
    count, loss = real(logits.shape[0]), real(0)
    for i in range(logits.shape[0]):
        top, total = logits[i, 0] + bias[0], real(0)
        for j in range(logits.shape[1]):
            logits[i, j] += bias[j]
            top = max(top, logits[i, j])
        loss += top - logits[i, labels[i]]
        for j in range(logits.shape[1]):
            logits[i, j] = math.exp(logits[i, j] - top)
            total += logits[i, j]
        loss += math.log(total)
        for j in range(logits.shape[1]):
            logits[i, j] /= total * count
        logits[i, labels[i]] -= real(1) / count
    return loss / count


def mask_kernel(delta: Array, hidden: Array) -> None:
    for i in prange(delta.shape[0]):
        for j in range(delta.shape[1]):
            delta[i, j] = delta[i, j] if hidden[i, j] > 0 else delta.dtype.type(0)


def update_kernel(weight: Array, bias: Array, gradient: Array, delta: Array, rate: float) -> None:
    for i in prange(weight.shape[0]):
        for j in range(weight.shape[1]):
            weight[i, j] -= rate * gradient[i, j]
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            bias[j] -= rate * delta[i, j]


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Batch], x: Array, labels: Array, *parameters: Array) -> Built:
    """NumPy's matrix products with hand-fused loops between them."""
    relu, loss_of, mask, update = (
        kit.jit(run, kernel) for kernel in (relu_kernel, loss_kernel, mask_kernel, update_kernel)
    )
    rate = np.float32(RATE)

    def step(x: Array, labels: Array) -> float:
        hidden = [x]
        for weight, bias in layers(parameters)[:-1]:
            hidden.append(hidden[-1] @ weight)
            relu(hidden[-1], bias)
        delta = hidden[-1] @ parameters[-2]
        loss = loss_of(delta, parameters[-1], labels)
        for (weight, bias), below in zip(reversed(layers(parameters)), reversed(hidden)):
            upward = delta
            if below is not x:
                delta = upward @ weight.T
                mask(delta, below)
            update(weight, bias, below.T @ upward, upward, rate)
        return loss

    return stateful(step, x, labels, lambda: parameters)


def loss_formula(m: Any, x: Any, labels: Any, parameters: Sequence[Any]) -> Any:
    """The loss in a NumPy-like library ``m``, for those that derive the gradient."""
    for weight, bias in layers(parameters)[:-1]:
        x = m.maximum(m.matmul(x, weight) + bias, 0)
    logits = m.matmul(x, parameters[-2]) + parameters[-1]
    logits = logits - m.max(logits, axis=1, keepdims=True)
    picked = logits[np.arange(len(labels)), labels]
    return m.mean(m.log(m.sum(m.exp(logits), axis=1)) - picked)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Batch], x: Any, labels: Any, *parameters: Any) -> Built:
    import jax
    import jax.numpy as jnp

    def pure_step(parameters: list[Any], x: Any, labels: Any) -> tuple[Any, list[Any]]:
        loss, gradients = jax.value_and_grad(lambda p: loss_formula(jnp, x, labels, p))(parameters)
        return loss, [p - RATE * g for p, g in zip(parameters, gradients)]

    compiled = jax.jit(pure_step, donate_argnums=0)
    current = [jnp.array(p, copy=True) for p in parameters]

    def step(x: Any, labels: Any) -> Any:
        loss, current[:] = compiled(current, x, labels)
        return loss

    return stateful(step, x, labels, lambda: current)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Batch], x: Any, labels: Any, *parameters: Any) -> Built:
    import torch

    leaves = [p.requires_grad_(True) for p in parameters]

    def forward(x: Any, labels: Any, parameters: Sequence[Any]) -> Any:
        for weight, bias in layers(parameters)[:-1]:
            x = torch.relu(torch.addmm(bias, x, weight))
        return torch.nn.functional.cross_entropy(torch.addmm(parameters[-1], x, parameters[-2]), labels)

    loss_of = kit.torch_function(run, forward)

    def step(x: Any, labels: Any) -> Any:
        loss = loss_of(x, labels, leaves)
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            torch._foreach_add_(leaves, gradients, alpha=-RATE)
        return loss

    return stateful(step, x, labels, lambda: leaves)


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Batch], x: Array, labels: Array, *parameters: Array) -> Built:
    import pytensor
    import pytensor.tensor as pt

    features, classes = kit.pytensor_inputs([x, labels])
    shared = [pytensor.shared(p) for p in parameters]
    hidden = features
    for weight, bias in layers(shared)[:-1]:
        hidden = pt.maximum(hidden @ weight + bias, np.float32(0))
    scores = pt.special.log_softmax(hidden @ shared[-2] + shared[-1], axis=1)
    loss = -scores[pt.arange(classes.shape[0]), classes].mean(dtype=run.case.dtype)
    updates = [(p, p - np.float32(RATE) * g) for p, g in zip(shared, pytensor.grad(loss, shared))]
    step = kit.pytensor_function(run, [features, classes], loss, updates=updates)
    return stateful(step, x, labels, lambda: [p.get_value() for p in shared])


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Batch], x: Array, labels: Array, *parameters: Array) -> Built:
    import autograd
    import autograd.numpy as anp

    value_and_grad = autograd.value_and_grad(lambda p, x, labels: loss_formula(anp, x, labels, p))

    def step(x: Array, labels: Array) -> Array:
        loss, gradients = value_and_grad(list(parameters), x, labels)
        for parameter, gradient in zip(parameters, gradients):
            parameter -= np.float32(RATE) * gradient
        return loss

    return stateful(step, x, labels, lambda: parameters)


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Batch], x: Array, labels: Array, *parameters: Array) -> Built:
    """Parameters are shared variables; the batch size stays open and the layer sizes are known."""
    import symc as sc

    features = sc.input("x", "float32", shape=("n", SIZES[0]))
    classes = sc.input("labels", "int64", shape=("n",))
    shared = [sc.shared(p, f"p{i}") for i, p in enumerate(parameters)]
    hidden = features
    for weight, bias in layers(shared)[:-1]:
        hidden = sc.maximum(hidden @ weight + bias, 0)
    logits = hidden @ shared[-2] + shared[-1]
    logits = logits - logits.max(axis=1, keepdims=True)
    picked = sc.take_along_axis(logits, classes[:, None], axis=1)[:, 0]
    loss = (sc.log(sc.exp(logits).sum(axis=1)) - picked).mean()
    updates = {p: p - RATE * g for p, g in zip(shared, sc.grad(loss, shared))}
    step = sc.compile(loss, [features, classes], updates=updates, threads=run.threads)
    return stateful(step, x, labels, lambda: [p.get_value() for p in shared])
