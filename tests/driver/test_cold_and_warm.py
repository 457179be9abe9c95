"""A function that is found on disk looks like one that is compiled: texts, errors, numbers, files.

What is found was left by a function with other names and no lines, so nothing of those may be seen.
"""

from __future__ import annotations

import importlib
import itertools
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.driver import warm
from symc.driver.build import build
from symc.driver.built import Built
from symc.driver.function import CompiledFunction
from symc.ir import extensions
from symc.ir.record import replace
from symc.ir.size_values import evaluate, names
from symc.ir.traverse import every_value
from symc.opt import graph_pass, rule, unregister, unregister_pass
from symc.runtime.cache import object_cache
from symc.runtime.cache.recording import recorded
from symc.runtime.with_prologue import WithPrologue
from symc.tensors.pytree import flatten
from symc.testing.fuzz.front import Writer
from tests.driver.equal_programs import PROGRAMS, Program, is_warm

Call = tuple[tuple, dict[str, Any]]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own."""
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))


# --- three functions of a program -------------------------------------------------------------------------------------


@contextmanager
def changed(target: Any, name: str, value: Any, raising: bool = True) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, name, value, raising)
        yield


def of_a_stranger(*args: Any, **options: Any) -> Built:
    """What is closed, as somebody else may have written it: with other names, on no line."""
    built = build(*args, **options)
    f = built.function
    inputs = tuple(replace(i, name=f"other{k}", loc=None) for k, i in enumerate(f.inputs))
    return replace(built, function=replace(f, name="other", inputs=inputs, hints={}, inside={}))


def three(made: Program, calls: list[Call]) -> list[CompiledFunction]:
    """The function of a stranger, which is called; one that is compiled; and one that is found."""
    outputs, inputs, options = made
    found: list[CompiledFunction] = []
    for kept, close in ((warm.KEPT, of_a_stranger), ((), build), (warm.KEPT, build)):
        with changed(warm, "KEPT", kept), changed(importlib.import_module("symc.driver.compile"), "build", close):
            found.append(sc.compile(outputs, inputs, **options))
        if close is of_a_stranger:
            run(found[0], calls)
    is_kept = kept_on_disk(found[1])
    assert is_warm(found[2]) == is_kept and not is_warm(found[1])
    return found


def kept_on_disk(f: CompiledFunction) -> bool:
    """Whether its code is not bound to this process."""
    program = f._compilation.program
    parts = [program.main, program.prologue] if isinstance(program, WithPrologue) else [program]
    return all(recorded(p.code) is not None for p in parts)


# --- what is called ---------------------------------------------------------------------------------------------------


def arrays(inputs: Any, size: int, fill: float) -> list[np.ndarray]:
    """Arguments: all sizes are one number, and so is every element, or they rise from it."""
    made = []
    for i in inputs:
        t = i.declared or i.type
        shape = [s if isinstance(s, int) else evaluate(s, dict.fromkeys(names(s), size)) for s in t.shape]
        rising = fill + np.arange(int(np.prod(shape))) % 7 * 0.25 * (fill != 0)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.append(rising.reshape(shape).astype(t.dtype))
    return made


#: Sizes, and where numbers begin; with the first a loop comes to an end.
SCALES = [(3, 0.5), (1, 0.5), (0, 0.5), (3, 0.0), (5, -4.0), (2, 1e30), (2, np.nan)]


def double(a: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate([a, a], axis)


def calls_of(f: CompiledFunction) -> list[Call]:
    """Right calls, and wrong ones of every kind."""
    inputs = f.inputs
    scales = SCALES[:2] if any(v.op.name == "while" for v in every_value(f._built.function.body)) else SCALES
    right = [arrays(inputs, size, fill) for size, fill in scales]
    found: list[Call] = [(tuple(a), {}) for a in right]
    first = right[0]
    found += [(tuple(first[:-1]), {}), ((*first, 1.0), {}), (tuple(first), {"nothing": 1}), (tuple(first), {"out": 3})]
    for k, a in enumerate(first):
        others: list[Any] = [a[None], a.astype(complex), a.astype(object), "text", None, a.tolist()]
        others += [op(a, axis) for axis in range(a.ndim) for op in (double, np.flip)]
        found += [((*first[:k], other, *first[k + 1 :]), {}) for other in others]
    return found


def told(ask: Callable[[], Any]) -> Any:
    """What is answered, or the error's text and what was warned of."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        try:
            answer = ask()
        except sc.SymcError as e:
            answer = f"{type(e).__name__}: {e}"
    return answer, [str(w.message) for w in noted]


def run(f: CompiledFunction, calls: list[Call]) -> list[Any]:
    """Bits of results, errors, and states after each call, which all begin with the same states."""
    before = {name: v.get_value() for name, v in f.shared.items()}
    found = []
    for args, options in calls:
        answer = told(lambda args=args, options=options: flatten(f(*args, **options))[0])
        states = [v.get_value() for v in f.shared.values()]
        found.append(pickle.dumps((answer, states)))
        for name, v in f.shared.items():
            v.set_value(before[name])
    return found


