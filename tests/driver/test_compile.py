"""compile, function objects, state, nests and jit: what a call accepts, returns and changes."""

import threading
import tracemalloc
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import symc as sc
from symc.ir.op import Op, register, unregister
from symc.runtime.cpu.kernels import compile_count

Point = namedtuple("Point", "x y")
MODES = ["reference", "default"]


@dataclass
class Layer:
    w: object
    b: object


@pytest.fixture
def failing():
    """An op that raises when it runs."""

    def reference(x):
        raise ValueError("told to fail")

    op = register(Op("fail_for_test", lambda t: t, reference))
    yield lambda x: sc.Tensor(op(x.value))
    unregister("fail_for_test")


# --- calling ----------------------------------------------------------------------------------------------------------


def test_deferred_sample_as_documented():
    from symc import Constant, Variable, compile

    A = Variable("A")
    B = Variable("B")
    C = B * A
    D = C + Constant(1)
    f = compile(D)
    d = f(A=np.ones(10), B=np.ones(10) * 2)
    assert isinstance(d, np.ndarray)
    assert d.tolist() == [3.0] * 10


def test_deferred_keeps_one_function_per_signature():
    A, B = sc.Variable("A"), sc.Variable("B", dtype="float32")
    f = sc.compile(A * B + 1, mode="reference")
    assert f(np.ones(3), [1, 2, 3]).tolist() == [2, 3, 4]
    f(np.ones(5), np.ones(5))
    assert len(f.variants) == 1
    assert f(np.ones((4, 1)), np.ones(3)).shape == (4, 3)  # a size of 1 broadcasts
    assert f(np.ones((4, 5)), np.ones(5)).shape == (4, 5)
    assert len(f.variants) == 3
    assert f(2.0, np.ones(2)).dtype == np.float32  # Python numbers promote as such
    assert f(np.float64(2.0), np.ones(2)).dtype == np.float64
    assert "func @f" in f.dump()


def test_deferred_mixes_with_typed_values_updates_and_givens():
    A, x = sc.Variable("A"), sc.vector("x")
    w = sc.shared(np.zeros(3), "w")
    f = sc.compile({"y": A + x}, updates={w: w + A}, mode="reference")
    assert f(np.ones(3), x=np.ones(3))["y"].tolist() == [2, 2, 2]
    assert w.get_value().tolist() == [1, 1, 1]
    g = sc.compile(A * 2, givens={A: x + 1}, mode="reference")
    assert g(np.ones(2)).tolist() == [4, 4]


@pytest.mark.parametrize("mode", MODES)
def test_position_keyword_and_mix(mode):
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(x - y, mode=mode)
    a, b = np.arange(3.0), np.ones(3)
    for got in (f(a, b), f(a, y=b), f(y=b, x=a), f(x=a, y=b), f({"y": b, "x": a})):
        assert got.tolist() == [-1, 0, 1]
    v, w = sc.Variable("v"), sc.Variable("w")
    assert sc.compile(v - w, mode=mode)({"v": a, "w": b}).tolist() == [-1, 0, 1]
    with pytest.raises(sc.InputError, match="no input 'z'"):
        f({"x": a, "z": b})


def test_inputs_are_found_in_order_of_creation():
    b, a = sc.scalar("b"), sc.scalar("a")
    f = sc.compile(a - b, mode="reference")
    assert [i.name for i in f.inputs] == ["b", "a"]
    assert f(1, 3) == 2


def test_inputs_may_be_nests():
    x = sc.vector("x")
    layer = Layer(sc.vector("w"), sc.vector("b"))
    f = sc.compile(x * layer.w + layer.b, [{"p": layer}, x], mode="reference")
    assert f({"p": Layer(np.full(2, 2.0), np.ones(2))}, [3, 4]).tolist() == [7, 9]
    g = sc.compile(x * layer.w + layer.b, {"data": x, "layer": layer}, mode="reference")
    assert g(layer=Layer([2, 2], [1, 1]), data=[3, 4]).tolist() == [7, 9]


