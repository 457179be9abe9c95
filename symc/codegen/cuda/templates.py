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
from symc.codegen.cuda.transposed import transposed
from symc.codegen.cuda.windows import windows
from symc.codegen.cuda.writer import Kernel
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.kernel.source import Form
from symc.codegen.language.syntax import Unsupported
from symc.ir.dim import number

TEMPLATES: tuple[Callable[[Kernel], Any], ...] = (
    transposed, flat, rows, columns, rows_and_columns, windows, scatter, running)  # fmt: skip


def fast(form: Form, loops: Loops) -> Any:
    """The variants of a kernel that one of the templates writes; None if none does."""
    kernel = Kernel.of(form, loops)
    for template in TEMPLATES:
        try:
            found = template(kernel)
            if found is not None:
                found.choose(number)  # writes a variant: what cannot be written is found here
                return found
        except Unsupported:
            continue
    return None