# --- what is asked ----------------------------------------------------------------------------------------------------


def html(f: CompiledFunction, folder: Path) -> str:
    f.to_html(folder / "page")
    return (folder / "page").read_text(encoding="utf-8")


def saved(f: CompiledFunction, folder: Path) -> Any:
    f.save(folder / "saved")
    other = sc.load(folder / "saved")
    with zipfile.ZipFile(folder / "saved") as archive:
        return {n: archive.read(n) for n in archive.namelist()}, other.dump(), other.plan, other.source


def graph(f: CompiledFunction) -> Any:
    found = f.to_networkx()
    return [(n, str(d)) for n, d in found.nodes(data=True)], [(*e[:2], str(e[2])) for e in found.edges(data=True)]


def profile(f: CompiledFunction, args: tuple) -> Any:
    p = f.profile(*args, repeat=1)
    return [(r.step, r.written, r.lines, r.read, r.runs, r.depth, r.flops) for r in p], len(p.by_line())


def asked(f: CompiledFunction, args: tuple, folder: Path, exact: bool = False) -> dict[str, Any]:
    """All that can be asked of a function but what compiling took. ``exact``: and how far it is from exact
    numbers, which takes long."""
    questions: dict[str, Callable[[], Any]] = {
        "repr": lambda: repr(f), "text": lambda: str(f), "name": lambda: f.name, "inputs": lambda: str(f.inputs),
        "states": lambda: {n: str(v) for n, v in f.shared.items()}, "stages": lambda: f.stages,
        "dumps": lambda: [f.dump(s) for s in f.stages], "no stage": lambda: f.dump("nothing"), "plan": lambda: f.plan,
        "source": lambda: f.source, "kernels": lambda: str(f.kernels), "calls": lambda: f.calls,
        "memory": lambda: f.memory(*args), "peak": lambda: vars(f.memory(*args)),
        "no size": lambda: f.memory(nothing=3), "explain": lambda: str(f.explain()), "one": lambda: str(f.explain(0)),
        "else": lambda: f.explain("nothing"), "not": lambda: [str(f.why_not(n)) for n in ("gemm", "logs")],
        "no rule": lambda: f.why_not("nothing"), "diff": lambda: str(f.diff("input")),
        "accuracy": lambda: exact and str(f.accuracy()), "profile": lambda: profile(f, args),
        "html": lambda: html(f, folder), "dot": lambda: f.to_dot(), "graph": lambda: graph(f),
        "saved": lambda: saved(f, folder),
        "trace": lambda: {n: (a.dtype, a.shape, a.tobytes()) for n, a in f.trace(*args).items()},
        "pickled": lambda: pickle.loads(pickle.dumps(f)).dump(), "copy": lambda: f.copy().plan,
        "wrong": lambda: f.memory(), "wrong trace": lambda: str(f.trace()), "wrong profile": lambda: profile(f, ()),
    }  # fmt: skip
    return {name: told(ask) for name, ask in questions.items()}


def assert_same(made: Program, folder: Path, first: bool, exact: bool = True) -> None:
    """``first``: whether all is asked before the first call, or after the last; ``exact``: the exact numbers too."""
    outputs, inputs, options = made
    calls = calls_of(sc.compile(outputs, inputs, **options))
    _, cold, found = three(made, calls)
    answers = []
    for f in (cold, found):
        before = asked(f, calls[0][0], folder, exact) if first else {}
        results = run(f, calls)
        answers.append((before or asked(f, calls[0][0], folder, exact), results, run(f.copy(), calls)))
    (a, p, c), (b, q, d) = answers
    for name in a:
        assert a[name] == b[name], name
    for (args, _), x, y, z, w in zip(calls, p, q, c, d, strict=True):
        assert pickle.loads(x)[0][1] == pickle.loads(y)[0][1] and str(pickle.loads(x)) == str(pickle.loads(y)), args
        assert x == y == z == w, args


@pytest.mark.parametrize("k, name", list(enumerate(PROGRAMS)))
def test_programs_look_the_same(k: int, name: str, tmp_path: Path) -> None:
    assert_same(PROGRAMS[name](), tmp_path, k % 2 == 0)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_look_the_same(seed: int, tmp_path: Path) -> None:
    writer = Writer(np.random.default_rng(seed))
    writer.write(10)
    assert_same((writer.made[-3:], writer.inputs, {}), tmp_path, seed % 2 == 0)


@pytest.mark.parametrize("name, options", [
    ("network_in_place", {"mode": "fast_compile"}), ("loops", {"pipeline": "canonicalize,simplify"}),
    ("network_in_place", {"threads": 2}), ("linear_algebra", {"backend": "numba"}), ("loops", {"name": "named"}),
    ("linear_algebra", {"donate": True})], ids=str)
