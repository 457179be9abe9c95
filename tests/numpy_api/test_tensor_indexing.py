"""Indexing: 1,000 random index expressions and updates against NumPy, and the errors."""

import itertools
import random

import numpy as np
import pytest

import symc as sc
from symc.tensors.inputs import input as sc_input
from symc.tensors.tensor import Tensor
from tests.numpy_api.numpy_compare import evaluate

SHAPES = [(5,), (3, 4), (2, 3, 4), (4, 1, 3), (1,), (2, 0, 3), (3, 3, 2, 2)]


def random_slice(rng, n):
    def bound():
        return rng.choice([None, *range(-n - 2, n + 3)])
    return slice(bound(), bound(), rng.choice([None, 1, 1, 2, 3, -1, -2]))


def random_index(rng, shape, arrays=True):
    items, axis, used_dots = [], 0, False
    index_shape = rng.choice([(2,), (3,), (1,), (2, 2), ()])
    while axis < len(shape):
        n = shape[axis]
        kind = rng.choice(["slice", "slice", "int", "array", "mask", "none", "dots", "stop"])
        if kind == "none":
            items.append(None)
        elif kind == "dots" and not used_dots:
            items.append(Ellipsis)
            used_dots = True
            axis += rng.randint(0, len(shape) - axis)
        elif kind == "int" and n:
            items.append(rng.randrange(-n, n))
            axis += 1
        elif kind == "array" and n and arrays:
            count = int(np.prod(index_shape))
            items.append(np.array([rng.randrange(-n, n) for _ in range(count)]).reshape(index_shape))
            axis += 1
        elif kind == "mask" and n and arrays and index_shape == (2,) and n >= 2:
            mask = np.zeros(n, bool)
            mask[rng.sample(range(n), 2)] = True
            items.append(mask)
            axis += 1
        elif kind == "stop":
            break
        elif kind == "slice":
            items.append(random_slice(rng, n))
            axis += 1
    return tuple(items) if len(items) != 1 or rng.random() < 0.5 else items[0]


def legal(rng, shape, **kwargs):
    """A random index that NumPy accepts, and what it gives."""
    x = np.arange(1, 1 + int(np.prod(shape)), dtype=float).reshape(shape)
    while True:
        index = random_index(rng, shape, **kwargs)
        try:
            return x, index, np.asarray(x[index])
        except IndexError:
            continue


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
def test_random_indices(known):
    rng = random.Random(7 + known)
    for _ in range(500):
        shape = rng.choice(SHAPES)
        x, index, want = legal(rng, shape)
        t = sc_input("x", "f64", shape if known else tuple(f"n{i}" for i in range(len(shape))))
        (got,) = evaluate([t[index]], [t], [x])
        np.testing.assert_array_equal(got, want, err_msg=repr(index))


def test_index_arrays_that_are_data():
    rng = random.Random(3)
    for _ in range(100):
        shape = rng.choice(SHAPES)
        x, index, want = legal(rng, shape)
        leaves, arrays, items = [sc_input("x", "f64", shape)], [x], []
        for item in index if isinstance(index, tuple) else (index,):
            if isinstance(item, np.ndarray) and item.dtype != bool:
                item = item.astype(rng.choice(["int64", "int32", "int8"]))
                leaves.append(sc_input("i", item.dtype, item.shape))
                arrays.append(item)
                item = leaves[-1]
            items.append(item)
        (got,) = evaluate([leaves[0][tuple(items)]], leaves, arrays)
        np.testing.assert_array_equal(got, want, err_msg=repr(index))


def test_bounds_that_are_sizes():
    x, y = sc_input("x", "f64", ("n",)), sc_input("y", "f64", ("k",))
    n, k = x.shape[0], y.shape[0]
    a, b = np.arange(7.0), np.arange(3.0)
    cases = [
        (x[k:], a[3:]),
        (x[:k], a[:3]),
        (x[-k:], a[-3:]),
        (x[: n - k], a[:4]),
        (x[n - 1], a[6]),
        (x[k], a[3]),
        (x[n - 1 :: -2], a[6::-2]),
        (x[k::-1], a[3::-1]),
        (x[k - 1 : n - 1], a[2:6]),
        (x[: 2 * k], a[:6]),
    ]
    for got, want in zip(evaluate([g for g, _ in cases], [x, y], [a, b]), [w for _, w in cases], strict=True):
        np.testing.assert_array_equal(got, want)
    (got,) = evaluate([x[-k:]], [x, y], [a, np.zeros(0)])
    np.testing.assert_array_equal(got, a)


METHODS = {
    "set": lambda view, i, v: view.__setitem__(i, v),
    "add": np.add.at,
    "multiply": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
    "subtract": np.subtract.at,
    "divide": np.divide.at,
}


