r"""Kernels on blocks of matrices: what factorizations and triangular solves do between products.

They are plain CUDA C++ for one dtype (``T``) and matrices stored by rows. A block of threads works on one matrix
(``blockIdx.x`` says which), or on a strip of it; larger matrices are taken in strips of ``WIDTH`` rows or columns, and
what is left of the work is products of matrices, which a library does. Who launches them: ``symc.runtime.cuda.solver``.
A number is computed in a variable and then stored: the emulated device does not see the parts of a complex number that
a function writes where its result goes.
"""

from __future__ import annotations

#: Rows or columns of a strip: one for each thread of a warp.
WIDTH = 32

COMMON = r"""
constexpr int W = 32;
// Rows or columns of a strip that a block has, in shared memory.
constexpr int BELOW = sizeof(T) == 16 ? 32 : 96, ACROSS = sizeof(T) == 16 ? 32 : 64;

template <class F> SYMC_FUNCTION Complex<F> &operator+=(Complex<F> &x, Complex<F> y) {
  x.real += y.real, x.imag += y.imag;
  return x;
}
template <class F> SYMC_FUNCTION Complex<F> &operator-=(Complex<F> &x, Complex<F> y) {
  x.real -= y.real, x.imag -= y.imag;
  return x;
}
template <class F> SYMC_FUNCTION Complex<F> operator-(Complex<F> x) { return minus(x); }
template <class F> SYMC_FUNCTION Complex<F> operator*(F x, Complex<F> y) { return {x * y.real, x * y.imag}; }
template <class F> SYMC_FUNCTION Complex<F> operator*(Complex<F> x, F y) { return y * x; }
template <class F> SYMC_FUNCTION Complex<F> operator/(Complex<F> x, F y) { return {x.real / y, x.imag / y}; }
// By Smith: no square that may be too large.
template <class F> SYMC_FUNCTION Complex<F> operator/(Complex<F> x, Complex<F> y) {
  const bool tall = abs(y.imag) > abs(y.real);
  const F big = tall ? y.imag : y.real, small = tall ? y.real : y.imag, r = small / big, d = big + small * r;
  if (tall) return {(x.real * r + x.imag) / d, (x.imag * r - x.real) / d};
  return {(x.real + x.imag * r) / d, (x.imag - x.real * r) / d};
}
template <class F> SYMC_FUNCTION F conj_(F x) { return x; }
template <class F> SYMC_FUNCTION Complex<F> conj_(Complex<F> x) { return x.conjugate(); }
template <class F> SYMC_FUNCTION F real_(F x) { return x; }
template <class F> SYMC_FUNCTION F real_(Complex<F> x) { return x.real; }
template <class F> SYMC_FUNCTION F imag_(F x) { return F(0); }
template <class F> SYMC_FUNCTION F imag_(Complex<F> x) { return x.imag; }
SYMC_FUNCTION R square_(T x) { return real_(x) * real_(x) + imag_(x) * imag_(x); }
// A size as LAPACK compares them, and the larger one of the parts. Nan if one is.
SYMC_FUNCTION R size_(T x) { return abs(real_(x)) + abs(imag_(x)); }
SYMC_FUNCTION R part_(T x) { return maximum(abs(real_(x)), abs(imag_(x))); }

template <class F> SYMC_FUNCTION F from_lane(F x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
template <class F> SYMC_FUNCTION Complex<F> from_lane(Complex<F> x, int lane) {
  return {from_lane(x.real, lane), from_lane(x.imag, lane)};
}
template <class F> SYMC_FUNCTION F warp_sum(F x) {
  for (int s = 16; s; s >>= 1) x += __shfl_xor_sync(0xffffffffu, x, s);
  return x;
}
template <class F> SYMC_FUNCTION Complex<F> warp_sum(Complex<F> x) { return {warp_sum(x.real), warp_sum(x.imag)}; }
// The same for every thread of a block. `room` has an element for each warp.
SYMC_FUNCTION R block_sum(R x, R *room) {
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[warp] = x;
  __syncthreads();
  R found = room[0];
  for (int k = 1; k < warps; k++) found += room[k];
  return found;
}
// Nan if there is one.
SYMC_FUNCTION R block_max(R x, R *room) {
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int s = 16; s; s >>= 1) x = maximum(x, __shfl_xor_sync(0xffffffffu, x, s));
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[warp] = x;
  __syncthreads();
  R found = room[0];
  for (int k = 1; k < warps; k++) found = maximum(found, room[k]);
  return found;
}
"""

