"""Delta debugging: a failing function made as small as greedy steps make it.

Every step proposes smaller samples; the first that still fails replaces the last one. Steps: fewer results, results
that are nearer to the inputs, values that become inputs (with the arrays they have), bodies of loops on their own,
values replaced by an operand or a number, numbers for inputs and sizes, smaller sizes, simpler arrays.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from symc.errors import SymcError
from symc.ir.op import splat
from symc.ir.ops.leaf import GIVEN
from symc.ir.record import replace
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.tools.debugging.observe import every_array, first_entries, sizes_of
from symc.tools.debugging.sample import Fails, Sample, body_sample, tensors, tensors_below, walk_down

#: What a step may not do to a sample: what goes wrong while one is made means that it cannot be made.
IMPOSSIBLE = (SymcError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def shrink(s: Sample, fails: Fails, seconds: float = 20.0, most: int = 1500) -> Sample:
    """A sample as small as greedy steps make it for which ``fails`` still holds.

    It stops after ``most`` samples, or after so many seconds.
    """
    search = _Search(fails, time.monotonic() + seconds, most)
    s = search.first(s, _plain(s))
    if not s.function.updates and search.left():
        s = walk_down(s, search.fails)
    while search.left():
        before = s
        for step in (_results, _earlier, _cuts, _bodies, _operands, _numbers, _sizes, _smaller, _arrays):
            s = search.greedy(s, step)
        if s is before:
            break
    return s


class _Search:
    """Counts what was tried."""

    def __init__(self, fails: Fails, end: float, most: int):
        self._fails, self._end, self._most = fails, end, most
        self.tried = 0

    def left(self) -> bool:
        return self.tried < self._most and time.monotonic() < self._end

    def fails(self, s: Sample) -> bool:
        if not self.left():
            return False
        self.tried += 1
        try:
            return self._fails(s)
        except IMPOSSIBLE:
            return False

    def first(self, s: Sample, candidates: Iterator[Sample]) -> Sample:
        """The first candidate that is smaller and fails, else ``s``."""
        with contextlib.suppress(*IMPOSSIBLE):
            for c in candidates:
                if c.size < s.size and self.fails(c):
                    return c
                if not self.left():
                    break
        return s

    def greedy(self, s: Sample, step: object) -> Sample:
        """A step as often as it helps."""
        while self.left():
            smaller = self.first(s, step(s))  # type: ignore[operator]
            if smaller is s:
                break
            s = smaller
        return s


def _possible(make: object, *args: object) -> Iterator[Sample]:
    with contextlib.suppress(*IMPOSSIBLE):
        yield make(*args)  # type: ignore[operator]


def _plain(s: Sample) -> Iterator[Sample]:
    if s.function.updates or s.donated:
        yield from _possible(s.as_plain)
        yield replace(s, donated=frozenset())


def _results(s: Sample) -> Iterator[Sample]:
    results = s.function.body.results
    if len(results) > 1 and not s.function.updates:
        for r in dict.fromkeys(results):
            yield from _possible(s.with_results, [r])
        for k in range(len(results)):
            yield from _possible(s.with_results, [*results[:k], *results[k + 1 :]])


def _earlier(s: Sample) -> Iterator[Sample]:
    """Another value is the result: first the operands of the result, then any, those with the fewest below first."""
    if len(s.function.body.results) != 1:
        return
    near = tensors_below(s.function.body.results[0])
    for v in dict.fromkeys([*near, *tensors(s.function)[:40]]):
        if v.op not in GIVEN:
            yield from _possible(s.with_results, [v])


def _cuts(s: Sample) -> Iterator[Sample]:
    """Values become inputs: everything at some distance from the results, then one by one."""
    if s.function.updates:
        return
    f, arrays = s.function, every_array(s.function, s.arrays)
    inner = [v for v in tensors(f)[::-1] if v not in f.body.results]
    layer: Sequence[Value] = f.body.results
    for _ in range(6):
        layer = list(dict.fromkeys(o for v in layer for o in tensors_below(v) if o in inner))
        if layer:
            yield from _possible(_cut, s, layer, arrays)
    for v in inner:
        yield from _possible(_cut, s, [v], arrays)


def _cut(s: Sample, values: Sequence[Value], arrays: dict[Value, np.ndarray]) -> Sample:
    leaves = {v: fresh_input(v.type) for v in values}
    results = replace_values(s.function.body.results, leaves)
    return s.with_results(results, {leaf: arrays[v] for v, leaf in leaves.items()})


def _bodies(s: Sample) -> Iterator[Sample]:
    """The body of a loop or branch as a function of its own, on what it was first given."""
    f = s.function
    if not any(v.regions for v in f.values()):
        return
    sizes = sizes_of(f, s.arrays)
    for region, given in first_entries(f, s.arrays).items():
        yield from _possible(body_sample, region, given, f.inside.get(region, {}), f.inside, sizes)


def _operands(s: Sample) -> Iterator[Sample]:
    """A value is replaced by one that it is made of, or by a number."""
    f = s.function
    for v in tensors(f)[::-1]:
        for o in dict.fromkeys(o for x in (v, *tensors_below(v)) for o in tensors_below(x)):
            if o.type is v.type and o is not v:
                yield from _possible(_put, s, v, o)
        for number in (0, 1):
            yield from _possible(_put, s, v, splat(number, v.type))


def _put(s: Sample, old: Value, new: Value) -> Sample:
    f = s.function
    results = replace_values(f.body.results, {old: new})
    if f.updates:
        return replace(s, function=f.with_results(results))
    return s.with_results(results)


def _numbers(s: Sample) -> Iterator[Sample]:
    """Inputs become numbers."""
    if s.function.updates:
        return
    for p, a in zip(s.function.params, s.arrays, strict=True):
        number = a.ravel()[0].item() if a.size else 0
        for n in dict.fromkeys([number, 1, 0]):
            yield from _possible(_put, s, p, splat(n, p.type))


def _sizes(s: Sample) -> Iterator[Sample]:
    """Size names become less, or numbers."""
    f = s.function
    sizes = sizes_of(f, s.arrays)
    for name, n in sizes.items():
        for less in dict.fromkeys(k for k in (0, 1, 2, n // 2, n - 1) if 0 <= k < n):
            yield from _possible(_resized, s, {**sizes, name: less})
    if sizes:
        yield from _possible(s.in_numbers, sizes)


def _resized(s: Sample, sizes: dict[str, int]) -> Sample:
    from symc.ir.types import concrete_shape

    shapes = [concrete_shape(i.type.shape, sizes) for i in s.function.inputs]
    arrays = tuple(a[tuple(slice(0, n) for n in shape)] for a, shape in zip(s.arrays, shapes, strict=True))
    if any(a.shape != shape for a, shape in zip(arrays, shapes, strict=True)):
        raise ValueError("sizes do not fit")
    return replace(s, arrays=tuple(np.ascontiguousarray(a).reshape(a.shape) for a in arrays))


def _smaller(s: Sample) -> Iterator[Sample]:
    """A length, wherever it stands in types and attributes, becomes less."""
    f = s.function
    lengths = sorted({n for i in f.inputs for n in i.type.shape if isinstance(n, int) and n > 1}, reverse=True)
    for n in lengths:
        for less in dict.fromkeys((1, 2, n - 1)):
            if 0 < less < n and not f.updates:
                yield from _possible(_relength, s, n, less)


def _relength(s: Sample, n: int, less: int) -> Sample:
    """Rebuilt with every length ``n`` replaced; raises where an op does not accept that."""
    from symc.ir.attrs import Attrs
    from symc.ir.value import make

    def attr(a: object) -> object:
        if isinstance(a, tuple):
            return tuple(attr(x) for x in a)
        return less if type(a) is int and a == n else a

    f = s.function
    extra: dict[Value, np.ndarray] = {}
    done: dict[Value, Value] = {}
    for p, a in zip(f.params, s.arrays, strict=True):
        t = TensorType(p.dtype, [less if k == n else k for k in p.shape])
        done[p] = fresh_input(t)
        extra[done[p]] = np.ascontiguousarray(a[tuple(slice(0, k if k != n else less) for k in a.shape)])
    for v in f.values():
        if v in done:
            continue
        if v.op.name == "constant":
            done[v] = v
            continue
        sized = {k: attr(a) if k in ("shape", "size", "length") else a for k, a in v.attrs.items()}
        done[v] = make(v.op, [done[o] for o in v.operands], Attrs(sized), v.regions)
    return s.with_results([done[r] for r in f.body.results], extra)


def _arrays(s: Sample) -> Iterator[Sample]:
    """Simpler numbers."""
    for k, a in enumerate(s.arrays):
        tries = [np.zeros_like(a), np.ones_like(a)]
        if a.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                tries += [a.round(0), a.round(1), a.round(2)]
        for flat in pairwise(range(a.size + 1) if a.size <= 6 else ()):
            b = a.copy()
            b.ravel()[flat[0]] = 0
            tries.append(b)
        for b in tries:
            if b.dtype == a.dtype and b.tobytes() != a.tobytes():
                yield replace(s, arrays=(*s.arrays[:k], b, *s.arrays[k + 1 :]))
