"""Derivatives for users: ``grad``, ``vjp``, ``jvp``, ``hvp`` and the functions that change what a derivative is.

All of them build more graph; nothing is computed here. Before a graph is differentiated its formulas are made stable,
because the derivative of an unstable formula is nan where the formula itself is still right. ``jacobians.py`` has
whole matrices, ``symc.tools.gradcheck`` the comparison with finite differences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import GradientError
from symc.grad import disconnection, slope
from symc.grad import jvp as jvp_values
from symc.grad import vjp as vjp_values
from symc.grad.one_op import filled
from symc.ir import location
from symc.ir.closure_scope import instead_of, takes_effect
from symc.ir.dim import known_different
from symc.ir.op import splat
from symc.ir.ops import grad_control
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.effect import IDENTITY
from symc.ir.ops.ensure import ensure_shape
from symc.ir.text import splat_of
from symc.ir.traverse import postorder, rebuild, replace
from symc.ir.types import is_inexact
from symc.ir.value import Value, first_line, fresh_input
from symc.opt import stabilize_values
from symc.tensors import pytree as nest
from symc.tensors.convert import as_tensor, convert
from symc.tensors.labels import dims_of, with_dims
from symc.tensors.public import API, public
from symc.tensors.tensor import Tensor
from symc.transforms.of_functions import is_function, of_function

POLICIES = ("raise", "warn", "zero")
ONLY = "only floats and complex numbers have derivatives"
#: Values of a derivative from which on it is asked whether there are fewer the other way.
LARGE = 40


class DisconnectedWarning(UserWarning):
    """A derivative was asked for with respect to something that the result does not depend on."""


@public()
def grad(cost: Any, wrt: Any = None, *, argnums: int | Sequence[int] = 0, cotangent: Any = None,
         disconnected: str = "raise", holomorphic: bool = False) -> Any:
    """The derivative of the scalar ``cost`` with respect to every value in the nest ``wrt``, in the same nest.

    ``wrt`` may hold any values, not only inputs; one that others in ``wrt`` are made of gets the whole derivative,
    through those too. With ``cotangent`` the cost may have any shape: the result is then the derivative of
    ``sum(cotangent * cost)``. For complex values the result is the direction of steepest ascent of the real part, the
    conjugate of the derivative of a textbook; ``holomorphic=True`` gives the latter.
    ``disconnected``: what to do about a value that the cost does not depend on: "raise" (GradientError with the place
    where the connection ends), "warn", or "zero".
    Of a function it is a function: the gradient of its result by the arguments ``argnums`` (or ``wrt``: numbers).
    Raises GradientError for a cost that is not a scalar or not a float, and for integer values in ``wrt``.

    >>> x = sc.vector("x")
    >>> sc.compile(sc.grad(sc.sum(x**3), x))([1.0, 2.0])
    array([ 3., 12.])
    >>> sc.jit(sc.grad(lambda x: sc.sum(x**3)))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    if is_function(cost):
        return of_function("grad", cost, argnums if wrt is None else wrt, lambda y, w: grad(
            y, w, cotangent=cotangent, disconnected=disconnected, holomorphic=holomorphic))
    leaves, structure = _wrt(wrt, "grad")
    output = _output(cost, "grad")
    if cotangent is not None:
        seed = _tangent(cotangent, output, "cotangent")
    else:
        seed = splat(1, _scalar(output, holomorphic).type)
    if holomorphic and not all(w.dtype.kind == "c" for w in leaves):
        raise GradientError("grad: holomorphic=True needs complex values in wrt", values=[row(w) for w in leaves])
    stable, stable_wrt = stabilized([output], leaves)
    found = _derivative(*stable, *stable_wrt) if cotangent is None and len(leaves) == 1 else None
    found = found or vjp_values(stable, stable_wrt, [seed], cut=False)
    results = settle("grad", found, [output], leaves, disconnected)
    if holomorphic:
        results = [conjugate(g) for g in results]
    return _like(wrt, structure, results)


def _derivative(output: Value, wrt: Value) -> list[Value | None] | None:
    """The derivative of a number; of a sum over elements, if it is simpler forwards, as those of higher order are."""
    forwards = slope(output, wrt)
    if forwards is None or not forwards.ndim:
        return None if forwards is None else [forwards]
    (backwards,) = vjp_values([output], [wrt], [splat(1, output.type)], cut=False)
    sizes = [0 if g is None else len(postorder([g])) for g in (forwards, backwards)]
    return [forwards if sizes[1] > LARGE and sizes[0] < 0.9 * sizes[1] else backwards]


