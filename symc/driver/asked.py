"""The variants of one signature, by the answers to what Python asked about the sizes of the call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from symc.ir.record import dataclass, field
from symc.tensors.tracing import Question

#: How many variants of one signature are kept; the one used longest ago goes.
MOST_VARIANTS = 64
#: How many combinations of shapes are remembered with their variant.
_SHAPES = 1024

Shapes = tuple[tuple[int, ...], ...]


@dataclass
class _Node:
    """Node of the tree of questions: what is asked next, or the key of the variant if nothing is."""

    key: Any = None
    question: Question | None = None
    answers: dict[Any, _Node] = field(default_factory=dict)


class Asked:
    """A tree of questions. ``variants``: where the functions are, by the keys that the leaves have."""

    def __init__(self, name: str, variants: dict[Any, Any], most: int):
        self._name, self._variants, self._most = name, variants, most
        self._root: _Node | None = None
        self._found: dict[Shapes, Any] = {}
        self._keys: dict[Any, None] = {}  # the one used last is the last
        self._warned = False

    def find(self, shapes: Shapes) -> Any:
        """The function for a call; None if there is none yet."""
        key = self._found.get(shapes, self)
        if key is self:
            node = self._root
            while node is not None and node.question is not None:
                node = node.answers.get(node.question.asked_of(shapes))
            if node is None:
                return None
            if len(self._found) >= _SHAPES:
                self._found.clear()
            key = self._found[shapes] = node.key
        if key in self._keys and len(self._keys) > 1:
            self._keys.pop(key, None)
            self._keys[key] = None
        return self._variants.get(key)

    def add(self, questions: Sequence[Question], key: Any, compiled: Any) -> None:
        """Put a variant at the end of its questions and their answers."""
        self._root = node = self._root or _Node()
        for q in questions:
            if node.question is None or node.question.text != q.text:
                node.key, node.question, node.answers = None, q, {}
            node = node.answers.setdefault(q.answer, _Node())
        node.key, node.question = key, None
        self._found.clear()
        self._keys.pop(key, None)
        self._keys[key] = None
        self._variants[key] = compiled
        if len(self._keys) > self._most:
            self._drop(questions)

    def clear(self) -> None:
        """Drop all variants."""
        for key in self._keys:
            self._variants.pop(key, None)
        self._root, self._found, self._keys = None, {}, {}

    def _drop(self, questions: Sequence[Question]) -> None:
        oldest = list(self._keys)[0]  # noqa: RUF015  other threads use variants meanwhile
        self._keys.pop(oldest, None)
        self._variants.pop(oldest, None)
        if not self._warned:
            self._warned = True
            last = questions[-1]
            warnings.warn(
                f"{self._name} was compiled for more than {self._most} answers to what it asks about sizes, such as "
                f"{last}; those used longest ago are dropped. sc.scan and sc.fori_loop take any size, and "
                f"variants= another bound", stacklevel=2)

    def questions(self) -> Iterator[Question]:
        """All that was asked, with the first answer."""
        pending = [self._root] if self._root else []
        while pending:
            node = pending.pop()
            if node.question is not None:
                yield node.question
                pending += list(node.answers.values())[::-1]
