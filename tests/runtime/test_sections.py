"""Steps that threads run at the same time: the same bits, the same errors, states old or all new, and when."""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan import sections as sectioning
from symc.codegen.plan.check_plan import check_plan
from symc.runtime.cpu import lower_sections
from symc.runtime.cpu.executor import ARENA
from symc.runtime.cpu.lower import PlanLowering
from symc.runtime.cpu.native.pool import counted
from symc.runtime.cpu.native.pool_words import Pool
from symc.testing.interrupts import Alarm, alarm


def launches(f, *args) -> int:
    """How many launches a call has the pool for."""
    f(*args)
    before = counted(Pool.LAUNCHES)
    f(*args)
    return counted(Pool.LAUNCHES) - before


def same(a, b) -> bool:
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in zip(a, b, strict=True))


def matrices(count: int, n: int, seed: int = 0, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, n)).astype(dtype) for _ in range(count)]


@pytest.fixture
def eager(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever steps do not depend on each other run at the same time, at all sizes."""
    for name, number in dict(LAUNCH=0, SAVED=1, PART=0.0, SHORT=1, MEMORY=1e9).items():
        monkeypatch.setattr(sectioning, name, number)
    monkeypatch.setattr(lower_sections, "pays", lambda found, known: 1)


def sections_of(f) -> list[list[list[str]]]:
    """The ops of the sections of each group."""
    plan = f._compilation.plan
    return [[[plan.steps[at].value.op.name for at in range(a, b)] for a, b in itertools.pairwise(g)]
            for g in plan.sections]


# --- what runs at the same time, and when -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qr", "svd", "eigh"])
def test_factorizations(name):
    x, y = (sc.matrix(n, shape=(120, 120)) for n in "xy")
    outputs = [*getattr(sc.linalg, name)(x), *getattr(sc.linalg, name)(y)]
    a, b = matrices(2, 120)
    one, two = (sc.compile(outputs, [x, y], threads=n) for n in (1, 2))
    assert sections_of(two) == [[[name], [name]]] and sections_of(one) == []
    assert same(one(a, b), two(a, b)) and same(one(b, a), two(b, a))
    assert (launches(one, a, b), launches(two, a, b)) == (0, 1)
    assert "at the same time" in str(two.explain()) and "sections {" in str(two.plan)


def test_what_does_not_pay_is_run_by_one_thread():
    """One function for every size: whether it pays is decided by each call."""
    x, y = (sc.matrix(name, shape=("n", "n")) for name in "xy")
    outputs = [sc.linalg.qr(x)[1], sc.linalg.qr(y)[1]]
    one, two = (sc.compile(outputs, [x, y], threads=n) for n in (1, 2))
    assert len(sections_of(two)) == 1
    for n, expected in ((3, 0), (150, 1), (0, 0), (20, 0), (200, 1)):
        args = matrices(2, n)
        assert launches(two, *args) == expected
        assert same(one(*args), two(*args))


def test_both_directions_of_a_recurrent_network():
    x = sc.tensor3("x", "float32", shape=(60, 16, 64))
    layers = sc.nn.lstm(sc.Params(), 64, 64, bidirectional=True)
    loss = sc.sum(layers.transduce(x) ** 2)
    one, two = (sc.compile([loss, *sc.grad(loss, [x])], [x], threads=n) for n in (1, 2))
    assert sections_of(two) == [[["scan"], ["scan"]], [["scan"], ["scan"]]]
    data = np.random.default_rng(0).standard_normal((60, 16, 64)).astype("float32")
    assert same(one(data), two(data))


def test_towers():
    def tower(x, weights):
        for w in weights:
            x = sc.tanh(x @ w)
        return x

    x, y = (sc.matrix(n, "float32", shape=(128, 256)) for n in "xy")
    us, vs = ([sc.matrix(f"{n}{k}", "float32", shape=(256, 256)) for k in range(3)] for n in "uv")
    loss = sc.sum((tower(x, us) - tower(y, vs)) ** 2)
    outputs, inputs = [loss, *sc.grad(loss, [*us, *vs])], [x, y, *us, *vs]
    one, two = (sc.compile(outputs, inputs, threads=n) for n in (1, 2))
    products = sum(s.count("dot") for g in sections_of(two) for s in g)
    assert products == two.calls["gemm"] and len(sections_of(two)) < products / 2
    args = [a[:128] if k < 2 else a * np.float32(0.05) for k, a in enumerate(matrices(8, 256, dtype="float32"))]
    assert same(one(*args), two(*args))


def test_several_reductions():
    xs = [sc.vector(f"x{k}", shape=(100_000 - 64 * k,)) for k in range(4)]
    one, two = (sc.compile([sc.sum(sc.exp(x)) for x in xs], xs, threads=n) for n in (1, 2))
    data = [np.random.default_rng(k).standard_normal(100_000 - 64 * k) for k in range(4)]
    assert len(sections_of(two)) == 1 and same(one(*data), two(*data)) and launches(two, *data) == 1


def test_a_profile_times_one_step_after_the_other():
    x, y = (sc.matrix(n, shape=(120, 120)) for n in "xy")
    f = sc.compile([sc.linalg.qr(x)[1], sc.linalg.qr(y)[1]], [x, y], threads=2)
    assert [row.runs for row in f.profile(*matrices(2, 120))] == [1, 1]


def test_what_runs_in_python_runs_alone(eager):
    x, y = (sc.matrix(n, shape=(30, 30)) for n in "xy")
    f = sc.compile([sc.linalg.expm(x), sc.linalg.expm(y), sc.linalg.qr(x)[1], sc.linalg.qr(y)[1]], [x, y], threads=2)
    assert not any("expm" in s for g in sections_of(f) for s in g)
    a, b = matrices(2, 30)
    np.testing.assert_allclose(f(a, b)[1], sc.compile(sc.linalg.expm(x), threads=1)(b))


# --- the same as one thread -------------------------------------------------------------------------------------------


def program(choose: random.Random) -> tuple[list[Any], list[Any]]:
    """A random program on matrices: products, factorizations, loops, sorting, transforms, kernels."""
    xs = [sc.matrix(f"x{k}", choose.choice(["float64", "float32"]) if k == 2 else "float64", shape=("n", "n"))
          for k in range(3)]
    pool = [sc.astype(x, "float64") for x in xs]

    def unary(v):
        return choose.choice([
            sc.tanh, lambda v: sc.linalg.qr(v)[1], lambda v: sc.linalg.svdvals(v)[:, None] * v, sc.sort,
            lambda v: v + sc.sum(v, axis=0), lambda v: sc.linalg.solve(v + 50 * sc.eye(v.shape[0]), v),
            lambda v: sc.scan(lambda h, row: (sc.tanh(h @ v + row), h), v[0], v)[1],
            lambda v: sc.cumsum(v, axis=1), lambda v: v.at[sc.argsort(v[0])].add(v[::-1]),
            lambda v: sc.fft.irfft(sc.fft.rfft(v), v.shape[1]),
        ])(v)

    for _ in range(choose.randint(4, 9)):
        v, w = choose.choice(pool), choose.choice(pool)
        pool.append(choose.choice([lambda v=v: unary(v), lambda v=v: unary(v), lambda v=v, w=w: sc.tanh(v @ w),
                                   lambda v=v, w=w: sc.sin(v) * w])())
    return pool[-4:], xs


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_have_the_same_bits(eager, seed):
    """125 calls each, of several sizes in turns, by several callers at once."""
    choose = random.Random(seed)
    outputs, inputs = program(choose)
    one, two = (sc.compile(outputs, inputs, threads=n) for n in (1, 2))
    check_plan(two._compilation.plan)
    assert sections_of(two)
    data = {n: [a.astype(i.dtype) for a, i in zip(matrices(3, n, seed), inputs, strict=True)] for n in (9, 24, 1, 17)}
    wanted = {n: one(*args) for n, args in data.items()}
    wrong = []

    def calls(first: int, count: int) -> None:
        for k in range(first, first + count):
            n = list(data)[k % len(data)]
            if not same(two(*data[n]), wanted[n]):
                wrong.append(n)

    calls(0, 65)
    callers = [threading.Thread(target=calls, args=(k, 20)) for k in range(3)]
    for t in callers:
        t.start()
    for t in callers:
        t.join(120)
    assert not wrong and not any(t.is_alive() for t in callers)


def test_workspaces_lie_apart(eager, monkeypatch):
    """What routines use behind the arena while they run, of sections of a group."""
    taken: dict[int, list[tuple[Any, Any]]] = {}
    step = [0]
    workspace, one = PlanLowering.workspace, PlanLowering.one

    def recorded(self, nbytes):
        slot = workspace(self, nbytes)
        address = self.code.address_of(slot)
        assert address is not None and address.space == ARENA.space
        taken.setdefault(step[0], []).append((address.offset, nbytes))
        return slot

    def at_step(self, plan, at, slots):
        step[0] = at
        one(self, plan, at, slots)

    monkeypatch.setattr(PlanLowering, "workspace", recorded)
    monkeypatch.setattr(PlanLowering, "one", at_step)
    xs = [sc.matrix(f"x{k}", shape=(20 + k, 20 + k)) for k in range(4)]
    f = sc.compile([r for x in xs for r in (sc.linalg.qr(x)[1], sc.linalg.svdvals(x @ x))], xs, threads=2)
    f(*[matrices(1, 20 + k)[0] for k in range(4)])
    most = 0
    for group in f._compilation.plan.sections:
        section = {at: k for k, (a, b) in enumerate(itertools.pairwise(group)) for at in range(a, b)}
        places = [(section[at], start, start + n) for at, found in taken.items() for start, n in found if at in section]
        most = max(most, len({k for k, _, _ in places}))
        for k, a, b in places:
            assert all(k == other or b <= c or d <= a for other, c, d in places)
    assert most > 2


# --- what fails -------------------------------------------------------------------------------------------------------


def message(f, *args) -> str:
    with pytest.raises(sc.SymcError) as caught:
        f(*args)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_the_first_in_the_sequence_of_the_plan_is_what_is_raised(eager):
    x, y = (sc.matrix(n, shape=(150, 150)) for n in "xy")
    i = sc.vector("i", "int64", shape=(150,))
    outputs = [sc.linalg.cholesky(x) + sc.linalg.qr(x)[1], sc.sum(sc.linalg.cholesky(y)) + sc.linalg.qr(y)[1][i]]
    one, two = (sc.compile(outputs, [x, y, i], threads=n) for n in (1, 2))
    good, bad = 200 * np.eye(150), -np.eye(150)
    inside, outside = np.arange(150), np.arange(150) + 1
    assert len(sections_of(two)) == 1 and launches(two, good, good, inside) == 1
    for args in ((bad, good, inside), (good, bad, inside), (good, good, outside), (bad, bad, outside),
                 (bad, good, outside)):
        assert message(two, *args) == message(one, *args)
        assert same(two(good, good, inside), one(good, good, inside))


def test_native_code_that_fails_and_is_helped_out(eager):
    """A step whose reference computes what native code does not goes on, and so does what comes after it."""
    x, y = (sc.matrix(name, shape=("n", "n")) for name in "xy")
    outputs = [r for v in (x, y) for r in (sc.linalg.qr(v)[1], sc.linalg.svdvals(v), sc.sort(v @ v))]
    one, two = (sc.compile(outputs, [x, y], threads=n) for n in (1, 2))
    for n in (0, 3, 0, 40):
        args = matrices(2, n)
        assert same(one(*args), two(*args))


def test_states_are_all_old_where_a_section_fails():
    x, y = (sc.matrix(n, shape=(150, 150)) for n in "xy")
    u, v = (sc.shared(np.zeros((150, 150)), n) for n in "uv")
    updates = {u: u + sc.linalg.cholesky(x), v: v + sc.linalg.cholesky(y)}
    f = sc.compile([], [x, y], updates=updates, threads=2)
    assert sections_of(f) == [[["cholesky"], ["cholesky"]]]
    good, bad = 200 * np.eye(150), -np.eye(150)
    f(good, good)
    before = [u.get_value(), v.get_value()]
    for args in ((bad, good), (good, bad), (bad, bad)):
        with pytest.raises(sc.LinAlgError):
            f(*args)
        assert same(before, [u.get_value(), v.get_value()])
    f(good, good)
    assert np.array_equal(u.get_value(), 2 * before[0])


@pytest.fixture
def timer() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, alarm)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("lengths", [(10**7, 10**7 + 1), (10**7, 1000), (1000, 10**7)])
def test_long_sections_are_interrupted(eager, timer, lengths):
    """Also one in another thread than the call's, and the states stay as they were."""
    x, y = sc.vector("x", shape=(64,)), sc.vector("y", shape=(64,))
    w = sc.shared(np.eye(64) * 0.5, "w")

    def ends(v, length):
        return sc.scan(lambda h, _: (sc.sort(sc.tanh(h @ w)), None), v, length=length)[0]

    a, b = (ends(v, n) for v, n in zip((x, y), lengths, strict=True))
    f = sc.compile([a, b], [x, y], updates={w: w * sc.sum(a) * sc.sum(b)}, threads=2)
    assert sections_of(f) == [[["scan"], ["scan"]]]
    before, data = w.get_value(), np.linspace(0, 1, 64)
    for _ in range(2):
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        start = time.monotonic()
        with pytest.raises(Alarm):
            f(data, data)
        assert time.monotonic() - start < 30
        assert np.array_equal(w.get_value(), before)


def test_signals_in_between_change_nothing(monkeypatch, timer):
    """Sections stop for looks at signals, many times, and go on where they were."""
    x, y = sc.vector("x", shape=(64,)), sc.vector("y", shape=(64,))
    w = np.eye(64) * 0.5

    def ends(v, length):
        return sc.scan(lambda h, _: (sc.sort(sc.tanh(h @ w)), None), v, length=length)[0]

    one, two = (sc.compile([ends(x, 30_000), ends(y, 30_001)], [x, y], threads=n) for n in (1, 2))
    assert sections_of(two) == [[["scan"], ["scan"]]]
    data = [np.linspace(0, 1, 64), np.linspace(1, 2, 64)]
    wanted, seen = one(*data), []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    assert same(two(*data), wanted) and seen


def test_a_plan_on_disk_is_of_the_same_kind(tmp_path):
    """One and several threads have plans of their own, in the warm cache too."""
    x, y = (sc.matrix(n, shape=(121, 121)) for n in "xy")
    args = matrices(2, 121)
    outputs = [sc.linalg.qr(x)[1], sc.linalg.qr(y)[1]]
    counts = [launches(sc.compile(outputs, [x, y], threads=n), *args) for n in (2, 1, 2, 1)]
    assert counts == [1, 0, 1, 0]
