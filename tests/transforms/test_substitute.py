"""``sc.substitute`` and ``sc.clone``: values with some of those that they are made of replaced."""

import numpy as np
import pytest

import symc as sc


def _value(out, **given):
    return sc.compile(out)(**given)


def test_inputs_and_computed_values():
    x, z = sc.vector("x"), sc.vector("z")
    y = sc.exp(x)
    out = sc.substitute({"a": y + x, "b": [sc.sum(y), 3]}, {x: z * 2})
    got = _value(out, z=np.ones(2))
    np.testing.assert_allclose(got["a"], np.exp(2) + 2 * np.ones(2))
    np.testing.assert_allclose(got["b"][0], 2 * np.exp(2))
    assert got["b"][1] == 3
    np.testing.assert_allclose(_value(sc.substitute(y * x, [(y, z)]), x=np.full(2, 3.0), z=np.ones(2)), [3, 3])


def test_all_at_once():
    x, z = sc.vector("x"), sc.vector("z", shape=(2,))
    swapped = sc.substitute(x - z, {x: z, z: x})
    np.testing.assert_allclose(_value(swapped, x=np.zeros(2), z=np.ones(2)), [1, 1])
    assert sc.substitute(x - z, {}) is not None and sc.substitute(x, {z: x}) is x


@pytest.mark.parametrize("inner", [False, True])
def test_through_loops_and_branches(inner):
    w, x, z = sc.vector("w"), sc.matrix("x"), sc.vector("z")
    y = sc.exp(w)
    again = (lambda: sc.exp(w)) if inner else (lambda: y)
    end, _ = sc.scan(lambda h, r: (h * again() + r, h), sc.zeros(3), x)
    two = sc.cond(sc.sum(w) > -1, lambda: sc.scan(lambda h, r: (h + again(), None), sc.zeros(3), x)[0], lambda: y * 0)
    a = np.arange(6.0).reshape(2, 3)
    got = _value(sc.substitute([end, two], {y: z}), x=a, z=np.full(3, 2.0), w=np.zeros(3))
    np.testing.assert_allclose(got[0], a[0] * 2 + a[1])
    np.testing.assert_allclose(got[1], [4, 4, 4])
    grown = sc.substitute(end, {w: z + 1, x: sc.vector("v")[:, None] * sc.ones(3)})
    np.testing.assert_allclose(_value(grown, z=np.full(3, -1.0), v=np.array([1.0, 2.0])), [3, 3, 3])


def test_states_casts_and_derivatives():
    w, x = sc.shared(np.ones(2), "w"), sc.vector("x", "float32")
    loss = sc.sum(sc.exp(w) * 2)
    g = sc.substitute(sc.grad(loss, w), {w: x})
    assert g.dtype == np.float64
    np.testing.assert_allclose(_value(g, x=np.zeros(2, "float32")), [2, 2])
    np.testing.assert_allclose(_value(sc.grad(sc.substitute(loss, {w: x}), x), x=np.zeros(2, "float32")), [2, 2])
    np.testing.assert_allclose(_value(sc.substitute(loss, {w: [0.0, 0.0]})), 4)


def test_clone():
    x, w = sc.vector("x", default=np.ones(2)), sc.shared(np.ones(2), "w")
    y = sc.sum(x * w)
    assert sc.clone(y) is y and sc.clone([y])[0] is y
    other = sc.clone(y, share_inputs=False)
    w.set_value(np.zeros(2))
    assert _value(y, x=np.ones(2)) == 0 and _value(other, x=np.ones(2)) == 2 and sc.compile(other)() == 2
    assert sc.compile([y, other], updates={w: w + 1}).inputs[0].name == "x"
    z = sc.vector("z")
    mixed = sc.clone({"y": y}, {x: z}, share_inputs=False)
    assert sc.compile(mixed)(z=np.full(2, 5.0))["y"] == 0
    with pytest.raises(sc.DTypeError, match="f64 is replaced by f32"):
        sc.clone(y, {x: sc.vector("s", "float32")})
    assert sc.clone(y, {x: sc.vector("s", "float32")}, strict=False).dtype == np.float64
    assert _value(sc.clone(y + x, {x: 2 * sc.ones(2)})).tolist() == [2, 2]


def test_deferred():
    a, b, c = sc.Variable("a"), sc.Variable("b"), sc.Variable("c", default=2)
    d = a * b + b
    np.testing.assert_allclose(_value(sc.substitute(d, {b: c * c}), a=np.ones(3)), [8, 8, 8])
    assert _value(sc.clone([d], share_inputs=False), a=2, b=3) == [9]
    assert _value(sc.substitute(d, {a: b}), b=3.0) == 12
    with pytest.raises(sc.InputError, match="without one"):
        sc.substitute(d, {sc.vector("x"): 1})


def test_sizes():
    x, z, k = sc.input("x", shape=("n", 3)), sc.input("z", shape=("k", 3)), sc.input("k3", shape=(4, 3))
    mean = sc.sum(x, axis=0) / x.shape[0]
    np.testing.assert_allclose(_value(sc.substitute(mean, {x: z}), z=np.ones((5, 3))), 1)
    np.testing.assert_allclose(_value(sc.substitute(mean, {x: k}), k3=np.ones((4, 3))), 1)
    np.testing.assert_allclose(_value(sc.substitute(x[x[:, 0] > 0], {x: z - 1}), z=np.full((2, 3), 4.0)), 3)


def test_vmap_and_jit():
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.jit(lambda v: sc.substitute(sc.exp(x).sum(), {x: v}))
    np.testing.assert_allclose(f(np.zeros(3)), 3)
    g = sc.vmap(lambda row: sc.substitute((x * y).sum(), {x: row}))
    np.testing.assert_allclose(_value(g(sc.matrix("m")), m=np.ones((2, 3)), y=np.arange(3.0)), [3, 3])


@pytest.mark.parametrize("mapping, error, said", [
    (lambda x: {x: sc.vector("z", "complex128")}, sc.DTypeError, "c128 does not become f64"),
    (lambda x: {x: sc.matrix("z")}, sc.ShapeError, "the shapes differ"),
    (lambda x: {x: np.ones(4)}, sc.ShapeError, "the shapes differ"),
    (lambda x: {"x": 1}, sc.InputError, "'x' is not a symbolic value"),
    (lambda x: 3, sc.InputError, "must be a dict, or pairs"),
])  # fmt: skip
def test_mistakes(mapping, error, said):
    x = sc.vector("x", shape=(3,))
    y = sc.exp(x)
    with pytest.raises(error, match=said) as e:
        sc.substitute(y, mapping(x))
    text = str(e.value)
    assert "sc.substitute(y, mapping(x))" in text
    if error is not sc.InputError:
        assert 'x = sc.vector("x", shape=(3,))' in text


def test_values_of_a_step():
    seen = []
    sc.scan(lambda h, r: (seen.append(h), (h + r, None))[1], sc.zeros(()), sc.vector("x"))
    with pytest.raises(sc.InputError, match="exists in the steps of its loop only"):
        sc.substitute(seen[0] + 1, {seen[0]: 1.0})
