// How much memory a launch moves, and in what pieces.
#pragma once
#include <algorithm>

#include "state.h"

namespace symc_emulator {

// Lanes of a warp that reach the same instruction the same number of times execute it together.
inline void count_access(uintptr_t a, long size, int how, bool shared, u32 code) {
    Traffic& t = *S.launch->traffic;
    bool writes = how & WRITES;
    if (shared) {
        (writes ? t.shared_stores : t.shared_loads)++;
    } else {
        int width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : size == 16 ? 4 : 5;
        if (how & UNALIGNED) width = 5;
        (writes ? t.stores : t.loads)[width]++;
        (writes ? t.bytes_written : t.bytes_read) += u64(size);
        if (how & ATOMIC) t.atomics++;
    }
    u64 site = u64(code) << 1 | u64(writes);
    u32 nth = S.occurrences[site << 10 | u64(S.current)]++;
    Group& g = S.groups[(site * 0x9e3779b97f4a7c15ull) ^ (u64(nth) << 5 | u64(S.current / 32))];
    g.shared = shared;
    g.places.push_back(u64(a) << 5 | u64(size > 31 ? 31 : size));
}

// Four-byte words in different rows of one bank are read one after another.
inline u64 bank_conflicts(const Group& g) {
    std::vector<u64> words;
    for (u64 p : g.places) words.push_back((p >> 5) / 4);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    u64 rows[32] = {}, most = 0;
    for (u64 w : words) most = std::max(most, ++rows[w % 32]);
    return most > 1 ? most - 1 : 0;
}

inline void end_block() {
    Traffic& t = *S.launch->traffic;
    for (auto& entry : S.groups) {
        Group& g = entry.second;
        if (g.shared) {
            if ((g.places[0] & 31) <= 4) t.bank_conflicts += bank_conflicts(g);
            continue;
        }
        std::sort(g.places.begin(), g.places.end());
        u64 seen = 0, last = ~0ull;
        for (u64 p : g.places) {
            u64 a = p >> 5, end = a + (p & 31);
            for (u64 s = a / 32; s <= (end - 1) / 32; s++)
                if (s != last) t.sectors++, last = s;
            u64 from = std::max(a, seen);
            if (end > from) t.sector_bytes += end - from, seen = end;
        }
    }
    S.groups.clear();
    S.occurrences.clear();
}

}  // namespace symc_emulator
