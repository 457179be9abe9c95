// tiles
extern "C" __global__ void __launch_bounds__(256) transposed(const f32 *__restrict__ a0, const f32 *a1, f32 *o0, const i32 n0, const i32 n1, const i32 n2) {
  const i32 block = blockIdx.x;
  const i32 r1_ = i32(u32(block) / u32(n0));
  const i32 i0_ = block - r1_ * n0;
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  __shared__ f32 tile0[32][33];
  #pragma unroll
  for (int k = 0; k < 32; k += 8) {
    const i32 fast = i0_ * 32 + y + k, slow = r1_ * 32 + x;
    if (fast < n1 && slow < n2) {
      tile0[y + k][x] = a0[fast * n2 + slow];
    }
  }
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < 32; k += 8) {
    const i32 slow = r1_ * 32 + y + k, fast = i0_ * 32 + x;
    if (slow < n2 && fast < n1) {
      const f32 x0 = tile0[x][y + k];
      const f32 t2_ = a1[slow * n1 + fast];
      const f32 t3_ = (x0 + t2_);
      const i32 at = slow * n1 + fast;
      *(o0 + at) = t3_;
    }
  }
}
