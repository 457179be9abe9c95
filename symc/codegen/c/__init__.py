"""Kernels and the functions that they call as C11."""
