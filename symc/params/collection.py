"""``sc.Params``: a named, nested collection of states.

``P = sc.Params(seed=0)``; ``w = P.weight("w", (784, 128))``; ``layer = P.sub("layer1")``. A name that was asked for
before gives the state that it gave then, so a model is a plain function of a collection and of its inputs: called twice
it shares its weights. What a weight begins with depends on the seed and on its path alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symc import init as initializers
from symc.errors import DTypeError, InputError, ShapeError, did_you_mean
from symc.ir.types import DTYPE_NAMES, as_dtype
from symc.random.generator import Generator
from symc.tensors.public import located
from symc.tensors.sizes import entries, whole
from symc.tensors.state import SharedVariable, shared
from symc.tensors.tensor import Tensor

#: What an entry is: trained, trained row by row, or kept beside.
WEIGHT, LOOKUP, STATE = "weight", "lookup", "state"


class _Store:
    """Store that a collection and its parts have in common."""

    def __init__(self, seed: int, dtype: Any):
        self.seed, self.dtype = seed, as_dtype(dtype)
        self.states: dict[str, SharedVariable] = {}
        self.kinds: dict[SharedVariable, str] = {}
        self.parts: set[str] = set()
        self.updates: dict[SharedVariable, Tensor] = {}
        self.generator: Generator | None = None


class Params(Mapping[str, SharedVariable]):
    """A named, nested collection of states: a mapping from paths such as "encoder/w" to shared variables.

    A part (``P.sub("encoder")``) is a collection too, with paths of its own ("w").
    Weights are float32 unless ``dtype`` says otherwise, here or for one of them.
    """

    def __init__(self, seed: int = 0, dtype: Any = "float32"):
        if (number := whole(seed)) is None or number < 0:
            raise InputError(f"sc.Params: the seed is {seed!r}", help="a whole number that is not negative")
        self._store, self.path = _Store(number, dtype), ""

    # --- what there is ------------------------------------------------------------------------------------------------

    @located
    def weight(self, name: str, shape: Any, init: Any = None, dtype: Any = None) -> SharedVariable:
        """A state that is trained. ``init``: from ``sc.init``, a number or an array; by default Glorot's uniform one
        for matrices and filters, zeros for vectors and scalars.

        Raises ShapeError or DTypeError where the name stands for another one already.
        """
        return self._entry(WEIGHT, name, shape, init, dtype)

    @located
    def lookup(self, name: str, n: int, d: int | Sequence[int], init: Any = None, dtype: Any = None) -> SharedVariable:
        """A table of n rows of d numbers, which is trained row by row: optimizers update the rows that were read.

        By default uniform, of variance 1 / d.
        """
        row = tuple(d) if isinstance(d, list | tuple) else (d,)
        if init is None:
            bound = math.sqrt(3 / max(1, math.prod(row)))
            init = initializers.uniform(-bound, bound)
        return self._entry(LOOKUP, name, (n, *row), init, dtype)

    @located
    def state(self, name: str, shape: Any, init: Any = 0.0, dtype: Any = None) -> SharedVariable:
        """A state that is kept and saved with the others, and not trained: running statistics, counters."""
        return self._entry(STATE, name, shape, init, dtype)

    def sub(self, name: str) -> Params:
        """The part of the collection whose paths begin with ``name``."""
        part = object.__new__(Params)
        part._store, part.path = self._store, self._full(name)
        if part.path in self._store.states:
            raise InputError(f"{part.path!r} is a state, not a part of a collection")
        return part

    @located
    def key(self) -> Tensor:
        """A fresh key for ``sc.random``: other numbers in every call of a function with ``updates``.

        The generator behind it is a state of the collection, "rng", and is saved with it.
        """
        store = self._store
        if store.generator is None:
            store.generator = Generator(store.seed)
            self._add(STATE, "rng", store.generator.state)
        store.updates.update(store.generator.updates())
        return store.generator.key()

    @property
    def updates(self) -> dict[SharedVariable, Tensor]:
        """Updates that layers built for training want of their states: running statistics, the key of
        dropout. ``opt.updates(loss, P)`` contains it; else give it to ``sc.compile(..., updates=)``."""
        return self._store.updates

    def trained(self) -> dict[str, SharedVariable]:
        """The weights and tables by path, without what is only kept."""
        return {path: s for path, s in self.items() if self.kind(s) != STATE}

    def kind(self, state: Any) -> str:
        """"weight", "lookup" or "state"; for what is not in the collection, "weight"."""
        return self._store.kinds.get(state, WEIGHT)

    @property
    def size(self) -> int:
        """The number of numbers that are trained."""
        return sum(_count(s) for s in self.trained().values())

    # --- a mapping ----------------------------------------------------------------------------------------------------

    def __getitem__(self, path: str) -> SharedVariable:
        found = self._store.states.get(self._full(path))
        if found is None:
            raise KeyError(f"no parameter {self._full(path)!r}: {did_you_mean(self._full(path), self._store.states)}")
        return found

    def __iter__(self) -> Iterator[str]:
        head = self.path + "/" if self.path else ""
        return (path.removeprefix(head) for path in list(self._store.states) if path.startswith(head))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Tensor):
            return any(s is item for s in self.values())  # a tensor has no == to compare by
        return isinstance(item, str) and self._full(item) in self._store.states

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Params) and self._store is other._store and self.path == other.path

    def __hash__(self) -> int:
        return hash((id(self._store), self.path))

    def items(self) -> Any:
        """Paths and states, in the order in which they were made."""
        return [(path, self[path]) for path in self]

    def values(self) -> Any:
        """The states, in the order in which they were made."""
        return [s for _, s in self.items()]

    def __repr__(self) -> str:
        rows = [(path, str(s.value.type), f"{_count(s):,}", "" if self.kind(s) == WEIGHT else self.kind(s))
                for path, s in self.items()]
        wide = [max((len(r[k]) for r in rows), default=0) for k in range(3)]
        lines = [f"  {a:{wide[0]}}  {b:{wide[1]}}  {c:>{wide[2]}}  {d}".rstrip() for a, b, c, d in rows]
        head = f"Params({self.path!r}" if self.path else "Params("
        return "\n".join([f"{head}{', ' if self.path else ''}{len(rows)} states, {self.size:,} numbers are trained)",
                          *lines])

    # --- making them --------------------------------------------------------------------------------------------------

    def _full(self, name: str) -> str:
        if not isinstance(name, str) or not name or "" in name.split("/"):
            raise InputError(f"{name!r} is no name of a parameter", help='words, with "/" between nested names')
        return f"{self.path}/{name}" if self.path else name

    def _entry(self, kind: str, name: str, shape: Any, init: Any, dtype: Any) -> SharedVariable:
        path = self._full(name)
        sizes = _sizes(shape, path)
        d = self._store.dtype if dtype is None else as_dtype(dtype)
        found = self._store.states.get(path)
        if found is not None:
            return self._same(path, found, kind, sizes, d)
        if init is None:
            init = initializers.glorot_uniform() if len(sizes) > 1 else 0.0
        seed = np.random.SeedSequence([self._store.seed, zlib.crc32(path.encode()), *path.encode()])
        try:
            array = initializers.as_initializer(init)(np.random.default_rng(seed), sizes, d)
        except ShapeError as e:
            raise ShapeError(f"{path}: {e.what}", help=e.help) from None
        return self._add(kind, path, shared(array, path, borrow=True))

    def _add(self, kind: str, path: str, state: SharedVariable) -> SharedVariable:
        store = self._store
        if path in store.parts:
            raise InputError(f"{path!r} is a part of the collection, not a state",
                             values=[(p, s.value.type, s.cell.loc) for p, s in store.states.items()
                                     if p.startswith(path + "/")][:3])
        state.cell.mark(False, None)  # the array is its own
        steps = path.split("/")
        store.parts.update("/".join(steps[:k]) for k in range(1, len(steps)))
        store.states[path], store.kinds[state] = state, kind
        return state

    def _same(self, path: str, found: SharedVariable, kind: str, shape: tuple[int, ...],
              dtype: np.dtype) -> SharedVariable:
        values = [(path, found.value.type, found.cell.loc)]
        other = "another name, or a part of the collection: P.sub('layer2')"
        if found.value.shape != shape:
            raise ShapeError(f"{path} has shape {found.value.shape} already, and {shape} is asked for", values=values,
                             help=other)
        if found.dtype != dtype:
            raise DTypeError(f"{path} is {DTYPE_NAMES[found.dtype]} already, and {DTYPE_NAMES[dtype]} is asked for",
                             values=values, help=other)
        if self.kind(found) != kind:
            raise InputError(f"{path} is a {self.kind(found)} already, not a {kind}", values=values, help=other)
        return found


def _sizes(shape: Any, path: str) -> tuple[int, ...]:
    sizes = entries(shape)
    for n in sizes:
        if (number := whole(n)) is None or number < 0:
            raise ShapeError(f"{path}: {n!r} in the shape of a parameter is not a size that is known",
                             help="sizes of parameters are whole numbers; declare them in the inputs: shape=('n', 784)")
    return tuple(int(n) for n in sizes)


def _count(state: SharedVariable) -> int:
    return math.prod(n for n in state.value.shape if isinstance(n, int))
