"""One order of operands inside a kernel, so that equal layers of a model are one kernel.

Canonical order goes by fingerprint, which depends on everything a value is made of: in two layers that are equal, the
factors of a product may stand either way round. Here operands and results are ordered by what they are inside the
kernel alone, and the kernel's operands by where they are first used. Swapping the operands of a commutative op
changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symc.ir.digest import blake2b
from symc.ir.text import splat_of
from symc.ir.traverse import close_over, postorder, rebuild
from symc.ir.value import Region, Value, attr_bytes


def kernel_form(reads: Iterable[Value], results: Sequence[Value]) -> tuple[list[Value], list[Value], Region]:
    """The operands of a kernel that computes ``results`` from ``reads``, the results in its order, and its region."""
    leaves = set(reads)
    inside = postorder(results, stop=leaves.__contains__)
    readers = _readers(inside, leaves)
    digests: dict[Value, bytes] = {}
    done: dict[Value, Value] = {}
    for v in inside:
        if v in leaves:
            digests[v], done[v] = _digest(f"operand {v.type} {readers[v]}", []), v
            continue
        operands = v.operands
        if "commutative" in v.op.traits:
            operands = tuple(sorted(operands, key=lambda o: (splat_of(o) is not None, digests[o])))
        digests[v] = _digest(f"{v.op.name} {v.type}", [*_attributes(v), *[digests[o] for o in operands]])
        done[v] = rebuild(v, [done[o] for o in operands])
    ordered = sorted(results, key=lambda r: digests[r])
    rebuilt = [done[r] for r in ordered]
    first = [v for v in postorder(rebuilt, stop=leaves.__contains__) if v in leaves]
    return first, ordered, close_over(first, rebuilt)


class Forms:
    """Forms of kernels, found once for those that are equal but for what they read: the layers of a model.

    The form depends on what is inside alone: on the ops, and on which value each of their operands is. So does the key;
    values are numbered as they come in postorder, what is read among them.
    """

    def __init__(self) -> None:
        self._known: dict[tuple, tuple[list[int], list[int], Region]] = {}

    def of(self, reads: Iterable[Value], results: Sequence[Value]) -> tuple[list[Value], list[Value], Region]:
        """As ``kernel_form``."""
        leaves = set(reads)
        inside = postorder(results, stop=leaves.__contains__)
        number = {v: k for k, v in enumerate(inside)}
        key = (tuple([number[r] for r in results]),
               *[v.type if v in leaves else (v.op, v.attrs, v.regions, *[number[o] for o in v.operands])
                 for v in inside])
        found = self._known.get(key)
        if found is None:
            first, ordered, region = kernel_form(leaves, results)
            found = self._known[key] = [number[v] for v in first], [number[v] for v in ordered], region
        return [inside[k] for k in found[0]], [inside[k] for k in found[1]], found[2]


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
