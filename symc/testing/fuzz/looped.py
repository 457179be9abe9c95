"""Checks of programs with loops against the same programs without: see ``symc.testing.loop_checks``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from symc.testing.loop_checks import _fails_like, failure
from symc.testing.loops import Program, shrink
from symc.tools.debugging.blame import Blame

#: How often each of these checks is run, of a hundred; those of the second table compile kernels.
SHARES = {"reference": 50, "derivatives": 15, "batches": 10}
NATIVE_SHARES = {"values": 40, "states": 20, "steps": 15, "threads": 5, "budget": 5}
SMOOTH = frozenset({"derivatives", "budget"})
TRIES = 150

SCRIPT = '''"""{headline}"""

from symc.testing.loop_checks import failure
from symc.testing.loops import Program, Statement  # noqa: F401 - what the program is written with

PROGRAM = {program!r}


def test_loops_are_what_they_are_without_loops():
    assert not failure({check!r}, PROGRAM)
'''


def turn(p: Program, rng: np.random.Generator, native: bool) -> list[str]:
    """The checks that this program gets."""
    shares = SHARES | (NATIVE_SHARES if native else {})
    return [c for c, share in shares.items() if 100 * rng.random() < share and (p.smooth or c not in SMOOTH)]


def run(check: str, p: Program) -> tuple[Blame, Program] | None:
    """One check; a program that fails is made smaller."""
    said = failure(check, p)
    if not said:
        return None
    small = shrink(p, partial(_fails_like, check, said.partition(":")[0]), TRIES)
    return Blame("check", f"loops: {check}", error=failure(check, small) or said), small


def write(path: Path, headline: str, check: str, p: Any) -> Path:
    """The program as a test."""
    path.write_text(SCRIPT.format(headline=headline, program=p, check=check), "utf-8")
    return path