@pytest.mark.parametrize(
    "nest",
    [
        lambda v: v,
        lambda v: (v,),
        lambda v: [v, v],
        lambda v: {"a": v, "b": [v, None]},
        lambda v: Point(v, (v,)),
        lambda v: Layer(v, None),
        lambda v: (),
    ],
)
def test_results_come_back_in_the_nest(nest):
    x = sc.vector("x")
    w = sc.shared(0, "w")
    f = sc.compile(nest(x + 1), [x], updates={w: w + 1}, mode="reference")
    got, want = f([1, 2]), nest(np.array([2.0, 3.0]))
    assert repr(got) == repr(want)
    assert type(got) is type(want)


def test_none_with_updates_and_numbers_as_outputs():
    w = sc.shared(1.0, "w")
    assert sc.compile(None, updates={w: w * 3}, mode="reference")() is None
    assert w.get_value() == 3
    assert sc.compile([2, np.arange(2)], mode="reference")()[1].tolist() == [0, 1]


@pytest.mark.parametrize("mode", MODES)
def test_zero_d_results_are_arrays(mode):
    x = sc.scalar("x")
    got = sc.compile((x, x + 1, x * 2.0), mode=mode)(3)
    assert all(type(g) is np.ndarray and g.shape == () and g.flags.writeable for g in got)
    assert [float(g) for g in got] == [3, 4, 6]


LAYOUTS = {
    "list": lambda a: a.tolist(),
    "integers": lambda a: a.astype("int64"),
    "float64": lambda a: a.astype("float64"),
    "big-endian": lambda a: a.astype(">f4"),
    "Fortran": lambda a: np.asfortranarray(a),
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "misaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), "u1")[1:].view("f4").reshape(a.shape),
    "read-only": lambda a: np.frombuffer(a.tobytes(), "f4").reshape(a.shape),
    "stride zero": lambda a: np.broadcast_to(a[:1], a.shape),
    "subclass": lambda a: np.asmatrix(a),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_converted_and_never_modified(layout, mode):
    x = sc.input("x", "float32", ("n", "m"))
    f = sc.compile((x * 2, x.sum()), mode=mode)
    given = LAYOUTS[layout](np.arange(6, dtype="f4").reshape(2, 3))
    before = np.array(given)
    doubled, total = f(given)
    assert type(doubled) is np.ndarray and doubled.dtype == np.float32
    np.testing.assert_array_equal(doubled, 2 * before.astype("f4"))
    assert total == before.sum()
    np.testing.assert_array_equal(np.asarray(given), before)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "complex64"])
def test_python_numbers_fit_the_dtype(dtype):
    x = sc.scalar("x", dtype)
    got = sc.compile(x, mode="reference")(True if dtype == "bool" else 7)
    assert got.dtype == dtype and got == (True if dtype == "bool" else 7)


def test_empty_list_has_no_dtype_of_its_own():
    assert sc.compile(sc.vector("x", "int32"), mode="reference")([]).dtype == np.int32


@pytest.mark.parametrize("mode", MODES)
def test_results_are_arrays_of_their_own(mode):
    x = sc.vector("x")
    w = sc.shared(np.ones(3), "w")
    c = sc.asarray(np.arange(3.0))
    y = x + 1
    f = sc.compile([x, y, y, w, w, c, x.reshape(1, 3), x[:2]], mode=mode)
    a = np.zeros(3)
    got = f(a)
    for k, g in enumerate(got):
        assert g.flags.writeable
        assert not any(np.shares_memory(g, o) for o in [a, w.get_value(borrow=True), *got[:k], *got[k + 1 :]])
    for g in got:
        g[...] = 77
    assert a.tolist() == [0, 0, 0] and w.get_value().tolist() == [1, 1, 1]
    assert f(a)[5].tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_one_function_serves_every_size(mode):
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(sc.exp(x) * y, mode=mode)
    assert f.compile_count <= len(f.kernels)
    compiled = compile_count()
    for n in range(50):
        np.testing.assert_allclose(f(np.zeros(n), np.arange(n)), np.arange(n))
    assert compile_count() == compiled


