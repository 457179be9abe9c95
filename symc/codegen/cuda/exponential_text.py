r"""Kernels of the exponential of a matrix: what lies between its products. See ``matrix_text``.

Padé's approximant of degree 13 of a matrix that is divided by 2 until its norm is small enough for it, squared as often
(Higham 2005).
"""

from __future__ import annotations

#: How often results can be squared: norms up to 2e10. What is larger becomes nan.
SQUARINGS = 32

EXPONENTIAL = r"""
extern "C" __global__ void __launch_bounds__(512) expm_scale(const T *a, T *o, i32 *halved, i64 n, i64 most) {
  __shared__ R room[32];
  a += blockIdx.x * n * n;
  o += blockIdx.x * n * n;
  R norm = R(0);
  for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
    R x = R(0);
    for (i64 i = 0; i < n; i++) x += modulus_(a[i * n + j]);
    norm = maximum(norm, x);
  }
  norm = block_max(norm, room);
  i32 times = 0;
  R unit = R(1);
  for (; norm * unit > R(5.37) && times <= most; times++) unit /= 2;
  if (times > most) unit = R(SYMC_NAN);
  for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) {
    const T x = a[e] * unit;
    o[e] = x;
  }
  if (threadIdx.x == 0) halved[blockIdx.x] = times;
}
// p: of the odd powers, q: of the even ones; first the highest, then what is added to their products with a6.
extern "C" __global__ void __launch_bounds__(256) expm_mix(const T *a2, const T *a4, const T *a6, T *p, T *q, i64 n,
                                                           i64 total, i64 second) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const T x = a2[e], y = a4[e], z = a6[e];
  if (!second) {
    const T odd = z + R(16380) * y + R(40840800) * x, even = R(182) * z + R(960960) * y + R(1323241920) * x;
    p[e] = odd;
    q[e] = even;
    return;
  }
  const R one = R(e % n == e / n % n);
  const T odd = p[e] + (R(33522128640.) * z + R(10559470521600.) * y + R(1187353796428800.) * x)
              + T(R(32382376266240000.) * one);
  const T even = q[e] + (R(670442572800.) * z + R(129060195264000.) * y + R(7771770303897600.) * x)
               + T(R(64764752532480000.) * one);
  p[e] = odd;
  q[e] = even;
}
// The two sides of the equation for the result.
extern "C" __global__ void __launch_bounds__(256) expm_sides(T *odd, T *even, i64 total) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const T x = odd[e], y = even[e], left = y - x, right = y + x;
  odd[e] = left;
  even[e] = right;
}
extern "C" __global__ void __launch_bounds__(256) expm_keep(T *x, const T *square, const i32 *halved, i64 n, i64 total,
                                                            i64 step) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e < total && step < halved[e / (n * n)]) x[e] = square[e];
}
"""

__all__ = ["EXPONENTIAL", "SQUARINGS"]
