"""Products that several chains contain: multiplied once for all, or taken apart in each.

The gradient of `(A @ B) @ v` reads `A @ B` again, and an outer product twice; with each of its users multiplied in the
best order, neither is needed. A product is taken apart if all that read it are products, few, and cheaper together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.dim import Size
from symc.ir.function import Function
from symc.ir.size_values import number
from symc.ir.traverse import use_counts, users
from symc.ir.value import Value
from symc.opt.by_sizes import WORTH
from symc.opt.matmul.chain_factors import MOST_PRODUCTS, chain_of, is_link
from symc.opt.matmul.chain_orders import SLACK, best_orders, never_much_dearer

#: A product that more values read is not taken apart.
MOST_USES = 4


def openable(f: Function, values: Sequence[Value]) -> Callable[[Value], bool]:
    """Finds where chains may be taken apart: values used once, and products that all chains are cheaper without."""
    readers, used = users(values), use_counts(values, f.body.results)
    opened: set[Value] = set()

    def single(v: Value) -> bool:
        return used.get(v) == 1 or v in opened

    def end(v: Value) -> Value:
        """The last product of the chain that ``v`` is in."""
        for _ in range(MOST_PRODUCTS):
            if used[v] != 1 or len(readers[v]) != 1 or not is_link(readers[v][0]):
                return v
            (v,) = readers[v]
        return v

    results = set(f.body.results)
    for v in reversed(values):
        if is_link(v) and 1 < used[v] <= MOST_USES and v not in results and all(map(is_link, readers[v])):
            ends = list(dict.fromkeys(map(end, readers[v])))
            kept = _cost(v, single) + _total(ends, single)
            opened.add(v)
            apart = _total(ends, single)
            if number(apart) * WORTH > number(kept) or not never_much_dearer(apart, kept, SLACK * len(ends)):
                opened.discard(v)
    return single


def _total(ends: Sequence[Value], single: Callable[[Value], bool]) -> Size:
    total: Size = 0
    for v in ends:
        total = total + _cost(v, single)
    return total


def _cost(v: Value, single: Callable[[Value], bool]) -> Size:
    """The cost of the chain that ends in ``v``, in its best order."""
    return best_orders(chain_of(v, single).factors)[0].cost
