"""Functions of a kernel whose operands are known to be in a range in which fewer instructions do.

The exponential of what is never positive needs no bound above, and one constant where there are two choices: in a
softmax, a logsumexp and the density of a normal distribution it takes three quarters of the time of one of any number.
"""

from __future__ import annotations

from symc.ir.ops.kernel import exp_nonpositive
from symc.ir.ops.math import exp
from symc.ir.traverse import postorder, rebuild, region_params
from symc.ir.value import Region, Value
from symc.opt.facts.analysis import Analysis


def with_known_ranges(region: Region) -> Region:
    """The region of a kernel with these functions."""
    values = postorder(region.results)
    facts = Analysis()
    known = {v for v in values if v.op is exp and v.dtype.kind == "f" and facts(v.operands[0]).nonpositive}
    if not known:
        return region
    done: dict[Value, Value] = {p: p for p in region_params(region)}
    for v in values:
        operands = [done[o] for o in v.operands]
        done[v] = exp_nonpositive(*operands) if v in known else rebuild(v, operands)
    return Region(region.params, [done[r] for r in region.results])
