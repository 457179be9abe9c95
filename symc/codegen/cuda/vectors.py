"""Pieces of CUDA C++ that templates put before their text, each once in a translation unit."""

from __future__ import annotations

#: A vector is read or written by one instruction. It lies at a multiple of its size.
VECTORS = """\
#ifndef SYMC_PART_VECTORS
#define SYMC_PART_VECTORS
template <class T, int N> SYMC_FUNCTION void load_vector(Vector<T, N> &to, const T *from) {
  to = *reinterpret_cast<const Vector<T, N> *>(from);
}
template <class T, int N> SYMC_FUNCTION void store_vector(T *to, const Vector<T, N> &from) {
  *reinterpret_cast<Vector<T, N> *>(to) = from;
}
template <int N, class T> SYMC_FUNCTION void store_array(T *to, const T *from) {
  constexpr int at_once = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
  #pragma unroll
  for (int k = 0; k < N; k += at_once) {
    Vector<T, at_once> part;
    #pragma unroll
    for (int e = 0; e < at_once; ++e) part.at[e] = from[k + e];
    store_vector(to + k, part);
  }
}
#endif"""

#: What another lane has: one whose number differs in these bits, one so many below (its own if there is none), a
#: certain one. All lanes of a warp take part.
SHUFFLE = """\
#ifndef SYMC_PART_ACROSS
#define SYMC_PART_ACROSS
template <class T> SYMC_FUNCTION T across(T x, int bits) {
  if constexpr (sizeof(T) < 4) return T(__shfl_xor_sync(0xffffffffu, i32(x), bits));
  else return __shfl_xor_sync(0xffffffffu, x, bits);
}
template <class T> SYMC_FUNCTION T below(T x, int lanes) {
  if constexpr (sizeof(T) < 4) return T(__shfl_up_sync(0xffffffffu, i32(x), lanes));
  else return __shfl_up_sync(0xffffffffu, x, lanes);
}
template <class T> SYMC_FUNCTION T of_lane(T x, int lane) {
  if constexpr (sizeof(T) < 4) return T(__shfl_sync(0xffffffffu, i32(x), lane));
  else return __shfl_sync(0xffffffffu, x, lane);
}
#endif"""

#: Of two elements and their places, is the second the one that argmax (argmin) finds? A nan is found before all
#: others, and the first of equals.
BETTER = """\
#ifndef SYMC_PART_BETTER
#define SYMC_PART_BETTER
template <class T, class I> SYMC_FUNCTION bool finds_max(T x, I p, T y, I q) {
  if (q < 0 || p < 0) return p < 0 && q >= 0;
  const bool nan_x = x != x, nan_y = y != y;
  if (nan_x || nan_y) return nan_y && (!nan_x || q < p);
  return y > x || (y == x && q < p);
}
template <class T, class I> SYMC_FUNCTION bool finds_min(T x, I p, T y, I q) {
  if (q < 0 || p < 0) return p < 0 && q >= 0;
  const bool nan_x = x != x, nan_y = y != y;
  if (nan_x || nan_y) return nan_y && (!nan_x || q < p);
  return y < x || (y == x && q < p);
}
#endif"""


def vector_type(element: str, count: int) -> str:
    return f"Vector<{element}, {count}>"
