"""All op records. Importing this package registers every one of them; each family is one file."""

from symc.ir.ops import arithmetic, cast, leaf, linalg, reduce, shape

__all__ = ["arithmetic", "cast", "leaf", "linalg", "reduce", "shape"]
