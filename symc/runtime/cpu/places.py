"""Code of the places where a mask holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.ops.places import places
from symc.ir.value import Value
from symc.runtime import routines
from symc.runtime.cpu.lowering import Lowering


def lower(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int],
          reference: Callable[[], None]) -> bool:
    """``reference``: emits the reference implementation, which raises where the mask is not what was counted."""
    if v.op is not places:
        return False
    code = lowering.code
    status = code.keep(np.zeros(1, np.int64))
    sizes = [lowering.integer(lowering.number(n)) for n in (*v.operands[0].shape, *v.shape)]
    code.call(routines.entry("mask_places", "places"), [writes[0], reads[0], *sizes, status])
    lowering.unless_zero(status, reference)
    return True
