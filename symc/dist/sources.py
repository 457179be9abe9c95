"""Arguments of ``dist.map``: arrays that need not fit into memory, and how a block of them is read.

A path is read where the block is computed: what travels is the path. Readers are small objects that pickle.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from symc.driver.saved_file import JUNK
from symc.errors import InputError, SymcError, did_you_mean
from symc.ir.record import dataclass, field
from symc.ir.types import as_dtype

Slices = tuple[slice, ...]


def needed(module: str, extra: str, what: str) -> Any:
    """A package of an extra. Raises InputError where it is not installed."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise InputError(f"{what} needs {module.partition('.')[0]}: {e}",
                         help=f"pip install 'symc[{extra}]'") from None


@dataclass(frozen=True, eq=False)
class Source:
    """An argument: its type, ``chunks`` as it has them along each axis (one, where it has none of its own), and
    ``grain``, along each axis what is read at once. ``dask``: the collection, of one of Dask's; else ``read(slices)``.
    ``token`` tells it from others.
    """

    label: str
    dtype: np.dtype
    shape: tuple[int, ...]
    chunks: tuple[tuple[int, ...], ...]
    grain: tuple[int, ...]
    token: Any
    dask: Any = None
    read: Callable[[Slices], np.ndarray] | None = None
    embedded: bool = False

    def stand_in(self) -> np.ndarray:
        """An array of this type that takes no memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)


@dataclass(frozen=True)
class Lazy:
    """A block that is read in the task that computes with it."""

    read: Callable[[Slices], np.ndarray]
    where: Slices

    def array(self) -> np.ndarray:
        return np.ascontiguousarray(self.read(self.where))


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Npy:
    """A .npy file, or the file that a ``numpy.memmap`` is of."""

    path: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    offset: int = 0
    order: str = "C"

    def open(self) -> np.ndarray:
        if self.dtype:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)  # type: ignore
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def __call__(self, where: Slices) -> np.ndarray:
        return np.array(self.open()[where])


@dataclass(frozen=True)
class Zarr:
    """A zarr array of a store on disk."""

    path: str
    part: str

    def open(self) -> Any:
        zarr = needed("zarr", "dask", "a zarr store")
        return zarr.open_array(self.path, mode="r", **({"path": self.part} if self.part else {}))

    def __call__(self, where: Slices) -> np.ndarray:
        return np.asarray(self.open()[where])


@dataclass(frozen=True, eq=False)
class Parquet:
    """Columns of Parquet files. ``starts``: the first row of each row group, with its file and number, then the end."""

    columns: tuple[str, ...]
    matrix: bool
    dtype: str
    groups: tuple[tuple[str, int], ...] = ()
    starts: tuple[int, ...] = field(default=(0,))

    def __call__(self, where: Slices) -> np.ndarray:
        pq = needed("pyarrow.parquet", "dask", "a Parquet file")
        begin, end, _ = where[0].indices(self.starts[-1])
        out = np.empty((max(0, end - begin), len(self.columns)), self.dtype, "F")
        for (path, k), first, last in zip(self.groups, self.starts, self.starts[1:], strict=False):
            a, b = max(begin, first), min(end, last)
            if a < b:
                table = pq.ParquetFile(path).read_row_group(k, columns=list(self.columns)).slice(a - first, b - a)
                for j, name in enumerate(self.columns):
                    out[a - begin : b - begin, j] = _numbers(table.column(name), name, self.dtype, path)
        return out[:, where[1]] if self.matrix else out[:, 0]


def _numbers(column: Any, name: str, dtype: str, path: str) -> np.ndarray:
    if column.null_count and np.dtype(dtype).kind != "f":
        raise InputError(f"{path}: the column {name!r} has {column.null_count} nulls, and {dtype} has no nan",
                         help="fill them, or store the column as floats")
    return column.to_numpy().astype(dtype, copy=False)


# --- what is given ----------------------------------------------------------------------------------------------------


def column(path: Any, *names: str) -> Source:
    """A column of a Parquet file (or of a folder of them) as an array; of several names a matrix with a column each."""
    if not names:
        raise InputError("dist.column: which column of the file?", help='sc.dist.column("t.parquet", "price")')
    return _parquet(os.fspath(path), list(names), len(names) > 1, f"{os.fspath(path)}: {', '.join(names)}")


def source(item: Any, label: str) -> Source:
    """Source of what is given for the argument ``label``. Raises InputError for what is no array."""
    if isinstance(item, Source):
        return item
    if isinstance(item, str | Path):
        return _file(os.fspath(item), label)
    kind = type(item).__module__.partition(".")[0]
    if kind == "dask":
        return _dask(item, label)
    if kind == "zarr":
        return _zarr(item, label)
    if isinstance(item, np.memmap) and item.filename is not None and item.flags.forc and item.base is not None \
            and not isinstance(item.base, np.memmap):
        order = "C" if item.flags.c_contiguous else "F"
        reader = Npy(str(item.filename), item.dtype.str, item.shape, item.offset, order)
        return _plain(label, item.dtype, item.shape, _stamp(str(item.filename)), reader)
    if hasattr(type(item), "__dataframe__") or kind in ("pandas", "polars", "pyarrow"):
        item = item.to_numpy()
    array = np.asarray(item)
    as_dtype(array.dtype)
    return _plain(label, array.dtype, array.shape, array, array.__getitem__, embedded=True)


def _plain(label: str, dtype: Any, shape: Sequence[int], token: Any, read: Any, grain: Sequence[int] = (),
           embedded: bool = False) -> Source:
    shape = tuple(int(n) for n in shape)
    return Source(label, np.dtype(dtype), shape, tuple((n,) for n in shape), tuple(grain) or (1,) * len(shape), token,
                  read=read, embedded=embedded)


def _stamp(path: str) -> tuple[str, int, int]:
    """A file by its name, size and time of change."""
    found = os.stat(path)
    return os.path.abspath(path), found.st_size, found.st_mtime_ns


def _must_exist(path: str, label: str) -> None:
    if not os.path.exists(path):
        raise InputError(f"{label}: there is no file {path!r}", help="a .npy file, a zarr store, or a Parquet file")


def _file(path: str, label: str) -> Source:
    _must_exist(path, label)
    if path.endswith(".npy"):
        try:
            array = Npy(path).open()
        except (*JUNK, SyntaxError, TokenError, OSError) as e:  # whatever a header says that is none
            raise InputError(f"{label}: {path!r} is no .npy file of numbers: {e}") from None
        return _plain(label, array.dtype, array.shape, _stamp(path), Npy(os.path.abspath(path)))
    if is_parquet(path):
        return _parquet(path, [label], False, label)
    if os.path.isdir(path) and any(os.path.exists(os.path.join(path, n)) for n in ("zarr.json", ".zarray", ".zgroup")):
        zarr = needed("zarr", "dask", "a zarr store")
        found = zarr.open(path, mode="r")
        if not hasattr(found, "shape"):
            raise InputError(f"{label}: {path!r} is a zarr group", help="give one of its arrays: "
                             + ", ".join(os.path.join(path, n) for n in sorted(found.array_keys())))
        return _zarr(found, label, Zarr(os.path.abspath(path), ""))
    raise InputError(f"{label}: {path!r} is no .npy file, zarr store or Parquet file",
                     help="np.load, np.memmap or dask.array make arrays of other files")


def _zarr(array: Any, label: str, reader: Any = None) -> Source:
    if reader is None and hasattr(array.store, "root"):  # a folder on disk
        reader = Zarr(os.path.abspath(str(array.store.root)), array.path)
    where = os.path.join(reader.path, reader.part) if reader is not None else ""
    token = (where, array.dtype.str, array.shape, _newest(where)) if where else np.asarray(array[...])
    return _plain(label, array.dtype, array.shape, token, reader or array[...].__getitem__, array.chunks,
                  embedded=reader is None)


def _newest(folder: str) -> int:
    """The time of the last change of a file in a folder."""
    return max((os.stat(os.path.join(at, n)).st_mtime_ns for at, _, found in os.walk(folder) for n in found), default=0)


def _dask(item: Any, label: str) -> Source:
    if not hasattr(item, "chunks"):
        if not hasattr(item, "to_dask_array"):
            raise InputError(f"{label}: {type(item).__name__} is no array", help="a Dask array")
        item = item.to_dask_array(lengths=True)
    if any(n != n for c in item.chunks for n in c):
        raise InputError(f"{label}: the chunks of the Dask array have unknown sizes", help="x.compute_chunk_sizes()")
    return Source(label, item.dtype, item.shape, item.chunks, (1,) * item.ndim, item.name, dask=item)


def is_parquet(item: Any) -> bool:
    """True of the path of a Parquet file, or of a folder of them."""
    path = os.fspath(item) if isinstance(item, str | Path) else ""
    return path.endswith((".parquet", ".pq")) or os.path.isdir(path) and any(
        n.endswith((".parquet", ".pq")) for n in os.listdir(path))


def _parquet(path: str, names: list[str], matrix: bool, label: str) -> Source:
    pq = needed("pyarrow.parquet", "dask", "a Parquet file")
    _must_exist(path, label)
    files = [path] if os.path.isfile(path) else sorted(
        os.path.join(path, n) for n in os.listdir(path) if n.endswith((".parquet", ".pq")))
    if not files:
        raise InputError(f"{label}: there is no Parquet file in {path!r}", help="*.parquet or *.pq")
    groups: list[tuple[str, int]] = []
    starts, dtypes = [0], []
    for file in files:
        try:
            about = pq.ParquetFile(file)
        except (*JUNK, OSError) as e:
            raise InputError(f"{label}: {file!r} is no Parquet file that can be read: {e}") from None
        known = about.schema_arrow
        for name in names:
            if name not in known.names:
                raise InputError(f"{file} has no column {name!r}", help=did_you_mean(name, known.names))
            try:
                dtypes.append(as_dtype(known.field(name).type.to_pandas_dtype()))
            except (SymcError, NotImplementedError, TypeError, ValueError) as e:
                raise InputError(f"{file}: the column {name!r} is {known.field(name).type}, no numbers") from e
        for k in range(about.num_row_groups):
            groups.append((os.path.abspath(file), k))
            starts.append(starts[-1] + about.metadata.row_group(k).num_rows)
    dtype = np.result_type(*dtypes)
    reader = Parquet(tuple(names), matrix, dtype.str, tuple(groups), tuple(starts))
    shape = (starts[-1], len(names)) if matrix else (starts[-1],)
    grain = max((b - a for a, b in itertools.pairwise(starts)), default=1) or 1
    return _plain(label, dtype, shape, [names, *map(_stamp, files)], reader, (grain, 1)[: len(shape)])

