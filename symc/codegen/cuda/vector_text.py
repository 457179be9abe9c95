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

ROTATIONS = r"""
// What is known of a matrix between launches.
struct State { R unit, whole; i32 done, moved; };
// The disjoint pairs of a round: after `even - 1` rounds everybody has met everybody.
struct Pair { int low, high; };
SYMC_FUNCTION Pair pair_of(int round, int k, int even) {
  const int around = even - 1, x = k ? (round + k) % around : around, y = (round + around - k) % around;
  return {x < y ? x : y, x < y ? y : x};
}
// The rotation that makes [[a, b], [conj b, d]] diagonal: (y, z) to (c y - s u z, s y + c u z), and a - shift, 0,
// d + shift. Where numbers are real u is 1. Instead of c there is s / (1 + c): what a small rotation changes is then
// as exact as what it adds (Rutishauser 1966), and rows keep their length.
struct Turn { R tau, s, shift; T u; };
SYMC_FUNCTION Turn turn_of(R a, T b, R d) {
  if (b == T(0)) return {R(0), R(0), R(0), T(1)};
  R size = real_(b);
  T u(1);
  if constexpr (!is_same<T, R>) size = modulus_(b), u = b / size;
  const R z = (d - a) / (2 * size), t = copysign(R(1), z) / (abs(z) + math_sqrt(1 + z * z));
  const R c = 1 / math_sqrt(1 + t * t);
  return {t * c / (1 + c), t * c, t * size, u};
}
SYMC_FUNCTION void rotate(T &y, T &z, R tau, R s, T u) {
  const T first = y;
  T second = z;
  if constexpr (!is_same<T, R>) second = u * second;
  const T low = first - s * (second + tau * first), high = second + s * (first - tau * second);
  y = low;
  z = high;
}
// The power of two that is at most x, a size; 1 for 0.
SYMC_FUNCTION R power_below(R x) {
  if constexpr (is_same<R, f64>) x = float64_of(bits64(x) & 0x7ff0000000000000LL);
  else x = float32_of(bits32(x) & 0x7f800000);
  return x == R(0) ? R(1) : x;
}
// Divide a matrix by a power of two, so that no square is too large or too small, and note its size.
SYMC_FUNCTION void scale_all(T *m, i64 count, R most, State *state, R *room) {
  const R unit = power_below(block_max(most, room));
  R x = R(0);
  for (i64 e = threadIdx.x; e < count; e += blockDim.x) {
    const T y = m[e] / unit;
    m[e] = y;
    x += square_(y);
  }
  x = block_sum(x, room);
  if (threadIdx.x == 0) *state = {unit, x, x < R(1e30) ? 0 : 2, 0};
  __syncthreads();
}
"""

