"""Passes and pipelines: which there are, which run, in which order, and why in that order.

A pipeline is a string: pass names in order; ``-name`` leaves out a rule, a tag, a family or a pass; ``+name`` lets in a
rule or tag that runs only when asked for: ``"canonicalize,fold,stabilize,-powers,+nan-unsafe,fuse"``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import Any

from symc.errors import PipelineError, did_you_mean
from symc.ir.function import Function
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.opt.engine.provenance import Provenance


@dataclass(frozen=True)
class Pass:
    """A pass: either ``families`` of rules, which look into loops and branches, or a function.

    ``bodies``: the function is run on the bodies of loops and branches too, "inner" ones first or "outer" ones first.
    ``records``: a function that records what it did; without ``bodies`` it sees to them itself.
    ``reasons``: of the functions before and after, what the pass left alone, and why in words.
    ``on``: it does nothing to a function without one of these (``words_of``).
    ``makes``: the names of the ops that only this pass makes.
    ``undone_by``: passes that must not run after it, because they would undo it or find nothing to look at.
    """

    name: str
    doc: str
    families: tuple[str, ...] = ()
    function: Callable[[Function], Function] | None = None
    bodies: str = ""
    records: Callable[[Provenance, Function], Function] | None = None
    reasons: Callable[[Function, Function], Iterable[tuple[Value | None, str]]] | None = None
    on: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    undone_by: tuple[str, ...] = ()


def lazy(path: str) -> Callable[..., Any]:
    """A function of a module of the optimizer, by name: the module is imported when it is called."""
    module, name = path.rsplit(".", 1)
    return lambda *given: getattr(import_module(f"symc.opt.{module}"), name)(*given)


def _of_loops(path: str, bodies: str = "inner") -> dict[str, Any]:
    """Fields of a pass on loops and branches, those in bodies too, which records what it did."""
    return dict(records=lazy(path), bodies=bodies, on=("control",))


#: What every pass of rules applies besides its own: whatever it makes is canonical again.
FORM = ("canonicalize", "shapes", "sinking", "slices", "reads", "concats")

#: What is stabilized before it is differentiated, too.
STABLE = ("assumptions", "exponentials", "logs", "logsumexp", "quotients", "softmax", "error_function", "hyperbolic",
          "inverse_functions", "lengths", "moments", "inverses", "differences", "series")

#: Those of symc.
PASSES = (
    Pass("canonicalize", "One spelling for one idea; movements merge, cancel, and sink below elementwise ops.", FORM),
    Pass("fold", "Values that depend on no input are computed.", (*FORM, "branches", "fold")),
    Pass("stabilize", "Formulas that overflow or cancel become a named op that does not.", (*FORM, *STABLE)),
    Pass("simplify", "Fewer and cheaper ops for the same numbers.",
         (*FORM, "assumptions", "assumed", "algebra", "collect", "powers", "reductions", "select", "logic", "linalg",
          "inverses", "structure", "composed", "factors", "indexing", "lookups", "writes", "sparse", "branches",
          "fold")),
    Pass("guard_edges", "Forms not differentiated as they are: roots of sums of powers, quotients by expm1.",
         ("edges",)),
    Pass("check_assumptions", "Assumptions are checked when the program runs.", ("checking",)),
    Pass("forget_assumptions", "Assumptions are believed no more.", ("forget",)),
    Pass("decompose", "Named ops become their parts.", ("decompose",), undone_by=("stabilize",)),
    Pass("hoist_movements", "Movements that met nothing come before the work, as an index.", ("movement_hoisting",)),
    Pass("strip_debug", "Nothing is printed, checked or stopped at.", ("debug",)),
    Pass("inline", "Checkpoints and blocks become what their regions compute.", function=lazy("inline.inline"),
         on=("inline",)),
    Pass("open_blocks", "Opaque blocks become what their regions compute.",
         function=lazy("inline.open_blocks"), on=("inline",)),
    Pass("unroll", "Loops of few steps and choices that are made become ordinary values.",
         **_of_loops("loops.unroll.unroll"),
         reasons=lazy("why.reasons.of_unroll")),
    Pass("reverse_loops", "A loop over reversed rows goes the other way.",
         **_of_loops("loops.loop_reversal.reverse_loops")),
    Pass("merge_scans", "Loops over the same steps become one loop, choices by one value one choice.",
         **_of_loops("loops.merge.merge_scans", "outer"), reasons=lazy("why.reasons.of_merge_scans")),
    Pass("last_state", "Of results of which only the last steps are read, only those are kept.",
         **_of_loops("loops.last.last_state")),
    Pass("dead_loop", "Loops and branches carry along nothing that is not used.", **_of_loops("loops.dead.dead_loop")),
    Pass("pretranspose", "A matrix that every step multiplies with is transposed once, if it must be.",
         **_of_loops("loops.pretranspose.pretranspose")),
    Pass("pack", "Products that share an operand, and sums of products, become one product.",
         records=lazy("matmul.pack.pack"), on=("dot", "control"),
         reasons=lazy("why.reasons.of_pack")),
    Pass("hoist", "Values that are the same in every step of a loop are computed once.",
         **_of_loops("loops.hoist.hoist"), reasons=lazy("why.reasons.of_hoist")),
    Pass("push_out", "Products of rows are computed for all steps at once, before the loop.",
         **_of_loops("loops.push.push_out"),
         reasons=lazy("why.reasons.of_push_out")),
    Pass("pull_out", "Products that no carry needs are computed for all steps at once, after the loop.",
         **_of_loops("loops.push.pull_out")),
    Pass("accumulate", "Sums over steps of products are one product outside of the loop.",
         **_of_loops("loops.accumulate.accumulate")),
    Pass("sink", "Values that one branch alone needs are computed in it.", **_of_loops("loops.sink.sink")),
    Pass("chains", "Products of several matrices are multiplied in the order that costs least.",
         records=lazy("matmul.chains.chains"), bodies="inner", on=("dot",)),
    Pass("native_products", "Products of 16-bit factors read them as they are stored.",
         records=lazy("matmul.native.native_products"), bodies="inner", on=("dot",)),
    Pass("convolutions", "Long convolutions become products of spectra, where sizes say that this is cheaper.",
         records=lazy("convolutions.convolutions"), bodies="inner", on=("contraction",)),
    Pass("lower_batched",
         "Convolutions of all samples at once, sums of windows, matrix exponentials by products, sorts.",
         records=lazy("batched_lowering.lower_batched"), bodies="inner", on=("lower_batched",)),
    Pass("lower_argmax", "Places of extremes are found where their values are, which vectorizes.",
         records=lazy("batched_lowering.lower_argmax"), bodies="inner", on=("lower_argmax",)),
    Pass("lower_argmax_down", "The same for places along other axes than the last.",
         records=lazy("batched_lowering.lower_argmax_down"), bodies="inner", on=("lower_argmax",)),
    Pass("check_indices", "Gathers read only where an index was checked.", function=lazy("facts.bounds.check_indices"),
         on=("indices",)),
    Pass("small_loops", "Loops on a few numbers become one kernel each.",
         function=lazy("loops.small.small_loops"), on=("scan", "while"), bodies="outer",
         reasons=lazy("why.reasons.of_small_loops"), makes=("loop",)),
    Pass("share_factors", "Values that a factorization needed anyway gives too are taken from it.",
         records=lazy("matmul.shared_factors.share_factors"), bodies="inner", on=("part_of", "lu_solve")),
    Pass("fuse_matvec", "Products of one matrix and vectors that need one reading of it become sums.",
         records=lazy("matmul.matrix_vector.fuse_matvec"), bodies="inner", on=("dot",),
         reasons=lazy("why.reasons.of_fuse_matvec")),
    Pass("blas", "Sums of products become products that add to what is there.",
         records=lazy("matmul.blas.blas"), bodies="inner", on=("dot", "gemm"),
         reasons=lazy("why.reasons.of_blas"), makes=("gemm",)),
    Pass("cache_from_state", "Values of unchanged states alone are cached between calls.",
         records=lazy("cache_from_state.cache_from_state"), on=("state",)),
    Pass("fuse", "Values that kernels can compute together become `fused` ones.", records=lazy("fusion.fuse.fuse_all"),
         reasons=lazy("why.reasons.of_fuse"), makes=("fused",),
         undone_by=("check_indices", "small_loops", "fuse_matvec", "blas", "pack", "chains", "decompose", "simplify",
                    "stabilize")),
)

#: Why this order:
#: * inline is before everything: the first computation of a checkpoint is then the same values as without it.
#: * canonicalize is next, because every other pass compares canonical forms.
#: * fold comes before stabilize, so that `x + (2 - 1)` is seen as `x + 1`.
#: * stabilize comes before simplify, because exp(x) * exp(y) -> exp(x + y) and the like hide what stability rules look
#:   for.
#: * simplify comes before decompose, because it looks for named ops.
#: * stabilize and simplify run again together where one made work for the other: simplify merges numbers, stabilize may
#:   then see a 1. Nothing is done when simplify changed nothing: no rule is tried again on a body that is as it left
#:   it.
#: * unroll comes after fold, which says which choices are made, and before all that simplifies what it writes out.
#: * reverse_loops comes before merge_scans: only loops that go in one direction are merged.
#: * merge_scans comes after stabilize, because the loop of a gradient was stabilized before it was differentiated: only
#:   then it says the same as the user's loop. It comes before simplify, whose rules look at who else uses a value.
#: * last_state comes after merge_scans: a stack of which a gradient needs all rows is kept once.
#: * dead_loop comes after both, which leave carries that nobody needs, and before hoist, which then moves no dead code.
#: * pack comes before hoist, which takes the weights that it puts side by side out of loops; before push_out, which
#:   moves one product where there were many; and before pretranspose, which lays out what it put together. It runs
#:   again after the passes on loops: products of all steps meet others outside. Simplify comes later: what is read in
#:   parts alone it computes in parts.
#: * pretranspose comes before hoist, which takes the transposed matrix out of the loops around, too; simplify comes
#:   later and would put a transpose back into the product that reads it.
#: * hoist comes before push_out, pull_out and accumulate: what is the same in every step is not stacked.
#: * push_out comes before pull_out, so that a product that needs no carry is made of rows, not of stacked rows.
#: * accumulate comes after pull_out: of what is stacked anyway sums cost nothing.
#: * sink comes after hoist: what is the same in every step is computed once, not in a branch of every step.
#: * simplify comes after the passes on loops, because products of all steps meet their neighbours outside.
#: * forget_assumptions comes when every rule that relies on one has had its chance. Simplify runs again, because an
#:   assumption stood between what now meets; it does nothing where there was none.
#: * chains comes after simplify, which has put transposes into the products, and after hoist: a product of matrices
#:   that are the same in every step is computed once.
#: * open_blocks comes after all that must not look across the border of an opaque block; kernels may.
#: * convolutions comes after the last simplify, which makes one convolution of several values, and before decompose,
#:   which knows one way alone.
#: * decompose comes after all, and stabilize must not run after it: it would put the parts together again.
#: * lower_argmax comes after all that looks at places by their names, and takes what decompose leaves.
#: * canonicalize runs once more, because the parts that ops decompose into are not canonical; and fuse compares
#:   operands.
#: * share_factors comes after decompose, which makes factorizations of what has a name.
#: * hoist_movements comes after canonicalize for the last time, which would undo it: movements sink as long as they may
#:   cancel.
#: * check_indices comes after everything that could prove an index in bounds or drop a gather.
#: * small_loops comes after check_indices, which looks at ordinary ops, and before fuse: what it makes is a kernel.
#: * blas comes after decompose, which makes sums of what has a name and takes small products apart, and after
#:   small_loops, whose kernels multiply themselves; and before fuse: the sums that it leaves belong to kernels.
#: * fuse_matvec comes before blas, which would add to the products that it takes, and after small_loops: loops that are
#:   one kernel read small matrices only.
#: * cache_from_state comes after blas, which says what libraries read; it marks what is not looked into from there on.
#: * fuse is last: what is fused is not looked into any more.
DEFAULT = (
    "inline,canonicalize,fold,unroll,stabilize,"
    "reverse_loops,merge_scans,last_state,dead_loop,pack,pretranspose,hoist,push_out,pull_out,accumulate,sink,"
    "pack,simplify,stabilize,forget_assumptions,simplify,"
    "chains,open_blocks,convolutions,decompose,lower_argmax,canonicalize,share_factors,hoist_movements,check_indices,small_loops,fuse_matvec,blas,"
    "cache_from_state,fuse"
)

#: The same meaning with less work: no algebra, one pass over the graph for each thing that must be done.
FAST_COMPILE = (
    "inline,canonicalize,stabilize,forget_assumptions,merge_scans,dead_loop,"
    "open_blocks,decompose,lower_argmax,check_indices,small_loops,blas,fuse"
)

#: The default on a CUDA device:
#: * lower_batched comes before decompose, which would make loops over samples, and after it, for the windows that it
#:   adds.
#: * lower_argmax is done down columns alone: along rows a device finds places in the fold itself.
#: * native_products comes before blas, which would add to the products that it takes, and after decompose, which takes
#:   small products apart, and hoist_movements, which brings movements to the casts of factors.
#: * fuse_matvec is left out: its kernel reads a matrix once where one core goes through it row by row.
#: * convolutions is left out: what it compares are times of a core.
ON_CUDA = (DEFAULT.replace(",convolutions,decompose,lower_argmax,",
                           ",lower_batched,decompose,lower_batched,lower_argmax_down,")
           .replace(",fuse_matvec,", ",native_products,"))

#: The same on a CUDA device, which has kernels for the parts of some ops alone.
FAST_ON_CUDA = FAST_COMPILE.replace(",decompose,", ",lower_batched,decompose,")

#: Passes whose purpose is kernels and memory: an evaluation op by op has neither.
FOR_KERNELS = ("lower_argmax", "check_indices", "small_loops", "fuse_matvec", "cache_from_state", "fuse")

#: Everything but fusion, for those who want to see or test values.
UNFUSED = DEFAULT.removesuffix(",check_indices,small_loops,fuse_matvec,blas,cache_from_state,fuse")


@dataclass(frozen=True)
class Selection:
    """A parsed pipeline: passes in order, names that are left out, names that are let in."""

    passes: tuple[str, ...]
    without: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()


def parse_pipeline(text: str, passes: Collection[str], names: Collection[str]) -> Selection:
    """Read a pipeline. Raises PipelineError with a suggestion for a name that is no pass, rule, tag or family."""
    order: list[str] = []
    without: set[str] = set()
    also: set[str] = set()
    for item in (part.strip() for part in text.split(",")):
        if not item:
            continue
        if item[0] in "+-":
            name = item[1:].strip()
            if name not in names and name not in passes:
                raise PipelineError(
                    f"no rule, tag or pass is called {name!r}", help=did_you_mean(name, [*names, *passes])
                )
            (without if item[0] == "-" else also).add(name)
        elif item in passes:
            order.append(item)
        else:
            hint = (
                f"a rule or tag is excluded by -{item} and let in by +{item}"
                if item in names
                else did_you_mean(item, passes)
            )
            raise PipelineError(f"no pass is called {item!r}", help=hint)
    return Selection(tuple(p for p in order if p not in without), frozenset(without), frozenset(also))
