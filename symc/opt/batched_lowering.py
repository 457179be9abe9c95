"""Batched lowering: what a CPU does one after the other, written so that a device can do all of it at once.

Convolutions become one product for all samples. Otherwise they are loops over samples (see ``symc.ir.ops.conv``), whose
windows stay in the cache of a CPU; a device has no use for that, and a launch for every sample takes longer than what
it computes. Memory for the windows of all samples is the price.

Windows that are added where they lie (``add_windows``, of convolutions and pooling backwards) become sums: what each
element gets is gathered, and no two threads add to one place. That is done for windows of a few elements.

The exponential of a matrix (``expm``), a call of SciPy otherwise, becomes products and one solve, as many for every
matrix, so that nothing must be waited for.
"""

from __future__ import annotations

from symc.ir.function import Function
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.edit import Edit


@standard_pass(
    after=("convolutions", "lower_argmax"),
    why="decompose would make loops over samples, and leaves windows that are added",
    bodies="inner", on=("lower_batched",), target="cuda",
)
def lower_batched(provenance: Provenance, f: Function) -> Function:
    """Convolutions of all samples at once, sums of windows, matrix exponentials by products, sorts."""
    return _rewritten(provenance, "lower_batched", f)


@standard_pass(
    after=("decompose",),
    why="all that looks at places by their names is done; it takes what decompose leaves",
    bodies="inner", on=("lower_argmax",), for_kernels=True,
)
def lower_argmax(provenance: Provenance, f: Function) -> Function:
    """Places of extremes along other axes than the last are found where their values are: what is folded down columns
    keeps one number for each. Along rows kernels find them."""
    return _rewritten(provenance, "lower_argmax", f, down=True)


def _rewritten(provenance: Provenance, name: str, f: Function, down: bool = False) -> Function:
    """``f`` with ops in the form that their fact of this name gives. ``down``: only where the last axis stays."""
    if not any(getattr(v.op.facts, name) for v in f.values()):
        return f

    def lowered(_: Value, v: Value) -> Value | None:
        form = getattr(v.op.facts, name)
        if form is None or down and v.operands[0].ndim - 1 in v.attrs["axes"]:
            return None
        return form(v)

    return Edit(f, provenance, name).each(lowered)
