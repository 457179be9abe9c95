"""Values that depend on nothing given later can be looked at: numbers, arrays, truth. All others say what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest

import symc as sc
from symc.ir.op import all_ops
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import results_of
from symc.ir.ops.leaf import array
from symc.ir.types import TupleType
from symc.tensors.tensor import Tensor

T = sc.asarray([1.0, 2.0])


def test_numbers_and_arrays():
    total = sc.sum(T)
    assert float(total) == 3.0 and int(total) == 3 and complex(total) == 3 and total.item() == 3.0
    assert type(float(total)) is float and type(int(total)) is int
    assert T.tolist() == [1.0, 2.0] and (T * 2).item(1) == 4.0 and f"{total:.2f}" == "3.00"
    assert math.sqrt(total) == math.sqrt(3.0) and round(float(sc.exp(total)), 3) == 20.086
    assert [float(t) for t in T] == [1.0, 2.0] and 2.0 in T and 3.0 not in T and len(T) == 2
    a = np.asarray(sc.exp(T))
    assert type(a) is np.ndarray and a.dtype == np.float64
    np.testing.assert_allclose(sc.exp(T), np.exp([1.0, 2.0]))
    assert np.asarray(T, "float32").dtype == np.float32 and np.array([T[0], T[1]]).tolist() == [1.0, 2.0]
    final, steps = sc.scan(lambda c, _: (c * 2, c), 1.0, length=5)
    assert float(final) == 32 and steps.tolist() == [1, 2, 4, 8, 16]


def test_choices():
    taken = [1] if sc.sum(T) > 2 else [2]
    while sc.max(T) > sum(taken):
        taken.append(1)
    assert taken == [1, 1]
    assert [10, 20][sc.argmax(T)] == 20 and list(range(sc.asarray(2))) == [0, 1]
    assert sc.compile(T * 2 if sc.any(T > 1) else T)().tolist() == [2, 4]


def test_what_numpy_refuses_is_refused():
    for wrong in (lambda: float(T), lambda: bool(T), lambda: int(T), lambda: [1, 2][sc.asarray(1.0)],
                  lambda: [1, 2][sc.asarray(True)], lambda: float(sc.asarray(1j))):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    with pytest.raises(ValueError):
        int(sc.asarray(np.nan))


def test_a_constant_does_not_change_through_its_array():
    a = np.asarray(T)
    a[0] = 7.0
    np.array(sc.cumsum(T))[0] = 7.0
    assert T.tolist() == [1.0, 2.0] and not np.asarray(T, copy=False).flags.writeable
    assert sc.cumsum(T).tolist() == [1.0, 3.0]
    with pytest.raises(ValueError):
        np.asarray(T, "float32", copy=False)


def test_a_constant_is_an_argument_and_a_state():
    x = sc.vector("x")
    assert sc.compile(x + 1)(T).tolist() == [2, 3]
    w = sc.shared(sc.zeros(3))
    w.set_value(sc.ones(3) * 2)
    assert w.get_value().tolist() == [2, 2, 2]


def test_small_ones_are_shown():
    assert repr(T + 1) == "Tensor(f64[2] = [2., 3.])" and repr(sc.sum(T)) == "Tensor(f64[] = 3.)"
    assert repr(sc.eye(2, dtype="int64")) == "Tensor(i64[2, 2] = [[1, 0], [0, 1]])"
    assert repr(sc.zeros((1000, 1000))) == "Tensor(f64[1000, 1000] = broadcast)"
    h = T
    for _ in range(1000):
        h = h * 0.5 + 1
    assert repr(h) == "Tensor(f64[2] = add)", "much work is not done in passing"
    np.testing.assert_allclose(h, [2.0, 2.0])
    assert repr(h) == "Tensor(f64[2] = [2., 2.])"


def later():
    x, w, n = sc.vector("x"), sc.shared(np.ones(2), "w"), sc.vector("x").shape[0]
    rng = sc.random.Generator(0)

    @sc.op(name="counted_for_constants")
    def counted(a):
        return a + 1.0

    return {
        "an input": x, "a state": w, "a sum of a state": w.sum(), "a size": sc.asarray(n), "ones of a size": sc.ones(n),
        "a generator's numbers": rng.normal((2,)), "printed": sc.debug.print(T), "checked": sc.debug.assert_(T, T > 0),
        "in a loop": sc.scan(lambda c, r: (c + sc.debug.print(r), None), 0.0, T)[0], "an op of one's own": counted(T),
        "of all ranks": sc.parallel.all_reduce(T), "a gradient": sc.grad(sc.sum(x * x), x),
    }  # fmt: skip


@pytest.mark.parametrize("what", later())
def test_what_is_given_later_is_not_known(what):
    v = later()[what]
    for ask in (float, int, bool, complex, np.asarray, lambda t: t.tolist(), lambda t: t.item(), lambda t: f"{t:.2f}",
                lambda t: [1][t], lambda t: 1.0 in t):
        with pytest.raises(sc.SymbolicValueError, match="of a symbolic value is not known"):
            ask(v)
    assert "[" not in repr(v).partition("=")[2]


def test_arguments_of_jit_are_not_known():
    @sc.jit
    def f(x):
        return x if x > 0 else -x

    with pytest.raises(sc.SymbolicValueError):
        f(1.0)
    assert sc.jit(lambda x: x * float(sc.sum(T)))(2.0) == 6.0


SAMPLED = [op for op in all_ops() if op.samples is not None]


@pytest.mark.parametrize("op", SAMPLED, ids=lambda op: op.name)
def test_every_op_of_constants_is_known(op):
    """By its reference; nothing that can be seen happens."""
    arrays, attrs = next(iter(op.samples()))
    v = op(*map(array, arrays), **attrs)
    if has_effect(v) or op.name == "all_reduce":
        with pytest.raises(sc.SymbolicValueError):
            np.asarray(Tensor(v))
        return
    found = op.reference(*arrays, **attrs) if not v.regions else None
    wanted = found if isinstance(v.type, TupleType) else (found,)
    for k, r in enumerate(results_of(v)):
        a = np.asarray(Tensor(r))
        assert a.dtype == r.dtype and a.shape == r.shape
        if found is not None:
            np.testing.assert_array_equal(a, wanted[k])
