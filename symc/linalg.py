"""``sc.linalg``: linear algebra, under the names of ``numpy.linalg`` and of what ``scipy.linalg`` has besides."""

from symc import numpy_api as _numpy_api
from symc.errors import LinAlgError
from symc.tensors.public import API as _API

#: What ``sc`` has under the same names.
_SHARED = (
    "cross",
    "kron",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "tensordot",
    "vecdot",
    "vector_norm",
)
_found = {**{_n: _API[_n] for _n in _SHARED}, **_numpy_api.LINALG}
globals().update(_found)
__all__ = ["LinAlgError", *sorted(_found)]
