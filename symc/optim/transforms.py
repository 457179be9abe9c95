"""Transforms before and after a rule: clipping, weight decay, averages; and ``chain``, which puts them together."""

from __future__ import annotations

import copy
from typing import Any

from symc import numpy_api as xp
from symc.errors import InputError
from symc.optim.optimizer import Gradient, Optimizer, Transform, Updates
from symc.optim.sparse import SparseRows
from symc.params.collection import Params
from symc.tensors.public import located
from symc.tensors.state import SharedVariable
from symc.tensors.tensor import Tensor


def _each(g: Gradient, f: Any) -> Gradient:
    return g.changed(f) if isinstance(g, SparseRows) else f(g)


class _Bounded(Transform):
    """A transform that keeps something of the gradients within a positive bound."""

    def __init__(self, bound: float):
        if not bound > 0:
            raise InputError(f"sc.optim.{type(self).__name__}: the bound is {bound}", help="a positive number")
        self.bound = bound

    def __repr__(self) -> str:
        return f"sc.optim.{type(self).__name__}({self.bound})"


class clip(_Bounded):
    """Every number of the gradients between -bound and bound."""

    def apply(self, grads: list[Gradient], params: list[SharedVariable]) -> list[Gradient]:
        return [_each(g, lambda x: xp.clip(x, -self.bound, self.bound)) for g in grads]


class clip_by_global_norm(_Bounded):
    """All gradients scaled alike, so that together they are no longer than ``bound``."""

    def apply(self, grads: list[Gradient], params: list[SharedVariable]) -> list[Gradient]:
        norm = global_norm(grads)
        scale = self.bound / xp.maximum(norm, self.bound)
        return [_each(g, lambda x: x * xp.astype(scale, x.dtype)) for g in grads]


@located
def global_norm(grads: Any) -> Tensor:
    """The length of all gradients as one vector."""
    squares = [g.squares() if isinstance(g, SparseRows) else xp.sum(g * g) for g in grads]
    total = squares[0]
    for one in squares[1:]:
        total = total + one
    return xp.sqrt(total)


class weight_decay(Transform):
    """``decay`` times the parameter added to its gradient (a penalty of half its square).

    ``only``: a function of a state that says which, for instance ``lambda p: p.ndim > 1``. For Adam see ``adamw``.
    """

    keeps_zeros = False

    def __init__(self, decay: float, only: Any = None):
        self.decay, self.only = decay, only

    def __repr__(self) -> str:
        return f"sc.optim.weight_decay({self.decay})"

    def apply(self, grads: list[Gradient], params: list[SharedVariable]) -> list[Gradient]:
        return [self._one(g, p) if self.only is None or self.only(p) else g for g, p in zip(grads, params, strict=True)]

    def _one(self, g: Gradient, p: SharedVariable) -> Gradient:
        if isinstance(g, SparseRows):
            rows = g.rows
            return g.changed(lambda x: x + self.decay * p[rows])
        return g + self.decay * p


class ema:
    """Exponential moving averages of parameters: a = decay a + (1 - decay) p after every step, from the first p on.

    ``average = sc.optim.ema(0.999)``; ``sc.optim.chain(adam, average)``; after ``updates`` the averages are
    ``average.states``, and ``sc.compile(y, [x], givens=average.givens())`` computes with them.
    """

    def __init__(self, decay: float):
        if not 0 <= decay <= 1:
            raise InputError(f"sc.optim.ema: the decay is {decay}", help="between 0 and 1, such as 0.999")
        self.decay = decay
        self.states = Params().sub("ema")  #: in a chain, those of the optimizer, so that they are saved with it
        self._of: dict[SharedVariable, SharedVariable] = {}

    def update(self, out: Updates, params: list[SharedVariable]) -> None:
        """Add what the averages become."""
        for k, p in enumerate(params):
            if p not in self._of:
                name = p.name if p.name and p.name not in self.states else f"{p.name or 'parameter'}_{k}"
                self._of[p] = self.states.state(name, p.value.shape, p.get_value(), p.dtype)
            out[self._of[p]] = self.decay * self._of[p] + (1 - self.decay) * out[p]

    def givens(self) -> dict[Tensor, Tensor]:
        """The averages in place of the parameters."""
        return {p: average for p, average in self._of.items()}


def chain(*parts: Any) -> Optimizer:
    """One optimizer made of transforms of gradients, an optimizer and averages, in this order."""
    rules = [k for k, part in enumerate(parts) if isinstance(part, Optimizer)]
    if len(rules) != 1:
        raise InputError(f"sc.optim.chain: {len(rules)} optimizers are given, not one",
                         help="sc.optim.chain(sc.optim.clip_by_global_norm(1.0), sc.optim.adam(1e-3))")
    before, after = parts[: rules[0]], parts[rules[0] + 1 :]
    for kind, some in ((Transform, before), (ema, after)):
        for part in some:
            if not isinstance(part, kind):
                raise InputError(f"sc.optim.chain: {part!r} stands on the wrong side of the optimizer",
                                 help="clip and weight_decay before it, ema after it")
    out = copy.copy(parts[rules[0]])  # with the same states: it is the same optimizer
    out.before, out.after = [*before, *out.before], [*out.after, *after]
    for k, average in enumerate(after):
        average.states = out.states.sub(f"ema{k}" if k else "ema")
    return out


__all__ = ["chain", "clip", "clip_by_global_norm", "ema", "global_norm", "weight_decay"]
