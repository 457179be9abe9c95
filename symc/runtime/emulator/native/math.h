// Arithmetic that CUDA has without an include. The functions of the C library stand for CUDA's own, which round
// differently in the last places.
#pragma once

#define SYMC_MATH1(name)                                                            \
    static inline float name##f(float x) { return __builtin_##name##f(x); }         \
    static inline double name(double x) { return __builtin_##name(x); }             \
    static inline float name(float x) { return __builtin_##name##f(x); }
#define SYMC_MATH2(name)                                                                   \
    static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }    \
    static inline double name(double x, double y) { return __builtin_##name(x, y); }       \
    static inline float name(float x, float y) { return __builtin_##name##f(x, y); }

SYMC_MATH1(sqrt) SYMC_MATH1(fabs) SYMC_MATH1(floor) SYMC_MATH1(ceil) SYMC_MATH1(trunc) SYMC_MATH1(rint)
SYMC_MATH1(nearbyint) SYMC_MATH1(round) SYMC_MATH1(exp) SYMC_MATH1(exp2) SYMC_MATH1(expm1) SYMC_MATH1(log)
SYMC_MATH1(log2) SYMC_MATH1(log10) SYMC_MATH1(log1p) SYMC_MATH1(sin) SYMC_MATH1(cos) SYMC_MATH1(tan) SYMC_MATH1(asin)
SYMC_MATH1(acos) SYMC_MATH1(atan) SYMC_MATH1(sinh) SYMC_MATH1(cosh) SYMC_MATH1(tanh) SYMC_MATH1(asinh)
SYMC_MATH1(acosh) SYMC_MATH1(atanh) SYMC_MATH1(erf) SYMC_MATH1(erfc) SYMC_MATH1(cbrt) SYMC_MATH1(lgamma)
SYMC_MATH1(tgamma)
SYMC_MATH2(fmin) SYMC_MATH2(fmax) SYMC_MATH2(fmod) SYMC_MATH2(copysign) SYMC_MATH2(pow) SYMC_MATH2(atan2)
SYMC_MATH2(hypot) SYMC_MATH2(remainder) SYMC_MATH2(nextafter) SYMC_MATH2(fdim)

static inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
static inline double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

#define SYMC_IS(name) \
    template <class T> static inline bool name(T x) { return __builtin_##name(x); }
SYMC_IS(isnan) SYMC_IS(isinf) SYMC_IS(isfinite) SYMC_IS(signbit)

static inline int abs(int x) { return __builtin_abs(x); }
static inline long long abs(long long x) { return __builtin_llabs(x); }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }

#define SYMC_MINMAX(T)                                             \
    static inline T min(T a, T b) { return b < a ? b : a; }        \
    static inline T max(T a, T b) { return a < b ? b : a; }
SYMC_MINMAX(int) SYMC_MINMAX(unsigned) SYMC_MINMAX(long long) SYMC_MINMAX(unsigned long long)
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }

// Rounded to nearest and never contracted.
#define SYMC_ROUNDED(letter, T, suffix)                                                                        \
    static inline __attribute__((optimize("fp-contract=off"))) T __##letter##add_rn(T a, T b) { return a + b; } \
    static inline __attribute__((optimize("fp-contract=off"))) T __##letter##sub_rn(T a, T b) { return a - b; } \
    static inline __attribute__((optimize("fp-contract=off"))) T __##letter##mul_rn(T a, T b) { return a * b; } \
    static inline T __##letter##div_rn(T a, T b) { return a / b; }                                             \
    static inline T __##letter##rcp_rn(T a) { return T(1) / a; }                                               \
    static inline T __##letter##sqrt_rn(T a) { return __builtin_sqrt##suffix(a); }
SYMC_ROUNDED(f, float, f)
SYMC_ROUNDED(d, double, )
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
#define SYMC_FAST(name) static inline float __##name##f(float x) { return __builtin_##name##f(x); }
SYMC_FAST(exp) SYMC_FAST(log) SYMC_FAST(log2) SYMC_FAST(sin) SYMC_FAST(cos)

#define SYMC_BITS(name, from, to)                \
    static inline to name(from x) {              \
        to r;                                    \
        __builtin_memcpy(&r, &x, sizeof r);      \
        return r;                                \
    }
SYMC_BITS(__float_as_int, float, int)
SYMC_BITS(__float_as_uint, float, unsigned)
SYMC_BITS(__int_as_float, int, float)
SYMC_BITS(__uint_as_float, unsigned, float)
SYMC_BITS(__double_as_longlong, double, long long)
SYMC_BITS(__longlong_as_double, long long, double)
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
