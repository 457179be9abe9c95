"""The native interpreter: its instructions one by one, and what programs make of them."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from symc.errors import ShapeError
from symc.ir.dim import Size, floordiv, mod, size_name
from symc.ir.size_extremes import maximum, minimum
from symc.ir.size_values import evaluate
from symc.runtime.cpu.arithmetic import both, largest, less
from symc.runtime.cpu.executable import Executable
from symc.runtime.cpu.executor import ARENA, Address, Code, Label
from symc.runtime.cpu.native.instructions import FAILED, GROW, NOT_ARRAY, PULSE_STEP, REFUSED, Op, Word

KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64))
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int64)


def address(f: object) -> int:
    return ctypes.cast(f, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def test_words_are_set_moved_and_exchanged() -> None:
    code = Code()
    a, b, c = (code.slot(v) for v in (5, 7, 0))
    code.emit(Op.SWAP, a, b)
    code.emit(Op.MOVE, c, a, 100)
    code.emit(Op.SET, a, -3)
    run = code.finish()
    assert run.run() == 0
    assert [run.words[s] for s in (a, b, c)] == [-3, 5, 107]
    assert run.run() == 0  # again, on what the first run left
    assert [run.words[s] for s in (a, b, c)] == [-3, -3, 105]


def test_loops_nest_and_start_again() -> None:
    code = Code()
    outer, inner, count = code.slot(), code.slot(), code.slot()
    code.emit(Op.SET, outer, 3)
    first = code.label()
    code.emit(Op.SET, inner, 4)
    second = code.label()
    code.emit(Op.MOVE, count, count, 1)
    code.emit(Op.LOOP, inner, second)
    code.emit(Op.MOVE, count, count, 100)
    code.emit(Op.LOOP, outer, first)
    run = code.finish()
    for k in (1, 2):
        assert run.run() == 0
        assert run.words[count] == k * 312


def test_jumps() -> None:
    flag = np.zeros(1, np.uint8)
    code = Code()
    at, result, counter = code.slot(flag.ctypes.data), code.slot(), code.slot()
    skip, done = Label(), Label()
    code.emit(Op.SET, result, 1)
    code.emit(Op.JUMP_IF_ZERO, at, skip)
    code.emit(Op.SET, result, 2)
    code.emit(Op.JUMP, done)
    code.place(skip)
    code.emit(Op.SET, result, 3)
    code.place(done)
    code.emit(Op.SET, counter, 0)
    again = code.label()
    code.emit(Op.MOVE, counter, counter, 2)
    code.emit(Op.JUMP_IF_LESS, counter, 7, again)
    run = code.finish()
    for value, want in ((0, 3), (1, 2), (128, 2)):
        flag[0] = value
        assert run.run() == 0
        assert (run.words[result], run.words[counter]) == (want, 8)


@pytest.mark.parametrize("number", [0, 1, -4, 2**40, -(2**63)])
def test_a_jump_unless_a_number_is_zero(number: int) -> None:
    found = np.array(number, np.int64)
    code = Code()
    at, result, skip = code.slot(found.ctypes.data), code.slot(), Label()
    code.emit(Op.JUMP_UNLESS_ZERO, at, skip)
    code.emit(Op.SET, result, 1)
    code.place(skip)
    run = code.finish()
    assert run.run() == 0 and run.words[result] == (not number)


@pytest.mark.parametrize(
    ("index", "want"), [(0, 10), (1, 11), (2, 12), (3, 12), (-1, 10), (2**62, 12), (-(2**63), 10)]
)
def test_switch_moves_its_index_into_range(index: int, want: int) -> None:
    which = np.array(index, np.int64)
    code = Code()
    at, result = code.slot(which.ctypes.data), code.slot()
    labels, done = [Label() for _ in range(3)], Label()
    code.emit(Op.SWITCH, at, 3, *labels)
    for k, label in enumerate(labels):
        code.place(label)
        code.emit(Op.SET, result, 10 + k)
        code.emit(Op.JUMP, done)
    code.place(done)
    run = code.finish()
    assert run.run() == 0 and run.words[result] == want


def test_bytes_are_copied_cleared_and_stored() -> None:
    x, y, z = np.arange(5.0), np.full(5, 9.0), np.array(0)
    code = Code()
    xs, ys, zs, k = (code.slot(v) for v in (x.ctypes.data, y.ctypes.data, z.ctypes.data, 42))
    code.emit(Op.COPY, ys, xs, 24)
    code.emit(Op.COPY, ys, ys, 10**12)  # onto itself: nothing is touched
    code.emit(Op.CLEAR, xs, 16)
    code.emit(Op.STORE, zs, k)
    assert code.finish().run() == 0
    assert y.tolist() == [0, 1, 2, 9, 9] and x.tolist() == [0, 0, 2, 3, 4] and z == 42


def test_launch_gathers_numbers_and_addresses() -> None:
    seen: list[list[int]] = []
    kernel = KERNEL(lambda words: seen.append(words[:5]))
    code = Code()
    a, b = code.slot(1000), code.slot(2000)
    counter = code.slot()
    code.emit(Op.SET, counter, 2)
    start = code.label()
    code.launch(address(kernel), [3, 4], [b, a, b])
    code.emit(Op.MOVE, a, a, 8)
    code.emit(Op.SWAP, a, b)
    code.emit(Op.LOOP, counter, start)
    assert code.finish().run() == 0
    assert seen == [[3, 4, 2000, 1000, 2000], [3, 4, 1008, 2000, 1008]]


@pytest.mark.parametrize("n", [11, 13])
def test_routines_take_their_pointers(n: int) -> None:
    seen: list[tuple] = []
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n)(lambda *args: seen.append(args))
    code = Code()
    code.call(address(routine), [code.slot(k + 1) for k in range(n)])
    assert code.finish().run() == 0
    assert seen == [tuple(range(1, n + 1))]


def test_a_callback_that_does_not_succeed_stops_the_run() -> None:
    seen: list[int] = []

    def note(number: int) -> None:
        seen.append(number)
        if number != 2:
            run.words[Word.FAILED] = 0

    callback = CALLBACK(note)
    code = Code()
    code.data[Word.PYTHON] = address(callback)
    for number in (1, 2, 3):
        code.emit(Op.CALLBACK, number)
    run = code.finish()
    assert run.run() == FAILED
    assert seen == [1, 2]


def test_loops_call_python_after_so_many_steps() -> None:
    seen: list[int] = []

    def note(number: int) -> None:
        seen.append(number)
        run.words[Word.FAILED], run.words[Word.LEFT] = 0, 3

    callback = CALLBACK(note)
    code = Code()
    code.data[Word.PYTHON] = address(callback)
    counter, last, done = code.slot(), code.slot(), Label()
    code.emit(Op.SET, counter, 10)
    start = code.label()
    code.emit(Op.LOOP, counter, start)
    code.emit(Op.SET, last, 0)
    start = code.label()
    code.emit(Op.MOVE, last, last, 1)
    code.emit(Op.JUMP_IF_LESS, last, 5, go := Label())
    code.emit(Op.JUMP, done)
    code.place(go)
    code.emit(Op.AGAIN, start)
    code.place(done)
    run = code.finish()
    assert run.run() == 0 and not seen  # unless it is said when
    run.words[Word.LEFT] = 2
    assert run.run() == 0
    assert seen == [PULSE_STEP] * 5  # after 2, 5, 8 steps of the first loop, then after 1 and 4 of the second


def test_unknown_instructions_stop_the_run() -> None:
    code = Code()
    code.emit(999)
    assert code.finish().run() == -1


def test_arrays_are_opened_and_other_objects_are_refused() -> None:
    x, y = np.arange(3.0), np.ones((2, 2))
    code = Code()
    first = code.slots([0, 0])
    code.emit(Op.OPEN, first, 2, id(np.ndarray))
    run = code.finish()
    run.words[first], run.words[first + 1] = id(x), id(y)
    assert run.run() == 0
    assert [run.words[first], run.words[first + 1]] == [x.ctypes.data, y.ctypes.data]
    for other in (np.float64(3), 3.0, "x", np.zeros(1).view(np.recarray)):
        run.words[first], run.words[first + 1] = id(x), id(other)
        assert run.run() == NOT_ARRAY


def test_the_gil_is_released() -> None:
    """Another thread moves on while the interpreter loops."""
    code = Code()
    counter, start = code.slot(), Label()
    code.emit(Op.SET, counter, 10**8)
    code.place(start)
    code.emit(Op.LOOP, counter, start)
    run = code.finish()
    thread = threading.Thread(target=run.run)
    thread.start()
    ticks = 0
    while thread.is_alive():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 3 and run.words[counter] == 0


def test_it_needs_no_numba() -> None:
    text = (
        "import sys\nfrom symc.runtime.cpu.executor import Code, Op\ncode = Code()\na = code.slot()\n"
        "code.emit(Op.SET, a, 6)\nrun = code.finish()\nassert run.run() == 0 and run.words[a] == 6\n"
        "print('numba' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


numbers = st.integers(-20, 20) | st.sampled_from([2**31, 2**40, 2**62, 2**63 - 1])


def sized(x: Size, names: dict[str, int]) -> tuple[int, int]:
    """A size computed by instructions, and whether that went wrong."""
    code = Code()
    for name, n in names.items():
        code.sizes.names[name] = code.slot(n)
    found = code.slots([x])
    run = code.finish()
    status = run.prepare()
    assert status in (0, REFUSED)
    return run.words[found], status


@settings(max_examples=200, deadline=None)
@example(("*", size_name("n"), ("*", size_name("n"), -2)), 2**31, 0)
@given(st.recursive(
    st.sampled_from(["n", "m"]).map(size_name) | st.integers(-5, 5),
    lambda s: st.tuples(st.sampled_from("+-*/%<>"), s, s), max_leaves=8), numbers, numbers)
def test_sizes_are_computed_as_python_does(tree: Any, n: int, m: int) -> None:
    def build(t: Any) -> Size:
        if not isinstance(t, tuple):
            return t
        sign, a, b = t[0], build(t[1]), build(t[2])
        assume(sign not in "/%" or b != 0)
        how = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: floordiv(a, b),
               "%": lambda: mod(a, b), "<": lambda: minimum(a, b), ">": lambda: maximum(a, b)}
        return how[sign]()

    x, names = build(tree), {"n": n, "m": m}
    found, status = sized(x, names)
    try:
        wanted = evaluate(x, names)
    except ShapeError:
        assert status == REFUSED
        return
    assert status == REFUSED and max(abs(n), abs(m)) > 2**15 or (status, found) == (0, wanted)


def test_estimates_stay_large() -> None:
    n = size_name("n")
    for test, wanted in ((less(10, n * n), 1), (less(n * n, 10), 0), (both(less(3, n), less(n, 2**50)), 0)):
        code = Code()
        code.sizes.names["n"] = code.slot(2**60)
        found = code.slots([test])
        run = code.finish()
        assert (run.prepare(), run.words[found]) == (0, wanted)


def prepared(run: Executable) -> int:
    """What is ready to run has an arena as large as it needs."""
    while (status := run.prepare()) == GROW:
        run.grow()
    return status


def test_what_depends_on_no_size_has_an_arena_too() -> None:
    code = Code()
    at = code.at(Address(ARENA.space, 64))
    code.let(Word.NEED, 192)
    run = code.finish()
    assert prepared(run) == 0 and run.arena.nbytes == 192 and run.words[at] == run.arena.ctypes.data + 64


def test_the_arena_grows_and_addresses_follow() -> None:
    n, code = size_name("n"), Code()
    code.sizes.names["n"] = at = code.slot(3)
    fixed, moved = code.at(Address(ARENA.space, 64)), code.at(Address(ARENA.space, 8 * n))
    code.let(Word.NEED, largest([64 + 8 * n, 128]))
    run = code.finish()
    for k in (3, 100, 50, 1000):
        run.words[at], run.words[Word.CHANGED] = k, 1
        assert prepared(run) == 0
        arena = run.arena.ctypes.data
        assert (run.words[fixed], run.words[moved]) == (arena + 64, arena + 8 * k)
        assert run.arena.nbytes >= run.words[Word.NEED] == max(128, 64 + 8 * k)
    assert run.arena.nbytes == 8064, "and keeps its size"


def test_straight_code_has_an_interpreter_of_its_own() -> None:
    """Which is all that is compiled until a program has a loop, a branch or a routine; then there is one for all."""
    code = """
import numpy as np, symc as sc
from symc.runtime.cpu.native import interpreter
made, load = [], interpreter.load_module
interpreter.load_module = lambda name, *rest: made.append(name) or load(name, *rest)
x, y, a = sc.input("x", "float64", shape=("n",)), sc.input("y", "float64", shape=("m",)), sc.matrix("a")
sizes = sc.compile([sc.sum(x[1:] * 2 + x[:-1]), x[:, None] * y, sc.mean(x), sc.max(sc.concatenate([x, y]))], [x, y])
for n, m in ((3, 2), (5, 7), (2000, 1)):
    u, v = np.arange(n) + 0.5, np.arange(m) * -1.0
    for _ in range(2):
        found = sizes(u, v)
        wanted = [np.sum(u[1:] * 2 + u[:-1]), u[:, None] * v, np.mean(u), max(u.max(), v.max())]
        assert all(np.allclose(f, w) for f, w in zip(found, wanted))
print(made)
product = sc.compile(a @ a + 1, [a])
assert np.array_equal(product(np.eye(2)), np.eye(2) + 1)
assert sc.compile(x * 3, [x])(np.ones(2)).tolist() == [3, 3]
print(made)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["['straight executor']", "['straight executor', 'executor']"], done.stderr
