"""Memory of a plan on a device, and the run of its actions there: one after the other, or as a captured graph.

All addresses and numbers that kernels are given are words of one array, and what is handed to a launch are the
addresses of its words, put together once. An address that changes from call to call is written in one place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.runtime.cpu.native.instructions import Op, Word
from symc.runtime.cuda import actions
from symc.runtime.cuda.actions import Action, Touched
from symc.runtime.cuda.device import Communicator, Event, Graph, Memory, Span, Stream
from symc.runtime.cuda.devices import Context
from symc.runtime.cuda.lower import DeviceLowered
from symc.runtime.cuda.lowering import DO
from symc.runtime.cuda.replay import GRAPHS, Replays, Turn

#: How many pieces of memory are kept for each result.
SPARE = 2
_address = attrgetter("address")
#: Arguments of the host of more bytes than the first and at most the second go by way of pinned memory, of which each
#: has so many pieces: one is written while the device reads another.
PAGEABLE, MOST_PINNED, PIECES = 1 << 16, 1 << 28, 2
#: What ``getrefcount`` says of an object that one list has and nobody else.
_ALONE = next(map(sys.getrefcount, [object()]))


class Frame:
    """``arena``: memory for temps, which other frames of the program use in their turn. ``constants``: gives the memory
    that holds an array which nobody writes. ``rank``: of several that run the same."""

    def __init__(self, lowered: DeviceLowered, where: Context, arena: Memory,
                 constants: Callable[[np.ndarray], Memory], rank: Communicator | None = None):
        self._rank = rank
        self._pinned: dict[int, list[tuple[np.ndarray, Event]]] = {}
        self.lowered, self.context, self.device = lowered, where, where.device
        template = lowered.template
        start = int(template.words[Word.CODE])
        self._code: list[int] = template.words[start:].tolist()
        self._array = template.words[:start].copy()
        self.words: Any = self._array.data
        self._own = self.device.alloc(max(template.pool.nbytes, 1))
        if template.pool.nbytes:
            self.device.upload(self._own.address, template.pool, where.stream)
        self._arena = arena
        for rows, base in ((template.arena, arena.address), (template.kept, self._own.address)):
            for slot, offset in rows.tolist():
                self.words[slot] = base + offset
        self._constants = []
        for slot, array, offset in template.constants:
            memory = constants(array)
            self._constants.append(memory)
            self.words[slot] = memory.address + offset
        self._streams: list[Stream] = [where.stream, *[self.device.stream() for _ in range(lowered.lanes - 1)]]
        self._events: list[Event] = [self.device.event() for _ in range(lowered.events)]
        self._bound = [self._bind(a) for a in lowered.actions]
        self._staged: dict[int, Memory] = {}
        self._spare: list[list[Memory]] = [[] for _ in lowered.fresh]
        self._graphs: dict[tuple[Any, ...], Graph] = {}
        self.rest: tuple[int, ...] | None = None  # where the states were in the last call
        self.replays = Replays(lowered)
        made = lowered.returned[len(lowered.returned) - len(lowered.updates) :]
        #: Of updates whose arrays are others than the states' were: the number, and what is returned.
        self.moved = [(j, k, shape) for j, (k, shape) in enumerate(made) if k != lowered.updates[j]]

    def __del__(self) -> None:
        """Keeps pinned memory until the device has read it: whoever asks for some next would write into it."""
        for piece, _ in chain.from_iterable(self._pinned.values()):
            self.context.hold(piece, piece.nbytes)

    # -- a call

    def call(self, used: Sequence[Any]) -> bool:
        """Give the device everything that a call does with these arrays: arguments, states, and those that it makes.
        True if it was a replay, with the states where they were in the call before."""
        given, inputs = self.lowered.given, self.lowered.inputs
        rest = tuple(map(_address, used[given:inputs]))
        stayed = rest == self.rest
        if not stayed or self.rest is None:
            self.rest = rest
        places = [*map(_address, used[:given]), *map(_address, used[inputs:])]
        turn = self.replays.turn(places, self.rest, lambda: [a.nbytes for a in used])
        self.run(used, turn)
        return stayed and turn is not None

    def run(self, used: Sequence[Any], turn: Turn | None) -> None:
        """The same, as it was decided (all ranks do the same)."""
        if turn is None:
            self._place([a.address for a in used])
            return self._interpret()
        device, stream = self.device, self._streams[0]
        graph = self._graphs.get(turn.key)
        if graph is None:
            own = {k: self.staged(k, used[k].nbytes).address for k in (*turn.into, *turn.back)}
            self._place([own.get(k, a.address) for k, a in enumerate(used)])
            while len(self._graphs) >= GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            graph = self._graphs[turn.key] = self._capture()
        staged = self._staged
        into = [(staged[k].address, used[k].address, used[k].nbytes) for k in turn.into
                if used[k].address != staged[k].address]
        back = [(used[k].address, staged[k].address, used[k].nbytes) for k in turn.back]
        device.run_graph(graph, stream, into, back)

    def _place(self, addresses: Sequence[int]) -> None:
        for k, address in enumerate(addresses, self.lowered.first):
            self.words[k] = address

    def _capture(self) -> Graph:
        try:
            self.device.begin_capture(self._streams[0])
            self._interpret()
            return self.device.end_capture(self._streams[0])
        except BaseException as e:
            try:
                if self.device.capturing:  # a device that captures for ever does nothing
                    self.device.end_capture(self._streams[0])
            finally:
                raise e

    def staged(self, k: int, nbytes: int) -> Memory:
        """Memory of the frame for array ``k``: it is not on the device, not where vectors start, or moves."""
        found = self._staged.get(k)
        if found is None or found.nbytes < nbytes:
            found = self._staged[k] = self.device.alloc(max(nbytes, 1))
        return found

    def upload(self, k: int, array: np.ndarray) -> Memory:
        """Bring argument ``k`` from the host. What is large goes by way of pinned memory, or the host would wait until
        the device comes to it."""
        memory, device, stream = self.staged(k, array.nbytes), self.device, self._streams[0]
        if not PAGEABLE < array.nbytes <= MOST_PINNED:
            if array.nbytes:
                device.upload(memory.address, np.ascontiguousarray(array), stream)
            return memory
        pieces = self._pinned.setdefault(k, [])
        if len(pieces) < PIECES:
            piece, read = device.pinned(array.nbytes), device.event()
        else:
            piece, read = pieces.pop(0)
            device.reach(read)
        pieces.append((piece, read))
        np.copyto(piece.view(array.dtype).reshape(array.shape), array)
        device.upload(memory.address, piece, stream)
        device.record(read, stream)
        return memory

    def fresh(self, k: int, nbytes: int) -> Memory:
        """Memory for the array that a call makes as its ``k``-th: where one of the last results was that nobody has
        any more. So calls that follow one another find the same addresses, and the graph that was captured with them.
        """
        pool = self._spare[k]
        held = [*map(sys.getrefcount, pool)]
        if _ALONE in held:
            return pool[held.index(_ALONE)]
        made = self.device.alloc(max(nbytes, 1))
        pool[:] = [*pool[1 - SPARE :], made]
        return made

    # -- checks

    def check(self) -> None:
        """Raise what a check in a kernel has found since this was asked last."""
        slot, what = self.lowered.flags
        if slot < 0:
            return
        found = np.zeros(len(what), np.int32)
        with self.context.lock:
            self.device.download(found, self.words[slot], self._streams[0])
            self.device.synchronize(self._streams[0])
            if not found.any():
                return
            self.device.fill(self.words[slot], 0, found.nbytes, self._streams[0])
        raise what[int(np.flatnonzero(found)[0])].error()

    # -- actions

    def _bind(self, action: Action) -> Callable[[], None]:
        """The action bound to the memory of this frame."""
        device, words = self.device, self.words
        if isinstance(action, actions.RecordAction):
            event, stream = self._events[action.event], self._streams[action.lane]
            return lambda: device.record(event, stream)
        stream = self._streams[action.lane]
        if isinstance(action, actions.LaunchAction):
            return self._bind_launch(action, stream)
        if isinstance(action, actions.ProductAction):
            p, a, b, c = action.product, action.a, action.b, action.c
            return lambda: device.product(p, words[a], words[b], words[c], stream)
        if isinstance(action, actions.FactorizationAction):
            f, slots = action.factorization, action.slots
            return lambda: device.factorize(f, [words[s] for s in slots], stream)
        if isinstance(action, actions.CopyAction):
            to, source, nbytes = action.to, action.source, action.nbytes
            return lambda: self._copy(to, source, nbytes, stream)
        if isinstance(action, actions.CollectiveAction):
            return self._bind_collective(action, stream)
        if isinstance(action, actions.FillAction):
            to, nbytes = action.to, action.nbytes
            return lambda: device.fill(words[to], 0, nbytes, stream) if nbytes else None
        event = self._events[action.event]
        return lambda: device.wait(stream, event)

    def _bind_launch(self, a: actions.LaunchAction, stream: Stream) -> Callable[[], None]:
        device, kernel, grid, block, shared = self.device, a.kernel, a.grid, a.block, a.shared
        cells = self._array.ctypes.data + 8 * np.array(a.cells, np.int64)
        address = cells.ctypes.data
        if not device.checked:
            return lambda cells=cells: device.launch(kernel, grid, block, shared, address, stream)  # type: ignore[misc]

        def launch(cells: np.ndarray = cells) -> None:
            device.launch(kernel, grid, block, shared, address, stream, self._spans(a.reads), self._spans(a.writes))

        return launch

    def _bind_collective(self, a: actions.CollectiveAction, stream: Stream) -> Callable[[], None]:
        rank, words = self._rank, self.words
        if rank is None:
            return lambda: self._copy(a.to, a.source, a.count * a.dtype.itemsize, stream)
        if not a.count:
            return lambda: None
        return lambda: rank.all_reduce(words[a.to], words[a.source], a.count, a.dtype, a.kind, stream)

    def _spans(self, touched: Sequence[Touched]) -> list[Span]:
        return [(self.words[s], n) for s, n in touched if n]

    def _copy(self, to: int, source: int, nbytes: int, stream: Stream) -> None:
        if nbytes and self.words[to] != self.words[source]:
            self.device.copy(self.words[to], self.words[source], nbytes, stream)

    # -- control

    def _interpret(self) -> None:
        """Run the instructions of the native interpreter, as far as they are about where things are."""
        code, words, bound, at = self._code, self.words, self._bound, 0
        while True:
            op = code[at]
            if op == DO:
                bound[code[at + 1]]()
                at += 2
            elif op == Op.MOVE:
                words[code[at + 1]] = words[code[at + 2]] + code[at + 3]
                at += 4
            elif op == Op.LOOP:
                words[code[at + 1]] -= 1
                at = code[at + 2] if words[code[at + 1]] > 0 else at + 3
            elif op == Op.HALT:
                return
            else:
                at = self._rare(op, at)

    def _rare(self, op: int, at: int) -> int:
        """An instruction that most code has few of; where the next one is."""
        code, words, stream = self._code, self.words, self._streams[0]
        if op == Op.OPEN:
            return at + 4
        if op == Op.SET:
            words[code[at + 1]] = code[at + 2]
            return at + 3
        if op == Op.SWAP:
            a, b = code[at + 1], code[at + 2]
            words[a], words[b] = words[b], words[a]
            return at + 3
        if op == Op.COPY:
            self._copy(code[at + 1], code[at + 2], code[at + 3], stream)
            return at + 4
        if op == Op.CLEAR:
            if code[at + 2]:
                self.device.fill(words[code[at + 1]], 0, code[at + 2], stream)
            return at + 3
        if op in (Op.JUMP, Op.AGAIN):
            return code[at + 1]
        if op == Op.JUMP_IF_LESS:
            return code[at + 3] if words[code[at + 1]] < code[at + 2] else at + 4
        if op == Op.JUMP_IF_ZERO:
            return code[at + 2] if self._read(words[code[at + 1]], np.uint8) == 0 else at + 3
        if op == Op.SWITCH:
            targets = code[at + 3 : at + 3 + code[at + 2]]
            return targets[min(max(self._read(words[code[at + 1]], np.int64), 0), len(targets) - 1)]
        if op == Op.STORE:
            self.device.upload(words[code[at + 1]], np.array([words[code[at + 2]]], np.int64), stream)
            return at + 3
        if op == Op.CALLBACK:
            self.lowered.steps[code[at + 1]]()
            return at + 2
        raise InternalError(f"the interpreter of device plans met instruction {op}")

    def _read(self, address: int, dtype: type) -> int:
        """A number that decides what runs next: the host waits for it."""
        found: np.ndarray = np.zeros(1, dtype)
        self.device.download(found, address, self._streams[0])
        self.device.synchronize(self._streams[0])
        return int(found[0])
