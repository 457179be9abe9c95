// CUDA C++ as g++ compiles it: what a kernel may use without an include, as with NVRTC. What is missing here does not
// compile, which is meant: a kernel that needs it would not be emulated faithfully.
//
// One thread runs at a time, on one thread of the operating system. SYMC_CHECKED: each access calls the runtime.
#pragma once
#include "machine.h"
#include "ptx.h"

#define SYMC_EMULATED 1
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// Shared memory is zero-initialised data of the library, which holds nothing else: blocks run one after another.
#define __shared__ static
#define SYMC_SHARED(T, name) T* const name = reinterpret_cast<T*>(symc_emulator_machine.shared)

#define SYMC_HIDDEN __attribute__((visibility("hidden")))
// For what the emulator itself does between two steps of a kernel: nobody watches it.
#define SYMC_UNWATCHED __attribute__((no_sanitize("thread", "undefined")))

extern "C" {
// Not zero at first, so that it does not lie among shared memory.
SYMC_HIDDEN symc_emulator::Machine symc_emulator_machine = {{1, 1, 1}, {}, {}, {}, nullptr, {}};
}

typedef symc_emulator::Index uint3;
typedef uint3 dim3;
typedef unsigned long size_t;
static const int warpSize = 32;

#ifdef SYMC_CHECKED
SYMC_UNWATCHED static __attribute__((noinline, const)) uint3 symc_thread() { return symc_emulator_machine.thread; }
SYMC_UNWATCHED static __attribute__((noinline, const)) uint3 symc_block() { return symc_emulator_machine.block; }
SYMC_UNWATCHED static __attribute__((noinline, const)) uint3 symc_threads() { return symc_emulator_machine.threads; }
SYMC_UNWATCHED static __attribute__((noinline, const)) uint3 symc_blocks() { return symc_emulator_machine.blocks; }
SYMC_UNWATCHED static __attribute__((noinline, const)) char* symc_shared() { return symc_emulator_machine.shared; }
#undef SYMC_SHARED
#define SYMC_SHARED(T, name) T* const name = reinterpret_cast<T*>(symc_shared())
#define threadIdx (symc_thread())
#define blockIdx (symc_block())
#define blockDim (symc_threads())
#define gridDim (symc_blocks())
#else
#define threadIdx (symc_emulator_machine.thread)
#define blockIdx (symc_emulator_machine.block)
#define blockDim (symc_emulator_machine.threads)
#define gridDim (symc_emulator_machine.blocks)
#endif

#define SYMC_VECTORS(T, name, bytes)                                                          \
    struct __align__(bytes * 2) name##2 { T x, y; };                                          \
    struct name##3 { T x, y, z; };                                                            \
    struct __align__(bytes * 4 < 16 ? bytes * 4 : 16) name##4 { T x, y, z, w; };              \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                         \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                 \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

SYMC_VECTORS(float, float, 4)
SYMC_VECTORS(double, double, 8)
SYMC_VECTORS(int, int, 4)
SYMC_VECTORS(signed char, char, 1)
SYMC_VECTORS(unsigned char, uchar, 1)
SYMC_VECTORS(short, short, 2)
SYMC_VECTORS(unsigned short, ushort, 2)
SYMC_VECTORS(long long, longlong, 8)
SYMC_VECTORS(unsigned long long, ulonglong, 8)
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#include "math.h"
#include "memory.h"
#include "together.h"
#include "entries.h"
#ifdef SYMC_CHECKED
#include "hooks.h"
#endif
