"""``sc.diff``: what is different between two functions, whatever their values are called and in which order they stand.

Values are compared by structure: op, attributes, type, operands (in any order where the op is commutative), bodies;
inputs by name. What has no equal on the other side is then aligned from the results down: two values of one op are the
same place, and only what differs *there* is told, not everything that is made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from symc.driver.deferred_function import Specializing
from symc.driver.function import CompiledFunction
from symc.errors import InputError
from symc.ir import location
from symc.ir.attrs import DIGEST
from symc.ir.function import Function, Hints, Input
from symc.ir.location import Loc
from symc.ir.parse import parse
from symc.ir.record import dataclass, field
from symc.ir.text import splat_of
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Region, Value, attr_bytes
from symc.notebook import Shown, text
from symc.numpy_api.differences import diff as diff_of_neighbours
from symc.opt.engine.provenance import expression
from symc.opt.why.history import named
from symc.tensors.callsite import at_caller, caller
from symc.tools.debugging.counts import Counts, counts_of
from symc.tools.debugging.sample import with_sizes

#: How many rows of each kind are printed.
MOST_ROWS = 30


@dataclass(frozen=True)
class Row:
    """One value: as mathematics, its type, its lines, and in the body of which op it stands ("" outside)."""

    text: str
    lines: tuple[Loc, ...] = ()
    where: str = ""

    def __str__(self) -> str:
        inside = f"in {self.where}: " if self.where else ""
        return inside + self.text + ("    " + location.brief(self.lines) if self.lines else "")


@dataclass
class Diff(Shown):
    """Differences of two functions. ``same``: nothing, but for names and order.

    ``interface``: sentences about inputs and results. ``changed``: pairs of rows for values at the same place.
    ``only_left``, ``only_right``: rows of values that the other side does not have. ``left``, ``right``: counts.
    """

    interface: list[str] = field(default_factory=list)
    changed: list[tuple[Row, Row]] = field(default_factory=list)
    only_left: list[Row] = field(default_factory=list)
    only_right: list[Row] = field(default_factory=list)
    left: Counts = field(default_factory=Counts)
    right: Counts = field(default_factory=Counts)
    moved: int = 0  # values that are different only because something below them is

    @property
    def same(self) -> bool:
        return not (self.interface or self.changed or self.only_left or self.only_right)

    def __bool__(self) -> bool:
        return not self.same

    def _html_(self) -> str:
        return text(str(self), "difference", coloured=True)

    def __str__(self) -> str:
        counts = self.left.against(self.right)
        if self.same:
            return "\n".join(["the same, but for names and order", *counts])
        out = list(self.interface)
        for a, b in self.changed[:MOST_ROWS]:
            out += [f"- {a}", f"+ {b}"]
        out += [f"- {r}" for r in self.only_left[:MOST_ROWS]] + [f"+ {r}" for r in self.only_right[:MOST_ROWS]]
        hidden = sum(max(0, len(x) - MOST_ROWS) for x in (self.changed, self.only_left, self.only_right))
        if hidden:
            out.append(f"... and {hidden} more")
        if self.moved:
            out.append(f"({self.moved} more are different only because of what they are made of)")
        return "\n".join([*out, *counts])

    __repr__ = __str__


FUNCTIONS = (CompiledFunction, Specializing, Function, str)


def diff(a: Any, n: Any = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Difference between two functions (compiled ones, IR functions, or IR texts): ``sc.diff(f, g)`` gives a
    ``Diff``, which prints. Of anything else, NumPy's ``diff``: ``n`` times the differences of neighbours along
    ``axis``.
    """
    if not isinstance(a, FUNCTIONS):
        return diff_of_neighbours(a, n, axis, prepend, append)
    if not isinstance(n, FUNCTIONS):
        raise InputError(f"diff compares a function with another one, not with {type(n).__name__}", where=[caller()],
                         help="sc.diff(f, g), or f.diff('stabilize', 'simplify') for two stages of one")
    return _of_functions(a, n)


def _of_functions(f: Any, g: Any) -> Diff:
    """Difference between the final IR of functions, and between what their plans run."""
    with at_caller():
        left, right = _function(f), _function(g)
        out = compare(left, right)
        out.left, out.right = counts_of(f, left), counts_of(g, right)
        return out


def _function(f: Any) -> Function:
    if isinstance(f, str):
        return parse(f)
    return f if isinstance(f, Function) else f._compilation.final


