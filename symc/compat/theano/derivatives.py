"""``theano.grad``, ``Rop``, ``Lop`` and ``theano.gradient``, on ``sc.grad``, ``sc.jvp`` and ``sc.vjp``."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import symc as sc
from symc.compat.theano.variable import TensorVariable, lifted, plain, tensor_of, wrap, wrapped
from symc.errors import GradientError

_POLICIES = {"ignore": "zero", "warn": "warn", "raise": "raise"}


class NullType:
    """The type of a derivative that is not defined; as what ``Op.grad`` returns, it is zero."""

    def __init__(self, why_null: str = ""):
        self.why_null = why_null

    def __call__(self, name: str | None = None) -> None:
        return None


DisconnectedType = NullType


def grad_undefined(op: Any, x_pos: int, x: Any, comment: str = "") -> None:
    """Stands in ``Op.grad`` for the derivative by an input that has none."""


grad_not_implemented = grad_undefined


def _constant(values: Any, given: Sequence[Any]) -> Any:
    """Values, with some of what they are made of constant to derivatives."""
    if not given:
        return values
    return sc.substitute(values, [(t, sc.stop_gradient(t)) for t in map(tensor_of, given)])


def grad(cost: Any, wrt: Any, consider_constant: Any = None, disconnected_inputs: str = "raise", add_names: bool = True,
         known_grads: Any = None, return_disconnected: str = "zero", null_gradients: str = "raise") -> Any:
    """The derivative of a scalar by a variable or by a list of them.

    ``consider_constant``: no derivative passes these. ``known_grads``: ``{y: g}``, derivatives of a further cost by y.
    """
    many = isinstance(wrt, list | tuple)
    leaves = [tensor_of(w) for w in (wrt if many else [wrt])]
    if disconnected_inputs not in _POLICIES:
        raise GradientError(f"grad: disconnected_inputs={disconnected_inputs!r} is none of raise, warn, ignore")
    known = [(tensor_of(k), tensor_of(g)) for k, g in (known_grads or {}).items()]
    roots = [*([] if cost is None else [tensor_of(cost)]), *[k for k, _ in known]]
    constant = [c for c in (consider_constant or [])]
    below = _constant([roots, leaves], constant) if constant else [roots, leaves]
    outputs, inside = below
    if known and cost is not None:
        outputs[0] = sc.substitute(outputs[0], [(k, sc.stop_gradient(k)) for k, _ in known])
    seeds = [*([] if cost is None else [None]), *[g for _, g in known]]
    policy = _POLICIES[disconnected_inputs]
    if not known:
        found = sc.grad(outputs[0], list(inside), disconnected=policy)
    else:
        seeds = [sc.ones((), outputs[0].dtype) if s is None else s for s in seeds]
        found = sc.vjp(list(outputs), list(inside), seeds, disconnected=policy)
    out = wrapped(found)
    return tuple(out) if isinstance(wrt, tuple) else out if many else out[0]


def jacobian(expression: Any, wrt: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """The derivatives of each element of a vector."""
    y = _constant(tensor_of(expression), consider_constant or [])
    return wrapped(sc.jacobian(y, plain(wrt), disconnected=_POLICIES[disconnected_inputs]))


def hessian(cost: Any, wrt: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """The second derivatives of a scalar; of a list, those of each variable by itself."""
    y = _constant(tensor_of(cost), consider_constant or [])
    policy = _POLICIES[disconnected_inputs]
    if isinstance(wrt, list | tuple):
        return [wrap(sc.hessian(y, tensor_of(w), disconnected=policy)) for w in wrt]
    return wrap(sc.hessian(y, tensor_of(wrt), disconnected=policy))


def Rop(f: Any, wrt: Any, eval_points: Any) -> Any:
    """The Jacobian times vectors."""
    many = isinstance(wrt, list | tuple)
    pairs = [(tensor_of(w), tensor_of(v)) for w, v in zip(wrt if many else [wrt], eval_points if many else
                                                          [eval_points], strict=True)]
    return wrapped(sc.jvp(plain(f), [w for w, _ in pairs], [v for _, v in pairs]))


def Lop(f: Any, wrt: Any, eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """Vectors times the Jacobian."""
    outputs = list(plain(f)) if isinstance(f, list | tuple) else [tensor_of(f)]
    seeds = list(plain(eval_points)) if isinstance(eval_points, list | tuple) else [tensor_of(eval_points)]
    y = _constant(outputs, consider_constant or [])
    return wrapped(sc.vjp(y, plain(wrt), seeds, disconnected=_POLICIES[disconnected_inputs]))


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> TensorVariable:
    return wrap(sc.grad_clip(tensor_of(x), lower_bound, upper_bound))


def verify_grad(fun: Callable[..., Any], pt: Sequence[Any], n_tests: int = 2, rng: Any = None, eps: Any = None,
                **options: Any) -> None:
    """Compares derivatives with finite differences, at a point."""
    sc.verify_grad(lambda *xs: plain(fun(*map(wrap, xs))), [tuple(pt)])


DERIVATIVES = {
    "disconnected_grad": lifted(sc.stop_gradient), "zero_grad": lifted(sc.zero_grad), "consider_constant":
    lifted(sc.stop_gradient), "grad_scale": lambda x, multiplier: wrap(sc.grad_scale(tensor_of(x), multiplier)),
    "DisconnectedInputError": GradientError, "NullTypeGradError": GradientError,
    **{f.__name__: f for f in (grad, jacobian, hessian, Rop, Lop, grad_clip, verify_grad, grad_undefined,
                               grad_not_implemented, NullType)}, "DisconnectedType": DisconnectedType,
}  # fmt: skip
