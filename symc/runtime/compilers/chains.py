"""Bodies of loops that are one long chain: most operations wait for the one before.

A processor looks a few hundred instructions ahead. Where a chain is as long, the next element's is not begun while this
one waits, unless several stand side by side: 12 steps of Newton's method on 1e5 numbers take 0.61 ms so, 1.19 one
vector after the other (AVX2, f64). LLVM does that for small loops alone.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Sequence
from typing import Any

from symc.codegen.language.helpers import Helper, Widths
from symc.codegen.language.syntax import every
from symc.runtime.library import meaning

#: So many operations wait for each other in a long chain.
LONG = 24
#: So many vectors are kept at once at most. They are more than there are registers: to spill costs less than to wait
#: (Newton's method for yields of bonds, 10 numbers kept: 0.83 ms for 5e4, two side by side 0.65, four 0.46).
KEPT = 40
#: A function with more constants than this has polynomials.
FEW = 4


#: So many calls need no vectors side by side if as few wait for each other that they are as many themselves: one vector
#: takes as long (16 sines of f64 0.42 to 0.44 ns each, exponentials 0.42 instead of 0.37), and a third of the time to
#: compile (5.8 ms a sine, not 19).
MANY = 16
#: The registers of AVX2, which four vectors of a short function's numbers must not leave.
REGISTERS = 16


def beside(body: Sequence[ast.stmt], most: int, called: Sequence[str] = ()) -> int:
    """The number of vectors, ``most`` or less, that a loop takes side by side: one that calls these functions, or is a
    long chain. 1: LLVM may decide."""
    if len(called) >= MANY and len(called) >= most * _calls_in_a_row(body, set(called)):
        return 1
    if any(map(has_polynomials, called)):
        return most
    found = _read(body)
    if found is None:
        return most if called else 1
    depth, last = found
    longest, kept = max(depth.values(), default=0), max(1, _kept(body, last))
    if called and most * kept <= REGISTERS:
        return most
    if longest < LONG or len(depth) > 2.5 * longest:
        return 1
    return min(most, 1 << max(0, (KEPT // kept).bit_length() - 1))


def _calls_in_a_row(body: Sequence[ast.stmt], called: Collection[str]) -> int:
    """The number of calls of these functions that wait for each other, at most."""
    depth: dict[str, int] = {}
    for s in body:
        if not isinstance(s, ast.Assign):
            continue
        names = [n for n in every(s.value) if isinstance(n, ast.Name)]
        own = sum(n.id in called for n in names)
        depth[ast.unparse(s.targets[0])] = own + max((depth.get(n.id, 0) for n in names), default=0)
    return max(depth.values(), default=0)


def _read(body: Sequence[ast.stmt]) -> tuple[dict[str, int], dict[str, int]] | None:
    """For each name that is assigned how many operations it waits for, and where it is read last; None of branches and
    loops."""
    depth: dict[str, int] = {}
    last: dict[str, int] = {}
    for k, s in enumerate(body):
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            return None
        used = [n.id for n in every(s.value) if isinstance(n, ast.Name) and n.id in depth]
        last.update(dict.fromkeys(used, k))
        if isinstance(s.targets[0], ast.Name):
            depth[s.targets[0].id] = 1 + max((depth[name] for name in used), default=0)
    return depth, last


def _kept(body: Sequence[ast.stmt], last: dict[str, int]) -> int:
    """The number of names that are read later, where it is greatest."""
    most, alive = 0, set[str]()
    for k, s in enumerate(body):
        alive = {name for name in alive if last[name] > k}
        assert isinstance(s, ast.Assign)
        if isinstance(s.targets[0], ast.Name) and s.targets[0].id in last:
            alive.add(s.targets[0].id)
        most = max(most, len(alive))
    return most


@functools.cache
def has_polynomials(name: str) -> bool:
    """True for a function of the library whose constants are many. Side by side, vectors read them once; those of a
    short one (`hypot`, `rint`) only need more registers."""
    return _constants(meaning(name)) > FEW


def _constants(f: Any) -> int:
    if isinstance(f, Widths):
        return _constants(f.wide)
    if not isinstance(f, Helper) or f.rarely:
        return 0
    nodes = every(f.tree)
    own = sum(isinstance(n, ast.Subscript) or isinstance(n, ast.Constant) and isinstance(n.value, float) for n in nodes)
    return own + sum(_constants(f.scope.get(n.func.id)) for n in nodes
                     if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