def test_random_updates():
    rng = random.Random(11)
    for k in range(300):
        shape = rng.choice(SHAPES)
        x, index, part = legal(rng, shape, arrays=k % 3 > 0)
        v = (np.arange(part.size, dtype=float).reshape(part.shape) + 0.5) * rng.choice([1, -1])
        name = rng.choice(list(METHODS))
        want = x.copy()
        METHODS[name](want, index, v)
        t, u = sc_input("x", "f64", shape), sc_input("v", "f64", v.shape)
        (got,) = evaluate([getattr(t.at[index], name)(u)], [t, u], [x, v])
        np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=f"{name} {index!r}")
    t = sc_input("x", "f64", (4, 3))
    x = np.arange(1.0, 13.0).reshape(4, 3)
    for got, want in zip(evaluate([t.at[1].set(7), t.at[:, 0].power(2), t.at[1:3].get()], [t], [x]),
                         [np.where(np.arange(4)[:, None] == 1, 7, x), x ** np.array([2, 1, 1]), x[1:3]], strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("size", [1, 2])
def test_updates_where_integers_stand_beside_arrays(size):
    """An axis that an integer drops may be whole, as slices are."""
    x = np.arange(1.0, 1 + 9 * size).reshape(3, size, 3)
    t, outputs, wants = sc_input("x", "f64", x.shape), [], []
    for items in itertools.product([0, slice(None), np.array([0, -1]), np.array([0])], repeat=3):
        for index in (items, (None, *items), (items[0], None, *items[1:])):
            v = np.arange(x[index].size, dtype=float).reshape(x[index].shape) - 1.5
            for name in ("add", "max", "set"):
                changed = x.copy()
                METHODS[name](changed, index, v if name != "set" else 9.0)
                outputs.append(getattr(t.at[index], name)(v if name != "set" else 9.0))
                wants.append(changed)
    for got, want in zip(evaluate(outputs, [t], [x]), wants, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
def test_compiled_indices_and_updates(known):
    rng = random.Random(5 + known)
    for shape in ((5,), (2, 3, 4)):
        t = sc_input("x", "f64", shape if known else tuple(f"n{i}" for i in range(len(shape))))
        outputs, wants = [], []
        for _ in range(6):
            x, index, part = legal(rng, shape)
            name = rng.choice(["set", "add", "multiply", "max", "min"])
            v = np.arange(part.size, dtype=float).reshape(part.shape) + 0.5
            changed = x.copy()
            METHODS[name](changed, index, v)
            outputs += [t[index], getattr(t.at[index], name)(v)]
            wants += [part, changed]
        for got, want in zip(sc.compile(outputs, [t])(x), wants, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-14)


def test_updates_of_symbolic_sizes():
    t = sc_input("x", "f64", ("n", "m"))
    x = np.arange(20.0).reshape(4, 5)
    out = [t.at[1:].add(1.0), t.at[:, ::2].set(0.0), t.at[-1, :-1].multiply(3.0), t.at[::-1, 1].set(t[:, 0])]
    want = [x.copy() for _ in out]
    want[0][1:] += 1
    want[1][:, ::2] = 0
    want[2][-1, :-1] *= 3
    want[3][::-1, 1] = x[:, 0]
    for got, w in zip(evaluate(out, [t], [x]), want, strict=True):
        np.testing.assert_array_equal(got, w)


def test_true_and_false():
    x, rng = np.arange(24.0).reshape(2, 3, 4), np.random.default_rng(0)
    items = [True, False, np.True_, np.array(False), None, ..., 0, slice(1, None), [0, 1], [1], [True, False]]
    for index in [tuple(items[i] for i in rng.integers(len(items), size=n)) for n in (1, 2, 3) for _ in range(40)]:
        try:
            want = x[index]
        except IndexError:
            with pytest.raises((sc.IndexingError, sc.ShapeError)):
                sc.asarray(x)[index]
        else:
            got = np.asarray(sc.asarray(x)[index])
            assert got.shape == want.shape and np.array_equal(got, want), index
    b, t = sc_input("b", "bool", ()), sc_input("t", "f64", (2, 3, 4))
    f = sc.compile([t[b], t[0, b, ..., 1:]], [b, t])
    for truth in (True, False):
        for got, want in zip(f(truth, x), [x[truth], x[0, truth, ..., 1:]], strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("index", "words"), [
    (5, "index 5 is out of bounds for axis 0 of size 3"),
    (-4, "out of bounds for axis 0"),
    ((0, [1, 4]), "index 4 is out of bounds for axis 1 of size 4"),
    ((0, 0, 0), "too many indices: 3 for 2 axes"),
    ("a", "is not an index"),
    (1.5, "is not an index"),
    ((..., ...), "only one ellipsis"),
    (slice(None, None, 0), "the step of a slice"),
    (np.array([0.5]), "must hold integers"),
    (np.array([True, False]), "a mask of size 2 does not fit axis 0 of size 3"),
])
def test_bad_indices(index, words):
    x = sc_input("x", "f64", (3, 4))
    with pytest.raises(sc.IndexingError) as e:
        x[index]
    assert words in str(e.value) and "%x : f64[3, 4]" in str(e.value) and "test_tensor_indexing.py" in str(e.value)
    assert isinstance(e.value, IndexError)


def test_values_do_not_change():
    x = sc_input("x", "f64", ("n",))
    with pytest.raises(sc.SymbolicValueError, match=r"x\.at\[index\]\.set"):
        x[0] = 1.0
    assert isinstance(x[..., None], Tensor)


@pytest.mark.parametrize("mode", ["default", "reference"])
def test_an_index_outside_of_an_unknown_size_is_an_error_of_the_call(mode: str, tmp_path):
    x, n = sc.input("x", "float64", ("n",)), sc.input("steps", "float64", ("m",))
    for index, least in ((0, 1), (-1, 1), (-3, 3), (slice(-2, -1), 2)):
        f = sc.compile(sc.sum(x[index]), [x], mode=mode)
        assert f(np.ones(least)) == 1.0
        if isinstance(index, slice):
            assert f(np.ones(1)) == 0.0  # slices are clipped
            continue
        with pytest.raises(sc.IndexingError, match=rf"x.shape\[0\] = {least - 1} must be at least {least}"):
            f(np.ones(least - 1))
    looped = sc.compile(sc.scan(lambda c, r: (c + x[-2] * r * c, None), 0.0, n)[0], [x, n], mode=mode)
    with pytest.raises(sc.IndexingError, match="at least 2"):
        looped(np.ones(1), np.ones(1))
    looped.save(tmp_path / "looped")
    with pytest.raises(sc.IndexingError, match="at least 2"):
        sc.load(tmp_path / "looped")(np.ones(1), np.ones(1))
