"""Code of products with sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.ops.sparse import sddmm, spmm, spmm_across
from symc.ir.value import Value
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native import sparse_ir


def lower(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int],
          reference: Callable[[], None]) -> bool:
    """``reference``: emits the reference implementation, which raises for a pattern that is none."""
    if v.op not in (spmm, spmm_across, sddmm) or v.dtype.char not in sparse_ir.LETTERS:
        return False
    indptr, indices, _, x = v.operands
    code = lowering.code
    status = code.keep(np.zeros(1, np.int64))
    columns = v.shape[0] if v.op is spmm_across else x.shape[0]
    sizes = [lowering.integer(lowering.number(n)) for n in (indptr.shape[0] - 1, indices.shape[0], columns, x.shape[1])]
    name = f"{v.op.name}_{v.dtype.char}{8 * indices.dtype.itemsize}"
    code.call(sparse_ir.entry(name), [writes[0], *reads, *sizes, status])
    lowering.unless_zero(status, reference)
    return True
