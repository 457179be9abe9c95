"""Meaning of ONNX's layers, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import InputError
from symc.export.onnx_file import onnx_package
from symc.export.onnx_node import Node
from symc.ir.op import lookup
from symc.nn import windows
from symc.tensors.convert import as_tensor
from symc.tensors.tensor import Tensor
from symc.transforms.control import cond, scan, while_loop


def op_on(name: str, x: Tensor, **attrs: Any) -> Tensor:
    """An op of the IR on one tensor."""
    return Tensor(lookup(name)(x.value, **attrs))


def axis_of(node: Node, x: Tensor, default: int = 0, name: str = "axis") -> int:
    """The attribute that is an axis of ``x``, counted from the front."""
    k = node.get(name, default)
    if not -x.ndim <= k < max(x.ndim, 1):
        raise InputError(f"the axis {k} is none of {x.ndim}")
    return k % x.ndim if x.ndim else 0


def gemm(node: Node, a: Tensor, b: Tensor, c: Any = None) -> Tensor:
    y = (a.T if node.get("transA", 0) else a) @ (b.T if node.get("transB", 0) else b)
    y = y if node.get("alpha", 1.0) == 1 else y * node.get("alpha")
    return y if c is None else y + c * node.get("beta", 1.0) if node.get("beta", 1.0) != 1 else y + c


def _steps(node: Node, x: Tensor) -> dict[str, Any]:
    """Strides, dilations and padding as symc says them."""
    m, how = x.ndim - 2, node.get("auto_pad", "NOTSET")
    pads = node.get("pads", [0] * 2 * m)
    if how == "SAME_LOWER" or node.get("ceil_mode", 0):
        raise InputError("auto_pad SAME_LOWER, and windows that reach beyond the end (ceil_mode), are not read")
    padding: Any = {"SAME_UPPER": "same", "VALID": "valid"}.get(how, list(zip(pads[:m], pads[m:], strict=True)))
    return dict(stride=tuple(node.get("strides", [1] * m)), dilation=tuple(node.get("dilations", [1] * m)),
                padding=padding)


def conv(node: Node, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    return windows.conv(x, w, bias, groups=node.get("group", 1), **_steps(node, x))


def conv_transpose(node: Node, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    if "output_shape" in node.attrs or node.get("auto_pad", "NOTSET") != "NOTSET":
        raise InputError("output_shape and auto_pad of ConvTranspose are not read")
    steps = _steps(node, x)
    padding = steps.pop("padding")
    m, more = x.ndim - 2, node.get("output_padding", [0] * (x.ndim - 2))
    y = windows.conv_transpose(x, w, None, groups=node.get("group", 1), output_padding=tuple(more), **steps)
    y = y[(slice(None), slice(None), *[slice(a, n - b) for (a, b), n in zip(padding, y.shape[2:], strict=True)])]
    return y if bias is None else y + bias.reshape((-1,) + (1,) * m)


def pool(f: Callable[..., Any], **more: Callable[[Node], Any]) -> Callable[..., Any]:
    def run(node: Node, x: Tensor) -> Tensor:
        if len(node.proto.output) > 1:
            raise InputError("the places of maxima are not read")
        steps = _steps(node, x)
        if f is windows.avg_pool and set(steps.pop("dilation")) != {1}:
            raise InputError("dilations of averages are not read")
        return f(x, tuple(node.get("kernel_shape")), **steps, **{k: v(node) for k, v in more.items()})

    return run


def over_axes(x: Tensor, f: Callable[..., Any]) -> Tensor:
    return f(x, axis=tuple(range(2, x.ndim)), keepdims=True)


def _columns(t: Tensor, x: Tensor) -> Tensor:
    """One number for each channel."""
    return t.reshape((-1,) + (1,) * (x.ndim - 2))


def batch_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    if node.get("training_mode", 0):
        raise InputError("training_mode of BatchNormalization is not read")
    s, b, m, v = (_columns(t, x) for t in (scale, bias, mean, var))
    return (x - m) / xp.sqrt(v + node.get("epsilon", 1e-5)) * s + b


def _normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    d = x - x.mean(axis=axes, keepdims=True)
    return d / xp.sqrt((d * d).mean(axis=axes, keepdims=True) + eps)


def layer_norm(node: Node, x: Tensor, scale: Tensor, bias: Any = None) -> Tensor:
    y = _normalized(x, tuple(range(axis_of(node, x, -1), x.ndim)), node.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


def instance_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    y = _normalized(x, tuple(range(2, x.ndim)), node.get("epsilon", 1e-5))
    return y * _columns(scale, x) + _columns(bias, x)


def lstm(node: Node, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None,
          c: Any = None, peep: Any = None) -> tuple[Tensor, ...]:
    """One direction, with the usual functions. Gates are in the order input, output, forget, cell."""
    own = {"hidden_size", "direction", "layout"}
    if set(node.attrs) - own or node.get("direction", "forward") != "forward" or node.get("layout", 0) or (
            lengths is not None or peep is not None):
        raise InputError("of LSTM, one direction forward with the usual functions is read")
    n = node.get("hidden_size")
    zeros = xp.zeros((x.shape[1], n), x.dtype)
    start = [zeros if s is None else s[0] for s in (h, c)]
    bias = 0 if b is None else b[0, : 4 * n] + b[0, 4 * n :]

    def step(carry: Any, row: Any) -> Any:
        gates = row @ w[0].T + carry[0] @ r[0].T + bias
        i, o, f = (op_on("sigmoid", gates[:, k * n : (k + 1) * n]) for k in range(3))
        cell = f * carry[1] + i * xp.tanh(gates[:, 3 * n :])
        hidden = o * xp.tanh(cell)
        return [hidden, cell], hidden

    (last, cell), ys = scan(step, start, x)
    return ys[:, None], last[None], cell[None]


# --- loops and branches -----------------------------------------------------------------------------------------------


def if_node(node: Node, test: Tensor) -> Any:
    bodies = [node.body("then_branch"), node.body("else_branch")]
    run = lambda g: lambda: [node.graph.tensor(r) for r in node.graph.run(g, node.known)]
    return tuple(cond(test.reshape(()), *map(run, bodies)))


def scan_node(node: Node, *xs: Tensor) -> Any:
    body, rows = node.body("body"), node.get("num_scan_inputs")
    m, names = len(xs) - rows, [i.name for i in body.input]
    back_in = node.get("scan_input_directions", [0] * rows)
    ys = len(body.output) - m
    back_out = node.get("scan_output_directions", [0] * ys)
    if {*node.get("scan_input_axes", [0]), *node.get("scan_output_axes", [0])} != {0}:
        raise InputError("a Scan over other axes than the first is not read")
    reverse = set(back_in) == {1} and set(back_out) <= {1}

    def step(carry: Any, row: Any) -> Any:
        found = node.graph.run(body, {**node.known, **dict(zip(names, [*carry, *row], strict=True))})
        tensors = [node.graph.tensor(r) for r in found]
        return tensors[:m], tensors[m:]

    turned = [xp.flip(x, 0) if d and not reverse else x for x, d in zip(xs[m:], back_in, strict=True)]
    last, out = scan(step, list(xs[:m]), turned, reverse=reverse)
    return (*last, *[xp.flip(y, 0) if d and not reverse else y for y, d in zip(out, back_out, strict=True)])


def loop_node(node: Node, most: Any, test: Any, *xs: Any) -> Any:
    """A count of steps is a scan; a condition is a while loop, which stacks nothing."""
    body = node.body("body")
    step_name, test_name, *names = [i.name for i in body.input]
    tensors = [node.graph.tensor(x) for x in xs]
    m = len(xs)

    def run(k: Any, going: Any, carry: Sequence[Any]) -> list[Any]:
        known = {**node.known, step_name: k, test_name: going, **dict(zip(names, carry, strict=True))}
        return [node.graph.tensor(r) for r in node.graph.run(body, known)]

    always = (test is None or isinstance(test, np.ndarray) and bool(test)) and _goes_on(body, test_name)
    limit = None if most is None else node.numbers(0)[0]
    if always and limit is not None:
        last, ys = scan(lambda c, k: (lambda out: (out[1 : m + 1], out[m + 1 :]))(run(k, True, c)), tensors,
                        xp.arange(limit, dtype="int64"))
        return (*last, *ys)
    if len(body.output) > m + 1:
        raise InputError("a Loop with a condition that stacks values is not read")
    start = [as_tensor(np.int64(0)), as_tensor(True if test is None else test).reshape(()), *tensors]

    def step(state: Any) -> Any:
        out = run(state[0], state[1], state[2:])
        return [state[0] + 1, out[0].reshape(()), *out[1:]]

    found = while_loop(lambda s: s[1], step, start, max_steps=limit)
    return tuple(found[2:])


def _goes_on(body: Any, test: str) -> bool:
    """True if a body gives its condition back, or a constant that is true."""
    made = {o: n for n in body.node for o in n.output}
    constants = {t.name: t for t in body.initializer}
    name = body.output[0].name
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    if name in made and made[name].op_type == "Constant":
        return any(a.HasField("t") and bool(onnx_package().numpy_helper.to_array(a.t)) for a in made[name].attribute)
    return name == test or name in constants and bool(onnx_package().numpy_helper.to_array(constants[name]))
