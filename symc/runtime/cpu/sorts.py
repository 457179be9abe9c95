"""Code of sorts that are no kernels: NumPy's functions for a line, called by native code for one line after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.dim import Size, product
from symc.ir.op import Sorting
from symc.ir.ops.sort import order_statistics, top_places
from symc.ir.types import DTYPE_NAMES
from symc.ir.value import Value
from symc.runtime import routines
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu import numpy_sorts
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native.instructions import Op


def lower(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int],
          reference: Callable[[], None]) -> bool:
    """The code of a sort. ``reference``: emits the reference implementation, which raises an error."""
    form = v.op.lowering
    if v.op is top_places:
        lowering.choose(v.operands[0].shape[v.attrs["axis"]], v.attrs["k"], reference,
                        lambda: _top(lowering, v, reads, writes))
        return True
    if not (isinstance(form, Sorting) or v.op is order_statistics) or not numpy_sorts.known():
        return False
    x, axis, code = v.operands[0], v.attrs["axis"], lowering.code
    rows, n, inner = _lines(lowering, x, axis)
    dtype = DTYPE_NAMES[x.dtype]
    keys = "i16" if dtype == "f16" else dtype
    status = code.keep(np.zeros(1, np.int64))

    def memory(itemsize: int, needed: bool = False) -> int:
        return writes[0] if inner == 1 and not needed else lowering.workspace(n * itemsize)

    def function(symbol: Symbol) -> int:
        slot = code.slot()
        code.emit(Op.SET, slot, symbol)
        return slot

    sizes = [lowering.integer(k) for k in (rows, n, inner)]
    if v.op is order_statistics:
        work = lowering.workspace(3 * n * x.dtype.itemsize)
        code.call(routines.entry("line_selection", f"select_{dtype}"), [
            writes[0], *reads, work, status, *sizes, lowering.integer(v.shape[axis]),
            function(numpy_sorts.entry(f"sort {dtype}")), function(routines.entry("line_counts", f"count_{dtype}"))])
    elif form.places:  # type: ignore[union-attr]
        wide = lowering.workspace((n + 1) * 8) if x.dtype.itemsize == 8 else writes[0]
        code.call(routines.entry("line_sorts", f"argsort_{dtype}"), [
            writes[0], reads[0], memory(x.dtype.itemsize, keys != dtype), memory(8), wide, status, *sizes,
            function(numpy_sorts.entry(f"argsort {keys}")), function(numpy_sorts.entry("sort i64")),
            *[function(routines.entry("line_keys", f"{name}_{keys}")) for name in ("pack", "unpack")]])
    else:
        if not isinstance(inner, int) or inner == 1:
            lowering.copy(writes[0], reads[0], lowering.number(x.type.nbytes))  # type: ignore[arg-type]
        code.call(routines.entry("line_sorts", f"sort_{dtype}"), [
            writes[0], reads[0], memory(x.dtype.itemsize), status, *sizes,
            function(numpy_sorts.entry(f"sort {keys}")), function(numpy_sorts.entry(f"long {keys}"))])
    lowering.unless_zero(status, reference)
    return True


def _top(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int]) -> None:
    x, axis, k = v.operands[0], v.attrs["axis"], v.attrs["k"]
    sizes = [*_lines(lowering, x, axis), k]
    work = [lowering.workspace(k * width) for width in (x.dtype.itemsize, 8)]
    entry = routines.entry("line_sorts", f"{'bottom' if v.attrs['least'] else 'top'}_{DTYPE_NAMES[x.dtype]}")
    lowering.code.call(entry, [writes[0], reads[0], *work, *[lowering.integer(n) for n in sizes]])


def _lines(lowering: Lowering, x: Value, axis: int) -> list[Size]:
    """The number of rows, their length, and the number of elements that lie side by side in them."""
    return [lowering.number(product(s)) for s in (x.shape[:axis], x.shape[axis : axis + 1], x.shape[axis + 1 :])]
