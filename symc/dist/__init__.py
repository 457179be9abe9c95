"""``sc.dist``: functions on data that outgrow a process: maps and sweeps on Dask, training on several processes.

What they need (Dask, zarr, pyarrow, mpi4py) are extras, imported where they are used.
"""

from symc.dist.mapping import map_ as map
from symc.dist.sources import column

__all__ = ["column", "map"]
