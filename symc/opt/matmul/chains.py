"""chains: products of several matrices are multiplied in the order that takes the fewest multiplications.

`(A @ B) @ v` is `A @ (B @ v)`. A chain is a product whose operands are products that nothing else uses, also through
transposes and scalar factors (``chain_factors``). A product that several chains contain is multiplied once, unless all
of them are cheaper without it (``chain_shared``). Where sizes decide between orders (``chain_orders``), all that can be
the best are kept as branches, of which a call chooses one: nothing is compiled again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.ir.dim import Size, product
from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, Locs
from symc.ir.ops.arithmetic import div, neg
from symc.ir.ops.control import cond
from symc.ir.ops.linalg import dot
from symc.ir.ops.shape import broadcast
from symc.ir.size_values import number
from symc.ir.traverse import postorder, rebuild
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, param
from symc.opt.by_sizes import cheapest
from symc.opt.empty import factor_of_sum
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.facts.analysis import Analysis
from symc.opt.loops.edit import Edit
from symc.opt.matmul.chain_factors import Chain, Factor, Tree, chain_of, combined, is_link, scalar_of
from symc.opt.matmul.chain_orders import Order, best_orders, order_of
from symc.opt.matmul.chain_shared import openable
from symc.opt.matmul.pack_costs import elements

#: An order replaces another if it takes so many times fewer multiplications.
LESS = 1.1


@standard_pass(
    after=("simplify.2",),
    why="simplify has put transposes into the products; a product of matrices that are the same in every step is "
        "computed once",
    bodies="inner", on=("dot",),
)
def chains(provenance: Provenance, f: Function) -> Function:
    """Products of several matrices are multiplied in the order that costs least."""
    values = f.values()
    found = _found(f, values)
    if not found:
        return f
    edit, facts = Edit(f, provenance, "chains"), Analysis()
    for v in values:
        new = _reordered(edit, v, found[v], facts) if v in found else None
        if new is None:
            edit.step(v)
        else:
            edit.done[v] = new
    return edit.finish()


def _found(f: Function, values: Sequence[Value]) -> dict[Value, Chain]:
    """The chains of three factors and more, by their last product."""
    if sum(v.op is dot for v in values) < 2:
        return {}
    may_open = openable(f, values)
    found: dict[Value, Chain] = {}
    inner: set[Value] = set()
    for v in reversed(values):
        if v not in inner and is_link(v):
            chain = chain_of(v, may_open)
            inner.update(chain.products)
            if len(chain.factors) > 2:
                found[v] = chain
    return found


def _reordered(edit: Edit, v: Value, chain: Chain, facts: Analysis) -> Value | None:
    """A chain in its best order, or in one of several; None where it stands in a good one."""
    own, orders = order_of(chain.tree, chain.factors), best_orders(chain.factors)
    if len(orders) == 1 and number(own.cost) < LESS * number(orders[0].cost):
        return None
    old = [v, *chain.products, *chain.scales]
    lines = NOWHERE.union(*[edit.hints.get(x, NOWHERE) for x in old])
    factors = [Factor(edit.done[x.value], x.rows, x.columns) for x in chain.factors]
    scales, terms = chain.scales, product(x.width for x in chain.factors[:-1])
    if scales and elements(v) > min(elements(x.value) for x in factors):
        k = min(range(len(factors)), key=lambda k: elements(factors[k].value))
        scaled = _scaled(edit, factors[k].value, scales, terms, facts, lines)
        factors[k] = Factor(scaled, factors[k].rows, factors[k].columns)
        scales = []
    known = set(edit.done.values()).union(x.value for x in factors)
    out = _multiplied(orders[0].tree, factors) if len(orders) == 1 else _chosen(edit, orders, factors, lines)
    for x in postorder([out], stop=known.__contains__):
        if x not in known and x.operands:
            edit.note(x, lines)
    out = _scaled(edit, out, scales, terms, facts, lines)
    edit.record(v, out, [lines])
    return out


def _scaled(edit: Edit, x: Value, scales: Sequence[Value], terms: Size, facts: Analysis, lines: Locs) -> Value:
    """``x`` with the signs and scalar factors that were inside of a chain. If that has no terms it is 0 with any."""
    for s in scales:
        if s.op is neg:
            x = neg(x)
        else:
            number_ = scalar_of(s.operands[1])
            assert number_ is not None
            scalar = factor_of_sum(_again(edit, number_), terms, facts, divides=s.op is div)
            x = s.op(x, broadcast(scalar, axes=(), shape=x.shape) if x.shape else scalar)
        edit.note(x, lines)
    return x


def _again(edit: Edit, v: Value) -> Value:
    """A value on operands that are done."""
    return edit.done[v] if v in edit.done else rebuild(v, [_again(edit, o) for o in v.operands])


def _multiplied(tree: Tree, factors: Sequence[Factor]) -> Value:
    """The product in one order."""
    made: list[Factor] = []
    stack: list[Tree | None] = [tree]
    while stack:
        t = stack.pop()
        if isinstance(t, int):
            made.append(factors[t])
        elif t is None:
            right, left = made.pop(), made.pop()
            made.append(combined(left, right))
        else:
            stack += [None, t[1], t[0]]
    return made.pop().value


def _chosen(edit: Edit, orders: Sequence[Order], factors: Sequence[Factor], lines: Locs) -> Value:
    """The product in the order that is the cheapest for the sizes of a call."""
    operands = list(dict.fromkeys(x.value for x in factors))
    leaves: Mapping[Value, Value] = {v: param(k, v.type) for k, v in enumerate(operands)}
    inside = [Factor(leaves[x.value], x.rows, x.columns) for x in factors]
    types: list[TensorType] = [v.type for v in operands]
    regions = []
    for o in orders:
        region = Region(types, [_multiplied(o.tree, inside)])
        own: Hints = {x: lines for x in postorder(region.results) if x.operands and lines}
        edit.note_region(region, own)
        regions.append(region)
    return cond(cheapest([o.cost for o in orders]), *operands, regions=regions)
