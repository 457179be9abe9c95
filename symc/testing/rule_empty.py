"""Rules on arrays without elements: what adds up nothing is 0, and stays so beside infinities and nans.

A rule that takes a factor out of a sum makes 0 * inf of it where the sum has no terms. Each length is made 0 in turn,
as a number and as a size that is 0 in a call.
"""

from __future__ import annotations

import numpy as np

from symc.errors import SymcError
from symc.ir.dim import size_name
from symc.opt.engine.provenance import expression
from symc.opt.engine.rule import Rule
from symc.testing.rule_examples import SIZES, adversarial, evaluate, examples, sides
from symc.testing.rule_forms import free_leaves, lengths, resized
from symc.tools.promises import kept

#: How often numbers are drawn.
DRAWS = 2


def check_empty(r: Rule) -> None:
    """Checks that, where both sides have elements, but some of their operands none, no number becomes nan."""
    for v in examples(r):
        for length in lengths(v):
            for size in (0, size_name("n")):
                form = resized(v, length, size)
                if form is None:
                    continue
                (left, right), sizes = sides(r, form), {**SIZES, "n": 0}
                leaves = free_leaves(left)
                for seed in range(DRAWS if right is not left and left.dtype.kind == "f" else 0):
                    arrays = kept([left], leaves, adversarial(leaves, seed, sizes))
                    try:
                        a, b = (evaluate(side, leaves, arrays, sizes) for side in (left, right))
                    except (SymcError, ValueError, IndexError, ArithmeticError):
                        continue  # three elements of none
                    assert a.shape != b.shape or not (np.isfinite(a) & np.isnan(b)).any(), (
                        f"{r.name}, {size} for {length}: {expression(left)} is {a}, {expression(right)} {b}; {arrays}"
                    )
