r"""Prelude with which every translation unit begins: types, bits, and the functions that kernel texts call and C++ has
not.

It needs no header, so NVRTC compiles it, and g++ for the emulated device (``SYMC_EMULATED``). Everything is in the
namespace ``symc``, as kernels are: a name there hides CUDA's function of the same name.
"""

from __future__ import annotations

PLATFORM = r"""
#ifdef SYMC_EMULATED
// Bits may be combined as they come: what overflows in a function is chosen away by its end.
#define SYMC_FUNCTION static inline __attribute__((no_sanitize("undefined")))
#define SYMC_CALLED static __attribute__((no_sanitize("undefined"), unused))
#define SYMC_METHOD __attribute__((no_sanitize("undefined")))
#define SYMC_LIBM(name) __builtin_##name
#define SYMC_INF __builtin_inf()
#define SYMC_NAN __builtin_nan("")
#else
#pragma nv_diag_suppress 177  // not every kernel calls every function
#define SYMC_FUNCTION static __device__ __forceinline__
#define SYMC_CALLED static __device__
#define SYMC_METHOD __device__ __forceinline__
#define SYMC_LIBM(name) ::name
#define SYMC_INF __longlong_as_double(0x7ff0000000000000LL)
#define SYMC_NAN __longlong_as_double(0x7ff8000000000000LL)
#ifndef SYMC_SHARED
#define SYMC_SHARED(T, name) extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  T *name = reinterpret_cast<T *>(name##_bytes)
#endif
#endif
#define SYMC_TYPE(x) symc::plain<decltype(x)>

namespace symc {

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

template <class T> struct plain_ { typedef T type; };
template <class T> struct plain_<T &> { typedef T type; };
template <class T> struct plain_<const T> { typedef T type; };
template <class T> struct plain_<const T &> { typedef T type; };
template <class T> using plain = typename plain_<T>::type;

template <class A, class B> struct same_ { static constexpr bool value = false; };
template <class A> struct same_<A, A> { static constexpr bool value = true; };
template <class A, class B> constexpr bool is_same = same_<A, B>::value;
template <class T> constexpr bool is_float = is_same<T, f32> || is_same<T, f64>;
template <class T> constexpr bool is_narrow = is_same<T, f32> || is_same<T, u32>;
template <class T> constexpr bool is_signed = T(-1) < T(0);

// Some elements at once: as many bytes as one instruction moves.
template <class T, int N> struct alignas(sizeof(T) * N) Vector { T at[N]; };

// Results of a function that has several.
struct Nothing {};
template <class A, class B, class C = Nothing, class D = Nothing, class E = Nothing> struct Several {
  A _0; B _1; C _2; D _3; E _4;
};
template <class A, class B, class C = Nothing, class D = Nothing, class E = Nothing>
SYMC_FUNCTION Several<A, B, C, D, E> several(A a, B b, C c = {}, D d = {}, E e = {}) { return {a, b, c, d, e}; }
"""

BITS = r"""
SYMC_FUNCTION i64 bits64(f64 x) { return __double_as_longlong(x); }
SYMC_FUNCTION f64 float64_of(i64 x) { return __longlong_as_double(x); }
SYMC_FUNCTION i32 bits32(f32 x) { return __float_as_int(x); }
SYMC_FUNCTION f32 float32_of(i32 x) { return __int_as_float(x); }

// Half precision: stored as bits, computed in single.
SYMC_FUNCTION f32 from_half(u16 h) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
SYMC_FUNCTION u16 half_of(f32 x) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
// A double is rounded once: first toward zero, with the last bit set where that is inexact.
SYMC_FUNCTION u16 half_of(f64 x) {
  const f32 near_ = f32(x);
  const u64 there = u64(bits64(x)), back = u64(bits64(f64(near_)));
  return half_of(float32_of(i32((u32(bits32(near_)) - u32(back > there)) | u32(back != there))));
}
template <class T> SYMC_FUNCTION u16 to_half(T x) {
  if constexpr (is_same<T, f64>) return half_of(x);
  else return half_of(f32(x));
}
// The upper half of a single: GPUs round to it by one instruction from sm_80 on.
SYMC_FUNCTION u16 bfloat_of(f32 x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const u32 b = u32(bits32(x));
  return x != x ? u16(b >> 16 | 64u) : u16((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
#endif
}
template <class T> SYMC_FUNCTION u16 to_bfloat(T x) { return bfloat_of(f32(x)); }
template <class T> SYMC_FUNCTION f32 from_bfloat(T h) { return float32_of(i32(u32(h) << 16)); }
"""

