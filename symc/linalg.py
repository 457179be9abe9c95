"""``sc.linalg``: the linear algebra functions, under the names of ``numpy.linalg``."""

from symc import numpy_api as _functions
from symc.public import API as _API

NAMES = (
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
)
globals().update({_n: _API[_n] for _n in NAMES})
__all__ = list(NAMES)
assert _functions
