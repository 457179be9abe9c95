"""HIPS autograd's own tests, each run unchanged on symc. See README.md."""

from __future__ import annotations

import ast
from contextlib import suppress
from functools import cache
from itertools import product
from zlib import crc32

import numpy as np
import pytest

from tests.autograd_suite.checks import Checks, Enough
from tests.autograd_suite.sdist import MODULES, SdistError, fetch_sources
from tests.autograd_suite.shim import loaded

SAMPLE = 8  # one test in this many runs its first check on the default backend too

sources = cache(fetch_sources)


def all_tests() -> list[str]:
    """``module.test`` for every test function of the modules, each once, in order; empty without the sources."""
    try:
        trees = {name: ast.parse(sources()[name]) for name in MODULES}
    except SdistError:
        return []
    parts = [(m, part) for m, tree in trees.items() for part in (tree, *tree.body)]  # a module, and its "try ... else"
    lists = [(m, part.orelse if isinstance(part, ast.Try) else part.body) for m, part in parts
             if isinstance(part, ast.Module | ast.Try)]
    names = [f"{m}.{d.name}" for m, body in lists for d in body if isinstance(d, ast.FunctionDef)]
    return list(dict.fromkeys(n for n in names if ".test_" in n))


TESTS = all_tests()


def test_sources_are_available():
    """Without autograd's source distribution there is nothing to run, which is a failure and not a skip."""
    sources()
    assert len(TESTS) > 250


def run(test: str, modes: tuple[str, ...] = ()) -> None:
    module_name, name = test.split(".")
    with loaded(module_name, sources(), Checks(modes)) as module:
        test_function = getattr(module, name)
        marks = [m.args for m in getattr(test_function, "pytestmark", ()) if m.name == "parametrize"]
        for values in product(*[values for _, values in marks]):
            np.random.seed(42)
            kwargs = {parameter: v for (parameter, _), v in zip(marks, values, strict=True)}
            if not name.endswith("_not_implemented"):
                test_function(**kwargs)
                continue
            with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):  # autograd has no derivative; symc has
                test_function(**kwargs)


@pytest.mark.parametrize("test", TESTS)
def test_reference(test: str):
    run(test)


@pytest.mark.parametrize("test", [t for t in TESTS if crc32(t.encode()) % SAMPLE == 0])
def test_compiled(test: str):
    with suppress(Enough):
        run(test, modes=("default",))
