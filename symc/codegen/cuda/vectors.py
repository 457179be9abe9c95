"""Pieces of CUDA C++ that templates put before their text, each once in a translation unit."""

from __future__ import annotations

#: A vector is read or written by one instruction. It lies at a multiple of its size.
VECTORS = """\
#ifndef SYMC_VECTORS
#define SYMC_VECTORS
template <class T, int N> __device__ __forceinline__ void load_vector(Vector<T, N> &to, const T *from) {
  to = *reinterpret_cast<const Vector<T, N> *>(from);
}
template <class T, int N> __device__ __forceinline__ void store_vector(T *to, const Vector<T, N> &from) {
  *reinterpret_cast<Vector<T, N> *>(to) = from;
}
#endif"""

#: What the lane has whose number differs in these bits. All lanes of a warp take part.
SHUFFLE = """\
#ifndef SYMC_SHUFFLE
#define SYMC_SHUFFLE
template <class T> __device__ __forceinline__ T across(T x, int bits) { return __shfl_xor_sync(0xffffffffu, x, bits); }
template <> __device__ __forceinline__ bool across(bool x, int bits) {
  return __shfl_xor_sync(0xffffffffu, int(x), bits) != 0;
}
template <> __device__ __forceinline__ i8 across(i8 x, int bits) { return i8(across(i32(x), bits)); }
template <> __device__ __forceinline__ u8 across(u8 x, int bits) { return u8(across(u32(x), bits)); }
template <> __device__ __forceinline__ i16 across(i16 x, int bits) { return i16(across(i32(x), bits)); }
template <> __device__ __forceinline__ u16 across(u16 x, int bits) { return u16(across(u32(x), bits)); }
#endif"""

#: Of two elements and their places, is the second the one that argmax (argmin) finds? A nan is found before all
#: others, and the first of equals.
BETTER = """\
#ifndef SYMC_BETTER
#define SYMC_BETTER
template <class T, class I> __device__ __forceinline__ bool finds_max(T x, I p, T y, I q) {
  if (q < 0 || p < 0) return p < 0 && q >= 0;
  const bool nan_x = x != x, nan_y = y != y;
  if (nan_x || nan_y) return nan_y && (!nan_x || q < p);
  return y > x || (y == x && q < p);
}
template <class T, class I> __device__ __forceinline__ bool finds_min(T x, I p, T y, I q) {
  if (q < 0 || p < 0) return p < 0 && q >= 0;
  const bool nan_x = x != x, nan_y = y != y;
  if (nan_x || nan_y) return nan_y && (!nan_x || q < p);
  return y < x || (y == x && q < p);
}
#endif"""


def vector_type(element: str, count: int) -> str:
    return f"Vector<{element}, {count}>"
