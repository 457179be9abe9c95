"""The decompose pass: named forms become their parts, with the same values and the user's lines."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.ir.dim import size_name
from symc.ir.function import Function, Input
from symc.ir.location import Loc
from symc.ir.op import Decompose, Op, lookup, register, unregister
from symc.ir.reference import evaluate_function
from symc.ir.traverse import close_over
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.ir.verify import verify
from symc.opt.engine.passes import optimize


def decompose(f: Function) -> Function:
    return optimize(f, "decompose", strict=True, verify=True).function


def build(name: str, shape) -> tuple[Function, object]:
    x = fresh_input(TensorType("f64", shape))
    body = close_over([x], [lookup("tanh")(lookup(name)(x, axes=(1,)))])
    (tanh,) = body.results
    return Function("f", (Input("x", x.type),), body), tanh.operands[0]


@pytest.mark.parametrize("name", ["logsumexp", "norm"])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("columns", [0, 1, 4])
def test_same_values_for_all_sizes(name, rows, columns):
    f, _ = build(name, (size_name("n"), size_name("m")))
    g = decompose(f)
    verify(g)
    assert not any(isinstance(v.op.lowering, Decompose) for v in g.values())
    x = np.random.default_rng(0).normal(size=(rows, columns))
    np.testing.assert_allclose(evaluate_function(g, [x], check=True), evaluate_function(f, [x]), rtol=1e-14)


def test_parts_keep_the_lines_of_the_whole():
    f, whole = build("logsumexp", (2, 3))
    line = Loc("model.py", 12)
    f.hints[whole] = frozenset([line])
    g = decompose(f)
    made = [v for v in g.values() if v.op.name in ("sup", "sub", "exp", "sum", "log", "add")]
    assert len(made) == 6 and all(line in g.hints[v] for v in made)
    assert f.params[0] not in g.hints


def test_nothing_to_do_is_the_same_body():
    x = fresh_input(TensorType("f64", (2,)))
    f = Function("f", (Input("x", x.type),), close_over([x], [lookup("sigmoid")(x)]))
    assert decompose(f).body is f.body


def test_parts_may_have_parts():
    norm = lookup("norm")
    op = register(Op("test_length", lambda t: t.with_shape(()), lambda x: np.linalg.norm(x), doc="A length.",
                     lowering=Decompose(lambda v: norm(v.operands[0], axes=(0,)))))
    try:
        x = fresh_input(TensorType("f64", (2,)))
        g = decompose(Function("f", (Input("x", x.type),), close_over([x], [op(x)])))
        assert not {"norm", "test_length"} & {v.op.name for v in g.values()}
        assert evaluate_function(g, [np.array([3.0, 4.0])])[0] == 5.0
    finally:
        unregister(op.name)


@pytest.mark.parametrize("dtype, sums", [("f2", 1), ("f4", 1), ("f8", 3)])
def test_sums_of_a_norm(dtype, sums):
    """A wider sum holds every square, and is rounded once: to the nearest number, from denormals to the greatest."""
    x = fresh_input(TensorType(dtype, (20, 5)))
    f = Function("f", (Input("x", x.type),), close_over([x], [lookup("norm")(x, axes=(1,))]))
    g = decompose(f)
    made = [v.op.name for v in g.values()]
    assert made.count("sum") == sums and (sums == 3 or not {"abs", "max", "maximum", "minimum", "where"} & set(made))
    info = np.finfo(dtype)
    data = np.random.default_rng(0).uniform(0.1, 0.4, x.shape)
    data = (data * 2.0 ** np.linspace(info.minexp - info.nmant + 3, info.maxexp - 1, 20)[:, None]).astype(dtype)
    data[-3:, 0] = np.inf, np.nan, info.max
    data[-1, 1:] = info.max
    with np.errstate(over="ignore"):
        exact = np.sqrt(np.sum(data.astype("longdouble") ** 2, axis=1)).astype(dtype)
        (found,) = evaluate_function(g, [data])
    if sums == 1:
        np.testing.assert_array_equal(found, exact)
    else:
        np.testing.assert_array_almost_equal_nulp(found[:-3], exact[:-3], 4)


@pytest.mark.parametrize("dtype", ["b1", "u1", "i4", "f4", "f8"])
@pytest.mark.parametrize("n", [2, 3, 5, 8, 9, 13, 16])
def test_exchanged_slices_are_in_order(n, dtype):
    """Nan last, as in NumPy; values that nothing reads are not computed."""
    x = fresh_input(TensorType(dtype, (n, 40)))
    v = lookup("sort")(x, axis=0)
    f = Function("f", (Input("x", x.type),), close_over([x], [v]))
    g = decompose(f)
    assert "sort" not in {u.op.name for u in g.values()}
    data = np.random.default_rng(n).normal(size=x.shape)
    if dtype[0] == "f":
        data[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
        data[0, :3] = np.inf, -np.inf, 0.0
    data = (data > 0).astype(dtype) if dtype == "b1" else data.astype(dtype) if dtype[0] == "f" else (
        np.abs(data) * 40).astype(dtype)
    (found,) = evaluate_function(g, [data], check=True)
    np.testing.assert_array_equal(found, np.sort(data, axis=0))
    image = np.random.default_rng(2).normal(size=(5, 30, 40)).astype("f4" if dtype != "f8" else "f8")
    np.testing.assert_array_equal(sc.jit(lambda t: sc.median(t, axis=0))(image), np.median(image, axis=0))
