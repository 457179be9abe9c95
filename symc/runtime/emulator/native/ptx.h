// Instructions of PTX that kernels are written in, as functions: what is not here does not compile.
#pragma once

static inline float ptx_float_of(unsigned x) {
  float y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
static inline unsigned ptx_bits(float x) {
  unsigned y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

static inline float ptx_cvt_f32_f16(unsigned short h) {
  const unsigned sign = unsigned(h & 0x8000u) << 16, size = h & 0x7fffu;
  if (size < 0x0400u) return ptx_float_of(ptx_bits(float(size) * 5.9604644775390625e-08f) | sign);
  return ptx_float_of(sign | ((size << 13) + (size < 0x7c00u ? 0x38000000u : 0x70000000u)));
}
static inline unsigned short ptx_cvt_rn_f16_f32(float x) {
  const unsigned b = ptx_bits(x), size = b & 0x7fffffffu, sign = (b >> 16) & 0x8000u;
  if (size > 0x7f800000u) return sign | 0x7e00u | ((size >> 13) & 0x3ffu);
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | unsigned(__builtin_rintf(ptx_float_of(size) * 16777216.0f));
  return sign | ((size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13);
}
static inline unsigned short ptx_cvt_rn_bf16_f32(float x) {
  const unsigned b = ptx_bits(x);
  return x != x ? 0x7fff : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
}
static inline float ptx_max_NaN_f32(float a, float b) {
  if (a > b || a != a) return a;
  return a == b ? ptx_float_of(ptx_bits(a) & ptx_bits(b)) : b;
}
static inline float ptx_min_NaN_f32(float a, float b) {
  if (a < b || a != a) return a;
  return a == b ? ptx_float_of(ptx_bits(a) | ptx_bits(b)) : b;
}
