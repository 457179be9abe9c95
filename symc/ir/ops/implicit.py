"""Answers of equations: `root`, whose derivative comes from the equation and not from the loop that solved it.

Its regions say how the answer is found, what the equation is, and how a linear equation with its Jacobian is solved.
The pass `inline` replaces it by the first region. `converged` is how what was found is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import ConvergenceError, InternalError
from symc.ir.op import Element, Extern, Op, Regional, lookup, register
from symc.ir.ops.call import one_or_several
from symc.ir.ops.kernel import CHECKS, results_type
from symc.ir.types import DTYPES, TensorType, Type
from symc.ir.value import Region, param


def _infer(*types: TensorType, regions: Sequence[Region]) -> Type:
    answers = tuple(r.type for r in regions[0].results)
    wanted = [types, (*answers, *types), *[(*answers, *answers, *types)] * (len(regions) - 2)]
    for region, params in zip(regions, wanted, strict=True):
        if region.params != params or tuple(r.type for r in region.results) != answers:
            raise InternalError(f"root: a region of params {region.params}, not {params}")
    return results_type(answers)


def _samples() -> Iterator[tuple[tuple, dict]]:
    """The square root, as the answer of x * x = a."""
    sqrt, mul, sub, div = (lookup(name) for name in ("sqrt", "mul", "sub", "div"))
    row = TensorType("f64", (3,))
    a = param(0, row)
    solve = Region((row,), [sqrt(a)])
    x, a = param(0, row), param(1, row)
    equation = Region((row, row), [sub(mul(x, x), a)])
    y, x = param(0, row), param(1, row)
    linear = Region((row, row, row), [div(y, mul(x, 2.0))])
    for regions in ((solve, equation, linear), (solve, equation, linear, linear)):
        yield (np.linspace(1, 2, 3),), dict(regions=regions)


root = register(Op(
    "root",
    _infer,
    one_or_several,
    Regional(),
    Extern("root"),
    frozenset({"inline"}),
    _samples,
    "An answer x of the equation f(x, operands) = 0. Regions: the answer; f; the u with J u = y, given y, x and the "
    "operands, where J is the Jacobian of f by x; and, if there is a fourth, the u with J^T u = y.",
))  # fmt: skip


# --- checks -----------------------------------------------------------------------------------------------------------


def _converged_infer(ok: TensorType, steps: TensorType, residual: TensorType, what: str) -> TensorType:
    dtypes = DTYPES["bool"], DTYPES["i64"], DTYPES["f64"]
    if any(t is not TensorType(d, ok.shape) for t, d in zip((ok, steps, residual), dtypes, strict=True)):
        raise InternalError(f"converged: {ok}, {steps}, {residual}")
    return ok


def _converged_reference(ok: np.ndarray, steps: np.ndarray, residual: np.ndarray, what: str) -> np.ndarray:
    if not ok.all():
        place = tuple(np.argwhere(~ok)[0])
        entry = f" for entry {list(map(int, place))}" if place else ""
        after = f" after {steps[place]} steps" if steps[place] >= 0 else ""
        raise ConvergenceError(f"{what}{entry}: no answer was found{after}", values=[
            (f"residual = {residual[place]:.3g}", None, None)])
    return np.array(ok)


converged = register(Op(
    "converged",
    _converged_infer,
    _converged_reference,
    None,
    Element(),
    CHECKS | {"elementwise"},
    lambda: iter([((np.full(3, True), np.array([2, 4, -1]), np.array([0.0, 1e-9, 1e300])), dict(what="a search"))]),
    "The first operand, after a check that every element is true. The error says how many steps there were (if the "
    "number is not negative) and the residual.",
))  # fmt: skip
