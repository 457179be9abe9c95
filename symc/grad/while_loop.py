"""Derivatives of ``while``.

Forward mode carries tangents beside the carries. Reverse mode runs the steps backwards, from the number of steps that
the loop took, and needs the carry before every step:

* with ``max_steps`` the loop runs again and writes what the backward pass reads (``residuals``) into arrays of
  ``max_steps`` rows: one step again and one backward step for every step, memory for ``max_steps`` steps.
* without, memory must not depend on the number of steps. The carry is kept at the begin of every one of at most SLOTS
  segments, and, while a segment is differentiated, at SLOTS places in it. Up to SLOTS**2 = 4,096 steps every step runs
  three times (the loop, to the begin of segments, inside of a segment) and once backwards. Of longer loops, n steps,
  every place stands for m = n / SLOTS**2 steps, each of which is reached again from that place: m / 2 steps more for
  every step. Memory is that of 2 * SLOTS carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.grad.accumulate import add_to
from symc.grad.forward import jvp
from symc.grad.masks import selects
from symc.grad.residuals import read_again
from symc.grad.reverse import arrivals
from symc.grad.scan import active_carries, carries_needed, moving, or_zeros
from symc.ir.bodies import make_while
from symc.ir.closure_scope import ClosureScope, open_quietly, substitute
from symc.ir.dim import Size
from symc.ir.ops.arithmetic import floordiv, maximum, minimum
from symc.ir.ops.compare import ge, lt
from symc.ir.ops.dynamic_slice import dynamic_slice, dynamic_update_slice
from symc.ir.ops.index import zeros_of
from symc.ir.ops.kernel import results_of
from symc.ir.ops.leaf import scalar
from symc.ir.ops.logic import where
from symc.ir.ops.shape import reshape
from symc.ir.record import dataclass
from symc.ir.traverse import dependent, postorder, region_params
from symc.ir.value import Value, fresh_input

Maybe = Value | None
#: How many carries of a loop without ``max_steps`` are kept on each of two levels.
SLOTS = 64


class Opened:
    """A while loop taken apart, in a scope of its own."""

    def __init__(self, v: Value, scope: ClosureScope):
        self.v, self.scope = v, scope
        self.carry: int = v.attrs["carry"]
        self.max_steps: Size | None = v.attrs["max_steps"]
        self.operands = scope.leaves(v.operands)
        self.captured = self.operands[self.carry :]
        self.carries = [fresh_input(p.type) for p in region_params(v.regions[1])[: self.carry]]
        self.leaves = [*self.carries, *self.captured]
        (self.condition,) = open_quietly(v, 0, self.leaves)
        self.results = open_quietly(v, 1, self.leaves)


# --- forward mode -----------------------------------------------------------------------------------------------------


def while_jvp(v: Value, tangents: Sequence[Maybe]) -> list[Maybe]:
    """The tangents of all results: of one loop, in which carries move along."""
    scope = ClosureScope()
    w = Opened(v, scope)
    given = [None if t is None else scope.enter(t) for t in tangents]
    moves = sorted(moving(v, {k for k, t in enumerate(given) if t is not None}))
    leaves = {k: fresh_input(w.leaves[k].type) for k in moves}
    found = jvp(w.results, w.leaves, [*[leaves.get(k) for k in range(w.carry)], *given[w.carry :]])
    starts = [*w.operands[: w.carry], *[or_zeros(given[k], w.leaves[k]) for k in moves]]
    new = [*w.results, *[or_zeros(found[k], w.leaves[k]) for k in moves]]
    out = make_while(starts, w.max_steps, [*w.carries, *leaves.values()], w.condition, new)
    made = dict(zip(moves, results_of(out)[w.carry : -1], strict=True))
    return scope.leave([made.get(k) for k in range(w.carry + 1)])


# --- reverse mode -----------------------------------------------------------------------------------------------------


@dataclass
class Body:
    """One backward step, on the leaves of a forward step and of cotangents.

    ``state``: leaves of the cotangents of carries, then of sums of the cotangents of captured values; ``new``: what
    they are a step before. ``carries`` and ``captured`` say which.
    """

    carries: list[int]
    captured: list[int]
    state: list[Value]
    new: list[Value]


def while_vjp(v: Value, cotangents: Sequence[Maybe], needed: Sequence[bool], masked: bool) -> list[Maybe]:
    """The cotangents of the operands, given those of the results."""
    scope = ClosureScope()
    w = Opened(v, scope)
    given = [None if g is None else scope.enter(g) for g in cotangents[:-1]]
    body = _backward_body(w, given, needed, masked or selects(v))
    starts = [or_zeros(given[k], w.carries[k]) for k in body.carries]
    starts += [or_zeros(None, leaf) for leaf in body.state[len(starts) :]]
    if w.max_steps == 0:
        made = starts
    elif w.max_steps is not None:
        made = _traced(w, body, starts)
    else:
        made = _checkpointed(w, body, starts)
    out: list[Maybe] = [None] * len(v.operands)
    for k, c in zip([*body.carries, *[w.carry + k for k in body.captured]], made, strict=True):
        out[k] = c
    return scope.leave(out)


def _backward_body(w: Opened, given: Sequence[Maybe], needed: Sequence[bool], masked: bool) -> Body:
    nc = w.carry
    active = active_carries(w.v, given, needed)
    leaves = [fresh_input(w.carries[k].type) for k in active]
    wrt = [*active, *[k for k in range(nc, len(needed)) if needed[k]]]
    found = arrivals([w.results[k] for k in active], [w.leaves[k] for k in wrt], leaves, masked=masked)
    new = [or_zeros(c, leaf) for c, leaf in zip(found, leaves, strict=False)]
    captured = {k - nc: c for k, c in zip(wrt, found, strict=True) if k >= nc and c is not None}
    sums = [fresh_input(c.type) for c in captured.values()]
    new += [add_to(leaf, c) for leaf, c in zip(sums, captured.values(), strict=True)]
    return Body(active, list(captured), [*leaves, *sums], new)


def _traced(w: Opened, body: Body, starts: Sequence[Value]) -> list[Value]:
    """The state of the backward body after all steps, back to the first; what it reads was kept in every step."""
    assert w.max_steps is not None
    order = postorder(body.new)
    later = dependent(order, body.state)
    varying = dependent(order, [*body.state, *w.carries])
    kept = read_again(body.new, varying, later, w.carries, ())
    at = fresh_input(INDEX)
    traces = [fresh_input(_rows(x, w.max_steps).type) for x in kept]
    forward = make_while(
        [*w.operands[: w.carry], ZERO, *[_rows(x, w.max_steps) for x in kept]],
        w.max_steps,
        [*w.carries, at, *traces],
        w.condition,
        [*w.results, at + 1, *[_put(t, x, at) for t, x in zip(traces, kept, strict=True)]],
    )
    *_, count = parts = results_of(forward)
    given = parts[w.carry + 1 : -1]

    def step(at: Value, state: Sequence[Value]) -> list[Value]:
        rows = dict(zip(kept, [_take(t, at) for t in given], strict=True))
        return substitute(body.new, rows | dict(zip(body.state, state, strict=True)))

    return _downwards(count, starts, step, w.max_steps)


def _checkpointed(w: Opened, body: Body, starts: Sequence[Value]) -> list[Value]:
    """The same in constant memory."""
    count = w.scope.leaf(results_of(w.v)[-1])
    held = carries_needed(w.carries, w.results, body.new)
    carries = [w.carries[k] for k in held]
    following = [w.results[k] for k in held]

    def advance(steps: Value, state: Sequence[Value]) -> list[Value]:
        """The carries some steps later."""
        return _upwards(steps, state, lambda _, now: substitute(following, dict(zip(carries, now, strict=True))))

    def back(now: Sequence[Value], state: Sequence[Value]) -> list[Value]:
        """One step backwards, given the carries before it."""
        return substitute(body.new, dict(zip([*carries, *body.state], [*now, *state], strict=True)))

    if not held:
        return _downwards(count, starts, lambda _, state: back((), state))
    segment = maximum(_ceildiv(count, SLOTS), scalar(SLOTS, INDEX.dtype))
    part = _ceildiv(segment, SLOTS)
    first = [w.operands[k] for k in held]
    segments = _ceildiv(count, segment)
    begins = _keep(segments, segment, first, advance)

    def one_segment(at: Value, state: Sequence[Value]) -> list[Value]:
        steps = minimum(segment, count - at * segment)
        parts = _ceildiv(steps, part)
        places = _keep(parts, part, [_take(b, at) for b in begins], advance)

        def one_part(at: Value, state: Sequence[Value]) -> list[Value]:
            begin = [_take(p, at) for p in places]
            inside = minimum(part, steps - at * part)
            return _downwards(inside, state, lambda at, now: back(advance(at, begin), now))

        return _downwards(parts, state, one_part, SLOTS)

    return _downwards(segments, starts, one_segment, SLOTS)


# --- loops that count -------------------------------------------------------------------------------------------------

ZERO = scalar(0, "i64")
INDEX = ZERO.type
Step = Callable[[Value, Sequence[Value]], list[Value]]


def _upwards(count: Value, starts: Sequence[Value], step: Step, most: Size | None = None) -> list[Value]:
    """``for at in range(count): state = step(at, state)``."""
    at = fresh_input(INDEX)
    leaves = [fresh_input(s.type) for s in starts]
    made = make_while([ZERO, *starts], most, [at, *leaves], lt(at, count), [at + 1, *step(at, leaves)])
    return results_of(made)[1:-1]


def _downwards(count: Value, starts: Sequence[Value], step: Step, most: Size | None = None) -> list[Value]:
    """``for at in reversed(range(count)): state = step(at, state)``."""
    at = fresh_input(INDEX)
    leaves = [fresh_input(s.type) for s in starts]
    made = make_while([count - 1, *starts], most, [at, *leaves], ge(at, 0), [at - 1, *step(at, leaves)])
    return results_of(made)[1:-1]


def _keep(count: Value, every: Value, start: Sequence[Value],
          advance: Callable[[Value, Sequence[Value]], list[Value]]) -> list[Value]:
    """The carries at 0, ``every``, 2 * ``every``, ... steps: ``count`` of SLOTS rows."""
    n = len(start)

    def step(at: Value, state: Sequence[Value]) -> list[Value]:
        rows = [_put(r, x, at) for r, x in zip(state[n:], state[:n], strict=True)]
        return [*advance(where(lt(at + 1, count), every, ZERO), state[:n]), *rows]

    return _upwards(count, [*start, *[_rows(x, SLOTS) for x in start]], step, SLOTS)[n:]


def _ceildiv(a: Value, b: Value | int) -> Value:
    divisor = scalar(b, INDEX.dtype) if isinstance(b, int) else b
    return floordiv(a + (divisor - 1), divisor)


def _rows(x: Value, n: Size) -> Value:
    """Zeros for n values like ``x``."""
    return zeros_of(x, (n, *x.shape))


def _put(rows: Value, x: Value, at: Value) -> Value:
    """``x`` in row ``at``."""
    return dynamic_update_slice(rows, reshape(x, shape=(1, *x.shape)), at, *[ZERO] * x.ndim)


def _take(rows: Value, at: Value) -> Value:
    """Row ``at``."""
    shape = rows.shape[1:]
    return reshape(dynamic_slice(rows, at, *[ZERO] * len(shape), size=(1, *shape)), shape=shape)
