"""The native interpreter: its instructions one by one, and what programs make of them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from symc.runtime.executor import Code, Label, Op, Word
from symc.runtime.native.executor_ir import FAILED, NOT_ARRAY

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
    code.data[Word.CALLBACK] = address(callback)
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
    code.data[Word.CALLBACK], code.data[Word.PULSE] = address(callback), 77
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
    assert seen == [77] * 5  # after 2, 5, 8 steps of the first loop, then after 1 and 4 of the second


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
        "import sys\nfrom symc.runtime.executor import Code, Op\ncode = Code()\na = code.slot()\n"
        "code.emit(Op.SET, a, 6)\nrun = code.finish()\nassert run.run() == 0 and run.words[a] == 6\n"
        "print('numba' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_a_single_run_is_by_plain_code():
    """Good code of the interpreter takes LLVM much longer: it is made for what runs again."""
    code = ("import numpy as np, symc as sc\n"
            "from symc.runtime.native import executor_ir\n"
            "load, levels = executor_ir.load_module, []\n"
            "executor_ir.load_module = lambda name, write, level: levels.append(level) or load(name, write, level)\n"
            "x = sc.input('x', 'float64', shape=('n',)); f = sc.compile(x + 1, [x])\n"
            "for k in range(3): print(f(np.ones(2))[0], levels)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "SYMC_CACHE_DIR": "off"})
    first, *_, last = done.stdout.split("\n")[:3]
    assert (first, last) == ("2.0 [0]", "2.0 [0, 2]")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> dict:
    """No good code is there: a first run makes plain code, noted here by the instructions it knows."""
    from symc.runtime.native import executor_ir

    made: dict = {}
    for name, value in (("_run", None), ("_plain", made), ("is_kept", lambda *_: False)):
        monkeypatch.setattr(executor_ir, name, value)
    return made


def test_a_first_run_has_code_for_its_own_instructions(plain: dict) -> None:
    code = Code()
    a, b = code.slot(1), code.slot(2)
    code.emit(Op.SWAP, a, b)
    run = code.finish()
    assert run.run() == 0 and list(plain) == [{Op.SWAP, Op.HALT}]

    assert Code().finish().run() == 0 and len(plain) == 1, "served by the code that is there"
    other = Code()
    d = other.slot(7)
    other.emit(Op.SET, d, 9)
    last = other.finish()
    assert last.run() == 0 and last.words[d] == 9 and list(plain)[1:] == [{Op.SET, Op.HALT}]
    assert run.run() == 0 and [run.words[s] for s in (a, b)] == [1, 2], "good code, from the second run on"
    assert len(plain) == 2


def test_programs_know_their_instructions(plain: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, branches, products and steps in Python, each run once by code that knows no other instructions."""
    import symc as sc

    monkeypatch.setenv("SYMC_CACHE_DIR", "off")
    x = sc.input("x", shape=("n", "n"))
    outputs = [
        sc.scan(lambda h, row: (h * 0.5 + row, h), np.zeros(3), x)[0],
        sc.while_loop(lambda a: sc.sum(a) < 100, lambda a: a * 2 + 1, x),
        sc.cond(sc.sum(x) > 0, lambda: x @ x, lambda: x - 1),
        sc.linalg.cholesky(x @ x.T + 4 * np.eye(3)),
        sc.sort(x, axis=0),
    ]
    a = np.random.default_rng(0).normal(size=(3, 3)) + 1
    for out in outputs:
        plain.clear()
        first = sc.compile(out, [x])(a)
        assert len(plain) == 1
        np.testing.assert_allclose(first, sc.compile(out, [x], mode="reference")(a), rtol=1e-12)
