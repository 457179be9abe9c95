r"""Kernels of orthogonal factorizations: strips of Householder's reflections, and Jacobi's rotations.

Eigenvalues and singular values are found by rotating pairs of rows until all are orthogonal, all disjoint pairs at
once: slower than tridiagonal forms are for large matrices, and exact, in an order that is always the same, without the
host. See ``matrix_text`` for what all of these kernels have in common.
"""

from __future__ import annotations

#: A strip of columns from row and column `at` on as R and reflections I - tau v v^T; v (with its 1 and the zeros above
#: it) goes to `v`, and to `tri` the triangle with which the product of all of them is I - V tri V^T.
QR_PANEL = r"""
extern "C" __global__ void __launch_bounds__(1024) qr_panel(T *a, T *v, T *tri, i64 m, i64 n, i64 ldv, i64 at,
                                                            i64 width, i64 stride_tri) {
  __shared__ T room[32], sums[32][W], dots[W], own[W][W + 1];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32, columns = int(width);
  const i64 rows = m - at;
  a += i64(blockIdx.x) * m * n + at * (n + 1);
  v += i64(blockIdx.x) * m * ldv + at * (ldv + 1);
  tri += i64(blockIdx.x) * stride_tri;
  for (int j = 0; j < columns; j++) {
    T x = T(0);
    for (i64 i = j + 1 + t; i < rows; i += blockDim.x) x = maximum(x, abs(a[i * n + j]));
    const T most = block_max(x, room), alpha = a[j * n + j];
    T beta = alpha, tau = T(0);
    if (most != T(0)) {
      const T unit = maximum(most, abs(alpha));
      x = T(0);
      for (i64 i = j + 1 + t; i < rows; i += blockDim.x) x += a[i * n + j] / unit * (a[i * n + j] / unit);
      beta = -copysign(unit * math_sqrt(alpha / unit * (alpha / unit) + block_sum(x, room)), alpha);
      tau = (beta - alpha) / beta;
      for (i64 i = j + 1 + t; i < rows; i += blockDim.x) a[i * n + j] = a[i * n + j] / (alpha - beta);
    }
    __syncthreads();
    x = T(0);
    if (lane != j && lane < columns)
      for (i64 i = j + 1 + warp; i < rows; i += warps) x += a[i * n + j] * a[i * n + lane];
    sums[warp][lane] = x;
    __syncthreads();
    if (warp == 0 && lane != j && lane < columns) {
      x = a[j * n + lane];
      for (int k = 0; k < warps; k++) x += sums[k][lane];
      dots[lane] = x;
    }
    __syncthreads();
    if (lane > j && lane < columns)
      for (i64 i = j + warp; i < rows; i += warps) a[i * n + lane] -= tau * (i == j ? T(1) : a[i * n + j]) * dots[lane];
    if (warp == 0 && lane < j) {
      x = T(0);
      for (int k = lane; k < j; k++) x += own[lane][k] * dots[k];
      own[lane][j] = -tau * x;
    }
    if (t == j) own[j][j] = tau;
    if (t == 0) a[j * n + j] = beta;
    __syncthreads();
  }
  if (lane >= columns) return;
  for (int i = warp; i < columns; i += warps) tri[i * W + lane] = lane >= i ? own[i][lane] : T(0);
  for (i64 i = warp; i < rows; i += warps) v[i * ldv + lane] = i < lane ? T(0) : i == lane ? T(1) : a[i * n + lane];
}
"""

ROTATIONS = r"""
// The disjoint pairs of a round: after `even - 1` rounds everybody has met everybody.
struct Pair { int low, high; };
SYMC_FUNCTION Pair pair_of(int round, int k, int even) {
  const int around = even - 1, x = k ? (round + k) % around : around, y = (round + around - k) % around;
  return {x < y ? x : y, x < y ? y : x};
}
// The rotation (c, s) that makes [[a, b], [b, d]] diagonal: a - tb, 0, d + tb.
struct Turn { T c, s, t; };
SYMC_FUNCTION Turn turn_of(T a, T b, T d) {
  if (b == T(0)) return {T(1), T(0), T(0)};
  const T z = (d - a) / (2 * b), t = copysign(T(1), z) / (abs(z) + math_sqrt(1 + z * z)), c = 1 / math_sqrt(1 + t * t);
  return {c, t * c, t};
}
// The power of two that is at most x, a size; 1 for 0.
SYMC_FUNCTION T power_below(T x) {
  if constexpr (is_same<T, f64>) x = float64_of(bits64(x) & 0x7ff0000000000000LL);
  else x = float32_of(bits32(x) & 0x7f800000);
  return x == T(0) ? T(1) : x;
}
"""

