"""Kernels that are right, and what makes each wrong: the emulator passes the first and finds the second.

A case is a text, arguments, a launch, what the results must be, and its mistakes: a part of the text, what stands there
instead, and the kind of error that must be reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

RNG = np.random.default_rng(7)
I, U = np.int32, np.uint32


def floats(*shape) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@dataclass
class Mistake:
    name: str
    old: str
    new: str
    kind: str
    launch: dict = field(default_factory=dict)  # launched otherwise
    otherwise: str = ""  # the kind when threads run in another order: a race, or what it leads to


@dataclass
class Case:
    name: str
    text: str
    arguments: list
    want: list[np.ndarray]
    mistakes: list[Mistake]
    launch: dict = field(default_factory=dict)
    tolerance: float = 1e-5


CASES: list[Case] = []

# --- a softmax of rows, one block a row: values in shared memory, partial results by shuffles -----------------------

_X = floats(3, 300)
_E = np.exp(_X - _X.max(1, keepdims=True))
CASES.append(Case("softmax", r"""
extern "C" __global__ void __launch_bounds__(128) softmax(float* y, const float* x, int n) {
  SYMC_SHARED(float, part);
  const int t = threadIdx.x, warp = t >> 5, lane = t & 31;
  const float* row = x + (long long)blockIdx.x * n;
  float m = __int_as_float(0xff800000);
  for (int i = t; i < n; i += 128) m = fmaxf(m, row[i]);
  for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
  if (lane == 0) part[warp] = m;
  __syncthreads(); // B1
  m = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  __syncthreads(); // B2
  float s = 0;
  for (int i = t; i < n; i += 128) s += expf(row[i] - m);
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
  if (lane == 0) part[warp] = s;
  __syncthreads(); // B3
  s = (part[0] + part[1]) + (part[2] + part[3]);
  for (int i = t; i < n; i += 128) y[(long long)blockIdx.x * n + i] = expf(row[i] - m) / s;
}
""", [(_X, "w"), (_X, "r"), I(300)], [_E / _E.sum(1, keepdims=True)], [
    Mistake("what was just written is read", "__syncthreads(); // B1", "", "UNWRITTEN"),
    Mistake("what is still read is written", "__syncthreads(); // B2", "", "RACE"),
    Mistake("the last partial results", "__syncthreads(); // B3", "", "RACE"),
    Mistake("a barrier of some threads", "__syncthreads(); // B2", "__syncthreads(); if (warp < 2) __syncthreads();",
            "BARRIER"),
    Mistake("two barriers", "__syncthreads(); // B2", "if (warp < 2)\n __syncthreads();\nelse\n __syncthreads();",
            "BARRIER"),
    Mistake("a shuffle of some lanes", "for (int d = 16; d; d >>= 1) s +=",
            "if (lane < 9) for (int d = 16; d; d >>= 1) s +=", "WARP"),
    Mistake("a return before a shuffle", "float s = 0;", "if (lane == 31) return;\nfloat s = 0;", "WARP"),
    Mistake("all lanes write", "if (lane == 0) part[warp] = s;", "part[warp] = s;", "RACE"),
    Mistake("a thread is done before a barrier", "if (lane == 0) part[warp] = s;",
            "if (t == 127) return;\nif (lane == 0) part[warp] = s;", "BARRIER"),
    Mistake("shared memory that nobody writes", "if (lane == 0) part[warp] = s;", "if (lane == 0) part[4 + warp] = s;",
            "BOUNDS"),
    Mistake("too little shared memory", "", "", "BOUNDS", {"shared": 12}),
    Mistake("past the end", "i < n; i += 128) s +=", "i <= n; i += 128) s +=", "BOUNDS"),
    Mistake("a row too many", "", "", "BOUNDS", {"grid": 4}),
    Mistake("half a row is not written", "i < n; i += 128) y[", "i < n / 2; i += 128) y[", "UNWRITTEN"),
    Mistake("more threads than its launch bounds", "", "", "LAUNCH", {"block": 256}),
    Mistake("no whole warps", "", "", "LAUNCH", {"block": 48}),
    Mistake("no blocks", "", "", "LAUNCH", {"grid": 0}),
    Mistake("too much shared memory", "", "", "LAUNCH", {"shared": 232449}),
], {"grid": 3, "block": 128, "shared": 16}))

# --- a sum in two stages in one launch: the block that is last adds what the others have left -----------------------

_V = floats(1000)
CASES.append(Case("last block", r"""
extern "C" __global__ void sum(float* y, const float* x, float* parts, unsigned* done, int n) {
  __shared__ float s[64];
  __shared__ bool last;
  const int t = threadIdx.x;
  float v = 0;
  for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) v += x[i];
  s[t] = v;
  __syncthreads(); // B1
  for (int d = 32; d; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads(); // B2
  }
  if (t == 0) {
    parts[blockIdx.x] = s[0];
    __threadfence(); // F
    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads(); // B3
  if (!last) return;
  s[t] = t < gridDim.x ? parts[t] : 0.0f;
  __syncthreads();
  if (t == 0) {
    float all = 0;
    for (int i = 0; i < gridDim.x; i++) all += s[i];
    y[0] = all;
  }
}
""", [(_V[:1], "w"), (_V, "r"), (np.zeros(5, np.float32), "w"), (np.zeros(1, U), "rw"), I(1000)],
    [_V.sum(dtype=np.float64)], [
    Mistake("no fence", "__threadfence(); // F", "", "RACE"),
    Mistake("a fence too late", "__threadfence(); // F\n    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;",
            "last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1; __threadfence();", "RACE"),
    Mistake("a fence too early", "parts[blockIdx.x] = s[0];\n    __threadfence(); // F",
            "__threadfence();\nparts[blockIdx.x] = s[0];", "RACE"),
    Mistake("a fence of its own block", "__threadfence()", "__threadfence_block()", "RACE"),
    Mistake("no barrier after the sums", "__syncthreads(); // B1", "", "UNWRITTEN"),
    Mistake("no barrier between steps", "__syncthreads(); // B2", "", "RACE"),
    Mistake("no barrier before the flag", "__syncthreads(); // B3", "", "UNWRITTEN"),
    Mistake("every block adds", "if (!last) return;", "", "UNWRITTEN"),
    Mistake("a counter that is no atomic", "atomicInc(done, gridDim.x - 1)", "((*done)++)", "RACE"),
    Mistake("shared memory is too small", "float s[64]", "float s[32]", "UNDEFINED"),
], {"grid": 5, "block": 64}))

CASES.append(Case("every thread fences", r"""
extern "C" __global__ void sum(float* y, float* parts, unsigned* done) {
  __shared__ bool last;
  parts[blockIdx.x * 32 + threadIdx.x] = blockIdx.x + threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  float all = 0;
  for (int i = 0; i < gridDim.x; i++) all += parts[i * 32 + 31 - threadIdx.x];
  y[threadIdx.x] = all;
  if (threadIdx.x == 0) *done = 0;
}
""", [(np.zeros(32, np.float32), "w"), (np.zeros(96, np.float32), "w"), (np.zeros(1, U), "rw")],
    [3 + 3.0 * np.arange(32)[::-1], (np.arange(3)[:, None] + np.arange(32)).ravel(), [0]], [
    Mistake("only one thread fences", "  __threadfence();\n", "  if (threadIdx.x == 0) __threadfence();\n", "RACE"),
    Mistake("no barrier after the fences", "__threadfence();\n  __syncthreads();", "__threadfence();", "RACE"),
    Mistake("no barrier after the flag", "__syncthreads();\n  if (!last)", "if (!last)", "UNWRITTEN"),
], {"grid": 3, "block": 32}))

CASES.append(Case("one fence for a block", r"""
extern "C" __global__ void sum(float* y, float* parts, unsigned* done) {
  __shared__ bool last;
  parts[blockIdx.x * 32 + threadIdx.x] = blockIdx.x + threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float all = 0;
  for (int i = 0; i < gridDim.x; i++) all += parts[i * 32 + 31 - threadIdx.x];
  y[threadIdx.x] = all;
}
""", [(np.zeros(32, np.float32), "w"), (np.zeros(96, np.float32), "w"), (np.zeros(1, U), "rw")],
    [3 + 3.0 * np.arange(32)[::-1], (np.arange(3)[:, None] + np.arange(32)).ravel(), [3]], [
    Mistake("a fence before the barrier", "__syncthreads();\n  if (threadIdx.x == 0) {\n    __threadfence();",
            "if (threadIdx.x == 0) __threadfence();\n  __syncthreads();\n  if (threadIdx.x == 0) {", "RACE"),
    Mistake("another counter for each block", "atomicAdd(done, 1u) == gridDim.x - 1", "blockIdx.x == gridDim.x - 1",
            "RACE"),
], {"grid": 3, "block": 32}))

# --- sixteen bytes at a time, with a tail -----------------------------------------------------------------------------

_W, _Z = floats(130), floats(130)
CASES.append(Case("vectors", r"""
extern "C" __global__ void add(float* __restrict__ z, const float* __restrict__ x, const float* __restrict__ y, int n) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    const float4 a = *(const float4*)(x + i), b = *(const float4*)(y + i);
    float4 c;
    c.x = a.x + b.x; c.y = a.y + b.y; c.z = a.z + b.z; c.w = a.w + b.w;
    *(float4*)(z + i) = c;
  } else {
    for (int j = i; j < n; j++) z[j] = x[j] + y[j];
  }
}
""", [(_W, "w"), (_W, "r"), (_Z, "r"), I(130)], [_W + _Z], [
    Mistake("the tail as a vector", "i + 3 < n", "i < n", "BOUNDS"),
    Mistake("no multiple of 16 bytes", "(x + i), b", "(x + 1 + i), b", "ALIGNMENT"),
    Mistake("threads overlap", "4 * (blockIdx.x", "2 * (blockIdx.x", "ALIGNMENT"),
    Mistake("blocks overlap", "blockIdx.x * blockDim.x", "blockIdx.x * 0", "RACE"),
    Mistake("an input is written", "*(float4*)(z + i) = c;", "*(float4*)(z + i) = c; *(float4*)x = c;", "BOUNDS"),
    Mistake("an output is read", "const float4 a = *(const float4*)(x + i)", "const float4 a = *(const float4*)(z + i)",
            "UNWRITTEN"),
], {"grid": 2, "block": 32}))

# --- scatter, bytes, and what lanes do without barriers ---------------------------------------------------------------

_AT = RNG.integers(0, 10, 96).astype(np.int32)
_SUMS = np.zeros(10, np.float32)
np.add.at(_SUMS, _AT, np.arange(96, dtype=np.float32))
CASES.append(Case("scatter", r"""
extern "C" __global__ void scatter(float* y, const int* at, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(y + at[i], (float)i);
}
""", [(np.zeros(10, np.float32), "rw"), (_AT, "r"), I(96)], [_SUMS], [
    Mistake("no atomic operation", "atomicAdd(y + at[i], (float)i)", "y[at[i]] += i", "RACE"),
    Mistake("some without", "atomicAdd(y + at[i], (float)i)",
            "if (i == 95) y[at[i]] += i; else atomicAdd(y + at[i], (float)i)", "RACE"),
], {"grid": 3, "block": 32}))

CASES.append(Case("bytes", r"""
extern "C" __global__ void larger(unsigned char* y, const short* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 3;
}
""", [(np.zeros(71, np.uint8), "w"), (np.arange(71, dtype=np.int16), "r"), I(71)], [np.arange(71) > 3], [
    Mistake("neighbours are the same", "y[i] =", "y[i | 1] =", "RACE"),
    Mistake("a pair of bytes", "y[i] = x[i] > 3",
            "if (i % 2 == 0) ((unsigned short*)y)[i / 2] = 1; else y[i] = 1", "RACE"),
    Mistake("one element past the end", "i < n", "i <= n", "BOUNDS"),
], {"grid": 3, "block": 32}))

CASES.append(Case("lanes", r"""
extern "C" __global__ void shift(int* y, const int* x) {
  __shared__ int s[64];
  const int t = threadIdx.x, lane = t & 31, first = t & ~31;
  s[t] = x[t];
  __syncwarp(); // W
  const int v = s[first + (lane + 1) % 32];
  const unsigned odd = __ballot_sync(0xffffffffu, v & 1);
  const int down = __shfl_down_sync(0xffffffffu, v, 1);
  const int half = lane < 16 ? __shfl_xor_sync(0x0000ffffu, v, 1, 16) : __shfl_xor_sync(0xffff0000u, v, 2, 16); // H
  y[t] = v + __popc(odd) + down + half + __reduce_add_sync(0xffffffffu, v & 3);
}
""", [(np.zeros(64, np.int32), "w"), (np.arange(64, dtype=np.int32) ** 2, "r")],
    [np.concatenate([(lambda v, x: v + np.sum(v & 1) + np.append(v[1:], v[31]) + v[x] + np.sum(v & 3))(
        np.roll(np.arange(64)[k : k + 32] ** 2, -1),
        np.where(np.arange(32) < 16, np.arange(32) ^ 1, np.arange(32) ^ 2)) for k in (0, 32)])], [
    Mistake("lanes are not in step", "__syncwarp(); // W", "", "UNWRITTEN"),
    Mistake("lanes are not in step, and it was written", "__syncwarp(); // W\n", "__syncthreads(); s[t] = t;\n",
            "RACE"),
    Mistake("a barrier of half a warp", "__syncwarp(); // W", "__syncwarp(lane < 16 ? 0xffffu : 0xffff0000u);",
            "UNWRITTEN", otherwise="RACE"),
    Mistake("a shuffle orders nothing", "__syncwarp(); // W",
            "__syncthreads(); s[t] = __shfl_xor_sync(0xffffffffu, t, 1);", "RACE"),
    Mistake("a lane outside of the mask", "0x0000ffffu, v, 1, 16", "0x0000ffffu, v, 16", "WARP"),
    Mistake("not in its own mask", "lane < 16 ? __shfl_xor_sync(0x0000ffffu", "lane < 17 ? __shfl_xor_sync(0x0000ffffu",
            "WARP"),
    Mistake("half of the lanes do not come", "0xffff0000u, v, 2, 16); // H", "0xffffffffu, v, 2, 16);", "WARP"),
    Mistake("a width that is none", "v, 1, 16)", "v, 1, 12)", "WARP"),
], {"grid": 1, "block": 64}))

# --- what C++ leaves undefined -------------------------------------------------------------------------------------

CASES.append(Case("integers", r"""
extern "C" __global__ void numbers(int* y, const int* x, int n) {
  const int i = threadIdx.x;
  int table[4] = {1, 2, 4, 8};
  table[x[i] & 3] += i;
  y[i] = table[x[i] & 3] * 2 + (1 << (x[i] & 31)) / (n + i) - x[i]; // Y
}
""", [(np.zeros(32, np.int32), "w"), (np.arange(32, dtype=np.int32), "r"), I(1)],
    [(np.array([1, 2, 4, 8])[np.arange(32) & 3] + np.arange(32)) * 2
     + np.trunc((1 << np.arange(32)).astype(np.int32) / (1.0 + np.arange(32))).astype(np.int32) - np.arange(32)], [
    Mistake("a sum overflows", "; // Y", " + 2147483647;", "UNDEFINED"),
    Mistake("a product overflows", "* 2 +", "* 2000000000 +", "UNDEFINED"),
    Mistake("an array ends", "table[x[i] & 3] * 2", "table[x[i] & 7] * 2", "UNDEFINED"),
    Mistake("a division by zero", "(n + i)", "(n + i - 5)", "UNDEFINED"),
    Mistake("a shift too far", "1 << (x[i] & 31)", "1 << (x[i] + 1)", "UNDEFINED"),
    Mistake("it gives up", "int table", "if (i == 7) __trap();\n  int table", "TRAP"),
], {"grid": 1, "block": 32}))

CASES.append(Case("constants", r"""
__constant__ int weights[4] = {3, 1, 4, 1};
extern "C" __global__ void weigh(int* y, const int* x) {
  const int i = threadIdx.x;
  y[i] = __ldg(x + i) * weights[i & 3];
}
""", [(np.zeros(32, np.int32), "w"), (np.arange(32, dtype=np.int32), "r")],
    [np.arange(32) * np.tile([3, 1, 4, 1], 8)], [
    Mistake("an array in a function", "weights[i & 3]", "weights[i & 5]", "UNDEFINED"),
    Mistake("a constant is written", "y[i] =", "const_cast<int*>(weights)[i & 3] = 1; y[i] =", "BOUNDS"),
    Mistake("memory of the host", "__ldg(x + i)", "*(const int*)(0x10000 + 4 * i)", "BOUNDS"),
    Mistake("written what is cached", "y[i] = __ldg(x + i)", "y[i] = 1; __syncthreads(); y[i] = __ldg(y + i)", "RACE"),
], {"grid": 1, "block": 32}))
