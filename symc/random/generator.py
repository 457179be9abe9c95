"""``Generator``: a key that is kept between calls, for those who do not want to pass keys around.

It is a shared variable and a counter of draws. Every draw in a graph has a key of its own, made of the shared key and
the number of the draw; a compiled function that is given ``updates()`` replaces the shared key at each call.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from typing import Any

from symc.errors import InputError
from symc.ir.ops.random import split_key
from symc.ir.ops.shape import reshape, slice_
from symc.random.core import DISTRIBUTIONS
from symc.random.keys import derived, key_data
from symc.tensors.public import located
from symc.tensors.state import SharedVariable, shared
from symc.tensors.tensor import Tensor
from symc.transforms.callbacks import traced_loop

#: Keys are split off so many at a time: one kernel makes the keys of many draws.
CHUNK = 32


class Generator:
    """All distributions of ``sc.random`` as methods, without their first argument.

    ``rng = sc.random.Generator(0)``; ``x = rng.normal((3,))``; ``f = sc.compile(x, updates=rng.updates())``. Every
    call of f then gives new numbers, and the same ones in every process. Without the updates every call gives the same
    numbers, and a warning says so. Not for the inside of loops, where every step would see the same key.
    """

    @located
    def __init__(self, seed: Any = None, name: str = "rng"):
        self.seed = secrets.randbits(64) if seed is None else seed
        self.state: SharedVariable = shared(key_data(self.seed), name)
        self.state.cell.draws = True
        self._draws = 0

    @located
    def key(self) -> Tensor:
        """A fresh key."""
        loop = traced_loop.get()
        if loop:
            raise InputError(f"{loop}: a Generator would give the same numbers in each step",
                             help="call key = rng.key() before the loop, and in it sc.random.fold_in(key, t) with the "
                             "number of the step, or carry the key and split it")  # fmt: skip
        chunk, row = divmod(self._draws, CHUNK)
        self._draws += 1
        owner = derived(self.state.value, chunk, "fold_in") if chunk else self.state.value
        keys = split_key(owner, shape=(CHUNK,))
        return Tensor(reshape(slice_(keys, start=(row, 0), size=(1, 2), step=(1, 1)), shape=(2,)))

    def updates(self) -> dict[SharedVariable, Tensor]:
        """Updates for ``compile(updates=...)`` so that every call draws anew: ``{**rng.updates(), w: ...}``."""
        return {self.state: Tensor(derived(self.state.value, 0, "advance"))}

    def reset(self, seed: Any = None) -> None:
        """Begin again with a seed; without one, with the first seed."""
        self.seed = self.seed if seed is None else seed
        self.state.set_value(key_data(self.seed))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.seed, self.state, self._draws)

    def __repr__(self) -> str:
        return f"Generator(seed={self.seed})"


def _restored(seed: Any, state: SharedVariable, draws: int) -> Generator:
    """With the state itself: functions of the same pickle keep sharing it."""
    rng = object.__new__(Generator)
    rng.seed, rng.state, rng._draws = seed, state, draws
    return rng


def _method(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(fn)
    def call(self: Generator, *args: Any, **kwargs: Any) -> Tensor:
        return fn(self.key(), *args, **kwargs)

    return located(call)


def install(synonyms: dict[str, Callable[..., Tensor]]) -> None:
    """Give the class a method for each distribution, and for further names of some."""
    for name, fn in {**DISTRIBUTIONS, **synonyms}.items():
        setattr(Generator, name, _method(fn))


