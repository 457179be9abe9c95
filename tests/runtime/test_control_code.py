"""Loops and branches as native code: no Python and no allocation in a step, whatever their memory layout."""

from __future__ import annotations

import contextlib
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.check_plan import check_plan
from symc.errors import SymcError
from symc.opt import DEFAULT
from symc.runtime.cpu.calls import Calls


def native(f: Any) -> bool:
    """Whether no step of a function runs in Python."""
    return f._compilation.program.code.steps == [Calls.pulse]


def compiled(outputs: Any, inputs: Sequence[Any], **options: Any) -> Any:
    """A function whose loops are steps of the plan, small ones too."""
    return sc.compile(outputs, list(inputs), pipeline=DEFAULT + ",-small_loops", **options)


def agrees(outputs: Any, inputs: Sequence[Any], *calls: Sequence[Any]) -> Any:
    """The compiled function, after a comparison of its results with the reference's; each of ``calls`` are arrays."""
    f = compiled(outputs, inputs)
    g = sc.compile(outputs, list(inputs), mode="reference")
    check_plan(f._compilation.plan)
    for arrays in calls:
        kept = [np.array(a) for a in arrays]
        want = g(*arrays)
        for _ in range(2):  # a frame is used again
            for a, b in zip(*[x if isinstance(x, tuple | list) else [x] for x in (f(*arrays), want)], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        for a, b in zip(arrays, kept, strict=True):
            np.testing.assert_array_equal(a, b)
    return f


X = np.linspace(-1, 1, 35).reshape(7, 5)
W = np.linspace(-0.4, 0.5, 25).reshape(5, 5)

Body = Callable[[Any, Any, Any], tuple[Any, Any]]
BODIES: dict[str, Body] = {
    "in place": lambda h, x, w: (h * 0.5 + x, None),
    "two buffers": lambda h, x, w: (w @ h + x, None),
    "the carry is a row": lambda h, x, w: ((n := sc.tanh(w @ h + x)), n),
    "rows of the old carry": lambda h, x, w: (w @ h + x, h),
    "rows of both": lambda h, x, w: ((n := w @ h + x), (n * 2, h, x)),
    "the carry is the row of x": lambda h, x, w: (x, h + x),
    "the carry stays": lambda h, x, w: (h, h * x),
    "a captured value": lambda h, x, w: (w[0], h + x),
    "a constant": lambda h, x, w: (sc.zeros(5) + 3.0, h + x),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", BODIES)
def test_one_carry(body: str, reverse: bool) -> None:
    h, x, w = sc.vector("h"), sc.matrix("x"), sc.matrix("w")
    step = BODIES[body]
    carry, ys = sc.scan(lambda c, row: step(c, row, w), sc.ones(5) * h, x, reverse=reverse)
    outputs = [carry, *[y for y in (ys if isinstance(ys, tuple) else (ys,)) if y is not None]]
    f = agrees(outputs, [h, x, w], *[(np.arange(5.0), X[:n].copy(), W) for n in (0, 1, 2, 3, 7)])
    assert native(f)


CYCLES: dict[str, Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]] = {
    "two change places": lambda a, b, c, x: (b, a, c + a),
    "three go round": lambda a, b, c, x: (b, c, a),
    "a window": lambda a, b, c, x: (b, c, a + x),
    "a window of products": lambda a, b, c, x: (b, c, W @ a + b),
    "all computed": lambda a, b, c, x: (W @ b, W @ c, W @ a + x),
    "in place and not": lambda a, b, c, x: (a + b, W @ b, c * 2 + a),
    "one value twice": lambda a, b, c, x: ((n := W @ a + x), n, b),
    "old ones of each other": lambda a, b, c, x: (b + x, a * 2, a + b),
}


@pytest.mark.parametrize("body", CYCLES)
def test_carries_that_take_each_others_place(body: str) -> None:
    h, x = sc.vector("h"), sc.matrix("x")
    step = CYCLES[body]
    for ys in (False, True):
        def one(c: Any, row: Any, ys: bool = ys) -> Any:
            new = step(*c, row)
            return new, new[1] if ys else None

        for init in ((h, h, h), (h, h * 2, h + 1)):
            carry, rows = sc.scan(one, init, x)
            lengths = [(np.arange(5.0), X[:n].copy()) for n in range(6)]
            agrees([*carry, rows] if ys else list(carry), [h, x], *lengths)


WHILE = {
    "two buffers": lambda a, k: (W @ a + 1, k + 1),
    "in place": lambda a, k: (a * 0.5 + 1, k + 1),
    "the carry stays": lambda a, k: (a, k + 1),
}


@pytest.mark.parametrize("limit", [None, 4, 0])
@pytest.mark.parametrize("body", WHILE)
def test_while(body: str, limit: int | None) -> None:
    h, n = sc.vector("h"), sc.scalar("n")
    out = sc.while_loop(lambda c: c[1] < n, lambda c: WHILE[body](*c), (h, 0.0), max_steps=limit)
    f = agrees(list(out), [h, n], *[(np.arange(5.0), float(steps)) for steps in (0, 1, 2, 5, 6)])
    assert native(f)


def test_switch() -> None:
    x, k = sc.vector("x"), sc.scalar("k", dtype="i64")
    f = agrees(sc.switch(k, [lambda v: v * 2, lambda v: sc.exp(v), lambda v: W @ v], x), [x, k], (X[0], 1))
    for which, want in ((-5, X[0] * 2), (0, X[0] * 2), (1, np.exp(X[0])), (2, W @ X[0]), (9, W @ X[0])):
        np.testing.assert_allclose(f(X[0], which), want, rtol=1e-14)
    assert native(f)


def opaque(name: str, f: Callable[[np.ndarray], np.ndarray]) -> Any:
    """An op that can only run in Python."""
    return sc.op(f, name=name, infer=lambda x: (x.dtype, x.shape))


@pytest.fixture(scope="module")
def seen() -> list[str]:
    return []


@pytest.fixture(scope="module")
def noted(seen: list[str]) -> tuple[Any, Any, Any]:
    def note(name: str) -> Any:
        def f(x: np.ndarray) -> np.ndarray:
            seen.append(name)
            if name == "raising":
                raise ValueError("never")
            return x + 1

        return opaque(f"executor_{name}", f)

    return note("first"), note("second"), note("raising")


def test_only_the_chosen_branch_runs(seen: list[str], noted: tuple[Any, Any, Any]) -> None:
    first, second, raising = noted
    x, k = sc.vector("x"), sc.scalar("k", dtype="i64")
    f = compiled(sc.switch(k, [lambda v: first(v), lambda v: second(v) * 2, lambda v: raising(v)], x), [x, k])
    seen.clear()
    f(X[0], 0), f(X[0], 1), f(X[0], 0)
    assert seen == ["first", "second", "first"]
    with pytest.raises(SymcError, match="never"):
        f(X[0], 2)
    np.testing.assert_array_equal(f(X[0], 0), X[0] + 1)  # the frame is as good as new


def test_python_steps_inside_loops_see_the_rows(seen: list[str], noted: tuple[Any, Any, Any]) -> None:
    first = noted[0]
    x, h = sc.matrix("x"), sc.vector("h")
    carry, ys = sc.scan(lambda c, row: (W @ c + first(row), first(c) * 0.5), h, x)
    f = compiled([carry, ys], [h, x])
    seen.clear()
    got = f(np.ones(5), X)
    assert seen == ["first"] * 14
    seen.clear()
    for a, b in zip(got, sc.compile([carry, ys], [h, x], mode="reference")(np.ones(5), X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_what_python_keeps_of_a_call_stays_alive() -> None:
    kept: list[np.ndarray] = []

    def keep(x: np.ndarray) -> np.ndarray:
        kept.append(x)
        return x * 2

    x = sc.matrix("x")
    opaque_keep = opaque("executor_keep", keep)
    f = compiled(sc.scan(lambda c, row: (c + 1, opaque_keep(row)), 0.0, x)[1], [x])
    f(X * 1.0)  # an array that nobody else holds
    f(X * 2.0)
    np.testing.assert_array_equal(np.array(kept), np.concatenate([X, X * 2]))


def test_loops_inside_loops() -> None:
    h, x, w = sc.vector("h"), sc.matrix("x"), sc.matrix("w")

    def outer(c: Any, row: Any) -> Any:
        inner, ys = sc.scan(lambda d, e: (w @ d + e, d * e), c, row)
        inner = sc.while_loop(lambda d: sc.sum(d * d) > 1.0, lambda d: w @ d, inner)
        inner = sc.cond(sc.sum(inner) > 0, lambda d: -d, lambda d: w @ d, inner)
        return inner, ys

    for reverse in (False, True):
        carry, ys = sc.scan(outer, h, x, reverse=reverse)
        agrees([carry, ys], [h, x, w], (np.arange(5.0), X, W), (np.arange(5.0), X[:, :0].copy(), W))


def test_loops_over_the_same_arrays_as_operands_and_captured() -> None:
    x, w = sc.matrix("x"), sc.matrix("w")
    carry, ys = sc.scan(lambda c, row: (w @ c + c * x.sum(), row + w[0]), w, w)
    agrees([carry, ys, w + 1], [x, w], (X, W))


# --- cost -------------------------------------------------------------------------------------------------------------


def peak_bytes(call: Callable[[], Any]) -> int:
    """Of a call with shapes that have been met often enough for all that is prepared for them."""
    for _ in range(3):
        call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LOOPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "two buffers": lambda h, w, x: sc.scan(lambda c, row: (w @ c + row, None), h, x)[0],
    "reverse": lambda h, w, x: sc.scan(lambda c, row: (w @ c + row, None), h, x, reverse=True)[0],
    "nested": lambda h, w, x: sc.scan(
        lambda c, row: (sc.scan(lambda d, e: (w @ d + e, None), c, row)[0], None), h, x)[0],
    "while": lambda h, w, x: sc.while_loop(
        lambda c: c[1] < x.shape[0], lambda c: (w @ c[0] + 1, c[1] + 1), (h, 0))[0],
    "cond": lambda h, w, x: sc.scan(
        lambda c, row: (sc.cond(c[0] > 0, lambda d: w @ d - 1, lambda d: w @ d + 1, c), None), h, x)[0],
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_step_allocates_nothing_and_runs_no_python(loop: str) -> None:
    h, w, x = sc.vector("h"), sc.matrix("w"), sc.matrix("x")
    f = compiled(LOOPS[loop](h, w, x), [h, w, x])
    short, long = np.ones((10, 5)), np.ones((5000, 5))
    assert peak_bytes(lambda: f(np.ones(5), W, long)) <= peak_bytes(lambda: f(np.ones(5), W, short)) + 200
    assert native(f)


def test_the_allocation_count_can_fail(noted: tuple[Any, Any, Any]) -> None:
    x = sc.matrix("x")
    f = compiled(sc.scan(lambda c, row: (c + noted[0](row), None), sc.zeros(5), x)[0], [x])
    short, long = np.ones((10, 5)), np.ones((5000, 5))
    assert peak_bytes(lambda: f(long)) > peak_bytes(lambda: f(short)) + 200
    assert not native(f)


def test_a_long_scan_takes_milliseconds() -> None:
    x = sc.vector("x")
    step = lambda c, row: (sc.cond(c > 100.0, lambda d: d * 0.5, lambda d: d + row, c), None)
    f = compiled(sc.scan(step, 0.0, x)[0], [x])
    a = np.ones(100_000)
    f(a)
    start = time.perf_counter()
    f(a)
    assert time.perf_counter() - start < 0.5
    assert native(f)


# --- failures, signals, threads ---------------------------------------------------------------------------------------


def test_an_error_in_the_middle_of_a_loop_leaves_states_alone() -> None:
    def fragile(x: np.ndarray) -> np.ndarray:
        if x[0] > 3:
            raise ValueError("too large")
        return x

    op = opaque("executor_fragile", fragile)
    x = sc.vector("x")
    total, last = sc.shared(np.full(5, 0.1)), sc.shared(np.arange(5.0))
    carry, _ = sc.scan(lambda c, row: (op(c * 1.0) + row, None), total * 1.0, x)
    f = compiled(carry.sum(), [x], updates={total: carry, last: last + 1})
    f(np.ones(2))
    before = [s.get_value() for s in (total, last)]
    for _ in range(2):
        with pytest.raises(SymcError, match="too large") as e:
            f(np.ones(6))
        assert "test_control_code.py" in str(e.value)
        assert [s.get_value().tobytes() for s in (total, last)] == [b.tobytes() for b in before]
    f(np.zeros(3))
    np.testing.assert_array_equal(total.get_value(), before[0])
    np.testing.assert_array_equal(last.get_value(), before[1] + 1)


def test_a_reduction_of_nothing_fails_only_where_it_runs() -> None:
    x, k = sc.vector("x"), sc.scalar("k", dtype="bool")
    f = compiled(sc.cond(k, lambda v: sc.max(v), lambda v: v.sum() + 7.0, x), [x, k])
    assert f(np.zeros(0), False) == 7 and f(np.array([1.0, 3.0]), True) == 3
    with pytest.raises(SymcError, match="no elements"):
        f(np.zeros(0), True)
    n = sc.matrix("n")
    g = compiled(sc.scan(lambda c, row: (c + sc.max(row), None), 0.0, n)[0], [n])
    assert g(np.zeros((0, 0))) == 0 and g(np.ones((3, 2))) == 3
    with pytest.raises(SymcError, match="no elements"):
        g(np.zeros((3, 0)))


@pytest.mark.parametrize("python", [False, True])
def test_a_signal_stops_a_loop(python: bool, interrupt: Callable[[float], None], noted: tuple[Any, Any, Any]) -> None:
    k = sc.scalar("k")
    step = (lambda c: noted[0](c) * 1.0) if python else (lambda c: c + 1)
    f = compiled(sc.while_loop(lambda c: c < k, step, 0.0), [k])
    assert f(3.0) == 3
    interrupt(0.3)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        f(1e11)
    assert time.perf_counter() - start < 5
    assert f(3.0) == 3


def test_a_loop_that_writes_over_a_state_is_not_stopped_in_the_middle(interrupt: Callable[[float], None]) -> None:
    state, k = sc.shared(np.zeros(4)), sc.scalar("k")
    new = sc.while_loop(lambda c: c[1] < k, lambda c: (c[0] + 1, c[1] + 1), (state, 0.0))[0]
    f = compiled([], [k], updates={state: new})
    f(3.0)
    start = time.perf_counter()
    f(1e6)
    steps = 0.7 / (time.perf_counter() - start) * 1e6 // 1
    before = state.get_value(borrow=True)[0]
    interrupt(0.1)
    with contextlib.suppress(KeyboardInterrupt):
        f(steps)
    assert np.unique(state.get_value(borrow=True)).tolist() in ([before], [before + steps])


def test_eight_threads_share_a_function() -> None:
    h, w, x = sc.vector("h"), sc.matrix("w"), sc.matrix("x")
    f = compiled(sc.scan(lambda c, row: (w @ c + row, c.sum()), h, x), [h, w, x])
    rng = np.random.default_rng(0)
    cases = [(rng.normal(size=5), W, rng.normal(size=(50 + 10 * (k % 3), 5))) for k in range(8)]
    want = [f(*c) for c in cases]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(50):
            got = f(*cases[k])
            if not all(np.array_equal(a, b) for a, b in zip(got, want[k], strict=True)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_profiles_look_into_loops() -> None:
    h, w, x = sc.vector("h"), sc.matrix("w"), sc.matrix("x")
    step = lambda c, row: (sc.cond(c[0] > 0, lambda d: w @ d - 1, lambda d: sc.exp(d), c) + row, None)
    f = compiled(sc.scan(step, h, x)[0], [h, w, x])
    x0 = np.random.default_rng(0).normal(size=(1000, 5))
    rows = {name: (seconds, size) for name, seconds, size, _ in f.profile(np.ones(5), W, x0)}
    taken = {name: size for name, (_, size) in rows.items() if name.endswith(" in cond in scan")}
    assert sum(size for name, size in taken.items() if "dot" in name or "exp" in name) == 1000 * 40
    (scan,) = [seconds for name, (seconds, _) in rows.items() if name == "scan"]
    assert 0 <= scan < sum(seconds for seconds, _ in rows.values())
    assert all(seconds < 0.1 for seconds, _ in rows.values())
