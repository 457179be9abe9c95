"""The state of a thread's floating-point unit, as instructions: the register that decides about denormal numbers.

That is MXCSR of x86-64 and FPCR of ARM. Other processors have no such code (``FLUSH`` is 0).
"""

from __future__ import annotations

import platform
from typing import Any

_MACHINE = platform.machine().lower()
X86, ARM = _MACHINE in ("x86_64", "amd64"), _MACHINE in ("aarch64", "arm64")
#: The bits of the register that make zeros of denormal operands and results; 0 where there are none.
FLUSH = 0x8040 if X86 else 1 << 24 if ARM else 0
#: The bits that say that a denormal operand was met since they were cleared; ARM says it only while it flushes.
MET = 0x2 if X86 else 0
#: The state in which they are looked for: no exception traps, as is the rule. Not 0, which changes nothing.
WATCH = 0x1F80 if X86 else 0


def save(b: Any, ir: Any, to: Any) -> None:
    """Store the register in the 64-bit word at ``to``."""
    if X86:
        b.store(ir.Constant(ir.IntType(64), 0), to)
        b.call(_function(b, ir, "llvm.x86.sse.stmxcsr", ir.VoidType(), to.type), [to])
    elif ARM:
        b.store(b.call(_function(b, ir, "llvm.aarch64.get.fpcr", ir.IntType(64)), []), to)


def restore(b: Any, ir: Any, source: Any) -> None:
    """Load the register from the word at ``source``."""
    if X86:
        b.call(_function(b, ir, "llvm.x86.sse.ldmxcsr", ir.VoidType(), source.type), [source])
    elif ARM:
        value = b.load(source, typ=ir.IntType(64))
        b.call(_function(b, ir, "llvm.aarch64.set.fpcr", ir.VoidType(), value.type), [value])


def _function(b: Any, ir: Any, name: str, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, arguments)
    return b.module.globals.get(name) or ir.Function(b.module, kind, name)
