"""``verify_grad``: reverse mode, forward mode and Hessian-vector products against finite differences.

Everything is evaluated in float64 (complex128 for complex points) by the reference evaluator, so what is checked is the
derivative, not a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symc.errors import GradientError, SymcError
from symc.grad import jvp, vjp
from symc.grad.one_op import zeros
from symc.ir.op import lookup
from symc.ir.ops.leaf import array
from symc.ir.reference import run_free
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt import stabilize_values
from symc.tensors import pytree as nest
from symc.tensors.leaves import leaf_of
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import _output

Arrays = list[np.ndarray]
MODES = ("rev", "fwd", "hvp")
#: Of so many elements of an argument the derivative is checked along each alone.
MOST_ELEMENTS = 8


def verify_grad(fn: Callable[..., Any], points: Sequence[Any], modes: Sequence[str] = MODES, *, rtol: float = 1e-5,
                atol: float = 1e-6, eps: float | None = None, seed: int = 0) -> None:
    """Raise GradientError unless derivatives of ``fn`` at ``points`` (one array an argument) agree with differences.

    ``fn`` takes tensors and returns a tensor or a nest of them. Along random directions it compares ``<g, J t>`` from
    "rev" (vjp), "fwd" (jvp) with the finite difference of ``<g, fn>``, and "hvp" with the difference of the gradient.
    The difference is a complex step where ``fn`` is analytic, else a central one of fourth order; ``eps`` is its step.
    Integer points are passed on and not differentiated. States that ``fn`` reads are points as well, those of float64
    are differentiated. Stay away from kinks: there differences mean nothing.

    >>> sc.verify_grad(lambda x: sc.sum(sc.sin(x)), [np.array([0.3, 1.2])])
    """
    for mode in modes:
        if mode not in MODES:
            raise GradientError(f"verify_grad: mode {mode!r} is not known", help="modes: " + ", ".join(MODES))
    arrays = [_wide(p) for p in points]
    traced = _Traced.of(fn, arrays)
    rng = np.random.default_rng(seed)
    directions = [_direction(rng, traced.arrays) for _ in range(3)]
    directions += _unit_directions(traced.arrays)
    for direction in directions:
        second = "hvp" in modes and bool(traced.gradients)
        expected, *steps = traced.differences([traced.cost, *(traced.gradients if second else ())], direction, eps)
        if "rev" in modes:
            _compare("rev", traced.rev(direction), expected, direction, rtol, atol)
        if "fwd" in modes:
            _compare("fwd", traced.fwd(direction), expected, direction, rtol, atol)
        for k, (got, want) in enumerate(zip(traced.hvp(direction) if second else (), steps, strict=True)):
            _compare(f"hvp, argument {k}", got, want, direction, rtol * 10, atol * 10)


def _wide(point: Any) -> np.ndarray:
    a = np.asarray(point)
    return a.astype({"f": np.float64, "c": np.complex128}.get(a.dtype.kind, a.dtype))


def _inner(g: np.ndarray, t: np.ndarray) -> float:
    """real(sum(conj(g) * t)): how much a change t raises what has gradient g."""
    return float(np.sum(np.conj(g) * t).real)


def _direction(rng: np.random.Generator, arrays: Arrays) -> Arrays:
    def draw(a: np.ndarray) -> np.ndarray:
        t = rng.standard_normal(a.shape)
        return t + 1j * rng.standard_normal(a.shape) if a.dtype.kind == "c" else t

    return [draw(a) for a in arrays]


def _unit_directions(arrays: Arrays) -> list[Arrays]:
    """One element at a time, for the first few elements of each argument: a wrong element has nowhere to hide."""
    out = []
    for k, a in enumerate(arrays):
        for i in range(min(a.size, MOST_ELEMENTS)):
            t = [np.zeros_like(b) for b in arrays]
            t[k].reshape(-1)[i] = 1
            out.append(t)
    return out


class _Traced:
    """``fn`` as a graph: ``cost`` is <weights, fn>, a real scalar; ``wrt`` are the leaves with derivatives.

    What is evaluated along a direction is built once: ``tangents`` are leaves for the direction.
    """

    def __init__(self, fn: Callable[..., Any], env: dict[Value, np.ndarray], outputs: list[Value]):
        self.fn, self.fixed, self.outputs = fn, env, outputs
        self.wrt = [v for v in env if v.dtype.char in "dD"]
        self.arrays = [env[w] for w in self.wrt]
        self.tangents = [fresh_input(w.type) for w in self.wrt]
        rng = np.random.default_rng(1)
        weights = _direction(rng, [np.asarray(a) for a in run_free(outputs, env)])
        self.weights = [w.astype(o.dtype) for w, o in zip(weights, outputs, strict=True)]
        self.cost = _weighted(outputs, self.weights)
        (stable,) = stabilize_values([self.cost], self.wrt)
        found = vjp([stable], self.wrt, [array(np.float64(1))])
        self.gradients = [zeros(w.type) if g is None else g for g, w in zip(found, self.wrt, strict=True)]

    @classmethod
    def of(cls, fn: Callable[..., Any], points: Arrays) -> _Traced:
        leaves = [fresh_input(TensorType(p.dtype, p.shape)) for p in points]
        if not any(v.dtype.char in "dD" for v in leaves):
            raise GradientError("verify_grad: no point is a float array", help="give floats for what is differentiated")
        outputs = _trace(fn, leaves)
        return cls(fn, {**dict(zip(leaves, points, strict=True)), **_states(outputs)}, outputs)

    @cached_property
    def moved(self) -> list[Value]:
        """The tangents of the outputs."""
        found = jvp(stabilize_values(self.outputs, self.wrt), self.wrt, self.tangents)
        return [zeros(o.type) if t is None else t for o, t in zip(self.outputs, found, strict=True)]

    @cached_property
    def second(self) -> list[Value]:
        """The tangents of the gradients."""
        found = jvp(self.gradients, self.wrt, self.tangents)
        return [zeros(w.type) if t is None else t for w, t in zip(self.wrt, found, strict=True)]

    @cached_property
    def slopes(self) -> list[np.ndarray]:
        """The gradients at the points."""
        return self.at(self.gradients, self.arrays)

    @cached_property
    def complex(self) -> tuple[list[Value], list[Value]] | None:
        """Leaves and results of fn on complex numbers; None where it does not take them, or has a state, which stays
        what it is."""
        if any(v.dtype.kind == "c" or leaf_of(v).shared for v in (*self.wrt, *self.outputs)):
            return None
        leaves = [fresh_input(v.type.with_dtype("c128")) if v in self.wrt else v for v in self.fixed]
        try:
            results = _trace(self.fn, leaves)
        except SymcError:
            return None
        return None if any(r.dtype.kind != "c" for r in results) else (leaves, results)

    def at(self, roots: Sequence[Value], arrays: Arrays) -> list[np.ndarray]:
        return run_free(roots, {**self.fixed, **dict(zip(self.wrt, arrays, strict=True))})

    def along(self, roots: Sequence[Value], direction: Arrays) -> list[np.ndarray]:
        return run_free(roots, {**self.fixed, **dict(zip(self.tangents, direction, strict=True))})

    def rev(self, direction: Arrays) -> float:
        return sum(_inner(g, t) for g, t in zip(self.slopes, direction, strict=True))

    def fwd(self, direction: Arrays) -> float:
        return sum(_inner(w, t) for w, t in zip(self.weights, self.along(self.moved, direction), strict=True))

    def hvp(self, direction: Arrays) -> list[np.ndarray]:
        return self.along(self.second, direction)

    def differences(self, roots: Sequence[Value], direction: Arrays, eps: float | None) -> list[Any]:
        """The derivatives of ``roots`` along ``direction``, from their values alone. The first is the cost's."""
        h = eps or 1e-3
        ends = [self.at(roots, [a + s * h * t for a, t in zip(self.arrays, direction, strict=True)])
                for s in (1, -1, 2, -2)]
        cost, *others = [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in zip(*ends, strict=True)]
        exact = self._complex_step(direction)
        near = exact is not None and np.allclose(exact, cost, rtol=1e-3, atol=1e-4)
        return [exact if near else cost, *others]

    def _complex_step(self, direction: Arrays) -> float | None:
        """imag(fn(x + i*h*t)) / h, exact to rounding. None where fn does not take complex numbers.

        A function that takes them need not be analytic (abs, conj): the caller compares with the central difference.
        """
        if self.complex is None:
            return None
        h = 1e-30
        leaves, results = self.complex
        moved = dict(zip(self.wrt, direction, strict=True))
        env = {leaf: a + 1j * h * moved[v] if v in moved else a
               for leaf, (v, a) in zip(leaves, self.fixed.items(), strict=True)}
        try:
            found = run_free(results, env)
        except SymcError:
            return None
        return sum(float(np.sum(np.imag(r) * w)) for r, w in zip(found, self.weights, strict=True)) / h


