"""``theano.scan`` and what is made of it, on ``sc.scan``.

The user's function is called once, on inputs that stand for rows and carries. What it returns is put into the loop by
substitution; so are states that it updates, among them those of random numbers: each becomes a carry of the loop.
"""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import symc as sc
from symc.compat.theano.settings import float_dtype
from symc.compat.theano.variable import TensorVariable, next_value, plain, states_in, tensor_of, wrap
from symc.errors import InputError


class OrderedUpdates(OrderedDict):  # type: ignore[type-arg]
    """Updates of states, which can be added to others."""

    def __add__(self, other: Any) -> OrderedUpdates:
        out = OrderedUpdates(self)
        out.update(other)
        return out


class until:
    """The last thing that the function of a scan returns: the loop ends after the step where the condition holds."""

    def __init__(self, condition: Any):
        self.condition = condition


def _listed(items: Any) -> list[Any]:
    return [] if items is None else list(items) if isinstance(items, list | tuple) else [items]


def _entry(item: Any, taps: Any) -> tuple[Any, Any]:
    """A sequence or a state with its taps."""
    if not isinstance(item, Mapping):
        return item, taps
    given = item.get("taps", taps)
    return item.get("input", item.get("initial")), ([given] if isinstance(given, int) else given)


class _Loop:
    """The arguments of a scan as those of ``sc.scan``."""

    def __init__(self, sequences: Any, outputs_info: Any, n_steps: Any, go_backwards: bool):
        self.states = [_entry(s, [-1]) for s in _listed(outputs_info)]
        rows = [part for item in _listed(sequences) for part in _parts(*_entry(item, [0]))]
        if go_backwards:
            rows = [x[::-1] for x in rows]
        self.rows, self.length = _of_one_length(rows, None if n_steps is None else plain(n_steps))

    def placeholders(self) -> tuple[list[sc.Tensor], list[Any]]:
        """Inputs that stand for the rows and for the carries; a state with taps has several."""
        rows = [sc.input("row", x.dtype, shape=x.shape[1:]) for x in self.rows]
        carries: list[Any] = []
        self.init: list[Any] = []
        for start, taps in self.states:
            if start is None:
                continue
            t = tensor_of(start)
            if t.weak:
                t = sc.asarray(t, float_dtype() if t.dtype.kind == "f" else None)
            if list(taps) == [-1]:
                self.init.append(t)
                carries.append(sc.input("carry", t.dtype, shape=t.shape))
            else:
                self.init.append(sc.taps(t[:-min(taps)], tuple(taps)))
                carries.append(tuple(sc.input("carry", t.dtype, shape=t.shape[1:]) for _ in taps))
        return rows, carries


def _parts(given: Any, taps: Any) -> list[sc.Tensor]:
    """The rows that each tap of a sequence sees."""
    x, low, high = tensor_of(given), min(*taps, 0), max(*taps, 0)
    return [x if low == high == 0 else x[k - low: -(high - k) if k < high else None] for k in taps]


def _of_one_length(rows: list[sc.Tensor], n: Any) -> tuple[list[sc.Tensor], Any]:
    """The sequences as far as the loop goes: ``n`` steps, or to the end of the shortest."""
    sizes = [x.value.shape[0] for x in rows]
    if n is None:
        if len(set(map(str, sizes))) < 2:
            return rows, None
        for k, x in enumerate(rows):
            n = sc.asarray(x.shape[0]) if k == 0 else sc.minimum(n, x.shape[0])
    have = str(getattr(n, "dim", n))
    return [x if str(size) == have else x[:n] for x, size in zip(rows, sizes, strict=True)], n


def _returned(found: Any) -> tuple[list[Any], OrderedUpdates, Any]:
    """Outputs, updates and condition, in the forms in which functions return them."""
    outputs, updates, condition = [], OrderedUpdates(), None
    parts = found if isinstance(found, tuple) else (found,)
    grouped = any(isinstance(p, Mapping | until | list) for p in parts) and not isinstance(found, list)
    for part in parts if grouped else (found,):
        if isinstance(part, until):
            condition = part.condition
        elif isinstance(part, Mapping) or isinstance(part, list | tuple) and part and all(_is_update(p) for p in part):
            updates.update(part)
        else:
            outputs += _listed(part)
    return outputs, updates, condition


def _is_update(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) == 2 and hasattr(item[0], "get_value")


