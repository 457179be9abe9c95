"""Products on a CUDA device: the calls of cuBLAS, carried out by NumPy on memory stored by columns, give what the op
means, for every layout, scaling, batch and size, also of nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symc as sc
from symc.codegen.plan.gemm import as_gemm, is_product
from symc.codegen.plan.inplace import region_pairs
from symc.codegen.plan.planner import make_plan
from symc.driver.build import build
from symc.ir.ops.gemm import gemm
from symc.ir.ops.linalg import dot
from symc.ir.plan import Step
from symc.ir.reference import apply, run_region
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt.engine.passes import optimize
from symc.runtime.cuda.actions import CopyAction, FillAction, ProductAction
from symc.runtime.cuda.device import Product
from symc.runtime.cuda.products import RESULT, SCRATCH, Launch, forms_of, lower_product
from symc.tensors.callsite import caller


def columns(memory: np.ndarray, start: int, rows: int, count: int, leading: int) -> np.ndarray:
    """A matrix stored by columns, as a view. Refuses what cuBLAS refuses, and what lies outside."""
    assert leading >= max(1, rows), "a column is longer than the distance to the next one"
    last = start + leading * (count - 1) + rows
    assert last <= memory.size, f"{last} of {memory.size} elements"
    step = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory[start:], (rows, count), (step, leading * step))


def multiply(p: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """What cuBLAS does."""
    assert min(p.m, p.n, p.k, p.batch) > 0 and a.dtype == b.dtype == c.dtype == p.dtype
    for i in range(p.batch):
        x = columns(a, i * p.stride_a, *((p.k, p.m) if p.trans_a else (p.m, p.k)), p.lda)
        y = columns(b, i * p.stride_b, *((p.n, p.k) if p.trans_b else (p.k, p.n)), p.ldb)
        z = columns(c, i * p.stride_c, p.m, p.n, p.ldc)
        product = p.alpha * ((x.T if p.trans_a else x) @ (y.T if p.trans_b else y))
        z[...] = product + p.beta * z if p.beta else product


def carry_out(step: Step, arrays: list[np.ndarray]) -> np.ndarray:
    """The operations of a step on memory where nothing was, but for a result that lies in an operand."""
    v = step.value
    lowered = lower_product(step, lambda size: size)
    assert lowered is not None
    memory = {k: a.reshape(-1).copy() for k, a in enumerate(arrays)}
    before = {k: a.copy() for k, a in memory.items()}
    here = [k for k, name in enumerate(step.reads) if name in step.writes]
    memory[RESULT] = memory[here[0]] if here else np.full(v.type.shape, np.nan, v.dtype).reshape(-1)
    memory[SCRATCH] = np.full(lowered.scratch // v.dtype.itemsize, np.nan, v.dtype)
    for op in lowered.operations:
        if isinstance(op, ProductAction):
            multiply(op.product, memory[op.a], memory[op.b], memory[op.c])
        elif isinstance(op, Launch):
            launch(op, memory, v)
        elif isinstance(op, CopyAction):
            memory[op.to][:] = memory[op.source]
            assert op.nbytes == memory[op.to].nbytes
        else:
            assert isinstance(op, FillAction) and op.nbytes == memory[op.to].nbytes
            memory[op.to][:] = 0
    for k, a in before.items():
        assert k in here or np.array_equal(memory[k], a, equal_nan=True), f"operand {k} was written"
    return memory[RESULT].reshape(v.type.shape)


def launch(op: Launch, memory: dict, v) -> None:
    region, over = op.form
    assert op.form in forms_of(v) and not over
    for k, place in enumerate(op.operands):
        assert memory[place] is not memory[op.result] or (k, 0) in region_pairs(region), "read after it is written"
    given = [memory[p].reshape(t.shape) for p, t in zip(op.operands, region.params, strict=True)]
    (memory[op.result][:],) = [r.reshape(-1) for r in run_region(region, given, {})]


@st.composite
def steps(draw):
    """A product of any layout."""
    small = st.sampled_from([0, 1, 2, 3, 5])
    m, n, k = draw(small), draw(small), draw(small)
    trans_a, trans_b = draw(st.booleans()), draw(st.booleans())
    batch = draw(st.sampled_from([None, 0, 1, 3]))
    shared = draw(st.sampled_from(["", "a", "b"])) if batch is not None else ""
    dtype = draw(st.sampled_from(["float32", "float64", "complex64", "complex128"]))
    lead = () if batch is None else (batch,)
    a = (() if shared == "a" else lead) + ((k, m) if trans_a else (m, k))
    b = (() if shared == "b" else lead) + ((n, k) if trans_b else (k, n))
    ba, bb = () if shared == "a" or not lead else (0,), () if shared == "b" or not lead else (0,)
    contract = ((len(ba) + (not trans_a),), (len(bb) + trans_b,))
    operands = [fresh_input(TensorType(dtype, s)) for s in (a, b)]
    if not shared and draw(st.booleans()):
        return Step("call", dot(*operands, contract=contract, batch=(ba, bb)), ("a", "b"), ("r",))
    alpha, beta = draw(st.sampled_from([1.0, -2.0, 0.5])), draw(st.sampled_from([0.0, 1.0, -0.5]))
    times = draw(st.sampled_from([(), ("alpha",), *([("beta",), ("alpha", "beta")] if beta else [])]))
    names = ["a", "b"]
    if beta:
        operands.append(fresh_input(TensorType(dtype, (*lead, m, n))))
        names.append("c")
    operands += [fresh_input(TensorType(dtype, ())) for _ in times]
    v = gemm(*operands, contract=contract, batch=(ba, bb), alpha=alpha, beta=beta, times=times)
    in_place = bool(beta) and draw(st.booleans())
    return Step("call", v, (*names, *times), ("c" if in_place else "r",))


def numbers(v, rng) -> list[np.ndarray]:
    out = []
    for o in v.operands:
        x = rng.normal(size=o.shape)
        out.append(np.asarray(x + 1j * rng.normal(size=o.shape) if o.dtype.kind == "c" else x, o.dtype))
    return out


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps(), st.integers(0, 2**31))
def test_every_layout(step, seed):
    arrays = numbers(step.value, np.random.default_rng(seed))
    want = apply(step.value, [a.copy() for a in arrays], {}, False, None)
    got = carry_out(step, arrays)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 if got.dtype.char in "fF" else 1e-12)


def product(*shapes, contract=((1,), (0,)), batch=((), ()), alpha=1.0, beta=0.0, times=(), in_place=False) -> Step:
    operands = [fresh_input(TensorType("float64", s)) for s in shapes]
    v = gemm(*operands, contract=contract, batch=batch, alpha=alpha, beta=beta, times=times)
    names = ("a", "b", *["c"] * bool(beta), *times)
    return Step("call", v, names, ("c" if in_place else "r",))


def kinds(step: Step) -> list[str]:
    lowered = lower_product(step, lambda size: size)
    return [type(op).__name__.removesuffix("Action") for op in lowered.operations]


def test_numbers_known_now_are_part_of_the_one_call():
    assert kinds(product((4, 5), (5, 6), alpha=2.0)) == ["Product"]
    assert kinds(product((4, 5), (5, 6), (4, 6), alpha=2.0, beta=3.0, in_place=True)) == ["Product"]
    assert kinds(product((4, 5), (5, 6), (4, 6), beta=1.0)) == ["Copy", "Product"]


def test_factors_on_the_device_are_multiplied_by_a_kernel():
    scaled = product((4, 5), (5, 6), (4, 6), (), beta=1.0, times=("beta",))
    assert kinds(scaled) == ["Launch", "Product"]
    both = product((4, 5), (5, 6), (4, 6), (), beta=1.0, times=("alpha",))
    assert kinds(both) == ["Product", "Launch"]
    assert lower_product(both, lambda size: size).scratch == 0
    in_place = product((4, 5), (5, 6), (4, 6), (), beta=1.0, times=("alpha",), in_place=True)
    assert kinds(in_place) == ["Product", "Launch"]
    assert lower_product(in_place, lambda size: size).scratch == 4 * 6 * 8


@pytest.mark.parametrize("times", [("alpha",), ("beta",), ("alpha", "beta")])
@pytest.mark.parametrize("in_place", [False, True])
def test_nothing_times_nan_is_nan(times, in_place):
    step = product((2, 3), (3, 2), (2, 2), *[()] * len(times), beta=2.0, times=times, in_place=in_place)
    a, b, c = np.ones((2, 3)), np.ones((3, 2)), np.ones((2, 2))
    a[0, 0] = c[1, 1] = np.nan
    arrays = [a, b, c, *[np.zeros(())] * len(times)]
    want = apply(step.value, arrays, {}, False, None)
    assert np.isnan(want).any()
    np.testing.assert_array_equal(carry_out(step, arrays), want)


def test_one_matrix_for_all_rows_of_a_batch_is_one_product():
    step = product((7, 4, 5), (5, 6), contract=((2,), (0,)), batch=((0,), ()))
    (op,) = lower_product(step, lambda size: size).operations
    assert (op.product.m, op.product.n, op.product.k, op.product.batch) == (6, 28, 5, 1)
    step = product((4, 5), (7, 5, 6), contract=((1,), (1,)), batch=((), (0,)))
    (op,) = lower_product(step, lambda size: size).operations
    assert (op.product.batch, op.product.stride_a, op.product.stride_b) == (7, 30, 0)


def computed(outputs, compute: str = "highest") -> list[str]:
    """How the products of a function are computed on a device."""
    f = build(outputs, None, None, None, None, "f", caller()).function
    steps = [s for s in make_plan(optimize(f).function).steps if is_product(s.value)]
    lowered = [lower_product(s, lambda size: 4, compute) for s in steps]
    return [op.product.compute for x in lowered for op in x.operations if isinstance(op, ProductAction)]


def test_halves_are_multiplied_exactly_by_tensor_cores():
    x, y = sc.input("x", "float16", (8, 4)), sc.input("y", "float16", (8, 4))
    a, flags = sc.input("a", "float32", (4, 8)), sc.input("flags", "bool", (8, 4))
    assert computed([x @ y.T, (x.T @ y) * 2]) == ["tf32", "tf32"]
    assert computed([a @ x, a @ a.T]) == ["highest", "highest"]
    assert computed([flags.astype("float32").T @ x.astype("float32")]) == ["tf32"]
    assert computed([x @ y.T], "bf16") == ["tf32"]  # ten bits, as halves have
    everything = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    assert not (everything[np.isfinite(everything)].view(np.uint32) & 0x1FFF).any()  # the bits that tf32 has not


def test_what_is_no_product_is_left_alone():
    a = fresh_input(TensorType("int32", (2, 2)))
    v = dot(a, a, contract=((1,), (0,)), batch=((), ()))
    assert as_gemm(v) is None and lower_product(Step("call", v, ("a", "a"), ("r",)), int) is None


def test_bf16_rounds_float32_alone():
    """Numbers of float16 have ten bits and a sign: a product of them in float32 takes them as they are."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 200)).astype("float16"), rng.standard_normal((200, 32)).astype("float32")
    x, y = sc.input("x", "float16", a.shape), sc.input("y", "float32", b.shape)
    errors = {}
    with sc.testing.emulated_cuda(checked=False):
        for name, made in (("mixed", x @ y), ("narrow", sc.matmul(x.astype("float32"), x.astype("float32").T)),
                           ("float32", y.T @ y)):
            given = [v for v in (x, y) if (v is x) <= (name != "float32") and (v is y) <= (name != "narrow")]
            f = sc.compile(made, given, device="cuda", precision="bf16")
            wide = {"mixed": (a, b), "narrow": (a, a.T), "float32": (b.T, b)}[name]
            exact = wide[0].astype("float64") @ wide[1].astype("float64")
            errors[name] = abs(f(*[{id(x): a, id(y): b}[id(v)] for v in given]).numpy() - exact).max()
    assert errors["narrow"] < 1e-3 and errors["mixed"] < 0.02 < 0.05 < errors["float32"]
