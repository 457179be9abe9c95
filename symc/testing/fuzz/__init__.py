"""Differential fuzzing: random programs, every way there is to run them, and what to do with those that disagree.

``python -m symc fuzz --minutes 5`` runs it. ``generators`` makes programs (of ops, of left sides of rules, in NumPy's
manner, with loops), ``checks`` runs one every way and compares, ``campaign`` goes through many, keeps count of what was
reached, aims at what was not, and makes failing programs small.
"""

from symc.testing.fuzz.straight import random_arrays, random_function

__all__ = ["random_arrays", "random_function"]
