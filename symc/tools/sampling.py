"""Arguments for a function of which nothing is known but the types: numbers at which rounding shows.

Floats are ordinary numbers at several scales, numbers of all magnitudes, and numbers that vary little around a large
one. Integers are small enough to be indices. What the user assumes of an input (`sc.assume`) holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symc.errors import InputError, SymcError
from symc.ir.dim import Dim
from symc.ir.function import Function
from symc.ir.size_values import names
from symc.ir.types import TensorType, concrete_shape
from symc.ir.value import Value
from symc.runtime.reference_program import ReferenceProgram
from symc.tools.promises import kept

#: Standard deviations of ordinary numbers.
SCALES = (1e-9, 1e-4, 1.0, 30.0, 1e3)
#: Means of numbers that vary by a millionth of the mean.
CENTRES = (1.0, 1e4, 1e8)
#: How many sets of arguments there are of numbers of all magnitudes, 1e-12 to 1e12.
WILD = 4
#: Sizes that names of sizes stand for, in turn.
LENGTHS = (3, 4, 5, 2)


class Sample(NamedTuple):
    """Arguments and what they are: "around 1e+08"."""

    label: str
    arrays: list[np.ndarray]


def sizes_of(f: Function) -> dict[str, int]:
    """A small number for every size name in the inputs of a function."""
    found = sorted({n for i in f.inputs for s in i.type.shape if isinstance(s, Dim) for n in names(s)})
    return {n: LENGTHS[k % len(LENGTHS)] for k, n in enumerate(found)}


def samples(f: Function, seed: int = 0) -> Iterator[Sample]:
    """Sets of arguments for the inputs of ``f``. The same seed gives the same."""
    rng = np.random.default_rng(seed)
    types = [i.type for i in f.inputs]

    def arguments(draw: Any) -> list[np.ndarray]:
        return kept(f.body.results, f.params, [_array(rng, t, sizes_of(f), draw) for t in types])

    for scale in SCALES:
        yield Sample(f"about {scale:g}", arguments(lambda shape, s=scale: rng.normal(size=shape) * s))
    for centre in CENTRES:
        yield Sample(
            f"around {centre:g}", arguments(lambda shape, c=centre: c * (1 + 1e-6 * rng.normal(size=shape)))
        )
    for _ in range(WILD):
        yield Sample("of all magnitudes", arguments(
            lambda shape: 10.0 ** rng.uniform(-12, 12, shape) * rng.choice([-1, 1], shape)))


def suitable(f: Function) -> list[np.ndarray]:
    """Arguments that are no error. Raises InputError if none were found: arguments may have to fit one another."""
    why: Exception | None = None
    for s in samples(f):
        try:
            ReferenceProgram(f).run(s.arrays, sizes_in(f, s.arrays))
            return s.arrays
        except (SymcError, ValueError, MemoryError) as e:
            why = e
    raise InputError(f"{f.name}: no arguments that were drawn at random are right: {str(why).splitlines()[0]}",
                     help="give the arguments of a call")


def sizes_in(f: Function, arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """The numbers that size names have in arguments."""
    return sizes_of(f) | {str(s): n for i, a in zip(f.inputs, arrays, strict=True)
                          for s, n in zip(i.type.shape, a.shape, strict=True) if isinstance(s, Dim)}


def chain_samples(functions: Sequence[Function], counts: Sequence[int]) -> list[list[Sample]]:
    """Arguments for the functions of a chain: those that the functions in front hand on are what they compute, the
    first ``counts`` of it as arrays without elements of so many rows."""
    found: list[list[Sample]] = [[] for _ in functions]
    given = len([i for i in functions[0].inputs if i.role == "arg"])
    for drawn in zip(*map(samples, functions)):
        known: dict[str, np.ndarray] = {}
        at = given
        for k, (f, s) in enumerate(zip(functions, drawn, strict=True)):
            arrays = [known.setdefault(i.name, a) for i, a in zip(f.inputs, s.arrays, strict=True)]
            found[k].append(Sample(s.label, arrays))
            if k == len(counts):
                break
            try:
                results = ReferenceProgram(f).run(arrays, sizes_in(f, arrays))
                handed = [np.empty((int(n), 0), bool) for n in results[:counts[k]]] + results[counts[k]:]
            except (SymcError, ValueError, MemoryError):  # these arguments are none for this chain
                break
            known.update({i.name: a for i, a in zip(functions[k + 1].inputs[at:], handed)})
            at += len(handed)
    return found


def _array(rng: np.random.Generator, t: TensorType, sizes: Mapping[str, int], draw: Any) -> np.ndarray:
    shape = concrete_shape(t.shape, sizes)
    if t.dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if t.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 2, shape), t.dtype)
    x: Any = np.asarray(draw(shape), np.float64)
    if t.dtype.kind == "c":
        x = x + 1j * np.asarray(draw(shape))
    with np.errstate(all="ignore"):
        return np.asarray(x.astype(t.dtype))


def leaves_of(f: Function, arrays: Sequence[np.ndarray]) -> dict[Value, Any]:
    """The arguments by the params they are for."""
    return dict(zip(f.params, arrays, strict=True))
