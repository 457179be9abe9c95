"""Shared variables: arrays that a compiled function reads, and replaces after it has succeeded.

A ``SharedVariable`` is a tensor (a free leaf of the graph) with a ``Cell``: the array, its type and its lock. Leaves
refer to cells and never back, so a graph keeps the state it needs alive, and nothing else does.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import DeviceError, DTypeError, ExecutionError, InputError, ShapeError, SymcError
from symc.ir import location
from symc.ir.dim import Dim, fresh_size
from symc.ir.location import Loc
from symc.ir.locks import lost, new_lock
from symc.ir.types import DTYPE_NAMES, TensorType, as_dtype
from symc.ir.value import Value, fresh_input
from symc.tensors.callsite import caller
from symc.tensors.constants import known_array
from symc.tensors.convert import own_dtype
from symc.tensors.labels import Labels, checked
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.others import array_of
from symc.tensors.sizes import named_size
from symc.tensors.tensor import Tensor

_serials = itertools.count()
_cells: weakref.WeakSet[Cell] = weakref.WeakSet()


class Cell:
    """The storage of a shared variable. ``lock`` is held by whoever reads or replaces ``array``."""

    __slots__ = ("__weakref__", "array", "borrowed", "claims", "dims", "draws", "leaf", "loc", "lock", "name",
                 "pending", "running", "serial", "type", "updated", "variable", "version", "watched")  # fmt: skip

    def __init__(self, array: np.ndarray, type_: TensorType, name: str, loc: Loc | None = None,
                 dims: Labels | None = None):
        self.array: Any = array  # of the host, or of the device that it was brought to
        self.type, self.name, self.loc, self.dims = type_, name, loc, dims
        self.lock = new_lock()
        self.pending: Any = None  # the last call that was pushed and uses it (``driver/push.py``)
        self.mark(False, None)
        self.leaf: weakref.ref[Value] | None = None
        self.variable: weakref.ref[SharedVariable] | None = None
        self.claims: tuple[weakref.ref, ...] = ()  # of calls that do not look whether it is where the last one left it
        self.version = 0  # counts changes of the array
        self.updated = False  # there is a function that updates it
        self.draws = False  # random numbers are made of it, the same again in a function that does not update it
        self.serial = next(_serials)  # functions take the locks of several cells in this order
        _cells.add(self)

    def mark(self, borrowed: bool, running: str | None) -> None:
        """Note whether someone outside holds the array itself, and which call uses it: while one does, nothing that
        the call itself calls (an op in Python) changes it. Native code leaves a state that is ``watched`` to Python."""
        self.borrowed, self.running = borrowed, running
        self.watched = borrowed or running is not None or self.pending is not None

    def claim(self, call: Any) -> None:
        """Have a call told (``end``) before the state is used or changed by others than calls that leave it in place.
        """
        known = weakref.ref(call)
        self.claims = (*[c for c in self.claims if c() is not None and c != known], known)

    def counted(self) -> int:
        """The version, with all calls so far."""
        if self.claims:
            self.disclaim()
        return self.version

    def disclaim(self) -> None:
        """End all claims. Its lock is held, or nobody could miss what comes of it."""
        claims, self.claims = self.claims, ()
        for known in claims:
            if (call := known()) is not None:
                call.end()

    def settle(self) -> None:
        """Wait for the calls that were pushed and use the state; before its lock is taken, which they need."""
        pending = self.pending
        if pending is not None and not self.lock._is_owned():
            pending.settle(self)

    def check_free(self, what: str) -> None:
        """Raise ExecutionError where a call that runs is further out on this thread (others wait for the lock)."""
        if self.running is not None:
            raise ExecutionError(
                f"{what} changes {self.name or 'a state'} while {self.running} runs, which uses it",
                values=[(f"%{self.name}", self.type, self.loc)],
                help=f"an op in {self.running} called it: return the new value from the op, and give it to updates=",
            )

    def __reduce__(self):
        return checked_cell, (self.get(False), self.type, self.name, self.loc, self.dims)

    def host(self) -> np.ndarray:
        """The array, for who computes on the host. Raises DeviceError if it is elsewhere."""
        if not isinstance(self.array, np.ndarray):
            raise DeviceError(f"{self.name or 'a state'} is on {self.array.device}, the function was compiled for cpu",
                              values=[(f"%{self.name}", self.type, self.loc)],
                              help="w.to_device('cpu') brings it back; or compile for its device")
        return self.array

    def get(self, borrow: bool) -> np.ndarray:
        self.settle()
        with self.lock:
            if not isinstance(self.array, np.ndarray):
                return self.array.numpy()
            if borrow and not self.borrowed:
                self.mark(True, self.running)
                self.version += 1  # from here on it may change without being counted
            return self.array if borrow else self.array.copy()

    def set(self, value: Any, borrow: bool) -> None:
        array = own(value, self.type, self.name, borrow)
        self.settle()
        with self.lock:
            self.disclaim()
            self.check_free("set_value")
            self.version += 1  # first: what was made of the old array is not to be taken for the new one's
            self.array = array
            self.mark(self.borrowed or borrow, None)


class _Lost:
    """Stand-in for a state in a process that was forked while another thread updated it: it may be half done."""

    def __init__(self, cell: Cell):
        self._cell = weakref.ref(cell)

    def __getattr__(self, name: str) -> Any:
        cell = self._cell()
        state = (cell and cell.name) or "a state"
        raise InputError(f"{state} was being updated by another thread when this process was forked",
                         values=[(f"%{cell.name}", cell.type, cell.loc)] if cell else (),
                         help=f"its array may be half written; {state}.set_value(a) replaces it, or fork between calls")


def _forked() -> None:
    for cell in _cells:
        if cell.lock in lost:
            cell.mark(cell.borrowed, None)
            if cell.updated:
                cell.array = _Lost(cell)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def checked_cell(array: Any, type_: TensorType, name: str, loc: Loc | None = None, dims: Labels | None = None) -> Cell:
    """A cell from outside. Raises InputError for an array that is not of the type."""
    fits = isinstance(array, np.ndarray) and array.dtype == type_.dtype and array.ndim == type_.ndim and all(
        isinstance(s, Dim) or s == n for s, n in zip(type_.shape, array.shape, strict=True))
    if not fits:
        given = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError(f"the state {name} is declared {type_}, but {given} was found for it")
    return Cell(array if array.flags.carray else np.array(array, order="C"), type_, name, loc, dims)


class SharedVariable(Tensor):
    """A tensor whose array is kept between calls. Made by ``shared``."""

    __slots__ = ("cell",)

    def __init__(self, value: Value, cell: Cell):
        super().__init__(value)
        self.cell = cell
        cell.leaf, cell.variable = weakref.ref(value), weakref.ref(self)

    def get_value(self, borrow: bool = False) -> np.ndarray:
        """The array: a copy, or with ``borrow`` the array itself, which later calls may write into (of a state that is
        on a device it is a copy)."""
        return self.cell.get(borrow)

    @property
    def array(self) -> Any:
        """The array that holds the state now: an array of the host, or of the device it is on. Not a copy."""
        self.cell.settle()
        return self.cell.array

    def to_device(self, device: Any, /, *, stream: Any = None) -> SharedVariable:
        """Bring the state to a device, or back to the "cpu". Functions compiled for a device do that with the states
        they use in their first call; those compiled for the CPU refuse a state that is elsewhere."""
        self.cell.settle()
        with self.cell.lock:
            self.cell.disclaim()
            self.cell.check_free("to_device")
            if isinstance(self.cell.array, np.ndarray):
                if device != "cpu":
                    from symc.runtime.cuda.arrays import device_array

                    self.cell.array = device_array(self.cell.array, device)
            else:
                self.cell.array = self.cell.array.to_device(device)
        return self

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replace the array by a copy of ``value``; with ``borrow`` by ``value`` itself where its layout allows.

        Raises ShapeError or DTypeError when it does not fit the variable; the old array then stays.
        """
        try:
            self.cell.set(value, borrow)
        except SymcError as e:
            e.attach([self.describe()], [caller()])
            raise

    def __reduce__(self):
        return _unpickled, (self.value, self.cell)

    def __repr__(self) -> str:
        return f"SharedVariable({self.name + ': ' if self.name else ''}{self.value.type})"


