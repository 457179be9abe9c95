"""Updates, running sums, index checks and odd products are native: their kernels against the references."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest

import symc as sc
from symc.codegen.kernel.source import kernel_form_of
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.errors import IndexingError
from symc.ir.function import Function, Input, function
from symc.ir.op import all_ops, lookup
from symc.ir.plan import Plan
from symc.ir.reference import evaluate_function
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt import optimize
from symc.runtime.cpu.kernels import compile_count
from symc.runtime.cpu.program import Program, load
from tests.covering import pairwise
from tests.ir.op_cases import cases

ENDS = ["scatter", "dynamic_update_slice", "cumsum", "cumprod", "linrec"]
NATIVE = [*ENDS, "gather", "dynamic_slice", "check_index", "dot", "sort", "argsort", "searchsorted", "top_places",
          "order_statistics", "concat"]


def planned(f: Function, donated: tuple[int, ...] = ()) -> Plan:
    plan = make_plan(optimize(f, strict=True, verify=True).function, frozenset(donated))
    check_plan(plan)
    return plan


def assert_native(program: Program) -> None:
    """No step runs by its reference."""
    for step in program.plan.steps:
        if step.kind == "launch":
            assert kernel_form_of(step) in program.launches, step.value.op.name
    assert not program.python_steps


def run_sample(name: str, arrays: list[np.ndarray], attrs: dict, donate: bool) -> None:
    arrays = [np.array(a, order="C") for a in arrays]
    leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
    f = function(name, [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], [lookup(name)(*leaves, **attrs)])
    (want,) = evaluate_function(f, arrays, check=True)
    plan = planned(f, (0,) if donate else ())
    program = load(plan)
    assert_native(program)
    given = [a.copy() for a in arrays]
    (got,) = program.run(given, {})
    assert got.dtype == want.dtype and got.shape == want.shape
    if name == "dot" and got.dtype.kind in "fc":
        eps = np.finfo(got.dtype).eps
        np.testing.assert_allclose(got.astype("c16"), want.astype("c16"), rtol=8 * eps, atol=8 * eps)
    else:
        np.testing.assert_array_equal(got, want)
    for a, b in list(zip(arrays, given, strict=True))[donate:]:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("donate", [False, True], ids=["kept", "donated"])
@pytest.mark.parametrize("name", NATIVE)
def test_samples(name, donate):
    """Samples of every op, one in five where there are many, with the first operand's memory lent and not."""
    every = cases(lookup(name))
    for arrays, attrs in every if len(every) < 24 else every[::5]:
        run_sample(name, arrays, attrs, donate)


