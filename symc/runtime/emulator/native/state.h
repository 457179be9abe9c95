// What is being launched, and what went wrong. Structures that Python fills are mirrored in native.py.
#pragma once
#include <cstdint>
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fibres.h"
#include "machine.h"
#include "shadow.h"

namespace symc_emulator {

// Memory that a launch says it touches.
struct Span {
    u64 start, bytes;
    int reads, writes;
    u64 bytes_read, bytes_written;
};

// What memory was touched, counted while someone measures. Widths: of 1, 2, 4, 8, 16 bytes, and others.
struct Traffic {
    u64 loads[6], stores[6];
    u64 bytes_read, bytes_written, atomics;
    u64 sectors, sector_bytes;    // 32-byte sectors that instructions of warps asked for; distinct bytes they needed
    u64 shared_loads, shared_stores, bank_conflicts;
};

struct Failure {
    char kind[16];
    char text[480];
    u64 code, other_code;  // in the library; 0: not known
    int line, other_line;
    u32 block;
    int thread;
};

struct Launch {
    Machine* machine;
    void (*run)(void**);
    void** arguments;
    u32 grid[3], threads, shared_bytes, checked;
    u64 order;   // 0: as they are numbered, 1: backwards, else: a seed
    u64 sample;  // how many blocks run; 0: all
    Region* region;
    Span* spans;
    u64 span_count;
    char* library[4];
    Traffic* traffic;
    Failure* failure;
};

enum Stage : u8 { NEW, READY, AT_BARRIER, AT_EXCHANGE, DONE };

struct Thread {
    Stage stage;
    int fibre;
    int line, predicate;
    // what it brings to its warp
    int kind, bytes, lane, width;
    unsigned mask;
    u64 value, result;
};

struct Fence {
    u32 thread;
    u64 when, epoch;
};
// An atomic operation after a fence.
struct Release {
    uintptr_t address;
    u32 thread;
    u64 fence, fence_epoch, epoch;
};
struct Acquire {
    uintptr_t address;
    u32 thread;
    u64 when;
};
// What a block told the others.
struct Told {
    std::vector<Fence> fences;
    std::vector<Release> releases;
};

struct Group {
    std::vector<u64> places;  // address * 32 + bytes, of each lane
    bool shared;
};

struct State {
    Launch* launch;
    Thread threads[MOST_THREADS];
    Fibre fibres[MOST_THREADS];
    char* stacks;
    int fibres_made, free_fibres[MOST_THREADS], free_count;
    Context main;
    int current;        // thread that runs
    Fibre* fibre;       // and its fibre
    uintptr_t stack;    // where that is
    u32 block;          // number of the block
    int order[MOST_THREADS], next_new;
    int ready[MOST_THREADS], ready_head, ready_count;
    int live, waiting, counted;
    bool failed;

    Region fixed, dynamic;  // shared memory
    char* dynamic_bytes;

    u64 clock, launched, epoch;
    u64 known[MOST_THREADS / 32][32][32];
    u64 last_fence[MOST_THREADS], last_fence_epoch[MOST_THREADS];
    std::unordered_map<u32, Told> told;
    std::unordered_set<uintptr_t> released;
    std::vector<Acquire> acquired;
    bool fenced;
    unsigned last_span;

    std::unordered_map<u64, u32> occurrences;
    std::unordered_map<u64, Group> groups;
};

extern State S;

// Note what is wrong; `fail` also leaves the thread that runs, for good. `code`: where in the library, else `line`.
void note(const char* kind, const void* code, int line, u64 other_code, int other_line, const char* format, ...)
    __attribute__((format(printf, 6, 7)));
[[noreturn]] void fail(const char* kind, const void* code, int line, u64 other_code, int other_line,
                       const char* format, ...) __attribute__((format(printf, 6, 7)));

}  // namespace symc_emulator
