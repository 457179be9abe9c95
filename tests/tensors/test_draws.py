"""Random numbers that are drawn while a function is traced are told, and only these."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import symc as sc

DRAWS = {"numpy": lambda: np.random.normal(), "numpy uniform": lambda: np.random.rand(), "python": random.random,
         "python integers": lambda: random.randrange(9)}
TRACED = {
    "jit": lambda draw: sc.jit(lambda x: x + draw())(1.0),
    "jit of a loop": lambda draw: sc.jit(lambda x: sc.scan(lambda c, _: (c + draw(), c), x, length=3)[0])(1.0),
    "scan": lambda draw: sc.scan(lambda c, _: (c + draw(), c), sc.scalar("x"), length=3),
    "while_loop": lambda draw: sc.while_loop(lambda c: c < draw() + 3, lambda c: c + 1, sc.scalar("x")),
    "cond": lambda draw: sc.cond(sc.scalar("x") > 0, lambda: draw() + sc.scalar("x"), lambda: sc.scalar("x")),
    "vmap": lambda draw: sc.vmap(lambda r: r * draw())(sc.vector("x")),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("traced", TRACED.values(), ids=TRACED)
def test_a_draw_while_tracing_is_told_at_the_users_line(traced, draw):
    with pytest.warns(UserWarning, match="they are constants, the same in every call and step") as found:
        traced(draw)
    assert [w.filename for w in found] == [__file__]


@pytest.mark.parametrize("traced", TRACED.values(), ids=TRACED)
def test_generators_keys_and_numbers_that_are_given_are_not_told(traced):
    number = np.random.rand()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for draw in (lambda: number, lambda: sc.random.normal(sc.random.key(0), ())):
            traced(draw)
        random.random()
        np.random.rand()


@pytest.mark.parametrize(("draw", "told"), [("np.random.rand()", True), ("np.random.default_rng(0).normal()", False)])
def test_the_first_use_of_numpys_generators_may_be_in_a_trace(draw, told):
    """NumPy imports them when they are first named."""
    code = f"import numpy as np, symc as sc; sc.jit(lambda x: x + {draw})(1.0)"
    run = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], capture_output=True, text=True)
    assert ("they are constants" in run.stderr) is told and (run.returncode != 0) is told, run.stderr
