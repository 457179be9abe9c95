"""Native functions written once, as LLVM: the interpreter of plans, the entry of calls, what BLAS and LAPACK lack."""
