"""The one rule for writing in place, asked by ``order`` (to weigh sequences) and ``bufferize``."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from symc.codegen.kernel.names import is_kernel
from symc.codegen.plan.cells import Work
from symc.codegen.plan.inplace import shared_pairs
from symc.ir.dim import Size

#: For every result of a step: the cell whose memory it takes, or None for memory of its own.
Placement = tuple[int | None, ...]


class Placer:
    """Decides placements. ``reuse=False``: everything gets memory of its own."""

    def __init__(self, w: Work, reuse: bool = True):
        self.w, self.reuse = w, reuse
        self.sizes: list[Size] = w.sizes()
        self.results = set(w.results)

    def place(self, s: int, dies: Callable[[int], bool], clear: bool, lent: Container[int]) -> Placement:
        """The cells that step ``s`` writes over.

        ``dies(c)``: every other reader of cell c has run. ``clear``: no step that may fail is left, ``s`` included.
        ``lent``: the cells that lie in donated memory, where nothing that is returned may lie.
        """
        w = self.w
        if not self.reuse:
            return (None,) * len(w.writes[s])
        out: list[int | None] = []
        for r, c in enumerate(w.writes[s]):
            state = w.targets.get(c)
            if state is not None and clear and dies(state) and self.fits(s, state, r, c):
                out.append(state)
            elif w.pairs[s]:
                out.append(self._over_operand(s, r, c, dies, lent, out))
            else:
                out.append(None)
        return tuple(out)

    def fits(self, s: int, over: int, r: int, c: int) -> bool:
        """True if result ``r`` of step ``s`` may take the memory of cell ``over``, as far as its own reading goes."""
        if self.sizes[over] != self.sizes[c]:
            return False
        reads = self.w.reads[s]
        return over not in reads or all((k, r) in self.w.pairs[s] for k, o in enumerate(reads) if o == over)

    def _over_operand(self, s: int, r: int, c: int, dies: Callable[[int], bool], lent: Container[int],
                      taken: Sequence[int | None]) -> int | None:
        w = self.w
        shared = shared_pairs(w.values[s].regions[0]) if is_kernel(w.values[s]) else ()
        for k, result in w.pairs[s]:
            over = w.reads[s][k]
            if result != r or (k, r) in shared or over in taken or over in self.results:
                continue
            if over in w.leaves and over not in w.owned:
                continue
            if (over in w.leaves or over in lent) and c in self.results:
                continue
            if dies(over) and self.fits(s, over, r, c):
                return over
        return None


def placements(w: Work, sequence: Sequence[int], placer: Placer) -> list[Placement]:
    """The placement of every step (by step number), when steps run in this sequence."""
    out: list[Placement] = [()] * len(w.values)
    left = [len(r) for r in w.readers]
    failing = len(w.fallible)
    lent: set[int] = set()
    for s in sequence:
        reads = set(w.reads[s])

        def dies(c: int, reads: set[int] = reads) -> bool:
            return left[c] == (1 if c in reads else 0)

        placement = out[s] = placer.place(s, dies, failing == 0, lent)
        for c, over in zip(w.writes[s], placement, strict=True):
            if over is not None and (over in lent or over in w.owned):
                lent.add(c)
        failing -= s in w.fallible
        for c in reads:
            left[c] -= 1
    return out
