// 32x8x4
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
extern "C" __global__ void __launch_bounds__(128) softmax(const f32 *__restrict__ a0, f32 *o0, const i32 n0, const i32 n1) {
  const i32 lane = threadIdx.x % 32;
  const i32 own = i32(blockIdx.x) * 4 + threadIdx.x / 32;
  const bool live = own < n0;
  const i32 row = live ? own : n0 - 1;
  Vector<f32, 4> x0_[8];
  #pragma unroll
  for (int c = 0; c < 8; ++c) {
    const i32 j1_ = (c * 32 + lane) * 4;
    if (live && j1_ < n1) {
      load_vector(x0_[c], a0 + row * n1 + j1_);
    }
  }
  f32 s2_ = f32(minus(SYMC_INF));
  #pragma unroll
  for (int c = 0; c < 8; ++c) {
    const i32 j3_ = (c * 32 + lane) * 4;
    if (live && j3_ < n1) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const f32 t5_ = x0_[c].at[e];
        s2_ = maximum(s2_, t5_);
      }
    }
  }
  #pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    const f32 u6_ = across(s2_, bits);
    s2_ = maximum(s2_, u6_);
  }
  const bool t7_ = (s2_ == f32(minus(SYMC_INF)));
  const f32 t8_ = (t7_ ? f32(0.0) : s2_);
  const bool t9_ = (t8_ == f32(SYMC_INF));
  f32 s10_ = f32(0.0);
  Vector<f32, 4> x11_[8];
  #pragma unroll
  for (int c = 0; c < 8; ++c) {
    const i32 j12_ = (c * 32 + lane) * 4;
    if (live && j12_ < n1) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const f32 t14_ = x0_[c].at[e];
        const f32 t15_ = (t14_ - t8_);
        const f32 t16_ = exp(t15_);
        s10_ = (s10_ + t16_);
        x11_[c].at[e] = t16_;
      }
    }
  }
  #pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    const f32 u17_ = across(s10_, bits);
    s10_ = (s10_ + u17_);
  }
  const f32 t18_ = (t9_ ? f32(SYMC_INF) : s10_);
  const bool t19_ = (abs(t18_) < inf(t18_));
  const f32 t20_ = (t19_ ? t18_ : f32(SYMC_NAN));
  const f32 t21_ = (f32(1.0) / t20_);
  #pragma unroll
  for (int c = 0; c < 8; ++c) {
    const i32 j22_ = (c * 32 + lane) * 4;
    if (live && j22_ < n1) {
      Vector<f32, 4> y23_;
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const f32 t25_ = x11_[c].at[e];
        const f32 t26_ = (t25_ * t21_);
        y23_.at[e] = t26_;
      }
      store_vector(o0 + row * n1 + j22_, y23_);
    }
  }
}
