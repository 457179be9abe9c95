"""The modules that stand in for autograd while one of its test modules is loaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.stats

import symc as sc
from tests.autograd_suite.checks import Checks
from tests.autograd_suite.numpy_names import numpy_module
from tests.autograd_suite.sdist import HELPERS


@contextmanager
def loaded(name: str, sources: dict[str, str], checks: Checks) -> Iterator[types.ModuleType]:
    """A fresh copy of autograd's test module ``name``, whose ``autograd`` is symc with ``checks``."""
    with _in_place(_autograd_modules(checks)):
        for helper in HELPERS:
            sys.modules[helper] = _execute(helper, sources)
        try:
            yield _execute(name, sources)
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
    autograd.__dict__.update(numpy=numpy_module(), grad=checks.grad, value_and_grad=checks.value_and_grad,
                             tuple=tuple)
    util.__dict__.update(check_grads=checks.check_grads, combo_check=checks.combo_check)
    autograd.__dict__["scipy"] = _scipy()
    return {
        "autograd": autograd,
        "autograd.numpy": autograd.__dict__["numpy"],
        "autograd.numpy.random": np.random,
        "autograd.test_util": util,
        **{f"autograd.scipy{n}": m for n, m in _named(autograd.__dict__["scipy"]).items()},
    }


def _scipy() -> types.ModuleType:
    """``autograd.scipy``: the functions of symc under SciPy's names."""
    stats = types.ModuleType("stats")
    for name in ("chi2", "beta", "gamma", "norm", "poisson", "t", "dirichlet", "multivariate_normal"):
        stats.__dict__[name] = _Distribution(getattr(sc.stats, name), getattr(scipy.stats, name))
    found = types.ModuleType("scipy")
    linalg = types.ModuleType("linalg")
    linalg.__dict__.update(vars(sc.linalg), sqrtm=lambda a: sc.linalg.sqrtm(sc.astype(a, "complex128")))
    parts = {"stats": stats, "special": sc.special, "linalg": linalg, "signal": types.ModuleType("signal"),
             "integrate": types.ModuleType("integrate")}
    found.__dict__.update(parts)
    return found


def _named(found: types.ModuleType) -> dict[str, Any]:
    """The modules that are imported by name."""
    names = ("stats", "special", "linalg", "signal", "integrate")
    return {"": found, **{f".{n}": getattr(found, n) for n in names},
            ".stats.multivariate_normal": found.stats.multivariate_normal}


class _Distribution(types.ModuleType):
    """A distribution of symc as the module that autograd has of it; what draws numbers is SciPy's."""

    def __init__(self, ours: Any, theirs: Any):
        super().__init__("distribution")
        self.ours, self.theirs = ours, theirs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.theirs, name) if name == "rvs" else partial(self._call, name)

    def _call(self, name: str, *args: Any, allow_singular: bool = False, **kwargs: Any) -> Any:
        assert not allow_singular
        return getattr(self.ours, name)(*args, **kwargs)


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