def compare(f: Function, g: Function) -> Diff:
    """The differences, without counts of plans."""
    g = _renamed(f, g)
    out = Diff(interface=_interface(f, g))
    names = {i.name: k for k, i in enumerate(f.inputs)}
    by_name = {i.name for i in g.inputs} == names.keys()
    keys = _Keys()
    keys.leaves(f, list(range(len(f.inputs))))
    left = {v: keys.of(v, 0) for v in f.values()}
    places = [names[i.name] for i in g.inputs] if by_name else list(range(len(g.inputs)))
    keys.leaves(g, places)
    right = {v: keys.of(v, 1) for v in g.values()}
    sides = (_Side(f, f.hints, left), _Side(g, g.hints, right))
    _Alignment(sides, keys, out, "").run(f.body.results, g.body.results)
    return out


def _renamed(f: Function, g: Function) -> Function:
    """``g`` with the size names of ``f`` where inputs of one name have other ones."""
    own = {i.name: i for i in f.inputs}
    found: dict[str, Any] = {}
    for k, i in enumerate(g.inputs):
        other = own.get(i.name) or (f.inputs[k] if k < len(f.inputs) else None)
        if other is not None and other.type.ndim == i.type.ndim:
            for s, t in zip(i.type.shape, other.type.shape, strict=True):
                if not isinstance(s, int) and not isinstance(t, int) and str(s).isidentifier():
                    found.setdefault(str(s), t)
    found = {n: t for n, t in found.items() if str(t) != n}
    return with_sizes(g, found) if found else g


def _interface(f: Function, g: Function) -> list[str]:
    out = []
    for a, b in zip(_rows(f.inputs), _rows(g.inputs), strict=False):
        if a != b and {i.name for i in f.inputs} != {i.name for i in g.inputs}:
            out.append(f"input {a} is {b}")
    if len(f.inputs) != len(g.inputs):
        out.append(f"{len(f.inputs)} inputs become {len(g.inputs)}")
    types = {i.name: i for i in g.inputs}
    for i in f.inputs:
        j = types.get(i.name)
        if j is not None and (i.type is not j.type or i.role != j.role):
            out.append(f"input {_rows([i])[0]} is {_rows([j])[0]}")
    if len(f.outputs) != len(g.outputs):
        out.append(f"{len(f.outputs)} results become {len(g.outputs)}")
    updated = [[h.inputs[k].name for k in h.updates] for h in (f, g)]
    if updated[0] != updated[1]:
        out.append(f"updates of {updated[0]} become updates of {updated[1]}")
    return out


def _rows(inputs: Sequence[Input]) -> list[str]:
    return [f"{'state ' * (i.role == 'state')}{i.name}: {i.type}" for i in inputs]


