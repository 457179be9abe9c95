// What is known of each byte of memory: whether it is allocated and written, and who touched it last in this launch.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace symc_emulator {

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;

enum Byte : u8 { NOWHERE, FREED, UNWRITTEN, WRITTEN };

const int CHUNK = 4096;

// One access. Times count what orders threads (barriers, fences, launches): two accesses between the same such events
// have the same time.
struct Record {
    u64 when : 48, thread : 10, atomic : 1;
    u32 block;
    u32 code;  // where in the library
};

// Of one word, or of one byte of a word that is touched in parts: the last write, the last read, one read before that
// of another thread of its block, and one of another block.
struct Cell {
    Record write, read, sibling, stranger;
};

struct Chunk {
    u8 state[CHUNK];
    u8 split[CHUNK / 4];  // whether a word is kept byte by byte
    u8 constant[CHUNK / 4];
    Cell* words;
    Cell* bytes;
    Chunk* next;  // of the region
};

// Many chunks that were marked at once; ends fall on bounds of chunks.
struct Range {
    uintptr_t from, to;
    Byte state;
};

struct Region {
    uintptr_t base, size;
    Chunk** chunks;
    Chunk* all;
    std::vector<Range> ranges;  // of chunks that nobody has touched; a later one hides those before

    bool has(uintptr_t a) const { return a - base < size; }
    // What a chunk holds that nobody has touched.
    Byte untouched(uintptr_t a) const {
        for (size_t i = ranges.size(); i-- > 0;)
            if (ranges[i].from <= a && a < ranges[i].to) return ranges[i].state;
        return NOWHERE;
    }
    Chunk* chunk(uintptr_t a) {
        Chunk*& c = chunks[(a - base) / CHUNK];
        if (!c) {
            c = static_cast<Chunk*>(calloc(1, sizeof(Chunk)));
            memset(c->state, untouched(a), CHUNK);
            c->next = all, all = c;
        }
        return c;
    }
    Byte state(uintptr_t a) const {
        Chunk* c = chunks[(a - base) / CHUNK];
        return c ? Byte(c->state[(a - base) % CHUNK]) : untouched(a);
    }
    void mark(uintptr_t a, uintptr_t n, Byte state) {
        if (n >= MANY) {
            uintptr_t lo = a + (base - a) % CHUNK, hi = a + n - (a + n - base) % CHUNK;
            mark_chunks(lo, hi, state);
            mark(a, lo - a, state);
            n -= hi - a, a = hi;
        }
        while (n) {
            uintptr_t at = (a - base) % CHUNK, part = CHUNK - at < n ? CHUNK - at : n;
            memset(chunk(a)->state + at, state, part);
            a += part, n -= part;
        }
    }
    // How many bytes from here on are in the same state, at most to the end of the chunk.
    uintptr_t run(uintptr_t a, uintptr_t n) const {
        uintptr_t at = (a - base) % CHUNK, most = CHUNK - at < n ? CHUNK - at : n, i = 1;
        Chunk* c = chunks[(a - base) / CHUNK];
        if (!c) return most;
        while (i < most && c->state[at + i] == c->state[at]) i++;
        return i;
    }
    // The first byte that is not written, or 0.
    uintptr_t unwritten(uintptr_t a, uintptr_t n) const {
        while (n) {
            uintptr_t part = run(a, n);
            if (state(a) != WRITTEN) return a;
            a += part, n -= part;
        }
        return 0;
    }
    void make(uintptr_t at, uintptr_t n) {
        while (Chunk* c = all) {
            all = c->next;
            free(c->words), free(c->bytes);
            free(c);
        }
        ranges.clear();
        if (chunks) munmap(chunks, table());
        base = at, size = n, chunks = nullptr;
        if (n) {
            void* p = mmap(nullptr, table(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            chunks = p == MAP_FAILED ? nullptr : static_cast<Chunk**>(p);
        }
    }
    uintptr_t table() const { return (size / CHUNK + 2) * sizeof(Chunk*); }

   private:
    static const uintptr_t MANY = 1 << 22;

    void mark_chunks(uintptr_t lo, uintptr_t hi, Byte state) {
        for (uintptr_t i = (lo - base) / CHUNK; i < (hi - base) / CHUNK; i++)
            if (chunks[i]) memset(chunks[i]->state, state, CHUNK);
        size_t kept = 0;
        for (const Range& r : ranges)
            if (r.from < lo || r.to > hi) ranges[kept++] = r;
        ranges.resize(kept);
        ranges.push_back({lo, hi, state});
    }
};

// Words and bytes of a chunk, made when they are first touched.
inline Cell* word_cell(Chunk* c, int at) {
    if (!c->words) c->words = static_cast<Cell*>(calloc(CHUNK / 4, sizeof(Cell)));
    return c->words + at / 4;
}
inline Cell* byte_cell(Chunk* c, int at) {
    if (!c->bytes) c->bytes = static_cast<Cell*>(calloc(CHUNK, sizeof(Cell)));
    return c->bytes + at;
}

}  // namespace symc_emulator
