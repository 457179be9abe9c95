"""Folds that are complete when their kernel ends: sums down the columns of what the kernel computes row by row.

A kernel runs over its space row by row. Folds along the last axes are complete with their row, and the row can use
them. A fold over the first axes (the gradient of a bias, or of the scale of a layer norm) can still be computed on the
way: every element is added to the result, which is a row in memory and stays in the cache. Nothing in the kernel reads
it. So the arrays that the kernel reads are read once, and what only the sums need is written nowhere.

Alone, folds over the first axes are computed in blocks of columns (``symc.codegen.cpu.columns``), which is faster where
a row of results is long.
"""

from __future__ import annotations

from collections.abc import Iterable

from symc.ir.dim import Size, product
from symc.ir.dtypes import is_narrow
from symc.ir.op import Fold
from symc.ir.ops.reduce import gives_place
from symc.ir.traverse import postorder
from symc.ir.value import Region, Value

#: As many elements stay in the cache beside the row that is read.
MOST = 16384
#: Loops along fewer elements than this are not worth giving up the one loop over all that a kernel without folds is.
LEAST = 16


def trailing(shape: tuple[Size, ...], axes: tuple[int, ...] | None) -> bool:
    """Folds over ``axes`` reduce the last axes of ``shape``: their results are rows that can be used again."""
    return axes is not None and axes == tuple(range(len(shape) - len(axes), len(shape)))


def can_be_column_fold(v: Value, rows: bool) -> bool:
    """True if a fold may be computed beside rows, and is worth it. ``rows``: there are folds along the last axes."""
    form, axes, shape = v.op.lowering, v.attrs["axes"], v.operands[0].shape
    if not isinstance(form, Fold) or gives_place(form.kind) or v.dtype.kind == "c" or is_narrow(v.dtype):
        return False
    if axes != tuple(range(len(axes))) or len(axes) == len(shape):
        return False
    columns = product(v.shape)
    return not isinstance(columns, int) or columns <= MOST and (rows or columns >= LEAST)


def column_folds(region: Region) -> frozenset[Value]:
    """The results of a kernel's region that are column folds."""
    values = postorder(region.results)
    folds = [v for v in values if isinstance(v.op.lowering, Fold)]
    early = {v for v in folds if trailing(v.operands[0].shape, v.attrs["axes"])}
    apart = {v.attrs["axes"] for v in folds if v not in early}
    alone = not early and len(apart) == 1 and all(isinstance(r.op.lowering, Fold) for r in region.results)
    return frozenset() if alone else frozenset(v for v in folds if v not in early)


def axes_together(shape: tuple[Size, ...], found: Iterable[tuple[int, ...]], folds: Iterable[Value], mixed: bool,
                  ) -> tuple[bool, tuple[int, ...] | None]:
    """Tests whether one kernel over ``shape`` can compute folds over each of the axes ``found``; its own axes then.

    ``folds``: all of these folds; ``mixed``: some are column folds in any case.
    """
    kinds = dict.fromkeys(found)
    early = [a for a in kinds if trailing(shape, a)]
    if len(early) > 1:
        return False, None
    if len(kinds) <= 1 and (early or not mixed):
        return True, next(iter(kinds), None)
    own = early[0] if early else None
    return all(can_be_column_fold(v, own is not None) for v in folds if v.attrs["axes"] != own), own
