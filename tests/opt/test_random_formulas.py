"""Formulas at random, of what rules look for (logs, roots and quotients of products and sums of exponentials, squares
and powers): where the plain formula has its digits, the optimized one has them too.

The plain formula has them where float64 and extended precision agree.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.reference import evaluate_function
from symc.opt import UNFUSED, optimize
from symc.tensors.callsite import caller
from tests.covering import pairwise

pytestmark = pytest.mark.long

SIZE, FORMULAS, NAMES = 3, 80, "xyz"
NUMPY = "exp log log1p log2 sqrt abs sum mean cumsum prod tanh expm1 max cos sin hypot sinh cosh arctan arcsinh".split()

FACTORS = """exp(x) exp(-x) exp(x/2) abs(x) x x*x 1+x*x 2+3*x*x abs(x)**2.5 sqrt(abs(x)) sum(exp(x)) sum(y*exp(x))
mean(exp(x)) cumsum(exp(x)) prod(abs(x)) exp(x)+exp(y) 1+exp(x) 1-exp(x) tanh(x) 1-tanh(x) 1+tanh(x) 3.0 0.25 1+x 1-x
exp(x)-exp(y) sum(exp(x)*exp(y)) 1-tanh(x)*tanh(x) expm1(x) max(x) exp(x-max(x)) sqrt(1+x*x) 1/(1+exp(-x))
1/(1+exp(-x))-1 tanh(x)-1 x-1 exp(x)-1 2+tanh(x) cos(x) 1-cos(x)""".split()
OUTER = ("log({})", "log({})", "log({})", "log1p({})", "log1p({})", "log2({})", "sqrt({})", "{}", "log(1+{})",
         "exp({})", "log(abs({}))")


def written(rng: np.random.Generator) -> str:
    """A formula of x, y and z."""
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        names = dict(zip("xy", rng.permutation(list(NAMES)), strict=False))
        parts.append("(" + "".join(names.get(c, c) if not _in_word(f, i) else c for i, c in enumerate(f)) + ")"
                     if (f := str(rng.choice(FACTORS))) else "")
    text = parts[0]
    for p in parts[1:]:
        text = f"({text}{rng.choice(list('*/*/+-'))}{p})"
    return str(rng.choice(OUTER)).format(text)


def _in_word(text: str, i: int) -> bool:
    """True for a letter of a function's name."""
    return text[i - 1 : i].isalpha() or text[i + 1 : i + 2].isalpha()


def plain(text: str, arrays: list[np.ndarray], dtype: type) -> np.ndarray:
    names = {n: getattr(np, n) for n in NUMPY}
    given = {n: a.astype(dtype) for n, a in zip(NAMES, arrays, strict=True)}
    with np.errstate(all="ignore"):
        return np.broadcast_to(eval(text, names, given), arrays[0].shape).astype(dtype)


def optimized(text: str, size: int) -> Any:
    """The function of x, y and z after the default pipeline."""
    leaves = [sc.input(n, "float64", (size,)) for n in NAMES]
    made = eval(text, {n: getattr(sc, n) for n in dir(sc) if n[0] != "_"}, dict(zip(NAMES, leaves, strict=True)))
    total: Any = made * sc.ones(size)
    return optimize(build([total], leaves, None, None, (), "f", caller()).function, UNFUSED, strict=True).function


def check(text: str, ready: Any, arrays: list[np.ndarray]) -> None:
    usual, exact = plain(text, arrays, np.float64), plain(text, arrays, np.longdouble)
    with np.errstate(all="ignore"):
        (found,) = evaluate_function(ready, arrays)
        good = np.isfinite(usual) & np.isfinite(exact) & (abs(usual) > 1e-290)
        good &= abs(usual - exact) <= 1e-10 * abs(exact)
        wrong = good & ~(abs(found - exact) <= 1e-6 * abs(exact))
    assert not wrong.any(), f"{text} at {arrays}: {found}, not {exact}"


@pytest.mark.parametrize("seed", range(8))
def test_formulas_keep_their_digits(seed: int) -> None:
    rng = np.random.default_rng([20, seed])
    for _ in range(FORMULAS):
        text = written(rng)
        ready = optimized(text, SIZE)
        for scale in (0, 1, 3, 10, 20, 40):
            check(text, ready, [rng.normal(size=SIZE) * 10.0 ** rng.uniform(-scale / 3, scale, SIZE) for _ in NAMES])


GROUPS = "1+tanh(y) 1-tanh(y) tanh(y)-1 1+y y-1 1-y 1-cos(x) 2*x-1".split()
SMALL = ("exp(y/2) z*exp(y) exp(-abs(y)) 1/(1+exp(-y)) 1/(1+exp(y)) cos(z) z*z sqrt(1+z) abs(z)**0.01 "
         "exp(y)*exp(z)").split()


@pytest.mark.parametrize("outer", ["{}", "log({})", "log2({})", "log1p({})", "sqrt({})", "log(abs({}))"])
def test_what_cancels_in_parentheses_cancels_first(outer: str) -> None:
    """A number stays beside what it is put to, however small the rest of the sum is."""
    far = np.array([-700, -100, -40, -30, -15, -1 + 1e-12, -1, -0.3, 1e-9, 0.5, 0.5 + 1e-12, 1, 1 + 1e-12, 20, 100.0])
    arrays = [far, far, np.resize([1e-30, 1e-15, 1e-9, 0.5], len(far))]
    for group, small, form in pairwise(itertools.product(GROUPS, SMALL, ("{1}+({0})", "({0})-{1}", "{1}*2-({0})"))):
        text = outer.format("(" + form.format(group, small) + ")")
        check(text, optimized(text, len(far)), arrays)


TERMS = ("x y sin(x) cos(x) tanh(x) exp(x) expm1(x) log1p(abs(x)) sqrt(x*x+1) sqrt(x*x+y*y) hypot(x,y) hypot(x,1.0) "
         "sinh(x) arctan(x) arcsinh(x) x*x abs(y)").split()
EXTREME = np.array([0, 1, 3, 0.7, 1e-8, 1e-20, 1e-155, 1e-300, 38, 710, 1e5, 1e17, 1e155, 1e300])


FORMS = "{}-{}", "({0}-{0})-{1}", "({0}+{1})-{0}", "{}*{}", "1/({})-1/({})", "log(abs({})+abs({}))"


@pytest.mark.parametrize("form", FORMS)
def test_extreme_numbers(form: str) -> None:
    """What is rewritten to keep its digits overflows where it did, and does not lose others."""
    x, y = (a.ravel() for a in np.meshgrid(*[np.concatenate([EXTREME, -EXTREME])] * 2))
    for pair in pairwise(itertools.product(TERMS, TERMS)):
        text = form.format(*pair)
        check(text, optimized(text, len(x)), [x, y, y])
