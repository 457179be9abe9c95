"""The order in which graphs are walked: operands before users, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

V = TypeVar("V")  # what has ``operands``


def postorder(roots: Iterable[V], stop: Callable[[V], bool] | None = None) -> list[V]:
    """Every value reachable from ``roots``, operands before users, each once. Regions are not entered.

    ``stop(v)``: list ``v`` but not what it reaches.
    """
    out: list[V] = []
    seen: set[V] = set()
    stack: list[Any] = list(roots)[::-1]  # values to visit; below None, one whose operands are done
    pop, push = stack.pop, stack.append
    while stack:
        item = pop()
        if item is None:
            out.append(pop())
        elif item not in seen:
            seen.add(item)
            operands = item.operands
            if operands and not (stop and stop(item)):
                push(item)
                push(None)
                if len(operands) == 1:
                    push(operands[0])
                else:
                    stack.extend(operands[::-1])
            else:
                out.append(item)
    return out
