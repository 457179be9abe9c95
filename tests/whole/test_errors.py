"""The words of every error: what a user's mistake says, with the user's own lines.

Each function below makes one mistake; its whole message is in ``errors_golden.txt`` (line numbers are left out: the
source line stands beside them). ``python tests/whole/test_errors.py`` writes that file anew; read the difference.
"""

import re
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest

import symc as sc

GOLDEN = Path(__file__).with_name("errors_golden.txt")
CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


# --- while the graph is built -----------------------------------------------------------------------------------------


@case
def shapes_of_operands_differ():
    x = sc.input("x", "f32", ("n", 784))
    b = sc.shared(np.zeros(10, "f4"), "b")
    x + b


@case
def matmul_of_wrong_sizes():
    x = sc.input("x", "f64", ("n", 3))
    w = sc.input("w", "f64", (4, 5))
    x @ w


@case
def labels_of_axes_differ():
    x = sc.input("x", "f64", ("n", 3), dims=("batch", "feature"))
    w = sc.input("w", "f64", (3,), dims="pixel")
    x * w


@case
def labels_of_a_sum_differ():
    x = sc.input("x", "f64", ("n", 3), dims=("batch", "feature"))
    w = sc.input("w", "f64", (3, 2), dims=("pixel", "class"))
    x @ w


@case
def label_that_is_not_there():
    x = sc.input("x", "f64", ("n", 3), dims=("batch", "feature"))
    x.sum(axis="time")


@case
def labels_for_other_axes():
    sc.input("x", "f64", ("n", 3), dims=("batch", "feature", "time"))


@case
def sparse_jacobian_of_unknown_sizes():
    x = sc.vector("x")
    sc.sparse.jacobian(x**2, x)


@case
def sparse_hessian_that_is_dense():
    x = sc.input("x", "f64", (100_000,))
    sc.sparse.hessian(x.sum() ** 2, x)


@case
def bitwise_and_of_floats():
    x = sc.vector("x")
    x & 1


@case
def subtraction_of_booleans():
    x = sc.vector("x", "bool")
    x - x


@case
def number_that_does_not_fit():
    x = sc.vector("x", "uint8")
    x + 300


@case
def truth_of_a_value():
    x = sc.scalar("x")
    if x > 0:
        return


@case
def float_of_a_value():
    x = sc.scalar("x")
    float(x)


@case
def index_of_a_value():
    x = sc.scalar("x", "int64")
    range(x)


@case
def iteration_over_an_unknown_length():
    x = sc.vector("x")
    for _ in x:
        pass


@case
def length_that_is_not_known():
    x = sc.vector("x")
    len(x)


@case
def array_of_a_value():
    x = sc.vector("x")
    np.asarray(x)


@case
def assignment_to_an_element():
    x = sc.vector("x")
    x[0] = 1


@case
def number_of_a_size():
    x = sc.input("x", "f64", ("n",))
    range(x.shape[0])


@case
def equality_of_a_size():
    x = sc.input("x", "f64", ("n",))
    if x.shape[0] % 2 == 0:
        return


@case
def equality_of_shapes():
    x, y = sc.input("x", "f64", ("n", 3)), sc.input("y", "f64", ("m", 3))
    if x.shape == y.shape:
        return


@case
def order_of_sizes():
    x = sc.input("x", "f64", ("n", 3))
    max(x.shape)


@case
def size_as_a_key():
    x = sc.input("x", "f64", ("n",))
    {1: "row", 2: "pair"}.get(x.shape[0])


