"""Gradients of tables that stay rows: which rows of a lookup table were read, and the gradients of those.

The gradient of ``table[index]`` by the table is zero but for the rows in ``index``. As ``SparseRows`` it is these rows,
of which some may be there twice; nothing of the table's size is made of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import DTypeError, ShapeError
from symc.ir.traverse import postorder
from symc.numpy_api.promotion import rows as described
from symc.tensors.convert import as_tensor
from symc.tensors.tensor import Tensor


class SparseRows:
    """The gradient of a table: ``values[k]`` belongs to row ``rows[k]``; a row may be there several times.

    ``rows`` are integers of any shape, ``values`` has that shape and then the shape of a row.
    """

    def __init__(self, rows: Any, values: Any):
        index, given = as_tensor(rows), as_tensor(values)
        if index.dtype.kind not in "iu":
            raise DTypeError("SparseRows: rows are integers", values=described([index, given]))
        if given.ndim < index.ndim:
            raise ShapeError("SparseRows: the values do not begin with the shape of the rows",
                             values=described([index, given]), help="values[k] is the gradient of row rows[k]")
        self.rows: Tensor = xp.reshape(index, (-1,))
        self.values: Tensor = xp.reshape(given, (-1, *given.shape[index.ndim :]))
        #: What the rows of the table were, where they are known to be other than in the state; a slot by its name.
        self.current: dict[str, Tensor] | None = None
        self.first: Tensor | None = None

    def __repr__(self) -> str:
        return f"SparseRows({self.rows.value.type}, {self.values.value.type})"

    def summed(self, n: int) -> SparseRows:
        """The same gradient with rows in order, and at each the sum of all that it is given; ``first`` is true at the
        first of equal rows. Rows below 0 count from the end of the ``n``."""
        if self.first is not None:
            return self
        index = xp.where(self.rows < 0, self.rows + n, self.rows)
        order = xp.argsort(index)
        index = index[order]
        count = xp.arange(index.shape[0])
        out = SparseRows(index, self.values)
        out.first = xp.logical_or(count == 0, index != index[xp.maximum(count - 1, 0)])
        place = xp.cumsum(xp.astype(out.first, np.int64)) - 1
        total = xp.zeros(self.values.shape, self.values.dtype).at[place].add(self.values[order])
        out.values = total[place]
        if self.current is not None:
            out.current = {name: x[order] for name, x in self.current.items()}
        return out

    def squares(self) -> Tensor:
        """The sum of the squares of the gradient; of one that is summed."""
        assert self.first is not None
        weight = xp.reshape(xp.astype(self.first, self.values.dtype), (-1, *[1] * (self.values.ndim - 1)))
        return xp.sum(self.values * self.values * weight)

    def changed(self, f: Any) -> SparseRows:
        """With other values; of one that is summed."""
        out = SparseRows(self.rows, f(self.values))
        out.first, out.current = self.first, self.current
        return out


def gathers(loss: Tensor, table: Tensor) -> list[Tensor] | None:
    """The values ``table[index]`` that a loss is made of, or None where it reads the table in another way."""
    found = []
    for v in postorder([loss.value]):
        if table.value in v.operands:
            if v.op.name != "gather" or v.attrs["axes"] != (0,) or table.value in v.operands[1:]:
                return None
            found.append(Tensor(v))
    return found or None


def index_of(gather: Tensor) -> Tensor:
    """The index of a value ``table[index]``."""
    return Tensor(gather.value.operands[1])
