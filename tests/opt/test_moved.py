"""Rules about movements on arrays with few elements, or none: nothing loops, nothing fails, nothing becomes wrong."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.opt import DEFAULT, optimize
from symc.opt.facts import forms
from symc.testing.fuzz.checks import Trial, run
from symc.testing.fuzz.moved import moving_rules
from symc.testing.fuzz.programs import make


@pytest.mark.long
@pytest.mark.parametrize("name", moving_rules())
def test_left_sides_of_sizes_0_and_1(name: str) -> None:
    """With other movements around them, strictly: what a rule raises is raised, and what it makes is verified."""
    for seed in range(2):
        p = make(f"moved:{seed}:{name}")
        blame = run("passes", Trial(p.function, p.data, seconds=1.0))
        assert blame is None, f"{p.name}: {blame}\n{p.function}"


def test_a_reshape_that_fails_without_elements_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "product", lambda shape: 0)  # as if all sizes between common axes were equal
    with pytest.raises(sc.ShapeError, match="reshape"):
        for seed in range(60):
            optimize(make(f"moved:{seed}").function, DEFAULT, strict=True)


def test_many_pieces_have_no_elements() -> None:
    """Beside others that have: such a piece followed itself for ever."""
    found = 0
    for seed in range(60):
        for v in make(f"moved:{seed}").function.values():
            pads = [o for o in v.operands if o.op.name == "pad"] if v.op.name == "add" else []
            found += {0 in o.operands[0].shape for o in pads} == {True, False}
    assert found > 5


@pytest.mark.parametrize("m,k,n", [(3, 1, 2), (0, 1, 1), (1, 1, 1), (2, 3, 1), (1, 2, 0)])
def test_the_log_of_a_product_is_shifted_once(m: int, k: int, n: int) -> None:
    """Along an axis of length 1 the shift is a reshape: it was not seen there, and was subtracted for ever."""
    f = parse(f"""func @f(%x: f64[{m}, {k}], %y: f64[{k}, {n}]) -> (f64[{m}, {n}]) {{
  %0 = exp %x : f64[{m}, {k}]
  %1 = exp %y : f64[{k}, {n}]
  %2 = add %1, 1.0:f64[{k}, {n}] : f64[{k}, {n}]
  %3 = dot %0, %2 : f64[{m}, {n}]
  %4 = log %3 : f64[{m}, {n}]
  return %4
}}""")
    x, y = np.full((m, k), 800.0), np.zeros((k, n))
    (got,) = evaluate_function(optimize(f, DEFAULT, strict=True).function, [x, y])
    np.testing.assert_allclose(got, np.full((m, n), 800 + np.log(2 * k)))


@pytest.mark.parametrize("mode", ["default", "reference"])
def test_a_singular_matrix_is_refused_without_right_sides_too(mode: str) -> None:
    a, b = sc.input("a", shape=("n", "n")), sc.input("b", shape=("n", "k"))
    f = sc.compile(sc.linalg.solve(a, b), [a, b], mode=mode)
    assert f(np.eye(2), np.zeros((2, 0))).shape == (2, 0) and f(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(sc.LinAlgError, match="singular"):
        f(np.zeros((2, 2)), np.zeros((2, 0)))
