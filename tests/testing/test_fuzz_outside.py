"""The fuzzer's signals and files: programs get states, calls are torn where they can be, files are told apart."""

from __future__ import annotations

import os
import random
import signal
import time

import numpy as np
import pytest

import symc as sc
from symc.ir.parse import parse
from symc.testing import damage
from symc.testing.child import ENDLESS, in_child
from symc.testing.fuzz import outside
from symc.testing.fuzz.campaign import WEIGHTS
from symc.testing.fuzz.checks import Trial, run
from symc.testing.fuzz.programs import make
from symc.testing.interrupts import check_atomic
from symc.tools.debugging.sample import Sample

NAMES = [f"{kind}:{k}" for k, kind in enumerate(WEIGHTS) if kind != "loops"]


@pytest.mark.parametrize("name,check", [*[(n, "outside") for n in NAMES], *[
    (n, c) for n in ("mixed:2", "straight:6") for c in ("signals", "outside_native")]])
def test_nothing_is_wrong(name: str, check: str) -> None:
    p = make(name)
    blame = run(check, Trial(p.function, p.data, seconds=0.0))
    assert blame is None, blame


def test_programs_get_states() -> None:
    for name in NAMES:
        p = make(name)
        trial = Trial(p.function, p.data)
        s = Sample(p.function, tuple(trial.oracles[0].arrays))
        f, arrays, start = outside.stateful(s, random.Random(name))
        assert 0 < len(f.updates) == len(start) and len(arrays) + len(start) == len(f.inputs)
        again = outside.stateful(s, random.Random(name))
        assert str(again[0]) == str(f)


def test_a_torn_state_is_found() -> None:
    v, w = sc.shared(np.zeros(2), "v"), sc.shared(np.zeros(2), "w")

    def torn() -> None:
        v.set_value(v.get_value() + 1)
        w.set_value(w.get_value() + 1)

    with pytest.raises(AssertionError, match="torn at point"):
        check_atomic(torn, [v, w])
    start = [np.zeros(2), np.zeros(2)]
    assert "torn" in outside._call_is_torn(torn, [v, w], start, random.Random(0))


def test_text_that_is_read_as_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sc.vector("x")
    f = sc.compile(sc.sum(sc.exp(x)) + x, [x], mode="reference")._compilation.source
    trial = Trial(f, [(np.ones(3),)], seconds=0.0)
    assert run("outside", trial) is None
    seen: list[str] = []

    def forgetful(text: str) -> sc.Function:
        seen.append(text)
        return parse(text.replace("exp", "sin") if len(seen) % 2 == 0 else text)

    monkeypatch.setattr(outside, "parse", forgetful)
    monkeypatch.setattr(outside, "edited_text", lambda data, rng: data)
    blame = run("outside", trial)
    assert blame is not None and "not read as what it says" in blame.error


def test_a_damaged_file_that_is_another_function_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sc.vector("x")
    f = sc.compile(sc.exp(x), [x], mode="reference")._compilation.source

    def careless(data: bytes, rng: random.Random) -> bytes:
        members = damage.unzipped(data)
        members["function.ir"] = members["function.ir"].replace(b"exp", b"sin")
        return damage.zipped(members)

    monkeypatch.setattr(outside, "scramble", careless)
    blame = run("outside", Trial(f, [(np.ones(3),)], seconds=0.0))
    assert blame is not None and "another function" in blame.error


def test_a_child_says_how_it_ended() -> None:
    def fails() -> None:
        raise KeyError("x")

    assert in_child(lambda: "well") == "well"
    assert in_child(fails) == "KeyError: 'x'"
    assert in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV)) == "it was ended by signal 11"
    assert in_child(lambda: time.sleep(60), 0.05) == ENDLESS