#: The triangle of each matrix that is kept, 0 elsewhere; and matrices with ones on the diagonal.
PART = r"""
extern "C" __global__ void __launch_bounds__(256) matrix_part(const T *a, T *o, i64 rows, i64 columns, i64 stride,
                                                              i64 total, i64 lower) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 j = e % columns, i = e / columns % rows, at = e / (columns * rows) * stride + i * columns + j;
  o[e] = (lower ? j <= i : j >= i) ? a[at] : T(0);
}
"""
UNIT = r"""
extern "C" __global__ void __launch_bounds__(256) matrix_unit(T *o, i64 rows, i64 columns, i64 total) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e < total) o[e] = e % columns == e / columns % rows ? T(1) : T(0);
}
"""

#: The factor of a block on the diagonal, in place, with zeros above the diagonal. A nan is no failure, as on the CPU.
CHOLESKY_BLOCK = r"""
extern "C" __global__ void __launch_bounds__(256) cholesky_block(T *l, i64 ld, i64 stride, i64 at, i64 width,
                                                                 i32 *failed) {
  __shared__ T tile[W][W + 1];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32, n = int(width);
  l += i64(blockIdx.x) * stride + at * (ld + 1);
  for (int i = warp; i < n; i += warps)
    if (lane <= i) tile[i][lane] = l[i * ld + lane];
  __syncthreads();
  for (int j = 0; j < n; j++) {
    const R square = real_(tile[j][j]), root = math_sqrt(square);
    if (t == 0 && square <= R(0)) fail(failed);
    __syncthreads();
    if (warp == 0 && lane >= j && lane < n) {
      const T x = lane == j ? T(root) : tile[lane][j] / root;
      tile[lane][j] = x;
    }
    __syncthreads();
    for (int i = j + 1 + warp; i < n; i += warps)
      if (lane > j && lane <= i) tile[i][lane] -= tile[i][j] * conj_(tile[lane][j]);
    __syncthreads();
  }
  for (int i = warp; i < n; i += warps)
    if (lane < n) l[i * ld + lane] = lane <= i ? tile[i][lane] : T(0);
}
"""

#: The rows below such a block: x @ L^T = what is there. A thread has a row.
CHOLESKY_ROWS = r"""
extern "C" __global__ void __launch_bounds__(96) cholesky_rows(T *l, i64 ld, i64 stride, i64 at, i64 width, i64 rows) {
  __shared__ T tile[W][W + 1], row[BELOW][W + 1];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, n = int(width);
  l += i64(blockIdx.x) * stride + at * (ld + 1);
  for (int i = warp; i < n; i += BELOW / 32)
    if (lane <= i) tile[i][lane] = l[i * ld + lane];
  const i64 first = n + i64(blockIdx.y) * BELOW, left = n + rows - first;
  const int here = int(left < BELOW ? left : i64(BELOW));
  for (int i = warp; i < here; i += BELOW / 32)
    if (lane < n) row[i][lane] = l[(first + i) * ld + lane];
  __syncthreads();
  if (t < here)
    for (int j = 0; j < n; j++) {
      T x = row[t][j];
      for (int k = 0; k < j; k++) x -= row[t][k] * conj_(tile[j][k]);
      x = x / real_(tile[j][j]);
      row[t][j] = x;
    }
  __syncthreads();
  for (int i = warp; i < here; i += BELOW / 32)
    if (lane < n) l[(first + i) * ld + lane] = row[i][lane];
}
"""

