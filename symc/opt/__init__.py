"""The optimizer: rules, passes and pipelines, from Function to Function."""

from symc.ir import ops as _ops  # noqa: F401  # isort: skip  (rules are built with op records)
from symc.opt import canonicalize as _canonicalize  # noqa: F401  # isort: skip
from symc.opt import bounds, decompose, fold, fuse, products, remat, rules
from symc.opt.loops import dead, hoist, small
from symc.opt.passes import (
    Optimized,
    Pass,
    all_passes,
    graph_pass,
    optimize,
    register_pass,
    run_pass,
    stabilize_values,
    unregister_pass,
    why_not,
)
from symc.opt.pipelines import DEFAULT, FAST_COMPILE, UNFUSED
from symc.opt.provenance import Firing, Provenance
from symc.opt.rule import Rule, all_rules, lookup_rule, rewrite, rule, temporary_rules, unregister

register_pass(Pass("inline", "Checkpoints become what their regions compute.", function=remat.inline))
for _pass in (
    Pass("dead_loop", "Loops and branches carry along nothing that is not used.", loops=dead.dead_loop),
    Pass("hoist", "What is the same in every step of a loop is computed once.", loops=hoist.hoist),
    Pass("check_indices", "Gathers read only where an index was checked.", function=bounds.check_indices,
         bodies="inner"),
    Pass("small_loops", "Loops on a few numbers become one kernel each.", function=small.small_loops, bodies="outer"),
    Pass("fuse", "What kernels can compute together becomes `fused` values.", function=fuse.fuse, bodies="inner"),
):  # fmt: skip
    register_pass(_pass)

__all__ = [
    "DEFAULT",
    "FAST_COMPILE",
    "UNFUSED",
    "Firing",
    "Optimized",
    "Pass",
    "Provenance",
    "Rule",
    "all_passes",
    "all_rules",
    "decompose",
    "fold",
    "fuse",
    "graph_pass",
    "lookup_rule",
    "optimize",
    "products",
    "register_pass",
    "rewrite",
    "rule",
    "rules",
    "run_pass",
    "stabilize_values",
    "temporary_rules",
    "unregister",
    "unregister_pass",
    "why_not",
]
