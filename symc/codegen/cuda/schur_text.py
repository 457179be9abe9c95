r"""Kernels for the eigenvalues of any square matrix: Hessenberg form, then QR iterations with Wilkinson's shift to an
upper triangle, in complex numbers throughout, by one block of threads for each matrix. See ``matrix_text``.
"""

from __future__ import annotations

SCHUR = r"""
typedef Complex<R> C;
SYMC_FUNCTION R size_of(C x) { return abs(x.real) + abs(x.imag); }
SYMC_FUNCTION R square_of(C x) { return x.real * x.real + x.imag * x.imag; }
SYMC_FUNCTION C root_of(C x) {
  const R size = math_sqrt(square_of(x)), a = math_sqrt((size + abs(x.real)) / 2);
  if (!(a > R(0))) return C(0);
  const R b = x.imag / (2 * a);
  if (x.real >= R(0)) return C(a, b);
  return C(abs(b), copysign(a, x.imag));
}

extern "C" __global__ void __launch_bounds__(512) schur_start(const T *a, C *h, C *q, State *state, i64 n,
                                                              i64 vectors) {
  __shared__ R room[32];
  a += blockIdx.x * n * n;
  h += blockIdx.x * n * n;
  R most = R(0);
  for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) most = maximum(most, part_(a[e]));
  most = block_max(most, room);
  const R unit = power_below(most);
  for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) {
    const T x = a[e] / unit;
    h[e] = C(x);
    if (vectors) q[blockIdx.x * n * n + e] = C(e % n == e / n ? 1 : 0);
  }
  if (threadIdx.x == 0) state[blockIdx.x] = {unit, most, most / unit < R(4) ? 0 : 2, 0};
}

// Rows of h, and then of q, times I - tau v v^H from the right: a warp has a row.
SYMC_FUNCTION void reflect_rows(C *h, const C *v, C tau, i64 n, i64 first) {
  const int lane = threadIdx.x % 32;
  for (i64 i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
    C sum(0);
    for (i64 j = first + lane; j < n; j += 32) sum += h[i * n + j] * v[j];
    sum = tau * warp_sum(sum);
    for (i64 j = first + lane; j < n; j += 32) h[i * n + j] -= sum * v[j].conjugate();
  }
}

extern "C" __global__ void __launch_bounds__(512) schur_hessenberg(C *h, C *q, C *work, const State *state, i64 n,
                                                                   i64 vectors) {
  __shared__ R room[32];
  if (state[blockIdx.x].done) return;
  h += blockIdx.x * n * n;
  C *v = work + blockIdx.x * n;
  for (i64 k = 0; k + 2 < n; k++) {
    R sum = R(0);
    for (i64 i = k + 2 + threadIdx.x; i < n; i += blockDim.x) sum += square_of(h[i * n + k]);
    const C alpha = h[(k + 1) * n + k];
    sum = block_sum(sum, room);
    if (sum == R(0)) continue;
    const R beta = -copysign(math_sqrt(sum + square_of(alpha)), alpha.real);
    const C tau = (C(beta) - alpha) / beta;
    for (i64 i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
      C x(1);
      if (i > k + 1) x = h[i * n + k] / (alpha - C(beta));
      v[i] = x;
    }
    __syncthreads();
    for (i64 i = k + 1 + threadIdx.x; i < n; i += blockDim.x) h[i * n + k] = C(i == k + 1 ? beta : R(0));
    for (i64 j = k + 1 + threadIdx.x; j < n; j += blockDim.x) {
      C x(0);
      for (i64 i = k + 1; i < n; i++) x += v[i].conjugate() * h[i * n + j];
      x = tau.conjugate() * x;
      for (i64 i = k + 1; i < n; i++) h[i * n + j] -= v[i] * x;
    }
    __syncthreads();
    reflect_rows(h, v, tau, n, k + 1);
    if (vectors) reflect_rows(q + blockIdx.x * n * n, v, tau, n, k + 1);
    __syncthreads();
  }
}

// The eigenvalue of [[a, b], [c, d]] that is nearer to d.
SYMC_FUNCTION C shift_of(C a, C b, C c, C d) {
  const C half = (a - d) / R(2), root = root_of(half * half + b * c), more = half + root, less = half - root;
  const C below = square_of(more) > square_of(less) ? more : less;
  return square_of(below) > R(0) ? d - b * c / below : d;
}
// The rotation ((c, s), (-conj s, c)) that makes (x, y) (r, 0).
struct Givens { R c; C s; };
SYMC_FUNCTION Givens givens_of(C x, C y) {
  const R a = math_sqrt(square_of(x)), r = math_sqrt(square_of(x) + square_of(y));
  if (!(r > R(0))) return {R(1), C(0)};
  if (!(a > R(0))) return {R(0), y.conjugate() / r};
  return {a / r, x / a * y.conjugate() / r};
}
SYMC_FUNCTION void turn_columns(C *h, i64 rows, i64 n, i64 k, Givens g) {
  for (i64 i = threadIdx.x; i < rows; i += blockDim.x) {
    const C x = h[i * n + k], y = h[i * n + k + 1];
    const C low = g.c * x + g.s.conjugate() * y, high = g.c * y - g.s * x;
    h[i * n + k] = low;
    h[i * n + k + 1] = high;
  }
}

extern "C" __global__ void __launch_bounds__(512) schur_sweeps(C *h, C *q, State *state, i64 n, i64 vectors) {
  if (state[blockIdx.x].done) return;
  h += blockIdx.x * n * n;
  q += vectors ? blockIdx.x * n * n : 0;
  i64 high = n - 1;
  for (int tries = 0; high > 0 && tries < 90;) {
    i64 low = high;
    for (; low > 0; low--) {
      R near_ = size_of(h[(low - 1) * (n + 1)]) + size_of(h[low * (n + 1)]);
      if (near_ == R(0)) near_ = R(1);
      if (!(size_of(h[low * n + low - 1]) > EPS * near_)) break;
    }
    const i64 last = high * (n + 1);
    C shift = h[last];
    if (low < high) shift = shift_of(h[last - n - 1], h[last - n], h[last - 1], h[last]);
    if (++tries % 10 == 0) shift += C(size_of(h[last - 1]));
    __syncthreads();
    if (threadIdx.x == 0 && low > 0) h[low * n + low - 1] = C(0);
    if (low == high) {
      high--, tries = 0;
      __syncthreads();
      continue;
    }
    __syncthreads();
    for (i64 k = low; k < high; k++) {
      C x = h[k * n + k] - shift, y = h[(k + 1) * n + k];
      if (k > low) x = h[k * n + k - 1], y = h[(k + 1) * n + k - 1];
      const Givens g = givens_of(x, y);
      __syncthreads();
      for (i64 j = (k > low ? k - 1 : k) + threadIdx.x; j < n; j += blockDim.x) {
        x = h[k * n + j], y = h[(k + 1) * n + j];
        const C first = g.c * x + g.s * y;
        C second = g.c * y - g.s.conjugate() * x;
        if (j < k) second = C(0);
        h[k * n + j] = first;
        h[(k + 1) * n + j] = second;
      }
      __syncthreads();
      turn_columns(h, min(k + 2, high) + 1, n, k, g);
      if (vectors) turn_columns(q, n, n, k, g);
      __syncthreads();
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) state[blockIdx.x].done = high <= 0 ? 1 : 2;
}

// Eigenvectors of the triangle, as rows: a warp has one. Equal eigenvalues are told apart by a rounding.
extern "C" __global__ void __launch_bounds__(128) schur_vectors(const C *h, C *x, i64 n) {
  const int lane = threadIdx.x % 32;
  const i64 i = i64(blockIdx.y) * 4 + threadIdx.x / 32;
  if (i >= n) return;
  h += blockIdx.x * n * n;
  x += blockIdx.x * n * n + i * n;
  const C value = h[i * (n + 1)];
  const R least = EPS * maximum(size_of(value), R(1)), large = R(is_same<R, f64> ? 1e150 : 1e15);
  for (i64 j = lane; j < n; j += 32) x[j] = C(i == j ? 1 : 0);
  __syncwarp();
  for (i64 j = i - 1; j >= 0; j--) {
    C sum(0);
    for (i64 k = j + 1 + lane; k <= i; k += 32) sum += h[j * n + k] * x[k];
    sum = warp_sum(sum);
    C gap = h[j * (n + 1)] - value;
    if (size_of(gap) < least) gap = C(least);
    const C found = -(sum / gap);
    if (lane == 0) x[j] = found;
    __syncwarp();
    const R size = size_of(found);
    if (size > large)
      for (i64 k = j + lane; k <= i; k += 32) {
        const C smaller = x[k] / size;
        x[k] = smaller;
      }
    __syncwarp();
  }
}

// Vectors of length 1 whose largest number is real; a thread has a column.
extern "C" __global__ void __launch_bounds__(512) schur_end(const C *h, C *v, C *w, const State *state, i64 n,
                                                            i64 vectors, i32 *failed) {
  h += blockIdx.x * n * n;
  w += blockIdx.x * n;
  if (threadIdx.x == 0 && state[blockIdx.x].done != 1) fail(failed);
  for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
    const C value = h[j * (n + 1)] * state[blockIdx.x].unit;
    w[j] = value;
    if (!vectors) continue;
    C *column = v + blockIdx.x * n * n + j, turn(1);
    R most = R(0), sum = R(0);
    for (i64 i = 0; i < n; i++)
      if (size_of(column[i * n]) > most) turn = column[i * n], most = size_of(turn);
    if (!(most > R(0))) continue;
    for (i64 i = 0; i < n; i++) sum += square_of(column[i * n] / most);
    turn = turn / most;
    turn = turn.conjugate() / math_sqrt(square_of(turn));
    for (i64 i = 0; i < n; i++) {
      const C x = column[i * n] / most * turn / math_sqrt(sum);
      column[i * n] = x;
    }
  }
}
"""

__all__ = ["SCHUR"]