#: Eigenvalues of a symmetric matrix, ascending, and with `vectors` the vectors as columns. `work`: room for two
#: matrices; `turns`: four numbers for each pair.
EIGEN = r"""
extern "C" __global__ void __launch_bounds__(1024) eigen(const T *a, T *w, T *v, T *work, T *turns, i64 size, i64 lower,
                                                         i64 vectors, i32 *failed) {
  __shared__ T room[32];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32, n = int(size);
  const int even = n + n % 2, half = even / 2;
  a += blockIdx.x * size * size;
  w += blockIdx.x * size;
  v += vectors ? blockIdx.x * size * size : 0;
  T *m = work + blockIdx.x * size * size * 2, *q = m + size * size;
  turns += i64(blockIdx.x) * half * 4;
  T x = T(0);
  for (i64 i = warp; i < n; i += warps)
    for (i64 j = lane; j < n; j += 32) {
      const T y = (lower ? j <= i : j >= i) ? a[i * n + j] : a[j * n + i];
      x = maximum(x, abs(y));
      m[i * n + j] = y;
      if (vectors) q[i * n + j] = i == j ? T(1) : T(0);
    }
  const T unit = power_below(block_max(x, room));
  x = T(0);
  for (i64 i = warp; i < n; i += warps)
    for (i64 j = lane; j < n; j += 32) {
      const T y = m[i * n + j] / unit;
      x += y * y;
      m[i * n + j] = y;
    }
  const T whole = block_sum(x, room);
  bool done = false;
  for (int sweep = 0; sweep < 40; sweep++) {
    x = T(0);
    for (i64 i = warp; i < n; i += warps)
      for (i64 j = lane; j < n; j += 32) x += i == j ? T(0) : m[i * n + j] * m[i * n + j];
    x = block_sum(x, room);
    done = x <= whole * EPS * EPS;
    if (done || !(whole < T(1e30))) break;
    for (int round = 0; round < even - 1; round++) {
      for (int k = t; k < half; k += blockDim.x) {
        const Pair p = pair_of(round, k, even);
        if (p.high >= n) continue;
        const i64 low = p.low, high = p.high;
        const T first = m[low * n + low], last = m[high * n + high], between = m[low * n + high];
        const Turn turn = turn_of(first, between, last);
        turns[4 * k] = turn.c;
        turns[4 * k + 1] = turn.s;
        turns[4 * k + 2] = first - turn.t * between;
        turns[4 * k + 3] = last + turn.t * between;
      }
      __syncthreads();
      for (int k = warp; k < half; k += warps) {
        const Pair p = pair_of(round, k, even);
        if (p.high >= n) continue;
        const T c = turns[4 * k], s = turns[4 * k + 1];
        const i64 low = p.low * i64(n), high = p.high * i64(n);
        for (int j = lane; j < n; j += 32) {
          if (j != p.low && j != p.high) {
            const T y = m[low + j], z = m[high + j];
            m[low + j] = c * y - s * z;
            m[high + j] = s * y + c * z;
          }
          if (vectors) {
            const T y = q[low + j], z = q[high + j];
            q[low + j] = c * y - s * z;
            q[high + j] = s * y + c * z;
          }
        }
      }
      __syncthreads();
      for (i64 i = warp; i < n; i += warps) {
        T *row = m + i * n;
        for (int k = lane; k < half; k += 32) {
          const Pair p = pair_of(round, k, even);
          if (p.high >= n) continue;
          if (i == p.low || i == p.high) {
            row[p.low] = i == p.low ? turns[4 * k + 2] : T(0);
            row[p.high] = i == p.high ? turns[4 * k + 3] : T(0);
          } else {
            const T c = turns[4 * k], s = turns[4 * k + 1], y = row[p.low], z = row[p.high];
            row[p.low] = c * y - s * z;
            row[p.high] = s * y + c * z;
          }
        }
      }
      __syncthreads();
    }
  }
  if (t == 0 && !done) fail(failed);
  for (i64 i = warp; i < n; i += warps) {
    const T value = m[i * n + i];
    i64 place = done ? 0 : i;
    if (done)
      for (i64 j = 0; j < n; j++) place += m[j * n + j] < value || (m[j * n + j] == value && j < i);
    if (lane == 0) w[place] = value * unit;
    if (vectors)
      for (i64 j = lane; j < n; j += 32) v[j * n + place] = q[i * n + j];
  }
}
"""

