"""The text of a search by halves: `bisect`.

It begins at the last place found, where the next element of sorted ones is at most a few places on. That is one test
that is guessed right for sorted elements as for others.
"""

from __future__ import annotations

import numpy as np

from symc.codegen.cpu.text import loaded
from symc.codegen.cpu.writer import Writer
from symc.ir.value import Value

#: So many places on from the last one the next element is looked for first.
NEAR = 8
#: Of so many elements at most all are searched: halving them takes no longer.
MANY = 64


def emit_bisect(out: Writer, v: Value, env: dict[Value, str], depth: int) -> str:
    """Write the loop; the name of what it finds. Every step chooses a number, so that no branch is guessed wrong, and
    the searches for several elements overlap. The first test stays a branch, as it reads memory where it holds: were it
    a choice too, each search would wait for the one before. A nan is after all numbers, and searched for apart."""
    array, x, *row = v.operands
    shape, dtype, name = array.shape, array.dtype, env[v.operands[0]]
    key, n, right = out.expression(x, env), out.size(shape[-1]), v.attrs["side"] == "right"
    first, found, left, half, last = (out.fresh(letter) for letter in "bcwhp")
    out.running[last] = "0"

    def element(depth: int, at: str) -> str:
        e = out.fresh("t")
        out.line(depth, f"{e} = {loaded(f'{name}[{first} + {at}]', dtype)}")
        return e

    def step(depth: int, count: str, at: str, test: str) -> None:
        before = test.format(element(depth, at))
        out.line(depth, f"{found} = ({found} + {count} if {before} else {found})")

    def halve(depth: int, test: str) -> None:
        out.line(depth, f"while {left} > 1:")
        out.line(depth + 1, f"{half} = {left} >> 1")
        step(depth + 1, half, f"{found} + {half} - 1", test)
        out.line(depth + 1, f"{left} = {left} - {half}")
        out.line(depth, f"if {left} > 0:")
        step(depth + 1, "1", found, test)

    test = f"{{}} {'<=' if right else '<'} {key}"
    out.line(depth, f"{first} = {out.offset([*[out.expression(i, env) for i in row], '0'], shape)}")
    out.line(depth, f"{found} = 0")
    out.line(depth, f"{left} = {n}")
    out.line(depth, f"if {last} > 0 and {last} + {NEAR} < {n} and {n} > {MANY}:")
    low, high = element(depth + 1, f"{last} - 1"), element(depth + 1, f"{last} + {NEAR - 1}")
    out.line(depth + 1, f"if {_lies_between(key, low, high, dtype, right)}:")
    out.line(depth + 2, f"{found} = {last}")
    out.line(depth + 2, f"while {test.format(loaded(f'{name}[{first} + {found}]', dtype))}:")
    out.line(depth + 3, f"{found} = {found} + 1")
    out.line(depth + 2, f"{left} = 0")
    halve(depth, test)
    if dtype.kind == "f":
        out.line(depth, f"if {key} != {key}:")
        out.line(depth + 1, f"{found} = {n if right else 0}")
        if not right:
            out.line(depth + 1, f"{left} = {n}")
            halve(depth + 1, "{0} == {0}")
    out.line(depth, f"{last} = {found}")
    return found


def _lies_between(key: str, low: str, high: str, dtype: np.dtype, right: bool) -> str:
    """A test that holds only if the first of two elements is before the key and the second is not: one comparison, so
    that it is one branch. (The least of two floats is a branch, too, where a processor has no instruction for it.)"""
    if dtype.kind == "f":
        return f"({key} - {low}) * ({high} - {key}) > 0"
    part = (key, low) if right else (high, key)
    return f"u64(wrap_sub({part[0]}, {part[1]})) < u64(wrap_sub({high}, {low}))"
