"""Assertions of functions that are compiled for a device: raised where the results are waited for."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.errors import AssertError
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler


def test_assertions_hold_or_are_raised():
    x = sc.input("x", "float32", ("n",))
    checked = sc.debug.assert_(x * 2, x > 0, "x is positive", of=x)
    with emulated_cuda():
        f = sc.compile([checked + 1, sc.debug.assert_(x, sc.sum(x) < 100)], [x], device="cuda")
        y, same = f(np.array([1, 2, 3], "f4"))
        assert y.numpy().tolist() == [3, 5, 7] and same.numpy().tolist() == [1, 2, 3]
        with pytest.raises(AssertError, match=r"assert_: x is positive\n.*in .*test_generic_assert.py"):
            f(np.array([1, 0], "f4"))[0].numpy()
        with pytest.raises(AssertError, match="assert_: the condition does not hold"):
            f(np.array([101], "f4"))[1].numpy()
        y, _ = f(np.zeros(0, "f4"))
        assert y.shape == (0,) and y.numpy().size == 0, "what held before holds again"



def test_assertions_in_a_loop_whose_end_nobody_needs():
    x = sc.input("x", "float32", ("n",))
    _, rows = sc.scan(lambda h, _: (sc.debug.assert_(h * 1.5, h < 10, "small"), h), x[0], length=3)
    with emulated_cuda():
        f = sc.compile(rows, [x], device="cuda")
        assert f(np.ones(3, "f4")).numpy().tolist() == [1, 1.5, 2.25]
        with pytest.raises(AssertError, match="assert_: small"):
            f(np.full(3, 9, "f4")).numpy()
