// rows_many
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
extern "C" __global__ void __launch_bounds__(256) bias(const f32 *__restrict__ a0, const f32 *a1, f32 *o0, const i32 n0, const i32 n1) {
  auto compute = [&](const i32 p, const Vector<f32, 4> &x0, Vector<f32, 4> &y0) {
    const i32 r1_ = i32(u32(p) / u32(n0));
    const i32 i0_ = p - r1_ * n0;
    Vector<f32, 4> z0;
    load_vector(z0, a0 + i0_);
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const f32 t3_ = x0.at[e];
      const f32 t4_ = z0.at[e];
      const f32 t5_ = (t4_ + t3_);
      const f32 t6_ = maximum(t5_, f32(0.0));
      y0.at[e] = t6_;
    }
  };
  const i32 first = i32(blockIdx.x) * 2048;
  if (n1 - first >= 2048) {
    const i32 p0 = first + (0 + i32(threadIdx.x)) * 4;
    const i32 p1 = first + (256 + i32(threadIdx.x)) * 4;
    Vector<f32, 4> x0_0; load_vector(x0_0, a1 + p0);
    Vector<f32, 4> x0_1; load_vector(x0_1, a1 + p1);
    Vector<f32, 4> y0_0;
    compute(p0, x0_0, y0_0);
    Vector<f32, 4> y0_1;
    compute(p1, x0_1, y0_1);
    store_vector(o0 + p0, y0_0);
    store_vector(o0 + p1, y0_1);
  } else {
    #pragma unroll 1
    for (i32 p = first + i32(threadIdx.x) * 4; p < n1; p += 1024) {
      Vector<f32, 4> x0; load_vector(x0, a1 + p);
      Vector<f32, 4> y0;
      compute(p, x0, y0);
      store_vector(o0 + p, y0);
    }
  }
}
