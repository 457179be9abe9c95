"""Kernels whose indices need 64 bits, on arrays of more than 2**31 elements: some blocks of each launch run, among them
the first and the last, and nothing overflows or leaves its array. Operands hold zeros; no memory is filled."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import symc as sc
from symc.codegen.cuda.writer import Kernel
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.ir.size_values import evaluate
from symc.ir.types import concrete_shape
from symc.runtime.cuda.library import signatures, unit
from symc.runtime.emulator import EmulatedDevice
from tests.cuda.emulated import needs_compiler
from tests.cuda.template_cases import fast

pytestmark = needs_compiler

x, y = (sc.input(name, "float32", ("n", "m")) for name in "xy")
h = sc.input("h", "float16", ("n", "m"))
b = sc.input("b", "float32", ("m",))
w, i = sc.input("w", "float32", (5, "m")), sc.input("i", "int64", ("n",))
#: Rows and columns: so many elements, an odd number of rows.
SIZES = {"n": 2**26 + 3, "m": 52}
PROGRAMS = {
    "elements": ([x, y], sc.exp(x) * (y + 2), 2.0),
    "half": ([h], sc.exp(h.astype("float32")) + 1, 2.0),
    "rows beside a row": ([x, b], sc.exp(x + b) + 3, 4.0),
    "larger": ([x, y], sc.where(x > y, x, y + 1), 1.0),
    "softmax": ([x], sc.exp(x) / sc.sum(sc.exp(x), axis=1, keepdims=True), 1 / 52),
    "sums of rows": ([x], sc.sum(sc.exp(x), axis=1), 52.0),
    "transposed": ([x], sc.exp(x).T, 1.0),
    "gathered": ([w, i], sc.exp(sc.take(w, i, axis=0)), 1.0),
}


def _kernel(name: str):
    inputs, out, _ = PROGRAMS[name]
    final = sc.compile(out, inputs, mode="default")._compilation.final
    v = [v for v in final.values() if v.op.name == "fused"][-1]
    return v, fast(Kernel.of((v.regions[0], ()), scalarize(collapse(v.regions[0]))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sample_of_blocks(name):
    v, family = _kernel(name)
    choice = family.choose(lambda s: evaluate(s, SIZES))
    assert "wide" in choice
    source = family.source(choice, "huge")
    device = EmulatedDevice(total_bytes=2**36)
    stream = device.stream()
    kernels = device.load(unit([source]), signatures(source))

    def room(t):
        n = int(np.prod(concrete_shape(t.shape, SIZES), dtype=object)) * t.dtype.itemsize
        return device.alloc(n), n

    operands, results = [room(o.type) for o in v.operands], [room(t) for t in v.regions[0].results]
    for m, n in operands:
        if n < 2**20:
            device.fill(m.address, 0, n, stream)
        device.assume_written(m.address, n)
    with device.sampling(5):
        for entry in source.entries:
            given = {"operand": operands, "result": results}
            numbers = [evaluate(a.size, SIZES) if a.kind == "size" else given[a.kind][a.index][0].address
                       for a in entry.arguments]
            cells = [np.array([number], np.int64) for number in numbers]
            pointers = (ctypes.c_void_p * len(cells))(*[c.ctypes.data for c in cells])
            device.launch(kernels[entry.name], tuple(evaluate(g, SIZES) for g in entry.grid), entry.block,
                          evaluate(entry.shared, SIZES), ctypes.addressof(pointers), stream,
                          [(m.address, n) for m, n in operands], [(m.address, n) for m, n in results])
    (result, n), dtype = results[0], v.regions[0].results[0].dtype
    last = np.empty(3, dtype)
    device.download(last, result.address + n - last.nbytes, stream)
    device.synchronize(stream)
    np.testing.assert_allclose(last[-1], PROGRAMS[name][2], rtol=1e-6)
