"""The modules that stand in for autograd while one of its test modules is loaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tests.autograd_suite.checks import Checks
from tests.autograd_suite.numpy_names import numpy_module
from tests.autograd_suite.sdist import HELPERS


def load(name: str, sources: dict[str, str], checks: Checks) -> types.ModuleType:
    """A fresh copy of autograd's test module ``name``, whose ``autograd`` is symc with ``checks``."""
    with _in_place(_autograd_modules(checks)):
        for helper in HELPERS:
            sys.modules[helper] = _execute(helper, sources)
        try:
            return _execute(name, sources)
        finally:
            for helper in HELPERS:
                del sys.modules[helper]


def _execute(name: str, sources: dict[str, str]) -> types.ModuleType:
    module = types.ModuleType(name)
    exec(compile(sources[name], f"autograd/tests/{name}.py", "exec"), module.__dict__)
    return module


def _autograd_modules(checks: Checks) -> dict[str, types.ModuleType]:
    autograd = types.ModuleType("autograd")
    util = types.ModuleType("autograd.test_util")
    autograd.__dict__.update(numpy=numpy_module(), grad=checks.grad, value_and_grad=checks.value_and_grad)
    util.__dict__.update(check_grads=checks.check_grads, combo_check=checks.combo_check)
    return {
        "autograd": autograd,
        "autograd.numpy": autograd.__dict__["numpy"],
        "autograd.numpy.random": np.random,
        "autograd.test_util": util,
    }


@contextmanager
def _in_place(modules: dict[str, types.ModuleType]) -> Iterator[None]:
    """``modules`` in ``sys.modules``; what they hide comes back afterwards."""
    hidden = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