#: Eigenvalues of a hermitian matrix, ascending, and with `vectors` the vectors as columns. `work`: room for two
#: matrices, the second has vectors as rows; `turns`: five numbers for each pair. One block does all rounds, or, of a
#: large matrix, a launch does one of them.
EIGEN = r"""
extern "C" __global__ void __launch_bounds__(512) eigen_start(const T *a, T *work, State *state, i64 n, i64 lower,
                                                              i64 vectors) {
  __shared__ R room[32];
  a += blockIdx.x * n * n;
  T *m = work + blockIdx.x * n * n * 2, *q = m + n * n;
  R most = R(0);
  for (i64 i = threadIdx.x / 32; i < n; i += blockDim.x / 32)
    for (i64 j = threadIdx.x % 32; j < n; j += 32) {
      T x = (lower ? j <= i : j >= i) ? a[i * n + j] : conj_(a[j * n + i]);
      if (i == j) x = T(real_(x));
      most = maximum(most, part_(x));
      m[i * n + j] = x;
      if (vectors) q[i * n + j] = T(i == j ? 1 : 0);
    }
  scale_all(m, n * n, most, state + blockIdx.x, room);
}

SYMC_FUNCTION void eigen_settle(const T *m, State *state, i64 n, R *room) {
  if (state->done) return;
  R x = R(0);
  for (i64 i = threadIdx.x / 32; i < n; i += blockDim.x / 32)
    for (i64 j = threadIdx.x % 32; j < n; j += 32) x += i == j ? R(0) : square_(m[i * n + j]);
  x = block_sum(x, room);
  if (threadIdx.x == 0 && x <= state->whole * EPS * EPS) state->done = 1;
  __syncthreads();
}
// Half of a rotation, of rows: a warp has a pair. The four numbers where its rows and columns cross come later.
SYMC_FUNCTION void eigen_rows(T *m, T *q, T *turns, int n, int round, bool vectors, int warp, int warps) {
  const int lane = threadIdx.x % 32, even = n + n % 2;
  for (int k = warp; k < even / 2; k += warps) {
    const Pair p = pair_of(round, k, even);
    if (p.high >= n) continue;
    T *low = m + p.low * i64(n), *high = m + p.high * i64(n);
    const R first = real_(low[p.low]), last = real_(high[p.high]);
    const Turn turn = turn_of(first, low[p.high], last);
    if (lane == 0) {
      T *to = turns + 5 * k;
      to[0] = T(turn.tau), to[1] = T(turn.s), to[2] = turn.u;
      to[3] = T(first - turn.shift), to[4] = T(last + turn.shift);
    }
    if (turn.s == R(0)) continue;
    for (int j = lane; j < n; j += 32)
      if (j != p.low && j != p.high) rotate(low[j], high[j], turn.tau, turn.s, turn.u);
    if (vectors)
      for (int j = lane; j < n; j += 32) rotate(q[p.low * i64(n) + j], q[p.high * i64(n) + j], turn.tau, turn.s,
                                                conj_(turn.u));
  }
}
// The other half, of columns: a warp has a row.
SYMC_FUNCTION void eigen_columns(T *m, const T *turns, int n, int round, int warp, int warps) {
  const int lane = threadIdx.x % 32, even = n + n % 2;
  for (int i = warp; i < n; i += warps) {
    T *row = m + i * i64(n);
    for (int k = lane; k < even / 2; k += 32) {
      const Pair p = pair_of(round, k, even);
      if (p.high >= n) continue;
      const T *turn = turns + 5 * k;
      if (i != p.low && i != p.high) rotate(row[p.low], row[p.high], real_(turn[0]), real_(turn[1]), conj_(turn[2]));
      else row[p.low] = i == p.low ? turn[3] : T(0), row[p.high] = i == p.high ? turn[4] : T(0);
    }
  }
}

extern "C" __global__ void __launch_bounds__(512) eigen_sweeps(T *work, T *turns, State *state, i64 n, i64 vectors,
                                                               i64 sweeps) {
  __shared__ R room[32];
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, rounds = int(n + n % 2) - 1;
  T *m = work + blockIdx.x * n * n * 2, *own = turns + blockIdx.x * 5 * ((n + 1) / 2);
  state += blockIdx.x;
  for (i64 sweep = 0; sweep < sweeps; sweep++) {
    eigen_settle(m, state, n, room);
    if (state->done) return;
    for (int round = 0; round < rounds; round++) {
      eigen_rows(m, m + n * n, own, int(n), round, vectors, warp, warps);
      __syncthreads();
      eigen_columns(m, own, int(n), round, warp, warps);
      __syncthreads();
    }
  }
}
extern "C" __global__ void __launch_bounds__(512) eigen_check(const T *work, State *state, i64 n) {
  __shared__ R room[32];
  eigen_settle(work + blockIdx.x * n * n * 2, state + blockIdx.x, n, room);
}
extern "C" __global__ void __launch_bounds__(128) eigen_round_rows(T *work, T *turns, const State *state, i64 n,
                                                                   i64 vectors, i64 round) {
  if (state[blockIdx.x].done) return;
  T *m = work + blockIdx.x * n * n * 2;
  eigen_rows(m, m + n * n, turns + blockIdx.x * 5 * ((n + 1) / 2), int(n), int(round), vectors,
             blockIdx.y * 4 + threadIdx.x / 32, gridDim.y * 4);
}
extern "C" __global__ void __launch_bounds__(128) eigen_round_columns(T *work, const T *turns, const State *state,
                                                                      i64 n, i64 round) {
  if (state[blockIdx.x].done) return;
  eigen_columns(work + blockIdx.x * n * n * 2, turns + blockIdx.x * 5 * ((n + 1) / 2), int(n), int(round),
                blockIdx.y * 4 + threadIdx.x / 32, gridDim.y * 4);
}

extern "C" __global__ void __launch_bounds__(512) eigen_end(const T *work, const State *state, R *w, T *v, i64 n,
                                                            i64 vectors, i32 *failed) {
  const T *m = work + blockIdx.x * n * n * 2, *q = m + n * n;
  const bool done = state[blockIdx.x].done == 1;
  if (threadIdx.x == 0 && !done) fail(failed);
  w += blockIdx.x * n;
  if (vectors) v += blockIdx.x * n * n;
  for (i64 i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
    const R value = real_(m[i * n + i]);
    i64 place = 0;
    for (i64 j = threadIdx.x % 32; j < n; j += 32) {
      const R other = real_(m[j * n + j]);
      place += other < value || (other == value && j < i);
    }
    for (int s = 16; s; s >>= 1) place += __shfl_xor_sync(0xffffffffu, place, s);
    if (!done) place = i;
    if (threadIdx.x % 32 == 0) w[place] = value * state[blockIdx.x].unit;
    if (vectors)
      for (i64 j = threadIdx.x % 32; j < n; j += 32) v[j * n + place] = q[i * n + j];
  }
}
"""

