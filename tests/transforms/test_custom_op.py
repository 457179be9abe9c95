"""``sc.op``: ops made from NumPy functions have types, derivatives and a place in kernels like any other."""

import math

import numpy as np
import pytest

import symc as sc
from symc.ir.op import all_ops, unregister


@pytest.fixture(autouse=True)
def clean_registry():
    before = {o.name for o in all_ops()}
    yield
    for o in all_ops():
        if o.name not in before:
            unregister(o.name)


def hump(**options):
    @sc.op(derivative=lambda x: (1 - 2 * x * x) * sc.exp(-x * x), **options)
    def hump(x):
        """x * exp(-x**2)."""
        return x * np.exp(-x * x)

    return hump


@pytest.mark.parametrize("mode", ["reference", "default"])
@pytest.mark.parametrize("options", [{}, {"expression": lambda x: x * sc.exp(-x * x)}])
def test_an_elementwise_op_with_its_derivative(mode, options):
    b = hump(**options)
    sc.verify_grad(b, [np.linspace(-2, 2, 5)])
    x = sc.vector("x", "float32")
    f = sc.compile((b(x), sc.grad(b(x).sum(), x)), mode=mode)
    a = np.linspace(-2, 2, 7, dtype="f4")
    value, slope = f(a)
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, a * np.exp(-a * a), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(slope, (1 - 2 * a * a) * np.exp(-a * a), rtol=1e-5, atol=1e-6)


def test_with_an_expression_it_becomes_part_of_a_kernel():
    x = sc.vector("x")
    opaque, open_ = sc.compile(hump()(x) + 1), sc.compile(hump(expression=lambda x: x * sc.exp(-x * x))(x) + 1)
    assert "hump" in opaque.dump() and "hump" not in open_.dump()
    assert len(open_.kernels) == 1 and "call" not in open_.plan
    a = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(opaque(a), open_(a), rtol=1e-14)


def test_operands_are_promoted_and_broadcast():
    @sc.op(derivative=(lambda x, y: y, lambda x, y: x))
    def times(x, y):
        return x * y

    x, y = sc.vector("x", "float32"), sc.matrix("y", "int64")
    f = sc.compile((times(x, y), times(x, 2.0)), mode="reference")
    big, small = f([1, 2], [[1, 2], [3, 4]])
    assert big.dtype == np.float64 and big.tolist() == [[1, 4], [3, 8]]
    assert small.dtype == np.float32 and small.tolist() == [2, 4]
    sc.verify_grad(times, [np.ones(3), np.arange(6.0).reshape(2, 3)])


def test_an_op_with_its_own_shapes_and_derivatives():
    @sc.op(
        infer=lambda x, y: (x.dtype, (x.shape[0], y.shape[0])),
        vjp=lambda g, x, y: ((g * y).sum(1), (g * x[:, None]).sum(0)),
        jvp=lambda t, x, y: (0 if t[0] is None else t[0][:, None] * y) + (0 if t[1] is None else x[:, None] * t[1]),
    )
    def cross(x, y):
        return x[:, None] * y

    sc.verify_grad(cross, [np.ones(3), np.arange(2.0)])
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(cross(x, y))
    for n in (2, 5):
        np.testing.assert_array_equal(f(np.arange(n), np.arange(3)), np.outer(np.arange(n), np.arange(3)))


