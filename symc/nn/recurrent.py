"""Recurrent networks: cells, and builders that run them over sequences.

``rnn = sc.nn.lstm(P.sub("lstm"), 50, 128, layers=2)``; ``ys = rnn.transduce(xs)`` for a whole sequence (one loop in the
graph), or step by step: ``s = rnn.initial_state(); s = s.add_input(x); s.output``. Sequences are [time, ..., size]. The
weights of all gates lie side by side, so a step is one product with the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from symc import init as initializers
from symc import numpy_api as xp
from symc.errors import InputError, ShapeError, did_you_mean
from symc.nn.layers import check_params
from symc.numpy_api.promotion import rows
from symc.params.collection import Params
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.sizes import entries, whole
from symc.tensors.tensor import Tensor
from symc.transforms.control import scan

#: What a layer keeps from one step to the next; what it gives is the first.
State = tuple[Tensor, ...]


class Cell(NamedTuple):
    """One step of one layer: (z, state, u, c) -> state, where z is the input times its weights, plus the bias; u are
    the weights of the state, c is another bias, of cells with ``inner``."""

    gates: int
    states: int
    step: Callable[[Tensor, State, Tensor, Any], State]
    inner: bool = False


def _parts(z: Tensor, count: int) -> list[Tensor]:
    n = z.shape[-1] // count
    return [z[..., k * n : (k + 1) * n] for k in range(count)]


def _rnn(activation: Callable[[Tensor], Tensor]) -> Cell:
    def step(z: Tensor, state: State, u: Tensor, c: Any) -> State:
        return (activation(z + state[0] @ u),)

    return Cell(1, 1, step)


def _lstm_step(z: Tensor, state: State, u: Tensor, _: Any) -> State:
    h, c = state
    i, f, g, o = _parts(z + h @ u, 4)
    c = xp.sigmoid(f) * c + xp.sigmoid(i) * xp.tanh(g)
    return xp.sigmoid(o) * xp.tanh(c), c


def _coupled_step(z: Tensor, state: State, u: Tensor, _: Any) -> State:
    h, c = state
    f, g, o = _parts(z + h @ u, 3)
    keep = xp.sigmoid(f)
    c = keep * c + (1 - keep) * xp.tanh(g)
    return xp.sigmoid(o) * xp.tanh(c), c


def _gru_step(z: Tensor, state: State, u: Tensor, c: Any) -> State:
    (h,) = state
    a, b = _parts(z, 3), _parts(h @ u, 3)
    r, keep = xp.sigmoid(a[0] + b[0]), xp.sigmoid(a[1] + b[1])
    return ((1 - keep) * xp.tanh(a[2] + r * (b[2] + c)) + keep * h,)


CELLS = {"rnn": _rnn(xp.tanh), "rnn_relu": _rnn(xp.relu), "lstm": Cell(4, 2, _lstm_step),
         "coupled_lstm": Cell(3, 2, _coupled_step), "gru": Cell(3, 1, _gru_step, inner=True)}
#: Which gate of a cell says how much is kept; its bias may begin with another number.
_FORGET = {"lstm": 1, "coupled_lstm": 0}


class Layer:
    """One layer in one direction: weights, and what it does with a step or a sequence."""

    def __init__(self, P: Params, kind: str, inputs: int, hidden: int, forget: float, init: Any, recurrent: Any):
        self.cell, self.hidden, self.inputs = CELLS[kind], hidden, inputs
        gates = self.cell.gates
        self.w = P.weight("w", (inputs, gates * hidden), initializers.blocks(init, gates))
        self.u = P.weight("u", (hidden, gates * hidden), initializers.blocks(recurrent, gates))
        start = [forget if _FORGET.get(kind) == k // hidden else 0.0 for k in range(gates * hidden)]
        self.b = P.weight("b", gates * hidden, initializers.from_array(start))
        self.c = P.weight("c", hidden, 0.0) if self.cell.inner else None

    def start(self, batch: tuple[Any, ...]) -> State:
        """Zeros."""
        return tuple(xp.zeros((*batch, self.hidden), self.w.dtype) for _ in range(self.cell.states))

    def step(self, x: Tensor, state: State) -> State:
        """The state after x."""
        return self.cell.step(x @ self.w + self.b, state, self.u, self.c)

    def run(self, xs: Tensor, state: State, seen: Tensor | None, reverse: bool) -> tuple[State, Tensor]:
        """The last state and what was given at every step. Steps that are not ``seen`` keep the state and give 0."""

        def step(state: State, row: Any) -> tuple[State, Tensor]:
            z, use = row
            new = self.cell.step(z, state, self.u, self.c)
            if use is not None:
                new = tuple(xp.where(use, n, s) for n, s in zip(new, state, strict=True))
            return new, new[0] if use is None else xp.where(use, new[0], xp.zeros((), new[0].dtype))

        return scan(step, state, (xs @ self.w + self.b, seen), reverse=reverse)


class RNN:
    """A stack of recurrent layers over parameters. Made by ``rnn``, ``lstm`` and ``gru``."""

    def __init__(self, P: Params, kind: str, inputs: int, hidden: int, layers: int, bidirectional: bool,
                 forget: float, init: Any, recurrent: Any):
        if kind not in CELLS:
            raise InputError(f"there is no cell {kind!r}", help=did_you_mean(kind, CELLS))
        for what, n in (("inputs", inputs), ("hidden", hidden), ("layers", layers)):
            if (whole(n) or 0) < 1:
                raise ShapeError(f"sc.nn.{kind}: {what} is {n!r}",
                                 help=f"layer = sc.nn.{kind}(P, inputs, hidden, layers=1), of numbers; then "
                                      "layer.transduce(xs) of values [time, ..., inputs]")
        inputs, hidden, layers = int(inputs), int(hidden), int(layers)
        self.kind, self.inputs, self.hidden, self.bidirectional = kind, inputs, hidden, bidirectional
        self.size = hidden * (1 + bidirectional)  #: the size of what it gives
        self.layers: list[Layer] = []
        self.backward: list[Layer] = []
        for k in range(layers):
            part = P.sub(f"layer{k}")
            for name, into in [("forward", self.layers), ("backward", self.backward)][: 1 + bidirectional]:
                where = part.sub(name) if bidirectional else part
                into.append(Layer(where, kind, self.size if k else inputs, hidden, forget, init, recurrent))

    @located
    def initial_state(self, batch: Any = (), states: Sequence[State] | None = None) -> StepState:
        """The state before the first step, for x of shape [*batch, inputs]: zeros, or ``states``, one tuple a layer
        (the ``states`` of another state, for instance of an encoder)."""
        if self.bidirectional:
            raise InputError("a bidirectional network has no steps: it sees the whole sequence",
                             help="transduce(xs), or bidirectional=False")
        sizes = entries(batch)
        return StepState(self, [layer.start(sizes) for layer in self.layers] if states is None else list(states))

    def transduce(self, xs: Any, lengths: Any = None, states: Sequence[State] | None = None) -> Tensor:
        """Output of the last layer at every step of xs [time, ..., inputs]. See ``run``."""
        return self.run(xs, lengths, states)[0]

    @located
    def run(self, xs: Any, lengths: Any = None, states: Sequence[State] | None = None) -> tuple[Tensor, list[State]]:
        """Output of the last layer at every step, and the last state of every layer (of forward and backward in turn).

        ``lengths`` [...]: how many steps of each sequence count; the others give 0 and leave the state as it is.
        """
        x = as_tensor(xs)
        if x.ndim < 2 or x.value.shape[-1] != self.inputs:
            raise ShapeError(f"sc.nn.{self.kind}: x is not [time, ..., {self.inputs}]", values=rows([x]))
        seen = None
        if lengths is not None:
            count = as_tensor(lengths)
            seen = (xp.arange(x.shape[0]).reshape((-1, *[1] * count.ndim)) < count)[..., None]
        ends: list[State] = []
        for k in range(len(self.layers)):
            runs = [(layers[k], reverse) for layers, reverse in ((self.layers, False), (self.backward, True)) if layers]
            outputs = []
            for layer, reverse in runs:
                start = layer.start(x.shape[1:-1]) if states is None else states[len(ends)]
                end, ys = layer.run(x, start, seen, reverse)
                ends.append(end)
                outputs.append(ys)
            x = outputs[0] if len(outputs) == 1 else xp.concatenate(outputs, axis=-1)
        return x, ends


class StepState:
    """A recurrent network after some steps. States never change: several may go on from one."""

    def __init__(self, network: RNN, states: list[State]):
        self.network, self.states = network, states

    @located
    def add_input(self, x: Any) -> StepState:
        """The state after x [..., inputs]."""
        x, states = as_tensor(x), []
        for layer, state in zip(self.network.layers, self.states, strict=True):
            states.append(layer.step(x, state))
            x = states[-1][0]
        return StepState(self.network, states)

    @property
    def output(self) -> Tensor:
        """Output of the last layer."""
        return self.states[-1][0]


@located
def rnn(P: Params, inputs: int, hidden: int, layers: int = 1, bidirectional: bool = False, activation: str = "tanh",
        init: Any = initializers.glorot_uniform, recurrent: Any = initializers.orthogonal) -> RNN:
    """h' = tanh(x w + h u + b) (or relu)."""
    kind = {"tanh": "rnn", "relu": "rnn_relu"}.get(activation, f"rnn_{activation}")
    return RNN(check_params(P, "rnn"), kind, inputs, hidden, layers, bidirectional, 0.0, init, recurrent)


