"""all_samples: convolutions as one product for all samples.

Otherwise a convolution becomes a loop over samples (see ``symc.ir.ops.conv``), whose windows stay in the cache of a CPU.
A device has no use for that, and a launch for every sample takes longer than what it computes. Memory for the windows
of all samples is the price.
"""

from __future__ import annotations

from functools import partial

from symc.ir.function import Function
from symc.ir.location import NOWHERE
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.opt.loops.edit import Edit
from symc.opt.provenance import Provenance
from symc.opt.regions import in_bodies


def all_samples(provenance: Provenance, f: Function) -> Function:
    """``f`` with such products, in the bodies of its loops and branches too."""
    return in_bodies(partial(_rewritten, provenance), f)


def _rewritten(provenance: Provenance, f: Function) -> Function:
    if not any(map(_is_convolution, f.values())):
        return f
    edit = Edit(f, provenance, "all_samples")
    for v in edit.values:
        if _is_convolution(v):
            new = edit.done[v] = v.op.facts["all_samples"](rebuild(v, [edit.done[o] for o in v.operands]))
            edit.note(new, edit.hints.get(v, NOWHERE))
            edit.record(v, new)
        else:
            edit.step(v)
    return edit.finish()


def _is_convolution(v: Value) -> bool:
    return "all_samples" in v.op.facts
