// v4_split
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
#endif
extern "C" __global__ void __launch_bounds__(256) column_sum_rows0(const f32 *__restrict__ a0, f32 *o0, u8 *scratch0, const i32 n0, const i32 n1, const i32 n2) {
  const i32 high = threadIdx.x / 32;
  const i32 column = (i32(blockIdx.x) * 32 + threadIdx.x % 32) * 4;
  const bool live = column < n0;
  f32 s0_[4];
  #pragma unroll
  for (int e = 0; e < 4; ++e) s0_[e] = f32(0.0);
  if (live) {
    #pragma unroll 4
    for (i32 r1_ = i32(blockIdx.y) * 8 + high; r1_ < n1; r1_ += i32(gridDim.y) * 8) {
      Vector<f32, 4> z2_; load_vector(z2_, a0 + r1_ * n0 + column);
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const f32 t4_ = z2_.at[e];
        const f32 t5_ = (t4_ * t4_);
        s0_[e] = (s0_[e] + t5_);
      }
    }
  }
  __shared__ f32 s0_part[8][128];
  #pragma unroll
  for (int e = 0; e < 4; ++e) s0_part[high][threadIdx.x % 32 + e * 32] = s0_[e];
  __syncthreads();
  #pragma unroll
  for (int e = 0; e < 4; ++e) {
    s0_[e] = s0_part[0][threadIdx.x % 32 + e * 32];
    #pragma unroll
    for (int h = 1; h < 8; ++h) s0_[e] = (s0_[e] + s0_part[h][threadIdx.x % 32 + e * 32]);
  }
  if (high == 0 && live) {
    store_array<4>(reinterpret_cast<f32 *>(scratch0) + i32(blockIdx.y) * n0 + column, s0_);
  }
}
extern "C" __global__ void __launch_bounds__(512) column_sum_parts0(const f32 *__restrict__ a0, f32 *o0, u8 *scratch0, const i32 n0, const i32 n1, const i32 n2) {
  const i32 high = threadIdx.x / 16;
  const i32 column = i32(blockIdx.x) * 16 + threadIdx.x % 16;
  f32 s6_ = f32(0.0);
  if (column < n0) {
    #pragma unroll 4
    for (i32 g7_ = high; g7_ < n2; g7_ += 32) {
      s6_ = (s6_ + reinterpret_cast<f32 *>(scratch0)[g7_ * n0 + column]);
    }
  }
  __shared__ f32 s6_part[32][16];
  s6_part[high][threadIdx.x % 16] = s6_;
  __syncthreads();
  if (high > 0 || column >= n0) return;
  for (int h = 1; h < 32; ++h) s6_ = (s6_ + s6_part[h][threadIdx.x]);
  o0[column] = s6_;
}
