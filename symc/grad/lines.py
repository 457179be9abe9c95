"""User lines of derivative values: those of the value that is differentiated, with the role "gradient of"."""

from __future__ import annotations

from contextlib import AbstractContextManager

from symc.ir import location
from symc.ir.value import Value


class DerivedLines:
    """``lines.of(v)`` puts the lines of a derivative of ``v`` in force. One object serves one sweep over a graph."""

    def __init__(self) -> None:
        self._known: dict[location.Locs, location.Locs] = {}

    def of(self, v: Value) -> AbstractContextManager[None]:
        noted = location.noted(v)
        derived = self._known.get(noted)
        if derived is None:
            derived = frozenset(line.derived("gradient of") for line in noted) or location.here()
            self._known[noted] = derived
        return location.at(derived)
