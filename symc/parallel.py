"""``sc.parallel``: programs on several devices, each of which has a part of a batch.

``sc.compile(..., device=("cuda:0", "cuda:1"), split="n")`` runs a function on all of them. Inside, sizes are those of a
part; ``all_reduce`` joins what the devices have computed. On one device, and on the CPU, it does nothing.
"""

from __future__ import annotations

from typing import Any

from symc.errors import DTypeError, InputError, did_you_mean
from symc.ir.ops.collective import KINDS
from symc.ir.ops.collective import all_reduce as reduce_op
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.tensor import Tensor

__all__ = ["all_reduce"]


@located
def all_reduce(x: Any, kind: str = "add") -> Tensor:
    """``x`` of all devices, made one element by element: the sum ("add"), "mean", "maximum" or "minimum". It is the
    same on all of them, and ``x`` itself where there is one.

    Derivatives are those of what all devices compute together: whether ``loss`` is reduced or not,
    ``all_reduce(grad(loss, w), "mean")`` is the gradient of ``all_reduce(loss, "mean")``.
    """
    if kind not in KINDS:
        raise InputError(f"all_reduce: unknown kind {kind!r}", help=did_you_mean(str(kind), list(KINDS)))
    t = as_tensor(x)
    if t.dtype.kind not in KINDS[kind]:
        raise DTypeError(f"all_reduce: numbers of dtype {t.dtype} have no {kind!r}", values=[t.describe("x")],
                         help="convert them first: x.astype('float32')")
    return Tensor(reduce_op(t.value, kind=kind), t.weak)
