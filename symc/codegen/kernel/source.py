"""The source of the kernel that a launch step of a plan runs: of its region, and of what the plan wrote over what."""

from __future__ import annotations

from symc.codegen.cpu.known_ranges import with_known_ranges
from symc.codegen.cpu.loops import is_loop_kernel, render_loop
from symc.codegen.cpu.render import Source, render
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.plan.inplace import Pairs, shared_pairs, updated_params
from symc.ir.phases import phase
from symc.ir.plan import Step
from symc.ir.value import Region

#: What tells the kernels of one program apart: a region, and which operands and results that it must know of are one.
Form = tuple[Region, Pairs]


def kernel_form_of(step: Step, shared: bool = True) -> Form:
    """Form of the kernel that a launch step runs. ``shared``: it must know of what several results depend on."""
    (region,) = step.value.regions
    pairs = [(k, r) for r, k in updated_params(region).items()]
    pairs += shared_pairs(region) if shared else ()
    return region, tuple((k, r) for k, r in pairs if step.reads[k] == step.writes[r])


def updated_in_place(form: Form) -> tuple[int, ...]:
    """The updated results that lie in the memory of what they update."""
    updated = updated_params(form[0])
    return tuple(r for k, r in form[1] if updated.get(r) == k)


@phase("kernel text")
def kernel_source(form: Form) -> Source:
    """The text of the kernel, called ``kernel``. Raises Unsupported where the backend has no rendering."""
    region, pairs = form
    if is_loop_kernel(region):
        return render_loop("kernel", region)
    over = updated_in_place(form)
    return render("kernel", scalarize(with_known_ranges(collapse(region)), by_rows=True), over, dict(pairs))
