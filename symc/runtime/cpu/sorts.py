"""Code of sorts that are no kernels: NumPy's functions for a line, called by native code for one line after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.codegen.cpu.chunks import WORTH
from symc.ir.dim import Size, ceildiv, product
from symc.ir.op import Sorting
from symc.ir.ops.sort import order_statistics, top_places
from symc.ir.size_extremes import maximum
from symc.ir.types import DTYPE_NAMES
from symc.ir.value import Value
from symc.runtime import routines
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu import numpy_sorts
from symc.runtime.cpu.arithmetic import at_least, both
from symc.runtime.cpu.executor import Code
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native.instructions import Op

#: Picoseconds that an element of a row takes, about, and how many are a part for a thread at least.
ELEMENT, GRAIN = 1_000, 4_096


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
    status = lowering.code.keep(np.zeros(1, np.int64))
    if isinstance(form, Sorting):
        _sort(lowering, v, form.places, [writes[0], reads[0], status])
    else:
        _select(lowering, v, reads, writes[0], status)
    lowering.unless_zero(status, reference)
    return True


def _sort(lowering: Lowering, v: Value, places: bool, slots: Sequence[int]) -> None:
    """All lines, by several threads where that is worth it. A result is sorted where it lies, if its lines are rows.
    ``slots``: of the result, the operand, the status."""
    x, code, (write, read, status) = v.operands[0], lowering.code, slots
    rows, n, inner = _lines(lowering, x, v.attrs["axis"])
    dtype, sorter = DTYPE_NAMES[x.dtype], numpy_sorts.entry
    keys = "i16" if dtype == "f16" else dtype

    def memory(itemsize: int, needed: bool = False) -> int:
        return write if inner == 1 and not needed else lowering.workspace(n * itemsize)

    if places:
        scratch = [memory(x.dtype.itemsize, keys != dtype), memory(8)]
        functions = [sorter(f"argsort {keys}"), sorter("sort i64"),
                     *[routines.entry("line_keys", f"{name}_{keys}") for name in ("pack", "unpack")]]
    else:
        scratch, functions = [memory(x.dtype.itemsize)], [sorter(f"sort {keys}"), sorter(f"long {keys}")]
        if x.dtype.kind == "f" and keys == dtype:
            functions.append(routines.entry("line_keys", f"zeros_{keys}"))
        if not isinstance(inner, int) or inner == 1:
            lowering.copy(write, read, lowering.number(x.type.nbytes))  # type: ignore[arg-type]
    entry = routines.entry("line_sorts", f"{'argsort' if places else 'sort'}_{dtype}")
    numbers, used = [0, rows, n, inner], [write, read, *scratch, status, *[_function(code, f) for f in functions]]
    code.emit(Op.CLEAR, status, 8)
    alone = inner != 1 or keys != dtype  # there is memory for one line
    worth = 0 if alone else both(at_least(rows, 2), at_least(rows * n * ELEMENT, 1000 * WORTH))
    if worth == 0:
        code.launch(entry, numbers, used)
    else:
        code.launch_in_chunks(entry, numbers, used, ceildiv(GRAIN, maximum(n, 1)), worth=worth)


def _select(lowering: Lowering, v: Value, reads: Sequence[int], write: int, status: int) -> None:
    """Some elements of all lines."""
    x, axis, code = v.operands[0], v.attrs["axis"], lowering.code
    rows, n, inner = _lines(lowering, x, axis)
    dtype, sizes = DTYPE_NAMES[x.dtype], [lowering.integer(k) for k in (rows, n, inner)]
    code.call(routines.entry("line_selection", f"select_{dtype}"), [
        write, *reads, lowering.workspace(3 * n * x.dtype.itemsize), status, *sizes, lowering.integer(v.shape[axis]),
        _function(code, numpy_sorts.entry(f"sort {dtype}")),
        _function(code, routines.entry("line_counts", f"count_{dtype}"))])


def _function(code: Code, symbol: Symbol) -> int:
    """The slot of a function's address."""
    slot = code.slot()
    code.emit(Op.SET, slot, symbol)
    return slot


def _top(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int]) -> None:
    x, axis, k = v.operands[0], v.attrs["axis"], v.attrs["k"]
    sizes = [*_lines(lowering, x, axis), k]
    work = [lowering.workspace(k * width) for width in (x.dtype.itemsize, 8)]
    entry = routines.entry("line_sorts", f"{'bottom' if v.attrs['least'] else 'top'}_{DTYPE_NAMES[x.dtype]}")
    lowering.code.call(entry, [writes[0], reads[0], *work, *[lowering.integer(n) for n in sizes]])


def _lines(lowering: Lowering, x: Value, axis: int) -> list[Size]:
    """The number of rows, their length, and the number of elements that lie side by side in them."""
    return [lowering.number(product(s)) for s in (x.shape[:axis], x.shape[axis : axis + 1], x.shape[axis + 1 :])]
