"""``sc.sparse``: sparse matrices in compiled functions, as SciPy has them.

A sparse value is a record of dense ones: its pattern and the numbers at it. So whatever the compiler does with arrays
it does with these, and nothing is made dense but by ``toarray``.
"""

from symc.sparse.formats import COO, CSC, CSR
from symc.sparse.jacobians import hessian, jacobian, jacobian_pattern
from symc.sparse.make import asarray, coo, csc, csr, diags, fromdense, input, sampled
from symc.sparse.value import SparseValue

__all__ = ["COO", "CSC", "CSR", "SparseValue", "asarray", "coo", "csc", "csr", "diags", "fromdense", "hessian", "input",
           "jacobian", "jacobian_pattern", "sampled"]
