"""Prove that what is alive together in the arena lies apart, for all sizes. And how a mistake in a plan is reported."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from symc.codegen.kernel.names import kernel_name
from symc.codegen.plan.cells import nominal
from symc.codegen.plan.compare_sizes import at_least, multiple
from symc.codegen.plan.memory import Held, held
from symc.errors import PlanError
from symc.ir.dim import Size
from symc.ir.plan import Plan, Step


def describe(at: int, step: Step) -> str:
    what = f"launch @{kernel_name(step.value)}" if step.kind == "launch" else f"{step.kind} {step.value.op.name}"
    return f"step {at} ({', '.join('%' + n for n in step.writes)} <- {what})"


def bug(plan: Plan, what: str, step: Step | None = None) -> PlanError:
    where = plan.function.locations(step.value) if step else ()
    return PlanError(f"plan @{plan.function.name}: {what}", where=where,
                     help="this is a bug in symc, not in your program; please report it with the text of the plan")


def check_arena(plan: Plan) -> None:
    """Temps lie inside the arena, aligned, and those alive together lie apart."""
    for n, b in plan.buffers.items():
        if (b.kind == "temp") != (n in plan.offsets):
            raise bug(plan, f"%{n}, a {b.kind}, has {'an' if n in plan.offsets else 'no'} offset in the arena")
    if not plan.offsets and plan.arena != 0:
        raise bug(plan, f"an arena of {plan.arena} bytes for no temps")
    order = Order([b.nbytes for b in plan.buffers.values()], [*plan.offsets.values(), plan.arena])
    for n, at in plan.offsets.items():
        if not multiple(at, 64):
            raise bug(plan, f"%{n} starts at byte {at} of the arena, not known to be a multiple of 64")
        if not order.before(at, plan.buffers[n].nbytes, plan.arena):
            raise bug(plan, f"%{n} ({plan.buffers[n].nbytes} bytes at {at}) is not known to end "
                            f"inside the arena of {plan.arena} bytes")
    lives = [h for h in held(plan) if plan.buffers[h.buffer].kind == "temp" and plan.buffers[h.buffer].nbytes != 0]
    ending = sorted(lives, key=lambda h: h.last)
    alive = _Alive(plan, order)
    gone = 0
    for h in lives:  # sorted by first step
        while ending[gone].last < h.first:
            alive.remove(ending[gone])
            gone += 1
        alive.add(h)


class Order:
    """Order of the places where things of these ``sizes`` start, as far as they are known to come one after another,
    for all sizes."""

    def __init__(self, sizes: Iterable[Size], starts: Iterable[Size]):
        self.nonnegative = frozenset(sizes)
        self.starts = sorted(dict.fromkeys(starts), key=nominal)
        self.rank = {o: k for k, o in enumerate(self.starts)}
        self.run = [0]  # starts with the same number are known to be in order
        for a, b in zip(self.starts, self.starts[1:], strict=False):
            self.run.append(self.run[-1] + (not self.known(b, a)))

    def known(self, b: Size, a: Size) -> bool:
        """True if ``b >= a`` is known."""
        return at_least(b, a, self.nonnegative)

    def before(self, start: Size, nbytes: Size, other: Size) -> bool:
        """True if ``nbytes`` bytes from ``start`` on end at or before ``other``."""
        end = start + nbytes
        if self.known(other, end):
            return True
        k, j = self.rank[start] + 1, self.rank[other]
        return k <= j and self.run[k] == self.run[j] and self.known(self.starts[k], end)


class _Alive:
    """Buffers that are alive in the arena, sorted by place; each lies before the next, so only neighbours are
    compared."""

    def __init__(self, plan: Plan, order: Order):
        self.plan, self.order = plan, order
        self.keys: list[tuple[int, str]] = []
        self.now: dict[tuple[int, str], Held] = {}

    def _key(self, h: Held) -> tuple[int, str]:
        return self.order.rank[self.plan.offsets[h.buffer]], h.buffer

    def remove(self, h: Held) -> None:
        key = self._key(h)
        if self.now.get(key) is h:
            del self.now[key]
            del self.keys[bisect.bisect_left(self.keys, key)]

    def add(self, h: Held) -> None:
        key = self._key(h)
        if key not in self.now:
            k = bisect.bisect_left(self.keys, key)
            for a, b in [(self.keys[k - 1], key)] if k else []:
                self._apart(h, a, b)
            for a, b in [(key, self.keys[k])] if k < len(self.keys) else []:
                self._apart(h, a, b)
            self.keys.insert(k, key)
        self.now[key] = h  # the same buffer, in place

    def _apart(self, h: Held, a: tuple[int, str], b: tuple[int, str]) -> None:
        first, second = self.plan.offsets[a[1]], self.plan.offsets[b[1]]
        if not self.order.before(first, self.plan.buffers[a[1]].nbytes, second):
            raise bug(self.plan, f"%{a[1]} (at {first}) and %{b[1]} (at {second}) are not known to lie apart in the "
                                 f"arena, but are alive together at step {h.first}", self.plan.steps[h.first])
