"""Functions: a region with an interface, names and source locations. Not interned; identity is the body's."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from symc.errors import InputError
from symc.ir import location
from symc.ir.dim import Dim, Measured, Size, in_order, is_fresh, known_equal, size_name
from symc.ir.location import Locs
from symc.ir.record import dataclass, field, replace
from symc.ir.size_values import names, solve, substitute
from symc.ir.traverse import Substitution, close_over, free_inputs, postorder, with_inner
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType, TupleType, substitute_type
from symc.ir.value import Region, Value, fresh_input, held, param

Hints = dict[Value, Locs]
#: What functions call sizes that nobody named.
NUMBERED = re.compile(r"_\d+")


@dataclass(frozen=True)
class Input:
    """One input: ``role`` is "arg" (given in a call) or "state" (kept between calls).

    ``type`` is the param's type in the body; ``declared`` is what the user wrote, whose size names a call binds first.
    ``dims``: labels of its axes.
    """

    name: str
    type: TensorType
    role: str = "arg"
    declared: TensorType | None = None
    loc: location.Loc | None = None
    dims: tuple[str | None, ...] | None = None


@dataclass(frozen=True)
class Guard:
    """``left == right`` must hold for the sizes of a call, or ``left >= right`` with ``least``; ``locs`` need it.

    ``least`` says what for: "index", "length", "window", or "variant" for sizes that another function serves.
    """

    left: Size
    right: Size
    locs: Locs = location.NOWHERE
    least: str = ""

    def __str__(self) -> str:
        return f"{self.left} {'>=' if self.least else '=='} {self.right}"


@dataclass(frozen=True, eq=False)
class Function:
    """``body.results`` are the outputs, then the new values of the states in ``updates`` (input indices, in order).

    ``hints`` are the user lines of the values of the body, ``inside`` those of the values in each region inside it.
    """

    name: str
    inputs: tuple[Input, ...]
    body: Region
    updates: tuple[int, ...] = ()
    hints: Hints = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    inside: location.Inside = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[Value, ...]:
        return self.body.results[: len(self.body.results) - len(self.updates)]

    @property
    def update_values(self) -> tuple[Value, ...]:
        return self.body.results[len(self.body.results) - len(self.updates):]

    @property
    def params(self) -> list[Value]:
        return list(self.body.leaves)

    def values(self) -> list[Value]:
        """Every value of the body, operands first."""
        return list(self.body.values)

    def with_results(self, results: Sequence[Value], hints: Mapping[Value, Locs] | None = None) -> Function:
        """The same interface around other results (made of the same params; tensors are their values)."""
        kept = self.hints if hints is None else dict(hints)
        values = [held(r) for r in results]
        for k, v in enumerate(values):
            if not isinstance(v, Value):
                raise InputError(f"@{self.name}: result {k} is a {type(v).__name__}, not a value")
        return replace(self, body=Region(self.body.params, values), hints=kept)

    def locations(self, value: Value) -> list[location.Loc]:
        """The user lines of a value, in a stable order, each once."""
        return list({str(loc): loc for loc in location.in_order(self.hints.get(value, ()))}.values())

    def __str__(self) -> str:
        from symc.ir.text import print_function

        return print_function(self)


def function(name: str, inputs: Sequence[tuple[Value, Input]], outputs: Sequence[Value],
             updates: Sequence[tuple[int, Value]] = ()) -> Function:
    """Close a graph over its leaves: the way from free values to a Function."""
    return close_function(name, inputs, outputs, updates)[0]


def close_function(name: str, inputs: Sequence[tuple[Value, Input]], outputs: Sequence[Value],
                   updates: Sequence[tuple[int, Value]] = ()) -> tuple[Function, Substitution]:
    """A function of free values, and what it calls their sizes.

    ``inputs`` pairs each free leaf with its interface. Sizes that must be equal (``ensure_shape``) are unified, so that
    types inside are structurally equal; what cannot be solved stays as ``ensure_shape`` and is checked in a call. What
    a process counts (sizes without a name, effects) is counted anew, so that equal programs are equal functions.
    """
    roots = [*outputs, *[v for _, v in updates]]
    graph = postorder(roots)
    values = with_inner(graph)
    own = _numbered_sizes([i.declared or i.type for _, i in inputs], values)
    declared: list[TensorType] = [substitute_type(i.declared or i.type, own) for _, i in inputs]  # type: ignore[misc]
    guards = tuple(replace(g, left=substitute(g.left, own), right=substitute(g.right, own))
                   for g in collect_guards(roots))
    solution = unify(guards, bound_names(declared))
    sizes = {**solution, **{n: substitute(s, solution) for n, s in own.items()}}
    entries = _numbered_entries(values)
    changed = Substitution(sizes, entries)
    hints: Hints = {}
    types: list[TensorType] = [changed.swap(i.type) for _, i in inputs]
    leaves = {leaf: param(k, t) for k, ((leaf, _), t) in enumerate(zip(inputs, types, strict=True))}

    def carry(old: Value, new: Value) -> None:
        location.add_lines(hints, new, location.noted(old))

    for leaf, p in leaves.items():
        carry(leaf, p)
    results = changed.values(roots, leaves, carry) if changed else replace_values(roots, leaves, carry)
    same = set(graph)
    for v in postorder(results):
        if v in same and v.operands and v.op.name != "broadcast":
            carry(v, v)  # it depends on no input
    body = close_over([leaves[leaf] for leaf, _ in inputs], results)
    interface = tuple(replace(i, type=t, declared=d)
                      for (_, i), t, d in zip(inputs, types, declared, strict=True))
    closed = Function(name, interface, body, tuple(k for k, _ in updates), hints, guards, _inside(graph, changed))
    return closed, Substitution(sizes, entries)


def resized(f: Function, sizes: Mapping[str, Size], guards: tuple[Guard, ...] = ()) -> Function:
    """A function with size names replaced, by numbers or other sizes."""
    changed = Substitution(sizes)
    hints: Hints = {}
    carry = location.carrying(f.hints, hints)
    leaves: dict[Value, Value] = {p: param(k, changed.swap(p.type)) for k, p in enumerate(f.params)}
    for old, new in leaves.items():
        carry(old, new)
    body = close_over(list(leaves.values()), changed.values(f.body.results, leaves, carry))
    for v in body.values:
        carry(v, v)  # those that have no such size are what they were
    inputs = tuple(replace(i, type=changed.swap(i.type), declared=i.declared and changed.swap(i.declared))
                   for i in f.inputs)
    return replace(f, inputs=inputs, body=body, hints=hints, inside=changed.inside(f.inside), guards=guards)


def _numbered_sizes(types: Sequence[TensorType], values: Sequence[Value]) -> dict[str, Size]:
    """Names for the sizes without one that types mention: ``_0``, ``_1``, ..., but for what is a name already; ``u0``,
    ``u1``, ... for those that are data. Their order is that of the axes, those first that are one size and no sum.
    Those that values alone mention keep what they have: no call tells them."""
    known = {n: n for n in bound_names(types)}
    alone = [str(s) for t in types for s in t.shape]
    fresh = [known[n] for n in dict.fromkeys([*alone, *known]) if is_fresh(n) and n in known]
    if not fresh:
        return {}
    taken = mentioned_names(values).union(known)
    plain, data = _free_names("_", taken), _free_names("u", taken)
    return {n: size_name(next(data if isinstance(n, Measured) else plain)) for n in fresh}


def _free_names(mark: str, taken: set[str]) -> Iterator[str]:
    return (name for k in itertools.count() if (name := f"{mark}{k}") not in taken)


def mentioned_names(values: Sequence[Value]) -> set[str]:
    """The size names in types and attributes."""
    return {n for d in mentioned_sizes(values) for n in names(d)}


def measured_names(roots: Sequence[Value]) -> list[Measured]:
    """The sizes that are data which values need, and those that these need, in order of creation."""
    found: dict[str, Measured] = {}
    pending = list(roots)
    while pending:
        new = [n for n in mentioned_names(with_inner(postorder(pending))) if isinstance(n, Measured) and n not in found]
        found.update((n, n) for n in new)
        pending = [n.value for n in new]
    return [found[n] for n in in_order(found)]


def mentioned_sizes(values: Sequence[Value]) -> set[Dim]:
    """The sizes in types and attributes."""
    pending: list[Any] = [*{v.type for v in values}, *(a for v in values for a in v.attrs.values())]
    found: set[Dim] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, Dim):
            found.add(item)
        elif isinstance(item, TensorType):
            pending += item.shape
        elif isinstance(item, tuple | TupleType):
            pending += item.items if isinstance(item, TupleType) else item
    return found


def _numbered_entries(values: Sequence[Value]) -> dict[Value, dict[str, Any]]:
    """The attributes that a process counts: serials of effects, which tell their order, and the names of derivatives
    that users state, which tell one from another."""
    serials = {v: v.attrs["serial"] for v in values if "effect" in v.op.traits and v.attrs.get("serial", -1) >= 0}
    order = {serial: k for k, serial in enumerate(sorted(set(serials.values())))}
    rules: dict[str, str] = {}
    calls = [v for v in values if v.op.name == "call" and v.attrs["rule"]]
    for v in calls:
        if v.attrs["rule"] not in rules:
            own, k = v.attrs["name"], 2
            while own in rules.values():
                own, k = f"{v.attrs['name']}_{k}", k + 1
            rules[v.attrs["rule"]] = own
    found: dict[Value, dict[str, Any]] = {v: {"serial": order[serial]} for v, serial in serials.items()}
    found.update((v, {"rule": rules[v.attrs["rule"]]}) for v in calls)
    return {v: new for v, new in found.items() if any(v.attrs[k] != a for k, a in new.items())}


def _inside(graph: Sequence[Value], changed: Substitution) -> location.Inside:
    """The lines in the regions of values whose sizes are replaced."""
    noted: location.Inside = {}
    for v in graph:
        if v.regions:
            location.merge_inside(noted, location.inside(v))
    return changed.inside(noted) if changed else noted


def with_sizes_unified(
    roots: Sequence[Value], carry: Callable[[Value, Value], None]
) -> tuple[list[Value], dict[Value, Value], location.Inside]:
    """Free values in which sizes that must be equal are one; what their leaves became; and the lines in regions.

    What a guard stands in front of is then seen as what it is, as in a closed function. The guards that are gone belong
    to the leaves: a leaf became the second of each pair where it was the first, with ``ensure_shape``.
    """
    leaves = [v for v in free_inputs(roots) if isinstance(v.type, TensorType)]
    solution = unify(collect_guards(roots), bound_names(v.type for v in leaves))
    changed = Substitution(solution)
    if not changed:
        return list(roots), {}, _inside(postorder(roots), changed)
    became: dict[Value, Value] = {}
    for v in leaves:
        t = changed.swap(v.type)
        if t is not v.type:
            became[v] = fresh_input(t)
    return changed.values(roots, became, carry), became, _inside(postorder(roots), changed)


def bound_names(types: Iterable[TensorType]) -> list[str]:
    """Size names in the order in which inputs mention them."""
    out: dict[str, None] = {}
    for t in types:
        for s in t.shape:
            out.update(dict.fromkeys(in_order(names(s))))
    return list(out)


def collect_guards(roots: Sequence[Value]) -> tuple[Guard, ...]:
    """The equations between sizes that a graph relies on, in the bodies of its loops too."""
    found: dict[tuple[Size, Size], Locs] = {}
    pending: list[tuple[Sequence[Value], Hints, location.Inside]] = [(roots, {}, {})]
    while pending:
        results, lines, inside = pending.pop()
        for v in postorder(results):
            if v.regions:
                inner = inside or location.inside(v)
                pending.extend((r.results, inner.get(r, {}), inner) for r in v.regions)
            if v.op.name == "ensure_shape":
                for have, want in zip(v.operands[0].shape, v.shape, strict=True):
                    if known_equal(have, want) is not True:
                        key = (have, want)
                        locs = location.noted(v) | lines.get(v, location.NOWHERE)
                        found[key] = found.get(key, location.NOWHERE) | locs
    return tuple(Guard(a, b, locs) for (a, b), locs in found.items())


def unify(guards: Sequence[Guard], order: Sequence[str]) -> dict[str, Size]:
    """Solve equations for size names. Of two names the one declared first stays."""
    solution: dict[str, Size] = {}
    rank = {n: i for i, n in enumerate(order)}
    for guard in guards:
        left, right = substitute(guard.left, solution), substitute(guard.right, solution)
        for name in sorted(in_order(names(left - right)), key=lambda n: -rank.get(n, len(rank))):
            value = solve(left - right, 0, name)
            if value is not None:
                solution = {k: substitute(v, {name: value}) for k, v in solution.items()}
                solution[name] = value
                break
    return solution
