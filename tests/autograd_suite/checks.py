"""autograd's operators on symc: trace the function, differentiate, compile, compare with finite differences.

``check_grads`` keeps autograd's meaning and tolerances: the first derivatives of ``fun`` in each mode agree with
central differences of the compiled ``fun``; up to ``order``, the same holds for each derivative as a function of the
point and of its tangent or cotangent, where calls take turns: forward over reverse and reverse over forward in one,
each mode over itself in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any

import numpy as np

import symc as sc

EPS = 1e-6
TOLERANCE = 1e-6
Arrays = list[np.ndarray]


class Enough(Exception):
    """The checks that were asked for have run."""


@dataclass
class Checks:
    """The operators for one test. ``modes`` gives the compile mode of the calls of ``check_grads``, in order, and a
    call after them ends the test; without any, all run by the references."""

    modes: Sequence[str] = ()
    calls: Any = field(default_factory=count)

    def grad(self, fun: Callable, argnum: int = 0) -> Callable:
        return lambda *args: self.value_and_grad(fun, argnum)(*args)[1]

    def value_and_grad(self, fun: Callable, argnum: int = 0) -> Callable:
        def both(*args: Any) -> Any:
            x = args[argnum]
            if isinstance(x, sc.Tensor):
                return _traced_grad(fun, args, argnum, x)
            leaf = np.asarray(x)
            symbol = _symbol("x", leaf)
            f = sc.compile(_traced_grad(fun, args, argnum, symbol), [symbol], mode="reference")
            return f(leaf)

        return both

    def check_grads(
        self, fun: Callable, argnum: Any = 0, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
    ) -> Callable:
        def check(*args: Any, **kwargs: Any) -> None:
            call = next(self.calls)
            if self.modes and call >= len(self.modes):
                raise Enough
            mode = self.modes[call] if self.modes else "reference"
            point: Arrays = []
            symbols: list[sc.Tensor] = []
            argnums = (argnum,) if isinstance(argnum, int) else argnum
            traced = [_bind(a, symbols, point) if k in argnums else a for k, a in enumerate(args)]
            outputs = _leaves(fun(*traced, **kwargs))
            over = dict(zip(modes, modes if call % 2 else reversed(modes), strict=True))
            _verify(outputs, symbols, point, modes, order, mode, sc.compile(outputs, symbols, mode=mode), over)

        return check

    def combo_check(self, fun: Callable, *args: Any, **kwargs: Any) -> Callable:
        """Check ``fun`` at every combination of the given positional and keyword arguments."""

        def check(*choices: Any, **named: Any) -> None:
            for positional in product(*choices):
                for values in product(*named.values()):
                    self.check_grads(fun, *args, **kwargs)(*positional, **dict(zip(named, values)))

        return check


def _verify(
    outputs: list[sc.Tensor], wrt: list[sc.Tensor], point: Arrays, modes: Sequence[str], order: int, mode: str,
    value: Callable, over: dict[str, str],
) -> None:  # fmt: skip
    """Check the derivatives of ``outputs``, a function of all of ``wrt`` that ``value`` computes, at ``point``, then
    theirs in turn: that in each mode by the mode ``over`` it."""
    directions = [_normal(x.shape, x.dtype) for x in point]
    weights = [_normal(tuple(map(int, y.shape)), np.dtype(y.dtype)) for y in outputs]  # the inputs' shapes are static
    numeric = _difference_quotient(value, point, directions)
    if "fwd" in modes:
        tangents = _symbols("t", directions)
        pushed = _leaves(sc.jvp(tuple(outputs), tuple(wrt), tuple(tangents), disconnected="zero"))
        push = sc.compile(pushed, wrt + tangents, mode=mode)
        exact = push(*point, *directions)
        for got, want in zip(exact, numeric):
            np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE, err_msg="jvp")
        if order > 1:
            _verify(pushed, wrt + tangents, point + directions, [over["fwd"]], order - 1, mode, push, over)
    if "rev" in modes:
        cotangents = _symbols("c", weights)
        pulled = _leaves(sc.vjp(tuple(outputs), tuple(wrt), tuple(cotangents), disconnected="zero"))
        pull = sc.compile(pulled, wrt + cotangents, mode=mode)
        exact = pull(*point, *weights)
        got, want = _inner(exact, directions), _inner(weights, numeric)
        np.testing.assert_allclose(got, want, rtol=2 * TOLERANCE, atol=TOLERANCE, err_msg="vjp")
        if order > 1:
            _verify(pulled, wrt + cotangents, point + weights, [over["rev"]], order - 1, mode, pull, over)


def _difference_quotient(f: Callable, point: Arrays, directions: Arrays) -> Arrays:
    """Central differences of ``f`` at ``point`` along ``directions``."""
    ahead = f(*(x + EPS / 2 * d for x, d in zip(point, directions)))
    behind = f(*(x - EPS / 2 * d for x, d in zip(point, directions)))
    return [(a - b) / EPS for a, b in zip(ahead, behind)]


def _inner(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    """The real inner product of two lists of arrays, complex numbers taken as pairs."""
    return sum(np.vdot(x, y).real for x, y in zip(xs, ys))


def _normal(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Normal random numbers, real and imaginary parts alike."""
    parts = np.random.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)


def _traced_grad(fun: Callable, args: Sequence[Any], argnum: int, x: sc.Tensor) -> tuple[sc.Tensor, sc.Tensor]:
    y = sc.asarray(fun(*args[:argnum], x, *args[argnum + 1 :]))
    return y, sc.grad(y.sum() if y.size == 1 else y, x, disconnected="zero")


def _bind(arg: Any, symbols: list[sc.Tensor], point: Arrays) -> Any:
    """``arg`` with a fresh input in place of every number or array; the inputs and their values are appended."""
    if isinstance(arg, list | tuple):
        return type(arg)(_bind(a, symbols, point) for a in arg)
    point.append(np.asarray(arg))
    symbols.append(_symbol("x", point[-1]))
    return symbols[-1]


_serial = count()


def _symbol(prefix: str, like: np.ndarray) -> sc.Tensor:
    return sc.input(f"{prefix}{next(_serial)}", str(like.dtype), shape=like.shape)


def _symbols(prefix: str, like: Arrays) -> list[sc.Tensor]:
    return [_symbol(prefix, a) for a in like]


def _leaves(nest: Any) -> list[sc.Tensor]:
    """The values of a nest of lists and tuples, in order, all symbolic."""
    if isinstance(nest, list | tuple):
        return [leaf for item in nest for leaf in _leaves(item)]
    return [sc.asarray(nest)]