def test_a_function_that_breaks_its_word_is_named():
    @sc.op(infer=lambda x: (x.dtype, (3,)))
    def liar(x):
        return x

    x = sc.vector("x")
    f = sc.compile(liar(x), mode="reference")
    assert f(np.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(sc.ShapeError, match=r"liar: the function gives float64\[4\], not float64\[3\]") as e:
        f(np.ones(4))
    assert "f = sc.compile(liar(x)" in str(e.value)


def test_results_never_alias_arguments():
    @sc.op
    def handed_back(x):
        return x

    x = sc.vector("x")
    a = np.ones(3)
    for mode in ("reference", "default"):
        assert not np.shares_memory(sc.compile(handed_back(x), mode=mode)(a), a)


def test_mistakes():
    def raises(x):
        raise ValueError

    with pytest.raises(sc.InputError, match="symc has an op called 'add'"):
        sc.op(np.add, name="add")
    with pytest.raises(sc.InputError, match="derivative= is for elementwise ops"):
        sc.op(derivative=lambda x: x, infer=lambda x: (x.dtype, x.shape))(raises)
    hump()
    hump()  # defining an own op again replaces it

    @sc.op(infer=lambda x: (x.dtype, x.shape), vjp=lambda g, x: (g, g))
    def one(x):
        return x * 1

    x = sc.vector("x")
    with pytest.raises(sc.GradientError, match="vjp gives 2 cotangents for 1 operands"):
        sc.grad(one(x).sum(), x)
    with pytest.raises(sc.InputError, match="an op cannot be called '<lambda>'"):
        sc.op(lambda x: x)
    with pytest.raises(sc.InputError, match="numba= is for elementwise ops"):
        hump(numba=lambda x: x, expression=lambda x: x)

    with pytest.raises(sc.InputError, match="it takes 2 operands, and derivative= has 1 functions"):
        sc.op(lambda x, y: x * y, name="product", derivative=lambda x, y: y)
    with pytest.raises(sc.InputError, match="it takes 1 operands, its numba= function 2"):
        hump(numba=lambda x, y: x)
    with pytest.raises(sc.InputError, match="its numba= function raises"):
        hump(numba=raises)


def test_a_numba_function_is_called_in_kernels():
    b = hump(numba=lambda x: x * math.exp(-x * x))
    for dtype in ("float32", "float64"):
        x = sc.vector("x", dtype)
        f = sc.compile((b(x) * 2 + 1, sc.sum(b(x))))
        assert len(f.kernels) == 1 and "user_hump" in f.source
        a = np.linspace(-2, 2, 5, dtype=dtype)
        whole, total = f(a)
        np.testing.assert_allclose(whole, a * np.exp(-a * a) * 2 + 1, rtol=1e-6)
        np.testing.assert_allclose(total, np.sum(a * np.exp(-a * a)), atol=1e-6)
        assert whole.dtype == dtype
    sc.verify_grad(b, [np.linspace(-2, 2, 5)])
    with pytest.raises(sc.DTypeError, match="hump is not defined for i64"):
        b(sc.vector("k", "int64"))


def test_kernels_follow_a_new_definition():
    x, a = sc.vector("x"), np.ones(3)
    first = sc.compile(hump(numba=lambda x: x)(x))
    second = sc.compile(hump(numba=lambda x: 2 * x)(x))
    assert first(a).tolist() == [1, 1, 1] and second(a).tolist() == [2, 2, 2]


def test_what_numba_cannot_compile_names_the_function():
    b = hump(numba=lambda x: x.no_such_method())
    with pytest.raises(sc.SymcError, match=r"(?s)Numba cannot compile user_hump.*test_custom_op.py"):
        sc.compile(b(sc.vector("x")))


@pytest.mark.parametrize("given", ["vjp", "jvp"])
def test_one_direction_gives_the_other(given):
    rules = {
        "vjp": lambda g, x, y: (g * y * sc.cos(x * y), g * x * sc.cos(x * y)),
        "jvp": lambda t, x, y: sum(0 if d is None else d * z * sc.cos(x * y) for d, z in zip(t, (y, x))),
    }

    @sc.op(**{given: rules[given]})
    def sin_of_product(x, y):
        return np.sin(x * y)

    sc.verify_grad(sin_of_product, [np.linspace(0.5, 2, 4), np.linspace(-1, 1, 4)])


def test_the_function_cannot_write_into_its_arguments():
    @sc.op
    def greedy(x):
        x += 1
        return x

    x, a = sc.vector("x"), np.ones(3)
    for mode in ("reference", "default"):
        with pytest.raises(sc.ExecutionError, match=r"(?s)greedy.*read-only.*f = sc.compile"):
            f = sc.compile(greedy(x), mode=mode)
            f(a)
        assert a.tolist() == [1, 1, 1]


def test_a_function_of_real_numbers_only_is_checked_by_real_differences():
    def real_sin(x):
        return np.vectorize(math.sin, otypes="d")(x)

    elementwise = sc.op(real_sin, derivative=sc.cos)
    sc.verify_grad(elementwise, [np.linspace(-1, 1, 4)])
    whole = sc.op(real_sin, name="whole", infer=lambda x: (x.dtype, x.shape), vjp=lambda g, x: g * sc.cos(x))
    sc.verify_grad(whole, [np.linspace(-1, 1, 4)])
