"""The optimizer: rules, passes and pipelines, from Function to Function.

The module of a pass is imported when it runs, that of a rule when it is first offered a value (``listed``).
"""

from importlib import import_module as _import
from typing import TYPE_CHECKING, Any

from symc.ir import ops as _ops  # noqa: F401  # isort: skip  (rules are built with op records)
from symc.opt.engine import listed as _listed  # isort: skip  (rules are known before modules that declare some are imported)

if not _listed.install():
    _listed.import_all()

from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.passes import (
    Optimized,
    Pass,
    all_passes,
    graph_pass,
    late,
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
    from symc.opt.why.explain import why_not

for _pass in (
    Pass("inline", "Checkpoints and blocks become what their regions compute.", function=late("inline.inline"),
         on=("inline",)),
    Pass("open_blocks", "Opaque blocks become what their regions compute.",
         function=late("inline.open_blocks"), on=("inline",)),
    Pass("unroll", "Loops of few steps and choices that are made become ordinary values.",
         loops=late("loops.unroll.unroll"),
         reasons=late("why.reasons.of_unroll")),
    Pass("turn", "A loop over reversed rows goes the other way.", loops=late("loops.turn.turn")),
    Pass("merge_scans", "Loops over the same steps become one loop, choices by one value one choice.",
         loops=late("loops.merge.merge_scans"), bodies="outer", reasons=late("why.reasons.of_merge_scans")),
    Pass("last_state", "Of results of which only the last steps are read, only those are kept.",
         loops=late("loops.last.last_state")),
    Pass("dead_loop", "Loops and branches carry along nothing that is not used.", loops=late("loops.dead.dead_loop")),
    Pass("lay_out", "A matrix that every step multiplies with is transposed once, if it must be.",
         loops=late("loops.layout.lay_out")),
    Pass("pack", "Products that share an operand, and sums of products, become one product.",
         records=late("matmul.pack.pack"), on=("dot", "control"),
         reasons=late("why.reasons.of_pack")),
    Pass("hoist", "What is the same in every step of a loop is computed once.", loops=late("loops.hoist.hoist"),
         reasons=late("why.reasons.of_hoist")),
    Pass("push_out", "Products of rows are computed for all steps at once, before the loop.",
         loops=late("loops.push.push_out"),
         reasons=late("why.reasons.of_push_out")),
    Pass("pull_out", "Products that no carry needs are computed for all steps at once, after the loop.",
         loops=late("loops.push.pull_out")),
    Pass("accumulate", "Sums over steps of products are one product outside of the loop.",
         loops=late("loops.accumulate.accumulate")),
    Pass("sink", "What one branch alone needs is computed in that branch.", loops=late("loops.sink.sink")),
    Pass("chains", "Products of several matrices are multiplied in the order that costs least.",
         records=late("matmul.chains.chains"), on=("dot",)),
    Pass("at_once", "Convolutions of all samples at once, sums of windows, matrix exponentials by products, sorts.",
         records=late("batched_lowering.at_once"),
         on=("at_once",)),
    Pass("find_places", "Places of extremes are found where their values are, which vectorizes.",
         records=late("batched_lowering.find_places"), on=("find_places",)),
    Pass("check_indices", "Gathers read only where an index was checked.", function=late("facts.bounds.check_indices"),
         on=("indices",)),
    Pass("small_loops", "Loops on a few numbers become one kernel each.",
         function=late("loops.small.small_loops"), on=("scan", "while"), bodies="outer",
         reasons=late("why.reasons.of_small_loops"), makes=("loop",)),
    Pass("share_factors", "What a factorization that is needed anyway gives too is taken from it.",
         records=late("matmul.shared_factors.share_factors"), on=("part_of", "lu_solve")),
    Pass("read_once", "Products of one matrix and vectors that need one reading of it become sums.",
         records=late("matmul.matrix_vector.read_once"), on=("dot",), reasons=late("why.reasons.of_read_once")),
    Pass("blas", "Sums of products become products that add to what is there.", records=late("matmul.blas.blas"),
         on=("dot", "gemm"), reasons=late("why.reasons.of_blas"), makes=("gemm",)),
    Pass("keep", "What depends on states alone that do not change is kept between calls.", records=late("keep.keep"),
         on=("state",)),
    Pass("fuse", "What kernels can compute together becomes `fused` values.", records=late("fusion.fuse.fuse_all"),
         reasons=late("why.reasons.of_fuse"), makes=("fused",),
         undone_by=("check_indices", "small_loops", "read_once", "blas", "pack", "chains", "decompose", "simplify",
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
    "read_once",
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
        return _import("symc.opt.why.explain").why_not
    if name in __all__:
        return _import(f"symc.opt.{name}")
    raise AttributeError(f"module 'symc.opt' has no attribute {name!r}")
