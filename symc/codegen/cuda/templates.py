"""The templates that write kernels faster than the generic one, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.codegen.cuda.columns import columns
from symc.codegen.cuda.flat import flat
from symc.codegen.cuda.rows import rows
from symc.codegen.cuda.rows_and_columns import rows_and_columns
from symc.codegen.cuda.running import running
from symc.codegen.cuda.scatter import scatter
from symc.codegen.cuda.sorting import sorting
from symc.codegen.cuda.transposed import transposed
from symc.codegen.cuda.windows import windows
from symc.codegen.cuda.writer import Kernel, Part
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import Loops, scalarize
from symc.codegen.kernel.source import Form
from symc.codegen.language.syntax import Unsupported
from symc.ir.dim import number, product
from symc.ir.ops.store import packed_concat
from symc.ir.value import Region, Value

TEMPLATES: tuple[Callable[[Kernel], Any], ...] = (
    transposed, flat, rows, columns, rows_and_columns, windows, scatter, running)  # fmt: skip


def serves(region: Region) -> bool:
    """True if a template writes the kernel of a region."""
    form = region, ()
    loops = scalarize(collapse(region))
    return sorting(form, loops) is not None or fast(form, loops) is not None


def fast(form: Form, loops: Loops) -> Any:
    """The variants of a kernel that one of the templates writes; None if none does."""
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