@located
def lstm(P: Params, inputs: int, hidden: int, layers: int = 1, bidirectional: bool = False, variant: str = "vanilla",
         forget: float = 1.0, init: Any = initializers.glorot_uniform,
         recurrent: Any = initializers.orthogonal) -> RNN:
    """Long short-term memory without peepholes, gates in PyTorch's order (input, forget, cell, output).

    ``variant="coupled"``: what is forgotten is what is put in (gates forget, cell, output). ``forget``: what the bias
    of the forget gate begins with.
    """
    kind = {"vanilla": "lstm", "coupled": "coupled_lstm"}.get(variant)
    if kind is None:
        raise InputError(f"sc.nn.lstm: variant={variant!r}", help='"vanilla" or "coupled"')
    return RNN(check_params(P, "lstm"), kind, inputs, hidden, layers, bidirectional, forget, init, recurrent)


@located
def gru(P: Params, inputs: int, hidden: int, layers: int = 1, bidirectional: bool = False,
        init: Any = initializers.glorot_uniform, recurrent: Any = initializers.orthogonal) -> RNN:
    """Gated recurrent units, gates in PyTorch's order (reset, update, new), as in cuDNN:

    h' = (1 - z) tanh(x w + b + r (h u + c)) + z h.
    """
    return RNN(check_params(P, "gru"), "gru", inputs, hidden, layers, bidirectional, 0.0, init, recurrent)


__all__ = ["RNN", "StepState", "gru", "lstm", "rnn"]
