"""The driver: applies rules to a graph until none fires, in time linear in its size.

Values are visited operands first. Each is rebuilt on simplified operands and offered to the rules of its op; what a
rule gives is simplified in turn. Rules look only downwards, so one visit brings a value to its normal form; where a
rule left a value to its other users, and these are gone in the end, the graph is visited once more. A rule that raises
is disabled and recorded; it never breaks the user's program (``strict`` raises instead). A budget proportional to the
size of the graph bounds the work even of rules that undo each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from symc.errors import InternalError, PipelineError, of_handler
from symc.ir.location import NOWHERE, Inside, Locs, add_lines, merge_inside
from symc.ir.op import Op
from symc.ir.ops.assume import assume
from symc.ir.ops.effect import has_effect, keep
from symc.ir.ops.shape import slice_
from symc.ir.record import dataclass, field
from symc.ir.traverse import postorder, rebuild, replace
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, make
from symc.opt.engine.provenance import Provenance
from symc.opt.engine.rule import ANY, Rule
from symc.opt.engine.terms import apart, bare, forget, ingredients
from symc.opt.facts.analysis import Analysis
from symc.opt.facts.fact import Fact

#: Firings allowed per value of the graph, and at least.
BUDGET, MIN_BUDGET = 24, 400
#: A graph is visited at most so often.
MOST_VISITS = 32
#: What is read in more pieces stays whole.
MOST_PIECES = 8
NONE: frozenset[str] = frozenset()
#: Families whose rules are not worth an assumption: what they make of values is said of assumptions, too.
KEEPS_ASSUMPTIONS = frozenset({"canonicalize", "assumptions"})


class Index:
    """Rules by the op they start at; those that say most come first, else in order of registration."""

    def __init__(self, rules: Iterable[Rule]):
        self.by_root: dict[str, list[tuple[int, Rule]]] = {ANY: []}
        for place in enumerate(sorted(rules, key=lambda r: -r.weight)):
            for root in place[1].roots:
                self.by_root.setdefault(root, []).append(place)
        self.by_op: dict[tuple[Op, frozenset[str], str], list[Rule]] = {}
        self.by_needs: dict[tuple[Op, frozenset[str], str, frozenset[str]], list[Rule]] = {}

    def _starting(self, op: Op) -> list[Rule]:
        """The rules that may start at an op, in order."""
        everywhere = [(k, r) for k, r in self.by_root[ANY] if r.traits <= op.traits]
        return [r for _, r in sorted({*self.by_root.get(op.name, ()), *everywhere}, key=lambda place: place[0])]

    def of(self, v: Value, tried: frozenset[str]) -> list[Rule]:
        """The rules that may start at ``v``, but for those of families tried before whose answer cannot change."""
        op, kind = v.op, v.type.dtype.kind if isinstance(v.type, TensorType) else ""
        found = self.by_op.get((op, tried, kind))
        if found is None:
            found = self.by_op[op, tried, kind] = [
                r
                for r in self._starting(op)
                if (r.contextual or r.family not in tried)
                and (kind in r.kinds or not r.keeps_kind)
            ]
        return found

    def fitting(self, v: Value, tried: frozenset[str]) -> list[Rule]:
        """Rules that find right below ``v`` what they need."""
        rules = self.of(v, tried)
        if not rules:
            return rules
        below = ingredients(v) if v.operands else NONE
        key = (v.op, tried, v.type.dtype.kind if isinstance(v.type, TensorType) else "", below)
        found = self.by_needs.get(key)
        if found is None:
            found = self.by_needs[key] = [r for r in rules if r.needs <= below]
        return found


@lru_cache(maxsize=64)
def index_of(rules: tuple[Rule, ...]) -> Index:
    """The index of a set of rules; the same few sets come again in every program."""
    return Index(rules)


@dataclass
class Rewriter:
    """One run of a set of rules."""

    rules: Sequence[Rule]
    provenance: Provenance = field(default_factory=Provenance)
    hints: dict | None = None
    inside: Inside | None = None  # the lines of the values in regions
    strict: bool = False
    pass_name: str = ""
    tried: dict[Value, frozenset[str]] = field(default_factory=dict)  # families that did not apply to a value
    attempts: int = 0
    visited: int = 0
    fired: int = 0
    facts: Analysis = field(default_factory=Analysis)

    def __post_init__(self) -> None:
        self.index = index_of(tuple(self.rules))
        self.done: dict[Value, Value] = {}
        self.uses: dict[Value, int] = {}
        self.users: dict[Value, Op] = {}  # the op of one of those who use it
        self.slices: dict[Value, list[Value]] = {}
        self.denied: set[tuple[Callable[[Rewriter, Value], bool], Value]] = set()  # questions answered with no
        self.regions: dict[tuple[Region, tuple[Fact, ...]], Region] = {}
        self.budget = MIN_BUDGET

    # -- what rules may ask

    def single_use(self, v: Value) -> bool:
        """True if ``v`` has one user at most (an estimate while the graph changes; never needed for correctness)."""
        return self._answer(Rewriter._used_once, v)

    def ends_chain(self, v: Value) -> bool:
        """True unless ``v`` is only read by a value of the same op (an estimate as well): a rule that looks at a whole
        chain asks, so that it is not applied again after each link."""
        return self._answer(Rewriter._last, v)

    def present(self, v: Value) -> bool:
        """True if ``v`` is computed anyway (an estimate as well)."""
        return self._answer(Rewriter._used, v)

    def sliced_apart(self, v: Value) -> bool:
        """True if ``v`` is only read in pieces, of which no two have an element in common (an estimate as well).

        A rule asks this to read the operands of ``v`` in those pieces instead, so they have as many users from now on.
        """
        if not self._answer(Rewriter._read_apart, v):
            return False
        pieces = self.slices[v]
        for o in v.operands:
            if self._used_once(o):
                self.slices.setdefault(o, list(pieces))
            while self._used_once(o):
                self.uses[o] = len(pieces)
                o = o.operands[0] if "movement" in o.op.traits and o.operands else o
        return True

    def _answer(self, question: Callable[[Rewriter, Value], bool], v: Value) -> bool:
        """The answer to a rule's question. The graph may change what was answered with no: it is asked again."""
        yes = question(self, v)
        if not yes:
            self.denied.add((question, v))
        return yes

    def _used_once(self, v: Value) -> bool:
        return self.uses.get(v, 1) <= 1

    def _last(self, v: Value) -> bool:
        return self.users.get(v) is not v.op or not self._used_once(v)

    def _used(self, v: Value) -> bool:
        return v in self.uses

    def _read_apart(self, v: Value) -> bool:
        pieces = self.slices.get(v, ())
        return 1 < len(pieces) <= MOST_PIECES and self.uses.get(v) == len(pieces) and apart(pieces)

    # -- running

    def run(self, roots: Sequence[Value]) -> list[Value]:
        """The roots in normal form."""
        values = self.look(roots)
        self.budget += BUDGET * len(values)
        results = self._visit(roots, values)
        visits, fired = 1, 0
        while self.denied and fired < self.fired < self.budget and visits < MOST_VISITS:
            denied, self.denied, self.done = self.denied, set(), {}
            self.uses, self.users, self.slices = {}, {}, {}
            values, fired, visits = self.look(results), self.fired, visits + 1
            if not any(v in self.uses and question(self, v) for question, v in denied):
                break
            results = self._visit(results, values)
        forget()
        return results

    def _visit(self, roots: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """Simplifies every value, operands first; gives what the roots become."""
        done, step = self.done, self._step
        for v in values:
            if v not in done:
                new = step(v)
                if new is v or new in done:
                    done[v] = done.get(new, new)
                else:
                    self._simplify(v, new)
        return keep([self.done[r] for r in roots], [self.done[v] for v in values if has_effect(v)])

    def look(self, roots: Sequence[Value]) -> list[Value]:
        """All values of the roots, after noting who uses them."""
        values = postorder(roots)
        uses, users = self.uses, self.users
        for v in values:
            for o in v.operands:
                uses[o] = uses.get(o, 0) + 1
                users[o] = v.op
            if v.op is slice_:
                self.slices.setdefault(v.operands[0], []).append(v)
        for r in roots:
            uses[r] = uses.get(r, 0) + 1
            users.pop(r, None)
        return values

    def _simplify(self, root: Value, new: Value) -> None:
        """Fill ``done`` for ``root``, whose operands are done and which has become ``new``, and for what comes of it.
        The stack holds values to visit, and pairs (v, what v became)."""
        done = self.done
        active = {root}
        stack: list[Value | tuple[Value, Value]] = [(root, new), new]
        while stack:
            item = stack[-1]
            if isinstance(item, tuple):
                stack.pop()
                v, new = item
                active.discard(v)
                done.setdefault(v, done[new])
                continue
            if item in done:
                stack.pop()
                continue
            waiting = [o for o in item.operands if o not in done]
            if waiting:
                stack.extend(waiting[::-1])
                continue
            stack.pop()
            if item in active:  # what replaces it needs it again
                self._cycle(item)
                done[item] = item
                continue
            new = self._step(item)
            if new is item or new in done:
                done[item] = done.get(new, new)
            else:
                active.add(item)
                stack += [(item, new), new]

    def _step(self, v: Value) -> Value:
        """``v`` on simplified operands, or what one rule makes of it."""
        done = self.done
        operands = v.operands
        for o in operands:
            if done[o] is not o:
                operands = tuple([done[o] for o in operands])
                break
        regions = tuple([self._region(v, k, operands) for k in range(len(v.regions))]) if v.regions else ()
        if operands is not v.operands or regions != v.regions:
            new = make(v.op, operands, v.attrs, regions)
            if new is not v:
                self._used_as(v, new)
                self._carry([v], new)
                self.provenance.rebuilt(v, new)
                return new
        self.visited += 1
        if self.fired >= self.budget:
            return v
        return self._apply(v)

    def _apply(self, v: Value) -> Value:
        tried = self.tried.get(v, NONE)
        rules = self.index.fitting(v, tried)
        new = self._first(rules, v) if rules else v
        if new is v and assume in [o.op for o in v.operands]:
            # patterns look through assumptions; rewrites are offered the operands as they are without
            rules = [r for r in self.index.of(v, tried) if not r.by_pattern and r.family not in KEEPS_ASSUMPTIONS]
            without = rebuild(v, [bare(o) for o in v.operands])
            below = ingredients(without)
            new = self._first([r for r in rules if r.needs <= below], without)
            new = v if new is without else new
        return new

    def _first(self, rules: Sequence[Rule], v: Value) -> Value:
        """The value that the first rule that fires makes of ``v``, or ``v``."""
        disabled = self.provenance.disabled
        for r in rules:
            if r.name in disabled:
                continue
            self.attempts += 1
            new = self._attempt(r, v)
            if new is not None and new is not v:
                self.fired += 1
                self._record(r, v, new)
                return new
        return v

    def _attempt(self, r: Rule, v: Value) -> Value | None:
        try:
            new = r.apply(v, self)
            if isinstance(new, str):
                return None
            if new is not None and new.type is not v.type:
                raise PipelineError(f"rule {r.name} gives {new.type} for {v.type}")
            return new
        except Exception as e:  # a user's rule may raise anything; the program must survive it
            if self.strict or of_handler(e):
                raise
            self.provenance.disable(r.name, e)
            return None

    def _region(self, v: Value, k: int, operands: Sequence[Value]) -> Region:
        """Region ``k`` of ``v``, on its own: it has its own lines. One that occurs in many places, of whose params the
        same is known, is simplified once."""
        region = v.regions[k]
        facts = self.facts.of_region(rebuild(v, operands), k)
        key = (region, tuple(facts.known.values()))
        found = self.regions.get(key)
        if found is None:
            lines = None if self.inside is None else dict(self.inside.get(region, {}))
            inner = Rewriter(self.rules, self.provenance, lines, self.inside, self.strict, self.pass_name, self.tried,
                             facts=facts)
            inner.regions = self.regions
            results = inner.run(region.results)
            self.attempts += inner.attempts
            self.visited += inner.visited
            self.fired += inner.fired
            found = Region(region.params, results) if tuple(results) != region.results else region
            self.regions[key] = self.regions[found, key[1]] = found
            if lines and self.inside is not None:
                merge_inside(self.inside, {found: {v: lines[v] for v in postorder(results) if v in lines}})
        return found

    # -- bookkeeping

    def _record(self, r: Rule, old: Value, new: Value) -> None:
        self._used_as(old, new)
        gone = _near([old])
        made = _near([new], stop=gone, depth=12)  # logsumexp has parts eight steps deep
        kept = set(_near([new]))
        lines = self._carry([v for v in gone if v is old or v not in kept], *[v for v in made if v not in self.done])
        self._carry_inside(gone, made, lines)
        self.provenance.fired(r.name, self.pass_name, old, new, lines)

    def _used_as(self, old: Value, new: Value) -> None:
        """Note that users of an old value use the new one."""
        self.uses[new] = max(self.uses.get(new, 0), self.uses.get(old, 1))
        if old in self.users:
            self.users.setdefault(new, self.users[old])
        if old in self.slices:
            self.slices.setdefault(new, self.slices[old])

    def _carry(self, olds: Sequence[Value], *news: Value) -> Locs:
        """Give the lines of old values to new ones."""
        lines: Locs = NOWHERE
        if self.hints is not None:
            lines = frozenset().union(*[self.hints.get(v, NOWHERE) for v in olds])
            for v in news:
                add_lines(self.hints, v, lines)
        return lines

    def _carry_inside(self, gone: Sequence[Value], made: Sequence[Value], lines: Locs) -> None:
        """Regions that a rule rebuilt have the lines of those that they were made of; what is new in them, its."""
        if self.inside is None:
            return
        before = [self.inside[r] for v in gone for r in v.regions if r in self.inside]
        for r in (r for v in made for r in v.regions if before and r not in self.inside):
            known = {x: next((b[x] for b in before if x in b), lines) for x in postorder(r.results) if x.operands}
            merge_inside(self.inside, {r: {x: locs for x, locs in known.items() if locs}})

    def _cycle(self, v: Value) -> None:
        """Rules undo each other: the last one is taken back, and is not tried again."""
        name, before = self.provenance.firings[-1].rule, self.provenance.replaced_by(v)
        error = InternalError(f"rule {name} turns {v.op.name} back into a value that {before} has just replaced")
        if self.strict:
            raise error
        self.provenance.disable(name, error)


def applied(r: Rule, v: Value) -> Value | None:
    """A graph after one firing of a rule, and of no other; None where it does not fire."""
    context = Rewriter([])
    context.look([v])
    for x in reversed(postorder([v])):
        new = r.apply(x, context) if x.op.name in r.roots or ANY in r.roots else None
        if isinstance(new, Value) and new is not x:
            return replace([v], {x: new})[0]
    return None


def _near(roots: Sequence[Value], stop: Iterable[Value] = (), depth: int = 4, most: int = 24) -> list[Value]:
    """Computed values within a few steps of ``roots``."""
    out: dict[Value, None] = {}
    stopped = set(stop)
    layer = [v for v in roots if v not in stopped]
    for _ in range(depth):
        following: list[Value] = []
        for v in layer:
            if v.operands and v not in out and v not in stopped and len(out) < most:
                out[v] = None
                following += v.operands
        layer = following
    return list(out)
