"""Mistakes that are planted, each of a kind that once got through: the emulated device or a fake must say so.

Kernels run at the sizes around the end of a block, where mistakes of one element are.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import symc as sc
from symc.codegen.cuda import prelude
from symc.codegen.cuda.generic import Generic
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.plan.inplace import region_pairs
from symc.codegen.plan.planner import make_plan
from symc.errors import InternalError
from symc.ir.record import replace
from symc.ir.size_values import evaluate
from symc.runtime.cuda.cupy_device import CupyDevice
from symc.runtime.cuda.device import Signature
from symc.runtime.cuda.devices import context
from symc.runtime.cuda.lower import DevicePlanLowering
from symc.runtime.cuda.program import CudaProgram
from symc.runtime.emulator import EmulatedDevice, EmulationError
from symc.testing import emulated_cuda
from tests.cuda.contract import TEXT
from tests.cuda.emulated import needs_compiler
from tests.cuda.emulated import run as run_text
from tests.cuda.fake_driver import faked, reason
from tests.cuda.generic_cases import case_of
from tests.cuda.template_cases import Case, compare, of, run
from tests.cuda.test_device_lanes import arrays_of

pytestmark = needs_compiler
Change = Callable[[Case, tuple], tuple]

x, i = sc.input("x", "float32", ("n",)), sc.input("i", "int64", ("n",))
rows = sc.input("rows", "float32", ("n", 8))
#: Programs of one size, a template each: results, inputs, and arrays of some size.
PROGRAMS: dict[str, tuple] = {
    "elements": (sc.tanh(x) + 1, [x]),
    "elements, by twos": (x.astype("float64") * 2, [x]),
    "rows": (sc.softmax(rows, axis=1), [rows]),
    "columns": (sc.sum(rows, axis=0), [rows]),
    "transposed": (rows.T * 2, [rows]),
    "sum": (sc.sum(x * x), [x]),
    "running sum": (sc.cumsum(x), [x]),
    "picked": (sc.take(x, i) * 2, [x, i]),
    "scattered": (sc.zeros(50, "float32").at[i].add(x), [i, x]),
}


class Mutated:
    """A family whose launches, or whose text, are changed."""

    def __init__(self, family, blocks=None, text=None, case: Case | None = None):
        self.family, self.blocks, self.text, self.case = family, blocks, text, case

    def source(self, choice: str, name: str):
        found = self.family.source(choice, name)
        if self.text is not None:
            found = replace(found, text=self.text(found.text))
        if self.blocks is not None:
            first = found.entries[0]
            n = self.case.arrays[0].shape[0]
            grid = (self.blocks(self.case.number(first.grid[0]), n), *first.grid[1:])
            found = replace(found, entries=(replace(first, grid=grid), *found.entries[1:]))
        return found


def made(name: str, n: int) -> list[Case]:
    result, inputs = PROGRAMS[name]
    rng = np.random.default_rng(n)
    arrays = [rng.integers(0, min(n, 50), n) if a.dtype.kind == "i" else
              rng.normal(size=(n, *a.shape[1:])).astype(str(a.dtype)) for a in inputs]
    return of(result, inputs, *arrays)


def ends(name: str) -> list[int]:
    """The sizes around the end of the first blocks: where another block begins, one less and one more."""
    (case, *_) = made(name, 7)
    grid = case.source.entries[0].grid

    def blocks(n: int) -> tuple:
        choice = case.family.choose(lambda s: case.number(s) if isinstance(s, int) else _at(s, n))
        return choice, tuple(_at(g, n) for g in grid)

    last = next((n for n in range(8, 5000) if blocks(n + 1) != blocks(n)), 256)
    return [last - 1, last, last + 1]


def _at(size, n: int) -> int:
    return evaluate(size, {"n": n})


@pytest.fixture(scope="module")
def sizes() -> dict[str, list[int]]:
    return {name: ends(name) for name in PROGRAMS}


def test_kernels_at_the_ends_of_blocks(sizes):
    found = [c for name, at in sizes.items() for n in at for c in made(name, n)]
    run(found)
    compare(found, 64)
    assert len({type(c.family).__name__ for c in found}) >= 6 and all(at[0] > 6 for at in sizes.values())


@pytest.mark.parametrize("blocks", [
    lambda blocks, n, end: blocks - (n == end - 1),
    lambda blocks, n, end: blocks - (n == end + 1),
    lambda blocks, n, end: blocks - (n == end),
], ids=["block-1", "block+1", "block"])
def test_a_block_too_few(sizes, blocks):
    """Of one size, whichever it is: the others are right."""
    for name in ("elements", "rows", "picked"):
        end = sizes[name][1]
        wrong = 0
        for n in sizes[name]:
            (case, *_) = made(name, n)
            case.family = Mutated(case.family, lambda b, n, end=end: blocks(b, n, end), case=case)
            wrong += is_wrong([case])
        assert wrong == 1


def is_wrong(cases: list[Case]) -> bool:
    try:
        run(cases)
        compare(cases, 64)
    except (EmulationError, AssertionError):
        return True
    return False


@pytest.mark.parametrize("name", ["elements", "picked"])
def test_an_element_too_many(sizes, name):
    """A bound that is one too large is seen at block-1 and at block+1, though nobody reads what is written."""
    n = sizes[name][0]
    (case, *_) = made(name, n)
    before = case.source.text
    case.family = Mutated(case.family, text=lambda t: t.replace("< n0", "<= n0"), case=case)
    assert case.source.text != before
    assert is_wrong([case])


# --- streams ----------------------------------------------------------------------------------------------------------


def test_scratch_that_two_lanes_share(monkeypatch):
    """Long sums on two lanes, in two stages: each has scratch memory between them."""
    a, b = sc.input("a", "float32", (33_000,)), sc.input("b", "float32", (1100, 12))
    f = sc.compile([sc.sum(a), sc.sum(b, axis=0)], [a, b])._compilation.final
    plan = make_plan(f)
    assert len(plan.steps) == 2
    plan = replace(plan, steps=tuple(replace(s, lane=k, waits=()) for k, s in enumerate(plan.steps)))

    def call() -> None:
        with emulated_cuda():
            for r in CudaProgram(plan, context("cuda")).run(arrays_of(f), {}):
                r.numpy()

    call()
    monkeypatch.setattr(DevicePlanLowering, "several_lanes", property(lambda self: False, lambda self, value: None))
    with pytest.raises(EmulationError, match=r"nothing orders|no event"):
        call()


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planted", [False, True])
def test_restrict_where_a_result_lies_in_an_operand(planted):
    f = sc.compile(x * 2 + 1, [x])._compilation.final
    (v,) = [v for v in f.values() if v.op.name == "fused"]
    (region,) = v.regions
    given = np.arange(300, dtype="float32")
    case = case_of(region, [given], {"n": 300}, [given * 2 + 1])
    case.inplace = True
    assert region_pairs(region)
    case.family = Generic((region, tuple(region_pairs(region))), scalarize(collapse(region)))
    if planted:
        case.family = Mutated(case.family, text=lambda t: t.replace("const f32 *a0", "const f32 *__restrict__ a0"))
        assert "__restrict__" in case.source.text
        with pytest.raises(EmulationError, match="declared __restrict__"):
            run([case])
    else:
        run([case])
        compare([case])


# --- graphs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cupy() -> Iterator[CupyDevice]:
    if reason():
        pytest.skip(reason())
    with faked():
        yield CupyDevice(0)


@pytest.mark.parametrize("planted", [False, True])
def test_a_graph_that_drops_its_kernels(cupy, planted):
    """A module that nobody has any more is unloaded, and its kernels with it."""
    stream = cupy.stream()
    memory = cupy.alloc(400)
    cupy.upload(memory.address, np.ones(100, np.float32), stream)
    kernel = cupy.load(TEXT.replace("extern", "/* own */ extern", 1), [Signature("twice", (8, 4))])["twice"]
    cells = np.array([memory.address, 100], np.int64)
    at = cells.ctypes.data + 8 * np.arange(2)
    cupy.begin_capture(stream)
    cupy.launch(kernel, (1, 1, 1), 128, 0, at.ctypes.data, stream)
    graph = cupy.end_capture(stream)
    if planted:
        graph = replace(graph, kernels=())
    del kernel
    gc.collect()
    if planted:
        with pytest.raises(AssertionError, match="unloaded"):
            cupy.run_graph(graph, stream)
    else:
        cupy.run_graph(graph, stream)


# --- instructions -----------------------------------------------------------------------------------------------------


HALVES = prelude.PRELUDE + prelude.END + r"""
extern "C" __global__ void halves(const float *x, unsigned short *y, float *z, int n) {
  const int i = threadIdx.x;
  if (i < n) { y[i] = half_of(x[i]); z[i] = maximum(minimum(from_half(y[i]), x[i]), 0.5f * x[i]); }
}
"""


def halves(text: str) -> None:
    given = np.array([1 + 2**-11, 1 + 3 * 2**-11, -1e-7, 6e4, 1e6, np.nan, 0.0, -0.0], "f4")
    y, z = run_text(text, "halves", [(given, "r"), (np.zeros(8, "u2"), "w"), (np.zeros(8, "f4"), "w"), np.int32(8)],
                    block=32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y.view("f2"), given.astype("f2"))
        want = np.maximum(np.minimum(given.astype("f2").astype("f4"), given), 0.5 * given)
    np.testing.assert_array_equal(z, want)


def test_instructions_are_emulated_as_they_are_written():
    halves(HALVES)
    halves(HALVES.replace("__CUDA_ARCH__ >= 800", "0"))


@pytest.mark.parametrize("right, wrong", [
    ("cvt.rn.f16.f32", "cvt.rz.f16.f32"), ("cvt.rn.f16.f32", "cvt.rn.ftz.f16.f32"), ("max.NaN.f32", "max.f32")])
def test_instructions_that_round_otherwise(right, wrong):
    assert right in HALVES
    with pytest.raises(InternalError, match="g\\+\\+ does not compile"):
        halves(HALVES.replace(right, wrong))


def test_an_emulated_device_is_named_as_what_it_emulates():
    assert EmulatedDevice().properties.arch == "sm_90", "native/cuda.h says the same"
