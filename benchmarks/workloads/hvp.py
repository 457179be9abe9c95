"""Second derivatives: the Hessian of a network's loss times a vector, by all weights and biases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

SIZES, BATCH = (784, 512, 256, 10), 128
WORKLOAD: Workload[Case] = Workload(
    "hvp", f"Hessian-vector product of the loss of a {'-'.join(map(str, SIZES))} tanh network, batch {BATCH}"
)
WORKLOAD.add(Case("f32", "float32", 2e-4))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """Features, class numbers, parameters, and as many arrays again: the vector."""
    random = np.random.default_rng(0)
    features, labels = random.standard_normal((BATCH, SIZES[0])), random.integers(0, SIZES[-1], BATCH)
    both = []
    for _ in range(2):
        for i, o in pairwise(SIZES):
            both += [random.standard_normal((i, o)) / np.sqrt(i), random.standard_normal(o) * 0.1]
    return [features.astype(case.dtype), labels, *(a.astype(case.dtype) for a in both)]


def loss(m: Any, pick: Callable[[Any], Any], parameters: Sequence[Any], x: Any) -> Any:
    """The mean cross-entropy; ``pick`` takes the scores of the right classes."""
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2]):
        x = m.tanh(x @ weight + bias)
    scores = x @ parameters[-2] + parameters[-1]
    return (m.log(m.exp(scores).sum(1)) - pick(scores)).mean()


def halves(arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return list(arrays[: len(arrays) // 2]), list(arrays[len(arrays) // 2 :])


def with_autograd(labels: Array) -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    rows = np.arange(len(labels))
    gradient = autograd.grad(lambda p, x: loss(anp, lambda h: h[rows, labels], p, x))
    product = autograd.grad(lambda p, v, x: sum(anp.sum(g * w) for g, w in zip(gradient(p, x), v)))
    return lambda x, labels, *both: product(*halves(both), x)


@WORKLOAD.reference
def reference(case: Case, x: Array, labels: Array, *both: Array) -> Any:
    return with_autograd(labels)(x, labels, *both)


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Case], x: Array, labels: Array, *both: Array) -> Callable[..., Any]:
    return with_autograd(labels)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def product(x: Any, labels: Any, *both: Any) -> Any:
        parameters, vector = halves(both)
        gradient = jax.grad(lambda p: loss(jnp, lambda h: h[np.arange(BATCH), labels], p, x))
        return jax.jvp(gradient, (parameters,), (vector,))[1]

    return jax.jit(product)


@WORKLOAD.peer("torch")
def torch_builder(run: Run[Case], x: Any, labels: Any, *both: Any) -> Built:
    """Backward twice, the faster of the two ways in eager PyTorch."""
    import torch

    leaves, vector = halves(both)
    leaves, rows = [p.requires_grad_(True) for p in leaves], torch.arange(BATCH)

    def product(x: Any, labels: Any) -> Any:
        value = loss(torch, lambda h: h[rows, labels], leaves, x)
        gradients = torch.autograd.grad(value, leaves, create_graph=True)
        return torch.autograd.grad(gradients, leaves, vector)

    return Built(product, [x, labels])


@WORKLOAD.peer("torch.compile")
def torch_compile_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import torch

    def product(x: Any, labels: Any, *both: Any) -> Any:
        count = len(both) // 2
        gradient = torch.func.grad(lambda p: loss(torch, lambda h: h[torch.arange(BATCH), labels], p, x))
        return torch.func.jvp(gradient, (both[:count],), (both[count:],))[1]

    return torch.compile(product)


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    x, labels, *both = symbols = [pt.tensor(dtype=str(a.dtype), shape=a.shape) for a in arrays]
    parameters, vector = halves(both)
    value = loss(pt, lambda h: h[pt.arange(BATCH), labels], parameters, x)
    gradients = pytensor.grad(value, parameters)
    dot = sum((g * v).sum(dtype="float32") for g, v in zip(gradients, vector))
    return kit.pytensor_function(run, symbols, pytensor.grad(dot, parameters))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    """The batch size stays open; the sizes of the layers are known."""
    import symc as sc

    shapes = [("n", *arrays[0].shape[1:]), ("n",), *(a.shape for a in arrays[2:])]
    x, labels, *both = symbols = [sc.input(f"x{i}", str(a.dtype), s) for i, (a, s) in enumerate(zip(arrays, shapes))]
    parameters, vector = halves(both)
    value = loss(sc, lambda h: sc.take_along_axis(h, labels[:, None], axis=1)[:, 0], parameters, x)
    return sc.compile(sc.hvp(value, parameters, vector), symbols, threads=run.threads)
