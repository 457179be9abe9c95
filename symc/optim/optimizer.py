"""Optimizers: from gradients to what parameters become, as the ``updates`` of a compiled function.

``opt = sc.optim.adam(1e-3)``; ``sc.compile(loss, updates=opt.updates(loss, P))``. What an optimizer keeps is in
``opt.states``, a collection like that of the parameters; ``sc.save_params`` writes both.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import GradientError, InputError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.traverse import postorder, replace
from symc.numpy_api.promotion import rows as described
from symc.optim.rules import Now, Rule
from symc.optim.sparse import SparseRows, gathers, index_of
from symc.params.collection import LOOKUP, Params
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.state import SharedVariable
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import grad

Gradient = Tensor | SparseRows
MODES = ("lazy", "exact", "dense")


class Updates(dict[SharedVariable, Tensor]):
    """Updates of states: for ``sc.compile(u.loss, updates=u)``.

    ``loss`` is the loss that was given, with tables as they are where ``sparse="exact"`` keeps them behind.
    ``optimizer``, ``gradients`` (by parameter) and ``made`` say of what they were made, for who joins the gradients of
    several processes.
    """

    loss: Tensor
    optimizer: Optimizer
    gradients: dict[SharedVariable, Gradient]
    made: dict[SharedVariable, Tensor]


class Transform:
    """A change of gradients before the optimizer sees them."""

    #: It is right for rows of a table that were not read, too: their gradient stays zero.
    keeps_zeros = True

    def apply(self, grads: list[Gradient], params: list[SharedVariable]) -> list[Gradient]:
        """The gradients to use instead. Those of tables are summed."""
        raise NotImplementedError


class Optimizer:
    """A rule for each parameter, with what goes before it (clipping) and after it (averages).

    ``sparse`` is about tables (``P.lookup``) of which a loss only reads rows. "lazy": those rows change, and what is
    kept of them, and no others (as in DyNet). "exact": as if all rows had changed, to rounding, at the cost of those
    rows: what a row has missed is made up when it is read again. "dense": all rows change in every step.
    """

    def __init__(self, rule: Rule, rate: Any, sparse: str = "lazy"):
        if sparse not in MODES:
            raise InputError(f"sc.optim.{rule.name}: sparse={sparse!r}", help=", ".join(MODES))
        if isinstance(rate, int | float) and not rate >= 0:
            raise InputError(f"sc.optim.{rule.name}: the learning rate is {rate}", help="it must not be negative")
        self.rule, self.rate, self.sparse = rule, rate, sparse
        self.before: list[Transform] = []
        self.after: list[Any] = []
        self.states = Params().sub(rule.name)
        self._names: dict[SharedVariable, str] = {}

    def __repr__(self) -> str:
        return f"sc.optim.{self.rule.name}({self.rate}, sparse={self.sparse!r})"

    # --- for users ----------------------------------------------------------------------------------------------------

    @located
    def updates(self, loss: Any, params: Any, *, disconnected: str = "raise") -> Updates:
        """Updates of ``params`` by a step down the gradient of ``loss``, a collection or a nest of states.

        For a collection with what its layers want their states to become, ``params.updates``. ``disconnected="skip"``
        leaves out parameters that the loss does not depend on.
        """
        loss, wanted = as_tensor(loss), states_of(params)
        if disconnected not in ("raise", "skip"):
            raise InputError(f"disconnected={disconnected!r}", help='"raise" or "skip"')
        if disconnected == "skip":
            there = set(postorder([loss.value]))
            wanted = [p for p in wanted if p.value in there]
        kind = params.kind if isinstance(params, Params) else lambda p: None
        tables = {p: found for p in wanted if kind(p) == LOOKUP and self.sparse != "dense"
                  and self.rule.elementwise and (found := gathers(loss, p))}
        loss, read, current = self._read(loss, tables)
        whole = [p for p in wanted if p not in tables]
        grads = iter(grad(loss, [*whole, *[g for found in read.values() for g in found]]))
        gradients: dict[SharedVariable, Gradient] = {p: next(grads) for p in whole}
        for p, found in read.items():
            index = [xp.reshape(index_of(g), (-1,)) for g in tables[p]]
            values = [xp.reshape(next(grads), (-1, *p.shape[1:])) for _ in found]
            gradients[p] = rows = SparseRows(_joined(index), _joined(values))
            rows.current = current.get(p)
        out = self.apply([gradients[p] for p in wanted], wanted)
        if isinstance(params, Params):
            out.update(params.updates)
        out.loss = loss
        return out

    @located
    def update_subset(self, loss: Any, params: Any, only: Any) -> Updates:
        """``updates`` of some parameters alone. ``only``: patterns of paths such as "decoder/*", or states."""
        chosen = [only] if isinstance(only, str | SharedVariable) else list(only)
        named = params.trained() if isinstance(params, Params) else {p.name: p for p in states_of(params)}
        picked: list[SharedVariable] = []
        for one in chosen:
            found = [p for path, p in named.items()
                     if (p is one if isinstance(one, Tensor) else fnmatch.fnmatchcase(path, one))]
            if not found:
                raise InputError(f"update_subset: no parameter is {one}", help=", ".join(named))
            picked += [p for p in found if not any(p is q for q in picked)]
        tables = [p for p in picked if isinstance(params, Params) and params.kind(p) == LOOKUP]
        return self.updates(loss, _Chosen(picked, tables))

    @located
    def apply(self, grads: Any, params: Any) -> Updates:
        """Updates of ``params`` by a step along given gradients, with what the optimizer itself keeps.

        ``grads``: one an entry of ``params``, symbolic values or ``SparseRows`` (of a table, under ``sparse="exact"``
        of ``opt.read(table, rows)``).
        """
        wanted = states_of(params)
        many = grads.values() if isinstance(grads, Mapping) else grads
        given = [many] if isinstance(many, Tensor | SparseRows) else list(many)
        if len(given) != len(wanted):
            raise InputError(f"{len(given)} gradients are given for {len(wanted)} parameters")
        gradients = [_fitting(g, p) for g, p in zip(given, wanted, strict=True)]
        out = Updates()
        out.optimizer, out.gradients = self, dict(zip(wanted, gradients, strict=True))
        if self.before or self.sparse == "exact" or not self.rule.additive:
            gradients = [g.summed(p.value.shape[0]) if isinstance(g, SparseRows) else g  # type: ignore[arg-type]
                         for g, p in zip(gradients, wanted, strict=True)]
        for transform in self.before:
            gradients = transform.apply(gradients, wanted)
        out[self._steps()] = steps = self._steps() + 1
        now = Now(xp.astype(steps, np.float64), self.rate_at)
        for p, g in zip(wanted, gradients, strict=True):
            if isinstance(g, SparseRows):
                self._sparse_step(out, p, g, now)
            else:
                self._dense_step(out, p, g, now)
        for average in self.after:
            average.update(out, wanted)
        out.made = dict(out)
        return out

    @located
    def read(self, table: SharedVariable, rows: Any) -> Tensor:
        """``table[rows]``, up to date: under ``sparse="exact"`` with what the rows have missed since they were read."""
        index = as_tensor(rows)
        if self.sparse != "exact":
            return table[index]
        return xp.reshape(self._caught_up(table, xp.reshape(index, (-1,)))["p"], (*index.shape, *table.shape[1:]))

    @located
    def flush(self, params: Any) -> Updates:
        """Updates that bring all rows of tables up to date under ``sparse="exact"``: before evaluation, or before
        saving for others. ``sc.compile([], updates=opt.flush(P))()``."""
        out = Updates()
        for p in states_of(params):
            if p in self._names and f"{self._names[p]}/last" in self.states:
                current = self._caught_up(p, xp.arange(p.shape[0]))
                for name, state in {"p": p, **self._slots(p)}.items():
                    out[state] = current[name]
                out[self._last(p)] = xp.zeros(p.shape[:1], np.int64) + self._steps()
        return out

    def rate_at(self, steps: Tensor) -> Tensor:
        """The learning rate after so many steps, float64."""
        if callable(self.rate) and not isinstance(self.rate, Tensor):
            return as_tensor(self.rate(steps))
        return as_tensor(self.rate)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _dense_step(self, out: Updates, p: SharedVariable, g: Tensor, now: Now) -> None:
        slots = self._slots(p)
        new, kept = self.rule.step(p, g, dict(slots), now)
        out[p] = xp.astype(new, p.dtype)
        for name, state in slots.items():
            out[state] = xp.astype(kept[name], p.dtype)

    def _sparse_step(self, out: Updates, p: SharedVariable, g: SparseRows, now: Now) -> None:
        """New rows and slots where rows were read. Of equal rows each writes the same, so it does not matter which."""
        if not self.rule.elementwise:
            raise InputError(f"sc.optim.{self.rule.name} changes a parameter as a whole, and rows of one are given",
                             help="sparse='dense'")
        if g.first is None:
            out[p] = p.at[g.rows].add(self.rule.step(xp.zeros((), p.dtype), g.values, {}, now)[0])
            return
        current = g.current or self._caught_up(p, g.rows)
        slots = self._slots(p)
        new, kept = self.rule.step(current["p"], g.values, {name: current[name] for name in slots}, now)
        out[p] = p.at[g.rows].set(xp.astype(new, p.dtype))
        for name, state in slots.items():
            out[state] = state.at[g.rows].set(xp.astype(kept[name], p.dtype))
        if self.sparse == "exact":
            out[self._last(p)] = self._last(p).at[g.rows].set(self._steps() + 1)

    def _caught_up(self, p: SharedVariable, rows: Tensor) -> dict[str, Tensor]:
        """Rows of a table and of its slots; under ``sparse="exact"`` after all steps that were made without them."""
        current = {name: state[rows] for name, state in {"p": p, **self._slots(p)}.items()}
        if self.sparse != "exact":
            return current
        for transform in self.before:
            if not transform.keeps_zeros:
                raise InputError(f"sparse='exact' and {transform!r}: rows that are not read would change, too",
                                 help="sc.optim.adamw, or sparse='dense'")
        last, steps = self._last(p)[rows], self._steps()
        # a row that was never read has nothing to make up, unless it decays
        done = xp.maximum(last, 0) if self.rule.decays else xp.where(last < 0, steps, last)
        fixed = not (callable(self.rate) or isinstance(self.rate, Tensor))
        slots = {name: x for name, x in current.items() if name != "p"}
        found, slots = self.rule.idle(current["p"], slots, done, as_tensor(steps), self.rate_at, fixed)
        return {"p": found, **slots}

    def _read(self, loss: Tensor, tables: Mapping[SharedVariable, list[Tensor]]) -> tuple[
            Tensor, Mapping[SharedVariable, list[Tensor]], dict[SharedVariable, dict[str, Tensor]]]:
        """The loss on rows that are up to date, these rows as it reads them, and all that is kept of them."""
        if self.sparse != "exact":
            return loss, tables, {}
        read: dict[SharedVariable, list[Tensor]] = {}
        current, new = {}, {}
        for p, found in tables.items():
            current[p] = self._caught_up(p, _joined([xp.reshape(index_of(g), (-1,)) for g in found]))
            at, read[p] = 0, []
            for g in found:
                n = index_of(g).size
                rows = xp.reshape(current[p]["p"][at : at + n], g.shape)
                read[p].append(rows)
                new[g.value] = rows.value
                at = at + n
        return Tensor(replace([loss.value], new)[0]), read, current

    # --- what is kept -------------------------------------------------------------------------------------------------

    def _steps(self) -> SharedVariable:
        return self.states.state("steps", (), 0, "int64")

    def _name(self, p: SharedVariable) -> str:
        """The name under which things are kept of a parameter: its own, and a number where it is not the only one."""
        if p not in self._names:
            base, taken = p.name or "parameter", set(self._names.values())
            names = [base, *[f"{base}_{k + 1}" for k in range(len(taken))]]
            self._names[p] = next(n for n in names if n not in taken)
        return self._names[p]

    def _slots(self, p: SharedVariable) -> dict[str, SharedVariable]:
        part = self.states.sub(self._name(p))
        return {name: part.state(name, _fixed(p), self.rule.start, p.dtype) for name in self.rule.slots}

    def _last(self, p: SharedVariable) -> SharedVariable:
        return self.states.sub(self._name(p)).state("last", _fixed(p)[:1], -1, "int64")


class _Chosen(Params):
    """Some states of a collection, as one."""

    def __init__(self, states: list[SharedVariable], tables: list[SharedVariable]):
        super().__init__()
        for k, p in enumerate(states):
            self._store.states[str(k)] = p
            self._store.kinds[p] = LOOKUP if any(p is t for t in tables) else "weight"


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else xp.concatenate(parts)


def _fixed(p: SharedVariable) -> tuple[int, ...]:
    return p.get_value(borrow=False).shape if any(not isinstance(n, int) for n in p.value.shape) else p.value.shape  # type: ignore[return-value]


def states_of(params: Any) -> list[SharedVariable]:
    """The states that are trained: of a collection, or in a nest. Raises InputError for anything else."""
    if isinstance(params, Params):
        return list(params.trained().values())
    if isinstance(params, SharedVariable):
        return [params]
    found: list[SharedVariable] = []
    for p in params.values() if isinstance(params, Mapping) else params:
        found += states_of(p) if isinstance(p, Params | Mapping | list | tuple | SharedVariable) else [_refused(p)]
    return found


def _refused(p: Any) -> Any:
    raise InputError(f"a parameter is a state, not {type(p).__name__}",
                     values=[p.describe()] if isinstance(p, Tensor) else (), help="sc.shared(value), or P.weight(...)")


def _fitting(g: Any, p: SharedVariable) -> Gradient:
    """The gradient in the dtype of its parameter. Raises ShapeError or GradientError where it is not one of it."""
    if p.dtype.kind != "f":
        raise GradientError(f"{p.name} is no parameter: it has no floats", values=[p.describe()])
    if isinstance(g, SparseRows):
        have, want = g.values, p.shape[1:]
        sizes = have.value.shape[1:]
    else:
        have, want = as_tensor(g), p.shape
        g, sizes = have, have.value.shape
    shape = p.value.shape[1:] if isinstance(g, SparseRows) else p.value.shape
    if len(sizes) != len(want) or any(known_equal(a, b) is False for a, b in zip(sizes, shape, strict=True)):
        raise ShapeError(f"the gradient of {p.name or 'a parameter'} has another shape than it",
                         values=described([p, have]))
    return g if have.dtype == p.dtype else _cast(g, p)


def _cast(g: Gradient, p: SharedVariable) -> Gradient:
    convert: Callable[[Tensor], Tensor] = lambda x: xp.astype(x, p.dtype)
    return g.changed(convert) if isinstance(g, SparseRows) else convert(g)
