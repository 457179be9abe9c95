// Whether one access happens before another, whatever order a device runs threads in.
//
// Threads of a block are ordered by barriers; lanes of a warp by __syncwarp (shuffles move values, and order nothing in
// memory). Blocks are ordered by nothing but this: the writer's fence and then an atomic operation on a flag, and an
// atomic operation of the reader's on the same flag afterwards; barriers carry both to the other threads of the block.
#pragma once
#include "state.h"

namespace symc_emulator {

inline void fence() {
    if (!S.launch->checked) return;
    u64 now = ++S.clock;
    S.told[S.block].fences.push_back({u32(S.current), now, S.epoch});
    S.last_fence[S.current] = now, S.last_fence_epoch[S.current] = S.epoch;
    S.fenced = true;
}

inline void atomic_happens(uintptr_t address) {
    if (S.released.count(address)) {
        bool known = false;
        for (const Acquire& a : S.acquired) known = known || (a.address == address && int(a.thread) == S.current);
        if (!known) S.acquired.push_back({address, u32(S.current), S.clock});
    }
    if (!S.fenced) return;
    Release r = {address, u32(S.current), S.last_fence[S.current], S.last_fence_epoch[S.current], S.epoch};
    std::vector<Release>& all = S.told[S.block].releases;
    for (const Release& a : all)
        if (a.address == address && a.thread == r.thread && a.fence == r.fence && a.epoch == r.epoch) return;
    all.push_back(r);
    S.released.insert(address);
}

inline bool has_acquired(uintptr_t address) {
    for (const Acquire& a : S.acquired)
        if (a.address == address && (int(a.thread) == S.current || a.when < S.epoch)) return true;
    return false;
}

// Whether what another block did is seen by the thread that runs.
inline bool told(const Record& a, uintptr_t address) {
    if (a.atomic && has_acquired(address)) return true;
    auto found = S.told.find(a.block);
    if (found == S.told.end()) return false;
    for (const Release& r : found->second.releases) {
        if (!has_acquired(r.address)) continue;
        if ((a.thread == r.thread && a.when < r.fence) || a.when < r.fence_epoch) return true;
        for (const Fence& f : found->second.fences)
            if (f.thread == a.thread && a.when < f.when && f.when < r.epoch) return true;
    }
    return false;
}

inline bool happens_before(const Record& a, uintptr_t address, bool shared) {
    if (a.when < S.launched) return true;
    if (a.block == S.block) {
        int other = a.thread;
        if (other == S.current || a.when < S.epoch) return true;
        return other / 32 == S.current / 32 && a.when < S.known[S.current / 32][S.current % 32][other % 32];
    }
    return shared || told(a, address);
}

inline void meet_lanes(int warp, unsigned mask) {
    u64 now = ++S.clock, all[32] = {};
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) {
            for (int j = 0; j < 32; j++)
                if (S.known[warp][i][j] > all[j]) all[j] = S.known[warp][i][j];
        }
    for (int j = 0; j < 32; j++)
        if (mask >> j & 1) all[j] = now;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) memcpy(S.known[warp][i], all, sizeof all);
}

}  // namespace symc_emulator
