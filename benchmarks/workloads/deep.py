"""Large graphs: a network of 100, 300 and 1,000 layers, unrolled, with all gradients. Compile time is the point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

BATCH, HIDDEN = 8, 32


@dataclass(frozen=True)
class Depth(Case):
    layers: int = 0


WORKLOAD: Workload[Depth] = Workload(
    "deep", f"h += tanh(h @ w + b) / 2 unrolled, batch {BATCH}, width {HIDDEN}, loss and gradients"
)
WORKLOAD.add(
    Depth("100", "float64", 1e-9, units=100, layers=100),
    Depth("300", "float64", 1e-9, units=300, layers=300, skip=("pytensor", "pytensor-c")),
    Depth("1000", "float64", 1e-9, units=1000, layers=1000, skip=("torch.compile", "pytensor", "pytensor-c")),
)


@WORKLOAD.inputs
def inputs(case: Depth) -> list[Array]:
    """Rows, then all weights, then all biases."""
    random, layers = np.random.default_rng(0), range(case.layers)
    rows = random.standard_normal((BATCH, HIDDEN))
    weights = [random.standard_normal((HIDDEN, HIDDEN)) / np.sqrt(HIDDEN) for _ in layers]
    return [rows, *weights, *(random.standard_normal(HIDDEN) * 0.1 for _ in layers)]


def by_hand(x: Array, *parameters: Array) -> list[Array]:
    depth = len(parameters) // 2
    h, squashed, hidden = x, [], []
    for weight, bias in zip(parameters[:depth], parameters[depth:]):
        hidden.append(h)
        squashed.append(np.tanh(h @ weight + bias))
        h = h + 0.5 * squashed[-1]
    value, up = (h * h).mean(), 2 * h / h.size
    by_weight, by_bias = [h] * depth, [h] * depth
    for i in reversed(range(depth)):
        delta = 0.5 * up * (1 - squashed[i] ** 2)
        by_weight[i], by_bias[i] = hidden[i].T @ delta, delta.sum(0)
        up = up + delta @ parameters[i].T
    return [value, *by_weight, *by_bias]


@WORKLOAD.reference
def reference(case: Depth, *arrays: Array) -> list[Array]:
    return by_hand(*arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Depth], *arrays: Array) -> Callable[..., Any]:
    return by_hand


def loss(m: Any, x: Any, parameters: Sequence[Any]) -> Any:
    depth = len(parameters) // 2
    for weight, bias in zip(parameters[:depth], parameters[depth:]):
        x = x + 0.5 * m.tanh(x @ weight + bias)
    return (x * x).mean()


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Depth], x: Any, *parameters: Any) -> Built:
    import jax
    import jax.numpy as jnp

    def with_gradients(x: Any, parameters: list[Any]) -> Any:
        value, gradients = jax.value_and_grad(lambda p: loss(jnp, x, p))(parameters)
        return value, *gradients

    return Built(jax.jit(with_gradients), [x, list(parameters)])


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Depth], x: Any, *parameters: Any) -> Built:
    import torch

    leaves = [p.requires_grad_(True) for p in parameters]
    forward = kit.torch_function(run, lambda x: loss(torch, x, leaves))

    def with_gradients(x: Any) -> Any:
        value = forward(x)
        return value, *torch.autograd.grad(value, leaves)

    return Built(with_gradients, [x])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Depth], x: Array, *parameters: Array) -> Built:
    import pytensor
    import pytensor.tensor as pt

    sys.setrecursionlimit(200_000)
    (rows,), shared = kit.pytensor_inputs([x]), [pytensor.shared(p) for p in parameters]
    value = loss(pt, rows, shared)
    return Built(kit.pytensor_function(run, [rows], [value, *pytensor.grad(value, shared)]), [x])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Depth], x: Array, *parameters: Array) -> Built:
    """Parameters are shared variables; the batch stays open."""
    import symc as sc

    rows = sc.input("x", "float64", ("n", HIDDEN))
    shared = [sc.shared(p, f"p{i}") for i, p in enumerate(parameters)]
    value = loss(sc, rows, shared)
    return Built(sc.compile([value, *sc.grad(value, shared)], [rows], threads=run.threads), [x])
