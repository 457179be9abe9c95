"""``vmap`` of a graph (``symc.ir.batch``), under the name that it has beside ``jvp`` and ``vjp``."""

from symc.ir.batch import vmap

__all__ = ["vmap"]
