"""What a process keeps of graphs that are gone: nothing that grows with their number."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter

import numpy as np
import pytest

import symc as sc
import symc.dyn as dy


def straight(k):
    v = sc.vector("v")
    sc.grad(sc.sum(sc.sin(v) * (k % 3)), v)


def loop(k):
    v = sc.matrix("v")
    sc.grad(sc.sum(sc.scan(lambda h, row: (sc.sin(h + row), h), sc.zeros(3), v)[1]), v)


def several(k):
    A = sc.matrix("A")
    sc.linalg.eigh(A)[0] + sc.sort(A, axis=0)[0]


def counted(k):
    v = sc.vector("v")
    sc.unique(v[v > 0])


def recorded(k):
    a = dy.Var(np.ones((k % 5 + 1, 2)))
    (a * a).sum().backward()


GIVEN = sc.matrix("given")
CALLED = sc.compile([sc.cumsum(GIVEN), GIVEN[GIVEN[:, 0] > 0], sc.sum(GIVEN @ GIVEN.T)], [GIVEN])
TRACED = sc.jit(lambda a: sc.exp(a) - a.mean())


def called(k):
    CALLED(np.ones((k % 7 + 1, 3)))


def refused(k):
    with contextlib.suppress(sc.SymcError):
        CALLED(np.ones(k % 7 + 1))


def traced(k):
    TRACED(np.ones((k % 7 + 2, 3)))


#: What sizes are made of: of those, the last thousands are kept.
SIZES = ("Dim", "Call", "tuple")


def objects():
    gc.collect()
    return Counter(type(o).__name__ for o in gc.get_objects())


@pytest.mark.parametrize("step", [straight, loop, several, counted, recorded, called, refused, traced])
def test_nothing_grows_with_the_number_of_graphs_and_calls(step):
    for k in range(20):
        step(k)
    before = objects()
    for k in range(60):
        step(k)
    grown = {name: n for name, n in (objects() - before).items() if name not in SIZES}
    assert sum(grown.values()) < 60, grown
