"""The walk that passes on loops and branches share: a function whose loops are replaced one after another.

``Edit`` walks a function; a pass's visitor gives other values for the results of a loop. ``Loop`` and ``Branches`` (in
``form``) are what a visitor works on. User lines follow the values, out of bodies and into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from symc.ir.bodies import is_control
from symc.ir.dim import known_nonnegative
from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, Inside, Locs, add_lines, merge_inside
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import results_of
from symc.ir.traverse import postorder, rebuild
from symc.ir.types import TupleType
from symc.ir.value import Region, Value, param
from symc.opt.engine.provenance import Provenance
from symc.opt.engine.regions import with_lines
from symc.opt.facts.bounds import indices_checked

#: By number: what takes the place of the results of a loop (those that nobody uses may be missing).
Results = Mapping[int, Value]
#: ``visit(old, new)``: the results that take the place of those of ``new``, which is ``old`` on operands that are done.
#: None: it stays.
Visit = Callable[[Value, Value], Results | None]


class Edit:
    """One run of a pass over one function."""

    def __init__(self, f: Function, provenance: Provenance, name: str):
        self.f, self.provenance, self.name = f, provenance, name
        self.hints: Hints = dict(f.hints)
        self.inside: Inside = dict(f.inside)
        self.values = f.values()
        self.used: dict[Value, set[int]] = {}
        for v in self.values:
            if v.op.name == "get":
                self.used.setdefault(v.operands[0], set()).add(v.attrs["index"])
            elif v.regions and not isinstance(v.type, TupleType):
                self.used[v] = {0}
        self.done: dict[Value, Value] = {}
        self.replaced: dict[Value, Results] = {}

    def run(self, visit: Visit) -> Function:
        """The function after a visit to each of its loops and branches."""
        for v in self.values:
            self.step(v, visit)
        return self.finish()

    def each(self, form: Callable[[Value, Value], Value | None]) -> Function:
        """The function with what ``form(old, old on operands that are done)`` gives in their places, with their lines;
        None: it stays."""
        for v in self.values:
            rebuilt = rebuild(v, [self.done[o] for o in v.operands])
            new = form(v, rebuilt)
            self.done[v] = rebuilt if new is None else new
            if self.done[v] is not v:
                self.note(self.done[v], self.hints.get(v, NOWHERE))
            if new is not None:
                self.record(v, new)
        return self.finish()

    def step(self, v: Value, visit: Visit | None = None) -> None:
        """Fill ``done`` for one value."""
        if v.op.name == "get" and v.operands[0] in self.replaced:
            self.done[v] = self.replaced[v.operands[0]][v.attrs["index"]]
            return
        new = self.again(v)
        self.done[v] = new
        if visit is not None and v.regions and is_control(v):
            out = visit(v, new)
            if out is not None:
                self.replace(v, out)

    def again(self, v: Value) -> Value:
        """``v`` on operands that are done, with its lines."""
        new = rebuild(v, [self.done[o] for o in v.operands])
        if new is not v:
            self.note(new, self.hints.get(v, NOWHERE))
        return new

    def replace(self, v: Value, out: Results) -> None:
        """``out`` are the results of ``v`` from here on."""
        self.replaced[v] = out
        if not isinstance(v.type, TupleType) and 0 in out:
            self.done[v] = out[0]
        for k, old in enumerate(results_of(v)):
            if k in out:
                self.note(out[k], self.hints.get(old, NOWHERE) | self.hints.get(v, NOWHERE))
                self.provenance.rebuilt(old, out[k])

    def finish(self) -> Function:
        results = [self.done[r] for r in self.f.body.results]
        if tuple(results) == self.f.body.results:
            return self.f
        return with_lines(self.f.with_results(results, self.hints), self.inside)

    # -- lines and records

    def note(self, v: Value, locs: Locs) -> None:
        add_lines(self.hints, v, locs)

    def region(self, leaves: Sequence[Value], results: Sequence[Value], lines: Hints) -> Region:
        """A region over leaves; ``lines``: those of the values that its results are made of."""
        own: Hints = {}
        mapping = {leaf: param(k, leaf.type) for k, leaf in enumerate(leaves)}
        region = Region([leaf.type for leaf in leaves], moved(results, mapping, lines, own))
        self.note_region(region, own)
        return region

    def note_region(self, region: Region, lines: Hints) -> None:
        if lines:
            merge_inside(self.inside, {region: lines})

    def record(self, old: Value, new: Value, lines: Iterable[Locs] = ()) -> None:
        """Record that this pass made ``new`` of ``old``."""
        self.provenance.fired(self.name, self.name, old, new, self.hints.get(old, NOWHERE).union(*lines))


def moved(roots: Sequence[Value], mapping: Mapping[Value, Value], source: Hints, target: Hints) -> list[Value]:
    """The roots on other leaves; their lines in ``source`` become lines in ``target``."""
    done: dict[Value, Value] = dict(mapping)
    for v in postorder(roots, stop=mapping.__contains__):
        if v not in mapping:
            new = done[v] = rebuild(v, [done[o] for o in v.operands])
            add_lines(target, new, source.get(v, NOWHERE))
    return [done[r] for r in roots]


def ordered(roots: Sequence[Value], mapping: Mapping[Value, Value],
            on_new: Callable[[Value, Value], None] = lambda old, new: None) -> list[Value]:
    """``replace``, with the operands of commutative ops in the order in which they are met.

    Canonical order depends on the numbers of leaves: two bodies that say the same with other leaves differ by it.
    """
    rank: dict[Value, int] = {}
    done: dict[Value, Value] = dict(mapping)
    for v in postorder(roots, stop=mapping.__contains__):
        if v not in mapping:
            operands = [done[o] for o in v.operands]
            if "commutative" in v.op.traits:
                operands.sort(key=rank.__getitem__)
            new = done[v] = rebuild(v, operands)
            on_new(v, new)
        rank.setdefault(done[v], len(rank))
    return [done[r] for r in roots]


def may_fail(v: Value) -> bool:
    """True if computing ``v`` can raise: such a value is not computed where the program might not."""
    if v.op.facts.indices is not None:
        return not indices_checked(v)
    return "checks" in v.op.traits or v.op.name == "ensure_shape" or v.op.facts.custom is not None or has_effect(v) or (
        any(may_fail(x) for r in v.regions for x in postorder(r.results)))


def runs(loop: Value) -> bool:
    """True if the body of a loop surely runs once at least."""
    length = loop.attrs.get("length", 0)
    return known_nonnegative(length - 1)