DTYPES = ("f8", "f4", "f2", "i1", "u4", "i8", "?", "c16")
LAYOUTS = (((0,), (9,)), ((1,), (2, 3)), ((0, 2), (7,)), ((0, 1, 2), (30,)), ((2,), ()))
SCATTERS = pairwise(itertools.product(DTYPES, ("set", "add", "mul", "max", "min"), LAYOUTS, (False, True)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_of_many(dtype):
    """Places repeat, so the order matters; random shapes and axes."""
    rng = np.random.default_rng(7)
    for mode, (axes, place_shape), donate in (case[1:] for case in SCATTERS if case[0] == dtype):
        if dtype == "c16" and mode in ("max", "min"):
            continue
        x = rng.integers(0, 3, (4, 3, 5)).astype(dtype)
        places = [rng.integers(0, x.shape[a], place_shape) for a in axes]
        rest = tuple(s for a, s in enumerate(x.shape) if a not in axes)
        u = rng.integers(0, 3, (*place_shape, *rest)).astype(dtype)
        run_sample("scatter", [x, u, *places], dict(axes=axes, mode=mode), donate=donate)


@pytest.mark.parametrize("dtype", ["f8", "i2", "f2"])
def test_running_along_any_axis(dtype):
    rng = np.random.default_rng(8)
    for name, arity in (("cumsum", 1), ("cumprod", 1), ("linrec", 2)):
        for axis, reverse in itertools.product(range(3), (False, True)):
            arrays = [rng.integers(-2, 3, (3, 5, 4)).astype(dtype) for _ in range(arity)]
            run_sample(name, arrays, dict(axis=axis, reverse=reverse), False)


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("dtype", ["f8", "f2", "i1", "u4", "?"])
def test_sorting(name, dtype):
    """Stable, nan last, to the bit: zeros of both signs stay in order."""
    rng = np.random.default_rng(9)
    values = [0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 2] if dtype[0] == "f" else [0, 1, 3, 5]
    for shape, axis in (((8,), 0), ((128,), 0), ((999,), 0), ((3, 7, 2), 1), ((5, 40, 3), 1), ((0, 3), 0), ((3, 0), 1)):
        x = rng.choice(np.array(values), shape).astype(dtype)
        run_sample(name, [x], dict(axis=axis), True)
        leaf = fresh_input(TensorType(x.dtype, x.shape))
        f = function(name, [(leaf, Input("x", leaf.type))], [lookup(name)(leaf, axis=axis)])
        (got,), (want,) = load(planned(f)).run([x], {}), evaluate_function(f, [x])
        assert got.tobytes() == want.tobytes()


# --- in place ---------------------------------------------------------------------------------------------------------


def counted(f) -> tuple[int, int, int]:
    """Steps of the plan, steps in place, and buffers that the plan allocates."""
    return f.plan.count(" <- "), f.plan.count("in place"), f.plan.count("alloc ")


def embedding():
    w = sc.shared(np.arange(12.0).reshape(6, 2), "w")
    i, g = sc.input("i", "int64", shape=("n",)), sc.input("g", "float64", shape=("n", 2))
    return w, i, g


def test_an_update_of_a_state_writes_the_rows_alone():
    w, i, g = embedding()
    f = sc.compile([], [i, g], updates={w: w.at[i].add(-0.5 * g)})
    memory = w.get_value(borrow=True).__array_interface__["data"][0]
    f(np.array([1, -1, 1]), np.ones((3, 2)))
    assert w.get_value(borrow=True).__array_interface__["data"][0] == memory
    want = np.arange(12.0).reshape(6, 2)
    want[[1, 5]] -= [[1.0], [0.5]]
    np.testing.assert_array_equal(w.get_value(borrow=True), want)
    assert counted(f) == (2, 1, 1), f.plan  # the checked indices are all that is allocated
    assert f.plan.count("call") == 0 and "[6, 2]" not in f.source
    (kernel,) = [k for k in f.kernels if "scatter" in k.name]
    assert kernel.name.endswith("_in_place") and "a0" not in kernel.source.split("\n", 1)[1]


def test_an_error_leaves_the_state_and_has_the_line():
    w, i, g = embedding()
    f = sc.compile([], [i, g], updates={w: w.at[i].add(g)})  # the line
    for bad in (6, -7):
        with pytest.raises(IndexingError, match=f"index {bad} is out of bounds for axis 0 of size 6") as e:
            f(np.array([0, bad]), np.ones((2, 2)))
        assert "# the line" in str(e.value)
        np.testing.assert_array_equal(w.get_value(borrow=True), np.arange(12.0).reshape(6, 2))
    f(np.array([0, 5]), np.ones((2, 2)))  # and the next call is right
    assert w.get_value(borrow=True)[0, 0] == 1 and w.get_value(borrow=True)[5, 1] == 12


def test_what_reads_the_state_runs_before():
    """The rows that come are made of the state itself: made first, so that the update can be in place."""
    w, i, _ = embedding()
    f = sc.compile(w.sum(), [i], updates={w: w.at[i].set(w[i] * 10)})
    assert f(np.array([2, 3])) == 66.0
    np.testing.assert_array_equal(w.get_value(borrow=True)[1:4], [[2, 3], [40, 50], [60, 70]])
    assert "in place, donated" in f.plan


def test_a_gradient_starts_from_zeros_in_the_same_kernel():
    w, i, g = embedding()
    f = sc.compile(sc.grad(sc.sum(w[i] * g), w), [i, g])
    want = np.zeros((6, 2))
    np.add.at(want, [4, 4, 0], np.ones((3, 2)))
    np.testing.assert_array_equal(f(np.array([4, 4, 0]), np.ones((3, 2))), want)
    assert counted(f)[0] == 2, f.plan  # checks, scatter


def test_a_window_is_all_that_is_written():
    put = lookup("dynamic_update_slice")
    types = (("f64", (5, 3)), ("f64", (1, 3)), ("i64", ()), ("i64", ()))
    leaves = [fresh_input(TensorType(d, s)) for d, s in types]
    roles = ["state", "arg", "arg", "arg"]
    inputs = [(v, Input(n, v.type, r)) for v, n, r in zip(leaves, ("s", "u", "t", "z"), roles, strict=True)]
    f = function("put", inputs, [], [(0, put(leaves[0], leaves[1] * 2, *leaves[2:]))])
    plan = planned(f)
    assert [s.kind for s in plan.steps] == ["launch"] and plan.steps[0].reads[0] == plan.steps[0].writes[0]
    assert "alloc" not in print_plan(plan)
    state = np.zeros((5, 3))
    (out,) = load(plan).run([state, np.ones((1, 3)), np.array(9), np.array(-4)], {})
    assert out is state and state[4].tolist() == [2, 2, 2] and state[:4].sum() == 0


def test_two_readers_keep_the_old_value():
    """A result that needs what was there gets a copy."""
    _, i, g = embedding()
    x = sc.input("x", "float64", shape=("m", 2))
    f = sc.compile([x.at[i].add(g), x * 2], [x, i, g])
    given = np.zeros((4, 2))
    new, double = f(given, np.array([3]), np.ones((1, 2)))
    assert new.tolist() == [[0, 0], [0, 0], [0, 0], [1, 1]] and not given.any() and not double.any()


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_one_compile_serves_all_sizes():
    x, u = sc.input("x", "float64", shape=("n", "m")), sc.input("u", "float64", shape=("k", "m"))
    i = sc.input("i", "int64", shape=("k",))
    f = sc.compile([x.at[i].add(u), sc.cumsum(x, axis=0), sc.cumsum(x, axis=1)], [x, u, i])
    rng = np.random.default_rng(0)
    before = None
    for n, m, k in ((3, 4, 2), (7, 1, 9), (1, 3, 0), (2, 0, 3), (5, 600, 50)):
        xs, us, at = rng.normal(size=(n, m)), rng.normal(size=(k, m)), rng.integers(-n, n, k)
        got = f(xs, us, at)
        want = xs.copy()
        np.add.at(want, at, us)
        np.testing.assert_array_equal(got[0], want)
        np.testing.assert_array_equal(got[1], np.cumsum(xs, 0))
        np.testing.assert_array_equal(got[2], np.cumsum(xs, 1))
        before = compile_count() if before is None else before
        assert compile_count() == before


def test_equal_updates_share_a_kernel():
    x, u = sc.input("x", "float64", shape=("n", 3)), sc.input("u", "float64", shape=("k", 3))
    places = [sc.input(f"i{k}", "int64", shape=("k",)) for k in range(4)]
    y = x
    for i in places:
        y = y.at[i].add(u)
    f = sc.compile(y, [x, u, *places])
    assert sum(k.launches for k in f.kernels if "scatter" in k.name) == 4
    assert sorted(k.launches for k in f.kernels if "scatter" in k.name) == [1, 3]  # the first copies x
    got = f(np.zeros((2, 3)), np.ones((2, 3)), *[np.array([1, 1])] * 4)
    np.testing.assert_array_equal(got, [[0] * 3, [8] * 3])


# --- products ---------------------------------------------------------------------------------------------------------

LAYOUTS = [
    ((3, 70), (70, 5), ((1,), (0,)), ((), ())),
    ((3, 70), (5, 70), ((1,), (1,)), ((), ())),
    ((2, 9, 3, 4), (2, 8, 3, 4), ((3,), (3,)), ((0, 2), (0, 2))),
    ((2, 3, 9, 8), (2, 8, 3, 4), ((3,), (1,)), ((0, 1), (0, 2))),
    ((9, 8, 7), (8, 6, 9), ((0, 1), (2, 0)), ((), ())),
    ((9, 8, 7), (8, 9, 6), ((0, 1), (1, 0)), ((), ())),
    ((9, 8), (8, 9), ((0, 1), (1, 0)), ((), ())),
    ((9, 80), (9, 80), ((), ()), ((0,), (0,))),
    ((9, 8), (9,), ((), ()), ((0,), (0,))),
]


@pytest.mark.parametrize("dtype", ["f4", "f2", "c8", "i2", "u8"])
def test_products_of_any_layout(dtype):
    rng = np.random.default_rng(1)
    for a, b, contract, batch in LAYOUTS:
        arrays = [rng.integers(-3, 4, s).astype(dtype) for s in (a, b)]
        run_sample("dot", arrays, dict(contract=contract, batch=batch), False)


def test_a_product_of_integers_keeps_what_floats_do_not():
    big = 2**53 + 1
    a, b = sc.input("a", "int64", shape=("n", "k")), sc.input("b", "int64", shape=("k", "m"))
    f = sc.compile(a @ b, [a, b])
    got = f(np.array([[big, 1]] * 2), np.array([[1, 0, 3], [1, 1, 1]]))
    assert got.tolist() == [[big + 1, 1, 3 * big + 1]] * 2
    assert f(np.zeros((2, 0), int), np.zeros((0, 3), int)).tolist() == [[0] * 3] * 2


# --- scalar functions -------------------------------------------------------------------------------------------------


def exact_erfcx(x: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        return mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x)


@pytest.mark.parametrize("name, attrs", [("digamma", {}), ("trigamma", {}), ("polygamma", {"order": 2}),
                                         ("polygamma", {"order": 3}), ("erfinv", {}), ("erfcx", {})])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_special_functions(name, attrs, dtype):
    x = np.concatenate([np.linspace(-6, 12, 1001), np.linspace(27, 28, 9),
                        [-0.0, np.inf, -np.inf, np.nan, 1e-300, 1e9, 1.4616321449683623]])
    if name == "erfinv":
        x = np.clip(x / 6, -1.1, 1.1)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    leaf = fresh_input(TensorType(x.dtype, x.shape))
    f = function(name, [(leaf, Input("x", leaf.type))], [lookup(name)(leaf, **attrs)])
    program = load(planned(f))
    assert_native(program)
    (got,), (want,) = program.run([x], {}), evaluate_function(f, [x])
    eps = np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        apart = abs(got.astype("f8") - want) > 2 * eps * abs(want.astype("f8"))
    assert not ((np.isnan(got) != np.isnan(want)) | (np.isinf(got) != np.isinf(want))).any()
    for k in np.flatnonzero(apart):  # the reference is SciPy's, which is 10 ulp off next to poles
        exact = {"digamma": mpmath.digamma, "erfinv": mpmath.erfinv, "erfcx": exact_erfcx}[name](float(x[k]))
        terms = 1 if name == "digamma" and x[k] < 0 else 0  # the difference of two, which cancel next to a zero
        assert abs(float(got[k]) - exact) <= 2 * eps * max(terms, abs(exact)), x[k]


def test_all_integer_dtypes_are_checked():
    for name in ("i1", "u1", "i4", "u8"):
        i = sc.input("i", name, shape=("n",))
        x = sc.input("x", "float64", shape=(100,))
        f = sc.compile(x[i], [x, i])
        data = np.arange(100.0)
        assert f(data, np.array([99, 3], name)).tolist() == [99, 3]
        with pytest.raises(IndexingError, match="100"):
            f(data, np.array([1, 100], name))


# --- complex numbers --------------------------------------------------------------------------------------------------

COMPLEX = [op for op in all_ops() if {"complex_kernel", "elementwise"} <= op.traits and op.name not in ("where", "cast")
           and ("c" in op.facts.kinds or op.name == "complex")]
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 30.0, np.inf, -np.inf, np.nan, 750.0]
PLANE = np.array([complex(a, b) for a in PARTS for b in PARTS])


@pytest.mark.parametrize("op", COMPLEX, ids=lambda op: op.name)
def test_complex_functions_with_infinities(op):
    """NumPy's values, of infinities, nan and signed zeros too."""
    arrays, attrs = next(iter(op.samples()))
    x = [np.repeat(PLANE, 121), np.tile(PLANE, 121)] if len(arrays) == 2 else [PLANE]
    if op.name == "complex":
        x = [np.repeat(np.array(PARTS), 11), np.tile(np.array(PARTS), 11)]
    leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in x]
    f = function(op.name, [(v, Input(f"x{k}", v.type)) for k, v in enumerate(leaves)], [op(*leaves, **attrs)])
    program = load(planned(f))
    assert_native(program)
    (got,), (want,) = program.run(x, {}), evaluate_function(f, x)
    for a, b in ((got.real, want.real), (got.imag, want.imag)) if want.dtype.kind == "c" else ((got, want),):
        eps = (1e-14 if op.name == "pow" else 1e-15) if want.dtype.kind in "fc" else 0  # products are contracted
        scale = np.maximum(abs(want), 1e-300)  # of the whole number: a part may cancel
        with np.errstate(all="ignore"):
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (abs(a.astype("f8") - b) <= 4 * eps * scale))
        assert not wrong.any(), (x[0][wrong][:3], got[wrong][:3], want[wrong][:3])


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_complex_reductions_are_kernels(name):
    x = np.random.default_rng(2).normal(size=(3, 5)) + 1j
    for axes in ((0,), (1,), (0, 1)):
        leaf = fresh_input(TensorType(x.dtype, x.shape))
        program = load(planned(function(name, [(leaf, Input("x", leaf.type))], [lookup(name)(leaf * 2, axes=axes)])))
        assert_native(program)
        np.testing.assert_allclose(program.run([x], {})[0], getattr(np, name)(x * 2, axis=axes), rtol=1e-13)


