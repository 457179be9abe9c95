"""From the form of a kernel to CUDA C++: the templates, in the order in which they are asked, and the generic text.

A family is all variants of one kernel. Which of them is launched depends on nothing but sizes, so that nothing is
compiled again when a shape changes, but once when a size gets into another class: indices of 32 or 64 bits, rows that
one warp or one block sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from symc.codegen.cpu.loops import is_loop_kernel
from symc.codegen.cuda.columns import columns
from symc.codegen.cuda.flat import flat
from symc.codegen.cuda.generic import Generic
from symc.codegen.cuda.rows import rows
from symc.codegen.cuda.rows_and_columns import rows_and_columns
from symc.codegen.cuda.running import running
from symc.codegen.cuda.scatter import scatter
from symc.codegen.cuda.sorting import sorting
from symc.codegen.cuda.source import CudaSource
from symc.codegen.cuda.transposed import transposed
from symc.codegen.cuda.windows import windows
from symc.codegen.cuda.writer import Kernel, Part
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import Loops, scalarize
from symc.codegen.kernel.source import Form
from symc.codegen.language.syntax import Unsupported
from symc.ir.dim import Size, product
from symc.ir.ops.store import packed_concat
from symc.ir.phases import phase
from symc.ir.size_values import number
from symc.ir.value import Region, Value

TEMPLATES: tuple[Callable[[Kernel], Any], ...] = (
    transposed, flat, rows, columns, rows_and_columns, windows, scatter, running)  # fmt: skip


class Family(Protocol):
    """All variants of the kernel of one form."""

    def choose(self, number: Callable[[Size], int]) -> str:
        """The key of the variant for certain sizes: "" or words apart from one another by "_"."""

    def source(self, choice: str, name: str) -> CudaSource:
        """The variant with this key, its entries called ``name`` or names that begin so; made once."""


@phase("CUDA text")
def family(form: Form) -> Family:
    """The variants of the kernel of a form. Raises Unsupported where there is no rendering."""
    if is_loop_kernel(form[0]):
        return Generic(form, None)
    loops = scalarize(collapse(form[0]))
    return fast(form, loops) or Generic(form, loops)


def serves(region: Region) -> bool:
    """True if a template writes the kernel of a region."""
    return fast((region, ()), scalarize(collapse(region))) is not None


def fast(form: Form, loops: Loops) -> Any:
    """The variants of a kernel that one of the templates writes; None if none does."""
    if (sort := sorting(form, loops)) is not None:
        return sort
    kernel = unpacked(form) or Kernel.of(form, loops)
    for template in TEMPLATES[:2] if kernel.parts else TEMPLATES:
        try:
            found = template(kernel)
            if found is not None:
                found.choose(number)  # writes a variant: what cannot be written is found here
                return found
        except Unsupported:
            continue
    return None


def unpacked(form: Form) -> Kernel | None:
    """A kernel of elements some of whose results are arrays side by side: their elements, and where they go."""
    region, _ = form
    if not any(r.op is packed_concat for r in region.results):
        return None
    made: list[Value] = []
    parts: list[Part] = []
    for k, r in enumerate(region.results):
        if r.op is packed_concat:
            inner = product(r.operands[0].shape[r.attrs["axis"]:])
            parts += [Part(k, n, len(r.operands), inner) for n in range(len(r.operands))]
        else:
            parts.append(Part(k))
        made += r.operands if r.op is packed_concat else [r]
    return Kernel.of(form, scalarize(collapse(Region(region.params, made))), tuple(parts))
