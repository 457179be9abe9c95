"""From the text of a kernel to machine code: LLVM by a small compiler of our own, and Numba."""