# --- in loops ---------------------------------------------------------------------------------------------------------


def test_index_ops_in_a_loop_are_native_and_in_place():
    """Nothing in the body calls Python; the carry is updated where it lies."""
    x, i, y = sc.input("x", "float64", shape=("n", 4)), sc.input("i", "int64", shape=("t",)), sc.input("y", "float64",
                                                                                                      shape=("t", 4))

    def body(c, row):
        k, v = row
        c = c.at[k].add(sc.cumsum(sc.sort(v)))
        return c, c[k - 1] @ sc.digamma(v + 1)

    f = sc.compile(list(sc.scan(body, x, (i, y))), [x, i, y])
    inside = f.plan.split("body(")[1]
    assert "call " not in inside and "scatter" in inside and "in place" in inside, f.plan
    rng = np.random.default_rng(4)
    a, at, rows = rng.normal(size=(5, 4)), np.array([0, 4, -1, 0, 2]), rng.uniform(size=(5, 4))
    want, dots = a.copy(), []
    special = pytest.importorskip("scipy.special")
    for k, v in zip(at, rows, strict=True):
        want[k] += np.cumsum(np.sort(v))
        dots.append(want[k - 1] @ special.digamma(v + 1))
    got = f(a, at, rows)
    np.testing.assert_allclose(got[0], want, rtol=1e-14)
    np.testing.assert_allclose(got[1], dots, rtol=1e-12)
    with pytest.raises(IndexingError, match="index 5 is out of bounds for axis 0 of size 5"):
        f(a, np.array([0, 1, 2, 5, 0]), rows)


def test_a_loop_over_places_needs_no_checks():
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile(sc.fori_loop(1, x.shape[0], lambda t, c: c.at[t].add(c[t - 1]), x), [x])
    assert "check_index" not in f.source
    np.testing.assert_array_equal(f(np.arange(6.0)), np.cumsum(np.arange(6.0)))
    assert f(np.zeros(1)).tolist() == [0]
