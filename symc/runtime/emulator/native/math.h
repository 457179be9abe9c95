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
static inline float frexpf(float x, int* n) { return __builtin_frexpf(x, n); }
static inline double frexp(double x, int* n) { return __builtin_frexp(x, n); }
static inline float modff(float x, float* n) { return __builtin_modff(x, n); }
static inline double modf(double x, double* n) { return __builtin_modf(x, n); }
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

template <class T>
static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T>
static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T>
static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T>
static inline bool signbit(T x) { return __builtin_signbit(x); }

static inline int abs(int x) { return __builtin_abs(x); }
static inline long long abs(long long x) { return __builtin_llabs(x); }
static inline long long llabs(long long x) { return __builtin_llabs(x); }
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
static inline float __expf(float x) { return __builtin_expf(x); }
static inline float __logf(float x) { return __builtin_logf(x); }
static inline float __log2f(float x) { return __builtin_log2f(x); }
static inline float __sinf(float x) { return __builtin_sinf(x); }
static inline float __cosf(float x) { return __builtin_cosf(x); }
static inline float __powf(float x, float y) { return __builtin_powf(x, y); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frsqrt_rn(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

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
static inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
static inline double __hiloint2double(int hi, int lo) {
    return __longlong_as_double((long long)((unsigned long long)(unsigned)hi << 32 | (unsigned)lo));
}

static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1u) << (31 - i);
    return r;
}
static inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return unsigned((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return unsigned(((unsigned long long)hi << 32 | lo) >> (n & 31));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= unsigned(both >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return r;
}

// Conversions that a C++ cast leaves undefined out of range: CUDA's saturate, and make 0 of a nan.
#define SYMC_CONVERT(name, from, to, round, low, high)                                                  \
    static inline to name(from x) {                                                                     \
        from r = round(x);                                                                              \
        return r != r ? (to)0 : r <= (from)(low) ? (to)(low) : r >= (from)(high) ? (to)(high) : (to)r;      \
    }
#define SYMC_CONVERTS(prefix, from, suffix)                                                                          \
    SYMC_CONVERT(prefix##2int_rn, from, int, __builtin_rint##suffix, -2147483647 - 1, 2147483647)                    \
    SYMC_CONVERT(prefix##2int_rz, from, int, __builtin_trunc##suffix, -2147483647 - 1, 2147483647)                   \
    SYMC_CONVERT(prefix##2int_rd, from, int, __builtin_floor##suffix, -2147483647 - 1, 2147483647)                   \
    SYMC_CONVERT(prefix##2uint_rn, from, unsigned, __builtin_rint##suffix, 0, 4294967295u)                           \
    SYMC_CONVERT(prefix##2uint_rz, from, unsigned, __builtin_trunc##suffix, 0, 4294967295u)                          \
    SYMC_CONVERT(prefix##2ll_rn, from, long long, __builtin_rint##suffix, -0x7fffffffffffffffll - 1,                 \
                 0x7fffffffffffffffll)                                                                               \
    SYMC_CONVERT(prefix##2ll_rz, from, long long, __builtin_trunc##suffix, -0x7fffffffffffffffll - 1,                \
                 0x7fffffffffffffffll)                                                                               \
    SYMC_CONVERT(prefix##2ull_rz, from, unsigned long long, __builtin_trunc##suffix, 0, 0xffffffffffffffffull)
SYMC_CONVERTS(__float, float, f)
SYMC_CONVERTS(__double, double, )
static inline float __double2float_rn(double x) { return float(x); }
static inline float __int2float_rn(int x) { return float(x); }
static inline float __uint2float_rn(unsigned x) { return float(x); }
static inline float __ll2float_rn(long long x) { return float(x); }
static inline float __ull2float_rn(unsigned long long x) { return float(x); }
static inline double __ll2double_rn(long long x) { return double(x); }
static inline double __ull2double_rn(unsigned long long x) { return double(x); }
