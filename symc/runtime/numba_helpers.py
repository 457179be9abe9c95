# mypy: ignore-errors
"""The names that kernel sources use: scalar functions that NumPy has and Numba has not, or has with other edge cases.

Imported only when a kernel is compiled (it imports numba). Every function keeps the dtype of its operand: `like` makes
constants of it, since a bare 1.0 would widen float32.
"""

from __future__ import annotations

import math

import numba
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

INF, NAN = math.inf, math.nan
u8, i8, u16, i16, u32, i32 = numba.uint8, numba.int8, numba.uint16, numba.int16, numba.uint32, numba.int32
u64, i64, f32, f64 = numba.uint64, numba.int64, numba.float32, numba.float64
c64, c128 = numba.complex64, numba.complex128


def _inline(function):
    return njit(function, error_model="numpy", nogil=True)


# --- LLVM instructions ------------------------------------------------------------------------------------------------


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
            return getattr(builder, instruction)(a_, b_, flags=("reassoc", "nsz", "contract"))

        return a(a, a), codegen

    return combine


fold_add = _reassociable("fadd")
fold_mul = _reassociable("fmul")


@intrinsic
def fmod(typingctx, x, y):
    """The remainder with the sign of x."""

    def codegen(context, builder, signature, args):
        return builder.frem(*args)

    return x(x, x), codegen


def _llvm(name: str, arity: int):
    """An LLVM intrinsic on floats of either width."""

    def codegen_for(t):
        def codegen(context, builder, signature, args):
            llt = context.get_value_type(t)
            fn = builder.module.declare_intrinsic(name, [llt], ir.FunctionType(llt, [llt] * arity))
            return builder.call(fn, args)

        return codegen

    if arity == 1:

        @intrinsic
        def unary(typingctx, x):
            return x(x), codegen_for(x)

        return unary

    @intrinsic
    def binary(typingctx, x, y):
        return x(x, x), codegen_for(x)

    return binary


maximum = _llvm("llvm.maximum", 2)  # nan if either is
minimum = _llvm("llvm.minimum", 2)
rint = _llvm("llvm.rint", 1)
floor, ceil, trunc = _llvm("llvm.floor", 1), _llvm("llvm.ceil", 1), _llvm("llvm.trunc", 1)


@intrinsic
def from_half(typingctx, bits):
    """Half precision bits (u16) as float32."""

    def codegen(context, builder, signature, args):
        half = builder.bitcast(args[0], ir.HalfType())
        return builder.fpext(half, ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def to_half(typingctx, x):
    """float32 rounded to half precision, as bits."""

    def codegen(context, builder, signature, args):
        x_ = context.cast(builder, args[0], signature.args[0], types.float32)
        return builder.bitcast(builder.fptrunc(x_, ir.HalfType()), ir.IntType(16))

    return types.uint16(x), codegen


@_inline
def round_half(x):
    return from_half(to_half(x))


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


# --- functions --------------------------------------------------------------------------------------------------------


@_inline
def zero(x):
    return like(x, 0)


@_inline
def inf(x):
    return like(x, INF)


@_inline
def sign(x):
    return like(x, 1) if x > 0 else (like(x, -1) if x < 0 else x + zero(x))


@_inline
def fmax(x, y):
    return y if x != x else (x if y != y or x >= y else y)


@_inline
def fmin(x, y):
    return y if x != x else (x if y != y or x <= y else y)


@_inline
def mod(x, y):
    r = fmod(x, y)
    if r != 0:
        return r + y if (y < 0) != (r < 0) else r
    return math.copysign(zero(x), y) if r == 0 else r


@_inline
def floordiv(x, y):
    if y == 0:
        return x / y
    r = fmod(x, y)
    q = (x - r) / y
    if r != 0 and (y < 0) != (r < 0):
        q = q - like(x, 1)
    if q == 0:
        return math.copysign(zero(x), x / y)
    f = floor(q)
    return f + like(x, 1) if q - f > 0.5 else f


@_inline
def int_floordiv(x, y):
    if y == 0:
        return like(x, 0)
    if y == like(y, -1) and y < 0:
        return like(x, -x)
    return like(x, x // y)


@_inline
def int_mod(x, y):
    if y == 0 or (y == like(y, -1) and y < 0):
        return like(x, 0)
    return like(x, x % y)


@_inline
def int_fmod(x, y):
    r = int_mod(x, y)
    return like(x, r - y) if r != 0 and (x < 0) != (y < 0) else r


@_inline
def int_pow(x, y):
    if y < 0:
        if x == 1:
            return like(x, 1)
        if x == like(x, -1):
            return like(x, 1) if y % 2 == 0 else x
        return like(x, 0)
    result = like(x, 1)
    while y > 0:
        if y & 1:
            result = like(x, result * x)
        x = like(x, x * x)
        y = like(y, y >> 1)
    return result


@intrinsic
def bits(typingctx, x):
    """The number of bits of an integer's type."""

    def codegen(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), signature.args[0].bitwidth)

    return types.int64(x), codegen


@_inline
def shift_left(x, y):
    return like(x, x << y) if 0 <= y < bits(x) else like(x, 0)


@_inline
def shift_right(x, y):
    return like(x, x >> y) if 0 <= y < bits(x) else (like(x, -1) if x < 0 else like(x, 0))


@_inline
def hypot(x, y):
    a, b = abs(x), abs(y)
    if a == inf(a) or b == inf(b):
        return inf(a)
    big, small = (a, b) if a > b else (b, a)
    if small != small or a != a:
        return a + b
    if big == 0:
        return big
    r = small / big
    return big * math.sqrt(like(x, 1) + r * r)


@_inline
def exp2(x):
    return math.pow(like(x, 2), x)


@_inline
def cbrt(x):
    if x == 0 or x != x or abs(x) == inf(x):
        return x
    a = abs(f64(x))
    y = math.pow(a, 1.0 / 3.0)
    y = y - (y * y * y - a) / (3.0 * y * y)
    return math.copysign(like(x, y), x)


@_inline
def sigmoid(x):
    e = math.exp(-abs(x))
    return (like(x, 1) if x >= 0 else e) / (like(x, 1) + e)


@_inline
def softplus(x):
    return (x if x > 0 else zero(x)) + math.log1p(math.exp(-abs(x)))


@_inline
def logaddexp(x, y):
    if x == y:
        return x + like(x, 0.6931471805599453)
    return (x if x > y else y) + math.log1p(math.exp(-abs(x - y))) if x == x and y == y else x + y


@_inline
def log1mexp(x):
    return math.log(-math.expm1(x)) if x > like(x, -0.6931471805599453) else math.log1p(-math.exp(x))
