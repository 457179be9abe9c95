"""Library routines that a plan calls, and how often: what tests of performance count."""

from __future__ import annotations

from symc.codegen.plan.gemm import as_gemm
from symc.ir.plan import Plan
from symc.ir.value import Value


def library_calls(plan: Plan) -> dict[str, int]:
    """Steps of a plan, and of the bodies in it, that are no kernels, by what they call, in alphabetical order.

    A step in the body of a loop counts once, however often it runs, and so does a product of many matrices (a batch).
    Products are counted by the routine of BLAS without the letter of its type: "gemm", "gemv" where a size says that
    an operand is a vector, "syrk" for a matrix times its transpose (a small one is a gemm when it is called). What BLAS
    does not compute is counted by the name of its op.
    """
    found: dict[str, int] = {}
    stack = [plan]
    while stack:
        for step in stack.pop().steps:
            stack += step.bodies
            if step.kind == "call":
                name = routine_of(step.value)
                found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def routine_of(v: Value) -> str:
    """Routine that a step which is no kernel calls."""
    form = as_gemm(v)
    return v.op.name if form is None else form.routine
