"""Inputs with default values: left out at a call, by position or by name, shown, pickled and saved."""

import inspect
import pickle

import numpy as np
import pytest

import symc as sc


def _f(**options):
    x = sc.input("x", "float32", shape=("n",))
    lr = sc.input("lr", "float32", shape=(), default=0.1)
    v = sc.vector("v", "float64", shape=(2,), default=[1.0, 2.0])
    return sc.compile([x * lr, sc.sum(v)], [x, lr, v], **options)


@pytest.mark.parametrize("mode", ["default", "reference"])
def test_values_left_out(mode):
    f, x = _f(mode=mode), np.ones(3, "float32")
    for _ in range(2):
        for out, lr, v in ((f(x), 0.1, 3.0), (f(x, 0.5), 0.5, 3.0), (f(x, v=[5.0, 6.0]), 0.1, 11.0),
                           (f(x=x, lr=2), 2.0, 3.0), (f({"x": x}), 0.1, 3.0), (f(x, 0.5, [0.0, 1.0]), 0.5, 1.0)):
            np.testing.assert_array_equal(out[0], np.float32(lr) * x)
            assert out[0].dtype == np.float32 and out[1] == v
    out = [np.empty(3, "float32"), np.empty(())]
    assert f(x, out=out)[0] is out[0] and out[1] == 3.0


def test_what_is_shown():
    f = _f(name="g")
    assert str(inspect.signature(f)) == "(x, lr=np.float32(0.1), v=array([1., 2.]), *, out=None)"
    assert "g(x, lr=0.1, v=...)" in repr(f)
    with pytest.raises(sc.InputError, match=r"missing input 'x'(?s:.*)g\(x, lr=0.1, v=...\)"):
        f(lr=1)
    x, y = sc.scalar("x", default=1), sc.scalar("y")
    assert str(inspect.signature(sc.compile(x + y, [x, y]))) == "(x=np.float64(1.0), *, y, out=None)"
    odd = sc.scalar("for")
    assert str(inspect.signature(sc.compile(odd + 1, [odd]))) == "(*args, out=None, **kwargs)"


def test_pickles_and_files(tmp_path):
    f, x = _f(), np.ones(3, "float32")
    f.save(tmp_path / "f.symc")
    for g in (pickle.loads(pickle.dumps(f)), sc.load(tmp_path / "f.symc")):
        np.testing.assert_array_equal(g(x)[0], f(x)[0])
        assert str(inspect.signature(g)) == str(inspect.signature(f))
    y = pickle.loads(pickle.dumps(sc.scalar("y", default=3) * 2))
    assert sc.compile(y)() == 6.0


def test_deferred_variables():
    a, k = sc.Variable("a"), sc.Variable("k", default=3)
    f = sc.compile(a * k)
    for _ in range(2):
        assert f(np.int32([1, 2])).dtype == np.int32 and f(np.int32([1, 2])).tolist() == [3, 6]
        assert f(np.float32([1, 2]), 0.5).dtype == np.float32
        assert f(a=2.0, k=4) == 8.0
    assert str(inspect.signature(f)) == "(a, k=3, *, out=None)"
    typed = sc.Variable("t", dtype="float32", default=2)
    assert sc.compile(typed * a)(np.float32(3)).dtype == np.float32


def test_nests_and_sizes():
    x, y = sc.input("x", shape=("n",), default=np.arange(3.0)), sc.scalar("y", default=2)
    f = sc.compile(x * y, {"p": {"x": x, "y": y}})
    assert f().tolist() == [0, 2, 4] and f({"x": [1.0], "y": 5}).tolist() == [5]
    g = sc.compile(x + sc.input("z", shape=("n",)), specialize={"n": [3]})
    assert g(z=np.ones(3)).tolist() == [1, 2, 3]
    with pytest.raises(sc.ShapeError, match="must equal"):
        g(z=np.ones(4))


def test_sizes_that_are_data_and_donation():
    x, t = sc.vector("x"), sc.scalar("t", default=0)
    f = sc.compile(sc.sum(x[x > t]), [x, t])
    assert f(np.array([-1.0, 2, 3])) == 5 and f(np.array([-1.0, 2, 3]), 2.5) == 3
    d = sc.vector("d", default=np.ones(4))
    g = sc.compile(d + 1, [d], donate=[d])
    assert g().tolist() == [2.0] * 4 and g().tolist() == [2.0] * 4


@pytest.mark.parametrize("make, error, said", [
    (lambda: sc.scalar("x", "int32", default=0.5), sc.DTypeError, "the default of input 'x'"),
    (lambda: sc.scalar("x", default=[1.0]), sc.ShapeError, "has the shape"),
    (lambda: sc.vector("x", shape=(3,), default=[1.0]), sc.ShapeError, "has the shape"),
    (lambda: sc.scalar("x", default="a"), sc.SymcError, "the default of input 'x'"),
    (lambda: sc.Variable("x", dtype="int32", default=0.5), sc.DTypeError, "the default of variable 'x'"),
])  # fmt: skip
def test_mistakes(make, error, said):
    with pytest.raises(error, match=said) as e:
        make()
    assert "test_default_inputs.py" in str(e.value)
