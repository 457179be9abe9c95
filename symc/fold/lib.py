"""Blocks that models are made of: ``fd.lib.embed(E)``, ``fd.lib.concat(a, b)``, ``fd.lib.lstm(...)``.

Parameters are states that the caller makes; what is made here are cells over them.
"""

from __future__ import annotations

from typing import Any

from symc import numpy_api
from symc.errors import InputError
from symc.fold.block import Block, Port
from symc.fold.types import Array, Struct, Type, i32
from symc.random import bernoulli
from symc.special import expit
from symc.tensors.callsite import caller
from symc.tensors.tensor import Tensor

np_: Any = numpy_api


def _block(name: str, fn: Any, out: Type, **ports: Port) -> Block:
    fn.__name__ = name
    return Block(fn, out, tuple(ports.values()))


def embed(table: Tensor, name: str = "embed") -> Block:
    """A row of a table, by number."""
    _, *shape = table.value.type.shape  # type: ignore[union-attr]
    return _block(name, lambda word: table[word], Array(table.dtype, tuple(shape)), word=Port("word", "attr", i32))


def constant(type: Type, value: float = 0.0, name: str = "constant") -> Block:
    """The same in every field."""
    def fn() -> Any:
        found = {f: np_.full(a.shape, value, dtype=a.dtype) for f, a in type.fields.items()}
        return found[""] if isinstance(type, Array) else found

    return _block(name, fn, type)


def concat(*types: Array, name: str = "concat") -> Block:
    """Vectors, one after the other."""
    if any(len(t.shape) != 1 for t in types) or not types:
        raise InputError(f"fd.lib.concat takes types of vectors, not {types}", where=[caller()])
    ports = {f"x{k}": Port(f"x{k}", "one", t) for k, t in enumerate(types)}
    out = Array(types[0].dtype, (sum(t.shape[0] for t in types),))
    return _block(name, lambda **xs: np_.concatenate([xs[f"x{k}"] for k in range(len(types))]), out, **ports)


def total(type: Array, kind: str = "sum", name: str = "") -> Block:
    """The "sum", "mean", "max" or "min" of any number of values."""
    return _block(name or kind, lambda xs: getattr(xs, kind)(xs.value), type, xs=Port("xs", "many", type))


def field(struct: Struct, key: str, name: str = "") -> Block:
    """A field of a struct."""
    return _block(name or key, lambda x: getattr(x, key), struct.fields[key], x=Port("x", "one", struct))


def affine(w: Tensor, b: Tensor | None = None, activation: Any = None, name: str = "affine") -> Block:
    """``activation(x @ w + b)``."""
    rows, columns = w.value.type.shape  # type: ignore[union-attr]

    def fn(x: Any) -> Any:
        y = x @ w if b is None else x @ w + b
        return y if activation is None else activation(y)

    return _block(name, fn, Array(w.dtype, (columns,)), x=Port("x", "one", Array(w.dtype, (rows,))))


def lstm(state: Struct, x: Array, w: Tensor, u: Tensor, b: Tensor, name: str = "lstm") -> Block:
    """The cell of an LSTM: of a state with fields h and c, and a vector. ``w``: [x, 4h], ``u``: [h, 4h], ``b``: [4h],
    for the gates input, forget, output and the new value."""

    def fn(s: Any, x: Any) -> Any:
        i, f, o, g = np_.split(x @ w + s.h @ u + b, 4)
        c = expit(f) * s.c + expit(i) * np_.tanh(g)
        return dict(h=expit(o) * np_.tanh(c), c=c)

    return _block(name, fn, state, s=Port("s", "one", state), x=Port("x", "one", x))


def gru(h: Array, x: Array, w: Tensor, u: Tensor, b: Tensor, name: str = "gru") -> Block:
    """The cell of a GRU. ``w``: [x, 3h], ``u``: [h, 3h], ``b``: [3h], for the gates reset, update and the new value."""

    def fn(h: Any, x: Any) -> Any:
        (r, z, n), (hr, hz, hn) = np_.split(x @ w + b, 3), np_.split(h @ u, 3)
        update = expit(z + hz)
        return (1 - update) * np_.tanh(n + expit(r + hr) * hn) + update * h

    return _block(name, fn, h, h=Port("h", "one", h), x=Port("x", "one", x))


def tree_lstm(state: Struct, u: Tensor, f: Tensor, b: Tensor, name: str = "tree_lstm") -> Block:
    """A node of a binary Tree-LSTM. ``u``: [2h, 3h], for the gates input, output and the new value, ``f``: [2h, 2h],
    for the two forget gates, ``b``: [5h]."""

    def fn(left: Any, right: Any) -> Any:
        both = np_.concatenate([left.h, right.h])
        n = u.shape[1]
        i, o, g = np_.split(both @ u + b[:n], 3)
        f1, f2 = np_.split(expit(both @ f + b[n:]), 2)
        c = expit(i) * np_.tanh(g) + f1 * left.c + f2 * right.c
        return dict(h=expit(o) * np_.tanh(c), c=c)

    return _block(name, fn, state, left=Port("left", "one", state), right=Port("right", "one", state))


def child_sum(state: Struct, x: Array, w: Tensor, u: Tensor, b: Tensor, name: str = "child_sum") -> Block:
    """A node of a child-sum Tree-LSTM, of any number of children and a vector. ``w``: [x, 4h], ``u``: [h, 4h], ``b``:
    [4h], for the gates input, output, the new value and forget, which is one a child."""
    def fn(x: Any, kids: Any) -> Any:
        n = 3 * b.shape[0] // 4
        given = x @ w + b
        i, o, g = np_.split(given[:n] + kids.sum(kids.h) @ u[:, :n], 3)
        forget = expit(given[n:] + kids.h @ u[:, n:])
        c = expit(i) * np_.tanh(g) + kids.sum(forget * kids.c)
        return dict(h=expit(o) * np_.tanh(c), c=c)

    return _block(name, fn, state, x=Port("x", "one", x), kids=Port("kids", "many", state))


def dropout(x: Any, rate: float, key: Tensor) -> Tensor:
    """Dropout in a body: each element of ``x`` is 0 with probability ``rate``, else larger, to be the same on
    average; where nothing is trained ``x`` as it is. ``key``: that of a port of ``fd.Key``."""
    if not 0 <= rate < 1:
        raise InputError(f"the rate of dropout is from 0 up to below 1, not {rate!r}", where=[caller()])
    keep = bernoulli(key, 1 - rate, x.shape) | (key[1] < 1 << 63)
    scale = np_.where(key[1] < 1 << 63, 1.0, 1 / (1 - rate)).astype(x.dtype)
    return np_.where(keep, x * scale, 0)


def cross_entropy(x: Array, w: Tensor | None = None, b: Tensor | None = None, name: str = "cross_entropy") -> Block:
    """A loss: the cross entropy of logits (``x @ w + b`` with a matrix) and the number of a class."""
    def fn(x: Any, y: Any) -> Any:
        z = x if w is None else x @ w if b is None else x @ w + b
        z = z - np_.max(z)
        return np_.log(np_.sum(np_.exp(z))) - z[y]

    found = _block(name, fn, Array(x.dtype), x=Port("x", "one", x), y=Port("y", "attr", i32))
    found.loss = True
    return found
