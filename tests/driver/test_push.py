"""Calls in the background are the calls, in the order of their dependencies."""

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import symc as sc
from symc.driver.push import MOST
from symc.ir.op import all_ops, unregister


@pytest.fixture(autouse=True)
def clean_registry():
    before = {o.name for o in all_ops()}
    yield
    for o in all_ops():
        if o.name not in before:
            unregister(o.name)


class Gate:
    """An op in Python that waits while it is closed, and counts how many run at once."""

    def __init__(self):
        self.open, self.lock, self.now, self.most = threading.Event(), threading.Lock(), 0, 0
        self.open.set()

    def op(self, name="gate"):
        def gate(x):
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            assert self.open.wait(30)
            with self.lock:
                self.now -= 1
            if np.any(x == 13):
                raise ValueError("unlucky")
            return np.array(x)

        gate.__name__ = name
        return sc.op(derivative=lambda x: 1 + 0 * x)(gate)


def doubling(gate=lambda x: x):
    """A state and a step that depends on the order of its calls."""
    x, w = sc.vector("x"), sc.shared(np.zeros(2), "w")
    return w, sc.compile(w + x, [x], updates={w: 2 * w + gate(x)}, name="step")


def test_the_result_is_that_of_the_call():
    x = sc.vector("x")
    f = sc.compile({"a": x + 1, "b": (x * 2,)}, [x])
    call = f.push([1.0, 2.0])
    assert call.result()["b"][0].tolist() == [2, 4] and call.done() and call.wait() is None
    assert f.push(x=np.ones(3)).result()["a"].tolist() == [2, 2, 2] and "finished" in repr(call)


def test_calls_that_share_a_state_are_in_order():
    (w, step), (v, other) = doubling(), doubling()
    rows = np.random.default_rng(0).integers(0, 3, (30, 2)).astype(float)
    calls = [step.push(r) for r in rows]
    expected = [other(r) for r in rows]
    np.testing.assert_array_equal([c.result() for c in calls], expected)
    np.testing.assert_array_equal(w.get_value(), v.get_value())


@pytest.mark.parametrize("use", ["get_value", "set_value", "call", "array", "save", "other"])
def test_who_uses_a_state_waits_for_what_was_pushed(use, tmp_path):
    gate = Gate()
    w, step = doubling(gate.op())
    reader = sc.compile(w * 1.0, [])
    gate.open.clear()
    for _ in range(4):  # native code has taken over
        reader()
    calls = [step.push([1.0, 1.0]) for _ in range(3)]
    timer = threading.Timer(0.05, gate.open.set)
    timer.start()
    if use == "get_value":
        assert w.get_value().tolist() == [7, 7]
    elif use == "set_value":
        w.set_value([1.0, 1.0])
        assert w.get_value().tolist() == [1, 1]
    elif use == "call":
        assert step([0.0, 0.0]).tolist() == [7, 7]
    elif use == "array":
        assert w.array.tolist() == [7, 7]
    elif use == "save":
        reader.save(tmp_path / "f")
        assert sc.load(tmp_path / "f")().tolist() == [7, 7]
    else:
        assert reader().tolist() == [7, 7]
    assert all(c.done() for c in calls)
    timer.join()
    assert not w.cell.watched  # native code serves it again
    assert reader().tolist() == w.get_value().tolist()


def test_independent_calls_overlap_and_dependent_ones_do_not(monkeypatch):
    monkeypatch.setattr("symc.driver.push.processors", lambda: 2)
    gate, alone = Gate(), Gate()
    steps = [doubling(gate.op("one"))[1], doubling(gate.op("two"))[1]]
    gate.open.clear()
    gate.most = 0
    calls = [f.push([1.0, 1.0]) for f in steps]
    while gate.most < 2:
        assert not any(c.done() for c in calls)
    gate.open.set()
    step = doubling(alone.op("three"))[1]
    for c in [*calls, *[step.push([1.0, 1.0]) for _ in range(5)]]:
        c.wait()
    assert alone.most == 1


def test_arguments_may_be_pushed_calls_and_may_change_afterwards():
    gate = Gate()
    x = sc.vector("x")
    f = sc.compile(gate.op()(x) + 1, [x])
    gate.open.clear()
    a = np.zeros(3)
    first = f.push(a)
    last = f.push(f.push(first))
    a[:] = 100
    gate.open.set()
    assert last.result().tolist() == [3, 3, 3]


