"""The text of a search by halves: `bisect`.

It begins at the last place found, where the next element of sorted ones is at most a few places on. That is one test
that is guessed right for sorted elements as for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from symc.codegen.cpu.stores import PUTS
from symc.codegen.cpu.text import loaded
from symc.codegen.cpu.writer import Target, Writer
from symc.ir.ops.kernel import bisect
from symc.ir.traverse import postorder
from symc.ir.value import Value

#: So many places on from the last one the next element is looked for first.
NEAR = 8
#: Of so many elements at most all are searched: halving them takes no longer.
MANY = 64
#: So many elements are searched for side by side.
ABREAST = 8


def searches(loop: Value) -> bool:
    """True if the elements of a `generate` are searched for, and are scalars all the way: several are side by side."""
    inside = postorder(loop.regions[0].results)
    return any(v.op is bisect for v in inside) and not any(v.regions or v.op.name == "get" for v in inside)


def emit_searches(out: Writer, v: Value, env: dict[Value, str], targets: list[tuple[int, Target]], depth: int) -> None:
    """Write a generate whose elements are searched for several at a time, and what is left one by one."""
    shape, region = v.attrs["shape"], v.regions[0]
    outer: list[str] = []
    for k in range(len(shape) - 1):
        outer.append(out.fresh("i"))
        out.line(depth, f"for {outer[-1]} in range({out.extent(shape, k, depth)}):")
        depth += 1
    start, _, stop = out.extent(shape, len(shape) - 1, depth).rpartition(", ")
    start, rest, first = start or "0", out.fresh("m"), out.fresh("i")
    out.line(depth, f"{rest} = {start} + (({stop} - {start}) & -{ABREAST})")
    for limits_, count in ((f"{start}, {rest}, {ABREAST}", ABREAST), (f"{rest}, {stop}", 1)):
        out.line(depth, f"for {first} in range({limits_}):")
        index = [first, *[out.fresh("i") for _ in range(1, count)]]
        for k in range(1, count):
            out.line(depth + 1, f"{index[k]} = {first} + {k}")
        envs = [out.enter(v, (*outer, i), env) for i in index]
        for x in postorder(region.results):
            if x.op is bisect:
                emit_bisect(out, x, envs, depth + 1)
            elif x.op.name != "constant" and x.op not in PUTS:
                for scope in envs:
                    if x not in scope:
                        out.emit_scalar(x, scope, depth + 1)
        for i, scope in zip(index, envs, strict=True):
            own: list[Target | None] = [None] * len(region.results)
            for k, (number_, before, around) in targets:
                own[k] = (number_, (*before, *outer, i), (*around, *shape))
            out.emit_results(region, scope, own, depth + 1)
        first = out.fresh("i")


def emit_bisect(out: Writer, v: Value, envs: Sequence[dict[Value, str]], depth: int) -> None:
    """Write the loop of the searches for as many elements as there are ``envs``, and put into each what is found."""
    places = _Search(out, v, envs, depth).write(depth)
    for env, found in zip(envs, places, strict=True):
        env[v] = found


class _Search:
    """Searches for several elements side by side.

    Every step chooses a number, so that no branch is guessed wrong. All searches take the same steps, each of which
    waits for the one before, not for those of other elements. The first test stays a branch, as it reads memory where
    it holds: were it a choice too, each search would wait for the one before. A nan is after all numbers, and searched
    for apart."""

    def __init__(self, out: Writer, v: Value, envs: Sequence[dict[Value, str]], depth: int):
        array, x, *row = v.operands
        self.out, self.dtype, self.name = out, array.dtype, envs[0][array]
        self.right, self.in_rows = v.attrs["side"] == "right", bool(row)
        self.n = out.size(array.shape[-1])
        self.left, self.half, self.last = (out.fresh(letter) for letter in "whp")
        out.running[self.last] = "0"
        self.keys, self.places = [out.expression(x, env) for env in envs], [out.fresh("c") for _ in envs]
        self.lines = [out.fresh("b") for _ in (envs if row else envs[:1])] * (1 if row else len(envs))
        for env, line in zip(envs, dict.fromkeys(self.lines)):
            out.line(depth, f"{line} = {out.offset([*[out.expression(i, env) for i in row], '0'], array.shape)}")

    def write(self, depth: int) -> list[str]:
        """Write the search; names of what is found."""
        out, last = self.out, self.last
        for found in self.places:
            out.line(depth, f"{found} = 0")
        out.line(depth, f"{self.left} = {self.n}")
        out.line(depth, f"if {last} > 0 and {last} + {NEAR} < {self.n} and {self.n} > {MANY}:")
        self.near(depth + 1)
        self.halve(depth, {k: self.before(key) for k, key in enumerate(self.keys)})
        if self.dtype.kind == "f":
            self.nans(depth)
        out.line(depth, f"{last} = {self.places[-1]}")
        return self.places

    def at(self, k: int, place: str) -> str:
        """The element at a place of the line that search k looks in."""
        return loaded(f"{self.name}[{self.lines[k]} + {place}]", self.dtype)

    def element(self, depth: int, k: int, place: str) -> str:
        """The same, in a variable."""
        e = self.out.fresh("t")
        self.out.line(depth, f"{e} = {self.at(k, place)}")
        return e

    def before(self, key: str) -> str:
        """The test, with a hole for an element, that it comes before a key."""
        return f"{{}} {'<=' if self.right else '<'} {key}"

    def near(self, depth: int) -> None:
        """Go on from the last place, where all that is searched for is a few places on."""
        out, last = self.out, self.last
        for k, key in enumerate(self.keys):
            if not k or self.in_rows:
                low, high = self.element(depth, k, f"{last} - 1"), self.element(depth, k, f"{last} + {NEAR - 1}")
            out.line(depth, f"if {_lies_between(key, low, high, self.dtype, self.right)}:")
            depth += 1
        for k, (key, found) in enumerate(zip(self.keys, self.places, strict=True)):
            out.line(depth, f"{found} = {last}")
            out.line(depth, f"while {self.before(key).format(self.at(k, found))}:")
            out.line(depth + 1, f"{found} = {found} + 1")
        out.line(depth, f"{self.left} = 0")

    def halve(self, depth: int, tests: Mapping[int, str]) -> None:
        """Halve the ``left`` elements until one is left, by the test of each search."""
        out, left, half = self.out, self.left, self.half
        out.line(depth, f"while {left} > 1:")
        out.line(depth + 1, f"{half} = {left} >> 1")
        self.step(depth + 1, half, f"{{}} + {half} - 1", tests)
        out.line(depth + 1, f"{left} = {left} - {half}")
        out.line(depth, f"if {left} > 0:")
        self.step(depth + 1, "1", "{}", tests)

    def step(self, depth: int, count: str, place: str, tests: Mapping[int, str]) -> None:
        """Go ``count`` places on where the tests hold."""
        for k, test in tests.items():
            found = self.places[k]
            holds = test.format(self.element(depth, k, place.format(found)))
            self.out.line(depth, f"{found} = ({found} + {count} if {holds} else {found})")

    def nans(self, depth: int) -> None:
        """Place of nans: after all, or the first nan, which is one place for all that look in one line."""
        out, own = self.out, list(self.places)
        out.line(depth, f"if {' or '.join(f'{key} != {key}' for key in self.keys)}:")
        for k, (key, found) in enumerate(zip(self.keys, own, strict=True)):
            if self.right:
                out.line(depth + 1, f"{found} = ({self.n} if {key} != {key} else {found})")
                continue
            if not k or self.in_rows:
                self.places[k] = out.fresh("c")
                out.line(depth + 1, f"{self.places[k]} = 0")
                out.line(depth + 1, f"{self.left} = {self.n}")
                self.halve(depth + 1, {k: "{0} == {0}"})
            place = self.places[k if self.in_rows else 0]
            out.line(depth + 1, f"{found} = ({place} if {key} != {key} else {found})")
        self.places = own


def _lies_between(key: str, low: str, high: str, dtype: np.dtype, right: bool) -> str:
    """A test that holds only if the first of two elements is before the key and the second is not: one comparison, so
    that it is one branch. (The least of two floats is a branch, too, where a processor has no instruction for it.)"""
    if dtype.kind == "f":
        return f"({key} - {low}) * ({high} - {key}) > 0"
    part = (key, low) if right else (high, key)
    return f"u64(wrap_sub({part[0]}, {part[1]})) < u64(wrap_sub({high}, {low}))"
