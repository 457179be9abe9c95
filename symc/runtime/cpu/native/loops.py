"""Loops in functions of native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def loop(b: Any, start: Any, stop: Any, body: Callable[..., Any], *carried: Any) -> list[Any]:
    """``for k in range(start, stop): carried = body(k, *carried)``, of numbers with a sign. What is carried in the end.
    """
    before, test, inside, done = b.block, *(b.function.append_basic_block() for _ in range(3))
    b.branch(test)
    b.position_at_end(test)
    k, *found = phis = [b.phi(x.type) for x in (start, *carried)]
    b.cbranch(b.icmp_signed("<", k, stop), inside, done)
    b.position_at_end(inside)
    made = body(k, *found)
    following = b.add(k, k.type(1))
    for phi, first, after in zip(phis, (start, *carried), (following, *(made if carried else ())), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(after, b.block)
    b.branch(test)
    b.position_at_end(done)
    return found
