"""Pipelines: which passes of rules there are, which passes run, and in which order.

A pipeline is a string: pass names in order; ``-name`` leaves out a rule, a tag, a family or a pass; ``+name`` lets in a
rule or tag that runs only when asked for: ``"canonicalize,fold,stabilize,-powers,+nan-unsafe,fuse"``.

The order is that of ``SPINE``; a pass in a file of its own states there after which one it comes, and why
(``python -m symc passes`` prints all of it).
"""

from __future__ import annotations

from collections.abc import Collection

from symc.errors import PipelineError, did_you_mean
from symc.ir.record import dataclass
from symc.opt.engine import listed as _listed  # noqa: F401  (passes in files of their own are known)
from symc.opt.engine.pass_registry import Pass, placed, register_pass

#: What every pass of rules applies besides its own: whatever it makes is canonical again.
FORM = ("canonicalize", "shapes", "sinking", "slices", "reads", "concats")

#: What is stabilized before it is differentiated, too.
STABLE = ("assumptions", "exponentials", "logs", "logsumexp", "quotients", "softmax", "error_function", "hyperbolic",
          "inverse_functions", "lengths", "moments", "inverses", "differences", "series")

#: Passes of rules: what they do, and the families that they apply.
for _pass in (
    Pass("canonicalize", "One spelling for one idea; movements merge, cancel, and sink below elementwise ops.", FORM),
    Pass("fold", "Values that depend on no input are computed.", (*FORM, "fold")),
    Pass("stabilize", "Formulas that overflow or cancel become a named op that does not.", (*FORM, *STABLE)),
    Pass("simplify", "Fewer and cheaper ops for the same numbers.",
         (*FORM, "assumptions", "assumed", "algebra", "collect", "powers", "reductions", "select", "linalg",
          "inverses", "structure", "composed", "factors", "indexing", "lookups", "writes", "sparse", "fold")),
    Pass("guard_edges", "Forms not differentiated as they are: roots of sums of powers, quotients by expm1.",
         ("edges",)),
    Pass("check_assumptions", "Assumptions are checked when the program runs.", ("checking",)),
    Pass("forget_assumptions", "Assumptions are believed no more.", ("forget",)),
    Pass("decompose", "Named ops become their parts.", ("decompose",), undone_by=("stabilize",)),
    Pass("hoist_movements", "Movements that met nothing come before the work, as an index.", ("movement_hoisting",)),
    Pass("strip_debug", "Nothing is printed, checked or stopped at.", ("debug",)),
):
    register_pass(_pass)

#: The passes that others come between, in order:
#: * inline is before everything: the first computation of a checkpoint is then the same values as without it.
#: * canonicalize is next, because every other pass compares canonical forms.
#: * fold comes before stabilize, so that `x + (2 - 1)` is seen as `x + 1`.
#: * stabilize comes before simplify, because exp(x) * exp(y) -> exp(x + y) and the like hide what stability rules look
#:   for.
#: * simplify comes before decompose, because it looks for named ops, and after the passes on loops, because products of
#:   all steps meet their neighbours outside.
#: * stabilize and simplify run again together where one made work for the other: simplify merges numbers, stabilize may
#:   then see a 1. Nothing is done when simplify changed nothing: no rule is tried again on a body that is as it left
#:   it.
#: * forget_assumptions comes when every rule that relies on one has had its chance. Simplify runs again, because an
#:   assumption stood between what now meets; it does nothing where there was none.
#: * decompose comes after all, and stabilize must not run after it: it would put the parts together again.
#: * canonicalize runs once more, because the parts that ops decompose into are not canonical; and fuse compares
#:   operands.
#: * hoist_movements comes after canonicalize for the last time, which would undo it: movements sink as long as they may
#:   cancel.
#: * fuse is last: what is fused is not looked into any more.
SPINE = ("inline", "canonicalize", "fold", "stabilize", "simplify", "stabilize.2", "forget_assumptions", "simplify.2",
         "decompose", "canonicalize.2", "hoist_movements", "fuse")

_ORDER = placed(SPINE)

DEFAULT = ",".join(p.name for p in _ORDER if p.target != "cuda")

#: The same meaning with less work: no algebra, one pass over the graph for each thing that must be done.
FAST_COMPILE = (
    "inline,canonicalize,stabilize,forget_assumptions,merge_scans,dead_loop,"
    "open_blocks,decompose,lower_argmax,check_indices,small_loops,blas,fuse"
)

#: Rules for what a device has no kernel for: there the ends of sorted lines are taken from the lines.
_NOT_ON_CUDA = ",-ends_of_sorted"

#: The default on a CUDA device.
ON_CUDA = ",".join(p.name for p in _ORDER if p.target != "cpu") + _NOT_ON_CUDA

#: The same on a CUDA device, which has kernels for the parts of some ops alone.
FAST_ON_CUDA = FAST_COMPILE.replace(",decompose,", ",lower_batched,decompose,") + _NOT_ON_CUDA

#: Passes that an evaluation op by op has no use for.
FOR_KERNELS = tuple(p.name for p in _ORDER if p.for_kernels)

#: Everything but fusion and what is made for it, for those who want to see or test values.
UNFUSED = DEFAULT.partition(",check_indices,")[0]


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
