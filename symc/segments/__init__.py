"""Ragged values: rows of any lengths, one after the other, and functions of each row.

A ragged value is a record of two tensors, as a sparse one is: whatever the compiler does with arrays it does with it.
"""
