"""Kernels as loops over scalars, in the IR: what all backends print."""
