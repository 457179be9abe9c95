"""One order of operands inside a kernel, so that equal layers of a model are one kernel.

Canonical order goes by fingerprint, which depends on everything a value is made of: in two layers that are equal, the
factors of a product may stand either way round. Here operands and results are ordered by what they are inside the
kernel alone, and the kernel's operands by where they are first used. Swapping the operands of a commutative op
changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from symc.ir.digest import blake2b
from symc.ir.text import splat_of
from symc.ir.traverse import postorder, rebuild
from symc.ir.value import Region, Value, attr_bytes, param


def kernel_form(reads: Iterable[Value], results: Sequence[Value]) -> tuple[list[Value], list[Value], Region]:
    """The operands of a kernel that computes ``results`` from ``reads``, the results in its order, and its region."""
    return Forms().of(reads, results)


class Forms:
    """Forms of kernels, found once for those that are equal but for what they read: the layers of a model.

    The form depends on what is inside alone: on the ops, and on which value each of their operands is. So does the key;
    values are numbered as they come, operands first, what is read among them. Where factors stand the other way round
    it is another key, but regions are made once.
    """

    def __init__(self) -> None:
        self._known: dict[tuple, tuple[list[int], list[int], Region]] = {}
        self._regions: dict[tuple, Region] = {}

    def of(self, reads: Iterable[Value], results: Sequence[Value]) -> tuple[list[Value], list[Value], Region]:
        """As ``kernel_form``."""
        leaves = set(reads)
        inside = postorder(results, stop=leaves.__contains__)
        number, key = _key(inside, leaves, results, None)
        found = self._known.get(key)
        if found is None:
            first, ordered, region = self._form(inside, leaves, results)
            found = self._known[key] = [number[v] for v in first], [number[v] for v in ordered], region
        return [inside[k] for k in found[0]], [inside[k] for k in found[1]], found[2]

    def _form(self, inside: Sequence[Value], leaves: set[Value], results: Sequence[Value],
              ) -> tuple[list[Value], list[Value], Region]:  # fmt: skip
        below, digests = _in_order(inside, leaves)
        ordered = sorted(results, key=digests.__getitem__)
        inside = _operands_first(ordered, below)
        first = [v for v in inside if v in leaves]
        _, key = _key(inside, leaves, ordered, below)
        region = self._regions.get(key)
        if region is None:
            done = {v: param(k, v.type) for k, v in enumerate(first)}
            for v in inside:
                if v not in done:
                    done[v] = rebuild(v, [done[o] for o in below[v]])
            region = self._regions[key] = Region([v.type for v in first], [done[r] for r in ordered])
        return first, ordered, region


def _key(inside: Sequence[Value], leaves: set[Value], results: Sequence[Value],
         below: Mapping[Value, Sequence[Value]] | None) -> tuple[dict[Value, int], tuple]:
    """The numbers of values, and all that a kernel is, by them. ``below``: operands in another order."""
    number = {v: k for k, v in enumerate(inside)}
    return number, (
        tuple([number[r] for r in results]),
        *[v.type if v in leaves else
          (v.op, v.attrs, v.regions, *[number[o] for o in (v.operands if below is None else below[v])])
          for v in inside])


def _in_order(inside: Sequence[Value], leaves: set[Value]) -> tuple[dict[Value, tuple[Value, ...]], dict[Value, bytes]]:
    """For each value of a kernel its operands, those of a commutative op in order; and what it is there."""
    readers = _readers(inside, leaves)
    digests: dict[Value, bytes] = {}
    below: dict[Value, tuple[Value, ...]] = {}
    for v in inside:
        if v in leaves:
            digests[v], below[v] = _digest(f"operand {v.type} {readers[v]}", []), ()
            continue
        operands = v.operands
        if len(operands) > 1 and "commutative" in v.op.traits:
            operands = tuple(sorted(operands, key=lambda o: (splat_of(o) is not None, digests[o])))
        digests[v] = _digest(f"{v.op.name} {v.type}", [*_attributes(v), *[digests[o] for o in operands]])
        below[v] = operands
    return below, digests


def _operands_first(roots: Sequence[Value], below: Mapping[Value, Sequence[Value]]) -> list[Value]:
    """``postorder`` of operands that are in another order."""
    out: dict[Value, None] = {}
    stack = list(roots)[::-1]
    while stack:
        v = stack[-1]
        waiting = [o for o in below[v] if o not in out]
        if waiting:
            stack.append(waiting[0])
        else:
            out[stack.pop()] = None
    return list(out)


def _readers(inside: Sequence[Value], leaves: set[Value]) -> dict[Value, list[str]]:
    """The ops that read each operand of the kernel: what tells operands of one type apart."""
    out: dict[Value, list[str]] = {v: [] for v in inside if v in leaves}
    for v in inside:
        if v not in leaves:
            for o in v.operands:
                if o in out:
                    out[o].append(v.op.name)
    return {v: sorted(names) for v, names in out.items()}


def _attributes(v: Value) -> Iterable[bytes]:
    for name, entry in v.attrs.items():
        yield name.encode() + attr_bytes(entry)
    for r in v.regions:
        yield r.fingerprint


def _digest(head: str, parts: Iterable[bytes]) -> bytes:
    h = blake2b(head.encode(), digest_size=8)
    for part in parts:
        h.update(part)
    return h.digest()
