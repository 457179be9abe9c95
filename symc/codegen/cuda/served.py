"""Kernels cut into what templates serve. Fusion puts into one kernel what one core computes best in one loop; a device
has threads for it only where a template knows how to divide it. What none serves comes apart: result by result, then
what is folded from what is made of it, then what is put from where it is put. Reading an array twice takes less time
than one thread does.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.cpu.loops import is_loop_kernel
from symc.codegen.cuda.templates import serves
from symc.ir.function import Function
from symc.ir.op import Fold
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.store import is_epilogue
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value
from symc.opt.engine.regions import in_bodies
from symc.opt.fusion.groups import space
from symc.opt.fusion.kernel_form import kernel_form
from symc.opt.fusion.kernel_results import with_kernels

#: What has no more elements than this is left to one thread.
SMALL = 64

#: A kernel of a cut: what it reads and computes, of the values of the region.
Piece = tuple[list[Value], list[Value], Region]


def serve(f: Function) -> Function:
    """The function, and the bodies in it, with every kernel cut that no template serves, where that helps."""
    pieces: dict[Region, list[Piece]] = {}

    def made(v: Value, operands: list[Value]) -> dict[int, Value] | None:
        (region,) = v.regions
        if region not in pieces:
            pieces[region] = cut(region)
        return dict(enumerate(_made(region, pieces[region], operands))) if len(pieces[region]) > 1 else None

    return in_bodies(lambda g: with_kernels(g, made), f)


def _made(region: Region, pieces: Sequence[Piece], operands: Sequence[Value]) -> list[Value]:
    """The results of a kernel, by the kernels that it was cut into."""
    there: dict[Value, Value] = dict(zip(region_params(region), operands, strict=True))
    for reads, results, body in pieces:
        new = fused(*[there[r] for r in reads], regions=[body])
        there.update(zip(results, results_of(new), strict=True))
    return [there[r] for r in region.results]


def cut(region: Region) -> list[Piece]:
    """The kernels that a kernel is cut into, in their order; one, if it stays whole."""
    if is_loop_kernel(region) or serves(region) or _is_small(region):
        return [([*region_params(region)], [*region.results], region)]
    pieces: list[Piece] = []
    for piece in _grouped(region_params(region), list(dict.fromkeys(region.results))):
        pieces += [piece] if serves(piece[2]) else _apart(*piece[:2])
    return pieces


def _apart(reads: Sequence[Value], results: Sequence[Value]) -> list[Piece]:
    """A result without the folds that it is made of, or without what makes the elements that it puts."""
    inside = postorder(results, stop=set(reads).__contains__)
    (result,) = results
    folds = [v for v in inside if isinstance(v.op.lowering, Fold) and v is not result]
    made = [o for o in result.operands if o.operands and o not in reads] if is_epilogue(result) else []
    for inner in filter(None, (folds, made)):
        pieces = _grouped(reads, [*inner, result])
        if all(serves(body) for _, _, body in pieces):
            return pieces
    return _grouped(reads, results)


def _grouped(reads: Sequence[Value], wanted: Sequence[Value]) -> list[Piece]:
    """Kernels that compute the values ``wanted``, each of as many as a template serves together. What one has made,
    later ones read."""
    groups: list[list[Value]] = []
    at: dict[Value, int] = {}

    def piece(k: int, results: Sequence[Value]) -> Piece:
        return kernel_form([*reads, *(v for v, n in at.items() if n < k)], results)

    own = set(wanted)
    for v in (v for v in postorder(wanted) if v in own):
        first = max((at[o] for o in postorder([v]) if o in at), default=0)
        k = next((k for k in reversed(range(first, len(groups))) if _serves_one(piece(k, [*groups[k], v])[2])),
                 len(groups))
        groups[k:k + 1] = [[*groups[k], v] if k < len(groups) else [v]]
        at[v] = k
    return [piece(k, group) for k, group in enumerate(groups)]


def _serves_one(region: Region) -> bool:
    """True if results are of one space, or of its rows, and a template writes their kernel."""
    rows = {v.shape for v in postorder(region.results) if isinstance(v.op.lowering, Fold)}
    return len({space(r) for r in region.results} - rows) <= 1 and serves(region)


def _is_small(region: Region) -> bool:
    sizes = [t.size for t in (*region.params, *(r.type for r in region.results)) if isinstance(t, TensorType)]
    return all(isinstance(n, int) and n <= SMALL for n in sizes)
