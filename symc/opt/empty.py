"""Factors that leave a sum that may have no elements: such a sum is 0, whatever each of its terms would have been.

A factor that comes out of the sum meets that 0, and 0 times an infinity or a nan is nan. So does 0 divided by 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.ir.dim import Size, known_nonnegative
from symc.ir.op import splat
from symc.ir.ops.compare import ne
from symc.ir.ops.leaf import size
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.facts.fact import Fact


def factor_of_sum(c: Value, count: Size, facts: Callable[[Value], Fact], divides: bool = False) -> Value:
    """``c`` as a factor of a sum of ``count`` terms that it was a factor of each of: where there are none, a number.

    ``facts``: what is known of values, asked of c if it is not a number. ``divides``: the terms were divided by c.
    """
    number = splat_of(c)
    if number is not None:
        harmless = bool(np.isfinite(number) and (number != 0 or not divides))
    else:
        fact = facts(c)
        harmless = not fact.nan and (fact.nonzero if divides else fact.finite)
    return c if c.dtype.kind not in "fc" or harmless else where_any(c, count, 1 if divides else 0)


def where_any(x: Value, count: Size, otherwise: int) -> Value:
    """``x``; if ``count`` is 0, another number."""
    if known_nonnegative(count - 1):
        return x
    some = ne(size(value=count), 0)
    return where(broadcast(some, axes=(), shape=x.shape) if x.shape else some, x, splat(otherwise, x.type))


def unguarded(x: Value, count: Size) -> Value:
    """The operand of ``where_any``, for one who does not look at it if ``count`` is 0."""
    some = x.operands[0] if x.op is where else x
    if some.op is not ne or some.operands[0] is not size(value=count) or splat_of(some.operands[1]) != 0:
        return x
    return x.operands[1]


def soon_infinite(t: TensorType) -> bool:
    """True if sums of ordinary numbers leave the range of a dtype: float16 ends at 65,504, and what is scaled before it
    is summed (``q / sqrt(d) @ k``) is scaled for that."""
    return t.dtype.kind == "f" and t.dtype.itemsize < 4
