"""``f.profile``: what it says of bytes, operations, user lines and limits, and the files it writes."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.amounts import amount, flops
from symc.ir.ops.arithmetic import add
from symc.ir.ops.factor import cholesky
from symc.ir.ops.linalg import dot
from symc.ir.ops.math import exp
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.tools.profiling import limits
from symc.tools.profiling.limits import Limits

MACHINE = Limits(((1000, 4e9), (10**9, 1e9)), 2e9, 1e9)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with known limits."""
    monkeypatch.setattr("symc.tools.profiling.report.machine_limits", lambda: MACHINE)


def amounts(f: Any, **sizes: int) -> list[tuple[int, int, int]]:
    """Bytes read, bytes written and operations of every step."""
    found = [amount(s, sizes) for s in f._compilation.plan.steps]
    return [(a.read, a.written, a.flops) for a in found]


def test_a_step_reads_its_operands_once_and_writes_its_results() -> None:
    x, y = sc.input("x", "float64", ("n", "m")), sc.input("y", "float64", ("m",))
    f = sc.compile(x * y + x / y, [x, y])
    assert amounts(f, n=10, m=3) == [(8 * (30 + 3), 8 * 30, 3 * 30)]


def test_what_is_sliced_or_looked_up_is_read_in_part() -> None:
    x, i = sc.input("x", "float64", (1000,)), sc.input("i", "int64", (5,))
    assert amounts(sc.compile(x[10:14] * 2, [x])) == [(8 * 4, 8 * 4, 4)]
    *_, (read, written, _) = amounts(sc.compile(x[i] * 2, [x, i]))  # after the check of the indices
    assert (read, written) == (8 * 5 + 8 * 5, 8 * 5)


def test_what_is_put_into_an_array_in_place_is_read_and_written() -> None:
    w, i, g = sc.shared(np.zeros((1000, 4)), "w"), sc.input("i", "int64", (5,)), sc.input("g", "float64", (5, 4))
    f = sc.compile([], [i, g], updates={w: w.at[i].add(g)})
    (step,) = [s for s in f._compilation.plan.steps if any(w in s.reads for w in s.writes)]
    found = amount(step, {})
    assert found.written == 5 * 4 * 8 and found.read <= 5 * 4 * 8 * 2 + 5 * 8


def test_products_and_factorizations_count_what_they_are_known_to_do() -> None:
    def value(*shape: int, dtype: str = "float64") -> Any:
        return fresh_input(TensorType(np.dtype(dtype), shape))

    a, b = value(4, 5), value(5, 6)
    assert flops(dot(a, b, contract=((1,), (0,)), batch=((), ())), {}) == 2 * 4 * 5 * 6
    a, b = value(3, 4, 5, dtype="complex64"), value(3, 5, 6, dtype="complex64")
    assert flops(dot(a, b, contract=((2,), (1,)), batch=((0,), (0,))), {}) == 3 * 8 * 4 * 5 * 6
    assert flops(cholesky(value(7, 30, 30)), {}) == 7 * 30**3 // 3
    assert flops(add(value(7, dtype="int64"), value(7, dtype="int64")), {}) == 0
    assert flops(exp(value(7)), {}) == 7 * flops(add(value(7), value(7)), {})


def model(n: int = 40) -> tuple[Any, list[np.ndarray]]:
    x, w = sc.input("x", "float64", ("n", 9)), sc.input("w", "float64", (9, 3))
    h = sc.tanh(x @ w)
    cost = (sc.sin(h) ** 2).sum()
    f = sc.compile([cost, sc.grad(cost, w)], [x, w], name="model")
    return f, [np.ones((n, 9)), np.ones((9, 3))]


@pytest.mark.parametrize("mode", ["default", "reference", "debug"])
def test_rows_say_what_a_step_did_and_how_fast(mode: str) -> None:
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.sort(x) * 2, [x], mode=mode)
    rows = f.profile(np.ones(100))
    row = next(r for r in rows if "mul" in r.step)
    assert (row.runs, row.depth, row.flops, row.written) == (1, 0, 100, row[2]) and row.moved == row.read + 800
    assert row.gb_per_second == pytest.approx(row.moved / row.seconds / 1e9)
    assert row.gflop_per_second == pytest.approx(100 / row.seconds / 1e9)
    assert row.seconds > 0 and "test_profile.py:" in row.lines
    part, what = row.of_limit(MACHINE)
    limit = MACHINE.bandwidth(row.moved, row.measured.threads)
    assert what == "memory" and part == pytest.approx(row.moved / limit / row.seconds)
    assert rows.seconds == pytest.approx(sum(r.seconds for r in rows))


def test_a_step_is_compared_with_the_limit_that_it_meets_first() -> None:
    f, arrays = model()
    (product,) = [r for r in f.profile(*arrays) if r.step == "dot" and "gradient" not in r.lines]
    part, what = product.of_limit(MACHINE)
    threads = product.measured.threads
    memory = product.moved / MACHINE.bandwidth(product.moved, threads)
    arithmetic = product.flops / 1e9 / threads
    assert product.flops == 2 * 40 * 9 * 3 and part == pytest.approx(max(memory, arithmetic) / product.seconds)
    assert what == ("memory" if memory >= arithmetic else "arithmetic")
    assert MACHINE.bandwidth(1000) == 4e9 and MACHINE.bandwidth(10**12) == 1e9
    assert MACHINE.bandwidth(1001, 2) == 8e9 and MACHINE.bandwidth(2001, 2) == 1e9
    assert MACHINE.arithmetic(np.dtype("complex64")) == 2e9


