"""Programs that a generator makes: a function, sets of arrays to call it on, and what must not be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.ir.dim import size_name
from symc.ir.function import Function, Input, bound_names, function
from symc.ir.ops.assume import NOTHING
from symc.ir.record import dataclass, field
from symc.ir.traverse import postorder
from symc.ir.types import TensorType, concrete_shape
from symc.ir.value import Value, fresh_input

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
    names, promises = bound_names(i.type for i in f.inputs), _promises(f)
    out = []
    for k in range(sets):
        sizes = {n: SIZES[(k + j) % len(SIZES)] if k else SIZES[0] for j, n in enumerate(names)}
        numbers = Numbers(rng, styles[k % len(styles)])
        arrays = [numbers.array(i.type, sizes) for i in f.inputs]
        for j, promise in promises.items():
            arrays[j] = as_promised(arrays[j], promise)
        out.append(tuple(arrays))
    return tuple(out)


def _promises(f: Function) -> dict[int, dict[str, Any]]:
    """Assumptions on inputs, at once or of what is assumed already, by their index."""
    found: dict[int, dict[str, Any]] = {}
    for v in f.values():
        x = v
        while x.op.name == "assume":
            x = x.operands[0]
        if x is not v and x.op.name == "param":
            known = found.setdefault(x.attrs["index"], dict(NOTHING))
            for name, value in v.attrs.items():
                known[name] = _both(name, known[name], value)
    return found


def _both(name: str, a: Any, b: Any) -> Any:
    """Two promises of one kind as one."""
    if name == "structure":
        return tuple(sorted({*a, *b}))
    if a is None or b is None:
        return b if a is None else a
    return min(a, b) if name == "high" else max(a, b)


#: Structures of matrices that are equal to their transpose, conjugated.
SYMMETRIC = frozenset({"symmetric", "hermitian", "psd", "pd"})


def as_promised(a: np.ndarray, promise: dict[str, Any]) -> np.ndarray:
    """An array made such that a promise holds of it, as far as that is easy; else it is not called with."""
    low, high = promise["low"], promise["high"]
    with np.errstate(all="ignore"):
        x = np.where(np.isfinite(a), a, 1).astype(a.dtype) if a.dtype.kind in "fc" else a
        if promise["integer"] and x.dtype.kind == "f":
            x = np.rint(np.clip(x, -1e6, 1e6))
        if x.dtype.kind in "iuf":
            if low is not None and high is not None:
                x = low + np.abs(x) % max(high - low, 1) if x.dtype.kind in "iu" else np.clip(x, low, high)
            elif low is not None:
                x = np.maximum(np.abs(x), low)
            elif high is not None:
                x = np.minimum(-np.abs(x), high)
        if promise["nonzero"]:
            x = np.where(x == 0, -1 if high is not None and low is None else 1, x)
        for name in promise["structure"]:
            x = _structured(np.asarray(x), name)
        if not SYMMETRIC.isdisjoint(promise["structure"]):
            x = _symmetric(x, "symmetric" not in promise["structure"])
        return np.asarray(x).astype(a.dtype).reshape(a.shape)


def _symmetric(x: np.ndarray, conjugate: bool) -> np.ndarray:
    """Symmetric to the last bit: rules believe it, and rounding of a product leaves more than a judge forgives."""
    if x.shape[-1] != x.shape[-2]:
        return x
    other = np.swapaxes(x, -1, -2)
    return np.asarray((x + (np.conj(other) if conjugate else other)) / 2)


def _structured(x: np.ndarray, name: str) -> np.ndarray:
    n = min(x.shape[-2:]) if x.ndim > 1 else 0
    eye = np.eye(*x.shape[-2:]) if x.ndim > 1 else np.ones(())
    small = np.tanh(x)
    forms: dict[str, Any] = {
        "lower": lambda: np.tril(x), "upper": lambda: np.triu(x), "diagonal": lambda: x * eye,
        "unit": lambda: x * (1 - eye) + eye, "symmetric": lambda: (small + np.swapaxes(small, -1, -2)) / 2,
        "hermitian": lambda: (small + np.conj(np.swapaxes(small, -1, -2))) / 2,
        "psd": lambda: small @ np.conj(np.swapaxes(small, -1, -2)),
        "orthogonal": lambda: np.linalg.qr(small + 2 * eye)[0],
        "pd": lambda: small @ np.conj(np.swapaxes(small, -1, -2)) + eye, "permutation": lambda: eye[::-1] + 0 * small,
        "sorted": lambda: np.sort(x, axis=-1), "unique": lambda: np.arange(x.size).reshape(x.shape),
        "identity": lambda: eye,
    }  # fmt: skip
    return np.asarray(forms[name]()) if name in forms and (n or name in ("sorted", "unique")) else x


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
