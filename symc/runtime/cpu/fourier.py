"""Code of Fourier transforms: NumPy's loops on all lines of an array, by several threads where that is worth it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.codegen.cpu.chunks import WORTH
from symc.ir.dim import Size, ceildiv, product
from symc.ir.ops import fourier
from symc.ir.size_extremes import maximum
from symc.ir.types import DTYPE_NAMES, real_dtype
from symc.ir.value import Value
from symc.runtime import routines
from symc.runtime.cpu import numpy_ffts
from symc.runtime.cpu.arithmetic import at_least, both
from symc.runtime.cpu.executor import Label
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native.instructions import Op

#: Picoseconds that a point of a line takes, about, and how many lines are a multiple of those that vectors hold:
#: threads begin where vectors of one thread do, so that bits are the same.
POINT, LINES = 5_000, 16


def lower(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int],
          reference: Callable[[], None]) -> bool:
    """The code of a transform. ``reference``: emits the reference implementation, which raises an error."""
    if v.op not in (fourier.fft, fourier.rfft, fourier.irfft) or not numpy_ffts.known():
        return False
    n = lowering.number(v.attrs["size"] if v.op is fourier.irfft else v.operands[0].shape[v.attrs["axis"]])
    lowering.choose(n, 1, reference, lambda: lowering.if_any(
        lowering.number(v.type.size), lambda: _lines(lowering, v, n, reads, writes, reference)))
    return True


def _lines(lowering: Lowering, v: Value, n: Size, reads: Sequence[int], writes: Sequence[int],
           reference: Callable[[], None]) -> None:
    x, axis, code = v.operands[0], v.attrs["axis"], lowering.code
    rows, inner = (lowering.number(product(s)) for s in (x.shape[:axis], x.shape[axis + 1 :]))
    points, results, end = lowering.number(x.shape[axis]), lowering.number(v.shape[axis]), Label()
    function, data, failed = code.slot(), code.slot(), code.keep(np.zeros(1, np.uint8))
    real = real_dtype(x.dtype)

    def use(name: str) -> None:
        for slot, what in ((function, "function"), (data, "data")):
            code.emit(Op.SET, slot, numpy_ffts.entry(f"{what} {name} {DTYPE_NAMES[real]}"))

    if v.op is fourier.rfft:
        lowering.choose(n % 2, 1, lambda: use("rfft_n_even"), lambda: use("rfft_n_odd"))
    else:
        use("irfft" if v.op is fourier.irfft else "ifft" if v.attrs["inverse"] else "fft")
    lines = rows * inner
    grain = LINES if rows == 1 else inner * ceildiv(LINES, maximum(inner, 1))
    worth = both(at_least(lines, 2 * grain), at_least(lines * n * POINT, 1000 * WORTH))
    numbers = [0, lines, inner, points, results, x.dtype.itemsize, v.dtype.itemsize]
    slots = [reads[0], lowering.literal(1.0, real), writes[0], failed, function, data]
    entry = routines.entry("line_transforms", "transform")
    if worth == 0:
        code.launch(entry, numbers, slots)
    else:
        code.launch_in_chunks(entry, numbers, slots, grain, worth=worth)
    code.emit(Op.JUMP_IF_ZERO, failed, end)
    code.emit(Op.CLEAR, failed, 1)
    reference()
    code.place(end)
