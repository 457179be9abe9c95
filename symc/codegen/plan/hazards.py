"""Hazards: steps of a plan that must have finished before another starts, which lanes have to keep.

Of memory: reading after writing, writing after reading, writing after writing, in buffers and in stretches of the arena
that may overlap. And of order: effects come as in the program, with what they are tied to; no state is written over
before everything that can raise has run.
"""

from __future__ import annotations

from collections.abc import Callable

from symc.codegen.plan.cells import Source, is_view, source, step_fails
from symc.codegen.plan.overlap import overlaps
from symc.ir.ops.effect import has_effect
from symc.ir.plan import Plan, Step
from symc.ir.value import Value


def uses(step: Step) -> list[tuple[str, bool]]:
    """The buffers that a step uses, and whether it writes them; what it writes comes last."""
    found = {n: False for n in step.reads} | {n: True for n in step.writes}
    if step.scratch is not None:
        found[step.scratch] = True
    return sorted(found.items(), key=lambda use: use[1])


def sequences(plan: Plan, fails: Callable[[Value], bool]) -> list[tuple[int, int]]:
    """Pairs of steps of which the second comes after the first for another reason than memory."""
    out: list[tuple[int, int]] = []
    made: dict[Source, int] = {}
    effect: int | None = None
    fallible: list[int] = []
    for at, step in enumerate(plan.steps):
        if step.kind != "copy":
            out += [(made[c], at) for c in _ties(step.value) if c in made]
            made |= {(step.value, r): at for r in range(len(step.writes))}
            if has_effect(step.value):
                out += [] if effect is None else [(effect, at)]
                effect = at
        if any(plan.buffers[n].kind == "state" for n in step.writes):
            out += [(b, at) for b in fallible]
        if step_fails(step, fails):
            fallible.append(at)
    return out


def _ties(v: Value) -> list[Source]:
    """Values that must have been computed before ``v``, besides its operands: what a view in between waits for."""
    out = []
    for o in v.operands:
        while is_view(o):
            out += [source(t) for t in o.operands[1:]]
            o = o.operands[0]
    return out


def predecessors(plan: Plan, fails: Callable[[Value], bool]) -> list[list[int]]:
    """For every step the steps that come before it, in order. Where a first one comes before a second one and that
    before a third, the first may be missing for the third. Temps without a place lie apart."""
    shared = overlaps(plan)
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    extra: list[list[int]] = [[] for _ in plan.steps]
    for a, b in sequences(plan, fails):
        extra[b].append(a)
    out: list[list[int]] = []
    for at, step in enumerate(plan.steps):
        before = set(extra[at])
        mine = uses(step)
        for name, writes in mine:
            for other in shared[name]:
                before.update(readers.get(other, ()) if writes else ())
                if other in writer:
                    before.add(writer[other])
        for name, writes in mine:
            if not writes:
                readers.setdefault(name, []).append(at)
                continue
            for other in shared[name]:
                if shared[other] <= shared[name]:  # whoever comes after its uses comes after this one
                    writer.pop(other, None)
                    readers.pop(other, None)
            writer[name] = at
        out.append(sorted(before))
    return out
