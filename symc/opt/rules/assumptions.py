"""Rules about assumptions themselves: what is known anyway, what two say, where they stand, and that they go."""

from __future__ import annotations

from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.assume import assume, check_assumption, promised
from symc.ir.ops.shape import broadcast, reshape, transpose
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves
from symc.opt.facts.fact import implies
from symc.opt.facts.transfer.movements import promises

#: What these rules are about arises from `sc.assume` alone.
BY_ASSUME = "sc.assume makes it"


def _matrix() -> Value:
    return leaves(1, {}, (3, 3))[0]


@rewrite(
    "assume",
    exact=True,
    equation="assume(x, what is known of x) -> x",
    examples=lambda: [promised(abs_(promised(_matrix(), "finite")), "nonnegative")],
    arises=BY_ASSUME,
)
def assumption_known(v: Value, context) -> Value | None:
    """It says nothing new, and no rule has to look through it."""
    (x,) = v.operands
    return x if implies(context.facts(x), promises(v).with_props(frozenset(v.attrs["structure"]))) else None


@rewrite(
    "assume",
    exact=True,
    needs=["assume"],
    equation="assume(assume(x, p), q) -> assume(x, p and q)",
    examples=lambda: [promised(promised(_matrix(), "positive"), "finite", "symmetric")],
    arises=BY_ASSUME,
)
def assumed_twice(v: Value) -> Value | None:
    """One assumption says it all."""
    (x,) = v.operands
    if x.op is not assume:
        return None
    a, b = x.attrs, v.attrs
    out = {k: a[k] or b[k] for k in ("nonzero", "finite", "integer")}
    out["structure"] = tuple(sorted({*a["structure"], *b["structure"]}))
    for end, narrower in (("low", max), ("high", min)):
        given = [e for e in (a[end], b[end]) if e is not None]
        out[end] = narrower(given) if given else None
    return assume(x.operands[0], **out)


@rewrite(
    "assume",
    exact=True,
    equation="assume(transpose(x), positive) -> transpose(assume(x, positive)); so for broadcast and reshape",
    examples=lambda: [
        promised(transpose(_matrix(), perm=(1, 0)), "positive"),
        promised(broadcast(leaves(1, {}, (3,))[0], axes=(1,), shape=(2, 3)), "finite"),
        promised(reshape(_matrix(), shape=(9,)), "integer"),
    ],
    arises=BY_ASSUME,
)
def assumption_below_movement(v: Value) -> Value | None:
    """An assumption on elements holds wherever they are; rules then see what is moved."""
    (x,) = v.operands
    if x.op not in (transpose, broadcast, reshape) or v.attrs["structure"]:
        return None
    if x.op is broadcast and any(s == 0 for s in x.shape):
        return None
    return rebuild(x, [assume(x.operands[0], **v.attrs)])


@rewrite(
    "assume",
    exact=True,
    family="forget",
    equation="assume(x) -> x",
    examples=lambda: [promised(_matrix(), "positive", "lower")],
    misses=lambda: [abs_(_matrix())],
    arises=BY_ASSUME,
)
def forget_assumption(v: Value) -> Value:
    """Nothing is left of it in a program that runs."""
    return v.operands[0]


@rewrite(
    "assume",
    exact=True,
    family="checking",
    equation="assume(x) -> check_assumption(x)",
    examples=lambda: [promised(_matrix(), "positive"), promised(_matrix(), "lower")],
    misses=lambda: [abs_(_matrix())],
    arises=BY_ASSUME,
)
def assumption_checked(v: Value) -> Value:
    """In modes that look for mistakes a promise is looked at."""
    return check_assumption(v.operands[0], **v.attrs)
