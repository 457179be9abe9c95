"""Branches: what is known of a choice inside of it, and what can be done in its branches.

Choices that are known, results that nobody reads, and choices by one value are handled by the passes on loops and
branches (``opt/loops``): a rule sees one ``cond`` at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.ops.control import BOOL, cond
from symc.ir.ops.effect import has_effect
from symc.ir.ops.leaf import constant, scalar
from symc.ir.ops.logic import not_
from symc.ir.ops.math import exp, log
from symc.ir.text import splat_of
from symc.ir.traverse import postorder, replace
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, make, param
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves

#: How deep two computations of one condition are compared.
DEPTH = 6


def _choice(which: Value, *operands: Value) -> Value:
    """exp of the first operand, or log of it."""
    types = [o.type for o in operands]
    x = param(0, types[0])
    return cond(which, *operands, regions=[Region(types, [f(x)]) for f in (exp, log)])


def _nested(c: Value, x: Value) -> Value:
    """Choice, in both branches, by what chose them."""
    inner = _choice(param(1, BOOL), param(0, x.type))
    return cond(c, x, c, regions=[Region([x.type, BOOL], [exp(inner)]), Region([x.type, BOOL], [inner])])


@rewrite(
    "cond",
    exact=True,
    needs=["not"],
    equation="cond(not c, f, g) -> cond(c, g, f)",
    examples=lambda: [_choice(not_(c), x) for c in leaves(1, {0: "bool"}) for x in leaves(1, {}, (300,))],
    written=lambda sc: (lambda x, c: sc.cond(~c, lambda: sc.exp(x), lambda: sc.log(x)))(
        sc.input("x", "float64", shape=(300,)), sc.input("c", "bool", shape=())
    ),
)
def choice_by_opposite(v: Value) -> Value | None:
    """The branches change places; choices by one condition then meet."""
    which = v.operands[0]
    if which.type is not BOOL or which.op is not not_:
        return None
    return cond(which.operands[0], *v.operands[1:], regions=v.regions[::-1])


@rewrite(
    "cond",
    exact=True,
    equation="cond(c, f(c), g(c)) -> cond(c, f(true), g(false))",
    examples=lambda: [_nested(c, x) for c in leaves(1, {0: "bool"}) for x in leaves(1, {}, (300,))],
    written=lambda sc: (lambda x, c: sc.cond(
        c, lambda: sc.cond(c, lambda: sc.exp(x), lambda: sc.log(x)), lambda: sc.sin(x)
    ))(sc.input("x", "float64", shape=(300,)), sc.input("c", "bool", shape=())),
)  # fmt: skip
def known_in_branch(v: Value) -> Value | None:
    """In a branch it is known what chose it."""
    which, *operands = v.operands
    if which.type is not BOOL:
        return None
    regions = []
    for region, truth in zip(v.regions, (True, False), strict=True):
        known = {
            x: scalar(truth, "bool")
            for x in postorder(region.results)
            if x.type is BOOL and x.op is not constant and _is(x, which, operands)
        }
        regions.append(Region(region.params, replace(region.results, known)) if known else region)
    return cond(which, *operands, regions=regions) if tuple(regions) != v.regions else None


def _is(x: Value, outside: Value, operands: Sequence[Value], depth: int = DEPTH) -> bool:
    """True if a value of a branch is a value outside, where the params of the branch are ``operands``."""
    if x.op.name == "param":
        return operands[x.attrs["index"]] is outside
    if x.op is not outside.op or x.attrs != outside.attrs or x.regions or depth == 0 or has_effect(x):
        return False
    if not x.operands:
        return x is outside
    orders = [outside.operands]
    if "commutative" in x.op.traits:
        orders.append(outside.operands[::-1])
    for order in orders:
        pairs = zip(x.operands, order, strict=False)
        if len(x.operands) == len(order) and all(_is(a, b, operands, depth - 1) for a, b in pairs):
            return True
    return False


@rewrite(
    exact=True,
    trait="elementwise",
    needs=["cond"],
    equation="f(cond(c, g, h)) -> cond(c, f(g), f(h))",
    examples=lambda: [-_choice(c, x) for c in leaves(1, {0: "bool"}) for x in leaves(1, {}, (300,))],
    misses=lambda: [_choice(c, x) * x for c in leaves(1, {0: "bool"}) for x in leaves(1, {}, (300,))],
    written=lambda sc: (lambda x, c: 2 * sc.cond(c, lambda: sc.exp(x), lambda: sc.log(x)))(
        sc.input("x", "float64", shape=(300,)), sc.input("c", "bool", shape=())
    ),
)
def work_on_choice(v: Value, context) -> Value | None:
    """Work on the result of a choice is done by the kernels of its branches."""
    if "elementwise" not in v.op.traits or v.regions or v.op.traits & {"effect", "barrier", "costly"}:
        return None
    made = [o for o in v.operands if splat_of(o) is None]
    if len(made) != 1 or made[0].op is not cond or not isinstance(made[0].type, TensorType):
        return None
    (c,) = made
    if has_effect(c) or not context.single_use(c):
        return None
    regions = [
        Region(r.params, [make(v.op, [r.results[0] if o is c else o for o in v.operands], v.attrs)]) for r in c.regions
    ]
    return cond(*c.operands, regions=regions)
