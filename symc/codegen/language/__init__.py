"""The language of kernels and of the functions that they call: statements and scalars as Python's syntax has them.

What belongs to it is in ``docs/architecture/kernels.md``; texts are read by every compiler of kernels (LLVM, Numba) and
printed as C++ and C.
"""
