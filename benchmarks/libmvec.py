"""Functions of glibc's libmvec inside loops that Numba compiles: a yardstick, not something symc uses.

A call of a scalar function that says, by the attribute vector-function-abi-variant, which functions compute it for
several numbers at once, is widened together with the loop around it. The scalar function has a name of its own: one
that LLVM knows (``log``) would become an intrinsic, and lose the attribute.
"""

from __future__ import annotations

import ctypes
from typing import Any

#: Elements of 64 bits in a vector, and the letter for it: AVX2, AVX-512.
WIDTHS = ((4, "d"), (8, "e"))


def function(name: str, arity: int) -> Any:
    """Function of ``arity`` numbers that Numba may call. Raises OSError or LookupError where there is none."""
    from llvmlite import binding
    from numba import types
    from numba.extending import intrinsic

    scalar, vectors = ctypes.CDLL("libm.so.6"), ctypes.CDLL("libmvec.so.1")
    binding.load_library_permanently("libmvec.so.1")
    for suffix in ("", "f"):
        for n, letter in WIDTHS:
            if not hasattr(vectors, _wide(name + suffix, letter, n * (1 + bool(suffix)), arity)):
                raise LookupError(name)
        address = ctypes.cast(getattr(scalar, name + suffix), ctypes.c_void_p).value
        binding.add_symbol(f"benchmark_{name}{suffix}", address)

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, name, args)

    if arity == 1:

        @intrinsic
        def unary(typingctx, x):
            return (x(x), write) if isinstance(x, types.Float) else None

        return unary

    @intrinsic
    def binary(typingctx, x, y):
        return (x(x, x), write) if isinstance(x, types.Float) and x == y else None

    return binary


def _wide(name: str, letter: str, n: int, arity: int) -> str:
    return f"_ZGV{letter}N{n}{'v' * arity}_{name}"


def _call(builder: Any, name: str, args: Any) -> Any:
    from llvmlite import ir

    module, t = builder.module, args[0].type
    narrow = t == ir.FloatType()
    known, symbol = name + "f" * narrow, f"benchmark_{name}{'f' * narrow}"
    widths = [(n * (1 + narrow), letter) for n, letter in WIDTHS]
    callee = module.globals.get(symbol)
    if callee is None:
        callee = ir.Function(module, ir.FunctionType(t, [t] * len(args)), symbol)
        for attribute in ("nounwind", "willreturn", "memory(none)"):
            set.add(callee.attributes, attribute)
        kept = []
        for n, letter in widths:
            v = ir.VectorType(t, n)
            kept.append(ir.Function(module, ir.FunctionType(v, [v] * len(args)), _wide(known, letter, n, len(args))))
        _keep(module, kept)
    mappings = ",".join(f"_ZGV_LLVM_N{n}{'v' * len(args)}_{symbol}({_wide(known, letter, n, len(args))})"
                        for n, letter in widths)
    call = builder.call(callee, args)
    set.add(call.attributes, f'"vector-function-abi-variant"="{mappings}"')
    return call


def _keep(module: Any, functions: list[Any]) -> None:
    """Declarations that nothing calls yet stay until the loop vectorizer runs."""
    from llvmlite import ir

    pointer = ir.IntType(8).as_pointer()
    used = ir.GlobalVariable(module, ir.ArrayType(pointer, len(functions)), "llvm.compiler.used")
    used.linkage, used.section = "appending", "llvm.metadata"
    used.initializer = ir.Constant(used.type.pointee, [f.bitcast(pointer) for f in functions])