def test_a_kernel_is_divided_among_its_lines_by_what_they_cost() -> None:
    x = sc.input("x", "float64", ("n",))
    costly = sc.tan(sc.sin(x))
    cheap = costly + 1
    f = sc.compile(cheap * 2, [x])
    profile = f.profile(np.ones(1000))
    (row,) = profile
    lines = profile.by_line()
    assert lines[0].text.startswith("costly =")
    assert sum(r.seconds for r in lines) == pytest.approx(row.seconds)
    assert sum(r.flops for r in lines) == pytest.approx(row.flops, abs=3)
    assert lines[0].seconds > 0.8 * row.seconds and {r.steps for r in lines} == {1}
    assert "costly = sc.tan(sc.sin(x))" in str(lines)


def test_lines_add_up_what_a_value_and_its_derivative_take() -> None:
    f, arrays = model()
    profile = f.profile(*arrays)
    lines = profile.by_line()
    assert sum(r.seconds for r in lines) == pytest.approx(profile.seconds)
    (first,) = [r for r in lines if r.text.startswith("h =")]
    assert 0 < first.gradient < first.seconds and first.steps >= 2
    assert [r.seconds for r in lines] == sorted((r.seconds for r in lines), reverse=True)


def test_steps_in_loops_are_divided_too() -> None:
    h, x = sc.vector("h"), sc.matrix("x")

    def step(c: Any, row: Any) -> Any:
        dear = sc.sin(c) * row
        return sc.cumsum(dear), None

    f = sc.compile(sc.scan(step, h, x)[0], [h, x], pipeline="canonicalize,blas,fuse")
    lines = f.profile(np.ones(4), np.ones((9, 4))).by_line()
    assert any(r.text.startswith("dear =") and r.seconds > 0 and r.flops > 0 for r in lines)


def test_a_table_has_a_row_a_step_and_says_what_the_limits_are() -> None:
    f, arrays = model()
    profile = f.profile(*arrays)
    text = str(profile)
    assert len(text.splitlines()) == len(profile) + 3 and text.splitlines()[0].split()[:3] == ["time", "share", "runs"]
    assert str(MACHINE) in text and all(r.step in text for r in profile)
    assert str(pickle.loads(pickle.dumps(profile))) == text == str(copy.copy(profile))


def test_json_has_everything() -> None:
    f, arrays = model()
    profile = f.profile(*arrays)
    found = json.loads(profile.to_json())
    assert found["name"] == "model" and found["limits"]["float32"] == 2e9
    assert [s["seconds"] for s in found["steps"]] == [r.seconds for r in profile]
    assert all(math.isclose(sum(s["lines"].values()), 1) for s in found["steps"])
    assert {line["line"] for line in found["lines"]} == {r.line for r in profile.by_line()}


def test_a_trace_shows_a_run_with_loops_around_their_steps(tmp_path: Any) -> None:
    h, x = sc.vector("h"), sc.matrix("x")
    step = lambda c, row: (sc.sort(sc.cumsum(c) * 0.1) + row, None)
    f = sc.compile(sc.scan(step, h, x)[0] * 2, [h, x], pipeline="canonicalize,fuse")
    f.profile(np.ones(4), np.ones((6, 4))).to_chrome(tmp_path / "trace.json")
    events = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["pid"] == 2]
    names = [e["name"] for e in events if e["ph"] == "X"]
    assert names.count("sort") == 6 and names.count("scan") == 1
    (loop,) = [e for e in events if e["name"] == "scan"]
    for e in events:
        if e["name"] == "sort":
            assert loop["ts"] <= e["ts"] and e["ts"] + e["dur"] <= loop["ts"] + loop["dur"] + 1e-3


def test_limits_are_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    calls: list[int] = []

    def measure() -> Limits:
        calls.append(1)
        return MACHINE if len(calls) == 1 else Limits(((1000, 1e9), (10**9, 5e9)), 1e9, 3e9)

    monkeypatch.setattr(limits, "measure", measure)
    monkeypatch.setenv("SYMC_CACHE_DIR", str(tmp_path))
    limits._kept.cache_clear()
    try:
        assert limits.machine_limits() == MACHINE
        limits._kept.cache_clear()
        assert limits.machine_limits() == MACHINE and len(calls) == 1
        assert limits.machine_limits(again=True) == Limits(((1000, 4e9), (10**9, 5e9)), 2e9, 3e9) and len(calls) == 2
    finally:
        limits._kept.cache_clear()


def test_measured_limits_are_numbers_of_a_machine() -> None:
    found = limits.measure()
    assert all(rate > 1e8 for _, rate in found.copy) and found.float32 > 1e8 and found.float64 > 1e8
    assert "GB/s" in str(found)