#: Singular values, descending. With `vectors` those of the longer side as columns of `z` (zeros where the value is 0),
#: and those of the shorter side, as rows of `y` where the matrix is tall, else as columns. `work`: room for the matrix
#: and for a square one of the shorter side; `norms`: for one number a row.
SINGULAR = r"""
extern "C" __global__ void __launch_bounds__(1024) singular(const T *a, T *s, T *z, T *y, T *work, T *norms, i64 rows,
                                                            i64 columns, i64 vectors, i32 *failed) {
  __shared__ T room[32];
  __shared__ i32 moved;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32;
  const bool tall = rows >= columns;
  const i64 n = tall ? columns : rows, length = tall ? rows : columns;
  const int even = int(n + n % 2), half = even / 2;
  a += blockIdx.x * rows * columns;
  s += blockIdx.x * n;
  norms += blockIdx.x * n;
  T *m = work + blockIdx.x * (n * length + n * n), *q = m + n * length;
  T x = T(0);
  for (i64 i = warp; i < n; i += warps) {
    for (i64 j = lane; j < length; j += 32) {
      const T e = tall ? a[j * n + i] : a[i * length + j];
      x = maximum(x, abs(e));
      m[i * length + j] = e;
    }
    if (vectors)
      for (i64 j = lane; j < n; j += 32) q[i * n + j] = i == j ? T(1) : T(0);
  }
  const T unit = power_below(block_max(x, room));
  x = T(0);
  for (i64 i = warp; i < n; i += warps)
    for (i64 j = lane; j < length; j += 32) {
      const T e = m[i * length + j] / unit;
      x += e * e;
      m[i * length + j] = e;
    }
  const T whole = block_sum(x, room), least = whole * EPS * EPS * T(0.01), near_ = EPS * (math_sqrt(T(length)) + 2);
  bool done = false;
  for (int sweep = 0; sweep < 40 && whole < T(1e30) && !done; sweep++) {
    if (t == 0) moved = 0;
    __syncthreads();
    for (int round = 0; round < even - 1; round++) {
      for (int k = warp; k < half; k += warps) {
        const Pair p = pair_of(round, k, even);
        if (p.high >= n) continue;
        T *low = m + p.low * length, *high = m + p.high * length, first = T(0), last = T(0), between = T(0);
        for (i64 j = lane; j < length; j += 32) {
          first += low[j] * low[j];
          last += high[j] * high[j];
          between += low[j] * high[j];
        }
        first = warp_sum(first), last = warp_sum(last), between = warp_sum(between);
        if (!(min(first, last) > least && abs(between) > near_ * math_sqrt(first) * math_sqrt(last))) continue;
        if (lane == 0) atomicExch(&moved, 1);
        const Turn turn = turn_of(first, between, last);
        for (i64 j = lane; j < length; j += 32) {
          const T e = low[j], f = high[j];
          low[j] = turn.c * e - turn.s * f;
          high[j] = turn.s * e + turn.c * f;
        }
        if (vectors)
          for (i64 j = lane; j < n; j += 32) {
            const T e = q[p.low * n + j], f = q[p.high * n + j];
            q[p.low * n + j] = turn.c * e - turn.s * f;
            q[p.high * n + j] = turn.s * e + turn.c * f;
          }
      }
      __syncthreads();
    }
    done = moved == 0;
    __syncthreads();
  }
  if (t == 0 && !done) fail(failed);
  for (i64 i = warp; i < n; i += warps) {
    x = T(0);
    for (i64 j = lane; j < length; j += 32) x += m[i * length + j] * m[i * length + j];
    x = math_sqrt(warp_sum(x));
    if (lane == 0) norms[i] = x;
  }
  __syncthreads();
  if (vectors) z += blockIdx.x * length * n, y += blockIdx.x * n * n;
  for (i64 i = warp; i < n; i += warps) {
    const T value = norms[i];
    i64 place = done ? 0 : i;
    if (done)
      for (i64 j = 0; j < n; j++) place += norms[j] > value || (norms[j] == value && j < i);
    if (lane == 0) s[place] = value * unit;
    if (!vectors) continue;
    for (i64 j = lane; j < length; j += 32) z[j * n + place] = value > T(0) ? m[i * length + j] / value : T(0);
    for (i64 j = lane; j < n; j += 32) y[tall ? place * n + j : j * n + place] = q[i * n + j];
  }
}
"""

#: The orthogonal factor of `r`'s matrix, with the signs that make it have the columns of that matrix; `turned`: as rows.
SIGNS = r"""
extern "C" __global__ void __launch_bounds__(256) columns_signed(const T *q, const T *r, T *o, i64 length, i64 columns,
                                                                 i64 known, i64 total, i64 turned) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 c = e % columns, i = e / columns % length, b = e / (columns * length);
  const bool other = c < known && r[(b * length + c) * known + c] < T(0);
  o[turned ? (b * columns + c) * length + i : e] = other ? -q[e] : q[e];
}
"""

__all__ = ["EIGEN", "QR_PANEL", "ROTATIONS", "SIGNS", "SINGULAR"]
