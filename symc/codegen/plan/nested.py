"""Loops and branches as steps: a nested plan for each region, and the memory that it runs with.

How the plans are run is said in ``symc.ir.plan.Layout``. Decided here is where each carry of a loop lives:

* what is only handed on (an x, a captured value, a y, a carry of this kind) is read where it lies: the carry is an
  address. So ``return new, new`` writes each row of the y once, and the next step reads it there.
* what is computed is a state of the body: written over the old value where the body's plan can, else into a second
  buffer, and the two change places after each step. A carry that takes the old value of another one takes its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.plan.cells import Nest, source
from symc.codegen.plan.reuse import aligned
from symc.ir.dim import Size
from symc.ir.function import Function, Input
from symc.ir.plan import Layout, Plan
from symc.ir.size_extremes import maximum
from symc.ir.traverse import region_params
from symc.ir.value import Region, Value

Planner = Callable[[Function], Plan]


def nest(v: Value, f: Function, depth: int, plan: Planner) -> Nest:
    """The plans of the regions of ``v``, a value of ``f`` inside ``depth`` loops and branches, and their layout."""
    if v.op.name == "cond":
        return _branches(v, f, depth, plan)
    carries, rows = v.attrs["carry"], v.attrs.get("xs", 0)
    names = _names(depth, h=carries, x=rows, w=len(v.operands) - carries - rows)
    region = v.regions[-1]
    sources = read_where_it_lies(region, carries)
    computed = [k for k in range(carries) if k not in sources]
    ys = region.results[carries:]
    body = plan(_function(f, "body", region, names, [*ys, *[region.results[k] for k in computed]], computed))
    moves, round_trip = _moves(body, computed)
    fixed = {k: _buffer(body, s, names) for k, s in sources.items()}
    moves += [(body.given[k], b) for k, b in fixed.items() if b != body.given[k]]
    second = [n for n in dict.fromkeys(body.results[len(ys):]) if body.buffers[n].kind == "result"]
    in_scratch = [*second, *[body.given[k] for k in computed if body.given[k] in round_trip]]
    homes = ["operand" if k in sources else "scratch" if body.given[k] in round_trip else "result"
             for k in range(carries)]
    bodies = [body]
    if v.op.name == "while":
        test = v.regions[0]
        bodies.insert(0, plan(_function(f, "condition", test, names, test.results, ())))
    return _laid_out(bodies, in_scratch, tuple(homes), tuple(moves), v.op.name == "while")


def carry_pairs(layout: Layout, given: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Results of a loop that may lie over the operands that they start from.

    Result k is written when carry k starts (a copy of that operand) or after the last step; an operand that another
    carry may be read from by then must still be there.
    """
    read = {b for a, b in layout.moves if a != b}
    return tuple((k, k) for k, home in enumerate(layout.homes) if home != "operand" or given[k] not in read)


def _names(depth: int, **counts: int) -> list[str]:
    """``h0, h1, x0``; deeper inside ``h0_2``."""
    suffix = f"_{depth + 1}" if depth else ""
    return [f"{letter}{k}{suffix}" for letter, n in counts.items() for k in range(n)]


def _branches(v: Value, f: Function, depth: int, plan: Planner) -> Nest:
    names = _names(depth, a=len(v.operands) - 1)
    bodies = [plan(_function(f, f"branch{k}", r, names, r.results, ())) for k, r in enumerate(v.regions)]
    return _laid_out(bodies, (), (), (), False)


def _function(f: Function, kind: str, region: Region, names: Sequence[str], results: Sequence[Value],
              states: Sequence[int]) -> Function:
    inputs = tuple(Input(n, p.type, "state" if k in states else "arg")
                   for k, (n, p) in enumerate(zip(names, region_params(region), strict=True)))
    return Function(f"{f.name}.{kind}", inputs, Region(region.params, results), tuple(states),
                    f.inside.get(region, {}), (), f.inside)


def read_where_it_lies(region: Region, carries: int) -> dict[int, int]:
    """Carries whose new value lies in memory that stays as it is: carry -> param (or params + y) that it is."""
    params = region_params(region)
    place = {(p, 0): k for k, p in enumerate(params)}
    ys: dict = {}
    for j, y in enumerate(region.results[carries:]):
        ys.setdefault(source(y), len(params) + j)
    found: dict[int, int] = {}
    for k, result in enumerate(region.results[:carries]):
        s = source(result)
        at = place.get(s)
        if at is None or (at < carries and at != k and s in ys):
            at = ys.get(s)
        if at is not None:
            found[k] = at
    while True:  # the old value of a carry stays only if that carry is of this kind
        gone = [k for k, at in found.items() if at < carries and at not in found]
        if not gone:
            return found
        for k in gone:
            del found[k]


def _buffer(body: Plan, at: int, names: Sequence[str]) -> str:
    return body.given[at] if at < len(names) else body.results[at - len(names)]


def _moves(body: Plan, computed: Sequence[int]) -> tuple[list[tuple[str, str]], set[str]]:
    """Moves of memory after a step, among computed carries and second buffers; and the carries that take part
    in more than an exchange with a second buffer of their own."""
    new = body.results[len(body.results) - len(computed):]
    takes = {body.given[k]: r for k, r in zip(computed, new, strict=True) if body.given[k] != r}
    taker = {b: a for a, b in takes.items()}
    back, alone = [], set()
    for r in taker:
        if r not in takes:  # a second buffer gets the memory that is left over at the end of its chain
            last = taker[r]
            while last in taker:
                last = taker[last]
            back.append((r, last))
            alone |= {last} & {taker[r]}
    return [*takes.items(), *back], set(takes) - alone


def _laid_out(bodies: Sequence[Plan], places: Sequence[str], homes: tuple[str, ...],
              moves: tuple[tuple[str, str], ...], flag: bool) -> Nest:
    """Places, the flag, then the arenas, which take turns."""
    at: Size = 0
    offsets: dict[str, Size] = {}
    for n in places:
        offsets[n] = at
        at = at + aligned(bodies[-1].buffers[n].nbytes)
    where: Size | None = None
    if flag:
        where, at = at, at + aligned(1)
    arena: Size = 0
    for b in bodies:
        arena = maximum(arena, b.arena)
    layout = Layout((at,) * len(bodies), where, offsets, homes, moves)
    return Nest(tuple(bodies), layout, at + arena, carry_pairs(layout, bodies[-1].given))
