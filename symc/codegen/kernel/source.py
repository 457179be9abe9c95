"""The source of the kernel that a launch step of a plan runs: of its region, and of what the plan wrote over what."""

from __future__ import annotations

from symc.codegen.cpu.loops import is_loop_kernel, render_loop
from symc.codegen.cpu.render import Source, render
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.plan.inplace import updated_params
from symc.ir.phases import phase
from symc.ir.plan import Step
from symc.ir.value import Region

#: What tells the kernels of one program apart: a region, and which of its updated results are written in place.
Form = tuple[Region, tuple[int, ...]]


def kernel_form_of(step: Step) -> Form:
    """Form of the kernel that a launch step runs."""
    (region,) = step.value.regions
    over = [r for r, k in updated_params(region).items() if step.reads[k] == step.writes[r]]
    return region, tuple(over)


@phase("kernel text")
def kernel_source(form: Form) -> Source:
    """The text of the kernel, called ``kernel``. Raises Unsupported where the backend has no rendering."""
    region, over = form
    if is_loop_kernel(region):
        return render_loop("kernel", region)
    return render("kernel", scalarize(collapse(region)), over)
