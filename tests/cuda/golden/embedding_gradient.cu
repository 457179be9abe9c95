// owned_256
extern "C" __global__ void __launch_bounds__(256) embedding_gradient_start0(const f32 *__restrict__ a0, const i64 *__restrict__ a1, f32 *o0, const i32 n0, const i32 n1, const i32 n2, const i32 n3, const i32 n4, const i32 n5) {
  const i32 p = i32(blockIdx.x) * 256 + threadIdx.x;
  if (p >= n0) return;
  o0[p] = f32(0.0);
}
extern "C" __global__ void __launch_bounds__(256) embedding_gradient(const f32 *__restrict__ a0, const i64 *__restrict__ a1, f32 *o0, const i32 n0, const i32 n1, const i32 n2, const i32 n3, const i32 n4, const i32 n5) {
  __shared__ int counts[32];
  __shared__ i32 items[1024], places[1024];
  const i32 begin = i32(blockIdx.x) * n3;
  const i32 end = min(n4, begin + n3);
  const i32 from = 0;
  const i32 last = n2;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (i32 base = from; base < last; base += 1024) {
    i32 place[4];
    unsigned found[4];
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
      const i32 item = base + k * 256 + threadIdx.x;
      place[k] = -1;
      if (item < last) {
        const i64 t2_ = a1[item];
        const i64 t3_ = ((t2_ < i64(n5)) ? t2_ : i64(n5));
        const i64 t4_ = ((t3_ > i64(0LL)) ? t3_ : i64(0LL));
        place[k] = i32(t4_);
      }
      found[k] = __ballot_sync(0xffffffffu, place[k] >= begin && place[k] < end);
      if (lane == 0) counts[k * 8 + warp] = __popc(found[k]);
    }
    __syncthreads();
    int total = 0;
    #pragma unroll
    for (int k = 0; k < 32; ++k) {
      const int mine = k / 8;
      if (k % 8 == warp && (found[mine] >> lane & 1)) {
        const int n = total + __popc(found[mine] & ((1u << lane) - 1));
        items[n] = base + mine * 256 + threadIdx.x;
        places[n] = place[mine];
      }
      total += counts[k];
    }
    __syncthreads();
    for (int n = 0; n < total; ++n) {
      const i32 item = items[n], row = places[n];
      if ((row - begin) % 1 != threadIdx.x / 256) continue;
      for (i32 column = threadIdx.x % 256; column < n1; column += 256) {
        const i64 t6_ = a1[item];
        const i64 t7_ = ((t6_ < i64(n5)) ? t6_ : i64(n5));
        const i64 t8_ = ((t7_ > i64(0LL)) ? t7_ : i64(0LL));
        const f32 t9_ = a0[item * n1 + column];
        const i32 w10_ = i32(t8_) * n1 + column;
        const auto t11_ = o0[w10_];
        o0[w10_] = (t11_ + t9_);
      }
    }
    __syncthreads();
  }
}
