"""NumPy's ``ufunc.accumulate`` of ufuncs that have no op for it: a loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import SymbolicValueError
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor
from symc.tensors.public import API
from symc.transforms.control import scan


def accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Results of a ufunc over the first, the first two, ... elements along an axis."""
    name, x = ufunc.__name__, as_tensor(array)
    x = x if dtype is None else API["astype"](x, dtype)
    if not x.ndim or API[name](x, x).dtype != x.dtype:
        raise SymbolicValueError(f"np.{name}.accumulate takes values with an axis, and of a dtype that it keeps",
                                 values=rows([x]), help="convert the operand by astype")

    def step(so_far: tuple[Any, Any], row: Any) -> tuple[tuple[Any, Any], Any]:
        new = API["where"](so_far[1], row, API[name](so_far[0], row))
        return (new, API["asarray"](False)), new

    along = API["moveaxis"](x, axis, 0)
    first = API["zeros"](along.shape[1:], x.dtype)  # which no row sees: there may be no rows
    return API["moveaxis"](scan(step, (first, API["asarray"](True)), along)[1], 0, axis)
