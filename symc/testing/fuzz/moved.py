"""Programs that move elements of arrays with few of them, or none: every axis has size 0, 1, 2 or 3.

Where an array has no elements, more is true of it than rules are written for: it begins where it ends, every place is
outside of it, and all its reshapes are one another's.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from symc.ir.op import lookup, splat
from symc.ir.ops.shape import slice_along
from symc.ir.traverse import free_inputs, postorder
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.rule import lookup_rule
from symc.testing.choices import one_of
from symc.testing.fuzz.generators import aimed_rules, examples_of
from symc.testing.fuzz.grower import Grower
from symc.testing.fuzz.programs import STYLES, Program, closed, data_for, generator
from symc.testing.rule_forms import lengths, resized

#: Sizes of axes, as often as they are taken.
SIZES = (0, 1, 1, 2, 2, 3, 4)


def _lengths(x: Value) -> list[int]:
    return [s for s in x.shape if isinstance(s, int)]


class Mover(Grower):
    """A pool of small arrays, and movements of them with whatever attributes there are."""

    shapes = tuple(s for rank in (0, 1, 1, 1, 1, 2) for s in itertools.product(SIZES, repeat=rank))

    def forms(self) -> list[Callable[[], Value]]:
        moves = [self.turned, self.repeated, self.reshaped, self.reshaped, self.part, self.padded, self.put_together,
                 self.pieces, self.pieces, self.pieces, self.taken, self.written]
        return [*moves, *moves, self.reduce, self.reduce, self.product, self.sum_of_two, self.where, self.simple,
                self.running, self.compare]

    def size(self, most: int = 2) -> int:
        return int(self.rng.integers(most + 1))

    def numbers(self) -> Value:
        return self.pick(lambda v: v.dtype.kind != "b")

    def simple(self) -> Value:
        x = self.numbers()
        return lookup("neg")(x) if x.dtype.kind in "iu" or self.rng.random() < 0.5 else lookup("exp")(x)

    def sum_of_two(self) -> Value:
        x = self.numbers()
        same = [v for v in self.pool if v.type is x.type]
        return lookup(str(self.rng.choice(["add", "add", "mul", "sub"])))(
            x, one_of(self.rng, same))

    # -- movements

    def turned(self) -> Value:
        x = self.pick(lambda v: v.ndim > 1)
        return lookup("transpose")(x, perm=tuple(int(p) for p in self.rng.permutation(x.ndim)))

    def repeated(self) -> Value:
        x = self.pick()
        shape: list = list(x.shape)
        places = list(range(x.ndim))
        for _ in range(1 + self.size(1)):
            at = int(self.rng.integers(len(shape) + 1))
            shape.insert(at, self.size(3))
            places = [p + (p >= at) for p in places]
        return lookup("broadcast")(x, axes=tuple(places), shape=tuple(shape))

    def reshaped(self) -> Value:
        x = self.repeated() if self.rng.random() < 0.5 else self.pick()
        size = math.prod(_lengths(x))
        found = [s for rank in range(4) for s in itertools.product((0, 1, 2, 3, size), repeat=rank)
                 if math.prod(s) == size]
        return lookup("reshape")(x, shape=one_of(self.rng, found))

    def part(self) -> Value:
        """Some elements, every second one, none, or all of them backwards."""
        x = self.pick(lambda v: v.ndim > 0)
        start, size, step = [], [], []
        for s in _lengths(x):
            a, b = sorted((self.size(s), self.size(s)))
            d = int(self.rng.choice([1, 1, 1, 2, -1, -2]))
            kept = range(a, b, d) if d > 0 else range(b - 1, a - 1, d)
            start.append(kept.start if kept else min(a, max(s - 1, 0)))
            size.append(len(kept))
            step.append(d)
        return lookup("slice")(x, start=tuple(start), size=tuple(size), step=tuple(step))

    def padded(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0)
        low, high, gaps = ([self.size(1) for _ in x.shape] for _ in range(3))
        interior = gaps if self.rng.random() < 0.3 else [0] * x.ndim
        fill = self.like(TensorType(x.dtype, ())) if self.rng.random() < 0.3 else splat(0, TensorType(x.dtype, ()))
        return lookup("pad")(x, fill, low=tuple(low), high=tuple(high), interior=tuple(interior))

    def put_together(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0)
        axis = int(self.rng.integers(x.ndim))
        fits = [v for v in self.pool if v.dtype is x.dtype and v.ndim == x.ndim
                and all(v.shape[a] == x.shape[a] for a in range(x.ndim) if a != axis)]
        parts = [one_of(self.rng, fits) for _ in range(self.size(2))]
        return lookup("concat")(x, *parts, axis=axis)

    def pieces(self) -> Value:
        """An array cut up along an axis, each piece changed by a number of its own; beside one another again, in some
        order, or each in its place among zeros, added up."""
        x = self.pick(lambda v: v.ndim > 0 and v.dtype.kind != "b")
        axis = int(self.rng.integers(x.ndim))
        n = _lengths(x)[axis]
        cuts = sorted((0, n, *(self.size(n) for _ in range(2 + self.size(1)))))
        added = self.rng.random() < 0.6
        zero, parts = splat(0, TensorType(x.dtype, ())), []
        for k, (a, b) in enumerate(itertools.pairwise(cuts)):
            before, after = [0] * x.ndim, [0] * x.ndim
            before[axis], after[axis] = a, n - b
            part = slice_along(x, axis, a, b - a) * (k + 1)
            parts.append(lookup("pad")(part, zero, low=tuple(before), high=tuple(after), interior=(0,) * x.ndim)
                         if added else part)
        parts = [parts[k] for k in self.rng.permutation(len(parts))]
        return functools.reduce(lookup("add"), parts) if added else lookup("concat")(*parts, axis=axis)

    def places(self, shape: tuple, size: int) -> Value:
        """Indices in bounds of ``size``, if there are any."""
        return splat(self.size(max(size - 1, 0)), TensorType("i64", shape)) if self.rng.random() < 0.5 else (
            self.index(shape, max(size, 1)))

    def taken(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0)
        axis = int(self.rng.integers(x.ndim))
        shape = () if self.rng.random() < 0.4 else (self.size(2),)
        if self.rng.random() < 0.3:
            start = [splat(0, TensorType("i64", ())) for _ in x.shape]
            start[axis] = self.places((), _lengths(x)[axis])
            return lookup("dynamic_slice")(x, *start, size=tuple(self.size(s) for s in _lengths(x)))
        return lookup("gather")(x, self.places(shape, _lengths(x)[axis]), axes=(axis,))

    def written(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0 and v.dtype.kind != "b")
        into = x if self.rng.random() < 0.6 else splat(0, x.type)
        rows = self.size(2)
        t = TensorType(x.dtype, (rows, *x.shape[1:]))
        mode = str(self.rng.choice(["set", "add", "mul"]))
        return lookup("scatter")(into, self.like(t), self.places((rows,), _lengths(x)[0]), axes=(0,), mode=mode)


@functools.cache
def moving_rules() -> tuple[str, ...]:
    """The rules that are about movements, or whose examples hold one."""
    return tuple(name for name in aimed_rules() if any(
        "movement" in x.op.traits for v in examples_of(lookup_rule(name)) for x in postorder([v])))


def _resized(rng: np.random.Generator, v: Value) -> Value:
    """A left side where lengths are others."""
    for old in lengths(v):
        found = resized(v, old, int(rng.choice((0, 0, 1, 1, old))))
        v = v if found is None else found
    return v


@generator("moved")
def moved(seed: int, aim: str = "") -> Program:
    """Movements of arrays whose sizes are 0, 1, 2 and 3; of a left side of a rule with such sizes, if it is aimed at
    one."""
    rng = np.random.default_rng(seed)
    families = (("f64",), ("f64", "i64", "bool"), ("f32", "f64"), ("i64", "u8"))
    mover = Mover(rng, one_of(rng, families))
    left = []
    if aim:
        known = examples_of(lookup_rule(aim))
        left = [_resized(rng, one_of(rng, known))]
        mover.leaves, mover.pool = free_inputs(left), [*left, *left]
    mover.grow(int(rng.integers(0 if aim else 2, 6 if aim else 9)))
    made = [v for v in mover.pool if v.operands]
    f = closed(mover.leaves, [*left, *made[-4:]] or mover.pool[:1])
    data = tuple(a for style in STYLES[1:] for a in data_for(f, rng, (style,), 1))  # sizes that are names fit slices
    return Program(f"moved:{seed}" + (f":{aim}" if aim else ""), f, data,
                   edges=data_for(f, rng, ("edges",), 1))