def _restore(value: Value, cell: Cell) -> SharedVariable:
    register_leaf(value, Leaf(cell.name, cell.loc, "state", cell, cell.dims))
    return SharedVariable(value, cell)


def _unpickled(value: Value, cell: Cell) -> SharedVariable:
    """A variable from a pickle. Where the one that was pickled is still here, this is another, with its own leaf."""
    here = leaf_of(value).shared
    return _restore(value, cell) if here is None or here is cell else _restore_at(cell.loc, cell)


def variable_of(cell: Cell) -> SharedVariable:
    """The variable of a cell: the user's own, which a dict of theirs finds; another if nobody holds that, around a new
    leaf if no graph holds its own any more (a function loaded from a file)."""
    if cell.variable and (known := cell.variable()) is not None:
        return known
    leaf = cell.leaf() if cell.leaf else None
    return SharedVariable(leaf, cell) if leaf is not None else _restore_at(cell.loc, cell)


def shared(
    value: Any, name: str | None = None, borrow: bool = False, *, dtype: Any = None,
    shape: Sequence[Any] | None = None, dims: Sequence[str | None] | str | None = None
) -> SharedVariable:
    """State: a tensor that holds an array (a copy of ``value``, unless ``borrow``).

    The shape is that of the value and stays; ``shape=("n", 10)`` (ints, size names, None for a fresh size) lets
    ``set_value`` change the named sizes. ``dims``: labels of the axes, as of an input. Raises DTypeError
    or ShapeError when the value does not fit.

    >>> total = sc.shared(0.0, "total")
    >>> count = sc.compile(total, updates={total: total + 1})
    >>> count(), count(), total.get_value(), type(total)
    (array(0.), array(1.), array(2.), <class 'symc.tensors.state.SharedVariable'>)
    """
    loc = caller()
    try:
        array = concrete(value, name or "value")
        d = own_dtype(value, as_dtype(array.dtype)) if dtype is None else as_dtype(dtype)
        type_ = TensorType(d, array.shape if shape is None else _declared(shape, name))
        array = own(array, type_, name or "value", borrow)
        labels = None if dims is None else checked(dims, type_.shape, f"state {name!r}")
    except SymcError as e:
        e.attach((), [loc])
        raise
    cell = Cell(array, type_, name or "", loc, labels)
    cell.mark(borrow, None)
    return _restore_at(loc, cell)


