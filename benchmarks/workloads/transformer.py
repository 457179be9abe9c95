"""Products of many small matrices: a transformer block with layer normalization first, its loss and all gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

HEADS = 4


@dataclass(frozen=True)
class Block(Case):
    batch: int = 0
    length: int = 0
    width: int = 0


WORKLOAD: Workload[Block] = Workload("transformer", f"transformer block, {HEADS} heads, forward and all gradients")
WORKLOAD.add(
    Block("b4-s128-d256", "float32", 1e-4, large=True, batch=4, length=128, width=256),
    Block("b1-s16-d64", "float32", 1e-4, batch=1, length=16, width=64),
)


@WORKLOAD.inputs
def inputs(case: Block) -> list[Array]:
    """Tokens, the weights of the loss, then scales, offsets, weights and biases in the order of use."""
    random, d = np.random.default_rng(0), case.width

    def weight(i: int, o: int) -> Array:
        return random.standard_normal((i, o)) / np.sqrt(i)

    def offset(n: int) -> Array:
        return random.standard_normal(n) * 0.02

    def scale() -> Array:
        return random.uniform(0.8, 1.2, d)

    tokens, weights = (random.standard_normal((case.batch, case.length, d)) for _ in range(2))
    arrays = [tokens, weights, scale(), offset(d), weight(d, 3 * d), offset(3 * d), weight(d, d), offset(d),
              scale(), offset(d), weight(d, 4 * d), offset(4 * d), weight(4 * d, d), offset(d)]  # fmt: skip
    return [a.astype(case.dtype) for a in arrays]


def loss(m: Any, width: int, x: Any, r: Any, parameters: Any) -> Any:
    """``m`` has exp, tanh, sqrt, transpose, and as ``top`` the maximum of rows, which needs no gradient."""
    scale1, offset1, wqkv, bqkv, wo, bo, scale2, offset2, w1, b1, w2, b2 = parameters
    batch, length = x.shape[0], x.shape[1]

    def normalized(x: Any, scale: Any, offset: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d / m.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * scale + offset

    qkv = (normalized(x, scale1, offset1) @ wqkv + bqkv).reshape((batch, length, 3, HEADS, width // HEADS))
    q, k, v = (m.transpose(qkv[:, :, i], (0, 2, 1, 3)) for i in range(3))
    scores = (q @ m.transpose(k, (0, 1, 3, 2))) * (1 / math.sqrt(width // HEADS))
    e = m.exp(scores - m.top(scores))
    attended = m.transpose((e / e.sum(-1, keepdims=True)) @ v, (0, 2, 1, 3)).reshape((batch, length, width))
    y = x + attended @ wo + bo
    u = normalized(y, scale2, offset2) @ w1 + b1
    u = 0.5 * u * (1.0 + m.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * (u * u * u))))
    return ((y + u @ w2 + b2) * r).mean()


def with_autograd(width: int) -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    m = SimpleNamespace(exp=anp.exp, tanh=anp.tanh, sqrt=anp.sqrt, transpose=anp.transpose,
                        top=lambda s: anp.max(s, -1, keepdims=True))  # fmt: skip
    value_and_grad = autograd.value_and_grad(lambda parameters, x, r: loss(m, width, x, r, parameters))

    def with_gradients(x: Array, r: Array, *parameters: Array) -> Any:
        value, gradients = value_and_grad(parameters, x, r)
        return value, *gradients

    return with_gradients


@WORKLOAD.reference
def reference(case: Block, *arrays: Array) -> Any:
    return with_autograd(case.width)(*arrays)


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Block], *arrays: Array) -> Callable[..., Any]:
    return with_autograd(run.case.width)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Block], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    width = run.case.width
    m = SimpleNamespace(exp=jnp.exp, tanh=jnp.tanh, sqrt=jnp.sqrt, transpose=jnp.transpose,
                        top=lambda s: jax.lax.stop_gradient(s.max(-1, keepdims=True)))  # fmt: skip

    def with_gradients(x: Any, r: Any, *parameters: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda p: loss(m, width, x, r, p))(parameters)
        return value, *gradients

    return jax.jit(with_gradients)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Block], x: Any, r: Any, *parameters: Any) -> Built:
    """The library's own layer_norm, attention and gelu."""
    import torch
    import torch.nn.functional as nn

    def forward(x: Any, r: Any, p: Any) -> Any:
        batch, length, width = x.shape
        qkv = (nn.layer_norm(x, (width,), p[0], p[1]) @ p[2] + p[3]).view(batch, length, 3, HEADS, width // HEADS)
        attended = nn.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))
        y = x + attended.transpose(1, 2).reshape(batch, length, width) @ p[4] + p[5]
        u = nn.gelu(nn.layer_norm(y, (width,), p[6], p[7]) @ p[8] + p[9], approximate="tanh")
        return ((y + u @ p[10] + p[11]) * r).mean()

    compiled = torch.compile(forward) if run.peer == "torch.compile" else forward
    leaves = [p.requires_grad_(True) for p in parameters]

    def with_gradients(x: Any, r: Any) -> Any:
        value = compiled(x, r, leaves)
        return value, *torch.autograd.grad(value, leaves)

    return Built(with_gradients, [x, r])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Block], *arrays: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    width = run.case.width
    m = SimpleNamespace(exp=pt.exp, tanh=pt.tanh, sqrt=pt.sqrt, transpose=pt.transpose,
                        top=lambda s: pytensor.gradient.disconnected_grad(s.max(-1, keepdims=True)))  # fmt: skip
    x, r, *parameters = symbols = [pt.tensor(dtype="float32", shape=a.shape) for a in arrays]
    value = loss(m, width, x, r, parameters)
    return kit.pytensor_function(run, symbols, [value, *pytensor.grad(value, parameters)])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Block], *arrays: Array) -> Callable[..., Any]:
    """Batch and length stay open; the width is known."""
    import symc as sc

    width = run.case.width
    m = SimpleNamespace(exp=sc.exp, tanh=sc.tanh, sqrt=sc.sqrt, transpose=sc.transpose,
                        top=lambda s: sc.max(s, axis=-1, keepdims=True))  # fmt: skip
    open_sizes = ("batch", "length", width)
    x, r = sc.input("x", "float32", open_sizes), sc.input("r", "float32", open_sizes)
    parameters = [sc.input(f"p{i}", "float32", a.shape) for i, a in enumerate(arrays[2:])]
    value = loss(m, width, x, r, parameters)
    return sc.compile([value, *sc.grad(value, parameters)], [x, r, *parameters], threads=run.threads)
