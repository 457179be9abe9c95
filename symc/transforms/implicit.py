"""Answers of equations whose derivative is found from the equation: ``custom_root`` and ``custom_fixed_point``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import GradientError, InputError, ShapeError, SymcError
from symc.grad import jvp as jvp_values
from symc.grad import vjp as vjp_values
from symc.grad.one_op import filled, varies
from symc.ir import location
from symc.ir.bodies import branch_captures, built, close
from symc.ir.dim import known_different
from symc.ir.dtypes import finfo
from symc.ir.op import splat
from symc.ir.ops.cast import cast
from symc.ir.ops.ensure import ensured
from symc.ir.ops.implicit import converged, root
from symc.ir.ops.kernel import results_of
from symc.ir.ops.logic import where
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value, fresh_input
from symc.numpy_api.promotion import stretch
from symc.tensors import pytree as nest
from symc.tensors.callsite import user_code
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API, public
from symc.tensors.pytree import Nest
from symc.tensors.tensor import Tensor
from symc.transforms.control import while_loop

Function = Callable[[Any], Any]


@public()
def custom_root(f: Function, initial_guess: Any, solve: Callable[[Function, Any], Any],
                tangent_solve: Callable[[Function, Any], Any] | None = None, *,
                tolerance: float | None = 1e-4) -> Any:
    """An x with ``f(x) = 0``, found by ``solve(f, initial_guess)``; differentiable in what f uses from outside.

    The derivative follows from the equation (implicit function theorem), whatever ``solve`` does: it is not
    differentiated and nothing of it is kept. x may be a nest; f gives values of the same structure and shapes.
    ``tangent_solve(g, y)``: the u with ``g(u) = y``, for the linear function g that is the derivative of f at x. For a
    single number it is not needed: ``y / g(1)``. For reverse mode it is transposed, so it must be differentiable in y.
    Raises GradientError if it is needed and not given; ShapeError if f does not give what x is.

    A call raises ConvergenceError where x is no answer: where a step of Newton's from it, ``tangent_solve(g, f(x))``,
    moves an element by more than ``tolerance`` (relative to 1 + |x|; None: x is taken as it is). So it does where the
    derivative is not finite, as the Jacobian is singular.

    >>> a = sc.scalar("a")
    >>> newton = lambda f, x: sc.fori_loop(0, 20, lambda i, x: x - f(x) / (2 * x), x)
    >>> root = sc.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> sc.compile([root, sc.grad(root, a)])(2.0)
    [array(1.41421356), array(0.35355339)]
    """
    starts, structure = _flat(initial_guess)
    if tangent_solve is None:
        if len(starts) != 1 or starts[0].ndim:
            raise GradientError("custom_root: tangent_solve is needed for more than one number",
                                values=[s.describe() for s in starts],
                                help="lambda g, y: y / g(sc.ones_like(y)) for equations that do not depend on each "
                                     "other's unknowns")
        tangent_solve = _scalar_solve

    def linear(at: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        def g(u: Any) -> Any:
            moves = _same(u, structure, at, "tangent_solve: the argument of g")
            return _wrap(structure, _pushed(f, structure, at, moves))

        assert tangent_solve is not None
        with user_code():
            found = tangent_solve(g, _wrap(structure, right))
        return _same(found, structure, at, "custom_root: what tangent_solve gives")

    def derivative(at: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        found = [Tensor(v) for v in linear(at, right)]
        ok = API["all"](API["stack"]([API["all"](API["isfinite"](u)) for u in found]))
        return _checked("the derivative of custom_root", found, ok, -1, _largest(found, found))

    def answer() -> Any:
        with user_code():
            found = solve(f, nest.unflatten(structure, starts))
        if tolerance is None:
            return found
        at = _same(found, structure, [s.value for s in starts], "custom_root: the answer")
        rest = _applied(f, structure, at, "custom_root: f(x)")
        xs, rests, moves = ([Tensor(v) for v in vs] for vs in (at, rest, linear(at, rest)))
        ok = (_largest(rests, rests) == 0) | (_largest(moves, xs) <= max(tolerance, _precision(starts)))
        return _wrap(structure, _checked("custom_root", xs, ok, -1, _largest(rests, rests)))

    return _made("custom_root", structure, starts, answer, lambda x: _applied(f, structure, x, "custom_root: f(x)"),
                 [derivative])


def _scalar_solve(g: Function, y: Any) -> Any:
    (right,), structure = nest.flatten(y)
    ((slope,), _) = nest.flatten(g(nest.unflatten(structure, [API["ones_like"](right)])))
    return nest.unflatten(structure, [right / slope])


@public()
def custom_fixed_point(f: Function, initial_guess: Any, *, tolerance: float = 1e-10, max_steps: int = 1000) -> Any:
    """An x with ``f(x) = x``, found by iteration from ``initial_guess``; differentiable in what f uses from outside.

    Iterates until no element moves by more than ``tolerance`` (relative to 1 + |x|). f must be a contraction around the
    answer. The derivative iterates in the same way on ``u = y + (df/dx) u``, or its transpose in reverse mode
    (Christianson 1994); nothing of the steps is kept. x may be a nest of floats. A call raises ConvergenceError if
    either takes more than ``max_steps`` steps, or meets nan.

    >>> c = sc.scalar("c")
    >>> x = sc.custom_fixed_point(lambda t: sc.cos(c * t), 0.5)
    >>> sc.compile([x, sc.grad(x, c)])(1.0)
    [array(0.73908513), array(-0.29747434)]
    """
    starts, structure = _flat(initial_guess)

    def iterate(what: str, step: Callable[[list[Value]], list[Value]], start: Sequence[Value]) -> list[Value]:
        def over(state: Any) -> list[Tensor]:
            return [API["max"](abs(b - a) - tolerance * (1 + abs(a)), initial=-1.0) for a, b in zip(*state[:2])]

        def improve(state: Any) -> Any:
            return state[1], [Tensor(v) for v in step([x.value for x in state[1]])], state[2] + 1

        first = [Tensor(v) for v in start]
        state = first, [Tensor(v) for v in step(list(start))], API["asarray"](1)
        old, new, steps = last = while_loop(lambda state: API["any"](API["stack"]([m > 0 for m in over(state)])),
                                            improve, state, max_steps)
        ok = API["all"](API["stack"]([m <= 0 for m in over(last)]))
        return _checked(what, new, ok, steps, _largest([b - a for a, b in zip(old, new)], old))

    def answer() -> Any:
        return _wrap(structure, iterate("custom_fixed_point", applied, [s.value for s in starts]))

    def applied(x: Sequence[Value]) -> list[Value]:
        return _applied(f, structure, x, "custom_fixed_point: f(x)")

    slope = "the derivative of custom_fixed_point"

    def residual(x: Sequence[Value]) -> list[Value]:
        return [a - b for a, b in zip(x, applied(x), strict=True)]

    def linear(at: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return iterate(slope, lambda u: [y + p for y, p in zip(right, _pushed(f, structure, at, u))], right)

    def transposed(at: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return iterate(slope, lambda u: [y + p for y, p in zip(right, _pulled(f, structure, at, u))], right)

    return _made("custom_fixed_point", structure, starts, answer, residual, [linear, transposed])


def _largest(moves: Sequence[Tensor], at: Sequence[Tensor]) -> Tensor:
    """The largest element of ``moves``, relative to 1 + |at|."""
    found = [API["max"](abs(m) / (1 + abs(x)), initial=0.0) for m, x in zip(moves, at)]
    return API["max"](API["stack"]([API["astype"](x, "float64") for x in found]))


def _precision(xs: Sequence[Tensor]) -> float:
    """The bound of moves of these numbers that are rounding alone."""
    return max(8 * float(finfo(x.dtype).eps) for x in xs)


def _checked(what: str, xs: Sequence[Tensor], ok: Tensor, steps: Any, residual: Tensor) -> list[Value]:
    """``xs``, after a check that ``ok`` is true."""
    number = TensorType(DTYPES["i64"], ())
    count = splat(steps, number) if isinstance(steps, int) else cast(steps.value, dtype=number.dtype)
    good = converged(ok.value, count, residual.value, what=what)
    return [where(stretch(good, x.value.shape), x.value, splat(math.nan, x.value.type)) for x in xs]


# --- the op -----------------------------------------------------------------------------------------------------------


def _made(what: str, structure: Nest, starts: Sequence[Tensor], answer: Callable[[], Any],
          equation: Callable[[Sequence[Value]], list[Value]],
          solves: Sequence[Callable[[Sequence[Value], Sequence[Value]], list[Value]]]) -> Any:
    """A `root` with the regions that these functions build. What they use from outside are its operands."""
    types = [s.value.type for s in starts]
    if not all(varies(t) for t in types):
        raise GradientError(f"{what}: only floats can be solved for", values=[s.describe() for s in starts])
    xs, rights = ([fresh_input(t) for t in types] for _ in range(2))
    parts: list[tuple[list[Value], list[Value], set[Value]]] = []
    with built() as made:
        found = _same(answer(), structure, [s.value for s in starts], f"{what}: the answer")
    parts.append(([], found, made))
    for params, build in [(xs, lambda: equation(xs)), *[([*rights, *xs], lambda s=s: s(xs, rights)) for s in solves]]:
        with built() as made:
            results = build()
        parts.append((params, results, made))
    captured: dict[Value, None] = {}
    for params, results, made in parts:
        captured.update(dict.fromkeys(v for v in branch_captures(results, made) if v not in params))
    bodies = [close(params, list(captured), results) for params, results, _ in parts]
    v = root(*captured, regions=[b.region for b in bodies])
    for b in bodies:
        location.note_inside(v, b.notes)
    return nest.unflatten(structure, [Tensor(r) for r in results_of(v)])


def _wrap(structure: Nest, values: Sequence[Value]) -> Any:
    return nest.unflatten(structure, [Tensor(v) for v in values])


def _flat(tree: Any) -> tuple[list[Tensor], Nest]:
    leaves, structure = nest.flatten(tree)
    try:
        return [API["asarray"](x) for x in leaves], structure
    except SymcError as e:
        raise InputError("initial_guess must be arrays") from e


def _same(tree: Any, structure: Nest, like: Sequence[Value], what: str) -> list[Value]:
    """The values of a nest that must have the structure, dtypes and shapes of ``like``."""
    leaves = [as_tensor(x) for x in nest.match(structure, tree, what)]
    for x, want in zip(leaves, like, strict=True):
        if known_different(x.value.shape, want.shape):
            raise ShapeError(f"{what}: a value has type {x.value.type} where the unknown is {want.type}",
                             values=[x.describe()])
    found = [convert(x.value, want.dtype) for x, want in zip(leaves, like, strict=True)]
    return [ensured(v, w.shape) for v, w in zip(found, like, strict=True)]


def _applied(f: Function, structure: Nest, xs: Sequence[Value], what: str) -> list[Value]:
    with user_code():
        found = f(_wrap(structure, xs))
    return _same(found, structure, xs, what)


def _pushed(f: Function, structure: Nest, at: Sequence[Value], moves: Sequence[Value]) -> list[Value]:
    """The derivative of f at ``at``, along ``moves``."""
    return filled(jvp_values(_applied(f, structure, at, "f(x)"), at, list(moves)), at)


def _pulled(f: Function, structure: Nest, at: Sequence[Value], seeds: Sequence[Value]) -> list[Value]:
    return filled(vjp_values(_applied(f, structure, at, "f(x)"), at, list(seeds)), at)
