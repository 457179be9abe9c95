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
    """Write the loop of the searches for as many elements as there are ``envs``, and put into each what is found.

    Every step chooses a number, so that no branch is guessed wrong. All searches take the same steps, each of which
    waits for the one before, not for those of other elements. The first test stays a branch, as it reads memory where
    it holds: were it a choice too, each search would wait for the one before. A nan is after all numbers, and searched
    for apart."""
    array, x, *row = v.operands
    dtype, name, right = array.dtype, envs[0][array], v.attrs["side"] == "right"
    n, left, half, last = out.size(array.shape[-1]), out.fresh("w"), out.fresh("h"), out.fresh("p")
    out.running[last] = "0"
    keys, places = [out.expression(x, env) for env in envs], [out.fresh("c") for _ in envs]
    lines = [out.fresh("b") for _ in (envs if row else envs[:1])]
    if not row:
        lines *= len(envs)

    def element(depth: int, k: int, at: str) -> str:
        e = out.fresh("t")
        out.line(depth, f"{e} = {loaded(f'{name}[{lines[k]} + {at}]', dtype)}")
        return e

    def before(key: str) -> str:
        return f"{{}} {'<=' if right else '<'} {key}"

    def step(depth: int, count: str, at: str, tests: Mapping[int, str]) -> None:
        for k, test in tests.items():
            found = places[k]
            holds = test.format(element(depth, k, at.format(found)))
            out.line(depth, f"{found} = ({found} + {count} if {holds} else {found})")

    def halve(depth: int, tests: Mapping[int, str]) -> None:
        out.line(depth, f"while {left} > 1:")
        out.line(depth + 1, f"{half} = {left} >> 1")
        step(depth + 1, half, f"{{}} + {half} - 1", tests)
        out.line(depth + 1, f"{left} = {left} - {half}")
        out.line(depth, f"if {left} > 0:")
        step(depth + 1, "1", "{}", tests)

    def nans(depth: int) -> None:
        """Place of nans: after all, or the first nan, which is one place for all that look in one line."""
        out.line(depth, f"if {' or '.join(f'{key} != {key}' for key in keys)}:")
        own = list(places)
        for k, (key, found) in enumerate(zip(keys, own, strict=True)):
            if right:
                out.line(depth + 1, f"{found} = ({n} if {key} != {key} else {found})")
                continue
            if not k or row:
                places[k] = out.fresh("c")
                out.line(depth + 1, f"{places[k]} = 0")
                out.line(depth + 1, f"{left} = {n}")
                halve(depth + 1, {k: "{0} == {0}"})
            out.line(depth + 1, f"{found} = ({places[k if row else 0]} if {key} != {key} else {found})")
        places[:] = own

    for env, line in zip(envs, dict.fromkeys(lines)):
        out.line(depth, f"{line} = {out.offset([*[out.expression(i, env) for i in row], '0'], array.shape)}")
    for found in places:
        out.line(depth, f"{found} = 0")
    out.line(depth, f"{left} = {n}")
    out.line(depth, f"if {last} > 0 and {last} + {NEAR} < {n} and {n} > {MANY}:")
    inner = depth + 1
    for k, key in enumerate(keys):
        if not k or row:
            low, high = element(inner, k, f"{last} - 1"), element(inner, k, f"{last} + {NEAR - 1}")
        out.line(inner, f"if {_lies_between(key, low, high, dtype, right)}:")
        inner += 1
    for k, (key, found) in enumerate(zip(keys, places, strict=True)):
        out.line(inner, f"{found} = {last}")
        out.line(inner, f"while {before(key).format(loaded(f'{name}[{lines[k]} + {found}]', dtype))}:")
        out.line(inner + 1, f"{found} = {found} + 1")
    out.line(inner, f"{left} = 0")
    halve(depth, {k: before(key) for k, key in enumerate(keys)})
    if dtype.kind == "f":
        nans(depth)
    out.line(depth, f"{last} = {places[-1]}")
    for env, found in zip(envs, places, strict=True):
        env[v] = found


def _lies_between(key: str, low: str, high: str, dtype: np.dtype, right: bool) -> str:
    """A test that holds only if the first of two elements is before the key and the second is not: one comparison, so
    that it is one branch. (The least of two floats is a branch, too, where a processor has no instruction for it.)"""
    if dtype.kind == "f":
        return f"({key} - {low}) * ({high} - {key}) > 0"
    part = (key, low) if right else (high, key)
    return f"u64(wrap_sub({part[0]}, {part[1]})) < u64(wrap_sub({high}, {low}))"
