"""Gradients through time: a tanh network over 200 steps and an LSTM over 50, batch 32, hidden size 128.

Loss, and its gradients by both weights and the bias, in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Built, Case, Run, Workload

BATCH, HIDDEN = 32, 128


@dataclass(frozen=True)
class Sequence(Case):
    kind: str = "rnn"
    steps: int = 0


WORKLOAD: Workload[Sequence] = Workload("recurrent", f"gradients through time, batch {BATCH}, hidden size {HIDDEN}")
WORKLOAD.add(
    Sequence("lstm-T50", "float32", 1e-4, kind="lstm", steps=50),
    Sequence("rnn-T200", "float32", 1e-4, kind="rnn", steps=200),
)


@WORKLOAD.inputs
def inputs(case: Sequence) -> list[Array]:
    """Rows, input weights, hidden weights, bias, and the weights of the last state in the loss."""
    random = np.random.default_rng(0)
    width = HIDDEN * (4 if case.kind == "lstm" else 1)
    shapes = [(case.steps, BATCH, HIDDEN), (HIDDEN, width), (HIDDEN, width), (width,), (BATCH, HIDDEN)]
    scales = [1, 0.08, 0.08, 0.08, 1]
    return [(random.standard_normal(s) * k).astype(case.dtype) for s, k in zip(shapes, scales)]


def cell(m: Any, sigmoid: Callable[[Any], Any], kind: str, state: tuple[Any, Any], z: Any) -> tuple[Any, Any]:
    """The next state, given what arrives at the gates, in a NumPy-like library ``m``."""
    _, c = state
    if kind == "rnn":
        return m.tanh(z), c
    n = HIDDEN
    i, f, g, o = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n]), m.tanh(z[:, 2 * n : 3 * n]), sigmoid(z[:, 3 * n :])
    c = f * c + i * g
    return o * m.tanh(c), c


def logistic(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def rnn_numpy(x: Array, wx: Array, wh: Array, b: Array, r: Array) -> tuple[Array, ...]:
    """The gradient by hand: the input's products and the weights' gradients are single products over all steps."""
    steps, batch, size = x.shape
    flat = x.reshape(steps * batch, size)
    arriving = (flat @ wx + b).reshape(steps, batch, -1)
    h = np.zeros((steps + 1, batch, wh.shape[0]), x.dtype)
    for t in range(steps):
        h[t + 1] = np.tanh(arriving[t] + h[t] @ wh)
    delta, back, transposed = np.empty_like(h[1:]), r, np.ascontiguousarray(wh.T)
    for t in reversed(range(steps)):
        delta[t] = back * (1 - h[t + 1] ** 2)
        back = delta[t] @ transposed
    d = delta.reshape(steps * batch, -1)
    return (h[-1] * r).sum(), flat.T @ d, h[:-1].reshape(steps * batch, -1).T @ d, d.sum(0)


def lstm_numpy(x: Array, wx: Array, wh: Array, b: Array, r: Array) -> tuple[Array, ...]:
    steps, batch, size = x.shape
    n = wh.shape[0]
    flat = x.reshape(steps * batch, size)
    arriving = (flat @ wx + b).reshape(steps, batch, -1)
    h, c = (np.zeros((steps + 1, batch, n), x.dtype) for _ in range(2))
    gates, squashed = np.empty((steps, batch, 4 * n), x.dtype), np.empty((steps, batch, n), x.dtype)
    for t in range(steps):
        z, a = arriving[t] + h[t] @ wh, gates[t]
        a[:, : 2 * n], a[:, 2 * n : 3 * n], a[:, 3 * n :] = (
            logistic(z[:, : 2 * n]), np.tanh(z[:, 2 * n : 3 * n]), logistic(z[:, 3 * n :]))
        c[t + 1] = a[:, n : 2 * n] * c[t] + a[:, :n] * a[:, 2 * n : 3 * n]
        squashed[t] = np.tanh(c[t + 1])
        h[t + 1] = a[:, 3 * n :] * squashed[t]
    delta, dh, dc, transposed = np.empty_like(gates), r, np.zeros((batch, n), x.dtype), np.ascontiguousarray(wh.T)
    for t in reversed(range(steps)):
        i, f, g, o = (gates[t][:, k * n : (k + 1) * n] for k in range(4))
        dc = dc + dh * o * (1 - squashed[t] ** 2)
        delta[t] = np.concatenate([dc * g * i * (1 - i), dc * c[t] * f * (1 - f), dc * i * (1 - g**2),
                                   dh * squashed[t] * o * (1 - o)], 1)
        dc, dh = dc * f, delta[t] @ transposed
    d = delta.reshape(steps * batch, -1)
    return (h[-1] * r).sum(), flat.T @ d, h[:-1].reshape(steps * batch, -1).T @ d, d.sum(0)


def by_hand(case: Sequence) -> Callable[..., tuple[Array, ...]]:
    return lstm_numpy if case.kind == "lstm" else rnn_numpy


@WORKLOAD.reference
def reference(case: Sequence, *arrays: Array) -> list[Array]:
    return list(by_hand(case)(*[a.astype("float64") for a in arrays]))


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Sequence], *arrays: Array) -> Callable[..., Any]:
    return by_hand(run.case)


def rnn_kernel(z: Array, arriving: Array, b: Array, h: Array) -> None:
    for i in prange(z.shape[0]):
        for j in range(z.shape[1]):
            h[i, j] = math.tanh(z[i, j] + arriving[i, j] + b[j])


def rnn_back_kernel(back: Array, h: Array, delta: Array, db: Array) -> None:
    for i in range(back.shape[0]):
        for j in range(back.shape[1]):
            v = back[i, j] * (np.float32(1) - h[i, j] * h[i, j])
            delta[i, j] = v
            db[j] += v


def lstm_kernel(z: Array, arriving: Array, b: Array, a: Array, c: Array, next_c: Array, squashed: Array,
                h: Array) -> None:
    n, one = c.shape[1], np.float32(1)
    for i in prange(z.shape[0]):
        for j in range(4 * n):
            v = z[i, j] + arriving[i, j] + b[j]
            a[i, j] = math.tanh(v) if 2 * n <= j < 3 * n else one / (one + math.exp(-v))
        for j in range(n):
            next_c[i, j] = a[i, n + j] * c[i, j] + a[i, j] * a[i, 2 * n + j]
            squashed[i, j] = math.tanh(next_c[i, j])
            h[i, j] = squashed[i, j] * a[i, 3 * n + j]


def lstm_back_kernel(dh: Array, dc: Array, a: Array, c: Array, squashed: Array, d: Array, db: Array) -> None:
    n, one = c.shape[1], np.float32(1)
    for r in range(c.shape[0]):
        for j in range(n):
            i, f, g, o = a[r, j], a[r, n + j], a[r, 2 * n + j], a[r, 3 * n + j]
            w = squashed[r, j]
            v = dc[r, j] + dh[r, j] * o * (one - w * w)
            d[r, j] = v * g * i * (one - i)
            d[r, n + j] = v * c[r, j] * f * (one - f)
            d[r, 2 * n + j] = v * i * (one - g * g)
            d[r, 3 * n + j] = dh[r, j] * w * o * (one - o)
            dc[r, j] = v * f
        for j in range(4 * n):
            db[j] += d[r, j]


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Sequence], *arrays: Array) -> Callable[..., Any]:
    """NumPy's matrix products with hand-fused loops between them."""
    forward, back = (kit.jit(run, k) for k in ((lstm_kernel, lstm_back_kernel) if run.case.kind == "lstm"
                                               else (rnn_kernel, rnn_back_kernel)))

    def rnn(x: Array, wx: Array, wh: Array, b: Array, r: Array) -> tuple[Any, ...]:
        steps, batch, size = x.shape
        flat = x.reshape(steps * batch, size)
        arriving = (flat @ wx).reshape(steps, batch, -1)
        h = np.zeros((steps + 1, batch, wh.shape[0]), x.dtype)
        for t in range(steps):
            forward(h[t] @ wh, arriving[t], b, h[t + 1])
        delta, dh, db, transposed = np.empty_like(arriving), r, np.zeros_like(b), np.ascontiguousarray(wh.T)
        for t in reversed(range(steps)):
            back(dh, h[t + 1], delta[t], db)
            dh = delta[t] @ transposed
        d = delta.reshape(steps * batch, -1)
        return (h[-1] * r).sum(), flat.T @ d, h[:-1].reshape(steps * batch, -1).T @ d, db

    def lstm(x: Array, wx: Array, wh: Array, b: Array, r: Array) -> tuple[Any, ...]:
        steps, batch, size = x.shape
        n = wh.shape[0]
        flat = x.reshape(steps * batch, size)
        arriving = (flat @ wx).reshape(steps, batch, -1)
        h, c = (np.zeros((steps + 1, batch, n), x.dtype) for _ in range(2))
        gates, squashed = np.empty_like(arriving), np.empty((steps, batch, n), x.dtype)
        for t in range(steps):
            forward(h[t] @ wh, arriving[t], b, gates[t], c[t], c[t + 1], squashed[t], h[t + 1])
        delta, dh, db, transposed = np.empty_like(arriving), r, np.zeros_like(b), np.ascontiguousarray(wh.T)
        dc = np.zeros((batch, n), x.dtype)
        for t in reversed(range(steps)):
            back(dh, dc, gates[t], c[t], squashed[t], delta[t], db)
            dh = delta[t] @ transposed
        d = delta.reshape(steps * batch, -1)
        return (h[-1] * r).sum(), flat.T @ d, h[:-1].reshape(steps * batch, -1).T @ d, db

    return lstm if run.case.kind == "lstm" else rnn


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Sequence], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def loss(wx: Any, wh: Any, b: Any, x: Any, r: Any) -> Any:
        zero = jnp.zeros((BATCH, HIDDEN), run.case.dtype)

        def step(state: Any, row: Any) -> Any:
            return cell(jnp, jax.nn.sigmoid, run.case.kind, state, row @ wx + state[0] @ wh + b), None

        return (jax.lax.scan(step, (zero, zero), x)[0][0] * r).sum()

    def with_gradients(x: Any, wx: Any, wh: Any, b: Any, r: Any) -> Any:
        value, gradients = jax.value_and_grad(loss, (0, 1, 2))(wx, wh, b, x, r)
        return value, *gradients

    return jax.jit(with_gradients)


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Sequence], *arrays: Array) -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    def loss(parameters: Any, x: Array, r: Array) -> Any:
        wx, wh, b = parameters
        state = (np.zeros((BATCH, HIDDEN), run.case.dtype),) * 2
        for row in x:
            state = cell(anp, lambda z: 1 / (1 + anp.exp(-z)), run.case.kind, state, row @ wx + state[0] @ wh + b)
        return anp.sum(state[0] * r)

    value_and_grad = autograd.value_and_grad(loss)

    def with_gradients(x: Array, wx: Array, wh: Array, b: Array, r: Array) -> Any:
        value, gradients = value_and_grad((wx, wh, b), x, r)
        return value, *gradients

    return with_gradients


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Sequence], x: Any, wx: Any, wh: Any, b: Any, r: Any) -> Built:
    """The library's own fused networks, whose weights are stored transposed."""
    import torch

    network = (torch.nn.LSTM if run.case.kind == "lstm" else torch.nn.RNN)(HIDDEN, HIDDEN)
    with torch.no_grad():
        network.weight_ih_l0.copy_(wx.T)
        network.weight_hh_l0.copy_(wh.T)
        network.bias_ih_l0.copy_(b)
        network.bias_hh_l0.zero_()
    leaves = [network.weight_ih_l0, network.weight_hh_l0, network.bias_ih_l0]
    forward = torch.compile(network) if run.peer == "torch.compile" else network

    def with_gradients(x: Any, r: Any) -> Any:
        value = (forward(x)[0][-1] * r).sum()
        dx, dh, db = torch.autograd.grad(value, leaves)
        return value, dx.T, dh.T, db

    return Built(with_gradients, [x, r])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Sequence], *arrays: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    x, wx, wh, b, r = kit.pytensor_inputs(list(arrays))
    zero = pt.zeros((BATCH, HIDDEN), dtype=run.case.dtype)

    def step(row: Any, h: Any, c: Any, wx: Any, wh: Any, b: Any) -> Any:
        state = cell(pt, pt.sigmoid, run.case.kind, (h, c), row @ wx + h @ wh + b)
        return list(state) if run.case.kind == "lstm" else state[0]

    if run.case.kind == "lstm":
        h, _ = pytensor.scan(step, sequences=[x], outputs_info=[zero, zero], non_sequences=[wx, wh, b],
                             return_updates=False)
    else:
        h = pytensor.scan(lambda row, h, *rest: step(row, h, None, *rest), sequences=[x], outputs_info=[zero],
                          non_sequences=[wx, wh, b], return_updates=False)
    loss = (h[-1] * r).sum(dtype=run.case.dtype)
    return kit.pytensor_function(run, [x, wx, wh, b, r], [loss, *pytensor.grad(loss, [wx, wh, b])])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Sequence], *arrays: Array) -> Callable[..., Any]:
    """The number of steps and the batch stay open; the sizes of the layers are known. Denormal numbers, which the
    vanishing gradients of the tanh network become, are zeros, as they are in JAX."""
    import symc as sc

    width = arrays[1].shape[1]
    x = sc.input("x", "float32", ("t", "n", HIDDEN))
    wx, wh = (sc.input(name, "float32", (HIDDEN, width)) for name in ("wx", "wh"))
    b, r = sc.input("b", "float32", (width,)), sc.input("r", "float32", ("n", HIDDEN))
    zero = sc.zeros((x.shape[1], HIDDEN), "float32")

    def step(state: Any, row: Any) -> Any:
        return cell(sc, sc.sigmoid, run.case.kind, state, row @ wx + state[0] @ wh + b), None

    (h, _), _ = sc.scan(step, (zero, zero), x)
    loss = (h * r).sum()
    return sc.compile([loss, *sc.grad(loss, [wx, wh, b])], [x, wx, wh, b, r], threads=run.threads,
                      denormals="flush")
