"""Gradients of lookup tables: rows, not tables."""

from __future__ import annotations

from typing import Any, NamedTuple


class RowGradient(NamedTuple):
    """The gradient of a lookup table as arrays: rows, each once, and their values."""

    rows: Any
    values: Any
