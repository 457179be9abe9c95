"""One order of operands inside a kernel, so that equal layers of a model are one kernel.

Canonical order goes by fingerprint, which depends on everything a value is made of: in two layers that are equal, the
factors of a product may stand either way round. Here operands are ordered by what they are inside the kernel alone,
and the kernel's operands by where they are first used. Swapping the operands of a commutative op changes no bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from symc.ir.text import splat_of
from symc.ir.traverse import close_over, postorder, rebuild
from symc.ir.value import Region, Value, attr_bytes


def kernel_form(reads: Iterable[Value], results: Sequence[Value]) -> tuple[list[Value], Region]:
    """The operands and the region of a kernel that computes ``results`` from ``reads``."""
    leaves = set(reads)
    digests: dict[Value, bytes] = {}
    done: dict[Value, Value] = {}
    for v in postorder(results, stop=leaves.__contains__):
        operands = () if v in leaves else v.operands
        if "commutative" in v.op.traits and operands:
            operands = tuple(sorted(operands, key=lambda o: (splat_of(o) is not None, digests[o])))
        digests[v] = _digest(v, [digests[o] for o in operands], v in leaves)
        done[v] = v if v in leaves else rebuild(v, [done[o] for o in operands])
    ordered = [done[r] for r in results]
    first = [v for v in postorder(ordered, stop=leaves.__contains__) if v in leaves]
    return first, close_over(first, ordered)


def _digest(v: Value, operands: Sequence[bytes], leaf: bool) -> bytes:
    """What ``v`` is inside the kernel: of an operand of the kernel only the type is known."""
    h = hashlib.blake2b(f"{'operand' if leaf else v.op.name} {v.type}".encode(), digest_size=8)
    if not leaf:
        for name, entry in v.attrs.items():
            h.update(name.encode() + attr_bytes(entry))
        for r in v.regions:
            h.update(r.fingerprint)
        for d in operands:
            h.update(d)
    return h.digest()
