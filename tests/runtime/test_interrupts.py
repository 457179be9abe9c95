"""Calls that are interrupted, anywhere: states stay as they were or are all new, and everything still works."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import symc as sc
from examples import char_lstm, cnn_digits, hmc, kalman, logistic_regression, mlp_digits
from symc import errors
from symc.testing.child import in_child
from symc.testing.interrupts import MANY, Alarm, alarm, at_point, check_atomic, digest, interrupted

RNG = np.random.default_rng(0)
#: Modes with more points than can be tried in a test: so many steps apart.
STRIDES = {"default": 1, "reference": 197, "nan_guard": 499}


def state(name: str, *shape: int) -> sc.SharedVariable:
    return sc.shared(RNG.normal(size=shape), name)


# --- small programs: outputs, inputs, updates, arguments --------------------------------------------------------------


def perceptron() -> tuple:
    x, y = sc.input("x", "float64", shape=("n", 8)), sc.input("y", "float64", shape=("n", 3))
    w1, b1, w2, b2 = parameters = state("w1", 8, 16), state("b1", 16), state("w2", 16, 3), state("b2", 3)
    loss = sc.mean((sc.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)
    updates = {p: p - 0.1 * g for p, g in zip(parameters, sc.grad(loss, list(parameters)), strict=True)}
    return loss, [x, y], updates, (RNG.normal(size=(9, 8)), RNG.normal(size=(9, 3)))


def exchanged() -> tuple:
    v, w, x = state("v", 4), state("w", 4), sc.input("x", "float64", shape=(4,))
    return {"old": v, "sum": v @ w + sc.sum(x)}, [x], {v: w, w: v * 1.5}, (np.ones(4),)


def carried() -> tuple:
    w, u, x = state("w", 40), state("u", 40), sc.input("x", "float64", shape=("t", 40))
    last, _ = sc.scan(lambda h, row: (sc.tanh(h + row), sc.sum(h)), w, x)
    return (), [x], {w: last, u: u + 1}, (RNG.normal(size=(30, 40)),)


def repeated() -> tuple:
    w, u, x = sc.shared(1.0, "w"), state("u", 5), sc.input("x", "float64", shape=())
    return u, [x], {w: sc.while_loop(lambda s: s < 1e3, lambda s: s + x, w), u: u + w}, (np.float64(1),)


def in_python() -> tuple:
    @sc.op
    def doubled_slowly(a):
        return 2 * a

    w, u, x = state("w", 5), state("u", 5), sc.input("x", "float64", shape=(5,))
    return doubled_slowly(x), [x], {w: w + doubled_slowly(x), u: u + 1}, (np.ones(5),)


def cached() -> tuple:
    a, w, u = sc.shared(np.eye(5) * 2, "a"), state("w", 5), state("u", 5)
    x = sc.input("x", "float64", shape=(5,))
    return sc.sum(w), [x], {w: sc.linalg.solve(a, x) + w, u: u + 1}, (np.ones(5),)


def branching() -> tuple:
    w, u, x = state("w", 5), state("u", 5), sc.input("x", "float64", shape=(5,))
    return (), [x], {w: sc.cond(sc.sum(x) > 0, lambda: w + x, lambda: sc.sort(x)), u: u * 2 + 1}, (np.ones(5),)


def indexed() -> tuple:
    w, u, x, i = state("w", 5), state("u", 5), sc.input("x", "float64", shape=(5,)), sc.input("i", "int64", shape=(3,))
    return w[i], [x, i], {w: w + x, u: u + sc.sum(x[i])}, (np.ones(5), np.array([0, 1, 4]))


def asserted() -> tuple:
    w, u, x = state("w", 5), state("u", 5), sc.input("x", "float64", shape=(5,))
    return (), [x], {w: w + sc.debug.assert_(x, sc.all(x > 0), "positive"), u: u + 1}, (np.ones(5),)


PROGRAMS = [perceptron, exchanged, carried, repeated, in_python, cached, branching, indexed, asserted]


@pytest.mark.parametrize("mode", STRIDES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_states_are_old_or_all_new(program: Callable[[], tuple], mode: str) -> None:
    """At every point of every kind of call."""
    outputs, inputs, updates, args = program()
    f = sc.compile(outputs, inputs, updates=updates, mode=mode)
    named = dict(zip([i.name for i in f.inputs], args, strict=True))
    ways: list[Callable[[], Any]] = [lambda: f(*args), lambda: f(**named), lambda: f._call_path.call(*args)]
    if not isinstance(outputs, tuple):
        buffers = f(*args)
        ways.append(lambda: f(*args, out=buffers))
    for call in ways:
        old, new = check_atomic(call, list(updates), range(0, MANY, STRIDES[mode]))
        assert old and new or mode != "default"
    for _ in range(3):
        f(*args)
    check_atomic(ways[0], list(updates), range(0, MANY, STRIDES[mode]))  # served by native code, where it may be


def test_the_debug_mode_runs_on_copies() -> None:
    outputs, inputs, updates, args = exchanged()
    f = sc.compile(outputs, inputs, updates=updates, mode="debug")
    check_atomic(lambda: f(*args), list(updates), range(0, 60_000, 2999))


@pytest.mark.parametrize("program", PROGRAMS[::2], ids=lambda p: p.__name__)
def test_a_first_call_is_interrupted(program: Callable[[], tuple]) -> None:
    """While code is lowered, native entries are made, and signatures are remembered."""
    outputs, inputs, updates, args = program()
    start = [s.get_value() for s in updates]
    old = digest(list(updates))
    new: tuple = ()
    for n in range(0, MANY, 307):
        f = sc.compile(outputs, inputs, updates=updates)
        for s, value in zip(updates, start, strict=True):
            s.set_value(value)
        if interrupted(lambda f=f: f(*args), n) and digest(list(updates)) == old:
            f(*args)
        new = new or digest(list(updates))
        assert digest(list(updates)) == new
        for _ in range(3):
            f(*args)
        if n > 2500:
            break


class _Found(Exception):
    pass


def stateful(main: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, tuple]:
    """The first function with states to update that an example calls, and its arguments."""
    compile_ = sc.compile

    def watching(*args: Any, **kwargs: Any) -> Any:
        f = compile_(*args, **kwargs)
        if kwargs.get("updates"):
            f.__call__ = partial(found, f)
        return f

    def found(f: Any, *args: Any) -> None:
        raise _Found(f, args)

    monkeypatch.setattr(sc, "compile", watching)
    with pytest.raises(_Found) as e:
        main()
    monkeypatch.undo()
    f, args = e.value.args
    f.__call__ = f._call_path.call
    return f, args


EXAMPLES = {"char_lstm": lambda: char_lstm.main(2, hidden=16, batch=2, steps=5, show=False),
            "cnn_digits": lambda: cnn_digits.main(epochs=1), "mlp_digits": mlp_digits.main,
            "logistic_regression": logistic_regression.main}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = stateful(EXAMPLES[name], monkeypatch)
    old, new = check_atomic(lambda: f(*args), list(f.shared.values()), range(0, MANY, 1 if name[0] == "l" else 13))
    assert old and new


def test_every_example_with_updates_is_tried() -> None:
    folder = Path(__file__).parents[2] / "examples"
    assert {p.stem for p in folder.glob("*.py") if "updates=" in p.read_text()} == {*EXAMPLES}
    assert hmc and kalman  # they have no states


# --- what else may go wrong in a call ---------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("program", [perceptron, branching], ids=lambda p: p.__name__)
def test_no_memory_at_any_place(program: Callable[[], tuple], native: bool) -> None:
    """Every single allocation of Python's objects fails once. (Where it is one of native code, the call is made again
    by Python.)"""
    testing = pytest.importorskip("_testcapi")
    if not hasattr(testing, "set_nomemory"):
        pytest.skip("this Python cannot let an allocation fail")
    outputs, inputs, updates, args = program()
    f = sc.compile(outputs, inputs, updates=updates)
    named = dict(zip([i.name for i in f.inputs], args, strict=True))
    states = list(updates)
    f(**named)
    call = f if native else f._call_path.call
    start, old = [s.get_value() for s in states], digest(states)
    call(**named)
    new, failed = digest(states), 0
    for n in range(500):
        for s, value in zip(states, start, strict=True):
            s.set_value(value)
        try:
            testing.set_nomemory(n, n + 1)
            call(**named)
        except Exception:  # not all of what is written in C says that it is for want of memory
            failed += 1
        finally:
            testing.remove_mem_hooks()
        assert digest(states) in (old, new), f"torn at allocation {n}"
        assert not any(s.cell.lock._is_owned() for s in states), f"locked at allocation {n}"
    assert native or failed > 20


def test_a_constructor_of_results_that_fails_leaves_no_torn_states() -> None:
    class Pair(NamedTuple):
        left: Any
        right: Any

    class Failing(Pair):
        def __new__(cls, left: Any, right: Any) -> Any:
            if fails:
                raise ZeroDivisionError("in the user's constructor")
            return super().__new__(cls, left, right)

    fails: list[int] = []
    x, v, w = sc.input("x", "float64", shape=(3,)), state("v", 3), state("w", 3)
    f = sc.compile(Failing(sc.sum(x), x), [x], updates={v: v + x, w: v[::-1] * w})
    for _ in range(4):
        old = digest([v, w])
        f(np.ones(3))
        starts = [s.get_value() for s in (v, w)]
        fails.append(1)
        with pytest.raises(Exception, match="in the user's constructor"):
            f(np.ones(3))
        fails.clear()
        failed = digest([v, w])
        assert failed != old
        for s, value in zip((v, w), starts, strict=True):
            s.set_value(value)
        old = digest([v, w])
        f(np.ones(3))
        assert failed in (old, digest([v, w]))


def test_a_branch_without_value_leaves_states_as_they_were() -> None:
    """A reduction of nothing, which is refused when the branch runs: perhaps after a state was written over."""
    x, v, w, c = sc.input("x", "float64", shape=("n",)), state("v", 3), state("w", 3), sc.input("c", "bool", shape=())
    f = sc.compile((), [x, c], updates={v: v + 1, w: w * sc.cond(c, lambda: sc.max(x), lambda: sc.sum(x))})
    f(np.ones(2), True)
    f(np.ones(0), False)
    old = digest([v, w])
    for _ in range(3):
        with pytest.raises(sc.SymcError):
            f(np.ones(0), True)
        assert digest([v, w]) == old


def test_an_exception_of_a_handler_arrives_unchanged() -> None:
    for mode in ("default", "reference", "nan_guard"):
        outputs, inputs, updates, args = in_python()
        f = sc.compile(outputs, inputs, updates=updates, mode=mode)
        check_atomic(lambda f=f, args=args: f(*args), list(updates), range(0, MANY, STRIDES[mode]), alarm)
    x = sc.input("x", "float64", shape=("n",))
    with pytest.raises(sc.SymcError) as e:  # one that is not a handler's, but what a handler's error looks like
        sc.compile(x + 1, [x])("no")
    assert not errors.of_handler(e.value)


@pytest.mark.parametrize("handler", [signal.default_int_handler, alarm], ids=["interrupt", "alarm"])
def test_compiling_is_interrupted(handler: Any) -> None:
    """Nowhere is the signal taken for an error of a rule, an op or a backend; and the next compile works."""
    x = sc.input("x", "float64", shape=("n",))
    for n in range(0, 100_000, 7919):
        value = sc.sum(sc.exp(x * float(n)) + x[::-1])
        if interrupted(lambda value=value: sc.compile(value, [x])(np.zeros(3)), n, handler) is None:
            break
        assert sc.compile(value, [x])(np.zeros(3)) == 3


# --- loops that never end ---------------------------------------------------------------------------------------------


def forever() -> dict[str, tuple]:
    """Loops that take for ever: a kernel, one of another compiler, a scan of a state, a loop of steps; in a loop."""
    x, n, big = sc.input("x", "float64", shape=()), sc.input("n", "float64", shape=("n",)), state("w", 200)
    one, w = np.float64(1), sc.shared(1.0, "w")
    nested = sc.while_loop(lambda s: s < 2, lambda s: sc.while_loop(lambda t: t < 2, lambda t: t * 0.5 + 0.5, s), x)
    return {
        "kernel": (sc.while_loop(lambda s: s < 2, lambda s: s * 0.5 + 0.5, x), [x], {}, (one,)),
        "nested": (nested, [x], {}, (one,)),
        "state": ((), [x], {w: sc.while_loop(lambda s: s < 2, lambda s: s * 0.5 + 0.5 * x, w)}, (one,)),
        "steps": (sc.while_loop(lambda s: sc.sum(s) < 0, lambda s: s * 0.5 - 1, big - 100), [], {}, ()),
        "scan": ((), [n], {big: sc.scan(lambda h, r: (sc.tanh(h + r), ()), big, n)[0]}, (np.zeros(40_000_000),)),
        "small scan": ((), [n], {w: sc.scan(lambda h, r: (sc.sin(h + r), ()), w, n)[0]}, (np.zeros(100_000_000),)),
    }


@pytest.mark.parametrize("warm", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("name", forever())
def test_loops_can_be_interrupted(name: str, warm: bool) -> None:
    outputs, inputs, updates, args = forever()[name]
    f = sc.compile(outputs, inputs, updates=updates)
    short = [a[:2] if np.ndim(a) else np.float64(3) for a in args]
    start = [s.get_value() for s in updates]
    if warm and name not in ("steps", "state"):
        for _ in range(3):
            f(*short)
    for s, value in zip(updates, start, strict=True):
        s.set_value(value)
    old = digest(list(updates))
    for error, handler in ((KeyboardInterrupt, signal.default_int_handler), (Alarm, alarm)):
        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        began = time.perf_counter()
        try:
            with pytest.raises(error):
                f(*args)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert time.perf_counter() - began < 5
        assert digest(list(updates)) == old
    f(*short) if args and name != "state" else None


def test_other_threads_run_beside_a_loop_that_is_a_kernel() -> None:
    x = sc.input("x", "float64", shape=())
    f = sc.compile(sc.while_loop(lambda s: s < 2, lambda s: s * 0.5 + 0.5, x), [x])
    for _ in range(3):
        f(np.float64(3))
    seen: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            seen.append(time.perf_counter())

    before = signal.signal(signal.SIGALRM, alarm)
    thread = threading.Thread(target=tick)
    thread.start()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(Alarm):
            f(np.float64(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stop.set()
        thread.join()
    assert len(seen) > 20


@pytest.mark.parametrize("length", [1, 2, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_loops_in_parts_are_the_same_loops(length: int, reverse: bool) -> None:
    n = sc.input("n", "float64", shape=("n",))
    loop = sc.scan(lambda h, r: (h * 0.5 + r, h), 0.0, n, reverse=reverse)
    data = RNG.normal(size=length)
    want, h = np.empty(length), 0.0
    for k in reversed(range(length)) if reverse else range(length):
        want[k], h = h, h * 0.5 + data[k]
    last, rows = sc.compile(loop, [n])(data)
    np.testing.assert_allclose(rows, want)
    np.testing.assert_allclose(last, h)


# --- processes --------------------------------------------------------------------------------------------------------


def training() -> SimpleNamespace:
    n = 100_000
    x, v, w = sc.input("x", "float64", shape=(n,)), sc.shared(np.zeros(n), "v"), sc.shared(np.zeros(n), "w")
    f = sc.compile((), [x], updates={v: v + x, w: w + x[::-1]})
    for _ in range(3):
        f(np.ones(n))
    return SimpleNamespace(step=lambda: f(np.ones(n)), v=v, w=w)


def test_a_fork_while_another_thread_is_in_a_call() -> None:
    t, stop = training(), threading.Event()

    def train() -> None:
        while not stop.is_set():
            t.step()

    def continues() -> Any:
        v, w = t.v.get_value(), t.w.get_value()
        t.step()
        y = sc.input("y", "float64", shape=("m",))
        compiled = sc.compile(sc.sin(y) * 3.25, [y])(np.zeros(2))
        return (v == v[0]).all() and (v == w).all() and t.v.get_value()[0] == v[0] + 1 and not compiled.any()

    thread = threading.Thread(target=train)
    thread.start()
    try:
        assert [in_child(continues) for _ in range(5)] == ["True"] * 5
    finally:
        stop.set()
        thread.join()


def test_a_fork_in_the_middle_of_a_long_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be half done is not read; all else works."""
    from symc.ir import locks

    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    inside, go = threading.Event(), threading.Event()

    @sc.op
    def waiting(a):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            go.wait(20)
        return a + 1

    w, r, x = sc.shared(np.zeros(3), "w"), sc.shared(np.ones(3), "r"), sc.input("x", "float64", shape=(3,))
    f = sc.compile(sc.sum(r), [x], updates={w: w + waiting(x)})
    reads = sc.compile(r * x, [x])

    def works() -> Any:
        with pytest.raises(sc.InputError, match="w was being updated by another thread when this process was forked"):
            w.get_value()
        with pytest.raises(sc.InputError, match="when this process was forked"):
            f(np.ones(3))
        w.set_value(np.zeros(3))
        go.set()
        return f(np.ones(3)) == 3 and w.get_value()[0] == 2 and reads(np.ones(3))[0] == 1

    thread = threading.Thread(target=f, args=(np.ones(3),))
    thread.start()
    try:
        assert inside.wait(20) and in_child(works) == "True"
    finally:
        go.set()
        thread.join()
    assert w.get_value()[0] == 2


