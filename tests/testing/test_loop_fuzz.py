"""Random programs with loops and branches, nested: every way to compute one gives the same numbers.

More of them: ``python -m symc fuzz``.
"""

from __future__ import annotations

import pytest

import symc as sc
from symc.ir.op import lookup
from symc.ir.traverse import replace
from symc.opt.engine.pass_registry import graph_pass, unregister_pass
from symc.testing.loop_checks import CHECKS, Disagreement, check_stages, failure
from symc.testing.loops import Program, random_program, shrink

#: Which programs each check is tried on here, and whether they are smooth.
TRIED = {
    "reference": (range(14), False),
    "stages": (range(20, 50), False),
    "text": (range(60, 76), False),
    "values": (range(80, 84), False),
    "fast": (range(90, 92), False),
    "steps": (range(100, 104), False),
    "plain": (range(110, 112), False),
    "threads": (range(120, 123), False),
    "states": (range(130, 136), False),
    "states_of_steps": (range(136, 138), False),
    "derivatives": (range(142, 145), True),
    "native_derivatives": (range(150, 151), True),
    "batches": (range(160, 166), True),
    "native_batches": (range(170, 172), False),
    "budget": (range(180, 181), True),
}


@pytest.mark.parametrize("check, seed", [(c, s) for c, (seeds, _) in TRIED.items() for s in seeds])
def test_random_programs(check: str, seed: int) -> None:
    p = random_program(seed, smooth=TRIED[check][1])
    said = failure(check, p)
    assert not said, f"{said}\n{p}"


def test_every_check_is_tried() -> None:
    assert TRIED.keys() == CHECKS.keys()


@pytest.fixture
def wrong_pass():
    @graph_pass("sines_in_loops_are_cosines", bodies=True)
    def wrong(f):
        sines = {} if f.name == "f" else {v: lookup("cos")(*v.operands) for v in f.values() if v.op.name == "sin"}
        return f.with_results(replace(f.body.results, sines))

    yield "inline,sines_in_loops_are_cosines"
    unregister_pass("sines_in_loops_are_cosines")


def test_a_wrong_pass_is_found_and_its_program_made_small(wrong_pass: str) -> None:
    def fails(p: Program) -> bool:
        try:
            check_stages(p, wrong_pass)
        except sc.SymcError:
            return False
        except Disagreement as e:
            return "after sines_in_loops_are_cosines, n=" in str(e)
        return False

    failing = [p for p in map(random_program, range(16)) if fails(p)]
    assert len(failing) >= 3
    small = shrink(failing[0], fails)
    assert fails(small) and str(small).count("Statement(") <= 3
