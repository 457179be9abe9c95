"""Checks of a rule's claims, for symc's own rules and for users'.

``check_rule(r)`` raises AssertionError with the smallest case that shows what is wrong. It applies the rule to its
examples, to variants of them (``rule_forms``), and to forms that come near:

* types: both sides have one type, in every dtype that the rule claims;
* meaning: both sides are equal on ordinary numbers, and bit for bit on an adversarial grid if the rule says ``exact``;
* of sums of nothing nothing is made nan (``rule_empty``), and no operand is lost with its nans (``rule_nan``);
* accuracy: judged by mpmath (``exact``), which evaluates the *left* side: a rule must not only be accurate, it must
  compute the same function (``rule_accuracy``);
* gradients of both sides agree;
* the left side is canonical, numbers are recognized wherever they hide, and the rule fires among all others;
* it ends: nothing is simplified any more when it has been simplified once, whichever other rules there are;
* what comes near is left alone, or equal to what becomes of it;
* it fires in the default pipeline, on what users write and on what a gradient is made of (``rule_uses``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.grad.reverse import vjp
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt.engine.pass_registry import all_passes
from symc.opt.engine.passes import selected_rules
from symc.opt.engine.pipelines import STABLE, Selection
from symc.opt.engine.provenance import expression
from symc.opt.engine.rewrite import Rewriter
from symc.opt.engine.rule import OPT_IN, Rule, all_rules
from symc.testing.rule_accuracy import check_accuracy
from symc.testing.rule_empty import check_empty
from symc.testing.rule_examples import (
    APART,
    CANONICAL,
    adversarial,
    canonical,
    evaluate,
    examples,
    near,
    ordinary,
    same_bits,
    seen_by,
    shape_of,
    sides,
)
from symc.testing.rule_forms import (
    AS_IT_IS,
    CANNOT,
    free_leaves,
    hidden_numbers,
    in_claimed_dtypes,
    near_misses,
    unclaimed,
    variants,
)
from symc.testing.rule_nan import check_nan
from symc.testing.rule_uses import check_uses
from symc.tools.promises import along, kept


def check_rule(r: Rule) -> None:
    """Every check that applies to a rule."""
    check_types(r)
    check_canonical(r)
    check_fires(r)
    check_meaning(r)
    check_empty(r)
    check_nan(r)
    check_accuracy(r)
    check_gradients(r)
    check_terminates(r)
    check_misses(r)
    check_uses(r)


# --- types, canonical left sides, firing ------------------------------------------------------------------------------


def check_types(r: Rule) -> None:
    """Both sides have one type: in the examples, their variants, and every dtype that the rule claims."""
    for v in examples(r):
        assert sides(r, v)[1] is not v, f"{r.name} does not fire on its own left side {expression(v)}"
        for what, form in variants(r, v):
            left, right = sides(r, form)
            assert right.type is left.type, f"{r.name} ({what}): {left.type} becomes {right.type}"
    built: dict[str, int] = {}
    for kind, dtype, claimed in in_claimed_dtypes(r):
        if claimed is not None:
            built[kind] = built.get(kind, 0) + 1
            left, right = sides(r, seen_by(r, claimed))
            assert right.type is left.type, f"{r.name} ({dtype}): {left.type} becomes {right.type}"
            assert right is not left, f"{r.name} claims {kind!r} and does not fire on {dtype}: {expression(left)}"
    wanted = r.kinds if r.pattern is not None else ""
    assert all(built.get(kind) for kind in wanted), f"{r.name} claims dtype kinds that its ops do not take: {r.kinds}"


def check_canonical(r: Rule) -> None:
    """A left side is a fixed point of canonicalize that the rule fires on, also where its numbers hide."""
    if r.family in (*CANONICAL, *APART):
        return
    for v in r.examples():
        left = canonical(v)
        assert canonical(left) is left, f"{r.name}: canonicalize does not end on {expression(v)}"
        assert sides(r, left)[1] is not left, (
            f"{r.name} does not fire on the canonical form {expression(left)} of its left side {expression(v)}"
        )
        with_hidden = hidden_numbers(v)
        if with_hidden is not None:
            found = canonical(with_hidden)
            assert sides(r, found)[1] is not found, f"{r.name} misses a number that is broadcast: {expression(found)}"


def check_fires(r: Rule) -> None:
    """The rule fires on its own left side when it alone runs."""
    for v in examples(r):
        rewriter = Rewriter([r], strict=True)
        rewriter.run([v])
        assert rewriter.provenance.count(r.name), f"{r.name} does not fire on {expression(v)}"


# --- termination ------------------------------------------------------------------------------------------------------


def companions(r: Rule) -> dict[str, list[Rule]]:
    """The sets of rules that a rule runs with: those of every pass it is in, and (but for those that undo others) all
    rules there are."""
    out = {}
    for p in all_passes():
        if r.family in p.families or (r.family == "user" and "algebra" in p.families):
            out[p.name] = [q for q in selected_rules(p.families, Selection(())) if q is not r]
    if r.family not in APART:
        out["all rules"] = [q for q in all_rules() if OPT_IN not in q.tags and q.family not in APART and q is not r]
    return out


def check_terminates(r: Rule) -> None:
    """With the rules that run beside it, and alone, the rule reaches an end and is not undone."""
    for where, beside in {"the rule alone": [], **companions(r)}.items():
        for v in examples(r):
            rewriter = Rewriter([*beside, r], strict=True)
            (out,) = rewriter.run([v])
            again = Rewriter([*beside, r], strict=True)
            assert again.run([out])[0] is out, (
                f"{r.name} ({where}): {expression(out)} changes when it is simplified again, by "
                f"{[f.rule for f in again.provenance.firings]}"
            )
            assert rewriter.fired < 200, f"{r.name} ({where}): {rewriter.fired} firings for one left side"


# --- meaning ----------------------------------------------------------------------------------------------------------


def check_meaning(r: Rule) -> None:
    """Both sides give the same on every variant: empty, of length 1, narrower, batched."""
    for v in examples(r):
        for what, form in variants(r, v):
            left, right = sides(r, form)
            if right is not left:
                compare(r, what, left, right)


def compare(r: Rule, what: str, left: Value, right: Value) -> None:
    """Both sides on numbers, most often in the form of the example; AssertionError where they differ more than the
    rule says."""
    leaves = free_leaves(left)
    for seed in range(3 if what == AS_IT_IS else 1):
        arrays = kept([left], leaves, ordinary(r, leaves, seed))
        found = _both(left, right, leaves, arrays)
        if found is None:
            continue
        if "unordered" in r.tags:  # eigenvalues
            found = tuple(np.sort(x, axis=None) for x in found)
        assert near(found[0], found[1], 1.0), _differ(r, what, left, right, found, arrays)
    if not r.exact:
        _check_not_finite(r, what, left, right, leaves)
        return
    for seed in range(24 if what == AS_IT_IS else 4):
        arrays = kept([left], leaves, adversarial(leaves, seed))
        found = _both(left, right, leaves, arrays)
        assert found is None or same_bits(*found), "claims to be exact, but " + _differ(
            r, what, left, right, found, arrays
        )


def _differ(r: Rule, what: str, left: Value, right: Value, found: Any, arrays: Any) -> str:
    return f"{r.name} ({what}): {expression(left)} is {found[0]}, {expression(right)} is {found[1]} at {arrays}"


def _both(left: Value, right: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray]) -> Any:
    """Both results, or None where the left side cannot be computed."""
    try:
        a = evaluate(left, leaves, arrays)
    except (SymcError, ValueError, IndexError, ArithmeticError, AssertionError):
        return None
    return a, evaluate(right, leaves, arrays)


def _check_not_finite(r: Rule, what: str, left: Value, right: Value, leaves: Sequence[Value]) -> None:
    """An equation for each element makes no nan of a number, and no number of a nan that came in."""
    if r.pattern is None or left.dtype.kind != "f" or any(x.dtype.kind != "f" for x in leaves) or what == "f16":
        return
    names = r.variables
    for seed in range(8 if what == AS_IT_IS else 2):
        arrays = adversarial(leaves, seed)
        for k, a in enumerate(arrays):
            low, high = r.domain.get(names[k], (-np.inf, np.inf)) if k < len(names) else (-np.inf, np.inf)
            arrays[k] = np.where((a >= low) & (a <= high) | np.isnan(a), a, a.dtype.type(max(low, -1.0)))
        arrays = kept([left], leaves, arrays)
        found = _both(left, right, leaves, arrays)
        if found is None or found[0].shape != np.broadcast_shapes(*[a.shape for a in arrays]):
            continue
        a, b = found
        several = np.broadcast_arrays(*arrays)
        came = np.any([np.isnan(x) for x in several], axis=0) & ~np.any([np.isinf(x) for x in several], axis=0)
        lost = np.isfinite(a) & np.isnan(b)
        assert not lost.any(), f"{r.name} makes nan of a number: " + _differ(r, what, left, right, found, arrays)
        if "nan-unsafe" not in r.tags:
            made = came & np.isnan(a) & ~np.isnan(b)
            assert not made.any(), f"{r.name} loses a nan that came in: " + _differ(
                r, what, left, right, found, arrays
            )


# --- gradients --------------------------------------------------------------------------------------------------------


def check_gradients(r: Rule) -> None:
    """Both sides have the same gradient at ordinary numbers, for every float leaf.

    A rule with the tag ``after-gradients`` is for values alone: it must not run before they are differentiated.
    """
    if "after-gradients" in r.tags:
        assert r.family not in STABLE, f"{r.name} changes gradients and runs before differentiation"
        return
    for v in examples(r):
        left, right = sides(r, v)
        leaves = free_leaves(left)
        wrt = [x for x in leaves if x.dtype.kind == "f"]
        if not isinstance(left.type, TensorType) or left.dtype.kind != "f" or not wrt:
            continue
        try:
            weights = fresh_input(left.type)
            pulled = [vjp([side], wrt, [weights]) for side in (left, right)]
        except CANNOT:
            continue
        leaves = [*leaves, weights]
        for seed in range(3):
            arrays = kept([left], leaves, ordinary(r, leaves, seed))
            for x, a, b in zip(wrt, *pulled, strict=True):
                _compare_gradients(r, (left, right), leaves, arrays, x, a, b)


def _compare_gradients(
    r: Rule, both: tuple[Value, Value], leaves: Sequence[Value], arrays: Sequence[np.ndarray], x: Value, a: Any, b: Any
) -> None:
    try:
        value = evaluate(both[0], leaves[:-1], arrays[:-1])
        ours, theirs = (np.zeros(shape_of(x), x.dtype) if g is None else evaluate(g, leaves, arrays) for g in (a, b))
    except (SymcError, ValueError, IndexError, ArithmeticError, AssertionError):
        return
    ours, theirs = (along(both[0], leaves, x, arrays, g) for g in (ours, theirs))
    if np.isfinite(value).all():
        assert near(ours, theirs, 0.01), (
            f"{r.name}: the gradient of {expression(both[0])} is {ours}, of {expression(both[1])} {theirs} at {arrays}"
        )


# --- what comes near --------------------------------------------------------------------------------------------------


def check_misses(r: Rule) -> None:
    """Checks that what comes near the left side is left alone; where the rule fires on it, the result is still equal.

    Near forms are made of the left side by changing a number, an op, an attribute or an operand; at least one of them,
    or of those that the rule declares, must be left alone.
    """
    alone = 0
    for v in r.misses():
        for form in (v, seen_by(r, v)):
            assert sides(r, form)[1] is form, f"{r.name} fires on {expression(form)}, which it says it does not"
        alone += 1
    for dtype, v in unclaimed(r):
        form = seen_by(r, v)
        assert sides(r, form)[1] is form, f"{r.name} fires on {dtype}, which it does not claim: {expression(form)}"
        alone += 1
    for v in examples(r)[:4]:
        for what, form in near_misses(v):
            left, right = sides(r, seen_by(r, form))
            if right is left:
                alone += 1
            else:
                assert right.type is left.type, f"{r.name} ({what}): {left.type} becomes {right.type}"
                compare(r, what, left, right)
    assert alone, f"{r.name} fires on everything that comes near: declare misses= that it must not fire on"
