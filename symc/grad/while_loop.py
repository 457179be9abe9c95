"""Derivatives of ``while``."""

from __future__ import annotations

from collections.abc import Sequence

from symc.errors import GradientError
from symc.ir.value import Value

Maybe = Value | None


def while_jvp(v: Value, tangents: Sequence[Maybe]) -> list[Maybe]:
    """The tangents of all results."""
    raise GradientError("while has no derivative")


def while_vjp(v: Value, cotangents: Sequence[Maybe], needed: Sequence[bool], masked: bool) -> list[Maybe]:
    """The cotangents of the operands, given those of the results."""
    raise GradientError("while has no derivative")
