"""Functions of C by address: what they take and give.

Addresses hold in one process. Machine code names a function, and gets its address when it is loaded.
"""

from __future__ import annotations

import ctypes
from typing import Any

from symc.ir.record import dataclass

#: Types of numbers that ctypes knows: the letter of NumPy's dtype of the same width.
OF_CTYPES: dict[Any, str] = {
    ctypes.c_double: "d", ctypes.c_float: "f", ctypes.c_int8: "b", ctypes.c_int16: "h", ctypes.c_int32: "i",
    ctypes.c_int64: "l", ctypes.c_longlong: "q", ctypes.c_size_t: "L", ctypes.c_uint8: "B", ctypes.c_uint16: "H",
    ctypes.c_uint32: "I",
}  # fmt: skip
_CTYPE: dict[str, Any] = {letter: t for t, letter in OF_CTYPES.items()}


@dataclass(frozen=True, eq=False)
class CFunction:
    """``takes``: for each parameter its letter, "*" before it for a pointer (``*?`` of no known type); ``gives``: the
    letter of what it returns, "" for nothing. ``kept``: what keeps the code in memory."""

    name: str
    address: int
    takes: tuple[str, ...]
    gives: str
    kept: Any = None

    @property
    def letters(self) -> str:
        """The types, as part of a name."""
        return "".join(self.takes) + "_" + self.gives

    def pointer(self) -> Any:
        """The function as ctypes calls it."""
        given = [ctypes.c_void_p if t.startswith("*") else _CTYPE[t] for t in self.takes]
        return ctypes.CFUNCTYPE(_CTYPE[self.gives] if self.gives else None, *given)(self.address)
