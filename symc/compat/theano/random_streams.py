"""``RandomStreams``: every draw of a graph has a state of its own, which each call of a function replaces."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano.functions import sizes_of
from symc.compat.theano.settings import float_dtype
from symc.compat.theano.variable import (
    SharedVariable,
    TensorVariable,
    plain,
    remembered,
    tensor_of,
    updating,
    wrap,
)
from symc.random.keys import key_data


class RandomState:
    """The value of the state of a draw: ``seed``, ``get_state`` and ``set_state``, as NumPy's."""

    def __init__(self, state: np.ndarray):
        self.state = state

    def seed(self, seed: int) -> None:
        self.state = key_data(seed)

    def get_state(self) -> np.ndarray:
        return self.state.copy()

    def set_state(self, state: np.ndarray) -> None:
        self.state = np.array(state)


class RandomStateVariable(SharedVariable):
    """The state of one draw."""

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> RandomState:
        return RandomState(self.tensor.get_value())

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        self.tensor.set_value(new_value.state if isinstance(new_value, RandomState) else new_value)


def _advance(state: sc.Tensor) -> sc.Tensor:
    return sc.random.split(state)[1]


class RandomStreams:
    """Random numbers by Theano's names. ``state_updates``: the states of all draws, each with its next value."""

    def __init__(self, seed: int | None = None, no_warn: bool = False, use_cuda: Any = None):
        self.state_updates: list[tuple[RandomStateVariable, TensorVariable]] = []
        self.seed(seed)

    def seed(self, seed: int | None = None) -> None:
        """Begin again: each draw has a new state, which the seed gives."""
        self.default_instance_seed = seed
        self._seeds = np.random.RandomState(None if seed is None else np.random.SeedSequence(seed).generate_state(4))
        for state, _ in self.state_updates:
            state.set_value(self._next())

    def updates(self) -> list[tuple[RandomStateVariable, TensorVariable]]:
        return list(self.state_updates)

    def _next(self) -> np.ndarray:
        return key_data(int(self._seeds.randint(2**31 - 1)))

    def _draw(self, name: str, size: Any, like: tuple[Any, ...], as_dtype: Any, *args: Any, **options: Any) -> Any:
        """Numbers of a distribution in ``size``, or in the shape of the parameters in ``like``."""
        state = remembered(updating(RandomStateVariable(sc.shared(self._next(), "random_state")), _advance))
        shape = sc.broadcast_shapes(*[tensor_of(p).shape for p in like]) if size is None else sizes_of(size)
        key = sc.random.split(state.tensor)[0]
        drawn = getattr(sc.random, name)(key, *args, shape=shape, **options)
        out = TensorVariable(drawn if as_dtype is None else drawn.astype(float_dtype(as_dtype)))
        out.rng = state  # type: ignore[attr-defined]
        out.update = (state, state.default_update)  # type: ignore[attr-defined]
        self.state_updates.append(out.update)  # type: ignore[attr-defined]
        return out

    def uniform(self, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: int | None = None, dtype: Any = None,
                nstreams: Any = None) -> TensorVariable:
        a, b = tensor_of(low), tensor_of(high)
        return self._draw("uniform", size, (a, b), None, low=a, high=b, dtype=float_dtype(dtype))

    def normal(self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: int | None = None, dtype: Any = None,
               nstreams: Any = None) -> TensorVariable:
        a, b = tensor_of(avg), tensor_of(std)
        return self._draw("normal", size, (a, b), None, loc=a, scale=b, dtype=float_dtype(dtype))

    def truncated_normal(self, size: Any, avg: Any = 0.0, std: Any = 1.0, ndim: int | None = None, dtype: Any = None,
                         nstreams: Any = None) -> TensorVariable:
        a, b = tensor_of(avg), tensor_of(std)
        return self._draw("truncated_normal", size, (a, b), None, -2.0, 2.0, loc=a, scale=b, dtype=float_dtype(dtype))

    def binomial(self, size: Any = None, n: Any = 1, p: Any = 0.5, ndim: int | None = None, dtype: Any = "int64",
                 nstreams: Any = None) -> TensorVariable:
        q = tensor_of(p)
        if isinstance(n, int) and n == 1:
            return self._draw("bernoulli", size, (q,), dtype, q)
        return self._draw("binomial", size, (q, n), dtype, plain(n), q)

    def random_integers(self, size: Any = None, low: Any = 0, high: Any = 1, ndim: int | None = None,
                        dtype: Any = "int64") -> TensorVariable:
        """Integers from ``low`` to ``high``, both included."""
        return self._draw("integers", size, (low, high), dtype, plain(low), plain(high), endpoint=True)

    def poisson(self, size: Any = None, lam: Any = 1.0, ndim: int | None = None, dtype: Any = "int64"
                ) -> TensorVariable:
        return self._draw("poisson", size, (lam,), dtype, tensor_of(lam))

    def multinomial(self, size: Any = None, n: Any = 1, pvals: Any = (0.5, 0.5), ndim: int | None = None,
                    dtype: Any = "int64", nstreams: Any = None) -> TensorVariable:
        """Counts of each outcome in ``n`` trials, one row a distribution."""
        p = tensor_of(pvals)
        if isinstance(n, int) and n == 1:
            one = self._draw("categorical", size, (p[..., 0],), None, sc.log(p))
            out = TensorVariable((one.tensor[..., None] == sc.arange(p.shape[-1])).astype(float_dtype(dtype)))
            out.rng, out.update = one.rng, one.update  # type: ignore[attr-defined]
            return out
        return self._draw("multinomial", size, (p[..., 0],), dtype, plain(n), p)

    def choice(self, size: Any = 1, a: Any = 2, replace: bool = True, p: Any = None, ndim: int | None = None,
               dtype: Any = "int64", nstreams: Any = None) -> TensorVariable:
        among = plain(a)
        return self._draw("choice", () if size is None else size, (), dtype if isinstance(among, int) else None, among,
                          replace=replace, p=None if p is None else tensor_of(p))

    def permutation(self, size: Any = None, n: Any = 1, ndim: int | None = None, dtype: Any = "int64"
                    ) -> TensorVariable:
        """Orders of ``n`` numbers: as many as ``size`` says."""
        shape = () if size is None else sizes_of(size)
        rows = sc.broadcast_to(sc.arange(plain(n)), (*shape, plain(n)))
        return self._order(rows, len(shape), dtype)

    def shuffle_row_elements(self, input: Any) -> TensorVariable:
        """The elements of each row in another order."""
        t = tensor_of(input)
        return self._order(t, t.ndim - 1, None)

    def _order(self, rows: sc.Tensor, axis: int, dtype: Any) -> TensorVariable:
        keys = self._draw("uniform", rows.shape, (), None)
        out = TensorVariable(sc.take_along_axis(rows, sc.argsort(keys.tensor, axis), axis))
        out.rng, out.update = keys.rng, keys.update  # type: ignore[attr-defined]
        return out if dtype is None else wrap(out.tensor.astype(dtype))  # type: ignore[attr-defined]


class MRG_RandomStreams(RandomStreams):
    """The same streams under the other name."""

    @property
    def rstate(self) -> Any:
        return self._seeds.get_state()

    @rstate.setter
    def rstate(self, state: Any) -> None:
        self._seeds.set_state(state)
