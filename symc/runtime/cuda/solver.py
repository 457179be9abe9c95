"""Linear algebra and Fourier transforms on a device: what a value of a plan becomes at given sizes.

Of Cholesky, LU, QR and triangular systems blocks of ``WIDTH`` rows or columns are done by kernels of our own, the rest
is products of matrices (cuBLAS): everything is an action of the plan as any other, without the host, in a graph.
Eigenvalues and singular values are cuSOLVER's; it may wait for the host, so a plan with them is not captured. Arrays
are taken as they lie, by rows. What has no result raises a flag, as a check in a kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symc.codegen.cuda.matrices import PARTS, REALS, entries_of, text_of
from symc.ir.plan import Plan
from symc.ir.value import Value
from symc.runtime.cuda import factor, fourier, spectral
from symc.runtime.cuda.device import Kernel, Signature
from symc.runtime.cuda.lowering import DeviceLowering
from symc.runtime.cuda.matrices import Emitter, Recipe


def recipes() -> Mapping[str, Recipe]:
    """Recipes of the ops."""
    return {**factor.RECIPES, **spectral.RECIPES, **fourier.RECIPES}


def is_solved(v: Value) -> bool:
    """True if a value is linear algebra, or a transform, that a device does."""
    return v.op.name in PARTS and v.operands[0].dtype.char in REALS


def key(v: Value) -> tuple[str, str]:
    """Key that values with the same kernels have in common."""
    return v.op.name, v.operands[0].dtype.char


def text(v: Value) -> str:
    """The kernels that a value needs, to be read."""
    return "".join(PARTS[v.op.name])


def load(v: Value, kernels: Callable[[str, list[Signature]], Mapping[str, Kernel]]) -> Mapping[str, Kernel]:
    """The kernels that a value needs. ``kernels``: compiles and loads a text."""
    declared = [Signature(name, (8,) * count) for name, (count, _) in entries_of(v.op.name).items()]
    return kernels(text_of((v.op.name,), v.operands[0].dtype), declared)


def lower_solver(lowering: DeviceLowering, plan: Plan, v: Value, reads: Sequence[int], writes: Sequence[int],
                 kernels: Mapping[str, Kernel]) -> None:
    """The actions of a value."""
    e = Emitter(lowering, plan, v, reads, writes, kernels)
    if e.count:
        recipes()[v.op.name](e)
