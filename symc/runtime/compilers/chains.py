"""Bodies of loops that are one long chain: most operations wait for the one before.

A processor looks a few hundred instructions ahead. Where a chain is as long, the next element's is not begun while this
one waits, unless several stand side by side: 12 steps of Newton's method on 1e5 numbers take 0.61 ms so, 1.19 one vector
after the other (AVX2, f64). LLVM does that for small loops alone.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

#: So many operations wait for each other in a long chain.
LONG = 24
#: So many vectors are kept at once at most. They are more than there are registers: to spill costs less than to wait
#: (Newton's method for yields of bonds, 10 numbers kept: 0.83 ms for 5e4, two side by side 0.65, four 0.46).
KEPT = 40


def beside(body: Sequence[ast.stmt], most: int) -> int:
    """The number of vectors, ``most`` at most, that such a body takes side by side; 1 for others."""
    depth: dict[str, int] = {}
    last: dict[str, int] = {}
    for k, s in enumerate(body):
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            return 1
        used = [n.id for n in ast.walk(s.value) if isinstance(n, ast.Name) and n.id in depth]
        last.update(dict.fromkeys(used, k))
        if isinstance(s.targets[0], ast.Name):
            depth[s.targets[0].id] = 1 + max((depth[name] for name in used), default=0)
    longest = max(depth.values(), default=0)
    if longest < LONG or len(depth) > 2.5 * longest:
        return 1
    fit = KEPT // max(1, _kept(body, last))
    return min(most, 1 << max(0, fit.bit_length() - 1))


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