NUMBERS = r"""
template <class T, class C> SYMC_FUNCTION T like(T, C c) { return T(c); }
template <class T> SYMC_FUNCTION i64 bits(T) { return 8 * sizeof(T); }

template <class T> SYMC_FUNCTION auto minus(T x) {
  if constexpr (is_float<T>) return -x;
  else if constexpr (T(-1) < T(0)) return i64(0 - u64(i64(x)));
  else return u64(0) - u64(x);
}
template <class T> SYMC_FUNCTION auto abs(T x) {
  if constexpr (is_same<T, f32>) return SYMC_LIBM(fabsf)(x);
  else if constexpr (is_same<T, f64>) return SYMC_LIBM(fabs)(x);
  else if constexpr (T(-1) < T(0)) return i64(x < 0 ? 0 - u64(i64(x)) : u64(x));
  else return x;
}
template <class A, class B> SYMC_FUNCTION auto min(A a, B b) { return a < b ? a : b; }
template <class A, class B> SYMC_FUNCTION auto max(A a, B b) { return a > b ? a : b; }

// Integers that overflow as NumPy's do.
template <class A, class B> SYMC_FUNCTION i64 wrap_add(A a, B b) { return i64(u64(i64(a)) + u64(i64(b))); }
template <class A, class B> SYMC_FUNCTION i64 wrap_sub(A a, B b) { return i64(u64(i64(a)) - u64(i64(b))); }
template <class A, class B> SYMC_FUNCTION i64 wrap_mul(A a, B b) { return i64(u64(i64(a)) * u64(i64(b))); }

// Arithmetic of integers is 64 bits wide; with an unsigned number on the left it is unsigned.
template <class A, class B> SYMC_FUNCTION auto shift_up(A a, B n) {
  if constexpr (is_signed<A>) return i64(u64(i64(a)) << n);
  else return u64(a) << n;
}
template <class A, class B> SYMC_FUNCTION auto shift_down(A a, B n) {
  if constexpr (is_signed<A>) return i64(a) >> n;
  else return u64(a) >> n;
}
template <class A, class B> SYMC_FUNCTION auto floor_divide(A a, B b) {
  if constexpr (!is_signed<A>) {
    return u64(a) / u64(b);
  } else {
    const i64 x = a, y = i64(b), q = x / y;
    return q - ((x % y != 0) & ((x ^ y) < 0));
  }
}
template <class A, class B> SYMC_FUNCTION auto floor_modulo(A a, B b) {
  if constexpr (!is_signed<A>) {
    return u64(a) % u64(b);
  } else {
    const i64 x = a, y = i64(b), r = x % y;
    return r + ((r != 0) & ((x ^ y) < 0) ? y : 0);
  }
}
// The same of indices, which are in range; 0 where b is 0.
template <class I> SYMC_FUNCTION I index_floordiv(I a, I b) {
  return b == 0 ? 0 : a / b - ((a % b != 0) & ((a ^ b) < 0));
}
template <class I> SYMC_FUNCTION I index_mod(I a, I b) {
  const I r = b == 0 ? 0 : a % b;
  return r + ((r != 0) & ((a ^ b) < 0) ? b : 0);
}

// Toward zero; the least i64 outside its range.
template <class T> SYMC_FUNCTION i64 to_int(T x) {
  const f64 y = f64(x);
  return y >= -9223372036854775808.0 && y < 9223372036854775808.0 ? i64(y) : -9223372036854775807LL - 1;
}
"""

