"""Questions about dtypes, with NumPy's answers. Tensors take part with their dtype, weak ones as Python numbers do."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.ir.dtypes import finfo as finfo_of
from symc.ir.dtypes import foreign, is_dtype, is_foreign
from symc.ir.types import DTYPES, as_dtype
from symc.numpy_api.promotion import common_dtype, promoted
from symc.tensors.convert import as_tensor, default_complex, default_float
from symc.tensors.public import public
from symc.tensors.tensor import Tensor


def _dtype(item: Any) -> np.dtype:
    return item.dtype if isinstance(item, Tensor) else as_dtype(item)


@public(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that operands (tensors, arrays, numbers, dtypes) are promoted to."""
    tensors = [
        as_tensor(np.empty((), as_dtype(a))) if isinstance(a, type | str) or is_dtype(a) else as_tensor(a)
        for a in arrays_and_dtypes
    ]
    return common_dtype(tensors)


@public(np.can_cast)
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """True if a dtype (or that of a tensor) can be cast to another under a rule of NumPy."""
    return bool(np.can_cast(_dtype(from_), _dtype(to), casting))  # type: ignore[arg-type]


@public(np.common_type)
def common_type(*arrays: Any) -> Any:
    """The inexact scalar type that all operands fit."""
    return np.common_type(*[np.empty((), as_tensor(a).dtype) for a in arrays])


def _asked(item: Any) -> Any:
    return item.dtype if isinstance(item, Tensor) else foreign(item) or item


@public()
def promote_types(type1: Any, type2: Any) -> np.dtype:
    """The dtype that two dtypes are promoted to."""
    kinds = _asked(type1), _asked(type2)
    return promoted(tuple(map(as_dtype, kinds))) if any(map(is_foreign, kinds)) else np.promote_types(*kinds)


@public()
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """True if a dtype is of a kind, or another one, in NumPy's hierarchy of types."""
    d, kind = _asked(arg1), _asked(arg2)
    if is_foreign(d) and not is_foreign(kind):
        return isinstance(kind, type) and issubclass(np.floating, kind)
    return bool(d == kind if is_foreign(kind) else np.issubdtype(d, kind))


@public(np.min_scalar_type)
def min_scalar_type(a: Any) -> np.dtype:
    """The smallest dtype that holds a number; of a tensor its dtype, as its numbers are not known."""
    return a.dtype if isinstance(a, Tensor) else np.min_scalar_type(a)


@public()
def isscalar(element: Any) -> bool:
    """True if something is a Python or NumPy number; a tensor is not, whatever its axes."""
    return bool(np.isscalar(element))


@public()
def iterable(y: Any) -> bool:
    """True if something can be iterated over: a tensor, if its first axis has a known size."""
    return y.ndim > 0 and isinstance(y.shape[0], int) if isinstance(y, Tensor) else bool(np.iterable(y))


@public()
def isdtype(dtype: Any, kind: Any) -> bool:
    """True if a dtype is of a kind of the array API, or one of several."""
    d, kinds = as_dtype(dtype), kind if isinstance(kind, tuple) else (kind,)
    if is_foreign(d):
        return any(k in ("real floating", "numeric") if isinstance(k, str) else d == k for k in kinds)
    return bool(np.isdtype(d, tuple([k for k in kinds if not is_foreign(k)])))


@public()
def finfo(type: Any, /) -> Any:
    """The limits of a floating dtype."""
    return finfo_of(_dtype(type))


@public()
def iinfo(type: Any, /) -> np.iinfo:
    """The limits of an integer dtype."""
    return np.iinfo(_dtype(type))


class NamespaceInfo:
    """Questions that the array API lets programs ask about a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Abilities of the namespace: masks and sizes that are data have all of them, ranks go up to NumPy's limit."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return "symbolic"

    def devices(self) -> list[str]:
        return ["symbolic"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes that Python numbers become."""
        return {
            "real floating": default_float(),
            "complex floating": default_complex(),
            "integral": DTYPES["i64"],
            "indexing": DTYPES["i64"],
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes of the standard by name, all or those of a kind. (Half precision is not in it.)"""
        found = {d.name: d for d in DTYPES.values() if d.kind not in "fc" or d.itemsize > 2}
        return {n: d for n, d in found.items() if kind is None or np.isdtype(d, kind)}


@public(name="__array_namespace_info__")
def array_namespace_info() -> NamespaceInfo:
    """Questions that the array API lets programs ask about this namespace."""
    return NamespaceInfo()
