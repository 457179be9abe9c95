// 256x1x4
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
extern "C" __global__ void __launch_bounds__(256) bias_gradient_rows(const f32 *__restrict__ a0, const f32 *__restrict__ a1, const f32 *__restrict__ a2, f32 *o0, f32 *o1, u8 *scratch0, const i32 n0, const i32 n1, const i32 n2) {
  const i32 lane = threadIdx.x % 256;
  const i32 group = i32(blockIdx.x) * 1 + threadIdx.x / 256;
  Vector<f32, 4> d0_[1];
  #pragma unroll
  for (int c = 0; c < 1; ++c)
    #pragma unroll
    for (int e = 0; e < 4; ++e) d0_[c].at[e] = f32(0.0);
  #pragma unroll 4
  for (i32 base = 0; base < n0; base += n1) {
    const bool live = group < n0 - base;
    const i32 row = live ? base + group : n0 - 1;
    #pragma unroll
    for (int c = 0; c < 1; ++c) {
      const i32 j1_ = i32(blockIdx.y) * 1024 + (c * 256 + lane) * 4;
      if (live && j1_ < n2) {
        Vector<f32, 4> z2_; load_vector(z2_, a0 + row * n2 + j1_);
        Vector<f32, 4> z3_; load_vector(z3_, a1 + 0 + j1_);
        Vector<f32, 4> z4_; load_vector(z4_, a2 + row * n2 + j1_);
        Vector<f32, 4> y5_;
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const f32 t7_ = z2_.at[e];
          const f32 t8_ = z3_.at[e];
          const f32 t9_ = z4_.at[e];
          const f32 t10_ = (t8_ + t9_);
          const f32 t11_ = tanh(t10_);
          const f32 t12_ = (f32(1.0) - t11_);
          const f32 t13_ = (t11_ + f32(1.0));
          const f32 t14_ = (t12_ * t13_);
          const f32 t15_ = (t7_ * t14_);
          d0_[c].at[e] = (d0_[c].at[e] + t15_);
          y5_.at[e] = t15_;
        }
        store_vector(o1 + row * n2 + j1_, y5_);
      }
    }
  }
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    const i32 j = i32(blockIdx.y) * 1024 + (c * 256 + lane) * 4;
    if (j < n2) store_array<4>(reinterpret_cast<f32 *>(scratch0) + group * n2 + j, d0_[c].at);
  }
}
extern "C" __global__ void __launch_bounds__(512) bias_gradient_parts(const f32 *__restrict__ a0, const f32 *__restrict__ a1, const f32 *__restrict__ a2, f32 *o0, f32 *o1, u8 *scratch0, const i32 n0, const i32 n1, const i32 n2) {
  const i32 high = threadIdx.x / 16;
  const i32 column = i32(blockIdx.x) * 16 + threadIdx.x % 16;
  f32 s16_ = f32(0.0);
  if (column < n2) {
    #pragma unroll 4
    for (i32 g17_ = high; g17_ < n1; g17_ += 32) {
      s16_ = (s16_ + reinterpret_cast<f32 *>(scratch0)[g17_ * n2 + column]);
    }
  }
  __shared__ f32 s16_part[32][16];
  s16_part[high][threadIdx.x % 16] = s16_;
  __syncthreads();
  if (high > 0 || column >= n2) return;
  for (int h = 1; h < 32; ++h) s16_ = (s16_ + s16_part[h][threadIdx.x]);
  o0[column] = s16_;
}