def test_memory_that_is_written_is_in_order():
    gate = Gate()
    x = sc.vector("x")
    f, g = sc.compile(gate.op()(x) + 1, [x]), sc.compile(x * 2, [x], donate=[x])
    gate.open.clear()
    buffer = np.zeros(3)
    f.push(np.ones(3), out=buffer)
    threading.Timer(0.05, gate.open.set).start()
    after = g.push(buffer)  # which reads and may overwrite it
    assert after.result().tolist() == [4, 4, 4]
    f.push(np.ones(3), out=buffer)
    assert f.push(buffer[1:]).result().tolist() == [3, 3]


def test_an_error_is_raised_where_it_is_met_and_names_the_line_of_the_push():
    gate = Gate()
    w, step = doubling(gate.op())
    gate.open.clear()
    bad = [step.push([1.0, 1.0]), step.push([13.0, 1.0]), step.push([1.0, 1.0])]  # the line
    gate.open.set()
    bad[0].wait()
    with pytest.raises(sc.ExecutionError, match=r"step was not run.*(?s:.*)test_push.py"):
        bad[2].wait()
    with pytest.raises(sc.SymcError, match="unlucky") as e:
        bad[1].wait()
    assert "test_push.py" in str(e.value) and "failed" in repr(bad[1])
    assert w.get_value().tolist() == [1, 1]
    assert step.push([0.0, 0.0]).result().tolist() == [1, 1]  # somebody has met it


@pytest.mark.parametrize("use", ["get_value", "call", "push"])
def test_an_error_that_nobody_met_is_raised_where_the_state_is_used_next(use):
    w, step = doubling()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed = step.push(np.ones(3))
        uses = {"get_value": w.get_value, "call": lambda: step([1.0, 1.0]),
                "push": lambda: step.push([1.0, 1.0]).wait()}
        with pytest.raises(sc.SymcError):
            uses[use]()
        with pytest.raises(sc.ShapeError, match=r"test_push\.py"):
            failed.wait()
    assert w.get_value().tolist() == [0, 0] and not w.cell.watched


def test_wrong_arguments_and_timeouts():
    gate = Gate()
    x = sc.vector("x")
    f = sc.compile(gate.op()(x), [x], name="slow")
    gate.open.clear()
    with pytest.raises(sc.InputError, match="no input 'y'"):
        f.push(y=1).result()
    call = f.push([1.0])
    with pytest.raises(TimeoutError, match="slow"):
        call.result(0.01)
    gate.open.set()
    assert call.result(30).tolist() == [1]


def test_who_pushes_many_waits_for_the_oldest():
    _, step = doubling()
    calls = []
    for k in range(5 * MOST):
        calls.append(step.push([float(k % 2), 0.0]))
        assert sum(not c.done() for c in calls) <= MOST + 1
    for c in calls:
        c.wait()


def run(text, **options):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120,
                          env=env, **options)


SLOW = """
    import os, signal, sys, time
    import numpy as np
    import symc as sc

    @sc.op()
    def slow_step(x):
        time.sleep(0.2)
        if x[0] == 13:
            raise ValueError("unlucky")
        print("ran", flush=True)  # once when the graph is made
        return np.array(x)

    x, w = sc.vector("x"), sc.shared(np.zeros(1), "w")
    step = sc.compile(w + x, [x], updates={w: w + slow_step(x)})
"""


def test_the_end_of_the_process_waits_and_prints_errors():
    done = run(SLOW + """
    step.push([1.0]); step.push([1.0]); step.push([13.0])
    """)
    assert done.returncode == 0 and done.stdout.count("ran") == 3 and "unlucky" in done.stderr


def test_ctrl_c_interrupts_who_waits_and_leaves_states_whole():
    done = run(SLOW + """
    calls = [step.push([1.0]) for _ in range(3)]
    import threading
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        calls[-1].wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(w.get_value()[0])
    """)
    assert done.returncode == 0 and done.stdout.split()[1] == "interrupted", done
    assert done.stdout.split()[-1] == "3.0"


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not():
    done = run(SLOW + """
    calls = [step.push([1.0]) for _ in range(3)]
    calls[0].wait()  # no thread compiles any more, which holds a lock of LLVM's that a child would wait for
    child = os.fork()
    if not child:
        try:
            calls[-1].wait()
        except sc.SymcError as e:
            print("child", "forked from" in str(e), flush=True)
        y = sc.compile(x + 1, [x])
        print(y.push([1.0]).result()[0], flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    calls[-1].wait()
    print("parent", w.get_value()[0])
    """)
    said = set(done.stdout.splitlines())
    assert done.returncode == 0 and {"child True", "2.0", "parent 3.0"} <= said, done
