"""What nobody reads is not computed, what is the same is one value, and what is known is not made large."""

import numpy as np
import pytest

import symc as sc
from symc.ir.traverse import every_value
from symc.opt import UNFUSED, optimize
from symc.opt.fold import SMALL


def value(name, shape, dtype="float64"):
    return sc.input(name, dtype, shape=shape)


def ops_of(outputs, inputs):
    f = sc.compile(outputs, inputs, mode="reference")._compilation.stages["input"]
    return [v.op.name for v in every_value(optimize(f, UNFUSED).function.body)]


def test_a_shape_takes_no_data():
    x, w = value("x", ("n", 9)), value("w", (9, 4))
    assert set(ops_of(sc.full((3,), sc.exp(x @ w).shape[0]), [x, w])) <= {"size", "cast", "broadcast", "param"}


def test_results_that_nobody_reads():
    x = value("x", (5, 5))
    names = ops_of(sc.linalg.eigh(x)[0], [x])
    assert "eigvalsh" in names or "eigh" in names
    assert "dot" not in names
    assert ops_of(sc.where(sc.ones(5, "bool"), x, sc.linalg.inv(x)), [x]) == ["param"]


def test_dead_stores():
    x, i = value("x", (50,)), value("i", (3,), "int64")
    names = ops_of(x.at[i].set(sc.exp(x[:3])).at[i].set(2.0), [x, i])
    assert names.count("scatter") == 1 and "exp" not in names
    assert "cos" not in ops_of(x.at[2:40].set(sc.cos(x[2:40])).at[:45].set(1.0), [x])


def test_draws_that_nobody_reads():
    x = value("x", ("n",))
    noise = sc.random.normal(sc.random.key(1), (100,))
    assert not {"philox64", "philox32"} & set(ops_of(sc.concatenate([x, noise])[: x.shape[0]], [x]))


@pytest.mark.parametrize("draw", [sc.random.normal, sc.random.uniform])
def test_parts_of_draws_have_the_same_bits(draw):
    i = value("i", (3,), "int64")
    key, at = sc.random.key(5), np.array([7, 0, 41])
    whole = sc.compile(draw(key, (6, 7)), [], mode="reference")()
    rows = sc.compile([draw(key, (6, 7))[2:4, ::-1], draw(key, (42,))[i], draw(key, (6, 7)).T[3]], [i])
    got = rows(at)
    np.testing.assert_array_equal(got[0], whole[2:4, ::-1])
    np.testing.assert_array_equal(got[1], whole.ravel()[at])
    np.testing.assert_array_equal(got[2], whole.T[3])


def test_equal_computations_are_one_in_bodies_too():
    x = value("x", ("n",))
    ys = sc.scan(lambda h, r: (h + sc.exp(r) * 2 + 2 * sc.exp(r), sc.exp(r) + h), 0.0, x)[1]
    assert ops_of(ys + x, [x]).count("exp") == 1


def test_constants_are_not_made_large():
    n = SMALL  # numbers of eight bytes each
    names = ops_of(sc.sum(sc.arange(n) * 1.0 + sc.ones(n)), [])
    assert "constant" in names and "iota" in names
    f = sc.compile(sc.exp(sc.arange(n) / 2), [], mode="reference")._compilation.stages["input"]
    for v in optimize(f, UNFUSED).function.values():
        assert v.op.name != "constant" or v.type.nbytes <= SMALL
