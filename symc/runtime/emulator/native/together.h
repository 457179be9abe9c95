// What threads of a block or of a warp do together. Each call knows the line of the text that it is on.
#pragma once

#define SYMC_LINE int line = __builtin_LINE()

SYMC_UNWATCHED static inline void __syncthreads(SYMC_LINE) { symc_emulator_machine.calls.barrier(0, line); }
SYMC_UNWATCHED static inline int __syncthreads_count(int p, SYMC_LINE) {
    return symc_emulator_machine.calls.barrier(p != 0, line);
}
SYMC_UNWATCHED static inline int __syncthreads_or(int p, SYMC_LINE) {
    return symc_emulator_machine.calls.barrier(p != 0, line) != 0;
}
SYMC_UNWATCHED static inline int __syncthreads_and(int p, SYMC_LINE) {
    return symc_emulator_machine.calls.barrier(p == 0, line) == 0;
}

SYMC_UNWATCHED static inline unsigned long long symc_exchange(int kind, unsigned mask, unsigned long long value,
                                                              int bytes, int lane, int width, int line) {
    return symc_emulator_machine.calls.exchange(kind, mask, value, bytes, lane, width, line);
}

SYMC_UNWATCHED static inline void __syncwarp(unsigned mask = 0xffffffffu, SYMC_LINE) {
    symc_exchange(symc_emulator::MEET, mask, 0, 0, 0, 32, line);
}
SYMC_UNWATCHED static inline unsigned __ballot_sync(unsigned mask, int p, SYMC_LINE) {
    return (unsigned)symc_exchange(symc_emulator::BALLOT, mask, p != 0, 4, 0, 32, line);
}
SYMC_UNWATCHED static inline int __any_sync(unsigned mask, int p, SYMC_LINE) {
    return symc_exchange(symc_emulator::BALLOT, mask, p != 0, 4, 0, 32, line) != 0;
}
SYMC_UNWATCHED static inline int __all_sync(unsigned mask, int p, SYMC_LINE) {
    return symc_exchange(symc_emulator::BALLOT, mask, p == 0, 4, 0, 32, line) == 0;
}

// CUDA has the shuffles for these types only.
template <class A, class B> constexpr bool symc_same = false;
template <class A> constexpr bool symc_same<A, A> = true;
template <class T, class... A> constexpr bool symc_one_of = (symc_same<T, A> || ...);

template <class T>
SYMC_UNWATCHED static inline T symc_shuffle(int kind, unsigned mask, T value, int lane, int width, int line) {
    static_assert(symc_one_of<T, int, unsigned, long, unsigned long, long long, unsigned long long, float, double>,
                  "CUDA has no shuffle of this type");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = symc_exchange(kind, mask, bits, sizeof value, lane, width, line);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#define SYMC_SHUFFLE(name, kind)                                                                       \
    template <class T>                                                                                 \
    SYMC_UNWATCHED static inline T name(unsigned mask, T value, int lane, int width = 32, SYMC_LINE) { \
        return symc_shuffle(kind, mask, value, lane, width, line);                                     \
    }
SYMC_SHUFFLE(__shfl_sync, symc_emulator::FROM_LANE)
SYMC_SHUFFLE(__shfl_up_sync, symc_emulator::FROM_BELOW)
SYMC_SHUFFLE(__shfl_down_sync, symc_emulator::FROM_ABOVE)
SYMC_SHUFFLE(__shfl_xor_sync, symc_emulator::FROM_XOR)

template <class T>
SYMC_UNWATCHED static inline unsigned __match_any_sync(unsigned mask, T value, SYMC_LINE) {
    return (unsigned)symc_shuffle<unsigned long long>(symc_emulator::SAME, mask, (unsigned long long)value, 0, 32, line);
}

// Sign and kind of a reduction: bytes is -4 where numbers are signed.
#define SYMC_REDUCE(name, kind)                                                                        \
    SYMC_UNWATCHED static inline unsigned name(unsigned mask, unsigned value, SYMC_LINE) {             \
        return (unsigned)symc_exchange(kind, mask, value, 4, 0, 32, line);                             \
    }                                                                                                  \
    SYMC_UNWATCHED static inline int name(unsigned mask, int value, SYMC_LINE) {                       \
        return (int)symc_exchange(kind, mask, (unsigned)value, -4, 0, 32, line);                       \
    }
SYMC_REDUCE(__reduce_add_sync, symc_emulator::SUM)
SYMC_REDUCE(__reduce_min_sync, symc_emulator::LEAST)
SYMC_REDUCE(__reduce_max_sync, symc_emulator::MOST)
SYMC_REDUCE(__reduce_and_sync, symc_emulator::AND)
SYMC_REDUCE(__reduce_or_sync, symc_emulator::OR)
SYMC_REDUCE(__reduce_xor_sync, symc_emulator::XOR)