FLOATS = r"""
#define SYMC_UNARY(name, narrow, wide) \
  template <class T> SYMC_FUNCTION auto name(T x) { \
    if constexpr (is_same<T, f32>) return SYMC_LIBM(narrow)(x); \
    else return SYMC_LIBM(wide)(f64(x)); \
  }
SYMC_UNARY(math_sqrt, sqrtf, sqrt)
SYMC_UNARY(floor, floorf, floor)
SYMC_UNARY(ceil, ceilf, ceil)
SYMC_UNARY(trunc, truncf, trunc)
SYMC_UNARY(rint, rintf, rint)
SYMC_UNARY(libm_sin, sinf, sin)
SYMC_UNARY(libm_cos, cosf, cos)
SYMC_UNARY(libm_tan, tanf, tan)
SYMC_UNARY(libm_lgamma, lgammaf, lgamma)
SYMC_UNARY(math_gamma, tgammaf, tgamma)
SYMC_UNARY(libm_exp10, exp10f, exp10)
#define SYMC_BESSEL(name) /* nan at infinities, as in SciPy */ \
  SYMC_UNARY(finite_##name, name##f, name) \
  template <class T> SYMC_FUNCTION auto libm_##name(T x) { return finite_##name(x) + (x - x); }
SYMC_BESSEL(j0) SYMC_BESSEL(j1) SYMC_BESSEL(y0) SYMC_BESSEL(y1)

template <class A, class B> SYMC_FUNCTION auto copysign(A x, B y) {
  if constexpr (is_same<A, f32>) return SYMC_LIBM(copysignf)(x, f32(y));
  else return SYMC_LIBM(copysign)(f64(x), f64(y));
}
template <class A, class B> SYMC_FUNCTION auto libm_pow(A x, B y) {
  if constexpr (is_same<A, f32> && is_same<B, f32>) return SYMC_LIBM(powf)(x, y);
  else return SYMC_LIBM(pow)(f64(x), f64(y));
}
template <class A, class B> SYMC_FUNCTION A fmod(A x, B y) {
  if constexpr (is_same<A, f32>) return SYMC_LIBM(fmodf)(x, f32(y));
  else return SYMC_LIBM(fmod)(f64(x), f64(y));
}
template <class A, class B, class C> SYMC_FUNCTION A fma(A x, B y, C z) {
  if constexpr (is_same<A, f32>) return SYMC_LIBM(fmaf)(x, f32(y), f32(z));
  else return SYMC_LIBM(fma)(f64(x), f64(y), f64(z));
}

// A product that is rounded, and never contracted with a sum.
template <class A, class B> SYMC_FUNCTION A times(A x, B y) {
#ifdef SYMC_EMULATED
  volatile A product = x * A(y);
  return product;
#else
  if constexpr (is_same<A, f32>) return __fmul_rn(x, f32(y));
  else return __dmul_rn(x, f64(y));
#endif
}

// Nan if either is; -0 is less than 0. GPUs have instructions for that from sm_80 on.
#if __CUDA_ARCH__ >= 800
SYMC_FUNCTION f32 single_maximum(f32 a, f32 b) {
  f32 y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
SYMC_FUNCTION f32 single_minimum(f32 a, f32 b) {
  f32 y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#define SYMC_OF_SINGLES(name) if constexpr (is_same<A, f32>) return single_##name(a, b);
#else
#define SYMC_OF_SINGLES(name)
#endif
#define SYMC_EXTREME(name, beyond, bits) \
  template <class A, class B> SYMC_FUNCTION A name(A a, B b_) { \
    const A b = A(b_); \
    SYMC_OF_SINGLES(name) \
    if (a beyond b || a != a) return a; \
    if constexpr (is_same<A, f32>) return a == b ? float32_of(bits32(a) bits bits32(b)) : b; \
    else return a == b ? float64_of(bits64(a) bits bits64(b)) : b; \
  }
SYMC_EXTREME(maximum, >, &)
SYMC_EXTREME(minimum, <, |)

// Steps of folds, which may be taken in any order.
template <class A, class B> SYMC_FUNCTION A fold_add(A a, B b) { return a + A(b); }
template <class A, class B> SYMC_FUNCTION A fold_mul(A a, B b) { return a * A(b); }
template <class A, class B> SYMC_FUNCTION A fold_maximum(A a, B b) { return maximum(a, b); }
template <class A, class B> SYMC_FUNCTION A fold_minimum(A a, B b) { return minimum(a, b); }

// Say that the reference raises.
SYMC_FUNCTION void fail(i32 *failed) { atomicExch(failed, 1); }
"""

