"""Calls after calls that failed: whatever is wrong with one call, the next right one is as if it had not been."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.errors import SymcError

X, Y, M, I = sc.vector("x"), sc.vector("y"), sc.matrix("m"), sc.vector("i", dtype="int64")
N, K = X.shape[0], Y.shape[0]
A, NONE = np.arange(3.0) + 1, np.array([], "int64")
FAR = np.broadcast_to(1.0, 2**40)  # takes no memory; what is made of it does not fit
#: Outputs, inputs, arguments that are right, and some that are not.
PROGRAMS = {
    "size divided by zero": (lambda: sc.zeros(1000 // N) + X.sum(), [X], [A], [[A[:0]]]),
    "size of a reshape divided by zero": (lambda: sc.outer(X, Y).reshape(N * K // (N - 1), N - 1), [X, Y], [A, A[:2]],
                                          [[A[:1], A[:2]], [A[:0], A], [A, A]]),
    "negative length": (lambda: sc.pad(X, (0, N - 2)) * 2, [X], [A], [[A[:0]]]),
    "sizes that differ": (lambda: X * Y, [X, Y], [A, A], [[A, A[:2]], [A[:2], A]]),
    "more than 64 bits": (lambda: sc.zeros((N, N, 0)).sum() + X[0], [X], [A], [[FAR]]),
    "more than memory": (lambda: sc.sort(sc.outer(X, X).ravel()), [X], [A], [[FAR]]),
    "index outside": (lambda: X[I] * 2, [X, I], [A, np.array([0, -1])], [[A, np.array([3])], [A, np.array([-4, 0])]]),
    "scatter outside": (lambda: X.at[I].add(1.0), [X, I], [A, np.array([0, -1])], [[A, np.array([7])]]),
    "slice of few elements": (lambda: X[2] + X[-2], [X], [A], [[A[:1]], [A[:0]]]),
    "reduction of none": (lambda: sc.max(X) + sc.argmin(X), [X], [A], [[A[:0]]]),
    "singular": (lambda: sc.linalg.solve(M, X), [M, X], [np.eye(3), A], [[np.zeros((3, 3)), A], [np.eye(2), A]]),
    "not positive": (lambda: sc.linalg.cholesky(M), [M], [np.eye(3)], [[-np.eye(3)], [np.ones((2, 3))]]),
    "assertion": (lambda: sc.debug.assert_(sc.sqrt(X), sc.all(X > 0)), [X], [A], [[-A]]),
    "in a loop": (lambda: sc.scan(lambda c, i: (c + X[i], c), X[0] * 0, I)[1], [X, I], [A, np.array([0, 2])],
                  [[A, np.array([0, 3])], [A[:0], np.array([0])]]),
    "in a branch": (lambda: sc.cond(sc.sum(X) > 0, lambda x: x[2:3], lambda x: x[:1], X), [X], [A], [[A[:1]]]),
    "mask": (lambda: X[X > 0] + Y, [X, Y], [A, A], [[-A, A], [A, A[:2]]]),
    "length that is data": (lambda: sc.zeros(I[0]) + X.sum(), [X, I], [A, np.array([2])],
                            [[A, np.array([-2])], [A, NONE], [A, np.array([2**61])], [A, np.array([2**50])]]),
}
#: What is wrong with any call.
WRONG = (lambda a: ["text", *a[1:]], lambda a: [np.ones((2, 2, 2, 2)), *a[1:]], lambda a: [*a, 1], lambda a: [],
         lambda a: [a[0] + 1j, *a[1:]])


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"mode": "nan_guard"}], ids=["", "threads", "nan_guard"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_next_call_is_right(name, options):
    make, inputs, right, wrong = PROGRAMS[name]
    f = sc.compile([make(), sc.sum(inputs[0])], inputs, **options)
    want = [np.copy(r) for r in f(*right)]
    for bad in [*wrong, *(w(right) for w in WRONG)]:
        for _ in range(2):
            try:
                f(*bad)
            except (SymcError, MemoryError, TypeError) as e:
                assert not isinstance(e, sc.InternalError), bad
            for _ in range(3):  # the first is run by Python, later ones by the entry
                for got, expected in zip(f(*right), want, strict=True):
                    np.testing.assert_array_equal(got, expected)