#: A strip of rows of x where op(a) x = x, by the block of a on the diagonal. `trans`: 0 as it is, 1
#: transposed, 2 conjugated too; with `up` op(a) is an upper triangle, and
#: rows are taken from the last one. A thread has a column of x; where there are few columns, a warp has one.
SOLVE = r"""
SYMC_FUNCTION void solve_load(T (*tile)[W + 1], const T *a, i64 ld, int n, int trans, bool up, bool unit,
                              i32 *failed) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane < n)
    for (int i = threadIdx.x / 32; i < n; i += warps) {
      const int r = trans ? lane : i, c = trans ? i : lane, low = up ? n - 1 - r : r, across = up ? n - 1 - c : c;
      const T given = trans == 2 ? conj_(a[i * ld + lane]) : a[i * ld + lane];
      if (across < low) tile[low][across] = given;
      if (r == c) {
        const T x = unit ? T(1) : given;
        if (x == T(0)) fail(failed);
        tile[low][low] = x;
      }
    }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(64) solve_columns(const T *a, T *x, i64 lda, i64 ldx, i64 stride_a,
    i64 stride_x, i64 at, i64 width, i64 columns, i64 trans, i64 up, i64 unit, i32 *failed) {
  __shared__ T tile[W][W + 1], own[W][ACROSS];
  const int t = threadIdx.x, n = int(width);
  solve_load(tile, a + i64(blockIdx.x) * stride_a + at * (lda + 1), lda, n, trans, up, unit, failed);
  x += i64(blockIdx.x) * stride_x + at * ldx;
  for (i64 c = i64(blockIdx.y) * ACROSS + t; c < columns; c += i64(gridDim.y) * ACROSS)
    for (int i = 0; i < n; i++) {
      const i64 place = (up ? n - 1 - i : i) * ldx + c;
      T y = x[place];
      for (int k = 0; k < i; k++) y -= tile[i][k] * own[k][t];
      y = y / tile[i][i];
      own[i][t] = y;
      x[place] = y;
    }
}

extern "C" __global__ void __launch_bounds__(128) solve_column(const T *a, T *x, i64 lda, i64 ldx, i64 stride_a,
    i64 stride_x, i64 at, i64 width, i64 columns, i64 trans, i64 up, i64 unit, i32 *failed) {
  __shared__ T tile[W][W + 1];
  const int lane = threadIdx.x % 32, n = int(width);
  solve_load(tile, a + i64(blockIdx.x) * stride_a + at * (lda + 1), lda, n, trans, up, unit, failed);
  x += i64(blockIdx.x) * stride_x + (at + (up ? n - 1 - lane : lane)) * ldx;
  for (i64 c = threadIdx.x / 32; c < columns; c += blockDim.x / 32) {
    T y = lane < n ? x[c] : T(0);
    for (int j = 0; j < n; j++) {
      const T known = from_lane(y, j) / tile[j][j];
      if (lane == j) y = known;
      else if (lane > j && lane < n) y -= tile[lane][j] * known;
    }
    if (lane < n) x[c] = y;
  }
}
"""

