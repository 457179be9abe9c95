"""Functions that a block is compiled to, over all instances that run together, and what they hand to each other.

``pre`` computes, once for all instances, what no recursive port goes into. ``fwd`` computes outputs, batch by batch;
``fwd_save`` outputs and what backward reads again; ``bwd`` turns cotangents of outputs into those of ports. ``pgrad``
computes what no batch waits for, again for all instances: cotangents of parameters, rows of lookup tables, and where
there is a ``pre`` cotangents of ports that are not recursive. What is saved is a minimum cut of the graph, in bytes:
cheap ops are computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from symc.fold.block import Block, M, N, Tag
from symc.fold.types import Type
from symc.grad import vjp
from symc.grad.mincut import INFINITE
from symc.grad.residuals import cheapest, is_cheap, size_in_bytes
from symc.ir.op import splat
from symc.ir.ops.cached import cached
from symc.ir.ops.index import gather
from symc.ir.ops.linalg import dot
from symc.ir.ops.shape import transpose
from symc.ir.record import dataclass
from symc.ir.size_values import names
from symc.ir.traverse import dependent, is_free_leaf, postorder, rebuild, replace
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.transforms.autodiff import stabilized


@dataclass(frozen=True, eq=False)
class Lookup:
    """A gather of rows of a state: which rows, and the value."""

    table: Value
    index: Value
    rows: Value


@dataclass(frozen=True, eq=False)
class Job:
    """A function to be compiled. Values by tag; a value that several tags name is computed once. ``back``: it
    multiplies with transposed states, batch by batch."""

    inputs: Mapping[Tag, Value]
    outputs: Mapping[Tag, Value]
    back: bool = False

    def closed(self) -> tuple[list[Value], list[Value]]:
        """Leaves for its inputs, and its results, each once; inputs that are handed on are none."""
        given = list(self.inputs.values())
        leaves = [register_leaf(fresh_input(v.type), Leaf(f"x{k}")) for k, v in enumerate(given)]
        made = [v for v in dict.fromkeys(self.outputs.values()) if v not in self.inputs.values()]
        results = replace(made, dict(zip(given, leaves)))
        return leaves, _pretransposed(results) if self.back else results


@dataclass(frozen=True, eq=False)
class Split:
    """The functions of a block. ``lookups``: by number, as in the tags ("rows", k) and ("index", k)."""

    pre: Job
    fwd_save: Job
    bwd: Job
    pgrad: Job
    lookups: tuple[Lookup, ...]


def is_state(v: Value) -> bool:
    return is_free_leaf(v) and leaf_of(v).role == "state"


def lookups_of(block: Block) -> tuple[list[Lookup], set[Value]]:
    """The lookups of a block, and the states that it reads otherwise."""
    found: list[Lookup] = []
    dense: set[Value] = set()
    order = postorder(block.batched.outputs)
    for v in order:
        if v.op is gather and is_state(v.operands[0]) and v.attrs["axes"] == (0,) and len(v.operands) == 2:
            found.append(Lookup(v.operands[0], v.operands[1], v))
            dense.update(o for o in v.operands[1:] if is_state(o))
        else:
            dense.update(o for o in v.operands if is_state(o))
    dense.update(v for v in block.batched.outputs if is_state(v))
    return found, dense


def varying_types(blocks: Sequence[Block], params: Collection[Value]) -> set[Type]:
    """The types of which some value depends on states that are trained: cotangents of others are not computed."""
    found: set[Type] = set()
    trained = {b: not set(params).isdisjoint(postorder(b.batched.outputs)) for b in blocks}
    while more := {b.out for b in blocks if trained[b] or any(p.type in found for p in b.values)} - found:
        found |= more
    return found


def recursive_types(blocks: Sequence[Block]) -> dict[Type, set[Type]]:
    """For each type those that values of it may go into, itself included."""
    into: dict[Type, set[Type]] = {t: {t} for b in blocks for t in (b.out, *[p.type for p in b.values])}
    for _ in blocks:
        for b in blocks:
            for found in into.values():
                if not found.isdisjoint(p.type for p in b.values):
                    found.add(b.out)
    return into


def ahead(leaves: Mapping[Tag, Value], ends: Mapping[Tag, Value], late: Collection[str]) -> dict[Tag, Value]:
    """Values of all instances that a function of the ports ``late`` and others is made of, and that cost something;
    and those of ``ends`` that no late port goes into."""
    order = postorder(list(ends.values()))
    after = dependent(order, {v for t, v in leaves.items() if t[0] == "port" and t[1] in late})
    varying = dependent(order, set(leaves.values())) - after - set(leaves.values())
    dear: set[Value] = set()
    for v in order:
        if v in varying and (not is_cheap(v) or not dear.isdisjoint(v.operands)):
            dear.add(v)
    used = dict.fromkeys([*[o for v in order if v in after for o in v.operands], *ends.values()])
    whole = {t: v for t, v in ends.items() if t[0] == "saved" and v in varying and _has_rows(v)}
    found = [v for v in used if v in dear and v not in whole.values()]
    # by type as well: one with a number is another in training, and both may have the same rows if they fit
    pre = {("pre", k, str(v.type)): v for k, v in enumerate(found)}
    return whole | pre if all(map(_has_rows, found)) and found else {}


def outputs_of(block: Block) -> dict[Tag, Value]:
    """The fields of the result, by tag."""
    return {("out", f): v for f, v in zip(block.out.fields, block.batched.outputs, strict=True)}


def inference(block: Block, late: Collection[str]) -> tuple[Job, Job]:
    """``pre``, and ``fwd``. ``late``: recursive ports, or none where there is to be no ``pre``."""
    leaves, outputs = block.batched.leaves, outputs_of(block)
    pre = ahead(leaves, outputs, late) if late else {}
    return job(leaves, pre), job({**leaves, **pre}, outputs)


def split(block: Block, params: Collection[Value], sparse: Collection[Value], varying: Collection[Type],
          late: Collection[str]) -> Split:
    """``params``: states that are trained; ``sparse``: those of them that get rows; ``varying``: types that depend on
    states that are trained; ``late``: as of ``inference``."""
    b = block.batched
    fields = list(block.out.fields)
    outputs = outputs_of(block)
    seeds = {f: _leaf(f"d_{f}", v) for f, v in zip(fields, b.outputs, strict=True) if v.dtype.kind in "fc"}
    found = tuple(x for x in lookups_of(block)[0] if x.table in sparse)
    wanted = {p.name for p in block.values if p.type in varying}
    ports = [t for t, v in b.leaves.items() if t[0] == "port" and t[1] in wanted and v.dtype.kind in "fc"]
    dense = [p for p in params if p not in sparse and p in set(postorder(b.outputs))]
    wrt = [*[b.leaves[t] for t in ports], *dense, *[x.rows for x in found]]
    stable, ends = stabilized([outputs["out", f] for f in seeds], wrt)
    grads: list[Value | None] = list(vjp(stable, ends, list(seeds.values()))) if seeds and wrt else [None] * len(wrt)
    gin = {("gin", *t[1:]): g for t, g in zip(ports, grads) if g is not None}
    gp: dict[Tag, Value] = {("gparam", p): g for p, g in zip(dense, grads[len(ports):]) if g is not None}
    hoisted = bool(inference(block, late)[0].outputs)
    if hoisted:
        gp |= {t: gin.pop(t) for t in [*gin] if t[1] not in late}
    for k, (x, g) in enumerate(zip(found, grads[len(ports) + len(dense) :], strict=True)):
        if g is not None:
            gp["rows", k], gp["index", k] = g, x.index
    saves = _Cuts(b.leaves, outputs, {("seed", f): v for f, v in seeds.items()}, gin, gp)
    pre = ahead(b.leaves, outputs | saves.early, late) if hoisted else {}
    rest = {t: v for t, v in (outputs | saves.early).items() if t not in pre}
    return Split(job(b.leaves, pre), job({**b.leaves, **pre}, rest), saves.bwd, saves.pgrad, found)


def job(known: Mapping[Tag, Value], ends: Mapping[Tag, Value], back: bool = False) -> Job:
    """A function of what it reads of what is known; the first tag of a value counts."""
    tags: dict[Value, Tag] = {}
    for t, v in known.items():
        tags.setdefault(v, t)
    inputs = {tags[v]: v for v in postorder(list(ends.values()), stop=tags.__contains__) if v in tags}
    if ends and not any(N in v.type.shape for v in inputs.values()):  # else nothing says how many instances there are
        inputs["count",] = _leaf("count", splat(0, TensorType(np.dtype("u1"), (N,))))
    return Job(inputs, dict(ends), back)


def _leaf(name: str, like: Value) -> Value:
    return register_leaf(fresh_input(like.type), Leaf(name))


class _Cuts:
    """Cuts of the graph of forward and backward. ``early``: what forward saves, by tag."""

    def __init__(self, leaves: Mapping[Tag, Value], outputs: Mapping[Tag, Value], seeds: Mapping[Tag, Value],
                 gin: Mapping[Tag, Value], gp: Mapping[Tag, Value]):
        self.order = postorder([*gp.values(), *gin.values()])
        self.late = dependent(self.order, set(seeds.values()))
        self.varying = dependent(self.order, {*seeds.values(), *leaves.values()})
        known = dict(leaves)
        inner = set(postorder(list(gin.values())))
        last = [v for v in postorder(list(gp.values())) if v in self.late and v not in inner]
        # what is computed last, indices of rows, and what is also a cotangent of a port, is made of what comes before
        cut = self._before(last, [v for v in gp.values() if v not in set(last)], known.values())
        saved = {("saved", k): v for k, v in enumerate(cut)}
        self.pgrad = job(known | saved, gp)
        deltas = {t: v for t, v in saved.items() if v in self.late}
        ends = {**gin, **deltas}
        back = [v for v in postorder(list(ends.values())) if v in self.late]
        have = {**known, **saved, **outputs}
        cut = self._before(back, [], [v for v in have.values() if v not in self.late])
        more = {("saved", len(saved) + k): v for k, v in enumerate(cut) if v not in self.late}
        self.early = {t: v for t, v in {**saved, **more}.items() if v not in self.late}
        self.bwd = job({**known, **outputs, **self.early, **seeds}, ends, True)

    def _before(self, values: Sequence[Value], ends: Sequence[Value], free: Collection[Value]) -> list[Value]:
        """Values to be kept so that ``values`` can be computed, and ``ends`` as well."""
        free, inside = set(free), set(values)
        used = [o for v in values for o in v.operands if o in self.varying and o not in inside]
        used += [v for v in (*ends, *[v for v in values if is_free_leaf(v)]) if v in self.varying]
        wanted = [v for v in dict.fromkeys(used) if v not in free]
        order = [v for v in self.order if v in self.varying and v not in free]
        return cheapest(order, wanted, lambda v: max(size_in_bytes(v.type), 1) if _has_rows(v) else INFINITE,
                        lambda v: is_free_leaf(v) or (not is_cheap(v) and _has_rows(v)))


def _pretransposed(ends: Sequence[Value]) -> list[Value]:
    """Products with transposed states multiply with what is transposed once a step: products of few rows read a matrix
    where it lies."""
    done: dict[Value, Value] = {}
    for v in postorder(ends):
        operands = [done[o] for o in v.operands]
        if v.op is dot and is_state(v.operands[1]) and v.attrs["contract"] == ((1,), (1,)) and v.ndim == 2:
            turned = cached(transpose(operands[1], perm=(1, 0)))
            done[v] = dot(operands[0], turned, contract=((1,), (0,)), batch=((), ()))
        else:
            done[v] = v if operands == list(v.operands) else rebuild(v, operands)
    return [done[v] for v in ends]


def _has_rows(v: Value) -> bool:
    """True if a value has a row for each instance, or for each value at a ragged port, and is of known size else."""
    t: Any = v.type
    return isinstance(t, TensorType) and t.ndim > 0 and t.shape[0] in (N, M) and not any(map(names, t.shape[1:]))
