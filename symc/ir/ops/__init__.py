"""All op records. Importing this package registers every one of them; each family is one file."""

from importlib import import_module

from symc.ir.op import seal

#: The families, in the order in which the documentation shows them.
FAMILIES = tuple(import_module(f"{__name__}.{family}") for family in """
    leaf cast compare logic arithmetic math grad_control shape ensure cumulative reduce softmax linalg gemm windows
    conv pool factor solve banded determinant spectral block_forms matrix_functions fourier index dynamic_slice sort
    search places random special bessel hypergeometric complex_functions control call remat cached implicit effect
    collective assume kernel sparse store loop
""".split())

seal()