def value_and_grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   **options: Any) -> Callable[..., tuple[Any, Any]]:
    """A function that returns ``fn``'s result and its gradient with respect to the arguments ``argnums``.

    ``options`` are those of ``grad``. The arguments may be nests.

    >>> f = sc.jit(sc.value_and_grad(lambda x: sc.sum(x**2)))
    >>> f(np.array([1.0, 2.0]))
    (array(5.), array([2., 4.]))
    """

    return of_function("value_and_grad", fn, argnums, lambda value, wrt: (value, grad(value, wrt, **options)))


@public()
def vjp(outputs: Any, wrt: Any, cotangents: Any, *, disconnected: str = "raise") -> Any:
    """The derivative of ``sum(cotangents * outputs)`` with respect to ``wrt``: the transposed Jacobian times a vector.

    ``outputs`` and ``cotangents`` are nests of one structure; the result has the nest of ``wrt``.

    >>> x, v = sc.vector("x", shape=("n",)), sc.vector("v", shape=("n",))
    >>> sc.compile(sc.vjp(x**3, x, v), [x, v])([1.0, 2.0], [1.0, 0.0])
    array([3., 0.])
    """
    leaves, structure = _wrt(wrt, "vjp")
    roots, seeds = _paired(outputs, cotangents, "vjp", "cotangent")
    stable, stable_wrt = stabilized(roots, leaves)
    found = vjp_values(stable, stable_wrt, seeds, cut=False)
    return _like(wrt, structure, settle("vjp", found, roots, leaves, disconnected))


@public()
def jvp(outputs: Any, wrt: Any, tangents: Any, *, disconnected: str = "zero") -> Any:
    """Tangents of ``outputs`` when ``wrt`` move along ``tangents``: the Jacobian times a vector.

    The result has the nest of ``outputs``. The values in ``wrt`` are independent variables: one that others are made of
    moves only itself.

    >>> x, v = sc.vector("x", shape=("n",)), sc.vector("v", shape=("n",))
    >>> sc.compile(sc.jvp(x**3, x, v), [x, v])([1.0, 2.0], [1.0, 0.0])
    array([3., 0.])
    """
    leaves, structure = _wrt(wrt, "jvp")
    given = nest.match(structure, tangents, "tangents")
    moves = [_tangent(t, w, "tangent") for t, w in zip(given, leaves, strict=True)]
    roots, out = _outputs(outputs, "jvp")
    found = jvp_values(*stabilized(roots, leaves), moves)
    for root, t in zip(roots, found, strict=True):
        if t is None:
            _settle_one("jvp", root, leaves[0] if leaves else root, disconnected)
    return nest.unflatten(out, [Tensor(t) for t in filled(found, roots)])


@public()
def hvp(cost: Any, wrt: Any, v: Any, *, disconnected: str = "raise") -> Any:
    """The Hessian of the scalar ``cost`` times ``v``, in the nest of ``wrt``, without forming the Hessian.

    Forward mode over reverse mode: about as much work as two gradients.

    >>> x, v = sc.vector("x", shape=("n",)), sc.vector("v", shape=("n",))
    >>> sc.compile(sc.hvp(sc.sum(x**3), x, v), [x, v])([1.0, 2.0], [1.0, 0.0])
    array([6., 0.])
    """
    leaves, structure = _wrt(wrt, "hvp")
    moves = [_tangent(t, w, "v") for t, w in zip(nest.match(structure, v, "v"), leaves, strict=True)]
    output = _scalar(_output(cost, "hvp"), False)
    stable, stable_wrt = stabilized([output], leaves)
    gradients = settle("hvp", vjp_values(stable, stable_wrt, [splat(1, output.type)]), [output], leaves, disconnected)
    found = jvp_values(gradients, stable_wrt, moves)
    return _like(wrt, structure, filled(found, leaves))


# --- stable formulas -------------------------------------------------------------------------------------------------


