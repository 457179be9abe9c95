"""Which rule differentiates which control op.

``jvp(v, tangents)`` gives a tangent for every result, ``vjp(v, cotangents, needed, masked)`` a cotangent for every
operand; None is zero. The rules build graphs on leaves of their own (``World``), in which nothing of the user's graph
can be reached: bodies are closed in time that depends on the body alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.grad.cond import cond_jvp, cond_vjp
from symc.grad.scan import scan_jvp, scan_vjp
from symc.grad.while_loop import while_jvp, while_vjp
from symc.ir.value import Value

Maybe = Value | None
Jvp = Callable[[Value, Sequence[Maybe]], list[Maybe]]
Vjp = Callable[[Value, Sequence[Maybe], Sequence[bool], bool], list[Maybe]]

LOOPS: dict[str, tuple[Jvp, Vjp]] = {
    "scan": (scan_jvp, scan_vjp),
    "while": (while_jvp, while_vjp),
    "cond": (cond_jvp, cond_vjp),
}