def _restore_at(loc: Loc | None, cell: Cell) -> SharedVariable:
    with location.at((loc,) if loc else ()):
        return _restore(fresh_input(cell.type), cell)


def _declared(shape: Sequence[Any], name: str | None) -> tuple:
    if isinstance(shape, str | int) or not isinstance(shape, list | tuple):
        shape = (shape,)
    return tuple(
        fresh_size() if s is None else named_size(s, "a size of the shape")
        for s in shape
    )


def concrete(item: Any, name: str) -> np.ndarray:
    """An array of numbers. Raises InputError or DTypeError for symbolic values, ragged lists, strings and the like."""
    if type(item) is np.ndarray and item.dtype.kind in "biufc":
        return item
    if item is None or isinstance(item, str | bytes | dict | set):
        raise InputError(f"{name} must be a number or an array, not {item!r:.60}")
    if isinstance(item, Tensor) and (known := known_array(item.value)) is not None:
        return known
    if isinstance(item, Tensor) or hasattr(item, "is_variable"):
        raise InputError(
            f"{name} must be a number or an array, but a symbolic value was given",
            values=[item.describe()] if isinstance(item, Tensor) else [],
            help="compute with symbolic values before compile; pass arrays here (w.get_value() for a shared one)",
        )
    array = array_of(item, name)
    try:
        as_dtype(array.dtype)
    except DTypeError as e:
        raise DTypeError(f"{name}: {e.what}", help=e.help) from None
    return array


def own(value: Any, type_: TensorType, name: str, borrow: bool) -> np.ndarray:
    """``value`` as a contiguous writable native array of ``type_``: itself if ``borrow`` and it is one, else a copy."""
    given = concrete(value, name)
    array = converted(given, type_.dtype, name, listed=not isinstance(value, np.ndarray))
    if array.ndim != type_.ndim or any(
        not isinstance(s, Dim) and s != k for s, k in zip(type_.shape, array.shape, strict=True)
    ):
        raise ShapeError(
            f"{name or 'the variable'} has shape ({', '.join(map(str, type_.shape))}), the value has {array.shape}",
            help="shapes of shared variables are fixed; sc.shared(value, name, shape=('n', ...)) leaves sizes open",
        )
    if (borrow or array is not given) and array.flags.carray:
        return array
    return np.array(array, order="C", copy=True, subok=False)


def converted(array: np.ndarray, dtype: np.dtype, name: str, listed: bool = False) -> np.ndarray:
    """The array in ``dtype``, when that is safe: within a kind or to a wider kind, and integers only if they fit.

    ``listed``: it was not an array, so an empty one has no dtype of its own. Raises DTypeError.
    """
    have = as_dtype(array.dtype)
    if have == dtype:
        return array if array.dtype.isnative else array.astype(dtype)
    integers = have.kind in "iu" and dtype.kind in "iu"
    if not (integers or np.can_cast(have, dtype, "same_kind") or (listed and array.size == 0)):
        lost = {"c": "the imaginary part", "f": "the fraction"}.get(have.kind, "the value")
        raise DTypeError(
            f"{name} is {DTYPE_NAMES[dtype]}, but {DTYPE_NAMES[have]} was given",
            help=f"the conversion would lose {lost}; convert explicitly: a.astype({str(dtype)!r})",
        )
    with np.errstate(all="ignore"):
        out = array.astype(dtype)
    if integers and array.size and not (out == array).all():
        wrong = array[out != array].ravel()[0]
        info = np.iinfo(dtype)
        raise DTypeError(
            f"{name} is {DTYPE_NAMES[dtype]}, which cannot hold {wrong}", help=f"it holds {info.min} to {info.max}"
        )
    return out
