"""Pipelines: which passes run, in which order, and why in that order.

A pipeline is a string: pass names in order; ``-name`` leaves out a rule, a tag, a family or a pass; ``+name`` lets in a
rule or tag that runs only when asked for: ``"canonicalize,fold,stabilize,-powers,+nan-unsafe,fuse"``.
"""

from __future__ import annotations

from collections.abc import Collection

from symc.errors import PipelineError, did_you_mean
from symc.ir.record import dataclass

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
#: * decompose comes after both, and stabilize must not run after it: it would put the parts together again.
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
    "chains,open_blocks,decompose,lower_argmax,canonicalize,share_factors,hoist_movements,check_indices,small_loops,fuse_matvec,blas,"
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
#: * fuse_matvec is left out: its kernel reads a matrix once where one core goes through it row by row.
ON_CUDA = (DEFAULT.replace(",decompose,lower_argmax,", ",lower_batched,decompose,lower_batched,lower_argmax_down,")
           .replace(",fuse_matvec,", ","))

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