#: Complex numbers: a pair, its arithmetic. Functions are computed in double precision, as on the CPU
#: (``symc.runtime.library.complex_parts``).
COMPLEX = r"""
template <class T> struct alignas(2 * sizeof(T)) Complex {
  T real, imag;
#ifdef SYMC_EMULATED
  constexpr Complex() : real(0), imag(0) {}  // or g++ guards the first use of shared memory
#else
  Complex() = default;
#endif
  template <class A> SYMC_METHOD Complex(A a) : real(T(a)), imag(T(0)) {}
  template <class A, class B> SYMC_METHOD Complex(A a, B b) : real(T(a)), imag(T(b)) {}
  template <class A> SYMC_METHOD Complex(const Complex<A> &z) : real(T(z.real)), imag(T(z.imag)) {}
  SYMC_METHOD Complex conjugate() const { return Complex(real, -imag); }
};
typedef Complex<f32> c64;
typedef Complex<f64> c128;
template <class A, class B> SYMC_FUNCTION auto complex(A a, B b) {
  if constexpr (is_same<A, f32> && is_same<B, f32>) return c64(a, b);
  else return c128(a, b);
}

template <class T> SYMC_FUNCTION Complex<T> operator+(Complex<T> x, Complex<T> y) {
  return Complex<T>(x.real + y.real, x.imag + y.imag);
}
template <class T> SYMC_FUNCTION Complex<T> operator-(Complex<T> x, Complex<T> y) {
  return Complex<T>(x.real - y.real, x.imag - y.imag);
}
template <class T> SYMC_FUNCTION Complex<T> operator*(Complex<T> x, Complex<T> y) {
  return Complex<T>(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real);
}
template <class T> SYMC_FUNCTION bool operator==(Complex<T> x, Complex<T> y) {
  return x.real == y.real && x.imag == y.imag;
}
template <class T> SYMC_FUNCTION bool operator!=(Complex<T> x, Complex<T> y) { return !(x == y); }
template <class T> SYMC_FUNCTION bool operator==(Complex<T> x, int y) { return x == Complex<T>(y); }
template <class T> SYMC_FUNCTION bool operator!=(Complex<T> x, int y) { return !(x == Complex<T>(y)); }
template <class T> SYMC_FUNCTION bool operator==(Complex<T> x, i64 y) { return x == Complex<T>(y); }
template <class T> SYMC_FUNCTION bool operator!=(Complex<T> x, i64 y) { return !(x == Complex<T>(y)); }
template <class T> SYMC_FUNCTION Complex<T> minus(Complex<T> x) { return Complex<T>(-x.real, -x.imag); }
"""

#: The whole text, which opens the namespace; ``END`` closes it.
PRELUDE = PLATFORM + BITS + NUMBERS + FLOATS + COMPLEX
# The emulated device calls entries by their names, which are C's, from outside.
END = """}  // namespace symc
#ifdef SYMC_EMULATED
using namespace symc;
#endif
"""