def test_a_fork_in_the_middle_of_a_long_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled runs in the child; compiling there is an error, as it would wait for llvmlite's lock forever."""
    from symc.ir import locks
    from symc.runtime.compilers import llvm_compile

    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    monkeypatch.setenv("SYMC_CACHE_DIR", "off")
    inside, go, optimized = threading.Event(), threading.Event(), llvm_compile.optimized

    def slowly(text: str, machine: object) -> object:
        inside.set()
        go.wait(20)
        raise RuntimeError  # LLVM itself is not needed

    x = sc.input("x", "float64", shape=("n",))
    known = sc.compile(sc.sum(x * 7.25), [x])
    for _ in range(3):
        known(np.ones(2))
    monkeypatch.setattr(llvm_compile, "optimized", slowly)

    def works() -> Any:
        go.set()
        monkeypatch.setattr(llvm_compile, "optimized", optimized)
        with pytest.raises(sc.ExecutionError, match="another thread was compiling when this process was forked"):
            sc.compile(sc.sum(x * 7.75), [x])(np.ones(2))
        return known(np.ones(2)) == 14.5

    def fails() -> None:
        with pytest.raises(Exception):  # noqa: B017
            sc.compile(sc.sum(x * 7.5), [x])(np.ones(2))

    thread = threading.Thread(target=fails)
    thread.start()
    try:
        assert inside.wait(20) and in_child(works) == "True"
    finally:
        go.set()
        thread.join()
    monkeypatch.setattr(llvm_compile, "optimized", optimized)
    assert sc.compile(sc.sum(x * 7.75), [x])(np.ones(2)) == 15.5


