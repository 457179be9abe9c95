"""``denormals="flush"``: zeros inside a call, wherever it computes, and nothing else outside of it, however it ends."""

from __future__ import annotations

import pickle
import signal

import numpy as np
import pytest

import symc as sc
from symc.ir.attrs import Attrs
from symc.ir.value import make
from symc.tensors.inputs import Variable
from symc.tensors.tensor import Tensor
from tests.ir.op_cases import SAMPLED, cases

TINY = np.array([4e-310, 1.0, -2.3e-308, -5e-324])
FLUSHED = np.array([0.0, 0.5, 0.0, 0.0])


def kept() -> bool:
    """Whether this thread keeps denormal numbers, outside of any call."""
    return bool((TINY * 0.5)[0] == 2e-310)


def halved(**options) -> sc.CompiledFunction:
    x = sc.vector("x")
    return sc.compile(x * 0.5, [x], **options)


def test_they_are_kept_unless_asked_for():
    for f in (halved(), halved(denormals="keep")):
        for _ in range(2):
            assert f(TINY).tobytes() == (TINY * 0.5).tobytes()


@pytest.mark.parametrize("how", ["compile", "jit", "deferred", "saved", "pickled", "numba", "fast_compile", "debug"])
def test_zeros_in_the_call_alone(how, tmp_path):
    options = {"backend": how} if how == "numba" else {"mode": how} if how in ("fast_compile", "debug") else {}
    f = halved(denormals="flush", **options)
    if how == "jit":
        f = sc.jit(lambda x: x * 0.5, denormals="flush")
    elif how == "deferred":
        x = Variable("x")
        f = sc.compile(x * 0.5, [x], denormals="flush")
    elif how == "saved":
        f.save(tmp_path / "f")
        f = sc.load(tmp_path / "f")
    elif how == "pickled":
        f = pickle.loads(pickle.dumps(f))
    for _ in range(3):  # by Python, then by the entry
        assert np.array_equal(f(TINY), FLUSHED)
        assert kept()


def test_normal_numbers_are_as_ever():
    x = sc.vector("x")
    data = np.random.default_rng(0).normal(size=4000) * 10.0 ** np.arange(-200, 200, 0.1)
    y = sc.exp(-x * x) + sc.log1p(sc.abs(x)) + sc.cumsum(sc.tanh(x))
    a, b = (sc.compile(y, [x], denormals=d)(data) for d in ("keep", "flush"))
    assert a.tobytes() == b.tobytes()


def test_a_function_found_on_disk_does_as_it_was_told():
    for d in ("flush", "keep", "flush"):
        assert np.array_equal(halved(denormals=d)(TINY), FLUSHED) == (d == "flush")


def test_threads_take_over_the_state_of_the_call():
    x = sc.vector("x")
    f = sc.compile([sc.tanh(x) * 0.5, sc.sum(x)], [x], denormals="flush", threads=4)
    for _ in range(5):
        halves, total = f(np.full(2_000_000, 4e-310))
        assert not halves.any() and total == 0
    halves = sc.compile(sc.tanh(x) * 0.5, [x], threads=4)(np.full(2_000_000, 4e-310))
    assert halves.all() and kept()


def python_step(found: list[bool], error: type[Exception] | None = None) -> sc.CompiledFunction:
    """A function of which a step in the middle runs in Python, where it notes whether denormal numbers are kept."""

    @sc.op(name="notes_state" + "_and_fails" * (error is not None))
    def noting(a):
        found.append(kept())
        if error is not None and a.size > 1:
            raise error
        return a + 0.0

    x = sc.vector("x")
    return sc.compile(noting(x * 0.5 + 0.25) * 1e-310, [x], denormals="flush")


def test_python_in_the_middle_of_a_call_has_the_state_of_the_caller():
    found: list[bool] = []
    f = python_step(found)
    assert not f(TINY).any()
    assert found and all(found) and kept()


def test_the_state_comes_back_where_a_call_fails():
    found: list[bool] = []
    f = python_step(found, OverflowError)
    for _ in range(3):
        with pytest.raises((OverflowError, sc.SymcError)):
            f(TINY)
        assert all(found) and kept()
    x, k = sc.vector("x"), sc.input("k", "int64", ())
    g = sc.compile((x * 0.5)[k], [x, k], denormals="flush")
    for _ in range(3):
        assert g(TINY, 0) == 0
        with pytest.raises(IndexError):
            g(TINY, 9)
        assert kept()


@pytest.mark.parametrize("kernel", [True, False])
def test_signals_are_handled_in_the_state_of_the_caller(kernel):
    """In a loop that is a kernel and in one that is not; the loop goes on with zeros."""
    found: list[bool] = []
    n, x = sc.input("n", "int64", ()), sc.vector("x")
    h = sc.fori_loop(0, n, lambda _, h: sc.sin(h) * 1e-310 + 1.0 if kernel else sc.sort(sc.sin(h)) + 1.0,
                     sc.sum(x) if kernel else x)
    f = sc.compile([h, x * 0.5], [x, n], denormals="flush")
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(kept()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        steps = 1000
        while len(found) < 3 and steps < 10**9:
            assert not f(TINY, steps)[1][[0, 2, 3]].any()
            steps *= 4
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(found) and kept()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_function_of_a_denormal_number_is_that_of_a_zero(dtype):
    """Or of the number itself; of nothing else, such as of the bits of what is a zero elsewhere in the function."""
    least = np.finfo(dtype).smallest_subnormal
    data = np.array([least, 80 * least, 8e5 * least, -least, -80 * least, 0.0, -0.0, 1.5], dtype)
    x = sc.vector("x", dtype)
    ops = [(op, attrs) for op in SAMPLED if "elementwise" in op.traits and "effect" not in op.traits
           for arrays, attrs in next(([c] for c in cases(op) if [a.dtype.str[1:] for a in c[0]] == [dtype]), [])]
    found = sc.compile([Tensor(make(op, [x.value], Attrs(attrs))) for op, attrs in ops], [x], denormals="flush")(data)
    assert len(ops) > 40
    for (op, attrs), y in zip(ops, found, strict=True):
        with np.errstate(all="ignore"):
            wanted = [op.reference(a, **attrs) for a in (data, np.where(np.abs(data) < 1, 0 * data, data))]
        close = [np.isclose(y, w, rtol=1e-5, atol=1e7 * least, equal_nan=True) for w in wanted]
        assert np.all(close[0] | close[1]), (op, y, *wanted)


def test_profile_says_when_they_were_met():
    f = halved()
    assert f.profile(TINY).denormals and "denormals='flush'" in str(f.profile(TINY))
    assert not f.profile(np.ones(4)).denormals and "hint" not in str(f.profile(np.ones(4)))
    assert not halved(denormals="flush").profile(TINY).denormals
    x = sc.vector("x")
    assert not sc.compile(sc.exp(x), [x]).profile(np.full(4, -1e4)).denormals


@pytest.mark.parametrize("options", [dict(denormals="zero"), dict(denormals="flush", mode="reference"),
                                     dict(denormals="flush", backend="numpy"), dict(denormals="flush", device="cuda")])
def test_what_cannot_be_is_an_error(options):
    with pytest.raises(sc.InputError, match="denormals"):
        halved(**options)
