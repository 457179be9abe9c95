"""Operands whose buffer a result may be written over. The facts only; whether it happens is decided by bufferize."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from symc.codegen.kernel.names import is_kernel
from symc.ir.op import PackedConcat, Update
from symc.ir.ops.gemm import gemm
from symc.ir.ops.store import is_epilogue
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value
from symc.opt.fusion.kernel_ops import reads_element, reads_lines

Pairs = Sequence[tuple[int, int]]  # (operand index, result index)

_of_region: weakref.WeakKeyDictionary[Region, Pairs] = weakref.WeakKeyDictionary()


def inplace_pairs(v: Value) -> Pairs:
    """All ``(k, r)`` such that ``v`` is right when result r lies in the memory of operand k."""
    if is_kernel(v):
        return (*fused_pairs(v), *shared_pairs(v.regions[0]))
    if v.op is gemm:
        return ((2, 0),) if v.attrs["beta"] else ()  # what is added; not what is multiplied
    if "updates_first_operand" in v.op.traits:
        return ((0, 0),)
    if "elementwise" in v.op.traits and not isinstance(v.type, TupleType):
        return tuple((k, 0) for k, o in enumerate(v.operands) if o.type is v.type)
    return ()


def fused_pairs(v: Value) -> Pairs:
    """Pairs of a kernel: element i of the operand is read for element i of the result alone, before that is written.

    What else the kernel reads, and in which loops, does not matter: it lies elsewhere. The compiler may take loops
    apart, one for each result in any order (pointers are ``noalias``). So a result is written over an operand only if
    no other result depends on it; or if the text of the kernel says so (``shared_pairs``).
    """
    (region,) = v.regions
    return region_pairs(region)


def region_pairs(region: Region) -> Pairs:
    """Pairs of a kernel, from its region."""
    found = _of_region.get(region)
    if found is None:
        found = _of_region[region] = () if _looks_twice(region) else _flat_pairs(region)
    return found


def _looks_twice(region: Region) -> bool:
    """True if operands must outlive a kernel that fails: the reference runs again to say why, and may
    find that a check of floats holds after all."""
    return any({"checks", "elementwise"} <= v.op.traits or any(map(_looks_twice, v.regions))
               for v in postorder(region.results))


def overwritten(region: Region) -> set[int]:
    """The operands of a kernel in whose memory a result may lie."""
    return {k for k, _ in (*region_pairs(region), *shared_pairs(region))}


def _flat_pairs(region: Region) -> Pairs:
    values = postorder(region.results)
    if any(is_epilogue(r) for r in region.results):
        return _end_pairs(region, values)
    params = region_params(region)
    reach: dict[Value, int] = {p: 1 << k for k, p in enumerate(params)}  # which params a value depends on, as bits
    elsewhere = 0  # the params that are read at other indices than that at which a result is made: folded, moved
    for v in values:
        if v not in reach:
            reach[v] = 0
            for o in v.operands:
                reach[v] |= reach[o]
            if "elementwise" not in v.op.traits:
                elsewhere |= reach[v]
    out = []
    for k, p in enumerate(params):
        readers = [r for r, result in enumerate(region.results) if reach[result] >> k & 1]
        if len(readers) == 1 and not elsewhere >> k & 1 and p.type is region.results[readers[0]].type:
            out.append((k, readers[0]))
    return tuple(out)


_shared: weakref.WeakKeyDictionary[Region, Pairs] = weakref.WeakKeyDictionary()


def shared_pairs(region: Region) -> Pairs:
    """Pairs of a kernel that is one loop over elements, of operands that several results depend on: all of an element
    is read before anything of it is written. The kernel has to know of them: it reads such an operand where it writes.
    """
    found = _shared.get(region)
    if found is None:
        found = _shared[region] = _shared_pairs(region)
    return found


def _shared_pairs(region: Region) -> Pairs:
    values, results = postorder(region.results), region.results
    alone = region_pairs(region)
    shapes = {r.type.shape for r in results if isinstance(r.type, TensorType)}
    if len(results) < 2 or len(shapes) > 1 or _looks_twice(region) or any(
            v.operands and "elementwise" not in v.op.traits and not _repeats_scalar(v) for v in values):
        return ()
    params = region_params(region)
    return tuple((k, r) for k, p in enumerate(params) for r, result in enumerate(results)
                 if p.type is result.type and p in values and (k, r) not in alone)


def _end_pairs(region: Region, values: Sequence[Value]) -> Pairs:
    """An update goes over what it updates, if nothing else reads that, but elements that are all read before one is
    written; a running sum, or what is sorted, over what it reads in step."""
    params = region_params(region)
    ends = [r for r in region.results if is_epilogue(r)]
    out = []
    for r, result in enumerate(region.results):
        if isinstance(result.op.lowering, Update):
            read = list(region.results)
            for v in values:
                read += v.operands[1:] if len(ends) == 1 and reads_element(v, result) else v.operands
            out += [(k, r) for k, p in enumerate(params) if p is result.operands[0] and read.count(p) == 1]
        elif isinstance(result.op.lowering, PackedConcat):
            continue
        elif len(region.results) == 1 and not reads_lines(result) and all(
                not v.operands or v is result or "elementwise" in v.op.traits or _repeats_scalar(v) for v in values):
            out += [(k, 0) for k, p in enumerate(params) if p.type is result.type]
    return tuple(out)


def updated_params(region: Region) -> dict[int, int]:
    """Results that are updates of a param -> that param's number."""
    params = region_params(region)
    return {r: params.index(v.operands[0]) for r, v in enumerate(region.results)
            if isinstance(v.op.lowering, Update) and v.operands[0] in params}


def _repeats_scalar(v: Value) -> bool:
    return v.op.name == "broadcast" and not v.operands[0].shape
