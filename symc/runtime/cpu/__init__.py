"""Plans on the CPU: lowered to code of the native interpreter, run with kernels, BLAS and LAPACK by pointer."""
