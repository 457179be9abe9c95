"""``sc.dist``: functions on data that outgrow a process: maps and sweeps on Dask, training on several processes.

What they need (Dask, zarr, pyarrow, mpi4py) are extras, imported where they are used; and the parts of this package are
imported when one of their names is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symc.tensors.guidance import no_name

#: Names by the module that has them.
_LAZY = {"map": "mapping", "column": "sources", "sweep": "sweeps", "Sweep": "sweeps", "Comm": "comm", "mpi": "comm",
         "nccl": "comm", "world": "comm", "local": "group", "DataParallel": "training"}

if TYPE_CHECKING:
    from symc.dist.comm import Comm, mpi, nccl, world
    from symc.dist.group import local
    from symc.dist.mapping import map_ as map
    from symc.dist.sources import column
    from symc.dist.sweeps import Sweep, sweep
    from symc.dist.training import DataParallel

__all__ = ["Comm", "DataParallel", "Sweep", "column", "local", "map", "mpi", "nccl", "sweep", "world"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise no_name("module 'sc.dist'", name, __all__, {})
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), {"map": "map_"}.get(name, name))
