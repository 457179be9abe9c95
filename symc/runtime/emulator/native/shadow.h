// What is known of each byte of memory: whether it is allocated and written, and who touched it last in this launch.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

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

struct Region {
    uintptr_t base, size;
    Chunk** chunks;
    Chunk* all;

    bool has(uintptr_t a) const { return a - base < size; }
    Chunk* chunk(uintptr_t a) {
        Chunk*& c = chunks[(a - base) / CHUNK];
        if (!c) {
            c = static_cast<Chunk*>(calloc(1, sizeof(Chunk)));
            c->next = all, all = c;
        }
        return c;
    }
    Byte state(uintptr_t a) {
        Chunk* c = chunks[(a - base) / CHUNK];
        return c ? Byte(c->state[(a - base) % CHUNK]) : NOWHERE;
    }
    void mark(uintptr_t a, uintptr_t n, Byte state) {
        while (n) {
            uintptr_t at = (a - base) % CHUNK, part = CHUNK - at < n ? CHUNK - at : n;
            memset(chunk(a)->state + at, state, part);
            a += part, n -= part;
        }
    }
    // The first byte that is not written, or 0.
    uintptr_t unwritten(uintptr_t a, uintptr_t n) {
        for (; n; a++, n--)
            if (state(a) != WRITTEN) return a;
        return 0;
    }
    void make(uintptr_t at, uintptr_t n) {
        while (Chunk* c = all) {
            all = c->next;
            free(c->words), free(c->bytes);
            free(c);
        }
        if (chunks) munmap(chunks, table());
        base = at, size = n, chunks = nullptr;
        if (n) {
            void* p = mmap(nullptr, table(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            chunks = p == MAP_FAILED ? nullptr : static_cast<Chunk**>(p);
        }
    }
    uintptr_t table() const { return (size / CHUNK + 2) * sizeof(Chunk*); }
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
