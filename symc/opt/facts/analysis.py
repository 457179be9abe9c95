"""Analysis of a value's elements without running anything: one `Fact` per value, computed from its operands'.

A fact is a promise about the numbers that are computed, not about the mathematics: exp(x) underflows, so it is
nonnegative, not positive; a range is that of the rounded results. What is said of an element does not hold for nan:
``low`` and ``high`` bound every element that is not nan, and ``nan`` says whether there may be one. -0.0 is a zero like
any other, so it is nonnegative. What a user declares (`sc.assume`) is believed; that promise includes "not nan".

"Not known" is always a right answer, and no elements have every property. How an op's result follows from its operands
is in the modules of ``symc.opt.facts.transfer``, and for integers, as formulas of sizes, on the records of ops.
An op registered elsewhere says it in its record: ``facts=Facts(fact=f)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.ir.late import late
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Region, Value
from symc.opt.facts.fact import UNKNOWN, Fact

#: The tables of all ops are imported with these: of most small graphs nothing is asked.
_facts_of, _params_of = late("symc.opt.facts.derive.facts_of"), late("symc.opt.facts.derive.params_of")


class Analysis:
    """Facts of the values of one function or body. ``given``: what is known of its params.

    Computed when asked for, each value once: the work is linear in what is asked about.
    """

    def __init__(self, given: Mapping[Value, Fact] | None = None):
        self.known: dict[Value, Any] = dict(given or {})
        self.bodies: dict[tuple[Region, tuple[Fact, ...]], tuple[Fact, ...]] = {}  # of loops and branches
        self.depth = 0

    def __call__(self, v: Value) -> Fact:
        found = self.known.get(v)
        if found is None:
            with np.errstate(all="ignore"):  # ends of ranges overflow
                for x in postorder([v], stop=self.known.__contains__):
                    if x not in self.known:
                        self.known[x] = _facts_of(x, self.known, self)
            found = self.known[v]
        return UNKNOWN if isinstance(found, tuple) else found

    def inside(self, given: Mapping[Value, Fact]) -> Analysis:
        """The analysis of a body, given what is known of its params."""
        out = Analysis(given)
        out.bodies, out.depth = self.bodies, self.depth + 1
        return out

    def of_region(self, v: Value, k: int) -> Analysis:
        """The analysis of region ``k`` of ``v``."""
        if not v.regions[k].params:
            return self.inside({})
        return self.inside(dict(zip(region_params(v.regions[k]), _params_of(v, self)[k], strict=True)))
