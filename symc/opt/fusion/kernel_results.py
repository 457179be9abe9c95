"""Kernels that give other results: fewer, or without those that another kernel makes of the rest.

Fusion computes in one kernel what reads the same arrays. Where memory is short, what is needed now and what is needed
much later must come apart again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from symc.grad.residuals import is_cheap_op
from symc.ir.function import Function
from symc.ir.location import NOWHERE, add_lines
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.leaf import get, param
from symc.ir.ops.shape import broadcast
from symc.ir.traverse import postorder, rebuild, region_params
from symc.ir.types import TupleType
from symc.ir.value import Region, Value, make
from symc.opt.fusion.kernel_form import kernel_form

#: How many ops a result may be away from other results of its kernel to be made of them in a kernel of its own.
NEAR = 12


def fewer_results(region: Region, kept: Sequence[int]) -> tuple[list[int], list[int], Region]:
    """A kernel's region that gives the results ``kept`` alone.

    Returns which operands it takes, in order, and which of ``kept`` its results are, in order.
    """
    params = region_params(region)
    wanted = {region.results[k]: k for k in kept}
    first, ordered, new = kernel_form(params, list(wanted))
    return [p.attrs["index"] for p in first], [wanted[r] for r in ordered], new


def without_unused_results(region: Region) -> Region:
    """A region in which kernels give the results alone that are used."""
    used: dict[Value, set[int]] = {}
    order = postorder(region.results)
    for v in order:
        if v.op is get:
            used.setdefault(v.operands[0], set()).add(v.attrs["index"])
    done: dict[Value, Value] = {}
    parts: dict[Value, dict[int, Value]] = {}
    for v in order:
        operands = [done.get(o, o) for o in v.operands]
        count = len(v.type.items) if isinstance(v.type, TupleType) else 1
        if v.op is get and v.operands[0] in parts:
            done[v] = parts[v.operands[0]][v.attrs["index"]]
        elif v.op is fused and 0 < len(used.get(v, ())) < count and len(set(v.regions[0].results)) == count:
            takes, gives, smaller = fewer_results(v.regions[0], sorted(used[v]))
            new = fused(*[operands[k] for k in takes], regions=[smaller])
            parts[v] = dict(zip(gives, results_of(new), strict=True))
        else:
            done[v] = make(v.op, operands, v.attrs, v.regions)
    return Region(region.params, [done[r] for r in region.results])


def derived_results(v: Value, wanted: Collection[int]) -> dict[int, list[Value]]:
    """The ``wanted`` results of a kernel that a few cheap ops make of its other results (or of inputs of the program).

    For each the values of the region that it is made of.
    """
    region = v.regions[0]
    fixed = {p for p, o in zip(region_params(region), v.operands, strict=True) if not o.operands}
    bases = {r for k, r in enumerate(region.results) if k not in wanted}
    found: dict[int, list[Value]] = {}
    for k in sorted(wanted):
        reads = _cheap_from(region.results[k], bases | fixed)
        if reads is not None and any(r in bases for r in reads):
            found[k] = reads
    return found


def _cheap_from(m: Value, ends: Collection[Value]) -> list[Value] | None:
    """The values among ``ends`` that ``m`` is made of by cheap ops alone; None if it is not."""
    inside = postorder([m], stop=ends.__contains__)
    computed = [x for x in inside if x not in ends and x.operands]
    good = all(is_cheap_op(x.op) or x.op is broadcast for x in computed) and m not in ends
    if not good or len(computed) > NEAR or any(x.op is param and x not in ends for x in inside):
        return None
    return [x for x in inside if x in ends]


def split_results(f: Function, chosen: Mapping[Value, Mapping[int, Sequence[Value]]]) -> Function:
    """Kernels without the results chosen, which kernels of their own make of the others (``derived_results``)."""
    return with_kernels(f, lambda v, operands: _split(v, chosen[v], operands) if v in chosen else None)


def with_kernels(f: Function, made: Callable[[Value, list[Value]], Mapping[int, Value] | None]) -> Function:
    """The function with what ``made`` gives for the results of a kernel on other operands, by number, which have its
    lines; None: it stays."""
    hints = dict(f.hints)
    done: dict[Value, Value] = {p: p for p in f.params}
    parts: dict[Value, Mapping[int, Value]] = {}
    for v in f.values():
        if v in done:
            continue
        if v.op is get and v.operands[0] in parts:
            done[v] = parts[v.operands[0]][v.attrs["index"]]
            continue
        operands = [done[o] for o in v.operands]
        found = made(v, operands) if v.op is fused else None
        if found is None:
            done[v] = rebuild(v, operands)
            add_lines(hints, done[v], f.hints.get(v, NOWHERE))
            continue
        parts[v], done[v] = found, found[0]  # what has several results is read by projections alone
        for x in {x for r in found.values() for x in (r, *r.operands) if x.op in (fused, get)}:
            add_lines(hints, x, f.hints.get(v, NOWHERE))
    return f.with_results([done[r] for r in f.body.results], hints) if parts else f


def _split(v: Value, derived: Mapping[int, Sequence[Value]], operands: Sequence[Value]) -> dict[int, Value]:
    region = v.regions[0]
    kept = [k for k in range(len(region.results)) if k not in derived]
    takes, gives, smaller = fewer_results(region, kept)
    new = fused(*[operands[k] for k in takes], regions=[smaller])
    out = dict(zip(gives, results_of(new), strict=True))
    outside = {region.results[k]: out[k] for k in kept}
    outside.update((p, operands[k]) for k, p in enumerate(region_params(region)))
    for k, reads in derived.items():
        first, _, own = kernel_form(reads, [region.results[k]])
        out[k] = fused(*[outside[r] for r in first], regions=[own])
    return out
