"""A nan stays: where an operand is nan everywhere and all of the left side is, some of the right side is.

A rule that takes an operand away, because it cancels, takes its nan away too: a mistake upstream is not seen any more.
What libraries make of matrices that are not finite is not asked.
"""

from __future__ import annotations

import numpy as np

from symc.errors import SymcError
from symc.ir.traverse import postorder
from symc.opt.engine.provenance import expression
from symc.opt.engine.rule import Rule
from symc.testing.rule_examples import evaluate, examples, ordinary, sides
from symc.testing.rule_forms import free_leaves
from symc.tools.promises import kept


def check_nan(r: Rule) -> None:
    """No operand is taken away with all its nans, but by rules that are asked for (``nan-unsafe``)."""
    for v in examples(r) if "nan-unsafe" not in r.tags else ():
        left, right = sides(r, v)
        values = postorder([left])
        assumed = {x.operands[0] for x in values if x.op.name == "assume"}
        if right is left or left.dtype.kind != "f" or any(x.op.facts.rounding == "norm" for x in values):
            continue
        leaves = free_leaves(left)
        for k, x in enumerate(leaves):
            if x.dtype.kind != "f" or x in assumed:
                continue
            arrays = kept([left], leaves, ordinary(r, leaves))
            arrays[k] = np.full_like(arrays[k], np.nan)
            try:
                a, b = (evaluate(side, leaves, arrays) for side in (left, right))
            except (SymcError, ValueError, IndexError, ArithmeticError):
                continue
            assert np.isnan(b).any() or not np.isnan(a).all() or not a.size, (
                f"{r.name} loses nans: {expression(left)} is {a}, but {expression(right)} {b}; {arrays}"
            )
