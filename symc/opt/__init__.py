"""The optimizer: rules, passes and pipelines, from Function to Function.

The module of a pass is imported when it runs, that of a rule when it is first offered a value (``listed``).
"""

from importlib import import_module as _import
from typing import TYPE_CHECKING, Any

from symc.ir import ops as _ops  # noqa: F401  # isort: skip  (rules are built with op records)
from symc.opt.engine import listed as _listed  # noqa: F401  # isort: skip  (before modules that declare some are imported)
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.passes import (
    Optimized,
    Pass,
    all_passes,
    graph_pass,
    lazy,
    optimize,
    register_pass,
    run_pass,
    stabilize_values,
    unregister_pass,
)
from symc.opt.engine.pipelines import DEFAULT, FAST_COMPILE, UNFUSED
from symc.opt.engine.provenance import Firing, Provenance
from symc.opt.engine.rule import Rule, all_rules, lookup_rule, temporary_rules, unregister

if TYPE_CHECKING:
    from symc.opt.why.why_not import why_not

for _pass in (
    Pass("inline", "Checkpoints and blocks become what their regions compute.", function=lazy("inline.inline"),
         on=("inline",)),
    Pass("open_blocks", "Opaque blocks become what their regions compute.",
         function=lazy("inline.open_blocks"), on=("inline",)),
    Pass("unroll", "Loops of few steps and choices that are made become ordinary values.",
         loops=lazy("loops.unroll.unroll"),
         reasons=lazy("why.reasons.of_unroll")),
    Pass("reverse_loops", "A loop over reversed rows goes the other way.",
         loops=lazy("loops.loop_reversal.reverse_loops")),
    Pass("merge_scans", "Loops over the same steps become one loop, choices by one value one choice.",
         loops=lazy("loops.merge.merge_scans"), bodies="outer", reasons=lazy("why.reasons.of_merge_scans")),
    Pass("last_state", "Of results of which only the last steps are read, only those are kept.",
         loops=lazy("loops.last.last_state")),
    Pass("dead_loop", "Loops and branches carry along nothing that is not used.", loops=lazy("loops.dead.dead_loop")),
    Pass("pretranspose", "A matrix that every step multiplies with is transposed once, if it must be.",
         loops=lazy("loops.pretranspose.pretranspose")),
    Pass("pack", "Products that share an operand, and sums of products, become one product.",
         records=lazy("matmul.pack.pack"), on=("dot", "control"),
         reasons=lazy("why.reasons.of_pack")),
    Pass("hoist", "Values that are the same in every step of a loop are computed once.",
         loops=lazy("loops.hoist.hoist"), reasons=lazy("why.reasons.of_hoist")),
    Pass("push_out", "Products of rows are computed for all steps at once, before the loop.",
         loops=lazy("loops.push.push_out"),
         reasons=lazy("why.reasons.of_push_out")),
    Pass("pull_out", "Products that no carry needs are computed for all steps at once, after the loop.",
         loops=lazy("loops.push.pull_out")),
    Pass("accumulate", "Sums over steps of products are one product outside of the loop.",
         loops=lazy("loops.accumulate.accumulate")),
    Pass("sink", "Values that one branch alone needs are computed in it.", loops=lazy("loops.sink.sink")),
    Pass("chains", "Products of several matrices are multiplied in the order that costs least.",
         records=lazy("matmul.chains.chains"), on=("dot",)),
    Pass("lower_batched",
         "Convolutions of all samples at once, sums of windows, matrix exponentials by products, sorts.",
         records=lazy("batched_lowering.lower_batched"), on=("lower_batched",)),
    Pass("lower_argmax", "Places of extremes are found where their values are, which vectorizes.",
         records=lazy("batched_lowering.lower_argmax"), on=("lower_argmax",)),
    Pass("lower_argmax_down", "The same for places along other axes than the last.",
         records=lazy("batched_lowering.lower_argmax_down"), on=("lower_argmax",)),
    Pass("check_indices", "Gathers read only where an index was checked.", function=lazy("facts.bounds.check_indices"),
         on=("indices",)),
    Pass("small_loops", "Loops on a few numbers become one kernel each.",
         function=lazy("loops.small.small_loops"), on=("scan", "while"), bodies="outer",
         reasons=lazy("why.reasons.of_small_loops"), makes=("loop",)),
    Pass("share_factors", "Values that a factorization needed anyway gives too are taken from it.",
         records=lazy("matmul.shared_factors.share_factors"), on=("part_of", "lu_solve")),
    Pass("fuse_matvec", "Products of one matrix and vectors that need one reading of it become sums.",
         records=lazy("matmul.matrix_vector.fuse_matvec"), on=("dot",), reasons=lazy("why.reasons.of_fuse_matvec")),
    Pass("blas", "Sums of products become products that add to what is there.", records=lazy("matmul.blas.blas"),
         on=("dot", "gemm"), reasons=lazy("why.reasons.of_blas"), makes=("gemm",)),
    Pass("cache_from_state", "Values of unchanged states alone are cached between calls.",
         records=lazy("cache_from_state.cache_from_state"), on=("state",)),
    Pass("fuse", "Values that kernels can compute together become `fused` ones.", records=lazy("fusion.fuse.fuse_all"),
         reasons=lazy("why.reasons.of_fuse"), makes=("fused",),
         undone_by=("check_indices", "small_loops", "fuse_matvec", "blas", "pack", "chains", "decompose", "simplify",
                    "stabilize")),
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
    "cache_from_state",
    "decompose",
    "fold",
    "graph_pass",
    "lookup_rule",
    "optimize",
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


def __getattr__(name: str) -> Any:
    if name == "why_not":
        return _import("symc.opt.why.why_not").why_not
    if name in __all__:
        return _import(f"symc.opt.{name}")
    raise AttributeError(f"module 'symc.opt' has no attribute {name!r}")