def scan(fn: Callable[..., Any], sequences: Any = None, outputs_info: Any = None, non_sequences: Any = None,
         n_steps: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None,
         name: str | None = None, profile: Any = False, allow_gc: Any = None, strict: bool = False,
         return_list: bool = False) -> tuple[Any, OrderedUpdates]:
    """Outputs of all steps of a loop, and the updates of the states that its function changes."""
    loop = _Loop(sequences, outputs_info, n_steps, go_backwards)
    if not loop.rows and loop.length is None:
        raise InputError("scan: without sequences the number of steps must be given", help="n_steps=")
    rows, carries = loop.placeholders()
    seen = [wrap(x) for x in [*rows, *[c for group in carries for c in (group if isinstance(group, tuple)
                                                                        else (group,))]]]
    outputs, updates, condition = _returned(fn(*seen, *_listed(non_sequences)))
    outs = [tensor_of(o) for o in outputs]
    fed = [k for k, (start, _) in enumerate(loop.states) if start is not None]
    if loop.states and len(loop.states) != len(outs):
        raise InputError(f"scan: outputs_info has {len(loop.states)} entries, and the function returns {len(outs)} "
                         "outputs", help="None stands for an output that is not fed back")
    changed = _changed_states([*outs, *updates.values()], updates)
    new = [*[outs[k] for k in fed], *[tensor_of(v) for v in changed.values()]]
    stop = None if condition is None else tensor_of(condition)
    found = [*new, *outs, *([] if stop is None else [stop])]

    def step(state: Any, x: Any) -> Any:
        pairs = list(zip(rows, x, strict=True))
        for stands, value in zip([*carries, *changed], state, strict=True):
            pairs += list(zip(stands, value, strict=True)) if isinstance(stands, tuple) else [(stands, value)]
        out = sc.substitute(found, pairs)
        kept = [o.astype(s.dtype) if k >= len(fed) else o
                for k, (o, s) in enumerate(zip(out, [*new[:len(fed)], *changed], strict=False))]
        return kept, out[len(new):]

    final, ys = _run(step, [*loop.init, *changed], loop, truncate_gradient, stop is not None)
    stacked = [wrap(y) for y in (ys if stop is None else ys[:-1])]
    done = OrderedUpdates(zip([wrap(s) for s in changed], [wrap(v) for v in final[len(fed):]], strict=True))
    many = return_list or len(stacked) > 1
    return (stacked if many else stacked[0] if stacked else None), done


def _changed_states(values: list[Any], given: Mapping[Any, Any]) -> dict[sc.Tensor, Any]:
    """States that a step changes, with their new values: those of its updates, and those that change by default."""
    changed = {k.tensor: tensor_of(v) for k, v in given.items()}
    known = {k.value for k in changed}
    for state in states_in(values):
        after = next_value(state)
        if after is not None and state.value not in known:
            changed[state] = after
    return changed


def _run(step: Any, init: Any, loop: _Loop, last: int, ends: bool) -> tuple[Any, Any]:
    """The loop, or with ``last`` > 0 two of them: no derivative goes into the first, which leaves so many steps."""
    until_ = (lambda carry, y: y[-1]) if ends else None
    if last < 0:
        return sc.scan(step, init, loop.rows, loop.length, until=until_)
    n = loop.length if loop.length is not None else loop.rows[0].shape[0]
    early = sc.maximum(sc.asarray(n) - last, 0)
    middle, before = sc.scan(step, init, [x[:early] for x in loop.rows], early)
    middle, before = sc.stop_gradient((middle, before))
    middle = [sc.taps(m, i.offsets) if hasattr(i, "offsets") else m for m, i in zip(middle, init, strict=True)]
    final, after = sc.scan(step, middle, [x[early:] for x in loop.rows], sc.asarray(n) - early, until=until_)
    return final, [sc.concatenate([a, b]) for a, b in zip(before, after, strict=True)]


def map_(fn: Callable[..., Any], sequences: Any, non_sequences: Any = None, truncate_gradient: int = -1,
        go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[Any, OrderedUpdates]:
    return scan(fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards)


def reduce(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None,
           go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[Any, OrderedUpdates]:
    """The last value of each output."""
    found, updates = scan(fn, sequences, outputs_info, non_sequences, go_backwards=go_backwards)
    return ([f[-1] for f in found] if isinstance(found, list) else found[-1]), updates


def foldl(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None,
          name: str | None = None) -> tuple[Any, OrderedUpdates]:
    return reduce(fn, sequences, outputs_info, non_sequences)


def foldr(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None,
          name: str | None = None) -> tuple[Any, OrderedUpdates]:
    return reduce(fn, sequences, outputs_info, non_sequences, go_backwards=True)


def ifelse(condition: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """One of two values, or of two lists of values, by one condition."""
    many = isinstance(then_branch, list | tuple)
    yes, no = [tensor_of(b) for b in _listed(then_branch)], [tensor_of(b) for b in _listed(else_branch)]
    out = [wrap(t) for t in sc.cond(tensor_of(condition) != 0, lambda: yes, lambda: no)]
    return out if many else out[0]


__all__ = ["OrderedUpdates", "TensorVariable", "foldl", "foldr", "ifelse", "reduce", "scan", "until"]
