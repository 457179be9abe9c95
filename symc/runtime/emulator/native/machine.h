// What the text of a kernel and the runtime of the emulator have in common. Both include it; the hash of this folder
// is part of every key, so the two never differ.
#pragma once

namespace symc_emulator {

struct Index {
    unsigned x, y, z;
};

// What the threads of a warp do together.
enum Exchange : int { FROM_LANE, FROM_BELOW, FROM_ABOVE, FROM_XOR, BALLOT, SAME, MEET, SUM, LEAST, MOST, AND, OR, XOR };

// How memory is touched; the bits add up.
enum Touch : int { WRITES = 1, ATOMIC = 2, CONSTANT = 4, UNALIGNED = 8 };

struct Machine;

// What the threads of a kernel call. They run one at a time, so nothing here is locked.
struct Calls {
    // Each access of a checked kernel, before it happens.
    void (*touch)(const void* address, long size, int how, const void* code);
    // __syncthreads; answers how many threads were given a predicate that holds.
    int (*barrier)(int predicate, int line);
    // An operation of the lanes of `mask`; lane and width as the shuffles have them.
    unsigned long long (*exchange)(int kind, unsigned mask, unsigned long long value, int bytes, int lane, int width,
                                   int line);
    void (*fence)();
    // Undefined behaviour that the compiler found; `text` has a line of the source.
    void (*undefined)(const char* text, int line);
    void (*trap)(int line);
};

// One in every library of kernels. The runtime sets it before a launch, and `thread` before a thread goes on.
struct Machine {
    Index thread, block, threads, blocks;
    char* shared;  // dynamic shared memory of the block
    Calls calls;
};

}  // namespace symc_emulator
