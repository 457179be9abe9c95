"""Branches: what can be done in the branches of a choice.

Choices that are known, results that nobody reads, and choices by one value are handled by the passes on loops and
branches (``opt/loops``): a rule sees one ``cond`` at a time.
"""

from __future__ import annotations

from symc.ir.ops.control import cond
from symc.ir.ops.effect import has_effect
from symc.ir.ops.math import exp, log
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, make, param
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves


def _choice(which: Value, *operands: Value) -> Value:
    """exp of the first operand, or log of it."""
    types = [o.type for o in operands]
    x = param(0, types[0])
    return cond(which, *operands, regions=[Region(types, [f(x)]) for f in (exp, log)])


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
