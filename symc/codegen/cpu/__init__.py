"""Kernels for the CPU: their text, a small typed subset of Python that LLVM's and Numba's compilers both read."""
