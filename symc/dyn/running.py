"""Running recordings: values of nodes, and gradients of what variables show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.dyn import programs
from symc.dyn.recording import Node, Trace
from symc.errors import GradientError
from symc.numpy_api.creation import ones_like
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import grad as symbolic_grad


def _keep(nodes: Sequence[Node], values: Sequence[Any]) -> None:
    """Give nodes their values. Nobody may write to them: others are computed of the same."""
    for node, value in zip(nodes, values):
        if type(value) is np.ndarray:
            value.setflags(write=False)
            node.value = value
            if not node.needs:
                node.forget()
        else:
            node.value = _frozen(value)


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return value
    if isinstance(value, tuple | list):
        parts = [_frozen(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def force(root: Node) -> None:
    """Compute a node, and what else somebody may look at of what it is made of."""
    if root.value is None:
        trace = Trace(root, False)
        _keep(trace.wanted, programs.run(trace, None, _values))


def _values(trace: Trace, done: dict[Node, Any], _: Any) -> list[Any]:
    return [done[n] for n in trace.wanted]


def backward(root: Node, seed: np.ndarray | None) -> None:
    """Compute the gradients of a node, and what else somebody may look at."""
    trace = Trace(root, True)
    try:
        found = programs.run(trace, seed, _values_and_gradients)
    except GradientError as e:
        force(root)
        if seed is not None or np.size(root.value) == 1:
            raise
        raise GradientError(f"backward of an array of shape {np.shape(root.value)}", where=e.where,
                            help=e.help) from None
    _keep(trace.wanted, found)
    k = len(trace.wanted)
    for _, var in trace.by:
        g = found[k]
        for hook in var._hooks:
            g = g if (new := hook(g)) is None else np.asarray(new)
        before = var.grad
        var.grad = g if before is None else before + g
        k += 1


def _values_and_gradients(trace: Trace, done: dict[Node, Any], given: Any) -> list[Any]:
    top = programs.as_tensor(done[trace.nodes[-1]])
    grads = symbolic_grad(top, [done[n] for n, _ in trace.by], cotangent=one(top) if given is None else given,
                          disconnected="zero")
    return [*_values(trace, done, None), *grads]


def one(top: Tensor) -> Any:
    """The gradient of one number by itself."""
    if any(not isinstance(n, int) or n != 1 for n in top.value.shape):
        raise GradientError(f"backward of an array of shape ({', '.join(map(str, top.shape))})",
                            help="give its gradient, y.backward(g), or sum it")
    return ones_like(top)
