# mypy: ignore-errors
"""SciPy's special functions as functions that Numba compiles, called by symbol."""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from symc.ir.facts import Routine
from symc.runtime.compilers.numba_primitives import OPTIONS, f64, to_int
from symc.runtime.cpu.scipy_functions import add_symbol


def of_scipy(key: str):
    """A special function of SciPy's by the key of its ``symc.ir.facts.Routine``."""
    routine = Routine.of(key)

    def typed(typingctx, *operands):
        def codegen(context, builder, signature, args):
            double, flag, null = ir.DoubleType(), ir.IntType(32), ir.IntType(8).as_pointer()
            kinds = [context.get_value_type(t) for t in signature.args]
            places = [cgutils.alloca_once(builder, double) for _ in range(routine.gives)]
            rest = [*places] or [ir.Constant(flag, 0)]  # the flag: do not look for an override
            rest += [ir.Constant(null, None)] * routine.takes.count("o")
            symbol = add_symbol(key)
            fn = builder.module.globals.get(symbol) or ir.Function(builder.module, ir.FunctionType(
                ir.VoidType() if places else double, [*kinds, *(x.type for x in rest)]), symbol)
            found = builder.call(fn, [*args, *rest])
            return builder.load(places[routine.which]) if places else found

        return types.float64(*(types.int64 if t == "l" else types.float64 for t in letters)), codegen

    letters = routine.takes.rstrip("o")
    names = ", ".join(f"x{k}" for k in range(len(letters)))
    scope = {"typed": typed, "intrinsic": intrinsic, "to_int": to_int, "f64": f64}
    given = ", ".join(f"to_int(x{k})" if t == "l" else f"f64(x{k})" for k, t in enumerate(letters))
    exec(f"@intrinsic\ndef _call(typingctx, {names}): return typed(typingctx, {names})\n"
         f"def found({names}): return _call({given})", scope)
    return njit(scope["found"], nogil=True, **OPTIONS)
