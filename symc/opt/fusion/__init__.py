"""Fusion: which values run in one kernel, and which results a kernel gives."""