def stabilized(outputs: Sequence[Value], wrt: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """The outputs in a form that is safe to differentiate, and what became of ``wrt`` in it.

    A rule may look through any value but a leaf, so values in ``wrt`` that are computed are leaves meanwhile. So are
    prints and checks: each takes place once, in the formula as it was written, whatever becomes of it here.
    """
    wanted = {w for w in wrt if w.operands}
    cuts = {v: fresh_input(v.type) for v in postorder([*outputs, *wrt]) if v in wanted or takes_effect(v)}

    with location.at(()):  # these are the user's own formulas, not made by the line that asks for the derivative
        bodies = [_below(v, cuts) for v in cuts]
        stable = stabilize_values([*replace(outputs, cuts, location.move), *bodies], [w for w in wrt if w not in cuts])
        back: dict[Value, Value] = {}
        for (v, cut), body in zip(cuts.items(), stable[len(outputs):], strict=True):
            (new,) = replace([body], back, location.move)
            back[cut] = instead_of(v, new) if takes_effect(v) else new
        roots = replace(stable[: len(outputs)], back, location.move)
    return roots, [back[cuts[w]] if w in cuts else w for w in wrt]


def _below(v: Value, cuts: dict[Value, Value]) -> Value:
    """Value that is made stable in place of ``v``, on leaves: ``v`` itself, or what an effect gives back."""
    if v.op.derivative is IDENTITY:
        return replace(v.operands[:1], cuts, location.move)[0]
    body = rebuild(v, replace(v.operands, cuts, location.move))
    location.move(v, body)
    return body


# --- identities with another derivative -------------------------------------------------------------------------------


@public()
def stop_gradient(x: Any) -> Any:
    """x (or every value of a nest), as a constant to every derivative.

    >>> x = sc.vector("x")
    >>> sc.compile(sc.grad(sc.sum(x * sc.stop_gradient(x)), x))([1.0, 2.0])
    array([1., 2.])
    """
    return _each(x, lambda v: grad_control.stop_gradient(v))


@public()
def zero_grad(x: Any) -> Any:
    """x, with a derivative of zero: unlike ``stop_gradient`` it stays connected."""
    return _each(x, lambda v: grad_control.grad_scale(v, scale=0.0))


@public()
def grad_scale(x: Any, scale: float) -> Any:
    """x, whose derivative is multiplied by the number ``scale``."""
    return _each(x, lambda v: grad_control.grad_scale(v, scale=float(scale)))


@public()
def reverse_grad(x: Any) -> Any:
    """x, whose derivative has the opposite sign (as adversarial training of features wants)."""
    return _each(x, lambda v: grad_control.grad_scale(v, scale=-1.0))


@public()
def grad_clip(x: Any, low: float, high: float) -> Any:
    """x, whose cotangent is kept between ``low`` and ``high`` on its way back. Forward mode is not changed."""
    if not low <= high:
        raise GradientError(f"grad_clip: low is {low}, high is {high}", help="low must not be above high")
    return _each(x, lambda v: grad_control.grad_clip(v, low=float(low), high=float(high)))


def _each(x: Any, f: Callable[[Value], Value]) -> Any:
    leaves, structure = nest.flatten(x)
    return nest.unflatten(structure, [Tensor(f(as_tensor(leaf).value)) for leaf in leaves])


# --- checks -----------------------------------------------------------------------------------------------------------


def row(v: Value, name: str = "value") -> tuple[str, Any, Any]:
    """A row of an error: name, type and the user's line."""
    return Tensor(v).describe(name)


def _wrt(wrt: Any, what: str) -> tuple[list[Value], nest.Nest]:
    """The values to differentiate by, with their nest."""
    leaves, structure = nest.flatten_varying(wrt)
    for leaf, path in zip(leaves, structure.paths("wrt"), strict=True):
        if not isinstance(leaf, Tensor):
            raise GradientError(f"{what}: {path} is not a symbolic value: {type(leaf).__name__} {leaf!r:.40}".rstrip(),
                                help="give the inputs or intermediate values themselves, not their names or numbers")
        if not is_inexact(leaf.dtype):
            raise GradientError(f"{what}: {path} is {leaf.value.type}; {ONLY}",
                                values=[leaf.describe(path)], help="declare it as a float, or leave it out of wrt")
        if not leaf.ndim and splat_of(leaf.value) is not None:  # others in the formula may be meant as well
            raise GradientError(f"{what}: {path} is the number {splat_of(leaf.value)}, and equal numbers are one value",
                                values=[leaf.describe(path)], help="make it an input, or use sc.value_and_grad")
    if not leaves:
        raise GradientError(f"{what}: wrt is empty", help="name at least one value to differentiate by")
    return [leaf.value for leaf in leaves], structure


def _like(wrt: Any, structure: nest.Nest, found: Sequence[Value]) -> Any:
    """Derivatives in the nest of ``wrt``, with the labels of its axes."""
    return nest.unflatten(structure, [with_dims(Tensor(g), dims_of(w)) for g, w in zip(
        found, nest.flatten_varying(wrt)[0], strict=True)])


def _output(y: Any, what: str) -> Value:
    if isinstance(y, (tuple, list, dict)):
        raise GradientError(f"{what}: the cost is a {type(y).__name__} of {len(y)}, not one value",
                            help="name one of them, or add them up; sc.vjp and sc.jacobian take several")
    value = as_tensor(y).value
    if not is_inexact(value.dtype):
        raise GradientError(f"{what}: the value to differentiate is {value.type}; {ONLY}",
                            values=[row(value, "cost")], help="comparisons, argmax and integers have no derivative")
    return value


def _outputs(outputs: Any, what: str) -> tuple[list[Value], nest.Nest]:
    leaves, structure = nest.flatten(outputs)
    return [_output(leaf, what) for leaf in leaves], structure


def _paired(outputs: Any, given: Any, what: str, name: str) -> tuple[list[Value], list[Value]]:
    roots, structure = _outputs(outputs, what)
    seeds = nest.match(structure, given, f"{name}s")
    return roots, [_tangent(s, r, name) for s, r in zip(seeds, roots, strict=True)]


def _scalar(output: Value, holomorphic: bool) -> Value:
    """The cost of ``grad``, which has no axes and is real, or complex by request."""
    if output.ndim:
        raise GradientError(f"grad: the cost is {output.type}, not a scalar", values=[row(output, "cost")],
                            help="sum it (cost.sum()), give cotangent= for a weighted sum, or use sc.jacobian")
    if output.dtype.kind == "c" and not holomorphic:
        raise GradientError(f"grad: the cost is complex ({output.type})", values=[row(output, "cost")],
                            help="take its real part or its abs, give cotangent=, or holomorphic=True if it is that")
    return output


def _tangent(given: Any, like: Value, name: str) -> Value:
    """A tangent or cotangent for ``like``: of its shape (a scalar is repeated) and dtype."""
    t = as_tensor(given)
    if t.dtype.kind == "c" and like.dtype.kind != "c":
        raise GradientError(f"the {name} is {t.value.type}, complex, for a value of type {like.type}",
                            values=[row(like)])
    value = convert(t.value, like.dtype)
    if value.ndim == 0 and like.ndim:
        value = API["broadcast_to"](Tensor(value), Tensor(like).shape).value
    if known_different(value.shape, like.shape):
        raise GradientError(f"the {name} is {value.type}, for a value of type {like.type}", values=[row(like)],
                            help=f"a {name} has the shape of its value")
    return value if value.type is like.type else ensure_shape(value, shape=like.shape)


# --- what is not connected --------------------------------------------------------------------------------------------


def settle(what: str, found: Sequence[Value | None], outputs: Sequence[Value], wrt: Sequence[Value],
           policy: str) -> list[Value]:
    """Derivatives without gaps: zeros where there is no connection, if ``policy`` allows that."""
    if policy not in POLICIES:
        raise GradientError(f"{what}: disconnected={policy!r} is no policy",
                            help="one of " + ", ".join(map(repr, POLICIES)))
    for g, w in zip(found, wrt, strict=True):
        if g is None:
            _report(what, outputs, w, policy)
    return filled(found, wrt)


def _settle_one(what: str, output: Value, w: Value, policy: str) -> None:
    settle(what, [None], [output], [w], policy)


def _report(what: str, outputs: Sequence[Value], w: Value, policy: str) -> None:
    if policy == "zero":
        return
    error = disconnected_error(what, outputs, w)
    if policy == "raise":
        raise error
    warnings.warn(str(error), DisconnectedWarning, stacklevel=5)


def disconnected_error(what: str, outputs: Sequence[Value], w: Value) -> GradientError:
    """The error that shows the path from ``w`` to where its connection with the outputs ends."""
    path = disconnection(outputs, w)
    name = row(w, "wrt")[0]
    end = path[-1][0] if path else w
    if end is w:
        return GradientError(f"{what}: the result is not made of {name}", values=[row(w, "wrt")],
                             help='disconnected="zero" gives zeros; is this the value that the result was built from?')
    rows = [row(w, "wrt"), *[(v.op.name, v.type, lines[0] if lines else first_line(v)) for v, lines in path[1:-1]],
            (f"{end.op.name} (ends here)", end.type, first_line(end))]
    return GradientError(f"{what}: the result depends on {name} only through {end.op.name}, which has no derivative",
                         values=rows, where=location.in_order(location.here()),
                         help='disconnected="zero" gives zeros in place of this error')
