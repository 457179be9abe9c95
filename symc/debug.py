"""``sc.debug``: look at values while a compiled program runs, check them, stop at them.

Each function gives back its first argument, with something that happens when that value is computed. Use the result in
place of the argument: what is not used is not computed, so nothing happens there. What happens keeps its place through
optimization, in the order of the program where nothing else decides it, and once a step inside a loop. Derivatives pass
through unchanged. The pass ``strip_debug`` takes everything of this out of a program.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError
from symc.ir import location
from symc.ir.ops import effect
from symc.ir.ops.effect import hooks
from symc.ir.value import Value, next_serial
from symc.tensors.callsite import caller
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.tensor import Tensor

__all__ = ["assert_", "breakpoint", "hooks", "print", "sample", "shadow"]


@located
def print(x: Any, format: str = "{}", *others: Any, **named: Any) -> Tensor:
    """``x``, which prints ``format`` when it is computed: one line, after the user's line.

    ``format`` is filled as by ``str.format``, with the array x first, then ``others``, and ``named`` by name. Inside
    ``vmap`` every entry prints a line of its own. ``sc.debug.hooks.print = function`` sends the lines elsewhere.
    Raises InputError for a format that does not fit the values.
    """
    tensors = [as_tensor(v) for v in (x, *others, *named.values())]
    examples = [np.ones((1,) * t.ndim, t.dtype)[()] for t in tensors]
    keywords = dict(zip(named, examples[1 + len(others) :], strict=True))
    try:
        format.format(*examples[: 1 + len(others)], **keywords)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise InputError(f"debug.print: the format {format!r} does not fit: {type(e).__name__}: {e}",
                         values=[t.describe(f"value {k}") for k, t in enumerate(tensors)]) from None  # fmt: skip
    names = (*[""] * len(others), *named)
    return _effect(effect.print_op, tensors, format=format, names=names, batch=0)


@located
def assert_(x: Any, condition: Any, message: str = "", **named: Any) -> Tensor:
    """``x``, which raises AssertError with ``message`` when it is computed and ``condition`` does not hold.

    ``condition`` is a boolean value of any shape, of which all elements must be true. The error shows where it fails,
    with the elements of x there if it has the shape of x, and the values in ``named``.
    """
    t, holds, *more = [as_tensor(v) for v in (x, condition, *named.values())]
    if holds.dtype != np.bool_:
        raise DTypeError(
            f"debug.assert_: the condition must be boolean, not {holds.dtype}",
            values=[holds.describe("condition")],
            help="compare: x > 0",
        )
    return _effect(effect.assert_op, [t, holds, *more], message=str(message), names=tuple(named), batch=0)


@located
def breakpoint(x: Any, /, **named: Any) -> Tensor:
    """``x``, which opens pdb when it is computed. The array is called ``x`` there, and those in ``named`` by name.

    ``sc.debug.hooks.breakpoint = function`` is called instead, with the arrays by name and the user's line.
    """
    if "x" in named:
        raise InputError("debug.breakpoint: x is the name of the first array", help="give the other one another name")
    tensors = [as_tensor(v) for v in (x, *named.values())]
    return _effect(effect.breakpoint_op, tensors, names=("x", *named))


def sample(x: Tensor, array: Any) -> None:
    """Let an array stand for the input x where ``sc.config.shadow`` computes values while they are built. Raises
    InputError for one that does not have the dtype kind or the axes of x."""
    from symc.tensors.shadow import set_sample

    a = np.asarray(array).astype(x.dtype, casting="same_kind") if np.ndim(array) == x.ndim else None
    if a is None or any(isinstance(n, int) and n != k for n, k in zip(x.value.shape, a.shape, strict=True)):
        raise InputError(f"debug.sample: an array of shape {np.shape(array)} is no sample of this",
                         values=[x.describe()], where=[caller()])
    set_sample(x.value, a)


def shadow(x: Tensor) -> np.ndarray | None:
    """The array of x on samples of the inputs; None where it cannot be known while the graph is built."""
    from symc.tensors.shadow import shadow

    return shadow(as_tensor(x).value)


def _effect(op: Any, tensors: list[Tensor], **attrs: Any) -> Tensor:
    lines = location.in_order(location.here()) or [caller()]
    values: builtins.list[Value] = [t.value for t in tensors]
    return Tensor(op(*values, line=str(lines[0]), serial=next_serial(), **attrs), tensors[0].weak)