# --- out --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_out_is_written_and_returned(mode):
    x = sc.vector("x")
    f = sc.compile({"a": x + 1, "b": x}, mode=mode)
    a, b = np.empty(3), np.empty(6)[::2]
    got = f(np.arange(3.0), out={"a": a, "b": b})
    assert got["a"] is a and got["b"] is b
    assert a.tolist() == [1, 2, 3] and b.tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_out_may_be_an_argument(mode):
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(y + x[::-1], mode=mode)
    a = np.arange(4.0)
    f(a, np.ones(4), out=a)
    assert a.tolist() == [4, 3, 2, 1]


def test_a_call_with_out_allocates_no_arrays():
    x = sc.vector("x")
    w = sc.shared(np.zeros(100_000), "w")
    f = sc.compile(sc.exp(x * 2), updates={w: w * 0.9 + x})
    a, buffer = np.ones(100_000), np.empty(100_000)
    f(a, out=buffer)
    tracemalloc.start()
    try:
        f(a, out=buffer)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000
    np.testing.assert_allclose(buffer, np.exp(2))
    np.testing.assert_allclose(w.get_value(), 1.9)


def test_interleaved_buffers_do_not_overlap():
    x = sc.vector("x")
    both = np.empty(6)
    sc.compile((x, x + 1), mode="reference")([1, 2, 3], out=(both[::2], both[1::2]))
    assert both.tolist() == [1, 2, 2, 3, 3, 4]


# --- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_updates_happen_together(mode):
    a, b = sc.shared(np.array([1.0, 2.0]), "a"), sc.shared(np.array([3.0, 4.0]), "b")
    x = sc.vector("x")
    f = sc.compile((a, b), [x], updates={a: b + x, b: a}, mode=mode)
    first = f([10, 10])
    assert [r.tolist() for r in first] == [[1, 2], [3, 4]]
    assert a.get_value().tolist() == [13, 14] and b.get_value().tolist() == [1, 2]
    f([0, 0])
    assert a.get_value().tolist() == [1, 2] and b.get_value().tolist() == [13, 14]
    assert [r.tolist() for r in first] == [[1, 2], [3, 4]]  # what was returned does not change later


