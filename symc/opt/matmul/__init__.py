"""Products of matrices: which become one, in which order chains are multiplied, what BLAS computes."""
