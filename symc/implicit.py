"""Answers of equations whose derivative is found from the equation: ``custom_root`` and ``custom_fixed_point``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc import nest
from symc.callsite import user_code
from symc.control import while_loop
from symc.errors import GradientError, InputError, ShapeError, SymcError
from symc.grad import jvp as jvp_values
from symc.grad import vjp as vjp_values
from symc.grad.one_op import varies, zeros
from symc.ir import location
from symc.ir.bodies import branch_captures, built, close
from symc.ir.ops.implicit import root
from symc.ir.ops.kernel import results_of
from symc.ir.value import Value, fresh_input
from symc.nest import Nest
from symc.numpy_api.convert import as_tensor, convert
from symc.public import API, public
from symc.tensor import Tensor

Function = Callable[[Any], Any]


@public()
def custom_root(f: Function, initial_guess: Any, solve: Callable[[Function, Any], Any],
                tangent_solve: Callable[[Function, Any], Any] | None = None) -> Any:
    """An x with ``f(x) = 0``, found by ``solve(f, initial_guess)``; differentiable in what f uses from outside.

    The derivative follows from the equation (implicit function theorem), whatever ``solve`` does: it is not
    differentiated and nothing of it is kept. x may be a nest; f gives values of the same structure and shapes.
    ``tangent_solve(g, y)``: the u with ``g(u) = y``, for the linear function g that is the derivative of f at x. For a
    single number it is not needed: ``y / g(1)``. For reverse mode it is transposed, so it must be differentiable in y.
    Raises GradientError if it is needed and not given; ShapeError if f does not give what x is.
    """
    starts, structure = _flat(initial_guess, "initial_guess")
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

    def answer() -> Any:
        with user_code():
            return solve(f, nest.unflatten(structure, starts))

    return _made("custom_root", structure, starts, answer, lambda x: _applied(f, structure, x, "custom_root: f(x)"),
                 [linear])


def _scalar_solve(g: Function, y: Any) -> Any:
    (right,), structure = nest.flatten(y)
    ((slope,), _) = nest.flatten(g(nest.unflatten(structure, [API["ones_like"](right)])))
    return nest.unflatten(structure, [right / slope])


@public()
def custom_fixed_point(f: Function, initial_guess: Any, *, tolerance: float = 1e-10, max_steps: int = 1000) -> Any:
    """An x with ``f(x) = x``, found by iteration from ``initial_guess``; differentiable in what f uses from outside.

    Iterates until no element moves by more than ``tolerance`` (relative to 1 + |x|), or ``max_steps`` steps. f must be
    a contraction around the answer. The derivative iterates in the same way on ``u = y + (df/dx) u``, or its transpose
    in reverse mode (Christianson 1994); nothing of the steps is kept. x may be a nest of floats.
    """
    starts, structure = _flat(initial_guess, "initial_guess")

    def iterate(step: Callable[[list[Value]], list[Value]], start: Sequence[Value]) -> list[Value]:
        def go(state: Any) -> Tensor:
            moved = [API["max"](abs(b - a) - tolerance * (1 + abs(a)), initial=-1.0) for a, b in zip(*state)]
            return API["any"](API["stack"]([m > 0 for m in moved]))

        def improve(state: Any) -> Any:
            return state[1], [Tensor(v) for v in step([x.value for x in state[1]])]

        first = [Tensor(v) for v in start]
        return [x.value for x in while_loop(go, improve, (first, [Tensor(v) for v in step(list(start))]), max_steps)[1]]

    def answer() -> Any:
        return _wrap(structure, iterate(lambda x: _applied(f, structure, x, "custom_fixed_point: f(x)"),
                                        [s.value for s in starts]))

    def residual(x: Sequence[Value]) -> list[Value]:
        return [a - b for a, b in zip(x, _applied(f, structure, x, "custom_fixed_point: f(x)"), strict=True)]

    def linear(at: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return iterate(lambda u: [y + p for y, p in zip(right, _pushed(f, structure, at, u), strict=True)], right)

    def transposed(at: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return iterate(lambda u: [y + p for y, p in zip(right, _pulled(f, structure, at, u), strict=True)], right)

    return _made("custom_fixed_point", structure, starts, answer, residual, [linear, transposed])


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


def _flat(tree: Any, what: str) -> tuple[list[Tensor], Nest]:
    leaves, structure = nest.flatten(tree)
    try:
        return [API["asarray"](x) for x in leaves], structure
    except SymcError as e:
        raise InputError(f"{what} must be arrays") from e


def _same(tree: Any, structure: Nest, like: Sequence[Value], what: str) -> list[Value]:
    """The values of a nest that must have the structure, dtypes and shapes of ``like``."""
    leaves = [as_tensor(x) for x in nest.match(structure, tree, what)]
    for x, want in zip(leaves, like, strict=True):
        if x.value.shape != want.shape:
            raise ShapeError(f"{what}: a value has type {x.value.type} where the unknown is {want.type}",
                             values=[x.describe()])
    return [convert(x.value, want.dtype) for x, want in zip(leaves, like, strict=True)]


def _applied(f: Function, structure: Nest, xs: Sequence[Value], what: str) -> list[Value]:
    with user_code():
        found = f(_wrap(structure, xs))
    return _same(found, structure, xs, what)


def _pushed(f: Function, structure: Nest, at: Sequence[Value], moves: Sequence[Value]) -> list[Value]:
    """The derivative of f at ``at``, along ``moves``."""
    found = jvp_values(_applied(f, structure, at, "f(x)"), at, list(moves))
    return [zeros(x.type) if t is None else t for t, x in zip(found, at, strict=True)]


def _pulled(f: Function, structure: Nest, at: Sequence[Value], seeds: Sequence[Value]) -> list[Value]:
    found = vjp_values(_applied(f, structure, at, "f(x)"), at, list(seeds))
    return [zeros(x.type) if g is None else g for g, x in zip(found, at, strict=True)]
