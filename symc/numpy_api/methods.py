"""Methods of tensors that are functions of NumPy, with its signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import DTypeError
from symc.ir.types import as_dtype
from symc.tensors.public import API, located
from symc.tensors.tensor import Tensor

#: Methods that are the function of the same name with the tensor as first argument. (Those that write: ``updates``.)
METHODS = (
    "sum prod mean max min any all argmax argmin std var ptp cumsum cumprod ravel squeeze swapaxes repeat take dot "
    "round clip argsort conj conjugate diagonal trace nonzero searchsorted argpartition"
).split()


def _method(name: str) -> Callable:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return API[name](self, *args, **kwargs)
    call.__name__ = name
    call.__doc__ = f"``sc.{name}`` of this value."
    return call


for _name in METHODS:
    setattr(Tensor, _name, _method(_name))


def _reshape(self: Tensor, *shape: Any, order: str = "C") -> Tensor:
    """The same elements in another shape; at most one size may be -1."""
    return API["reshape"](self, shape[0] if len(shape) == 1 else shape, order=order)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """The axes in another order, reversed by default."""
    order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)) else axes
    return API["transpose"](self, order or None)


def _astype(
    self: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Tensor:
    """The value converted to another dtype, if ``casting`` allows that."""
    if casting != "unsafe" and not np.can_cast(self.dtype, as_dtype(dtype), casting):  # type: ignore[arg-type]
        raise DTypeError(f"astype: casting={casting!r} does not allow {self.dtype} to become {as_dtype(dtype)}",
                         values=[self.describe()])
    return API["astype"](self, dtype)


def _copy(self: Tensor, order: str = "C") -> Tensor:
    """The value in an array of its own."""
    return API["copy" if order in ("K", "A") else "array"](self)


Tensor.reshape = _reshape  # type: ignore[attr-defined]
Tensor.transpose = _transpose  # type: ignore[attr-defined]
Tensor.astype = located(_astype)  # type: ignore[attr-defined]
Tensor.copy = _copy  # type: ignore[attr-defined]
Tensor.flatten = lambda self, order="C": API["flatten"](self, order=order)  # type: ignore[attr-defined]
