"""Loops that are cut into parts: each part computes what the whole loop computes there, without conditions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.codegen.kernel.index_splitting import Parts, Range, cut, limits, part
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.kernel.source import kernel_source
from symc.codegen.plan.planner import make_plan
from symc.ir.dim import ceildiv, size_name
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.ops.kernel import fused
from symc.ir.ops.leaf import scalar
from symc.ir.reference import evaluate_function, run_region
from symc.ir.size_values import evaluate
from symc.ir.traverse import close_over
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input, param
from symc.runtime.cpu.program import load
from tests.codegen.plan.plan_cases import some_arrays

N = size_name("n")
ZERO = scalar(0.0, np.float64)
pad, concat, slice_, iota = lookup("pad"), lookup("concat"), lookup("slice"), lookup("iota")


def pieces(x: Value, choices: list[tuple[int, int, int]]) -> Value:
    """Padding, joining, turning and shifting, one after another."""
    for what, i, j in choices:
        n, axis = x.shape[-1], x.ndim - 1
        zeros = (0,) * axis
        if what == 0:
            x = pad(x, ZERO, low=(*zeros, i % 3), high=(*zeros, j % 3), interior=(*zeros, 0))
        elif what == 1:
            x = concat(*[x * 2.0, x][: 1 + j % 2], x, axis=axis)
        elif what == 2:
            x = slice_(x, start=(*zeros, n - 1), size=x.shape, step=(*[1] * axis, -1))
        elif what == 3:
            at = iota(shape=x.shape, axis=axis, dtype=np.dtype("i8"))
            test = lookup(("lt", "le", "gt", "ge", "eq", "ne")[i % 6])
            x = lookup("where")(test(at, j - 3) if j % 2 else test(j - at, 2), x, -x)
        elif what == 5:
            x = slice_(x, start=(*zeros, 0), size=(*x.shape[:-1], ceildiv(n, 2)), step=(*[1] * axis, 2))
        else:
            x = x + concat(slice_(x, start=(*zeros, n - 1), size=(*x.shape[:-1], 1), step=(1,) * x.ndim),
                           slice_(x, start=(0,) * x.ndim, size=(*x.shape[:-1], n - 1), step=(1,) * x.ndim), axis=axis)
    return x


def kernel(shape: tuple, choices: list[tuple[int, int, int]]) -> Function:
    t = TensorType("f64", shape)
    result = pieces(param(0, t), choices)
    x = fresh_input(t)
    return function("f", [(x, Input("x", t))], [fused(x, regions=[Region([t], [result])])])


changes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4)
shapes = st.sampled_from([(4,), (1,), (3, 5), (N,), (2, N), (N, 3)])


def boxes(parts: Parts) -> list[tuple[Range, ...]]:
    """The parts of a loop nest: a range of each axis."""
    return [(r, *more) for r, inside in parts for more in boxes(inside)] if parts else [()]


def loop_of(f: Function) -> Value:
    (region,) = f.body.results[0].regions
    v = scalarize(region).region.results[0]
    return v.operands[0] if v.op.name == "get" else v


@settings(max_examples=150, deadline=None)
@given(shapes, changes, st.integers(1, 4))
def test_every_part_is_the_whole_there(shape, choices, n):
    f = kernel(shape, choices)
    loop, sizes = loop_of(f), {"n": n}
    ranges = cut(loop)
    if ranges is None:
        return
    region = loop.regions[0]
    (x,) = some_arrays(f, sizes)
    seen: list[tuple[int, ...]] = []
    for box in boxes(ranges):
        assert len(region.params) == len(box) + 1
        own = part(region, box)
        inside = map(limits, box, loop.attrs["shape"])
        numbers = [range(evaluate(a, sizes), evaluate(b, sizes)) for a, b in inside]
        for index in itertools.product(*numbers):
            seen.append(index)
            arrays = [*map(np.int64, index), x]
            for a, b in zip(run_region(own, arrays, sizes), run_region(region, arrays, sizes), strict=True):
                assert np.array_equal(a, b)
    whole = [range(evaluate(s, sizes)) for s in loop.attrs["shape"]]
    assert sorted(seen) == list(itertools.product(*whole))


@settings(max_examples=12, deadline=None)
@given(shapes, changes)
def test_kernels_in_parts_run(shape, choices):
    f = kernel(shape, choices)
    program = load(make_plan(f))
    for n in (1, 2, 5):
        arrays = some_arrays(f, {"n": n})
        np.testing.assert_array_equal(program.run(arrays, {"n": n})[0], evaluate_function(f, arrays)[0])


def text_of(result: Value, *params: Value) -> str:
    return kernel_source((close_over(params, [result]), ())).text


def test_the_edges_of_a_padded_array_are_loops_of_their_own():
    x = fresh_input(TensorType("f64", (N, N)))
    text = text_of(pad(x, ZERO, low=(1, 1), high=(1, 1), interior=(0, 0)), x)
    assert " if " not in text and text.count("for") == 12  # 3 parts of rows, each with 3 parts of columns
    assert "a0[" in text and text.count("a0[") == 1


def test_what_is_put_together_is_copied_part_by_part():
    x, y = fresh_input(TensorType("f64", (4, N))), fresh_input(TensorType("f64", (4, N + 2)))
    text = text_of(concat(x, y, axis=1), x, y)
    assert " if " not in text and text.count("for") == 3


@pytest.mark.parametrize("choices", [[(0, 1, 1)] * 5, [(3, 4, 2 * k + 1) for k in range(7)]])
def test_a_loop_of_many_parts_stays_whole(choices):
    assert cut(loop_of(kernel((40,), choices))) is None


def test_cuts_whose_order_is_not_known_leave_one_part_between_both_ends():
    """The last but one element comes before or after the third, or is both."""
    x = fresh_input(TensorType("f64", (N,)))
    at, where, lt = iota(shape=(N,), axis=0, dtype=np.dtype("i8")), lookup("where"), lookup("lt")
    one = where(lt(at, 3), x, -x)
    last = lookup("broadcast")(lookup("size")(value=N - 1), axes=(), shape=(N,))
    assert text_of(one, x).count("for") == 2
    assert text_of(where(lt(at, last), one, x), x).count("for") == 3


# --- what users write -------------------------------------------------------------------------------------------------

RINGS = {
    "both ways": lambda x: sum(sc.roll(x, k, -1) for k in (-2, -1, 1, 2)),
    "halves": lambda x: sum(
        sc.concatenate([x, x[..., :2]], axis=-1)[..., k::2][..., : x.shape[-1] // 2] for k in range(3)),
    "padded": lambda x: sc.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 1)])[..., ::3] * 2.0,
}


def _loops(text: str) -> list[list[str]]:
    """The lines of each innermost loop."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.strip().startswith("for "):
            found.append([])
        elif found:
            found[-1].append(line)
    return [lines for lines in found if lines]


