"""Closed functions with what a call gives and gets, and the guards of their sizes."""

from __future__ import annotations

from collections.abc import Iterable

from symc.driver.labelled import Results
from symc.driver.signature import Slot
from symc.errors import InputError
from symc.ir import location
from symc.ir.dim import Dim, Size, known_equal, known_nonnegative
from symc.ir.function import Function, Guard, bound_names, collect_guards, mentioned_names, unify
from symc.ir.record import dataclass, replace
from symc.ir.size_values import names, substitute
from symc.ir.traverse import Substitution, every_value
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value
from symc.tensors.pytree import Nest
from symc.tensors.state import Cell


@dataclass(frozen=True)
class Built:
    """``cells`` are the states of the function, in the order of its state inputs (which come after the arguments).

    ``leaves`` are the users' values that became its params, where they are at hand, and ``changed`` tells what it calls
    their sizes. ``labels``: of axes of the outputs.
    """

    function: Function
    outputs: Nest
    slots: tuple[Slot, ...]
    cells: tuple[Cell, ...]
    donated: frozenset[int]
    leaves: tuple[Value, ...] = ()
    changed: Substitution | None = None
    labels: Results = ()


def bound_guards(f: Function) -> tuple[tuple[Guard, ...], dict[str, Value | None]]:
    """The guards in terms of sizes that arguments bind; sizes that none does, with a value that needs each."""
    bound = bound_names(i.declared or i.type for i in f.inputs)
    solution = {n: s for n, s in unify(f.guards, bound).items() if n not in bound}
    out = []
    for g in f.guards:
        left, right = substitute(g.left, solution), substitute(g.right, solution)
        if known_equal(left, right) is not True:
            out.append(Guard(left, right, g.locs))
    known = set(bound)
    unknown: dict[str, Value | None] = {n: None for g in out for n in names(g.left) | names(g.right) if n not in known}
    values = every_value(f.body)
    if mentioned_names(values) - known:
        for v in values:
            unknown |= {n: v for n in mentioned_names([v]) - known if unknown.get(n) is None}
    return tuple(out), unknown


def _least_of(v: Value) -> Iterable[tuple[Size, Size, str]]:
    """Sizes that a value needs at least, and what for: what its record says; else that none it makes is negative."""
    facts = v.op.facts
    if facts.least is not None:
        return facts.least(v)
    if facts.fits is not None:
        return [(n, least, "window") for n, least in facts.fits(v)]
    if isinstance(v.type, TupleType) or facts.requires:
        return ()
    given = {n for o in v.operands if isinstance(o.type, TensorType) for n in o.shape}
    return [(n, 0, "length") for n in v.shape if isinstance(n, Dim) and n not in given]


def least_guards(f: Function) -> list[Guard]:
    """Guards of what sizes must be at least, so that slices of a known size (``x[-2]``) lie within their operands, and
    that loops and new arrays have no negative length (``length=n - 1``), and that windows fit.

    Those in branches and loops, which may not run, are looked at when they do (``symc.ir.requires``).
    """
    found: dict[tuple[Size, Size, str], location.Locs] = {}
    for v in f.values():
        for n, least, what in _least_of(v):
            if not known_nonnegative(n - least):
                key = (n, least, what)
                found[key] = found.get(key, location.NOWHERE) | f.hints.get(v, location.NOWHERE)
    return [Guard(a, b, locs, least) for (a, b, least), locs in found.items()]


def missing_guards(f: Function) -> tuple[Guard, ...]:
    """Guards that a function which was written down needs beyond those it has: nothing in a call relies on
    those being complete. Raises InputError for a size that no input has, and for inputs that are not what is declared.
    """
    declared = [i.declared or i.type for i in f.inputs]
    bound = bound_names(declared)
    solution = unify([g for g in f.guards if not g.least], bound)
    found: list[Guard] = []
    for i, t in zip(f.inputs, declared, strict=True):
        if t.dtype != i.type.dtype or t.ndim != i.type.ndim:
            raise InputError(f"{i.name} is declared {t}, but used as {i.type}")
        for a, b in zip(t.shape, i.type.shape, strict=True):
            if known_equal(substitute(a, solution), substitute(b, solution)) is not True:
                found.append(Guard(a, b))
    needed = replace(f, guards=collect_guards(f.body.results))
    needed_guards, lacking = bound_guards(needed)
    found += [*needed_guards, *least_guards(f)]
    sizes = {n for g in (*found, *f.guards) for n in names(g.left) | names(g.right)}
    unknown = sorted({*sizes - set(bound), *lacking})
    if unknown:
        raise InputError(f"the size {unknown[0]} is not known from any input")
    known = {(g.left, g.right, g.least) for g in f.guards}
    return tuple(g for g in found if not {(g.left, g.right, g.least), (g.right, g.left, g.least)} & known)
