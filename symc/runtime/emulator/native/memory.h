// Loads with a hint, fences and atomic operations.
#pragma once

#ifdef SYMC_CHECKED
#define SYMC_TOUCH(p, size, how) \
    symc_emulator_machine.calls.touch(p, size, how, __builtin_return_address(0))
#else
#define SYMC_TOUCH(p, size, how) ((void)0)
#endif

#define SYMC_LOAD(name)                     \
    template <class T>                      \
    static inline T name(const T* p) {      \
        return *p;                          \
    }
#define SYMC_STORE(name)                          \
    template <class T>                            \
    static inline void name(T* p, T value) {      \
        *p = value;                               \
    }
SYMC_LOAD(__ldcg) SYMC_LOAD(__ldca) SYMC_LOAD(__ldcs) SYMC_LOAD(__ldlu) SYMC_LOAD(__ldcv)
SYMC_STORE(__stcg) SYMC_STORE(__stwb) SYMC_STORE(__stcs) SYMC_STORE(__stwt)

// Read through the cache of constants: nobody may write there during the launch.
template <class T>
SYMC_UNWATCHED static __noinline__ T __ldg(const T* p) {
    SYMC_TOUCH(p, sizeof(T), symc_emulator::CONSTANT);
    return *p;
}

SYMC_UNWATCHED static inline void __threadfence() { symc_emulator_machine.calls.fence(); }
SYMC_UNWATCHED static inline void __threadfence_system() { symc_emulator_machine.calls.fence(); }
static inline void __threadfence_block() {}
SYMC_UNWATCHED static inline void __trap(int line = __builtin_LINE()) { symc_emulator_machine.calls.trap(line); }

#define SYMC_ATOMIC(name, T, result)                                                   \
    SYMC_UNWATCHED static __noinline__ T name(T* p, T v) {                             \
        SYMC_TOUCH(p, sizeof(T), symc_emulator::WRITES | symc_emulator::ATOMIC);       \
        T old = *p;                                                                    \
        *p = result;                                                                   \
        return old;                                                                    \
    }
#define SYMC_ATOMICS(T)                                             \
    SYMC_ATOMIC(atomicMin, T, v < old ? v : old)                    \
    SYMC_ATOMIC(atomicMax, T, old < v ? v : old)                    \
    SYMC_ATOMIC(atomicAnd, T, old & v)                              \
    SYMC_ATOMIC(atomicOr, T, old | v)                               \
    SYMC_ATOMIC(atomicXor, T, old ^ v)                              \
    SYMC_ATOMIC(atomicExch, T, v)                                   \
    SYMC_UNWATCHED static __noinline__ T atomicCAS(T* p, T expected, T v) {               \
        SYMC_TOUCH(p, sizeof(T), symc_emulator::WRITES | symc_emulator::ATOMIC);          \
        T old = *p;                                                                       \
        if (old == expected) *p = v;                                                      \
        return old;                                                                       \
    }
SYMC_ATOMICS(int)
SYMC_ATOMICS(unsigned)
SYMC_ATOMICS(unsigned long long)
SYMC_ATOMIC(atomicMin, long long, v < old ? v : old)
SYMC_ATOMIC(atomicMax, long long, old < v ? v : old)
SYMC_ATOMIC(atomicExch, float, v)
SYMC_ATOMIC(atomicAdd, int, int(unsigned(old) + unsigned(v)))
SYMC_ATOMIC(atomicAdd, unsigned, old + v)
SYMC_ATOMIC(atomicAdd, unsigned long long, old + v)
SYMC_ATOMIC(atomicAdd, float, old + v)
SYMC_ATOMIC(atomicAdd, double, old + v)
SYMC_ATOMIC(atomicSub, int, int(unsigned(old) - unsigned(v)))
SYMC_ATOMIC(atomicSub, unsigned, old - v)
SYMC_ATOMIC(atomicInc, unsigned, old >= v ? 0u : old + 1u)
SYMC_ATOMIC(atomicDec, unsigned, old == 0u || old > v ? v : old - 1u)
SYMC_UNWATCHED static __noinline__ unsigned short atomicCAS(unsigned short* p, unsigned short expected,
                                                            unsigned short v) {
    SYMC_TOUCH(p, 2, symc_emulator::WRITES | symc_emulator::ATOMIC);
    unsigned short old = *p;
    if (old == expected) *p = v;
    return old;
}