@case
def size_divided_by_nothing():
    x, y = sc.input("x", "f64", ("n",)), sc.input("y", "f64", ("m",))
    sc.compile(sc.zeros(x.shape[0] // y.shape[0]), [x, y], mode="reference")(np.zeros(3), np.zeros(0))


@case
def size_beyond_64_bits():
    sc.broadcast_to(sc.scalar("x"), (2**64,))


@case
def size_beyond_64_bits_in_a_call():
    x = sc.input("x", "f64", ("n",))
    sc.compile(sc.arange(x.shape[0] * 2**62), [x], mode="reference")(np.zeros(3))


@case
def truth_of_a_deferred_value():
    A = sc.Variable("A")
    bool(A > 1)


@case
def index_out_of_bounds():
    x = sc.input("x", "f64", (3,))
    x[5]


@case
def too_many_indices():
    x = sc.vector("x")
    x[0, 1]


@case
def index_of_a_wrong_kind():
    x = sc.vector("x")
    x["a"]


@case
def float_index():
    x = sc.vector("x")
    x[1.5]


@case
def axis_out_of_range():
    x = sc.matrix("x")
    x.sum(axis=2)


@case
def axis_twice():
    x = sc.matrix("x")
    sc.sum(x, axis=(0, 0))


@case
def reshape_to_another_size():
    x = sc.input("x", "f64", (2, 3))
    x.reshape(4, 2)


@case
def concatenation_of_different_sizes():
    x = sc.input("x", "f64", (2, 3))
    y = sc.input("y", "f64", (2, 4))
    sc.concatenate([x, y])


@case
def stacking_of_different_shapes():
    x = sc.input("x", "f64", (2,))
    y = sc.input("y", "f64", (3,))
    sc.stack([x, y])


@case
def broadcast_to_another_size():
    x = sc.input("x", "f64", (3,))
    sc.broadcast_to(x, (2, 4))


@case
def transpose_with_wrong_axes():
    x = sc.matrix("x")
    x.transpose(0, 0)


@case
def einsum_with_too_few_operands():
    x = sc.matrix("x")
    sc.einsum("ij,jk->ik", x)


@case
def dtype_that_is_not_supported():
    sc.vector("x", "datetime64[s]")


@case
def dtype_that_does_not_exist():
    sc.vector("x", "float31")


@case
def array_of_strings():
    x = sc.vector("x")
    x + np.array(["a"])


@case
def operand_that_is_no_value():
    x = sc.vector("x")
    sc.add(x, {"a": 1})


@case
def input_without_a_name():
    sc.input(3, "f64", (2,))


@case
def input_with_a_negative_size():
    sc.input("x", "f64", (-2,))


@case
def input_with_a_bad_size_name():
    sc.input("x", "f64", ("n-1",))


@case
def vector_with_two_axes():
    sc.vector("x", shape=(2, 3))


@case
def inverse_of_a_matrix_that_is_not_square():
    np.linalg.inv(sc.input("x", "f64", (2, 3)))


@case
def vectors_in_the_last_axis_of_right_sides():
    np.linalg.solve(sc.input("a", "f64", (3, 3)), sc.input("b", "f64", (10, 3)))


# --- derivatives ------------------------------------------------------------------------------------------------------


@case
def gradient_of_a_vector():
    x = sc.vector("x")
    y = x * 2
    sc.grad(y, x)


@case
def gradient_with_respect_to_integers():
    n = sc.vector("n", "int64")
    cost = (n * 2.0).sum()
    sc.grad(cost, n)


@case
def gradient_that_is_disconnected():
    x, y = sc.vector("x"), sc.vector("y")
    cost = (x * 2).sum()
    sc.grad(cost, y)


@case
def gradient_through_a_comparison():
    x = sc.vector("x")
    mask = x > 0
    cost = mask.astype("f8").sum()
    sc.grad(cost, x)


@case
def gradient_with_respect_to_no_value():
    x = sc.vector("x")
    sc.grad(x.sum(), "x")


# --- compile ----------------------------------------------------------------------------------------------------------


@case
def unknown_mode():
    x = sc.vector("x")
    sc.compile(x, mode="referense")


@case
def unknown_backend():
    x = sc.vector("x")
    sc.compile(x, backend="nunba")


@case
def backend_of_a_mode_without_kernels():
    x = sc.vector("x")
    sc.compile(x, mode="reference", backend="numba")


@case
def backend_of_a_device():
    x = sc.vector("x")
    sc.compile(x, device="cuda", backend="llvm")


@case
def memory_of_a_backend_without_a_plan():
    x = sc.vector("x", shape=("n",))
    sc.compile(x + 1, backend="numpy").memory(n=3)


@case
def budget_of_a_backend_without_a_plan():
    x = sc.vector("x", shape=("n",))
    sc.compile(x + 1, backend="numpy", max_bytes=("1 MB", {"n": 10}))


@case
def unknown_device():
    x = sc.vector("x")
    sc.compile(x, device="gpu")


@case
def no_threads():
    x = sc.vector("x")
    sc.compile(x, threads=0)


@case
def unknown_pass():
    x = sc.vector("x")
    sc.compile(x + 1, pipeline="canonicalise,fold")


@case
def output_that_is_no_value():
    x = sc.vector("x")
    sc.compile({"y": x, "name": "loss"})


@case
def function_in_place_of_a_value():
    sc.compile(lambda x: x + 1)


@case
def shape_in_place_of_a_dtype():
    sc.input("x", (3, 4))


@case
def name_of_another_module():
    sc.Adam(1e-3)


@case
def nothing_to_compile():
    sc.compile([])


@case
def input_is_missing():
    rate, x = sc.scalar("rate"), sc.vector("x")
    ratio = sc.scalar("ratio")
    sc.compile(x * rate, [x, ratio])


@case
def input_is_listed_twice():
    x = sc.vector("x")
    sc.compile(x, [x, x])


@case
def input_is_computed():
    x = sc.vector("x")
    y = x + 1
    sc.compile(y * 2, [y])


@case
def input_is_shared():
    w = sc.shared(np.ones(3), "w")
    sc.compile(w * 2, [w])


@case
def input_is_no_value():
    x = sc.vector("x")
    sc.compile(x, ["x"])


@case
def inputs_of_a_wrong_kind():
    x = sc.vector("x")
    sc.compile(x, 5)


@case
def donated_thing_is_no_value():
    x = sc.vector("x")
    sc.compile(x, donate="x")


@case
def pipeline_of_a_wrong_kind():
    x = sc.vector("x")
    sc.compile(x, pipeline=["fold"])


@case
def update_to_no_value():
    w = sc.shared(0.0, "w")
    sc.compile(None, updates={w: "zero"})


@case
def size_is_unknown():
    ones = sc.ones(sc.input("x", "f64", ("of_nothing",)).shape[0])
    sc.compile(ones)


@case
def size_of_several_inputs():
    x, y = sc.input("x", "f64", ("a_size",)), sc.input("y", "f64", ("a_size", 2))
    sc.compile(sc.ones(x.shape[0]))
    sc.sum(y)


@case
def update_of_an_input():
    x = sc.vector("x")
    sc.compile(x, updates={x: x + 1})


@case
def update_of_another_shape():
    w = sc.shared(np.zeros((2, 3)), "w")
    sc.compile(None, updates={w: w.sum(0)})


@case
def update_of_another_dtype():
    count = sc.shared(0, "count")
    sc.compile(None, updates={count: count + 0.5})


@case
def update_given_twice():
    w = sc.shared(0.0, "w")
    sc.compile(None, updates=[(w, w + 1), (w, w + 2)])


@case
def updates_of_a_wrong_kind():
    w = sc.shared(0.0, "w")
    sc.compile(w, updates=[w])


@case
def given_value_of_another_dtype():
    x = sc.vector("x", "float32")
    sc.compile(x * 2, givens={x: np.array([1j])})


@case
def given_value_of_another_rank():
    x, y = sc.vector("x"), sc.matrix("y")
    sc.compile(x * 2, givens={x: y})


@case
def donated_value_is_no_input():
    x = sc.vector("x")
    sc.compile(x * 2, donate=(x * 2,))


@case
def shared_of_a_string():
    sc.shared("weights")


@case
def shared_of_a_symbolic_value():
    x = sc.vector("x")
    sc.shared(x * 2, "w")


@case
def set_value_of_another_shape():
    w = sc.shared(np.zeros((2, 3)), "w")
    w.set_value(np.zeros(3))


@case
def set_value_of_another_dtype():
    w = sc.shared(np.zeros(3, "int32"), "w")
    w.set_value([0.5, 1, 2])


@case
def swap_for_another_type():
    w, v = sc.shared(np.zeros(3), "w"), sc.shared(np.zeros(2), "v")
    sc.compile(w * 2, mode="reference").copy(swap={w: v})


# --- calls ------------------------------------------------------------------------------------------------------------


def two_inputs(**options):
    x = sc.input("x", "f64", ("n",))
    weight = sc.input("weight", "f64", ("n",))
    return sc.compile(x * weight, name="model", mode="reference", **options)


@case
def argument_is_missing():
    two_inputs()(np.ones(3))


@case
def argument_is_unknown():
    two_inputs()(np.ones(3), wieght=np.ones(3))


@case
def argument_is_given_twice():
    two_inputs()(np.ones(3), np.ones(3), x=np.ones(3))


@case
def too_many_arguments():
    two_inputs()(1, 2, 3)


@case
def argument_of_another_rank():
    two_inputs()(np.ones((3, 1)), np.ones(3))


@case
def sizes_of_arguments_disagree():
    two_inputs()(np.ones(3), np.ones(4))


@case
def declared_size_differs():
    x = sc.input("x", "f64", ("n", 784))
    f = sc.compile(x.sum(1), mode="reference")
    f(np.ones((2, 28)))


@case
def guard_does_not_hold():
    x, w = sc.vector("x"), sc.vector("w")
    v = x * 2
    q = sc.exp(v) * w
    f = sc.compile(q, mode="reference")
    f(np.ones(3), np.ones(4))


@case
def size_of_one_is_not_broadcast():
    x, w = sc.vector("x"), sc.vector("w")
    f = sc.compile(x * w, mode="reference")
    f(np.ones(1), np.ones(4))


@case
def size_is_not_of_the_form():
    n = sc.input("n", "f64", ("n",)).shape[0]
    x = sc.input("x", "f64", (2 * n + 1,))
    f = sc.compile(x, mode="reference")
    f(np.ones(4))


@case
def guard_with_a_state():
    x = sc.vector("x")
    w = sc.shared(np.ones(3), "w")
    y = x * w
    sc.compile(y, mode="reference")(np.ones(2))


@case
def float_for_an_integer():
    i = sc.vector("i", "int64")
    sc.compile(i, mode="reference")(np.ones(3))


@case
def complex_for_a_float():
    x = sc.vector("x")
    sc.compile(x, mode="reference")([1j])


@case
def integer_out_of_range():
    i = sc.vector("i", "uint8")
    sc.compile(i, mode="reference")([1, 300])


@case
def string_for_a_number():
    two_inputs()("3", np.ones(3))


@case
def none_for_a_number():
    two_inputs()(None, np.ones(3))


@case
def symbolic_value_in_a_call():
    x = sc.vector("other")
    two_inputs()(x, np.ones(3))


@case
def ragged_list():
    two_inputs()([[1, 2], [3]], np.ones(3))


@case
def array_of_objects():
    two_inputs()(np.array([None, 1]), np.ones(2))


@case
def masked_array():
    two_inputs()(np.ma.masked_array([1.0, 2.0], [0, 1]), np.ones(2))


@case
def nest_of_another_structure():
    w, b = sc.vector("w"), sc.vector("b")
    f = sc.compile(w + b, [{"w": w, "b": b}], mode="reference")
    f({"w": [1], "bias": [2]})


@case
def out_of_another_shape():
    two_inputs()(np.ones(3), np.ones(3), out=np.empty(4))


@case
def out_of_another_dtype():
    two_inputs()(np.ones(3), np.ones(3), out=np.empty(3, "f4"))


@case
def out_that_is_read_only():
    buffer = np.empty(3)
    buffer.flags.writeable = False
    two_inputs()(np.ones(3), np.ones(3), out=buffer)


@case
def out_that_is_no_array():
    two_inputs()(np.ones(3), np.ones(3), out=[1, 2, 3])


@case
def out_buffers_overlap():
    x = sc.vector("x")
    f = sc.compile((x, x + 1), mode="reference")
    buffer = np.empty(3)
    f(np.ones(3), out=(buffer, buffer))


@case
def deferred_argument_is_missing():
    A, B = sc.Variable("A"), sc.Variable("B")
    f = sc.compile(A * B, mode="reference")
    f(A=np.ones(3))


@case
def deferred_shapes_differ():
    A, B = sc.Variable("A"), sc.Variable("B")
    C = A @ B
    f = sc.compile(C, mode="reference")
    f(np.ones((2, 3)), np.ones((4, 5)))


@case
def deferred_dtypes_do_not_fit():
    A = sc.Variable("A")
    C = ~A
    f = sc.compile(C, mode="reference")
    f(np.ones(3))


@case
def deferred_function_before_its_first_call():
    f = sc.compile(sc.Variable("A") * 2)
    f.dump()


@case
def jit_of_wrong_arguments():
    @sc.jit
    def g(x, y):
        return x + y

    g(1.0)


@case
def jit_with_a_branch_on_data():
    @sc.jit(mode="reference")
    def g(x):
        return x if x.sum() > 0 else -x

    g(np.ones(3))


@case
def jit_that_writes_to_an_argument():
    @sc.jit(mode="reference")
    def g(x):
        x[0] = 1
        return x

    g(np.ones(3))


@case
def jit_that_adds_to_an_argument():
    @sc.jit(mode="reference")
    def g(x, y):
        row = x[0]
        row += y
        return x

    g(np.ones((3, 2)), 1.0)


@case
def jit_that_writes_to_an_array_of_numpy():
    from numpy import zeros

    @sc.jit(mode="reference")
    def g(x):
        out = zeros(3)
        out[0] = x[0]
        return out

    g(np.ones(3))


@case
def jit_that_adds_to_an_array_of_numpy():
    from numpy import zeros

    @sc.jit(mode="reference")
    def g(x):
        out = zeros(3)
        out += x
        return out

    g(np.ones(3))


@case
def jit_with_an_array_that_may_share_memory():
    @sc.jit(mode="reference")
    def g(x):
        y = np.copy(x)
        flat = y.ravel()
        flat[0] = 1
        return y + 1

    g(np.ones((3, 2)))


@case
def jit_of_a_loop_that_writes_outside():
    @sc.jit(mode="reference")
    def g(x):
        hits = np.full(1, 271.0)  # no other program has it, and a line of its own

        def step(carry, row):
            hits[0] += 1
            return carry + row, row

        return sc.scan(step, 0.0, x), hits

    g(np.ones(3))


@case
def jit_that_adds_floats_to_integers():
    @sc.jit(mode="reference")
    def g(x):
        x = x.copy()
        x += 0.5
        return x

    g(np.arange(3))


@case
def jit_of_an_iterator():
    @sc.jit(mode="reference")
    def g(x, names):
        return x

    g(np.ones(3), iter(["a"]))


@case
def jit_of_a_value():
    sc.jit(sc.vector("x"))


@case
def nan_is_guarded():
    x = sc.vector("x")
    y = sc.log(x - 1)
    f = sc.compile(y.sum(), mode="nan_guard")
    f([2.0, 0.5])


@case
def stage_that_does_not_exist():
    two_inputs().dump("inputs")


@case
def plan_of_the_reference():
    two_inputs().plan


@case
def memory_of_an_unknown_size():
    x = sc.input("x", "f64", ("n",))
    sc.compile(x + 1).memory(m=3)


@case
def memory_without_a_size():
    x = sc.input("x", "f64", ("n",))
    sc.compile(x + 1).memory()


@case
def file_that_was_not_saved():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.symc"
        path.write_text("hello")
        sc.load(path)


@case
def singular_matrix():
    a, b = sc.matrix("a"), sc.vector("b")
    f = sc.compile(np.linalg.solve(a, b), [a, b])
    f(np.ones((2, 2)), np.ones(2))


@case
def covariance_that_is_not_positive_definite():
    a = sc.matrix("a")
    low = np.linalg.cholesky(a)
    sc.compile(sc.log(sc.linalg.diagonal(low)).sum(), [a])(-np.eye(2))


# --- batches, debugging, ops ------------------------------------------------------------------------------------------


@case
def vmap_over_different_sizes():
    x = sc.input("x", "f64", (2, 3))
    y = sc.input("y", "f64", (4, 3))
    sc.vmap(lambda a, b: a * b)(x, y)


@case
def vmap_along_an_axis_that_is_not_there():
    x = sc.input("x", "f64", ("n", 3))
    sc.vmap(lambda row: row, in_axes=2)(x)


@case
def vmap_whose_function_is_wrong():
    x = sc.input("x", "f64", ("n", 3))
    sc.vmap(lambda row: row + np.ones(2))(x)


@case
def debug_assertion():
    x = sc.vector("x")
    y = sc.sqrt(sc.debug.assert_(x, x >= 0, "no roots of negative numbers", total=x.sum()))
    sc.compile(y)([1.0, -2.0, 4.0])


@case
def debug_format_that_does_not_fit():
    x = sc.vector("x")
    sc.debug.print(x, "{} {other}")


@case
def op_without_its_attribute():
    @sc.op
    def shifted(x, *, by):
        return x + by

    shifted(sc.vector("x"))


@case
def function_op_whose_derivative_misses_something():
    x, w = sc.vector("x"), sc.vector("w")

    @sc.function_op(vjp=lambda g, x: g)
    def scaled(x):
        return x * w

    scaled(x)


# --- text -------------------------------------------------------------------------------------------------------------


def parse(body, head="func @f(%x: f64[n]) -> (f64[n])"):
    sc.parse(f"{head} {{\n{body}\n}}\n")


@case
def text_with_an_unexpected_character():
    parse("  %0 = exp %x : f64[n] ?\n  return %0")


@case
def text_with_an_unknown_op():
    parse("  %0 = expp %x : f64[n]\n  return %0")


@case
def text_with_an_undefined_name():
    parse("  %0 = exp %y : f64[n]\n  return %0")


@case
def text_with_a_wrong_type():
    parse("  %0 = exp %x : f32[n]\n  return %0")


@case
def text_with_operands_that_do_not_fit():
    parse("  %0 = add %x, 1.0:f64[3] : f64[n]\n  return %0")


@case
def text_that_defines_a_name_twice():
    parse("  %0 = exp %x : f64[n]\n  %0 = log %x : f64[n]\n  return %0")


@case
def text_with_a_dtype_that_does_not_exist():
    parse("  return %x", "func @f(%x: f63[n]) -> (f64[n])")


@case
def text_with_a_number_of_another_dtype():
    parse("  %0 = add %x, 1.5:i64[n] : f64[n]\n  return %0")


@case
def text_without_an_end():
    sc.parse("func @f(%x: f64[n]) -> (f64[n]) {\n  return %x\n")


@case
def text_whose_head_disagrees():
    parse("  return %x, %x")


@case
def text_with_an_update_of_no_input():
    parse("  return %x update (%w = %x)")


@case
def text_with_an_unknown_attribute():
    parse("  %0 = sum %x {axis = 0} : f64[]\n  return %0", "func @f(%x: f64[n]) -> (f64[])")


@case
def text_with_two_functions():
    sc.parse("func @f() -> () {\n  return\n}\nfunc @g() -> () {\n  return\n}\n")


# --- habits -----------------------------------------------------------------------------------------------------------


@case
def recursion_through_cond():
    def factorial(n):
        return sc.cond(n > 0, lambda: factorial(n - 1) * n, lambda: n)

    factorial(sc.scalar("n"))


@case
def backward_of_a_value():
    (sc.vector("x") ** 2).sum().backward()


@case
def eval_of_a_value():
    x = sc.vector("x")
    (x + 1).eval({x: [1.0]})


@case
def function_of_theano():
    x = sc.vector("x")
    sc.function([x], x + 1)


@case
def grad_of_a_function():
    sc.grad(lambda x: (x**2).sum(), sc.vector("x"))


@case
def grad_without_wrt():
    sc.grad(sc.vector("x").sum())


@case
def more_memory_than_there_is():
    x = sc.vector("x")
    f = sc.compile(sc.sort(sc.zeros((x.shape[0] * 2**43, 2)).reshape(-1)) + 1, [x], name="f")
    f(np.ones(4))


@case
def setting_that_does_not_exist():
    sc.config(thread=3)


@case
def setting_of_the_wrong_type():
    sc.config(threads="many")


@case
def scope_without_a_name():
    with sc.scope(""):
        pass


@case
def trace_of_a_path_that_is_not_there():
    x = sc.vector("x")
    with sc.scope("encoder"):
        y = sc.exp(x)
    sc.compile(y, [x], mode="reference").trace([1.0])["encodr/exp"]


# --- comparing --------------------------------------------------------------------------------------------------------


def message_of(fn):
    """The error of one case; what differs between machines and edits is replaced."""
    try:
        fn()
    except Exception as e:
        text = f"{type(e).__name__}: {e}"
        text = re.sub(r"test_errors\.py:\d+", "test_errors.py:*", text)
        text = re.sub(r"\?\d+\b", "?#", text)  # sizes without a name are numbered
        text = re.sub(r"'/[^']*/", "'.../", text)
        text = re.sub(r" {3,}", "   ", text.replace("\n    ", "\n\t")).replace("\t", "    ")
        return "\n".join(line.rstrip() for line in text.splitlines()), e
    return "no error", None


def read_golden():
    found = {}
    for block in GOLDEN.read_text("utf-8").split("\n=== ")[1:]:
        name, _, text = block.partition("\n")
        found[name.strip()] = text.strip()
    return found


@pytest.mark.parametrize("name", CASES)
def test_message(name):
    text, e = message_of(CASES[name])
    assert text == read_golden()[name]
    assert isinstance(e, sc.SymcError)
    assert isinstance(e, ValueError | TypeError | IndexError | RuntimeError | AttributeError)


@pytest.mark.parametrize("name", CASES)
def test_message_has_the_users_line_and_no_traceback_ends_elsewhere(name):
    text, e = message_of(CASES[name])
    assert "test_errors.py:*" in text or name.startswith(("text_", "setting_"))
    last = traceback.extract_tb(e.__traceback__)[-1].filename.replace("\\", "/")
    assert "/numpy/" not in last and "/numba/" not in last
    assert "/symc/" in last or last.endswith("test_errors.py")  # in a function of the user, called by symc


def test_there_are_enough_and_none_is_forgotten():
    assert len(CASES) >= 100
    assert set(read_golden()) == set(CASES)


def test_errors_are_those_a_numpy_user_would_catch():
    kinds = {
        "shapes_of_operands_differ": ValueError,
        "bitwise_and_of_floats": TypeError,
        "index_out_of_bounds": IndexError,
        "truth_of_a_value": TypeError,
        "argument_is_missing": TypeError,
        "gradient_of_a_vector": ValueError,
    }
    for name, kind in kinds.items():
        with pytest.raises(kind):
            CASES[name]()


def test_cuda_without_a_gpu_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not there
    monkeypatch.delenv("SYMC_CUDA", raising=False)
    with pytest.raises(sc.InputError, match="device 'cuda:0' cannot be used: CuPy is not installed") as e:
        sc.compile(sc.vector("x"), device="cuda")
    assert "pip install 'symc[cuda]'" in str(e.value) and "sc.compile(sc.vector" in str(e.value)


if __name__ == "__main__":
    parts = [f"=== {name}\n{message_of(fn)[0]}\n" for name, fn in CASES.items()]
    GOLDEN.write_text("The message of every case in test_errors.py.\n\n" + "\n".join(parts), "utf-8")
    print(f"{len(CASES)} messages", file=sys.stderr)