def test_options_change_nothing_of_it(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Each on a program that has what it is about: weights in place, a loop, a call of a library."""
    outputs, inputs, others = PROGRAMS[name]()
    options = {**options, "donate": inputs[:1] if options.get("donate") else []}
    assert_same((outputs, inputs, {**others, **options}), tmp_path, True)


class Enough(Exception):
    """The program is known; the example does not have to run."""


@pytest.mark.parametrize("name", ["newton", "kalman", "rosenbrock"])
def test_examples_look_the_same(name: str, tmp_path: Path) -> None:
    """What they compile first."""
    module, made = importlib.import_module(f"examples.{name}"), []

    def compile_(outputs: Any, inputs: Any = None, **options: Any) -> Any:
        made.append((outputs, inputs, options))
        raise Enough

    with changed(sc, "compile", compile_), changed(module, "compile", compile_, raising=False), pytest.raises(Enough):
        module.main()
    assert_same(made[0], tmp_path, False, exact=False)


# --- what is a program of its own, and what was changed in between ----------------------------------------------------


def outcomes(made: Program, count: int = 3) -> list[Any]:
    """What calls with other arguments each time give; None for those that are refused."""
    outputs, inputs, options = made
    f = sc.compile(outputs, inputs, **options)
    found = []
    for k in range(count):
        for size in (2, 3):
            given = arrays(f.inputs, size, k + 0.5)
            if len(given) > 1 and k == 2:  # sizes that differ
                given[-1] = np.concatenate([given[-1], given[-1]])
            found.append(told(lambda given=given: [a.tobytes() for a in flatten(f(*given))[0]])[0])
    return [None if isinstance(a, str) else a for a in found]


def of_weights(*states: bool) -> Program:
    """With weights that are states or arguments."""
    x = sc.input("x", "float64", shape=("n", 3))
    w, v = (sc.shared(np.full((3, 4), k + 1.0), f"w{k}") if state else sc.input(f"w{k}", "float64", shape=(3, 4))
            for k, state in enumerate(states))
    return x @ w + sc.tanh(x @ v), [x, *[p for p, state in zip((w, v), states, strict=True) if not state]], {}


def of_sizes(form: Callable[[Any, Any], Any], other: str) -> Program:
    """With sizes that are the same, or must be."""
    x, y = sc.input("x", "float64", shape=("n",)), sc.input("y", "float64", shape=(other,))
    return form(x, y), [x, y], {}


INTERFACES: list[list[Callable[[], Program]]] = [
    [partial(of_weights, *states) for states in itertools.product([False, True], repeat=2)],
    *[[partial(of_sizes, form, other) for other in "nm"] for form in (
        lambda x, y: x * 2 + y, lambda x, y: sc.exp(x) * y[: x.shape[0]])]]


@pytest.mark.parametrize("made", INTERFACES, ids=["weights", "sizes", "rows"])
def test_interfaces_of_one_body_are_programs_of_their_own(made: list[Callable[[], Program]]) -> None:
    """Whichever of them is on disk."""
    programs = [make() for make in made]
    with changed(warm, "KEPT", ()):
        want = [outcomes(p) for p in programs]
    for first in programs:
        object_cache.clear()
        outcomes(first)
        assert [outcomes(p) for p in programs] == want


def test_rules_and_passes_that_come_later_are_not_in_it(own_rules: None, tmp_path: Path) -> None:
    """As they are not in a function that was compiled before; nor in what others will find."""
    x = sc.vector("x")
    made: Program = (sc.sinh(x) + 1, [x], {})
    calls: list[Call] = [((np.ones(3),), {})]
    _, cold, found = three(made, calls)
    rule(later)
    assert asked(found, calls[0][0], tmp_path) == asked(cold, calls[0][0], tmp_path)
    changed_ = sc.compile(*made[:2])
    assert "later" in str(changed_.explain()) and run(changed_, calls) == run(changed_, calls)
    unregister("later")
    again = sc.compile(*made[:2])
    assert is_warm(again) and again.dump() == cold.dump()
    assert run(again, calls) == run(cold, calls)
    graph_pass("late_pass")(lambda f: f)
    assert not is_warm(sc.compile(*made[:2]))
    unregister_pass("late_pass")
    assert is_warm(sc.compile(*made[:2]))


def later(x):
    """Not what it says."""
    return sc.sinh(x), sc.cosh(x)


def test_what_lies_beside_symc_is_not_symc() -> None:
    assert extensions.PACKAGE.endswith("symc" + os.sep)


def test_users_are_warned_each_time() -> None:
    x = sc.vector("x")
    for _ in range(3):
        with pytest.warns(UserWarning, match="comes after"):
            f = sc.compile(sc.exp(x) * 2 + sc.log(x), [x], pipeline="fuse,simplify")
        f(np.ones(3))
