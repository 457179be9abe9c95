"""The text of a search by halves: `bisect`.

It begins at the last place found, where the next element of sorted ones is at most a few places on. That is one test
that is guessed right for sorted elements as for others.
"""

from __future__ import annotations

from symc.codegen.cpu.text import loaded
from symc.codegen.cpu.writer import Writer
from symc.ir.value import Value

#: So many places on from the last one the next element is looked for first.
NEAR = 8


def emit_bisect(out: Writer, v: Value, env: dict[Value, str], depth: int) -> str:
    """Write the loop; the name of what it finds. Every step chooses a number, so that no branch is guessed wrong, and
    the searches for several elements overlap."""
    array, x, *row = v.operands
    shape, dtype, name = array.shape, array.dtype, env[v.operands[0]]
    key, n = out.expression(x, env), out.size(shape[-1])
    first, found, left, half, last = (out.fresh(letter) for letter in "bcwhp")
    out.running[last] = "0"

    def is_before(depth: int, at: str) -> str:
        e = out.fresh("t")
        out.line(depth, f"{e} = {loaded(f'{name}[{first} + {at}]', dtype)}")
        before = f"{e} < {key}" if v.attrs["side"] == "left" else f"{e} <= {key}"
        if dtype.kind == "f":
            before += f" or ({key} != {key}" + (f" and {e} == {e})" if v.attrs["side"] == "left" else ")")
        return before

    def step(depth: int, count: str, at: str) -> None:
        before = is_before(depth, at)
        out.line(depth, f"{found} = ({found} + {count} if {before} else {found})")

    out.line(depth, f"{first} = {out.offset([*[out.expression(i, env) for i in row], '0'], shape)}")
    out.line(depth, f"{found} = 0")
    out.line(depth, f"{left} = {n}")
    out.line(depth, f"if {last} > 0 and {last} + {NEAR} < {n}:")
    near = out.fresh("t")
    low = is_before(depth + 1, f"{last} - 1")
    out.line(depth + 1, f"{near} = {low}")
    high = is_before(depth + 1, f"{last} + {NEAR - 1}")
    out.line(depth + 1, f"if {near} and not ({high}):")
    out.line(depth + 2, f"{found} = {last}")
    out.line(depth + 2, f"{left} = {NEAR - 1}")
    out.line(depth, f"while {left} > 1:")
    out.line(depth + 1, f"{half} = {left} >> 1")
    step(depth + 1, half, f"{found} + {half} - 1")
    out.line(depth + 1, f"{left} = {left} - {half}")
    out.line(depth, f"if {left} > 0:")
    step(depth + 1, "1", found)
    out.line(depth, f"{last} = {found}")
    return found
