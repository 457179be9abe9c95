"""HIPS autograd's own tests, each run unchanged on symc. See README.md."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from tests.autograd_suite.checks import Checks
from tests.autograd_suite.sdist import MODULES, SdistError, fetch_sources
from tests.autograd_suite.shim import load

SAMPLE = 8  # one test in this many also runs its first check on the default backend

sources = cache(fetch_sources)


def out_of_scope() -> dict[str, str]:
    """The reason by test name, from the list beside this file."""
    lines = Path(__file__).with_name("out_of_scope.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def all_tests() -> list[str]:
    """``module.test`` for every test function of the four modules, each once, in order; empty without the sources."""
    try:
        trees = {name: ast.parse(sources()[name]) for name in MODULES}
    except SdistError:
        return []
    names = [f"{m}.{d.name}" for m, tree in trees.items() for d in tree.body if isinstance(d, ast.FunctionDef)]
    return list(dict.fromkeys(n for n in names if ".test_" in n))


TESTS = all_tests()
REASONS = out_of_scope()


def test_sources_are_available():
    """Without autograd's source distribution there is nothing to run, which is a failure and not a skip."""
    sources()
    assert len(TESTS) > 250


def test_out_of_scope_names_exist():
    sources()
    assert {name.removesuffix("[complex]") for name in REASONS} <= set(TESTS)


def run(test: str, modes: tuple[str, ...] = ()) -> None:
    if test in REASONS:
        pytest.skip(REASONS[test])
    module_name, name = test.split(".")
    checks = Checks(modes, complex_in_scope=f"{test}[complex]" not in REASONS)
    module = load(module_name, sources(), checks)
    np.random.seed(42)
    getattr(module, name)()


@pytest.mark.parametrize("test", TESTS)
def test_reference(test: str):
    run(test)


@pytest.mark.parametrize("test", [t for t in TESTS if crc32(t.encode()) % SAMPLE == 0])
def test_compiled(test: str):
    run(test, modes=("default",))
