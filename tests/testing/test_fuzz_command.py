"""``python -m symc fuzz``: it finds planted mistakes and makes them small; it is deterministic; it blames nothing."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.__main__ import main
from symc.codegen.cpu import intrinsics
from symc.errors import InternalError
from symc.ir.op import lookup
from symc.ir.ops.assume import promised
from symc.ir.traverse import every_value
from symc.ir.traverse import replace as replace_values
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import fresh_input
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.pass_registry import graph_pass, unregister_pass
from symc.opt.engine.rule import temporary_rules
from symc.testing.fuzz import front  # noqa: F401 - declares its generator
from symc.testing.fuzz.campaign import WEIGHTS, Campaign
from symc.testing.fuzz.checks import CHECKS, Trial, run
from symc.testing.fuzz.programs import GENERATORS, Program, closed, data_for, make
from symc.tools.debugging.sample import Sample, computed
from symc.tools.debugging.shrink import shrink
from tests.cuda.emulated import needs_compiler


def campaign(tmp_path: Path | None = None, **options) -> tuple[Campaign, list[str]]:
    said: list[str] = []
    options = {"backend": "reference", "minutes": 1.0, "shrink_seconds": 10.0, **options}
    return Campaign(out=tmp_path, say=said.append, **options), said


def by_rule(name: str):
    """Until a rule was found guilty."""
    return lambda summary: any(f.blame.rule == name for f in summary.failures.values())


def test_from_the_command_line(tmp_path, capsys):
    status = main(["fuzz", "--programs", "20", "--seed", "4", "--backend", "reference", "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert " programs of " in said and " values, on " in said
    assert "rules: " in said and "ops: " in said and "passes: " in said and "seed 4" in said
    assert status == (0 if "nothing is wrong" in said else 1), said


def test_the_same_seed_gives_the_same():
    texts = []
    for _ in range(2):
        c, _ = campaign(seed=7, programs=12)
        summary = c.run()
        summary.seconds = 0.0
        texts.append(str(summary))
    assert texts[0] == texts[1]
    for kind in GENERATORS:
        assert str(make(f"{kind}:5").function) == str(make(f"{kind}:5").function)


def test_every_generator_makes_programs_that_are_worth_it():
    assert set(WEIGHTS) == set(GENERATORS)
    for kind in GENERATORS:
        ops: set[str] = set()
        defined = 0
        for seed in range(8):
            p = make(f"{kind}:{seed}")
            ops |= {v.op.name for v in p.function.values()}
            defined += len(Trial(p.function, p.data).oracles)
        assert len(ops) > 12 and defined >= 16, kind


@pytest.mark.parametrize("kind", ["front", "mixed", "loops"])
def test_a_few_natively(kind):
    c, said = campaign(seed=100, programs=1, backend="native", generators=(kind,))
    assert not c.run().failures, "\n".join(said)


def test_numbers_are_of_every_kind():
    for kind in ("straight", "mixed", "front"):
        programs = [make(f"{kind}:{seed}") for seed in range(24)]
        usual, edges = [np.concatenate([a.ravel().astype("f8") for p in programs for arrays in sets(p) for a in arrays
                                        if a.dtype.kind == "f"]) for sets in (lambda p: p.data, lambda p: p.edges)]
        assert np.isfinite(usual).all() and (usual == 0).any() and np.abs(usual).max() > 1e6, kind
        assert np.isnan(edges).any() and np.isinf(edges).any(), kind


@pytest.mark.parametrize("dtype", ["f32", "f64", "c128"])
@pytest.mark.parametrize("name", ["hermitian", "pd", "psd", "symmetric"])
def test_matrices_that_are_promised_to_be_symmetric_are(name, dtype):
    """The check of an assumption forgives rounding, relative to the greatest element; rules do not."""
    x = fresh_input(TensorType(DTYPES[dtype], (3, 3)))
    f = closed([x], [promised(promised(x, "finite"), name)])
    for (a,) in data_for(f, np.random.default_rng(0), ("ordinary", "wild"), 6):
        turned = a.T if name == "symmetric" else a.T.conj()
        np.testing.assert_array_equal(a, turned)
        assert Trial(f, [(a,)]).oracles, a


def test_slopes_at_ties_are_not_compared():
    f = sc.parse("""func @f(%x: f64[3]) -> (f64[3]) {
  %0 = sort %x {axis = 0} : f64[3]
  return %0
}""", {})
    assert run("differences", Trial(f, [(np.array([1.0, 1.0, 2.0]),)])) is None


# --- planted mistakes -------------------------------------------------------------------------------------------------


@pytest.fixture
def wrong_rule() -> Iterator[None]:
    with temporary_rules():

        @rewrite("maximum", family="algebra", kinds="f", equation="maximum(x, y) -> y where both are negative")
        def maximum_of_two_is_the_second(v):
            """Wrong: it is for splats only, and forgets which is larger."""
            return v.operands[1] if v.operands[0].op.name != "broadcast" and v.ndim == 2 else None

        yield


def test_a_wrong_rule_is_found_and_made_small(wrong_rule, tmp_path):
    c, said = campaign(tmp_path, programs=150, generators=("straight",), until=by_rule("maximum_of_two_is_the_second"))
    failures = [f for f in c.run().failures.values() if f.blame.rule == "maximum_of_two_is_the_second"]
    assert failures, said
    small = failures[0].blame.sample
    assert small is not None and computed(small.function.body) <= 2
    assert sum(a.size for a in small.arrays) <= 4
    scripts = sorted(tmp_path.glob("test_*maximum_of_two*.py"))
    assert scripts and sorted(tmp_path.glob("*maximum_of_two*.ir"))
    with pytest.raises(AssertionError):
        runpy.run_path(str(scripts[0]))["test_results_are_the_references"]()


def test_a_rule_that_is_a_little_wrong_is_found():
    """An error of one in a thousand million, where rounding is a million times less."""
    with temporary_rules():

        @rule(family="algebra", check=False)
        def sine_nearly(x):
            return lookup("sinh")(x), lookup("exp")(x) * 0.5 - lookup("exp")(-x) * (0.5 + 1e-9)

        c, _ = campaign(programs=150, generators=("straight",), until=by_rule("sine_nearly"))
        assert "sine_nearly" in {f.blame.rule for f in c.run().failures.values()}


def test_a_wrong_pass_is_found_and_made_small(tmp_path):
    @graph_pass("sums_lose_an_axis")
    def wrong(f):
        """Wrong for sums over two axes."""
        sums = {v: lookup("max")(*v.operands, **v.attrs) for v in f.values()
                if v.op.name == "sum" and len(v.attrs["axes"]) == 2 and v.dtype.kind == "f"}
        return f.with_results(replace_values(f.body.results, sums))

    try:
        found = []
        for seed in range(60):
            p = make(f"front:{seed}")
            t = Trial(p.function, p.data, seconds=10.0)
            wrong_ = pass_failure(t, "sums_lose_an_axis")
            if wrong_ is not None:
                found.append(wrong_)
            if len(found) == 2:
                break
        assert found
        assert all(computed(s.function.body) <= 2 for s in found)
    finally:
        unregister_pass("sums_lose_an_axis")


def pass_failure(t: Trial, name: str) -> Sample | None:
    from symc.opt import optimize
    from symc.tools.debugging.blame import blame_pass, wrong_stage

    stages = optimize(t.function, f"canonicalize,{name}").stages
    for oracle in t.oracles:
        wrong = wrong_stage(stages, oracle)
        if wrong is not None:
            blame = blame_pass(*wrong, oracle, name, t.seconds)
            assert blame.name == name
            return blame.sample
    return None


def test_a_wrong_kernel_is_found_and_made_small(monkeypatch, tmp_path):
    monkeypatch.setitem(intrinsics.TABLE, "floor", "ceil({0})")
    x = sc.input("x", shape=("n", 3))
    y = sc.sum(sc.floor(x * 3), axis=0)
    f = sc.compile([y, sc.sort(x, axis=0)], [x], mode="reference")._compilation.source
    blame = run("native", Trial(f, [(np.linspace(-1, 1, 12).reshape(4, 3),)], seconds=10.0))
    assert blame is not None and blame.kind == "kernel" and "floor" in blame.name
    assert blame.sample is not None and computed(blame.sample.function.body) <= 6


@needs_compiler
def test_a_wrong_kernel_of_a_device_is_found(monkeypatch):
    x = sc.input("x", shape=("n", 3))
    f = sc.compile([sc.sum(sc.floor(x * 3), axis=0), sc.exp(x)], [x], mode="reference")._compilation.source
    data = [(np.linspace(-1, 1, 12).reshape(4, 3),)]
    assert run("on_device", Trial(f, data)) is None
    monkeypatch.setitem(intrinsics.TABLE, "floor", "ceil({0})")
    blame = run("on_device", Trial(f, data, seconds=5.0))
    assert blame is not None and blame.difference is not None
    assert blame.sample is not None and computed(blame.sample.function.body) <= 4


@needs_compiler
def test_programs_on_a_device(tmp_path):
    one, said = campaign(tmp_path, backend="device", programs=6, seed=5)
    summary = one.run()
    assert not said and not summary.failures and set(summary.checks) == {"on_device"}


def test_a_wrong_derivative_is_found():
    """Finite differences see a derivative that is wrong in both modes."""
    sin = lookup("sin")
    p = make("straight:3")
    x = sc.vector("x")
    f = sc.compile(sc.sin(x) * 2, [x], mode="reference")._compilation.source
    arrays = (np.array([0.3, 1.0, -2.0]),)
    from symc.ir.op import Elementwise
    from symc.testing.fuzz import derivatives

    assert not derivatives.differences_disagree(Sample(f, arrays))
    half = Elementwise((lambda out, v: lookup("cos")(v) * 0.5,))
    object.__setattr__(sin, "derivative", half)  # records are frozen
    try:
        assert "finite differences give" in derivatives.differences_disagree(Sample(f, arrays))
        blame = run("differences", Trial(f, [arrays], seconds=5.0))
        assert blame is not None and blame.sample is not None and computed(blame.sample.function.body) == 1
    finally:
        object.__setattr__(sin, "derivative", Elementwise((lambda out, v: lookup("cos")(v),)))
    assert not derivatives.differences_disagree(Sample(f, arrays))
    assert isinstance(p, Program) and {"text", "files", "batches", "gradients", "again", "memory"} <= set(CHECKS)


def test_finite_differences_are_not_asked_about_declared_derivatives():
    f = sc.parse("func @f(%x: f64[2]) -> (f64[2]) {\n  %0 = stop_gradient %x : f64[2]\n  return %0\n}\n")
    assert run("differences", Trial(f, [(np.array([1.0, 2.0]),)])) is None


def test_errors_of_passes_are_failures():
    with temporary_rules():

        @rewrite("tanh", family="algebra", kinds="f", equation="tanh(x) -> an error")
        def raises(v):
            raise KeyError("planted")

        x = sc.vector("x")
        f = sc.compile(sc.exp(sc.tanh(x) + 1), [x], mode="reference")._compilation.source
        blame = run("passes", Trial(f, [(np.ones(3),)], seconds=5.0))
    assert blame is not None and "KeyError" in blame.error and blame.sample is not None
    assert computed(blame.sample.function.body) == 1


class ForeignError(Exception):
    """Of another package: not of those that a mistake of a pass makes."""


@pytest.mark.parametrize("place", ["make", "reference", "passes", "judge"])
def test_whatever_is_raised_is_a_finding_and_the_campaign_goes_on(monkeypatch, tmp_path, place):
    def raises(*args, **kwargs):
        raise ForeignError("planted") if place != "make" else InternalError("planted")

    if place == "make":
        usual, seen = GENERATORS["straight"], []
        monkeypatch.setitem(GENERATORS, "straight",
                            lambda *a: raises() if not seen.append(a) and len(seen) == 2 else usual(*a))
    elif place == "reference":
        monkeypatch.setattr(Trial, "oracles", property(raises))
    elif place == "passes":
        monkeypatch.setitem(CHECKS, "passes", raises)
    else:
        monkeypatch.setattr(Campaign, "_note", raises)
    c, said = campaign(tmp_path, programs=4, generators=("straight",), shrink_seconds=0.2)
    summary = c.run()
    assert summary.programs + summary.skipped == 4 - (place == "make")
    failures = list(summary.failures.values())
    assert failures and all("planted" in f.blame.error for f in failures), said
    assert all(f"again: python -m symc fuzz --replay {f.program}" in str(f) for f in failures)
    written = sorted(tmp_path.glob("test_*.py"))
    assert bool(written) == (place in ("reference", "passes"))
    if place == "reference":
        with pytest.raises(ForeignError):
            runpy.run_path(str(written[0]))["test_results_are_the_references"]()


# --- making small -----------------------------------------------------------------------------------------------------


def test_shrinking_keeps_what_fails_and_nothing_else():
    x, w = sc.input("x", shape=("n", 3)), sc.input("w", shape=(3, 3))
    h = sc.tanh(x @ w)
    y = sc.sort(h * 2 + sc.exp(h), axis=0)
    f = sc.compile([y.sum(), sc.cumsum(y, axis=0), h], [x, w], mode="reference")._compilation.source

    def fails(s: Sample) -> bool:
        return any(v.op.name == "sort" and v.operands[0].shape[0] != 1 for v in s.function.values())

    small = shrink(Sample(f, (np.ones((4, 3)), np.ones((3, 3)))), fails)
    assert computed(small.function.body) == 1 and len(small.function.inputs) <= 1


def test_shrinking_goes_into_loops():
    x = sc.input("x", shape=("n", 3))
    final, ys = sc.scan(lambda c, row: (sc.tanh(c + row) * sc.cbrt(row), c * 0.5), sc.zeros(3), x)
    f = sc.compile([final, ys], [x], mode="reference")._compilation.source

    def fails(s: Sample) -> bool:
                return any(v.op.name == "cbrt" for v in every_value(s.function.body))

    small = shrink(Sample(f, (np.ones((4, 3)),)), fails)
    assert computed(small.function.body) == 1 and not any(v.regions for v in small.function.values())


def test_shrinking_keeps_updates_that_it_needs():
    w = sc.shared(np.ones(3), "w")
    x = sc.input("x", shape=(3,))
    f = sc.compile(sc.sum(x * w), [x], updates={w: w + sc.tanh(x)}, mode="reference")._compilation.source
    small = shrink(Sample(f, (np.ones(3), np.ones(3)), frozenset({0})), lambda s: bool(s.function.updates))
    assert small.function.updates and not small.donated and computed(small.function.body) < computed(f.body)
