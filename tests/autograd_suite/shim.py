"""The modules that stand in for autograd while one of its test modules is loaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
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
    exec(_code(name, sources[name]), module.__dict__)
    return module


@cache
def _code(name: str, source: str) -> types.CodeType:
    return compile(source, f"autograd/tests/{name}.py", "exec")


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
    parts["signal"].__dict__["convolve"] = _convolve
    parts["integrate"].__dict__["odeint"] = _odeint
    found.__dict__.update(parts)
    return found


def _convolve(a: Any, b: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """autograd's: a convolution along axes, a product over others; the axes of a, of b, and those of the first."""
    over, dots = axes or (range(a.ndim), range(b.ndim)), [list(d) for d in dot_axes]
    letters = "abcdefghijklmnop"
    left, right = list(letters[:a.ndim]), list(letters[8:8 + b.ndim])
    for i, j in zip(*dots, strict=True):
        right[j] = left[i]
    conv, taps = [left[i] for i in over[0]], [right[j] for j in over[1]]
    free = [x for k, x in enumerate(left) if x not in conv and k not in dots[0]]
    free += [x for k, x in enumerate(right) if x not in taps and k not in dots[1]]
    short = "".join(x for x in right if x not in taps)
    sizes, out = [(a.shape[i], b.shape[j]) for i, j in zip(*over, strict=True)], 0
    for place in np.ndindex(*[k for _, k in sizes]):
        index = [slice(None)] * b.ndim
        for j, i in zip(over[1], place, strict=True):
            index[j] = i
        term = sc.einsum(f"{''.join(left)},{short}->{''.join(free + conv)}", a, b[tuple(index)])
        around = [(i, k - 1 - i) for i, (_, k) in zip(place, sizes, strict=True)]
        out = out + sc.pad(term, [(0, 0)] * len(free) + around)
    keep = [slice(None)] * len(free)
    for n, k in sizes:
        size = {"full": n + k - 1, "same": n, "valid": max(n, k) - min(n, k) + 1}[mode]
        keep.append(slice((n + k - 1 - size) // 2, (n + k - 1 - size) // 2 + size))
    return out[tuple(keep)]


def _odeint(func: Any, y: Any, t: Any, args: Any = ()) -> Any:
    """Steps of Runge and Kutta's between the times."""
    found = [y]
    for k in range(t.shape[0] - 1):
        h = (t[k + 1] - t[k]) / 4
        for i in range(4):
            at = t[k] + i * h
            k1 = func(y, at, *args)
            k2 = func(y + h / 2 * k1, at + h / 2, *args)
            k3 = func(y + h / 2 * k2, at + h / 2, *args)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + func(y + h * k3, at + h, *args))
        found.append(y)
    return sc.stack(found)


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

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
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
