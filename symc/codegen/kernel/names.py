"""Names of generated kernels: readable first, unique by the digest of what the kernel computes."""

from __future__ import annotations

from symc.ir.traverse import postorder
from symc.ir.value import Region, Value

#: How many op names a kernel's name spells out.
SPELLED = 3


def is_kernel(v: Value) -> bool:
    """True if a generated kernel computes ``v``."""
    return v.op.name == "fused"


def kernel_name(v: Value) -> str:
    """``mul_add_1a2b3c4d``: the ops that say most about a kernel, in their order, and its region's digest."""
    (region,) = v.regions
    return region_name(region)


def region_name(region: Region) -> str:
    """The same of what a kernel computes."""
    return "_".join([*significant_ops(region), region.fingerprint.hex()[:8]])


def significant_ops(region: Region) -> list[str]:
    """Up to three names of distinct ops: structured ones first, then functions of one operand, then the others."""
    names: dict[str, int] = {}
    for v in postorder(region.results):
        if v.operands and v.op.name != "get" and not {"movement", "cast"} & (v.op.traits | {v.op.name}):
            names.setdefault(v.op.name, _rank(v))
    kept = sorted(names, key=lambda n: names[n])[:SPELLED]  # stable: in the region's order among equals
    return [n for n in names if n in kept] or ["fill" if not region.params else "copy"]


def _rank(v: Value) -> int:
    if "elementwise" not in v.op.traits:
        return 0
    return 1 if len(v.operands) == 1 and "involution" not in v.op.traits else 2
