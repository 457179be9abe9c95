# mypy: ignore-errors
"""Primitives that Numba cannot say in Python: LLVM instructions as scalar functions, and the dtypes' names.

Imported only when a kernel is compiled (it imports numba).
"""

from __future__ import annotations

import math
from functools import partial

import numba
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from symc.runtime.cpu.native.instructions import FAILED, Word

INF, NAN = math.inf, math.nan
u8, i8, u16, i16, u32, i32 = numba.uint8, numba.int8, numba.uint16, numba.int16, numba.uint32, numba.int32
u64, i64, f32, f64 = numba.uint64, numba.int64, numba.float32, numba.float64
c64, c128 = numba.complex64, numba.complex128

#: How helpers are compiled: for kernels alone, as nobody calls them from Python.
CALLED = {"error_model": "numpy", "fastmath": {"contract"}, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: And into the kernel's loop, so that it vectorizes.
OPTIONS = {**CALLED, "forceinline": True}


@intrinsic
def like(typingctx, x, constant):
    """``constant`` in the type of ``x``."""

    def codegen(context, builder, signature, args):
        return context.cast(builder, args[1], constant, x)

    return x(x, constant), codegen


def _reassociable(instruction: str):
    """An addition or product whose order may change, so that reductions vectorize."""

    @intrinsic
    def combine(typingctx, a, b):
        def codegen(context, builder, signature, args):
            a_, b_ = (context.cast(builder, x, t, a) for x, t in zip(args, signature.args, strict=True))
            step = partial(getattr(builder, instruction), flags=("reassoc", "nsz", "contract"))
            if not isinstance(a, types.Complex):
                return step(a_, b_)
            x, y, total = (context.make_complex(builder, a, value) for value in (a_, b_, None))
            total.real, total.imag = step(x.real, y.real), step(x.imag, y.imag)
            return total._getvalue()

        return a(a, a), codegen

    return combine


fold_add = _reassociable("fadd")
fold_mul = _reassociable("fmul")


@intrinsic
def times(typingctx, x, y):
    """x * y, rounded: it becomes no part of a fused operation, whatever is added to it."""

    def codegen(context, builder, signature, args):
        return builder.fmul(args[0], context.cast(builder, args[1], signature.args[1], x))

    return x(x, y), codegen


def _wrapping(instruction: str):
    """Signed integers that overflow as NumPy's do. Numba's own operators leave the result of an overflow open."""

    @intrinsic
    def combine(typingctx, a, b):
        def codegen(context, builder, signature, args):
            a_, b_ = (context.cast(builder, x, t, i64) for x, t in zip(args, signature.args, strict=True))
            return getattr(builder, instruction)(a_, b_)

        return i64(a, b), codegen

    return combine


wrap_add, wrap_sub, wrap_mul = map(_wrapping, ("add", "sub", "mul"))


@intrinsic
def fmod(typingctx, x, y):
    """The remainder with the sign of x."""

    def codegen(context, builder, signature, args):
        return builder.frem(*args)

    return x(x, x), codegen


def _llvm(name: str, arity: int, flags: tuple[str, ...] = ()):
    """An LLVM intrinsic on floats of either width."""

    def codegen_for(t):
        def codegen(context, builder, signature, args):
            llt = context.get_value_type(t)
            fn = builder.module.declare_intrinsic(name, [llt], ir.FunctionType(llt, [llt] * arity))
            return builder.call(fn, args, fastmath=flags)

        return codegen

    if arity == 1:

        @intrinsic
        def unary(typingctx, x):
            return x(x), codegen_for(x)

        return unary

    if arity == 3:

        @intrinsic
        def ternary(typingctx, x, y, z):
            return x(x, x, x), codegen_for(x)

        return ternary

    @intrinsic
    def binary(typingctx, x, y):
        return x(x, x), codegen_for(x)

    return binary


maximum = _llvm("llvm.maximum", 2)  # nan if either is
minimum = _llvm("llvm.minimum", 2)
fold_maximum = _llvm("llvm.maximum", 2, ("nsz",))  # which of two zeros is the greater need not be found out
fold_minimum = _llvm("llvm.minimum", 2, ("nsz",))
copysign = _llvm("llvm.copysign", 2)
rint = _llvm("llvm.rint", 1)
fma = _llvm("llvm.fma", 3)  # x * y + z, rounded once
floor, ceil, trunc = _llvm("llvm.floor", 1), _llvm("llvm.ceil", 1), _llvm("llvm.trunc", 1)


@intrinsic
def from_half(typingctx, bits):
    """Half precision bits (u16) as float32."""

    def codegen(context, builder, signature, args):
        half = builder.bitcast(args[0], ir.HalfType())
        return builder.fpext(half, ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def polled(typingctx, words):
    """As ``Module.polled`` of ``llvm_function``."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        base = builder.ptrtoint(args[0], word)  # or its words would be known not to change in the call

        def place(k):
            return builder.inttoptr(builder.add(base, word(8 * k)), word.as_pointer())

        left = builder.sub(builder.load(place(Word.LEFT)), word(1))
        builder.store(left, place(Word.LEFT))
        stop = cgutils.alloca_once_value(builder, ir.IntType(1)(0))
        with builder.if_then(builder.icmp_signed("<=", left, word(0)), likely=False):
            builder.store(word(FAILED), place(Word.FAILED))
            kind = ir.FunctionType(ir.VoidType(), [word]).as_pointer()
            python = builder.inttoptr(builder.load(place(Word.CALLBACK)), kind)
            builder.call(python, [builder.load(place(Word.PULSE))])
            status = builder.load_atomic(place(Word.FAILED), "acquire", 8)
            builder.store(builder.icmp_signed("!=", status, word(0)), stop)
        return builder.load(stop)

    return types.boolean(words), codegen


@intrinsic
def to_half(typingctx, x):
    """A number rounded to half precision (float64 once, not twice), as bits."""

    def codegen(context, builder, signature, args):
        if signature.args[0] == types.float64:
            single = _to_odd(builder, args[0])
        else:
            single = context.cast(builder, args[0], signature.args[0], types.float32)
        return builder.bitcast(builder.fptrunc(single, ir.HalfType()), ir.IntType(16))

    return types.uint16(x), codegen


def _to_odd(builder, x):
    """A double as a float, toward zero and with the last bit set where it is inexact: see ``llvm_primitives``."""
    i32_, i64_ = ir.IntType(32), ir.IntType(64)
    near = builder.fptrunc(x, ir.FloatType())
    there, back = (builder.bitcast(a, i64_) for a in (x, builder.fpext(near, ir.DoubleType())))
    above, inexact = (builder.zext(builder.icmp_unsigned(sign, back, there), i32_) for sign in (">", "!="))
    below = builder.sub(builder.bitcast(near, i32_), above)
    return builder.bitcast(builder.or_(below, inexact), ir.FloatType())


@intrinsic(prefer_literal=True)
def memory(typingctx, dtype, n):
    """Memory for a number of elements, while the function runs."""

    def codegen(context, builder, signature, args):
        return cgutils.alloca_once(builder, context.get_value_type(dtype.instance_type), n.literal_value)

    return types.CPointer(dtype.instance_type)(dtype, n), codegen


@intrinsic
def to_int(typingctx, x):
    """Toward zero; the least i64 outside its range, as x86 does and NumPy therefore gives."""

    def codegen(context, builder, signature, args):
        t = signature.args[0]
        i64_ = ir.IntType(64)
        x_ = context.cast(builder, args[0], t, types.float64)
        inside = builder.and_(builder.fcmp_ordered(">=", x_, ir.Constant(ir.DoubleType(), -(2.0**63))),
                              builder.fcmp_ordered("<", x_, ir.Constant(ir.DoubleType(), 2.0**63)))
        safe = builder.select(inside, x_, ir.Constant(ir.DoubleType(), 0.0))
        return builder.select(inside, builder.fptosi(safe, i64_), ir.Constant(i64_, -(2**63)))

    return types.int64(x), codegen


@intrinsic
def bits(typingctx, x):
    """The number of bits of an integer's type."""

    def codegen(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), signature.args[0].bitwidth)

    return types.int64(x), codegen


def _bitcast(source, target, llvm):
    @intrinsic
    def convert(typingctx, x):
        def codegen(context, builder, signature, args):
            return builder.bitcast(context.cast(builder, args[0], signature.args[0], source), llvm)

        return target(x), codegen

    return convert


bits64 = _bitcast(types.float64, types.int64, ir.IntType(64))
float64_of = _bitcast(types.int64, types.float64, ir.DoubleType())
bits32 = _bitcast(types.float32, types.int32, ir.IntType(32))
float32_of = _bitcast(types.int32, types.float32, ir.FloatType())


def _of_c(symbol: str, arity: int = 1):
    """A function of ``double complex``: two floats in registers, as in ``{double, double}``."""

    def codegen(context, builder, signature, args):
        double = ir.DoubleType()
        pair = ir.LiteralStructType([double, double])
        fn = builder.module.globals.get(symbol) or ir.Function(
            builder.module, ir.FunctionType(pair, [double] * (2 * len(args))), symbol)
        given = [context.make_complex(builder, types.complex128, value=a) for a in args]
        found = builder.call(fn, [part for z in given for part in (z.real, z.imag)])
        out = context.make_complex(builder, types.complex128)
        out.real, out.imag = builder.extract_value(found, 0), builder.extract_value(found, 1)
        return out._getvalue()

    if arity == 1:

        @intrinsic
        def function(typingctx, z):
            return types.complex128(types.complex128), codegen
    else:

        @intrinsic
        def function(typingctx, z, w):
            return types.complex128(types.complex128, types.complex128), codegen

    return function


def _function(symbol: str):
    of_c = _of_c(symbol)

    @njit(nogil=True, **OPTIONS)
    def function(z):
        return like(z, of_c(c128(z)))

    return function


c_exp, c_log, c_sqrt = _function("cexp"), _function("clog"), _function("csqrt")
c_sin, c_cos, c_tan, c_sinh, c_cosh, c_tanh = map(_function, ("csin", "ccos", "ctan", "csinh", "ccosh", "ctanh"))
c_asin, c_acos, c_atan = map(_function, ("casin", "cacos", "catan"))
c_asinh, c_acosh, c_atanh = map(_function, ("casinh", "cacosh", "catanh"))
_cpow = _of_c("cpow", 2)