@pytest.mark.parametrize("mode", MODES)
def test_update_with_an_argument_does_not_keep_it(mode):
    w, x = sc.shared(np.zeros(2), "w"), sc.vector("x")
    f = sc.compile(None, updates={w: x}, mode=mode)
    a = np.ones(2)
    f(a)
    a[...] = 5
    assert w.get_value().tolist() == [1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_an_exception_leaves_the_old_state(mode, failing):
    w, v = sc.shared(np.arange(3.0), "w"), sc.shared(np.arange(3.0), "v")
    f = sc.compile(w * 2, updates={w: w + 1, v: failing(v + w)}, mode=mode)
    with pytest.raises(sc.ExecutionError, match="told to fail") as e:
        f()
    assert "test_compile.py" in str(e.value)
    assert w.get_value().tolist() == [0, 1, 2] and v.get_value().tolist() == [0, 1, 2]


def test_a_bad_argument_leaves_the_old_state():
    w, x = sc.shared(np.zeros(2), "w"), sc.vector("x")
    f = sc.compile(None, updates={w: w + x}, mode="reference")
    with pytest.raises(sc.ShapeError):
        f([1, 2, 3])
    assert w.get_value().tolist() == [0, 0]
    f([1, 2])
    assert w.get_value().tolist() == [1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_eight_threads_update_one_state(mode):
    w, x = sc.shared(np.zeros(16), "w"), sc.vector("x")
    f = sc.compile(w.sum(), updates={w: w + x}, mode=mode)
    wrong = []

    def work():
        for _ in range(50):
            if float(f(np.ones(16))) % 16:
                wrong.append("a half-made update was seen")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert w.get_value().tolist() == [400.0] * 16


@pytest.mark.parametrize("mode", MODES)
def test_eight_threads_without_state(mode):
    x = sc.vector("x")
    f = sc.compile(sc.exp(x) + x * 2, mode=mode)
    wrong = []

    def work(k):
        a = np.full(100 + k, float(k))
        for _ in range(50):
            if not np.allclose(f(a), np.exp(a) + 2 * a):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_get_and_set_copy_unless_borrowed():
    a = np.ones(3)
    w = sc.shared(a, "w")
    a[0] = 9
    got = w.get_value()
    got[1] = 9
    assert w.get_value().tolist() == [1, 1, 1]
    b = np.zeros(3)
    w.set_value(b, borrow=True)
    assert w.get_value(borrow=True) is b
    assert sc.shared(b, borrow=True).get_value(borrow=True) is b
    w.set_value([1, 2, 3])
    assert w.get_value().tolist() == [1, 2, 3] and w.dtype == np.float64


@pytest.mark.parametrize("mode", MODES)
def test_a_borrowed_state_may_be_an_argument(mode):
    w, x = sc.shared(np.ones(4), "w"), sc.vector("x")
    f = sc.compile(x.sum(), updates={w: w + x[::-1]}, mode=mode)
    w.set_value(np.arange(4.0))
    assert f(w.get_value(borrow=True)) == 6
    assert w.get_value().tolist() == [3, 3, 3, 3]


def test_symbolic_shape_of_a_state():
    w, x = sc.shared(np.ones(3), "w", shape=("n",)), sc.vector("x")
    f = sc.compile(w * x, mode="reference")
    assert f([1, 2, 3]).tolist() == [1, 2, 3]
    w.set_value(np.full(2, 2.0))
    assert f([1, 2]).tolist() == [2, 4]


def test_a_graph_keeps_its_state_alive():
    def build():
        return sc.shared(np.ones(2), "w") * 2

    assert sc.compile(build(), mode="reference")().tolist() == [2, 2]


def test_updates_are_cast_within_a_kind():
    w = sc.shared(np.zeros(2, "f4"), "w")
    sc.compile(None, updates={w: sc.asarray(np.ones(2, "f8")) * 0.5}, mode="reference")()
    assert w.get_value().dtype == np.float32 and w.get_value().tolist() == [0.5, 0.5]
    count = sc.shared(np.uint8(3), "count")
    sc.compile(None, updates={count: count + 1}, mode="reference")()
    assert count.get_value() == 4 and count.get_value().dtype == np.uint8


@pytest.mark.parametrize("mode", MODES)
def test_copy_with_other_state(mode):
    w, v = sc.shared(np.zeros(2), "w"), sc.shared(np.ones(2), "v")
    f = sc.compile(w + 1, updates={w: w + 1}, mode=mode)
    g = f.copy(swap={w: v})
    assert g().tolist() == [2, 2] and v.get_value().tolist() == [2, 2] and w.get_value().tolist() == [0, 0]
    assert f().tolist() == [1, 1] and w.get_value().tolist() == [1, 1] and v.get_value().tolist() == [2, 2]


@pytest.mark.parametrize("mode", MODES)
def test_donated_arguments_may_be_overwritten_but_others_are_not(mode):
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(x * 2 + y, donate=(x,), mode=mode)
    a, b = np.arange(3.0), np.ones(3)
    assert f(a, b).tolist() == [1, 3, 5]
    assert b.tolist() == [1, 1, 1]
    c = np.arange(3.0)
    assert f(c, c).tolist() == [0, 3, 6]  # the same array is also an argument that is not donated
    assert c.tolist() == [0, 1, 2]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert f(frozen, b).tolist() == [1, 3, 5]


# --- givens -----------------------------------------------------------------------------------------------------------


def test_givens_replace_inputs_states_and_computed_values():
    x, y = sc.vector("x"), sc.vector("y")
    w = sc.shared(np.ones(2), "w")
    z = x * w
    f = sc.compile(z + 1, givens={x: y * 2}, mode="reference")
    assert [i.name for i in f.inputs] == ["y"] and f([1, 2]).tolist() == [3, 5]
    g = sc.compile(z + 1, givens={w: y}, mode="reference")
    assert g(x=[1, 2], y=[3, 4]).tolist() == [4, 9]
    h = sc.compile(z + 1, givens={z: np.array([5, 6])}, mode="reference")
    assert h().tolist() == [6, 7]


def test_givens_are_simultaneous():
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(x - y, [x, y], givens={x: y, y: x}, mode="reference")
    assert f([5, 5], [1, 2]).tolist() == [-4, -3]


def test_sizes_of_given_values_are_checked_in_a_call():
    x, y, z = sc.vector("x"), sc.vector("y"), sc.vector("z")
    f = sc.compile(x + z, givens={x: y}, mode="reference")
    assert f(z=[1, 2], y=[1, 2]).tolist() == [2, 4]
    with pytest.raises(sc.ShapeError, match=r"y.shape\[0\] = 3 must equal z.shape\[0\] = 2"):
        f(z=[1, 2], y=[1, 2, 3])
    g = sc.compile(x + z, givens={x: np.ones(2)}, mode="reference")
    with pytest.raises(sc.ShapeError, match=r"z.shape\[0\] = 3 must equal 2"):
        g([1, 2, 3])


# --- modes and views --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["default", "reference", "fast_compile", "debug", "nan_guard"])
def test_every_mode_gives_the_same(mode):
    x = sc.matrix("x")
    w = sc.shared(np.arange(3.0), "w")
    f = sc.compile({"s": sc.tanh(x @ w).sum()}, updates={w: w * 0.5}, mode=mode)
    a = np.arange(6.0).reshape(2, 3) / 10
    assert np.allclose(f(a)["s"], np.tanh(a @ np.arange(3.0)).sum())
    assert w.get_value().tolist() == [0, 0.5, 1]
    assert np.allclose(f(a)["s"], np.tanh(a @ np.arange(3.0) / 2).sum())


UNARY = [
    sc.exp, sc.tanh, sc.sin, lambda a: -a, lambda a: a[::-1], lambda a: sc.sqrt(sc.abs(a) + 1), lambda a: a - a.max(),
    lambda a: sc.cumsum(a, axis=0), lambda a: sc.softmax(a, axis=-1), lambda a: a.sum(0, keepdims=True) * a,
]  # fmt: skip
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    sc.maximum,
    lambda a, b: sc.where(a > b, a, b),
    lambda a, b: a / (sc.abs(b) + 1),
]


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_with_state_gradients_and_donation(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.choice([1, 2, 3, 5], 2))
    x, w = sc.matrix("x"), sc.shared(rng.normal(size=shape), "w")
    pool = [x, w, x * w]
    for _ in range(rng.integers(3, 12)):
        a, b = (pool[k] for k in rng.integers(len(pool), size=2))
        k = rng.integers(len(UNARY) + len(BINARY))
        pool.append(UNARY[k](a) if k < len(UNARY) else BINARY[k - len(UNARY)](a, b))
    gradients = sc.grad(pool[-1].sum(), [x, w], disconnected="zero")
    f = sc.compile(
        (pool[-2:], gradients), [x], updates={w: pool[-3] * 0.5}, donate=[x] if seed % 2 else [], mode="debug"
    )
    for _ in range(2):
        f(rng.normal(size=shape))  # raises where any pass, the plan or the backend differs from the reference


def test_failures_of_the_backend_are_internal_errors_with_text(cold, monkeypatch):
    from symc.driver import stages

    x = sc.vector("x")
    f = sc.compile(x + 1)

    def broken(*args, **kwargs):
        raise ZeroDivisionError("told to fail")

    monkeypatch.setattr(stages, "make_plan", broken)
    with pytest.raises(sc.InternalError, match="compiling f failed: ZeroDivisionError: told to fail") as e:
        sc.compile(x + 1)
    assert sc.parse(e.value.text).body is f._compilation.final.body and "test_compile.py:" in str(e.value)
    f._call_path.run = broken
    with pytest.raises(sc.InternalError, match="f: ZeroDivisionError: told to fail") as e:
        f([1])
    assert sc.parse(e.value.text).body is f._compilation.final.body and "test_compile.py:" in str(e.value)


def test_nan_guard_names_the_first_op_and_keeps_state():
    x = sc.vector("x")
    w = sc.shared(1.0, "w")
    y = sc.log(x) * 2
    f = sc.compile(y + 1, updates={w: w + 1}, mode="nan_guard")
    f([1, 2])
    with pytest.raises(sc.NonFiniteError, match=r"log gives -inf at index \(1,\)") as e:
        f([1, 0])
    assert "y = sc.log(x) * 2" in str(e.value) and "[0, 1]" in str(e.value)
    assert w.get_value() == 2
    with pytest.raises(sc.NonFiniteError, match="the input x holds nan"):
        f([1, np.nan])


def test_nan_guard_looks_into_loops_and_branches():
    x = sc.vector("x")

    def step(c, v):
        w = sc.cond(v < 2, lambda: sc.log(v), lambda: v)
        return c + w, w

    f = sc.compile(sc.scan(step, 0.0, x), mode="nan_guard")
    f([1, 3])
    with pytest.raises(sc.NonFiniteError, match=r"log gives nan\n.*\[-1, -1\]") as e:
        f([1, 2, -1])
    assert "w = sc.cond(v < 2, lambda: sc.log(v), lambda: v)" in str(e.value)


def test_dump_parses_back_and_stages_are_text():
    x = sc.vector("x")
    f = sc.compile(sc.exp(x) + 1)
    assert sc.parse(f.dump()).body is f._compilation.final.body
    assert str(f) == f.dump()
    assert next(iter(f.stages)) == "input"
    assert f.dump("input") == f.stages["input"]


def test_plan_source_kernels_and_memory():
    a, b = sc.input("A", "float64", ("n",)), sc.input("B", "float64", ("n",))
    f = sc.compile(a * b + 1)
    assert f.plan.startswith("plan @f(")
    assert int(f.memory(n=10)) == 240 == int(f.memory(np.ones(10), np.ones(10)))
    assert f.memory(n=10).lower_bound == 240
    assert len(f.kernels) == 1 and "def " in f.source


def test_trace_names_intermediates_and_keeps_state():
    x = sc.vector("x")
    w = sc.shared(np.ones(2), "w")
    hidden = sc.tanh(x * w)
    total = hidden.sum()
    f = sc.compile(total * 2, updates={w: w + 1})
    found = f.trace([0, 1])
    np.testing.assert_allclose(found["hidden"], np.tanh([0, 1]))
    np.testing.assert_allclose(found["total"], np.tanh(1))
    assert found["x"].tolist() == [0, 1] and w.get_value().tolist() == [1, 1]


def test_trace_stacks_what_loops_compute():
    x = sc.matrix("x")

    def step(h, row):
        hidden = sc.tanh(h @ x + row)
        kept = sc.cond(hidden[0] > 0, lambda: hidden * 2, lambda: hidden)
        return kept, hidden.sum()

    hidden = x * 2
    found = sc.compile([sc.scan(step, sc.zeros(2), x), hidden], [x]).trace([[1, 0], [-3, 1]])
    h, steps = np.zeros(2), []
    for row in found["x"]:
        steps.append(np.tanh(h @ found["x"] + row))
        h = steps[-1] * 2 if steps[-1][0] > 0 else steps[-1]
    (both,) = [k for k in found if k.startswith("hidden (")]
    np.testing.assert_allclose(found["hidden"], found["x"] * 2)
    np.testing.assert_allclose(found[both], steps)
    np.testing.assert_allclose(found["kept"][-1], h)


@pytest.mark.parametrize("mode", MODES)
def test_profile_has_a_row_per_step_with_its_line(mode):
    x = sc.vector("x")
    w = sc.shared(np.ones(1000), "w")
    y = sc.exp(x) * w
    f = sc.compile(y, updates={w: w + 1}, mode=mode)
    rows = f.profile(np.ones(1000))
    (row,) = [r for r in rows if "exp" in r[0]]
    assert row[1] > 0 and row[2] == (8000 if mode == "reference" else 16000) and "test_compile.py:" in row[3]
    assert row[0] in str(rows)
    assert (w.get_value() == 1).all()


def test_a_plan_is_lowered_once(monkeypatch):
    x = sc.vector("x")
    f = sc.compile(sc.exp(x).cumsum() + sc.exp(x))
    program, lowered = f._program, []
    lower = program.lower
    monkeypatch.setattr(program, "lower", lambda: lowered.append(1) or lower())
    for n in range(200):
        np.testing.assert_allclose(f(np.ones(n)), np.e * (np.arange(n) + 2))
    assert lowered == [1]


def test_explain_shows_rules_with_lines():
    x = sc.vector("x")
    y = sc.log(sc.exp(x) + 1)
    f = sc.compile(y * 1)
    assert "test_compile.py:" in f.explain()
    assert "softplus" in f.explain(y) and "softplus" in f.dump()
    assert "did not fire" in f.why_not("exp_of_log") or "fired" in f.why_not("exp_of_log")
    assert "pass fuse ran" in f.why_not("fuse")
    with pytest.raises(sc.PipelineError, match="no rule, pass or op is called 'fuze'") as e:
        f.why_not("fuze")
    assert "did you mean 'fuse'?" in str(e.value) and "test_compile.py:" in str(e.value)


def test_pictures(tmp_path):
    x = sc.vector("x")
    f = sc.compile((sc.exp(x) + 1).sum(), name="pic")
    graph = f.to_networkx()
    assert graph.nodes["x"]["op"] == "arg" and any(d["op"] == "result" for _, d in graph.nodes(data=True))
    reference = sc.compile((sc.exp(x) + 1).sum(), mode="reference")
    ops = {d["op"] for _, d in reference.to_networkx().nodes(data=True)}
    assert {"exp", "add", "sum"} <= ops
    dot = reference.to_dot()
    assert dot.startswith('digraph "f" {') and dot.count("->") == reference.to_networkx().number_of_edges()
    f.to_html(tmp_path / "f.html")
    assert "<svg" in (tmp_path / "f.html").read_text()


def test_pictures_of_loops_say_what_is_in_them():
    x = sc.input("x", "float64", ("n", "k"))
    body = lambda h, r: (sc.cond(sc.sum(h) > 0, lambda: sc.tanh(h @ w) + r, lambda: r), None)
    w = sc.input("w", "float64", ("k", "k"))
    labels = [d["label"] for _, d in sc.compile(sc.scan(body, x[0], x)[0]).to_networkx().nodes(data=True)]
    (loop,) = [t for t in labels if t.startswith("scan")]
    assert "cond{" in loop and "tanh" in loop and "dot" in loop



def test_deep_graphs_compile_and_run():
    x = h = sc.vector("x")
    for _ in range(5000):
        h = h + x
    f = sc.compile(h, mode="reference")
    assert f([1, 2]).tolist() == [5001, 10002]


# --- jit --------------------------------------------------------------------------------------------------------------


def test_jit_traces_once_per_signature():
    traces = []

    @sc.jit(mode="reference")
    def g(x, y):
        traces.append(1)
        return {"z": np.exp(x) * y, "n": None}

    assert g(np.zeros(3), np.ones(3))["z"].tolist() == [1, 1, 1]
    g(np.zeros(9), np.ones(9))
    assert len(traces) == 1
    assert g(np.zeros(3, "f4"), 2.0)["z"].dtype == np.float32
    g(np.zeros(4, "f4"), 3.0)
    assert len(traces) == 2 and len(g.variants) == 2


def test_jit_nests_keywords_defaults_and_static():
    @sc.jit(static=("axis",), mode="reference")
    def g(p, x, *, axis=0, flip=False):
        y = (x * p["w"] + p["b"]).sum(axis)
        return -y if flip else y

    p = {"w": np.full(3, 2.0), "b": 1.0}
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(g(p, x), (x * 2 + 1).sum(0))
    np.testing.assert_array_equal(g(p, x=x, axis=1), (x * 2 + 1).sum(1))
    np.testing.assert_array_equal(g(x=x, p=p, flip=True), -(x * 2 + 1).sum(0))
    assert len(g.variants) == 3


def test_jit_inside_a_graph_is_the_function_itself():
    @sc.jit
    def g(x):
        return x * 2

    x = sc.vector("x")
    assert sc.compile(g(x) + 1, mode="reference")([1]).tolist() == [3]


def test_jit_as_a_method():
    class Model:
        scale = 3.0

        @sc.jit(mode="reference")
        def __call__(self, x):
            return x * self.scale

    assert Model()(np.ones(2)).tolist() == [3, 3]