class _Keys:
    """Digests of values that are the same for values of one meaning: the order of operands does not count where it
    does not matter, and inputs go by their place."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Value], bytes] = {}
        self._regions: dict[Region, bytes] = {}

    def leaves(self, f: Function, places: Sequence[int]) -> None:
        """Params of a function go by these numbers."""
        self._side = getattr(self, "_side", -1) + 1
        for p, k in zip(f.params, places, strict=True):
            self._known[self._side, p] = f"input {k} {p.type}".encode()

    def of(self, v: Value, side: int) -> bytes:
        found = self._known.get((side, v))
        if found is None:
            found = self._known[side, v] = self._digest(v, [self._known[side, o] for o in v.operands])
        return found

    def region(self, r: Region) -> bytes:
        found = self._regions.get(r)
        if found is None:
            local: dict[Value, bytes] = {}
            for v in postorder(r.results):
                local[v] = self._digest(v, [local[o] for o in v.operands])
            h = blake2b(" ".join(map(str, r.params)).encode(), digest_size=DIGEST)
            for v in r.results:
                h.update(local[v])
            found = self._regions[r] = h.digest()
        return found

    def inside(self, r: Region) -> dict[Value, bytes]:
        """The keys of the values of a body."""
        local: dict[Value, bytes] = {}
        for v in postorder([*region_params(r), *r.results]):
            local[v] = self._digest(v, [local[o] for o in v.operands])
        return local

    def _digest(self, v: Value, operands: Sequence[bytes]) -> bytes:
        h = blake2b(f"{v.op.name} {v.type}".encode(), digest_size=DIGEST)
        for name, entry in v.attrs.items():
            h.update(name.encode() + attr_bytes(entry))
        for o in sorted(operands) if "commutative" in v.op.traits else operands:
            h.update(o)
        for r in v.regions:
            h.update(self.region(r))
        return h.digest()


@dataclass
class _Side:
    function: Function
    hints: Hints
    keys: dict[Value, bytes]

    def row(self, v: Value, where: str) -> Row:
        text = f"{expression(v, 2) if where else named(self.function, v, 2)} : {v.type}"
        return Row(text, tuple(location.in_order(self.hints.get(v, ()))), where)


class _Alignment:
    """Alignment of the values of two sides that stand at the same place."""

    def __init__(self, sides: tuple[_Side, _Side], keys: _Keys, out: Diff, where: str):
        self.left, self.right = sides
        self.keys, self.out, self.where = keys, out, where
        self.common = set(self.left.keys.values()) & set(self.right.keys.values())
        self.paired: tuple[set[Value], set[Value]] = (set(), set())

    def run(self, results: Sequence[Value], others: Sequence[Value]) -> None:
        self._align(list(zip(results, others, strict=False)))
        while True:  # what the results do not lead to, users first: one op and type, and something in common
            lefts, rights = self._left_over(self.left, 0), self._left_over(self.right, 1)
            pair = self._most_alike(lefts[::-1], rights[::-1])
            if pair is None:
                break
            self._align([pair])
        self.out.only_left += [self.left.row(v, self.where) for v in lefts]
        self.out.only_right += [self.right.row(v, self.where) for v in rights]

    def _align(self, pairs: list[tuple[Value, Value]]) -> None:
        pending, seen = pairs[::-1], set()
        while pending:
            pair = pending.pop()
            if pair not in seen:
                seen.add(pair)
                pending += self._pair(*pair)[::-1]

    def _pair(self, a: Value, b: Value) -> list[tuple[Value, Value]]:
        """Note what two values at one place are to each other; the places below them."""
        ka, kb = self.left.keys[a], self.right.keys[b]
        if ka == kb or a in self.paired[0] or b in self.paired[1]:
            return []
        if ka in self.common or kb in self.common:
            return []  # one of them is there on both sides: the other was put on it, or taken away
        if a.op is not b.op:
            below = [(a, o) for o in b.operands if o.op is a.op] or [(o, b) for o in a.operands if o.op is b.op]
            if below:
                return below[:1]  # one more op on one side
        self.paired[0].add(a)
        self.paired[1].add(b)
        if a.op is not b.op or a.attrs != b.attrs or len(a.operands) != len(b.operands):
            self._change(a, b)
            return list(zip(a.operands, b.operands, strict=True)) if len(a.operands) == len(b.operands) else []
        places = self._operands(a, b)
        if any(self._both_known(x, y) for x, y in places):
            self._change(a, b)  # it reads other values, which both sides have
            return places
        self.out.moved += 1
        for r, q in zip(a.regions, b.regions, strict=False):
            if self.keys.region(r) != self.keys.region(q):
                self._bodies(a, r, q)
        return places

    def _both_known(self, a: Value, b: Value) -> bool:
        ka, kb = self.left.keys[a], self.right.keys[b]
        return ka != kb and ka in self.common and kb in self.common

    def _change(self, a: Value, b: Value) -> None:
        self.out.changed.append((self.left.row(a, self.where), self.right.row(b, self.where)))

    def _operands(self, a: Value, b: Value) -> list[tuple[Value, Value]]:
        if "commutative" not in a.op.traits:
            return list(zip(a.operands, b.operands, strict=True))
        rest = list(b.operands)
        lone = []
        for o in a.operands:
            same = next((x for x in rest if self.right.keys[x] == self.left.keys[o]), None)
            if same is not None:
                rest.remove(same)
            else:
                lone.append(o)
        rest.sort(key=lambda x: [x.op is not o.op for o in lone])
        return list(zip(lone, rest, strict=True))

    def _bodies(self, v: Value, r: Region, q: Region) -> None:
        where = f"{v.op.name}" + (f" in {self.where}" if self.where else "")
        sides = tuple(
            _Side(side.function, side.function.inside.get(x, {}), self.keys.inside(x))
            for side, x in ((self.left, r), (self.right, q))
        )
        _Alignment(sides, self.keys, self.out, where).run(r.results, q.results)  # type: ignore[arg-type]

    def _left_over(self, side: _Side, k: int) -> list[Value]:
        """Values without an equal and without a place on the other side."""
        return [v for v, key in side.keys.items() if key not in self.common and v not in self.paired[k]
                and v.op.name not in ("get", "param") and splat_of(v) is None]

    def _most_alike(self, lefts: Sequence[Value], rights: Sequence[Value]) -> tuple[Value, Value] | None:
        by_kind: dict[tuple, list[Value]] = {}
        for b in rights:
            by_kind.setdefault((b.op, b.type), []).append(b)
        for a in lefts:
            near = [(self._likeness(a, b), -k) for k, b in enumerate(by_kind.get((a.op, a.type), [])[:50])]
            if near and max(near)[0] > 0:
                return a, by_kind[a.op, a.type][-max(near)[1]]
        return None

    def _likeness(self, a: Value, b: Value) -> int:
        mine = Counter(self.left.keys[o] for o in a.operands)
        shared = sum((mine & Counter(self.right.keys[o] for o in b.operands)).values())
        lines = self.left.hints.get(a, location.NOWHERE) & self.right.hints.get(b, location.NOWHERE)
        return 2 * shared + bool(lines)
