"""From the form of a kernel to CUDA C++: the one place where it is chosen who writes it.

A family is all variants of one kernel. Which of them is launched depends on nothing but sizes, so that nothing is
compiled again when a shape changes, but once when a size gets into another class: indices of 32 or 64 bits, rows that
one warp or one block sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from symc.codegen.cpu.loops import is_loop_kernel
from symc.codegen.cuda.generic import generic
from symc.codegen.cuda.sorting import sorting
from symc.codegen.cuda.source import CudaSource
from symc.codegen.cuda.templates import fast
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import Loops, scalarize
from symc.codegen.kernel.source import Form
from symc.ir.dim import Size
from symc.ir.phases import phase


class Family(Protocol):
    """All variants of the kernel of one form."""

    def choose(self, number: Callable[[Size], int]) -> str:
        """The key of the variant for certain sizes: "" or words apart from one another by "_"."""

    def source(self, choice: str, name: str) -> CudaSource:
        """The variant with this key, its entries called ``name`` or names that begin so; made once."""


#: Who may render a kernel faster than the generic template, asked in this order: each gives None for what it does not
#: serve.
TEMPLATES: list[Callable[[Form, Loops], Family | None]] = [sorting, fast]


@phase("CUDA text")
def family(form: Form) -> Family:
    """The variants of the kernel of a form. Raises Unsupported where there is no rendering."""
    region, _ = form
    if is_loop_kernel(region):
        return generic(form, None)
    loops = scalarize(collapse(region))
    for template in TEMPLATES:
        found = template(form, loops)
        if found is not None:
            return found
    return generic(form, loops)
