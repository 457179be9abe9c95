"""Which inputs a function has: those of which only sizes are used, too. And inputs that are called as a keyword is."""

import gc

import numpy as np
import pytest

import symc as sc

A = np.arange(1.0, 4.0)

#: What uses nothing of an input but its sizes.
ONLY_SIZES = {
    "gradient": (lambda x: sc.grad(sc.sum(x), x), np.ones(3)),
    "ones_like": (sc.ones_like, np.ones(3)),
    "zeros": (lambda x: sc.zeros(x.shape), np.zeros(3)),
    "size": (lambda x: sc.asarray(x.size), 3),
    "half": (lambda x: x.shape[0] // 2 * sc.asarray(1.0), 1.0),
    "arange": (lambda x: sc.arange(x.shape[0]), np.arange(3)),
    "scan": (lambda x: sc.scan(lambda c, _: (c + x.shape[0], c), 0.0, length=x.shape[0])[0], 9.0),
    "body": (lambda x: sc.scan(lambda c, _: (c + sc.zeros(x.shape).sum() + 1, None), 0.0, length=2)[0], 2.0),
    "branch": (lambda x: sc.cond(sc.asarray(True), lambda: sc.ones(x.shape), lambda: sc.zeros(x.shape)), np.ones(3)),
    "vmap": (lambda x: sc.vmap(lambda i: sc.zeros(x.shape) + i)(sc.arange(2)), np.repeat([[0.0], [1.0]], 3, 1)),
    "hessian": (lambda x: sc.hvp(sc.sum(x * x), x, sc.ones_like(x)), np.full(3, 2.0)),
    "draws": (lambda x: sc.random.uniform(sc.random.key(0), x.shape) * 0, np.zeros(3)),
}


@pytest.mark.parametrize("name", ONLY_SIZES)
@pytest.mark.parametrize("mode", ["default", "reference"])
def test_an_input_of_which_only_the_size_is_used(name, mode):
    make, want = ONLY_SIZES[name]
    x = sc.vector("x")
    f = sc.compile(make(x), mode=mode)
    assert [i.name for i in f.inputs] == ["x"]
    np.testing.assert_array_equal(f(A), want)
    np.testing.assert_array_equal(f(x=A), want)
    np.testing.assert_array_equal(sc.jit(make, mode=mode)(A), want)


def test_it_stands_where_it_was_made():
    x, y, z = sc.vector("x"), sc.vector("y"), sc.vector("z")
    f = sc.compile([y * x.shape[0], z.shape[0] + sc.asarray(0)], mode="reference")
    assert [i.name for i in f.inputs] == ["x", "y", "z"]
    np.testing.assert_array_equal(f(A, A, A[:2])[0], 3 * A)


def test_a_state_of_which_only_the_size_is_used():
    w, x = sc.shared(np.zeros(4), "w", shape=("of_w",)), sc.scalar("x")
    for inputs in (None, [x]):
        f = sc.compile(sc.ones(w.shape) * x, inputs, mode="reference")
        np.testing.assert_array_equal(f(2.0), np.full(4, 2.0))


def test_a_variable_of_which_only_the_size_is_used():
    V = sc.Variable("V")
    np.testing.assert_array_equal(sc.compile(sc.ones_like(V), mode="reference")(A), np.ones(3))
    np.testing.assert_array_equal(sc.compile(sc.grad(sc.sum(V), V), mode="reference")(V=A), np.ones(3))


def test_several_inputs_that_have_the_size():
    x, y = sc.input("x", "f8", ("of_both",)), sc.input("y", "f8", ("of_both", 2))
    with pytest.raises(sc.InputError, match="the size of_both is not known from any input: x and y have it"):
        sc.compile(sc.zeros(x.shape))
    np.testing.assert_array_equal(sc.compile(sc.zeros(x.shape), [y], mode="reference")(np.ones((3, 2))), np.zeros(3))
    again = sc.input("x", "f8", ("of_both",))  # a cell of a notebook runs again
    del y
    gc.collect()
    f = sc.compile(sc.zeros(again.shape), mode="reference")
    assert f(A).shape == (3,)


def test_a_replaced_input_is_not_found():
    x, y = sc.input("x", "f8", ("of_x",)), sc.vector("y")
    with pytest.raises(sc.InputError, match="the size of_x is not known from any input"):
        sc.compile(sc.ones(x.shape) * y.sum(), givens={x: y})


# --- directions -------------------------------------------------------------------------------------------------------

DIRECTIONS = {
    "jvp": lambda x, v: sc.jvp(x * x, x, v), "vjp": lambda x, v: sc.vjp(x * x, x, v),
    "cotangent": lambda x, v: sc.grad(x * x, x, cotangent=v), "hvp": lambda x, v: sc.hvp(sc.sum(x**3) / 3, x, v),
}  # fmt: skip


@pytest.mark.parametrize("name", DIRECTIONS)
def test_directions_of_another_unknown_size(name):
    """What ``x + v`` accepts; that the sizes are equal is seen in a call."""
    x, v = sc.vector("x"), sc.vector("v")
    f = sc.compile(DIRECTIONS[name](x, v), [x, v], mode="reference")
    np.testing.assert_array_equal(f(A, A), 2 * A * A)
    with pytest.raises(sc.ShapeError, match="must equal"):
        f(A, A[:2])
    with pytest.raises(sc.GradientError, match="f64\\[4\\], for a value of type f64\\[3\\]"):
        DIRECTIONS[name](sc.input("x", "f8", (3,)), sc.input("v", "f8", (4,)))


def test_fixed_points_of_another_unknown_size():
    b, x0 = sc.vector("b"), sc.vector("x0")
    f = sc.compile(sc.custom_fixed_point(lambda x: 0.5 * x + b, x0), [b, x0], mode="reference")
    np.testing.assert_allclose(f(A, np.zeros(3)), 2 * A, rtol=1e-6)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out", "self", "args", "kwargs", "return", "x y", "f64", "mod", "lambda", "n"])
def test_any_name_of_an_input(name, tmp_path):
    x, y = sc.input(name, "f8", ("n",)), sc.input("y", "f8", ("n",))
    f = sc.compile(x * 2 + y, [x, y], mode="reference")
    f.save(tmp_path / "f")
    for g in (f, sc.load(tmp_path / "f")):
        np.testing.assert_array_equal(g(y=A, **{name: A}), 3 * A)
        np.testing.assert_array_equal(g(A, y=A), 3 * A)
        buffer = np.zeros(3)
        assert g(A, A, out=buffer) is buffer and (buffer == 3 * A).all()
    assert f.trace(y=A, **{name: A})[name] is not None


@pytest.mark.parametrize("name", ["mod", "max", "min", "floordiv", "f64", "self", "inf", "x"])
def test_any_name_of_a_size(name, tmp_path):
    x = sc.input("x", "f8", (name,))
    f = sc.compile(x[1:] * (x.shape[0] // 2), [x], mode="reference")
    f.save(tmp_path / "f")
    for g in (f, sc.load(tmp_path / "f")):
        np.testing.assert_array_equal(g(A), A[1:])
    text = str(sc.parse(f.dump()))
    assert str(sc.parse(text)) == text and f"[{name}]" in text


def test_a_parameter_called_out():
    @sc.jit(mode="reference")
    def f(x, out):
        return x + out

    np.testing.assert_array_equal(f(A, out=A), 2 * A)
    np.testing.assert_array_equal(f(A, A, out=np.zeros(3)), 2 * A)
    g = sc.compile(sc.Variable("x") + sc.Variable("out"), mode="reference")
    np.testing.assert_array_equal(g(x=A, out=A), 2 * A)
    np.testing.assert_array_equal(g(A, A, out=np.zeros(3)), 2 * A)
