"""Schedules: which nodes run together, in which order, and where their results lie.

A schedule takes integers to integers, in native code: graphs of a minibatch to batches and rows. "depth" runs nodes of
one block and depth together (TensorFlow Fold's rule), "agenda" what is ready, the block of least average depth first
(DyNet's), "strata" the agenda with blocks in the order in which they are made of each other: what everything else
waits for runs first, and what nothing waits for runs once, at the end. "auto" takes what makes the fewest batches:
strata, where no two blocks are made of each other, else the best of the three.
"""

from __future__ import annotations

import numpy as np

from symc.errors import InputError, did_you_mean
from symc.fold import kernels
from symc.fold.native import Kernel, Rec, address
from symc.ir.record import dataclass

SCHEDULES = ("auto", "depth", "agenda", "strata")
_I = "i8 "

_prepare = Kernel(kernels.prepare, 4, _I * 17)
_by_depth = Kernel(kernels.by_depth, 2, _I * 9)
_by_agenda = Kernel(kernels.by_agenda, 3, _I * 17)
_rows = Kernel(kernels.rows, 4, _I * 22)
_merge = Kernel(kernels.merge, 1, _I * 11)


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which arguments come first: the block of each, where its arguments begin, which nodes they
    are, and at which place of the arrays of the block its attributes are."""

    op: np.ndarray
    aptr: np.ndarray
    args: np.ndarray
    apos: np.ndarray


@dataclass(frozen=True, eq=False)
class Blocks:
    """Facts of blocks for schedules: the type of each one's output, how many types there are, and how many ports that
    are not ragged each has."""

    types: np.ndarray
    count: int
    singles: np.ndarray

    @property
    def ports(self) -> int:
        return max(1, int(self.singles.max(initial=0)))


@dataclass(frozen=True, eq=False)
class Schedule:
    """``records``: of batches, a row each (``Rec``). By block, from ``abase`` on: the rows of instances, their nodes
    and places of attributes; from ``ibase`` and ``mbase`` on what arguments there are. ``row``: of nodes, in the arenas
    of their types; ``sizes``: of these; ``counts`` and ``many``: instances, and ragged arguments, of blocks."""

    how: str
    records: np.ndarray
    row: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    many: np.ndarray
    abase: np.ndarray
    ibase: np.ndarray
    mbase: np.ndarray
    index: np.ndarray
    local: np.ndarray
    whole: np.ndarray
    attr_at: np.ndarray
    row_at: np.ndarray
    node_at: np.ndarray

    @property
    def batches(self) -> int:
        return len(self.records)


def check_schedule(how: str) -> str:
    if how not in SCHEDULES:
        raise InputError(f"no schedule is called {how!r}", help=did_you_mean(str(how), SCHEDULES))
    return how


def merged(picked: np.ndarray, nptr: np.ndarray, mptr: np.ndarray, g: Graph) -> Graph:
    """The graphs of some examples of many, as one."""
    n = int((nptr[picked + 1] - nptr[picked]).sum())
    m = int((mptr[picked + 1] - mptr[picked]).sum())
    out = Graph(*(np.empty(k, np.int64) for k in (n, n + 1, m, n)))
    _merge(len(picked), picked, nptr, mptr, g.op, g.aptr, g.args, g.apos, out.op, out.aptr, out.args, out.apos)
    return out


class Workspace:
    """Memory that schedules are made in, one after the other: what the last one made lies there."""

    def __init__(self) -> None:
        self._memory, self._address, self._used = np.empty(0, np.int64), 0, 0

    def begin(self, words: int) -> None:
        """Forget what was taken, and be ready for so many words."""
        self._used = 0
        if words > len(self._memory):
            self._memory = np.empty(words + words // 4, np.int64)
            self._address = self._memory.ctypes.data

    def take(self, *sizes: int) -> list[int]:
        """Addresses of so many words each."""
        found = []
        for n in sizes:
            found.append(self._address + 8 * self._used)
            self._used += n
        return found

    def view(self, address: int, n: int) -> np.ndarray:
        first = (address - self._address) >> 3
        return self._memory[first : first + n]


def schedule(g: Graph, blocks: Blocks, how: str = "auto", space: Workspace | None = None,
             before: np.ndarray | None = None) -> Schedule:
    """Batches and rows, in a workspace. ``before``: how many rows of each type are there already; an argument below 0
    stands for row ``-1 - argument`` of these."""
    n, m, nb, ports = len(g.op), len(g.args), len(blocks.types), blocks.ports
    space = space or Workspace()
    space.begin(18 * n + 5 * m + 16 * nb + nb * nb + nb * ports + blocks.count + Rec.WORDS * n + 8)
    op, aptr, args, apos = map(address, (g.op, g.aptr, g.args, g.apos))
    types, singles = address(blocks.types), address(blocks.singles)
    depth, uptr, users, cursor, after = space.take(n, n + 1, m, n + 1 + nb, n)
    counts, many, sums, rank, mbase, abase, head, tail, ready, place, element = space.take(*[nb] * 11)
    reach, ibase, found, sizes = space.take(nb * nb, nb * ports, 1, blocks.count)
    _prepare.run(n, m, nb, ports, op, aptr, args, singles, depth, uptr, users, cursor, counts, many, sums, rank, reach,
                 ibase, mbase, abase, found)
    if how == "auto" and not space.view(found, 1)[0]:
        how = "strata"  # a batch a link of the longest chain of each block: no schedule makes fewer

    def ordered(how: str) -> tuple[int, list[int]]:
        made = space.take(n, n, n)
        if how == "depth":
            _by_depth.run(n, nb, op, depth, counts, cursor, after, *made, found)
        else:
            _by_agenda.run(n, nb, int(how == "strata"), op, aptr, args, uptr, users, counts, sums, rank, cursor, after,
                           head, tail, ready, *made, found)
        return int(space.view(found, 1)[0]), made

    tried = {name: ordered(name) for name in (("depth", "strata", "agenda") if how == "auto" else (how,))}
    best = min(tried, key=lambda name: tried[name][0])  # every row costs the same: what differs is the batches
    batches, made = tried[best]
    row, index, local, whole, attr_at, row_at, node_at = space.take(n, m, m, m, n, n, n)
    (records,) = space.take(batches * Rec.WORDS)
    view = space.view
    view(sizes, blocks.count)[:] = 0 if before is None else before
    _rows.run(nb, batches, ports, int(Rec.WORDS), aptr, args, apos, types, singles, *made, ibase, mbase, abase, sizes,
              place, element, row, records, index, local, whole, attr_at, row_at, node_at)
    return Schedule(
        best, view(records, batches * Rec.WORDS).reshape(batches, Rec.WORDS), view(row, n), view(sizes, blocks.count),
        view(counts, nb), view(many, nb), view(abase, nb), view(ibase, nb * ports), view(mbase, nb), view(index, m),
        view(local, m), view(whole, m), view(attr_at, n), view(row_at, n), view(node_at, n))


def every_record(counts: np.ndarray, many: np.ndarray) -> np.ndarray:
    """For each block a batch of all its instances."""
    out = np.zeros((len(counts), Rec.WORDS), np.int64)
    out[:, Rec.BLOCK], out[:, Rec.COUNT], out[:, Rec.ELEMENTS] = np.arange(len(counts)), counts, many
    return out