def _trace(fn: Callable[..., Any], leaves: Sequence[Value]) -> list[Value]:
    results, _ = nest.flatten(fn(*[Tensor(v) for v in leaves]))
    return [_output(r, "verify_grad") for r in results]


def _states(outputs: Sequence[Value]) -> dict[Value, np.ndarray]:
    """The states that a function reads, with their arrays."""
    cells = {v: leaf_of(v).shared for v in postorder(outputs) if not v.operands}
    return {v: cell.get(False) for v, cell in cells.items() if cell is not None}


def _weighted(outputs: Sequence[Value], weights: Arrays) -> Value:
    """real(sum(conj(weights) * outputs))."""
    total: Value | None = None
    for o, w in zip(outputs, weights, strict=True):
        term = lookup("sum")(o * array(np.conj(w)), axes=tuple(range(o.ndim)))
        term = lookup("real")(term) if term.dtype.kind == "c" else term
        total = term if total is None else total + term
    if total is None:
        raise GradientError("verify_grad: the function returns nothing")
    return total


def _compare(mode: str, got: Any, want: Any, direction: Arrays, rtol: float, atol: float) -> None:
    got, want = np.asarray(got), np.asarray(want)
    wrong = ~np.isclose(got, want, rtol=rtol, atol=atol * max(1.0, float(np.max(np.abs(want), initial=0))))
    if not wrong.any():
        return
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise GradientError(f"verify_grad: {mode} disagrees with finite differences"
                        + (f" at element {where}" if where else ""),
                        values=[(f"from the graph: {got[where]!s}", None, ""),
                                (f"difference:     {want[where]!s}", None, ""),
                                (f"along {[np.round(t, 4).tolist() for t in direction]!s:.200}", None, "")],
                        help="at a kink neither is wrong: move the points; else a derivative rule is")
