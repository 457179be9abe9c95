"""The call that a function is traced for: what Python asks about its sizes is answered from it, and noted.

While ``jit`` or a deferred function runs a user's code, a ``Scope`` (``symc.tensors.callsite``) is in force. Its trace
has the sizes of the call at hand; an answer becomes a ``Question`` that the variant stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from symc.ir.dim import Dim, Size, size_name
from symc.ir.location import Loc
from symc.ir.record import dataclass
from symc.ir.size_values import evaluate, names, solve

#: From sizes to the answer of a question.
Answer = Callable[[Mapping[str, int]], Hashable]


@dataclass(frozen=True, eq=False)
class Question:
    """Question that was asked (``text``), on which line, and the answer in the call that was traced.

    ``places``: which axis of which argument each size is.
    """

    text: str
    loc: Loc
    answer: Hashable
    answer_at: Answer
    places: Mapping[str, tuple[int, int]]

    def asked_of(self, shapes: Sequence[tuple[int, ...]]) -> Hashable:
        """The answer in another call."""
        return self.answer_at({n: shapes[k][axis] for n, (k, axis) in self.places.items()})

    def __str__(self) -> str:
        return f"{self.text}: {self.answer}, asked in {self.loc}         {self.loc.text}".rstrip()


class Trace:
    """The sizes of a call, and the questions asked so far, in order. ``fixed``: axes that an answer gave a number."""

    def __init__(self, inputs: Sequence[tuple[str, tuple[Size, ...]]], shapes: Sequence[tuple[int, ...]]):
        self.sizes: dict[str, int] = {}
        self.questions: dict[Hashable, Question] = {}
        self.fixed: set[tuple[int, int]] = set()
        self._places: dict[str, tuple[int, int]] = {}
        self._labels: dict[str, str] = {}
        for k, (label, shape) in enumerate(inputs):
            for axis, s in enumerate(shape):
                for n in names(s) - self._places.keys() if isinstance(s, Dim) else ():
                    if s == size_name(n):
                        self._places[n] = k, axis
                        self.sizes[n] = shapes[k][axis]
                        self._labels[n] = f"{label}.shape[{axis}]"

    def ask(self, key: Hashable, answer_at: Answer, text: str, loc: Loc) -> Any:
        """The answer in this call; None if it depends on other sizes than those of the arguments."""
        if key not in self.questions:
            try:
                answer = answer_at(self.sizes)
            except KeyError:
                return None
            self.questions[key] = Question(self.readable(text), loc, answer, answer_at, self._places)
        return self.questions[key].answer

    def number(self, size: Dim, loc: Loc) -> int | None:
        """The number that a size is: the axis that it tells is fixed."""
        answer = self.ask(("number", size), lambda sizes: evaluate(size, sizes), f"the number {size}", loc)
        for n in names(size) if answer is not None else ():
            if isinstance(solve(size, answer, n), int):
                self.fixed.add(self._places[n])
        return answer

    def readable(self, text: str) -> str:
        """A text in which sizes are called what they are in the user's function."""
        return re.sub(r"\?\d+", lambda m: self._labels.get(m[0], m[0]), text)
