"""What ``f.compile_profile`` says, and the record behind it."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.ir.phases import Phase, Record, current, phase, recording, totals
from tests.driver.equal_programs import is_warm


def test_phases_nest_and_keep_what_is_their_own() -> None:
    @phase("outer", lambda k: f"thing {k}")
    def outer(k: int) -> int:
        return inner(k) + inner(k)

    @phase("inner")
    def inner(k: int) -> int:
        return k

    assert outer(1) == 2 and current() is None  # nobody records
    record = Record()
    with recording(record):
        assert outer(3) == 6
    a, b, whole = record.phases
    assert [p.name for p in (a, b, whole)] == ["inner", "inner", "outer"] and {p.what for p in (a, b)} == {"thing 3"}
    assert whole.begin <= a.begin <= a.end <= b.begin <= b.end <= whole.end
    assert whole.own == pytest.approx(whole.end - whole.begin - a.own - b.own)
    assert totals(record.phases)["inner", "thing 3"] == (a.own + b.own, 2)


def test_a_phase_that_raises_ends() -> None:
    @phase("fails")
    def fails() -> None:
        raise ValueError

    record = Record()
    with recording(record), pytest.raises(ValueError):
        fails()
    assert [p.name for p in record.phases] == ["fails"]
    with recording(record):
        assert record.run("next", "", lambda: 1) == 1
    assert record.phases[-1] == Phase("next", "", *[getattr(record.phases[-1], n) for n in ("begin", "end", "own")])


def names(f: Any) -> set[str]:
    return {name for name, *_ in f.compile_profile}


def test_passes_plan_and_kernels_are_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMC_CACHE_DIR", "off")
    x = sc.vector("x")
    f = sc.compile(sc.sqrt(sc.exp(x) * 3.0625 + 12345.125).sum(), [x])  # a kernel that no other test has
    found = f.compile_profile
    assert {"build", "optimize", "pass", "plan", "kernel text"} <= names(f)
    assert {"LLVM: text", "LLVM: optimize", "LLVM: code"} <= names(f)
    passes = {what: count for name, what, _, count in found if name == "pass"}
    assert passes["canonicalize"] >= 1 and passes["fuse"] == 1
    (kernel,) = f.kernels
    assert kernel.name in {what for name, what, *_ in found if name == "LLVM: optimize"}
    assert found.seconds == pytest.approx(sum(seconds for _, _, seconds, _ in found))
    text = str(found)
    assert text.startswith("compiled in") and "LLVM: optimize" in text and kernel.name in text
    assert str(pickle.loads(pickle.dumps(found))) == text


def test_what_is_on_disk_is_not_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("SYMC_CACHE_DIR", str(tmp_path))
    x = sc.vector("x")
    y = sc.tanh(x * 7.03125) - 1.265625
    assert "LLVM: optimize" in names(sc.compile(y, [x]))
    again = sc.compile(y * 1, [x])
    assert "LLVM: optimize" not in names(again) and "pass" in names(again)


def test_a_plan_is_lowered_by_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMC_CACHE_DIR", "off")
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.exp(x), [x])
    assert "lower" not in names(f)
    f(np.ones(3)), f(np.ones(4)), f(np.ones(3))
    assert [count for name, _, _, count in f.compile_profile if name == "lower"] == [1]


def test_a_function_on_disk_is_compiled_when_more_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("SYMC_CACHE_DIR", str(tmp_path))
    x = sc.input("x", "float64", ("n",))
    y = sc.tan(x * 5.03125) - 1.265625
    sc.compile(y, [x])(np.ones(3))
    f = sc.compile(y, [x])
    f(np.ones(3))
    assert is_warm(f) and "look for function on disk" in names(f) and "pass" not in names(f)
    assert f.profile(np.ones(3))[0].seconds > 0 and "pass" in names(f)


def test_the_reference_compiles_nothing_and_a_loaded_function_optimizes_nothing(tmp_path: Any) -> None:
    x = sc.vector("x")
    assert names(sc.compile(x + 1, [x], mode="reference")) == {"build"}
    sc.compile(sc.exp(x) + 1.0078125, [x]).save(tmp_path / "f")  # that no other test has
    loaded = sc.load(tmp_path / "f")
    assert "plan" in names(loaded) and "pass" not in names(loaded)
    assert "compiled in" in str(loaded.compile_profile)


def test_a_trace_has_the_phases_of_compiling(tmp_path: Any) -> None:
    x = sc.vector("x")
    f = sc.compile(sc.exp(x) + 1.01171875, [x])
    f.profile(np.ones(3)).to_chrome(tmp_path / "trace.json")
    events = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["pid"] == 1]
    assert {"build", "optimize", "plan", "pass fuse"} <= {e["name"] for e in events}
    assert min(e["ts"] for e in events if e["ph"] == "X") == 0


def test_a_function_of_signatures_shows_that_of_the_last_call(cold: None) -> None:
    @sc.jit
    def g(x: Any) -> Any:
        return x * 3

    g(np.ones(3))
    assert "optimize" in {name for name, *_ in g.compile_profile}
