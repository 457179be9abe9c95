"""The rules, one file a family. Importing this package registers all of them; README.md says how to write one."""

from symc.opt import canonicalize  # isort: skip  (patterns are normalised by it, so it comes first)
from symc.opt.rules import (
    algebra,
    branches,
    concats,
    debug,
    indexing,
    linalg,
    logic,
    lookups,
    packing,
    reads,
    remat,
    select,
    shapes,
    sinking,
    slices,
    softmax,
    sparse,
    stability,
    writes,
)

__all__ = [
    "algebra", "branches", "canonicalize", "concats", "debug", "indexing", "linalg", "logic", "lookups", "packing", "reads",
    "remat", "select", "shapes", "sinking", "slices", "softmax", "sparse", "stability", "writes",
]  # fmt: skip