#: A strip of columns, from `at` down, as L and U in place; `pivots`: with which row each row was exchanged. A warp has
#: rows, a few at once so that memory is busy, and a thread a column; who has the next column looks for its pivot.
LU_PANEL = r"""
// The largest number that threads have found, and its row; of equal ones the first.
struct Largest { R size; i64 row; };
SYMC_FUNCTION void keep_larger(Largest &x, R size, i64 row) {
  if (size > x.size || (size == x.size && row < x.row)) x.size = size, x.row = row;
}

extern "C" __global__ void __launch_bounds__(1024) lu_panel(T *a, i32 *pivots, i64 *order, i64 n, i64 at, i64 width) {
  __shared__ R sizes[32];
  __shared__ i64 rows[32];
  constexpr int AT_ONCE = sizeof(T) == 16 ? 1 : 4;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32, columns = int(width);
  a += i64(blockIdx.x) * n * n + at;
  pivots += i64(blockIdx.x) * n;
  order += i64(blockIdx.x) * n;
  if (at == 0)
    for (i64 i = t; i < n; i += blockDim.x) order[i] = i;
  Largest best = {R(-1), at};
  for (i64 i = at + t; i < n; i += blockDim.x) keep_larger(best, size_(a[i * n]), i);
  for (int s = 16; s; s >>= 1)
    keep_larger(best, __shfl_xor_sync(0xffffffffu, best.size, s), __shfl_xor_sync(0xffffffffu, best.row, s));
  for (int j = 0; j < columns; j++) {
    const i64 first = at + j;
    if (lane == 0) sizes[warp] = best.size, rows[warp] = best.row;
    __syncthreads();
    best = {sizes[0], rows[0]};
    for (int k = 1; k < warps; k++) keep_larger(best, sizes[k], rows[k]);
    const i64 place = best.row;
    if (t == 0) {
      pivots[first] = i32(place);
      const i64 row = order[first];
      order[first] = order[place];
      order[place] = row;
    }
    if (t < columns && place != first) {
      const T x = a[first * n + t];
      a[first * n + t] = a[place * n + t];
      a[place * n + t] = x;
    }
    __syncthreads();
    const T pivot = a[first * n + j], top = lane < columns ? a[first * n + lane] : T(0);
    best = {R(-1), first + 1};
    for (i64 i = first + 1 + warp * AT_ONCE; i < n; i += warps * AT_ONCE) {
      T l[AT_ONCE], x[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        l[k] = x[k] = T(0);
        if (i + k < n) l[k] = a[(i + k) * n + j];
        if (i + k < n && lane < columns) x[k] = a[(i + k) * n + lane];
      }
      __syncwarp();
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        if (pivot != T(0)) l[k] = l[k] / pivot;
        const T y = lane == j ? l[k] : x[k] - l[k] * top;
        if (i + k < n && lane >= j && lane < columns) a[(i + k) * n + lane] = y;
        if (i + k < n) keep_larger(best, size_(y), i + k);
      }
    }
    const int next = j + 1 < columns ? j + 1 : j;
    best = {__shfl_sync(0xffffffffu, best.size, next), __shfl_sync(0xffffffffu, best.row, next)};
  }
}
"""

#: The same exchanges of rows, of the columns outside of the strip.
LU_EXCHANGE = r"""
extern "C" __global__ void __launch_bounds__(128) lu_exchange(T *a, const i32 *pivots, i64 n, i64 at, i64 width) {
  const i64 c = i64(blockIdx.y) * 128 + threadIdx.x;
  if (c >= n || (c >= at && c < at + width)) return;
  a += i64(blockIdx.x) * n * n + c;
  pivots += i64(blockIdx.x) * n;
  for (i64 i = at; i < at + width; i++) {
    const i64 p = pivots[i];
    if (p == i) continue;
    const T x = a[i * n];
    a[i * n] = a[p * n];
    a[p * n] = x;
  }
}
"""

#: Rows in an order, or rows in an order put back.
ROWS_IN_ORDER = r"""
extern "C" __global__ void __launch_bounds__(256) rows_in_order(const T *b, const i64 *order, T *x, i64 n, i64 columns,
                                                                i64 total, i64 back, i32 *failed) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 i = e / columns, first = i / n * n, c = e % columns;
  const i64 p = order[i] < 0 ? order[i] + n : order[i];
  if (p < 0 || p >= n) fail(failed);
  else if (back) x[(first + p) * columns + c] = b[e];
  else x[e] = b[(first + p) * columns + c];
}
"""
