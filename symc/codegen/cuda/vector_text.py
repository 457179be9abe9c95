r"""Kernels of orthogonal factorizations: strips of Householder's reflections; and what is done with the matrices that a
library factorizes. See ``matrix_text`` for what all of these kernels have in common.
"""

from __future__ import annotations

#: A strip of columns from row and column `at` on as R and reflections I - tau v v^T; v (with its 1 and the zeros above
#: it) goes to `v`, and to `tri` the triangle with which the product of all of them is I - V tri V^T.
QR_PANEL = r"""
extern "C" __global__ void __launch_bounds__(1024) qr_panel(T *a, T *v, T *tri, i64 m, i64 n, i64 ldv, i64 at,
                                                            i64 width, i64 stride_tri) {
  __shared__ R room[32];
  __shared__ T sums[32][W], dots[W], own[W][W + 1];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32, columns = int(width);
  const i64 rows = m - at;
  a += i64(blockIdx.x) * m * n + at * (n + 1);
  v += i64(blockIdx.x) * m * ldv + at * (ldv + 1);
  tri += i64(blockIdx.x) * stride_tri;
  for (int j = 0; j < columns; j++) {
    R size = R(0);
    for (i64 i = j + 1 + t; i < rows; i += blockDim.x) size = maximum(size, part_(a[i * n + j]));
    const T alpha = a[j * n + j];
    const R most = maximum(block_max(size, room), abs(imag_(alpha)));
    T beta = alpha, tau = T(0), x;
    if (most != R(0)) {
      const R unit = maximum(most, part_(alpha));
      size = R(0);
      for (i64 i = j + 1 + t; i < rows; i += blockDim.x) size += square_(a[i * n + j] / unit);
      beta = -copysign(unit * math_sqrt(square_(alpha / unit) + block_sum(size, room)), real_(alpha));
      tau = (beta - alpha) / real_(beta);
      for (i64 i = j + 1 + t; i < rows; i += blockDim.x) {
        x = a[i * n + j] / (alpha - beta);
        a[i * n + j] = x;
      }
    }
    __syncthreads();
    x = T(0);
    if (lane != j && lane < columns)
      for (i64 i = j + 1 + warp; i < rows; i += warps) x += conj_(a[i * n + j]) * a[i * n + lane];
    sums[warp][lane] = x;
    __syncthreads();
    if (warp == 0 && lane != j && lane < columns) {
      x = a[j * n + lane];
      for (int k = 0; k < warps; k++) x += sums[k][lane];
      dots[lane] = x;
    }
    __syncthreads();
    if (lane > j && lane < columns) {
      constexpr int AT_ONCE = sizeof(T) == 16 ? 2 : 4;
      const T factor = conj_(tau) * dots[lane];
      for (i64 i = j + warp * AT_ONCE; i < rows; i += warps * AT_ONCE) {
        T y[AT_ONCE], z[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
          y[k] = T(1), z[k] = T(0);
          if (i + k > j && i + k < rows) y[k] = a[(i + k) * n + j];
          if (i + k < rows) z[k] = a[(i + k) * n + lane];
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
          z[k] -= y[k] * factor;
          if (i + k < rows) a[(i + k) * n + lane] = z[k];
        }
      }
    }
    if (warp == 0 && lane < j) {
      x = T(0);
      for (int k = lane; k < j; k++) x += own[lane][k] * conj_(dots[k]);
      x = -(tau * x);
      own[lane][j] = x;
    }
    if (t == j) own[j][j] = tau;
    if (t == 0) a[j * n + j] = beta;
    __syncthreads();
  }
  if (lane >= columns) return;
  for (int i = warp; i < columns; i += warps) {
    T x(0);
    if (lane >= i) x = own[i][lane];
    tri[i * W + lane] = x;
  }
  for (i64 i = warp; i < rows; i += warps) v[i * ldv + lane] = i < lane ? T(0) : i == lane ? T(1) : a[i * n + lane];
}
"""

#: Matrices by the other axis, conjugated or not, of complex numbers or of what becomes those; and the flag of what has
#: no eigenvalues: a factorization that has failed, or a nan among what it has found.
TURNED = r"""
typedef Complex<R> C;
template <class A, class B> SYMC_FUNCTION void turn(const A *a, B *o, i64 rows, i64 columns, i64 total,
                                                               i64 conjugated) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 i = e % rows, j = e / rows % columns, first = e / (rows * columns) * (rows * columns);
  const A x = a[first + i * columns + j];
  const B y = B(conjugated ? conj_(x) : x);
  o[e] = y;
}
extern "C" __global__ void __launch_bounds__(256) matrix_turned(const T *a, T *o, i64 rows, i64 columns, i64 total,
                                                                i64 conjugated) {
  turn(a, o, rows, columns, total, conjugated);
}
extern "C" __global__ void __launch_bounds__(256) matrix_turned_complex(const T *a, C *o, i64 rows, i64 columns,
                                                                        i64 total, i64 conjugated) {
  turn(a, o, rows, columns, total, conjugated);
}
extern "C" __global__ void __launch_bounds__(256) complex_turned(const C *a, C *o, i64 rows, i64 columns, i64 total,
                                                                 i64 conjugated) {
  turn(a, o, rows, columns, total, conjugated);
}
extern "C" __global__ void __launch_bounds__(256) matrix_found(const i32 *info, const R *values, i64 count, i64 total,
                                                               i32 *failed) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e < total && values[e] != values[e]) fail(failed);
  if (e < count && info[e] != 0) fail(failed);
}
"""
