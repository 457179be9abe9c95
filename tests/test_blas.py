"""Products as BLAS calls: how many, which routine, and that they are right."""

import numpy as np

import symc as sc
from symc.codegen.calls import library_calls


def test_library_calls_count_routines_also_in_bodies():
    n = sc.input("a", "float64", shape=("n", "n"))
    v = sc.input("v", "float64", shape=("n",))
    f = sc.compile((sc.exp(n @ n) @ v, sc.sort(v)), [n, v])
    assert f.calls == {"gemm": 1, "gemv": 1, "sort": 1} == library_calls(f._planned())
    g = sc.compile(sc.scan(lambda h, _: (sc.tanh(n @ h), None), v, length=50)[0], [n, v])
    assert g.calls == {"gemv": 1}
    assert sc.compile(v + 1, [v]).calls == {}


def test_the_calls_of_a_function_without_a_plan():
    v = sc.input("v", "float64", shape=("n",))
    f = sc.compile(v + 1, [v], mode="reference")
    try:
        f.calls
    except sc.PlanError as e:
        assert "no plan" in str(e)
    else:
        raise AssertionError
    assert np.array_equal(f(np.ones(2)), [2, 2])
