// split_v4
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
#endif
extern "C" __global__ void __launch_bounds__(256) sum_pass0(const f32 *__restrict__ a0, const f32 *__restrict__ a1, f32 *o0, u8 *scratch0, const i32 n0, const i32 n1) {
  const i32 lane = threadIdx.x;
  const i32 row = blockIdx.y;
  f32 s0_ = f32(0.0);
  #pragma unroll 4
  for (i32 j1_ = (i32(blockIdx.x) * 256 + lane) * 4; j1_ < n0; j1_ += i32(gridDim.x) * 1024) {
    Vector<f32, 4> z2_; load_vector(z2_, a0 + 0 + j1_);
    Vector<f32, 4> z3_; load_vector(z3_, a1 + 0 + j1_);
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const f32 t5_ = z2_.at[e];
      const f32 t6_ = z3_.at[e];
      const f32 t7_ = (t5_ * t6_);
      s0_ = (s0_ + t7_);
    }
  }
  #pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    const f32 u8_ = across(s0_, bits);
    s0_ = (s0_ + u8_);
  }
  __shared__ f32 s0_part[8];
  if (threadIdx.x % 32 == 0) s0_part[threadIdx.x / 32] = s0_;
  __syncthreads();
  s0_ = s0_part[threadIdx.x % 8];
  #pragma unroll
  for (int bits = 4; bits > 0; bits /= 2) {
    const f32 u9_ = across(s0_, bits);
    s0_ = (s0_ + u9_);
  }
  if (lane == 0) reinterpret_cast<f32 *>(scratch0)[row * n1 + i32(blockIdx.x)] = s0_;
}
extern "C" __global__ void __launch_bounds__(256) sum_pass1(const f32 *__restrict__ a0, const f32 *__restrict__ a1, f32 *o0, u8 *scratch0, const i32 n0, const i32 n1) {
  const i32 lane = threadIdx.x;
  const i32 row = blockIdx.y;
  f32 s10_ = f32(0.0);
  for (i32 g11_ = lane; g11_ < n1; g11_ += 256) {
    s10_ = (s10_ + reinterpret_cast<f32 *>(scratch0)[row * n1 + g11_]);
  }
  #pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    const f32 u12_ = across(s10_, bits);
    s10_ = (s10_ + u12_);
  }
  __shared__ f32 s10_part[8];
  if (threadIdx.x % 32 == 0) s10_part[threadIdx.x / 32] = s10_;
  __syncthreads();
  s10_ = s10_part[threadIdx.x % 8];
  #pragma unroll
  for (int bits = 4; bits > 0; bits /= 2) {
    const f32 u13_ = across(s10_, bits);
    s10_ = (s10_ + u13_);
  }
  if (i32(blockIdx.x) + lane == 0) o0[row] = s10_;
}
