"""The memory of large results serves the next call, when nobody has the array or a view of it any more."""

import gc
import pickle

import numpy as np

import symc as sc
from symc.runtime.cpu.large_results import LARGE

N = LARGE // 8


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def function() -> sc.CompiledFunction:
    x = sc.input("x", "float64", ("n",))
    return sc.compile(x + 1, [x], threads=1)


def test_memory_is_used_again():
    f, x = function(), np.zeros(N)
    seen = set()
    for k in range(6):
        x[0] = k
        result = f(x)
        assert result[0] == k + 1 and type(result) is np.ndarray and result.flags.writeable
        seen.add(address(result))
    assert len(seen) <= 2, "one is in use while the next is computed"


def test_who_keeps_a_view_keeps_the_numbers():
    f, x = function(), np.zeros(N)
    part = f(x)[::2]
    others = [f(x + k) for k in (1, 2, 3)]
    gc.collect()
    assert (part == 1).all() and [o[5] for o in others] == [2, 3, 4]
    assert len({address(a) for a in (part, *others)}) == 4


def test_it_goes_with_the_function():
    f, x = function(), np.zeros(N)
    result = f(x)
    del f
    gc.collect()
    assert (result == 1).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)), result)


def test_small_results_are_arrays_of_their_own():
    assert function()(np.zeros(N - 1)).flags.owndata


def test_large_states_are_replaced():
    w = sc.shared(np.zeros(N), "w")
    f = sc.compile(w.sum(), updates={w: sc.flip(w) + 1}, threads=1)
    kept = w.get_value(borrow=True)
    assert [float(f()) for _ in range(4)] == [0.0, N, 2.0 * N, 3.0 * N]
    assert (w.get_value(borrow=True) == 4).all() and kept.shape == (N,)
