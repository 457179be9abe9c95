"""All op records. Importing this package registers every one of them; each family is one file."""

from symc.ir.ops import arithmetic, cast, compare, cumulative, leaf, linalg, logic, math, reduce, shape

__all__ = ["arithmetic", "cast", "compare", "cumulative", "leaf", "linalg", "logic", "math", "reduce", "shape"]
