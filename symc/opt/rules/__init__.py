"""The rules, one file a family. Importing this package registers all of them; README.md says how to write one."""

from symc.opt import canonicalize  # isort: skip  (patterns are normalised by it, so it comes first)
from symc.opt.rules import algebra, debug, linalg, remat, select, shapes, sinking, softmax, stability

__all__ = ["algebra", "canonicalize", "debug", "linalg", "remat", "select", "shapes", "sinking", "softmax", "stability"]