#: Singular values, descending. With `vectors` those of the longer side as columns of `z` (zeros where the value is 0),
#: and those of the shorter side, as rows of `y` where the matrix is tall, else as columns. `work`: room for the matrix,
#: the shorter side as rows, which are rotated until they are orthogonal, and for a square one, of the rotations.
SINGULAR = r"""
extern "C" __global__ void __launch_bounds__(512) singular_start(const T *a, T *work, State *state, i64 rows,
                                                                 i64 columns, i64 vectors) {
  __shared__ R room[32];
  const bool tall = rows >= columns;
  const i64 n = tall ? columns : rows, length = tall ? rows : columns;
  a += blockIdx.x * rows * columns;
  T *m = work + blockIdx.x * (n * length + n * n), *q = m + n * length;
  R most = R(0);
  for (i64 i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
    for (i64 j = threadIdx.x % 32; j < length; j += 32) {
      const T x = tall ? a[j * n + i] : a[i * length + j];
      most = maximum(most, part_(x));
      m[i * length + j] = x;
    }
    if (vectors)
      for (i64 j = threadIdx.x % 32; j < n; j += 32) q[i * n + j] = T(i == j ? 1 : 0);
  }
  scale_all(m, n * length, most, state + blockIdx.x, room);
}

// A warp makes the rows of each of its pairs orthogonal. Rows that are nothing but rounding are left.
SYMC_FUNCTION void singular_pairs(T *m, T *q, State *state, i64 n, i64 length, int round, bool vectors, int warp,
                                  int warps) {
  const int lane = threadIdx.x % 32, even = int(n + n % 2);
  const R least = state->whole * EPS * EPS * R(0.01), near_ = EPS * (math_sqrt(R(length)) + 2);
  for (int k = warp; k < even / 2; k += warps) {
    const Pair p = pair_of(round, k, even);
    if (p.high >= n) continue;
    T *low = m + p.low * length, *high = m + p.high * length, between = T(0);
    R first = R(0), last = R(0);
    for (i64 j = lane; j < length; j += 32) {
      const T y = low[j], z = high[j];
      first += square_(y);
      last += square_(z);
      between += conj_(y) * z;
    }
    first = warp_sum(first), last = warp_sum(last), between = warp_sum(between);
    if (!(min(first, last) > least && modulus_(between) > near_ * math_sqrt(first) * math_sqrt(last))) continue;
    if (lane == 0) atomicExch(&state->moved, 1);
    const Turn turn = turn_of(first, between, last);
    const T u = conj_(turn.u);
    for (i64 j = lane; j < length; j += 32) rotate(low[j], high[j], turn.tau, turn.s, u);
    if (vectors)
      for (i64 j = lane; j < n; j += 32) rotate(q[p.low * n + j], q[p.high * n + j], turn.tau, turn.s, u);
  }
}

extern "C" __global__ void __launch_bounds__(512) singular_sweeps(T *work, State *state, i64 n, i64 length, i64 vectors,
                                                                  i64 sweeps) {
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, rounds = int(n + n % 2) - 1;
  T *m = work + blockIdx.x * (n * length + n * n);
  state += blockIdx.x;
  for (i64 sweep = 0; sweep < sweeps; sweep++) {
    if (state->done) return;
    for (int round = 0; round < rounds; round++) {
      singular_pairs(m, m + n * length, state, n, length, round, vectors, warp, warps);
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      if (!state->moved) state->done = 1;
      state->moved = 0;
    }
    __syncthreads();
  }
}
extern "C" __global__ void __launch_bounds__(32) singular_check(State *state, i64 count, i64 first) {
  state += i64(blockIdx.x) * 32 + threadIdx.x;
  if (i64(blockIdx.x) * 32 + threadIdx.x >= count) return;
  if (!first && !state->moved && !state->done) state->done = 1;
  state->moved = first;
}
extern "C" __global__ void __launch_bounds__(128) singular_round(T *work, State *state, i64 n, i64 length, i64 vectors,
                                                                 i64 round) {
  T *m = work + blockIdx.x * (n * length + n * n);
  state += blockIdx.x;
  if (!state->done)
    singular_pairs(m, m + n * length, state, n, length, int(round), vectors, blockIdx.y * 4 + threadIdx.x / 32,
                   gridDim.y * 4);
}

extern "C" __global__ void __launch_bounds__(512) singular_end(const T *work, const State *state, R *norms, R *s, T *z,
                                                               T *y, i64 n, i64 length, i64 vectors, i64 tall,
                                                               i32 *failed) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const T *m = work + blockIdx.x * (n * length + n * n), *q = m + n * length;
  const bool done = state[blockIdx.x].done == 1;
  if (threadIdx.x == 0 && !done) fail(failed);
  norms += blockIdx.x * n;
  for (i64 i = warp; i < n; i += warps) {
    R x = R(0);
    for (i64 j = lane; j < length; j += 32) x += square_(m[i * length + j]);
    x = math_sqrt(warp_sum(x));
    if (lane == 0) norms[i] = x;
  }
  __syncthreads();
  s += blockIdx.x * n;
  if (vectors) z += blockIdx.x * length * n, y += blockIdx.x * n * n;
  for (i64 i = warp; i < n; i += warps) {
    const R value = norms[i];
    i64 place = 0;
    for (i64 j = lane; j < n; j += 32) place += norms[j] > value || (norms[j] == value && j < i);
    for (int step = 16; step; step >>= 1) place += __shfl_xor_sync(0xffffffffu, place, step);
    if (!done) place = i;
    if (lane == 0) s[place] = value * state[blockIdx.x].unit;
    if (!vectors) continue;
    for (i64 j = lane; j < length; j += 32) {
      T x = m[i * length + j];
      if (value > R(0)) x = x / value;
      z[j * n + place] = x;
    }
    for (i64 j = lane; j < n; j += 32) {
      const T x = conj_(q[i * n + j]);
      y[tall ? place * n + j : j * n + place] = x;
    }
  }
}
"""

#: The orthogonal factor, with the signs that make it have the columns of the matrix of `r`; `turned`: as rows.
SIGNS = r"""
extern "C" __global__ void __launch_bounds__(256) columns_signed(const T *q, const T *r, T *o, i64 length, i64 columns,
                                                                 i64 known, i64 total, i64 turned) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 c = e % columns, i = e / columns % length, b = e / (columns * length);
  const bool other = c < known && real_(r[(b * length + c) * known + c]) < R(0);
  T x = q[e];
  if (other) x = -x;
  o[turned ? (b * columns + c) * length + i : e] = x;
}
"""

__all__ = ["EIGEN", "QR_PANEL", "ROTATIONS", "SIGNS", "SINGULAR"]
