"""Metadata of loops: what LLVM is told of each by the branch that leads back."""

from __future__ import annotations

#: The number of a node of metadata with nothing in it: the group of stores that may go past the cache, and what marks a
#: choice that is not a branch.
_EMPTY = 2
ACCESS_GROUP, UNPREDICTABLE = f"!llvm.access.group !{_EMPTY}", f"!unpredictable !{_EMPTY}"
#: A branch whose first way is hardly ever taken.
UNLIKELY = '!prof !{!"branch_weights", i32 1, i32 2000}'
#: Not unrolled once it is vectorized, and not at all.
_AFTER, _NEVER = "!0", "!1"


class LoopNotes:
    """Notes of the loops of one module. Each method gives what stands behind a branch back."""

    def __init__(self) -> None:
        self._notes: list[str] = []

    def not_unrolled(self, of_loops: bool = False) -> str:
        """A loop that is not unrolled once it is vectorized; one of other such loops not at all.

        A row of 1,024 numbers is 16 steps of 4 vectors. Unrolled completely, what one loop over it has read would be
        kept for the next, in more registers than there are: twice the time, and twice the time to compile. A loop of
        loops is no faster unrolled, and is as often as much code.
        """
        return self._note(_NEVER if of_loops else _AFTER)

    def interleaved(self, vectors: int) -> str:
        """A loop that takes so many vectors in a step."""
        return self._note(f'{_AFTER}, !{{!"llvm.loop.interleave.count", i32 {vectors}}}')

    def masked(self) -> str:
        """A loop of few steps: its last vector is not full, and masked."""
        return self._note(f'!{{!"llvm.loop.vectorize.predicate.enable", i1 true}}, {_NEVER}')

    def one_by_one(self) -> str:
        """A loop of fewer steps, which is not vectorized."""
        return self._note(f'!{{!"llvm.loop.vectorize.enable", i1 false}}, {_NEVER}')

    def _note(self, text: str) -> str:
        self._notes.append(text)
        return f", !llvm.loop !{self.count + _EMPTY}"

    @property
    def count(self) -> int:
        return len(self._notes)

    def text(self) -> list[str]:
        """The lines of a module that these are."""
        lines = [f'{_AFTER} = !{{!"llvm.loop.vectorize.followup_all", {_NEVER}}}',
                 f'{_NEVER} = !{{!"llvm.loop.unroll.disable"}}', f"!{_EMPTY} = distinct !{{}}"]
        return lines + [f"!{k} = distinct !{{!{k}, {note}}}" for k, note in enumerate(self._notes, _EMPTY + 1)]
