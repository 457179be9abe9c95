"""The optimizer: rules, passes and pipelines, from Function to Function."""

from symc.ir import ops as _ops  # noqa: F401  # isort: skip  (rules are built with op records)
from symc.opt import canonicalize as _canonicalize  # noqa: F401  # isort: skip
from symc.opt import (
    blas,
    bounds,
    chains,
    decompose,
    fold,
    fuse,
    keep,
    pack,
    products,
    reasons,
    remat,
    rules,
    shared_factors,
)
from symc.opt.explain import why_not
from symc.opt.loops import accumulate, dead, hoist, last, layout, merge, push, sink, small, turn, unroll
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
)
from symc.opt.pipelines import DEFAULT, FAST_COMPILE, UNFUSED
from symc.opt.provenance import Firing, Provenance
from symc.opt.rule import Rule, all_rules, lookup_rule, rewrite, rule, temporary_rules, unregister

register_pass(Pass("inline", "Checkpoints and blocks become what their regions compute.", function=remat.inline))
register_pass(Pass("open_blocks", "Opaque blocks become what their regions compute.", function=remat.open_blocks))
for _pass in (
    Pass("unroll", "Loops of few steps and choices that are made become ordinary values.", loops=unroll.unroll,
         reasons=reasons.of_unroll),
    Pass("turn", "A loop over reversed rows goes the other way.", loops=turn.turn),
    Pass("merge_scans", "Loops over the same steps become one loop, choices by one value one choice.",
         loops=merge.merge_scans, bodies="outer", reasons=reasons.of_merge_scans),
    Pass("last_state", "Of results of which only the last steps are read, only those are kept.", loops=last.last_state),
    Pass("dead_loop", "Loops and branches carry along nothing that is not used.", loops=dead.dead_loop),
    Pass("lay_out", "A matrix that every step multiplies with is transposed once, if it must be.",
         loops=layout.lay_out),
    Pass("pack", "Products that share an operand, and sums of products, become one product.", records=pack.pack,
         reasons=reasons.of_pack),
    Pass("hoist", "What is the same in every step of a loop is computed once.", loops=hoist.hoist,
         reasons=reasons.of_hoist),
    Pass("push_out", "Products of rows are computed for all steps at once, before the loop.", loops=push.push_out,
         reasons=reasons.of_push_out),
    Pass("pull_out", "Products that no carry needs are computed for all steps at once, after the loop.",
         loops=push.pull_out),
    Pass("accumulate", "Sums over steps of products are one product outside of the loop.",
         loops=accumulate.accumulate),
    Pass("sink", "What one branch alone needs is computed in that branch.", loops=sink.sink),
    Pass("chains", "Products of several matrices are multiplied in the order that costs least.", records=chains.chains),
    Pass("check_indices", "Gathers read only where an index was checked.", function=bounds.check_indices),
    Pass("small_loops", "Loops on a few numbers become one kernel each.", function=small.small_loops, bodies="outer",
         reasons=reasons.of_small_loops, makes=("loop",)),
    Pass("share_factors", "What a factorization that is needed anyway gives too is taken from it.",
         records=shared_factors.share_factors),
    Pass("blas", "Sums of products become products that add to what is there.", records=blas.blas,
         reasons=reasons.of_blas, makes=("gemm",)),
    Pass("keep", "What depends on states alone that do not change is kept between calls.", records=keep.keep),
    Pass("fuse", "What kernels can compute together becomes `fused` values.", records=fuse.fuse_all,
         reasons=reasons.of_fuse, makes=("fused",),
         undone_by=("check_indices", "small_loops", "blas", "pack", "chains", "decompose", "simplify", "stabilize")),
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
    "blas",
    "chains",
    "decompose",
    "fold",
    "fuse",
    "graph_pass",
    "keep",
    "lookup_rule",
    "optimize",
    "pack",
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