def test_threads_of_kernels_in_a_forked_process() -> None:
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile(sc.sum(sc.exp(sc.sin(x))), [x], threads=2)
    data = RNG.normal(size=300_000)
    want = f(data)
    assert in_child(lambda: f(data) == want) == "True"


SCRIPT = """
import os, signal, sys, threading, numpy as np, symc as sc
signal.signal(signal.SIGINT, signal.default_int_handler)
n = 40_000
x = sc.input("x", "float64", shape=(n,))
states = [sc.shared(np.zeros(n), f"s{k}") for k in range(6)]
f = sc.compile((), [x], updates={s: s + x if k % 2 else x[::-1] + s[::-1] for k, s in enumerate(states)})
data = np.ones(n)
f(data)
delays = np.random.default_rng(0)
for k in range(25):
    signal.setitimer(signal.ITIMER_REAL, 10)  # whatever goes wrong
    timer = threading.Timer(delays.uniform(0.0005, 0.01), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            f(x=data) if k % 2 else f(data)
    except KeyboardInterrupt:
        pass
    timer.join()
    values = [s.get_value() for s in states]
    assert all((v == values[0][0]).all() for v in values), [v[0] for v in values]
print("whole")
"""


def test_control_c() -> None:
    """Real signals, at any time."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "whole", done.stderr[-2000:]


def test_the_harness_finds_what_is_not_atomic() -> None:
    """It counts points, and sees states that are replaced one after the other."""
    v, w = state("v", 2), state("w", 2)

    def torn() -> None:
        v.set_value(np.zeros(2))
        w.set_value(np.zeros(2))

    with pytest.raises(AssertionError, match="torn at point"):
        check_atomic(torn, [v, w])
    points = [interrupted(lambda: [len([k]) for k in range(3)], n) for n in range(100)]
    assert points[0] is True and points[-1] is None and 3 < points.index(None) < 30
    with at_point(MANY):
        pass


