"""Inverses of increasing functions by bisection, for all elements at once: of numbers and of whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc import numpy_api as xp
from symc.errors import GradientError
from symc.random.keys import fold_in
from symc.tensors.tensor import Tensor
from symc.transforms.control import while_loop
from symc.transforms.function_op import function_op
from symc.transforms.implicit import custom_root


def least_integer(enough: Callable[[Any], Any], first: Any, last: Any, zero: Tensor) -> Tensor:
    """The least whole number from ``first`` to ``last`` that is enough, where all after it are; ``zero`` has the shape
    and dtype. Steps double from ``first`` until one is enough, then halve. No derivative."""
    most = xp.minimum(last, 2.0 ** xp.finfo(zero.dtype).nmant)  # every whole number up to it is a float
    low, high = first - 1 + zero, first + zero

    def short(state: Any) -> Any:
        high = state[1]
        return xp.any(~enough(high) & (high < most))

    def double(state: Any) -> Any:
        low, high = state
        far = ~enough(high) & (high < most)
        return xp.where(far, high, low), xp.where(far, xp.minimum(2 * high - first + 1, most), high)

    def halve(state: Any) -> Any:
        low, high = state
        mid = xp.floor((low + high) / 2)
        right = enough(mid) | (mid <= low)
        return xp.where(right, low, mid), xp.where(right & (mid > low), mid, high)

    low, high = while_loop(short, double, (low, high))
    low, high = while_loop(lambda s: xp.any(s[1] - s[0] > 1), halve, (low, high))
    return high


def solve_increasing(f: Callable[[Any], Any], start: Tensor, first: Any, last: Any) -> Tensor:
    """The x with f(x) = 0 between ``first`` and ``last``, element by element, for an increasing f. To the last bit that
    f resolves; its derivative is that of the implicit function."""

    def bisect(f: Callable[[Any], Any], start: Tensor) -> Tensor:
        def outside(state: Any) -> Any:
            low, high = state[:2]
            return (f(low) > 0) & (low > first), (f(high) < 0) & (high < last)

        def widen(state: Any) -> Any:
            below, above = outside(state)
            low, high, step = state
            return (xp.where(below, xp.maximum(low - step, first), low),
                    xp.where(above, xp.minimum(high + step, last), high), 2 * step)

        def halve(state: Any) -> Any:
            low, high, _ = state
            mid = low + (high - low) / 2
            right = f(mid) >= 0
            return xp.where(right, low, mid), xp.where(right, mid, high), (mid > low) & (mid < high)

        low, high, _ = while_loop(lambda s: xp.any(xp.stack([xp.any(o) for o in outside(s)])), widen,
                                  (start, start, xp.ones_like(start)))
        low, high, _ = while_loop(lambda s: xp.any(s[2]), halve, (low, high, xp.isfinite(high - low)))
        return high

    return custom_root(f, start, bisect, lambda g, y: y / g(xp.ones_like(y)), tolerance=None)


def _no_derivative(*_: Any) -> Any:
    raise GradientError("what is found by rejection has no derivative by the parameters of its distribution",
                        help="sc.stop_gradient(parameter) says that it is to be a constant")


_accepted = function_op(lambda x: x, vjp=_no_derivative, jvp=_no_derivative, name="accepted")


def rejection(key: Any, shape: Any, dtype: Any, propose: Callable[[Any], tuple[Any, Any]]) -> Tensor:
    """For each element the first proposal that is accepted: ``propose(key)`` gives both. A derivative raises
    GradientError: the path through what was accepted is not that of the distribution."""

    def step(state: Any) -> Any:
        k, x, done = state
        found, ok = propose(fold_in(key, k))
        return k + 1, xp.where(done, x, found), done | ok

    start = xp.asarray(0, dtype="int64"), xp.zeros(shape, dtype), xp.zeros(shape, "bool")
    return _accepted(while_loop(lambda s: ~xp.all(s[2]), step, start)[1])
