"""Programs that a generator makes: a function, sets of arrays to call it on, and what must not be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.ir.dim import size_name
from symc.ir.function import Function, Input, bound_names, function
from symc.ir.record import dataclass, field
from symc.ir.traverse import postorder
from symc.ir.types import TensorType, concrete_shape
from symc.ir.value import Value, fresh_input
from symc.tools.promises import kept

Arrays = tuple[np.ndarray, ...]
#: What sizes are called with, in turn. The first set of arrays has SIZES[0].
SIZES = (4, 1, 0, 7)


@dataclass(frozen=True)
class Program:
    """``name`` says how to make it again: "generator:seed" or "generator:seed:aim".

    ``source`` is what a user would write, if there is such a thing: loops can be checked against no loops at all.
    ``edges``: more sets of arrays, with infinities and nans in them.
    """

    name: str
    function: Function
    data: tuple[Arrays, ...]
    donated: frozenset[int] = frozenset()
    source: Any = None
    edges: tuple[Arrays, ...] = ()


#: A generator takes a seed and an aim: the name of a rule or op that should occur, or nothing.
Generator = Callable[[int, str], Program]
GENERATORS: dict[str, Generator] = {}


def generator(name: str) -> Callable[[Generator], Generator]:
    """Declare a generator."""

    def declare(g: Generator) -> Generator:
        GENERATORS[name] = g
        return g

    return declare


def make(name: str) -> Program:
    """The program called ``name``."""
    kind, seed, *aim = name.split(":", 2)
    return GENERATORS[kind](int(seed), aim[0] if aim else "")


def closed(leaves: Sequence[Value], results: Sequence[Value]) -> Function:
    """A function of free leaves; where they do not say how long n is, one more does."""
    known = set(bound_names(v.type for v in leaves))
    if any(not known.issuperset(bound_names(t for t in v.types)) for v in postorder(results)):
        leaves = [*leaves, fresh_input(TensorType("f64", (size_name("n"),)))]
    interface = [(v, Input(f"x{k}", v.type)) for k, v in enumerate(leaves)]
    return function("fuzz", interface, list(dict.fromkeys(results)))


# --- numbers ----------------------------------------------------------------------------------------------------------

SHORT = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0)
EDGES = (np.inf, -np.inf, np.nan, 1e-310, 1e300, -1e300, 700.0, -745.0, 88.8, 1e-20, 1e17)


@dataclass
class Numbers:
    """Arrays for types. ``style``: "ordinary", "short" (ties, zeros, ones), "wild" (all magnitudes) or "edges"."""

    rng: np.random.Generator
    style: str = "ordinary"

    def array(self, t: TensorType, sizes: dict[str, int]) -> np.ndarray:
        shape = concrete_shape(t.shape, sizes)
        kind = t.dtype.kind
        if kind == "b":
            return self.rng.random(shape) < 0.5
        if kind in "iu":
            return self._integers(t.dtype, shape)
        with np.errstate(all="ignore"):
            if kind == "c":
                return np.asarray(self._floats(shape, t.dtype) + 1j * self._floats(shape, t.dtype)).astype(t.dtype)
            return np.asarray(self._floats(shape, t.dtype)).astype(t.dtype)

    def _integers(self, d: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        low, high = (0, 3) if self.style == "ordinary" else (-3, 8)
        a = self.rng.integers(max(low, 0) if d.kind == "u" else low, high, shape)
        out = np.asarray(a).astype(d)
        if self.style == "edges":
            info = np.iinfo(d)
            ends = self.rng.choice(np.array([info.min, info.max, info.max - 1, 0], d), shape)
            out = np.where(self.rng.random(shape) < 0.3, ends, out).astype(d)
        return out

    def _floats(self, shape: tuple[int, ...], d: np.dtype) -> np.ndarray:
        rng, most = self.rng, min(12.0, np.log10(float(np.finfo(d).max)) - 1)
        ordinary = rng.uniform(0.2, 2.0, shape) * rng.choice([1.0, 1.0, -1.0], shape)
        if self.style == "short":
            return rng.choice(np.array(SHORT), shape)
        if self.style == "wild":
            return ordinary * 10.0 ** rng.uniform(-most, most, shape)
        if self.style == "edges":
            odd = rng.choice(np.array([*SHORT, *EDGES]), shape)
            return np.where(rng.random(shape) < 0.4, odd, ordinary)
        return ordinary


STYLES = ("ordinary", "short", "ordinary", "wild")


def data_for(
    f: Function, rng: np.random.Generator, styles: Sequence[str] = STYLES, sets: int = len(STYLES)
) -> tuple[Arrays, ...]:
    """Arrays for a function, of several styles and sizes."""
    names = bound_names(i.type for i in f.inputs)
    out = []
    for k in range(sets):
        sizes = {n: SIZES[(k + j) % len(SIZES)] if k else SIZES[0] for j, n in enumerate(names)}
        numbers = Numbers(rng, styles[k % len(styles)])
        out.append(tuple(kept(f.body.results, f.params, [numbers.array(i.type, sizes) for i in f.inputs])))
    return tuple(out)


@dataclass
class Reached:
    """Counts of how often rules fired, ops and passes occurred in programs, and each was aimed at."""

    rules: dict[str, int] = field(default_factory=dict)
    ops: dict[str, int] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)
    tried: dict[str, dict[str, int]] = field(default_factory=dict)

    def least(self, table: str, names: Sequence[str], rng: np.random.Generator) -> str:
        """One of the names that were reached, or at least aimed at, least."""
        reached: dict[str, int] = getattr(self, table)
        tried = self.tried.get(table, {})
        counts = {n: min(reached.get(n, 0), 3) + tried.get(n, 0) for n in names}
        fewest = min(counts.values())
        return str(rng.choice([n for n in names if counts[n] == fewest]))