@pytest.mark.parametrize("name", RINGS)
def test_the_inside_of_a_row_is_read_without_tests_whatever_sizes_are_called(name):
    for sizes in (("n",), ("n", "n"), ("n", "m"), ("m", "n"), ("_0", "_1"), ("a", "z"), ("z", "a")):
        x = sc.input("x", "float64", shape=sizes)
        f = sc.compile(RINGS[name](x), [x])
        a = np.random.default_rng(0).normal(size=(37,) * len(sizes))
        np.testing.assert_allclose(f(a), sc.compile(RINGS[name](x), [x], mode="reference")(a), rtol=1e-12)
        inside = [lines for lines in _loops(f.source) if not any(" if " in line for line in lines)]
        assert inside, f"{sizes}: {f.source}"


def test_edges_of_a_long_body_are_cut_less_than_its_inside():
    """A ring of neighbours by comparisons: too much to write nine times."""
    a = sc.input("a", "bool", shape=("n", "m"))
    q = sc.pad(a.astype("int8"), 1)
    ring = [q[:-2, 1:-1], q[:-2, 2:], q[1:-1, 2:], q[2:, 2:], q[2:, 1:-1], q[2:, :-2], q[1:-1, :-2], q[:-2, :-2]]
    turns = sum(((ring[k] == 0) & (ring[(k + 1) % 8] == 1)).astype("int8") for k in range(8))
    thin = a & ~((sum(ring) >= 2) & (sum(ring) <= 6) & (turns == 1))
    f = sc.compile(thin, [a])
    known = sc.compile(thin, [a], mode="reference")
    for shape in ((0, 4), (1, 1), (2, 3), (7, 33), (40, 5)):
        data = np.random.default_rng(0).uniform(size=shape) < 0.5
        np.testing.assert_array_equal(f(data), known(data))
    assert any(not any(" if " in line for line in lines) for lines in _loops(f.source))
