"""Initialisers have the means, deviations and bounds that they say, and nothing else in common."""

import numpy as np
import pytest

import symc as sc

SHAPES = [(300, 500), (40, 30, 5, 5)]


def fans(shape):
    return shape if len(shape) == 2 else (shape[1] * 25, shape[0] * 25)


def draw(init, shape, seed=0):
    return sc.init.as_initializer(init)(np.random.default_rng(seed), shape)


#: The variance of each, from fans, and the bound over the deviation.
LAWS = [
    (sc.init.glorot_uniform(), lambda i, o: 2 / (i + o), np.sqrt(3)),
    (sc.init.glorot_normal(2.0), lambda i, o: 8 / (i + o), np.inf),
    (sc.init.he_uniform(), lambda i, o: 2 / i, np.sqrt(3)),
    (sc.init.he_normal(1.0), lambda i, o: 1 / i, np.inf),
    (sc.init.uniform(-0.3, 0.3), lambda i, o: 0.03, np.sqrt(3)),
    (sc.init.normal(0.2), lambda i, o: 0.04, np.inf),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("init, variance, bound", LAWS, ids=[law[0].text for law in LAWS])
def test_moments(init, variance, bound, shape):
    a = draw(init, shape)
    sigma = np.sqrt(variance(*fans(shape)))
    z = a / sigma
    n = a.size
    assert abs(z.mean()) < 5 / np.sqrt(n)
    fourth = 3.0 if np.isinf(bound) else 1.8
    assert abs(z.var() - 1) < 5 * np.sqrt((fourth - 1) / n)
    assert abs((z**4).mean() - fourth) < 0.1 * fourth
    assert np.abs(z).max() <= bound and np.abs(z).max() > min(bound * 0.999, 3.5)
    assert abs(np.corrcoef(z.ravel()[:-1], z.ravel()[1:])[0, 1]) < 5 / np.sqrt(n)
    assert not np.array_equal(a, draw(init, shape, 1)) and np.array_equal(a, draw(init, shape))


def test_uniform_and_normal_have_their_centres():
    assert abs(draw(sc.init.uniform(1, 3), (100_000,)).mean() - 2) < 0.01
    assert abs(draw(sc.init.normal(2.0, 5.0), (100_000,)).mean() - 5) < 0.03


@pytest.mark.parametrize("shape", [(50, 20), (20, 50), (30, 30), (16, 4, 3, 3)])
def test_orthogonal(shape):
    a = draw(sc.init.orthogonal(1.5), shape).reshape(shape[0], -1)
    gram = a.T @ a if a.shape[0] >= a.shape[1] else a @ a.T
    np.testing.assert_allclose(gram, 1.5**2 * np.eye(len(gram)), atol=1e-12)


def test_orthogonal_matrices_are_all_as_likely():
    """The trace of a random orthogonal matrix has mean 0 and variance 1; a plain QR gives another."""
    traces = [np.trace(draw(sc.init.saxe(), (6, 6), seed)) for seed in range(2000)]
    assert abs(np.mean(traces)) < 0.12 and abs(np.var(traces) - 1) < 0.15


def test_the_others():
    assert np.array_equal(draw(sc.init.identity(2.0), (2, 3)), [[2, 0, 0], [0, 2, 0]])
    w = draw(sc.init.identity(), (2, 2, 3, 3)).astype("float32")
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 5)).astype("float32")
    image = sc.input("x", "float32", (1, 2, 5, 5))
    np.testing.assert_array_equal(sc.compile(sc.conv(image, w, padding="same"))(x), x)
    assert np.array_equal(draw(sc.init.constant(3), (2,)), [3, 3]) and draw(0.5, ()) == 0.5
    assert np.array_equal(draw(sc.init.zeros, (2,)), [0, 0]) and np.array_equal(draw(sc.init.ones(), (1, 2)), [[1, 1]])
    given = np.arange(3)
    assert np.array_equal(draw(given, (3,)), given) and np.array_equal(draw([1, 2], (2,)), [1, 2])
    assert np.array_equal(draw(sc.init.from_array(given), (3,)), given)
    assert np.array_equal(draw(lambda rng, shape: np.full(shape, 4.0), (2,)), [4, 4])
    parts = draw(sc.init.blocks(sc.init.orthogonal, 3), (4, 12))
    for k in range(3):
        np.testing.assert_allclose(parts[:, 4 * k : 4 * k + 4] @ parts[:, 4 * k : 4 * k + 4].T, np.eye(4), atol=1e-12)
    assert repr(sc.init.he_normal()) == "sc.init.he_normal(1.414)"


@pytest.mark.parametrize("make", [
    lambda: sc.init.uniform(1, 0), lambda: sc.init.normal(-1), lambda: draw(sc.init.orthogonal, (3,)),
    lambda: draw(sc.init.identity, (3,)), lambda: draw([1, 2], (3,)), lambda: draw("he", (3,)),
    lambda: draw(sc.init.blocks(0.0, 3), (2, 4)),
])  # fmt: skip
def test_mistakes(make):
    with pytest.raises(sc.SymcError):
        make()
