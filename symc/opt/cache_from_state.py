"""cache_from_state: what depends on unchanged states alone is computed once, and cached until one of them changes.

Weights that `pack` puts side by side, or that a loop reads transposed, are the same in every call of a program that
does not train them. What is cached is marked so (``cached``); code generation makes a program of its own of it.

Cached is what a library routine, a loop or a branch reads, and what such a routine made: for kernels it costs about as
much to read what is cached as to compute it again. A program that updates a state computes what is made of it in every
call: the next call would have to compute it again.
"""

from __future__ import annotations

from collections.abc import Collection

from symc.grad.residuals import size_in_bytes
from symc.ir.dim import Dim
from symc.ir.function import Function
from symc.ir.location import NOWHERE, carrying
from symc.ir.ops.cached import cached
from symc.ir.ops.effect import has_effect
from symc.ir.size_values import names
from symc.ir.traverse import is_free_leaf, replace
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.fusion.kernel_ops import is_free, is_kernel_op, needs_memory
from symc.opt.loops.edit import may_fail

#: A program caches at most so many bytes.
MOST_BYTES = 1 << 28


def unchanged_states(f: Function) -> list[Value]:
    """The params of states that a call does not update."""
    return [p for k, (p, i) in enumerate(zip(f.params, f.inputs, strict=True))
            if i.role == "state" and k not in f.updates]


@standard_pass(
    after=("blas",),
    why="blas says what libraries read; what is marked is not looked into from there on",
    on=("state",), for_kernels=True,
)
def cache_from_state(provenance: Provenance, f: Function) -> Function:
    """Values of unchanged states alone are cached between calls."""
    states = unchanged_states(f)
    if not states:
        return f
    fixed = _fixed(f, states)
    chosen: list[Value] = []
    room = MOST_BYTES
    for v in _read_outside(f, fixed):
        room -= size_in_bytes(v.type)
        if room >= 0:
            chosen.append(v)
    if not chosen:
        return f
    hints = dict(f.hints)
    mapping = {v: cached(v) for v in chosen}
    carry = carrying(hints, hints)
    for v, k in mapping.items():
        carry(v, k)
        provenance.fired("cache_from_state", "cache_from_state", v, k, f.hints.get(v, NOWHERE))
    return f.with_results(replace(f.body.results, mapping, carry), hints)


def _fixed(f: Function, states: Collection[Value]) -> set[Value]:
    """The values computed from unchanged states, and constants, alone; their sizes included."""
    known = {n for p in states for s in p.shape for n in names(s) if n == str(s)}
    same, out = set(states), set(states)
    for v in f.values():
        if v in same or is_free_leaf(v):
            continue
        if all(o in same for o in v.operands) and _names(v) <= known and not has_effect(v) and not may_fail(v):
            same.add(v)
            if any(o in out for o in v.operands):
                out.add(v)
    return out.difference(states)


def _names(v: Value) -> set[str]:
    """The size names that a value depends on."""
    types = v.type.items if hasattr(v.type, "items") else (v.type,)
    out = {n for t in types for s in t.shape for n in names(s)}
    return out.union(*[_mentioned(a) for a in v.attrs.values()])


def _mentioned(a: object) -> set[str]:
    if isinstance(a, tuple):
        return set().union(*map(_mentioned, a))
    return names(a) if isinstance(a, Dim) else set()


def _read_outside(f: Function, fixed: set[Value]) -> list[Value]:
    """Fixed values that changing ones read, as arrays in memory or because a library has made it; in order."""
    dear: set[Value] = set()  # fixed, and made by what is no kernel
    read: dict[Value, None] = {}
    for v in f.values():
        if v in fixed:
            if not is_kernel_op(v) and not is_free(v) or any(o in dear for o in v.operands):
                dear.add(v)
        else:
            in_memory = needs_memory(v)
            read.update(dict.fromkeys(o for o in v.operands if o in fixed and (o in dear or o in in_memory)))
    read.update(dict.fromkeys(r for r in f.body.results if r in dear))
    return [v for v in f.values() if v in read and isinstance(v.type, TensorType)]
