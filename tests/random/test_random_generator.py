"""What a user of sc.random meets: generators, defaults, mistakes."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest

import symc as sc
from tests.random.test_random import run

# --- generators -------------------------------------------------------------------------------------------------------


def test_a_generator_advances_at_each_call():
    rng = sc.random.Generator(7)
    f = sc.compile((rng.normal((3,)), rng.normal((3,))), updates=rng.updates())
    first = [np.concatenate(f()) for _ in range(5)]
    assert len(np.unique(np.stack(first))) == 30
    rng.reset()
    np.testing.assert_array_equal(np.stack([np.concatenate(f()) for _ in range(5)]), np.stack(first))
    rng.reset(8)
    assert not np.isin(np.concatenate(f()), np.stack(first)).any() and rng.seed == 8


def test_without_updates_nothing_changes_and_a_warning_says_so():
    rng, other = sc.random.Generator(7), sc.random.Generator(8, name="other")
    x = rng.uniform((3,))
    with pytest.warns(UserWarning, match=r"drawn draws from the generator 'rng' and does not advance it") as said:
        f = sc.compile(x, updates=other.updates(), name="drawn")
    assert said[0].filename == __file__
    np.testing.assert_array_equal(f(), f())
    with pytest.warns(UserWarning, match="jitted draws from the generator 'other'"):
        sc.jit(lambda a: a + other.normal(), name="jitted")(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.compile(x, updates=rng.updates())
        sc.compile(rng.state * 1, updates={rng.state: rng.state})
        sc.compile(sc.random.uniform(sc.random.key(7), (3,)))


def test_functions_that_share_a_generator_do_not_repeat():
    rng = sc.random.Generator(7)
    x = rng.uniform((4,))
    f = sc.compile(x, updates=rng.updates())
    g = sc.compile((rng.uniform((4,)), rng.uniform((4,))), updates=rng.updates())
    seen = [f(), *g(), f(), f(), *g()]
    assert len(np.unique(np.stack(seen))) == 28


def test_generators_of_one_seed_agree():
    seen = []
    for _ in range(2):
        rng = sc.random.default_rng(3)
        seen.append(sc.compile(rng.gamma(2.0, (3,)), updates=rng.updates())())
    np.testing.assert_array_equal(*seen)
    assert sc.random.Generator().seed != sc.random.Generator().seed


def test_a_generator_is_data():
    rng = sc.random.Generator(11)
    sc.compile(rng.normal((2,)), updates=rng.updates())()
    again = pickle.loads(pickle.dumps(rng))
    one, other = (sc.compile(r.normal((2,)), updates=r.updates()) for r in (rng, again))
    np.testing.assert_array_equal(one(), other())
    one()
    assert (rng.state.get_value() != again.state.get_value()).any()


def test_a_generator_has_every_distribution():
    rng = sc.random.Generator(0)
    for name, fn in sc.random.DISTRIBUTIONS.items():
        assert getattr(sc.random, name) is fn
        own = list(inspect.signature(getattr(rng, name)).parameters)
        assert own == list(inspect.signature(fn).parameters)[1:]
    f = sc.compile([rng.normal(size=(2,)), rng.uniform((2,), minval=1, maxval=2)], updates=rng.updates())
    assert [x.shape for x in f()] == [(2,), (2,)]


def test_other_names():
    key = sc.random.PRNGKey(0)
    assert sc.random.standard_normal(key, (2,)).value is sc.random.normal(key, (2,)).value
    assert sc.random.Generator(0).standard_gamma(2.0, (3,)).shape == (3,)
    with pytest.raises(AttributeError, match="did you mean 'normal'"):
        sc.random.noraml(key)
    with pytest.raises(AttributeError, match=r"sc\.random\.permutation\(key, x\)"):
        sc.random.shuffle(key, np.arange(3))
    assert set(sc.random.DISTRIBUTIONS) < set(sc.random.__all__) and set(dir(sc.random)) > set(sc.random.__all__)


def test_a_training_step_with_dropout():
    rng = sc.random.Generator(0)
    x = sc.input("x", "float32", ("n", 8))
    w = sc.shared(np.ones(8, "f4"), "w")
    loss = sc.mean((sc.where(rng.bernoulli(0.5, x.shape), 2 * x, 0) @ w) ** 2)
    step = sc.compile(loss, [x], updates={**rng.updates(), w: w - 0.01 * sc.grad(loss, w)})
    data = np.ones((64, 8), "f4")
    losses = [float(step(data)) for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0] and len(set(losses)) == 30


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_dtypes_follow_parameters():
    key, a = sc.random.key(0), sc.vector("a", "float32")
    assert sc.random.gamma(key, a).dtype == np.float32
    assert sc.random.gamma(key, 2).dtype == sc.random.normal(key, (2,)).dtype == np.float64
    assert sc.random.normal(key, (3,), loc=a[0]).dtype == np.float32
    assert sc.random.poisson(key, a).dtype == np.int64 and sc.random.bernoulli(key, a).dtype == np.bool_
    assert sc.random.poisson(key, a, dtype="int32").dtype == np.int32
    sc.set_default_float("float32")
    try:
        assert sc.random.uniform(key, (2,)).dtype == sc.random.gamma(key, 2.0).dtype == np.float32
    finally:
        sc.set_default_float("float64")


def test_shapes_follow_parameters():
    key, m = sc.random.key(0), sc.matrix("m")
    assert sc.random.normal(key, loc=m).shape == m.shape
    assert sc.random.beta(key, m, np.ones(3)).shape[1] == 3
    assert sc.random.normal(key).shape == ()
    assert sc.random.gamma(key, np.ones(3), (2, 3)).shape == (2, 3)
    assert sc.random.uniform(key, m.shape[0]).shape == (m.shape[0],)


# --- mistakes ---------------------------------------------------------------------------------------------------------

R = sc.random
MISTAKES = [
    (lambda k: R.normal(0, (3,)), sc.InputError, "first argument is a key, not 0"),
    (lambda k: R.normal((3,)), sc.InputError, r"first argument is a key, not \(3,\)"),
    (lambda k: R.normal(sc.vector("v"), (3,)), sc.InputError, "this is no key"),
    (lambda k: R.normal(R.split(k, 3), (3,)), sc.InputError, "several keys were given"),
    (lambda k: R.normal(k, 0.0, 1.0), sc.ShapeError, "the shape is an int, a size or a tuple of them, not 0.0"),
    (lambda k: R.normal(k, (2, -1)), sc.ShapeError, "the size -1 is negative"),
    (lambda k: R.normal(k, (3,), "int32"), sc.DTypeError, "normal gives floats, not i32"),
    (lambda k: R.normal(k, (3,), scale=-1.0), sc.InputError, "scale must not be negative, and -1.0 is given"),
    (lambda k: R.normal(k, (3,), loc=np.zeros(4)), sc.ShapeError, r"parameters of shape \(4\) do not fit"),
    (lambda k: R.normal(k, (3,), size=(3,)), sc.InputError, "size and shape are the same argument"),
    (lambda k: R.normal(k, (3,), mean=1.0), sc.InputError, "normal: got an unexpected keyword argument 'mean'"),
    (lambda k: R.normal(k, 0.0, 1.0, (3,)), sc.InputError, "too many positional arguments"),
    (lambda k: R.uniform(k, 3, 0, 1), sc.DTypeError, "uniform: 0 is given where the dtype belongs"),
    (lambda k: R.poisson(), sc.InputError, "missing a required argument: 'key'"),
    (lambda k: R.Generator("a"), sc.InputError, "the seed must be an integer, not 'a'"),
    (lambda k: sc.scan(lambda c, _: (c, R.Generator(0).normal((2,))), 0.0, length=3), sc.InputError,
     "scan: step: a Generator would give the same numbers in each step"),
    (lambda k: R.gamma(k, [1.0, -2.0]), sc.InputError, "a must not be negative, and -2.0 is given"),
    (lambda k: R.gamma(k, "two"), sc.DTypeError, "gamma: a is 'two'"),
    (lambda k: R.gamma(k, 1j), sc.DTypeError, "not a real number"),
    (lambda k: R.beta(k, np.ones(2), np.ones(3)), sc.ShapeError, "operand shapes differ"),
    (lambda k: R.bernoulli(k, 1.5), sc.InputError, "p must be between 0 and 1, and 1.5 is given"),
    (lambda k: R.bernoulli(k, float("nan")), sc.InputError, "p must be between 0 and 1"),
    (lambda k: R.binomial(k, 2.5, 0.5), sc.InputError, "n must be a whole number"),
    (lambda k: R.poisson(k, 3.0, dtype="float32"), sc.DTypeError, "poisson gives integers"),
    (lambda k: R.geometric(k, 0.0), sc.InputError, "p must be above 0"),
    (lambda k: R.truncated_normal(k, 2.0, 1.0), sc.InputError, "lower must be below upper"),
    (lambda k: R.triangular(k, 0.0, 2.0, 1.0), sc.InputError, "mode must be at most right"),
    (lambda k: R.integers(k, 3, 3), sc.InputError, "no integer from low to high"),
    (lambda k: R.integers(k, 0.5), sc.DTypeError, "high is f64, not an integer"),
    (lambda k: R.integers(k, 0, 300, dtype="uint8"), sc.DTypeError, "does not fit u8"),
    (lambda k: R.choice(k, 3, (4,), replace=False), sc.InputError, "4 elements cannot be chosen from 3"),
    (lambda k: R.choice(k, 3, (2,), p=[0.5, 0.5]), sc.ShapeError, "3 elements and 2 probabilities"),
    (lambda k: R.choice(k, 2, (2,), p=[0.5, 0.6]), sc.InputError, "must sum to 1"),
    (lambda k: R.choice(k, 0), sc.InputError, "nothing to choose from"),
    (lambda k: R.permutation(k, sc.scalar("s")), sc.DTypeError, "a value without axes"),
    (lambda k: R.categorical(k, 0.5), sc.ShapeError, "need an axis of categories"),
    (lambda k: R.dirichlet(k, 1.0), sc.ShapeError, "alpha needs an axis"),
    (lambda k: R.multinomial(k, 3, sc.vector("p")), sc.InputError, "length that is known"),
    (lambda k: R.multinomial(k, 3, [0.7, 0.7]), sc.InputError, "must be at most 1"),
    (lambda k: R.multinomial(k, 3, [0.7, -0.1]), sc.InputError, "must not be negative"),
    (lambda k: R.multivariate_normal(k, np.zeros(2)), sc.InputError, "either cov or cholesky"),
    (lambda k: R.multivariate_normal(k, np.zeros(2), -np.eye(2)), sc.InputError, "not positive definite"),
    (lambda k: R.bits(k, (3,), "int32"), sc.DTypeError, "bits gives unsigned integers"),
    (lambda k: R.key(-1), sc.InputError, "the seed must not be negative"),
    (lambda k: R.key(1.5), sc.InputError, "the seed must be an integer, not 1.5"),
    (lambda k: R.key(None), sc.InputError, "the seed must be an integer, not None"),
    (lambda k: R.fold_in(k, 0.5), sc.DTypeError, "must be integers, not f64"),
    (lambda k: R.split(k, -1), sc.ShapeError, "the size -1 is negative"),
    (lambda k: R.split(7), sc.InputError, "first argument is a key, not 7"),
]


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES, ids=[str(k) for k in range(len(MISTAKES))])
def test_mistakes(mistake, error, words):
    with pytest.raises(error, match=words) as caught:
        mistake(sc.random.key(0))
    shown = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "test_random_generator.py" in shown, "the user's line"


def test_parameters_that_are_not_known_before_the_call():
    a = sc.vector("a")
    key = sc.random.key(0)
    f = run((sc.random.gamma(key, a), sc.random.poisson(key, a), sc.random.geometric(key, a)), a)
    x, k, g = f(np.array([-1.0, np.nan, 0.5]))
    assert np.isnan(x[:2]).all() and np.isfinite(x[2])
    assert k[:2].tolist() == [-1, -1] and k[2] >= 0
    assert g[:2].tolist() == [-1, -1] and g[2] >= 1
