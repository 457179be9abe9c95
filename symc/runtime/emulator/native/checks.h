// Each access of a checked kernel: bounds, alignment, declared memory, values that nobody wrote, and races.
#pragma once
#include "order.h"
#include "traffic.h"

namespace symc_emulator {

inline u32 place(const void* code) { return u32(static_cast<const char*>(code) - S.launch->library[0]); }

[[noreturn]] inline void fail_race(const Record& a, int how, bool wrote, bool shared, const void* code) {
    const char* hint = a.block != S.block ? "other blocks see it only after __threadfence and an atomic operation"
                       : int(a.thread) / 32 == S.current / 32 && shared ? "no __syncwarp or __syncthreads is between them"
                                                                         : "no __syncthreads is between them";
    fail("RACE", code, 0, a.code, 0, "%s %s memory that thread %d of block %u %s: %s", how & WRITES ? "writes" : "reads",
         shared ? "shared" : "global", int(a.thread), a.block, wrote ? "has written" : "has read", hint);
}

inline void check_cell(Cell* c, int how, bool shared, uintptr_t address, const void* code) {
    bool atomic = how & ATOMIC, writes = how & WRITES;
    if (!(atomic && c->write.atomic) && !happens_before(c->write, address, shared))
        fail_race(c->write, how, true, shared, code);
    Record now = {S.clock, u64(S.current), atomic, S.block, place(code)};
    if (!writes) {
        Record& last = c->read;
        if (last.block != S.block)
            c->stranger = last, c->sibling = Record();
        else if (int(last.thread) != S.current)
            c->sibling = last;
        last = now;
        return;
    }
    for (Record* r : {&c->read, &c->sibling, &c->stranger}) {
        if (!happens_before(*r, address, shared)) fail_race(*r, how, false, shared, code);
        *r = Record();
    }
    c->write = now;
}

inline void check_races(Region* region, uintptr_t a, long size, int how, bool shared, const void* code) {
    uintptr_t end = a + size;
    Chunk* c = region->chunk(a);
    while (a < end) {
        int at = int((a - region->base) % CHUNK), word = at / 4;
        if (at == 0) c = region->chunk(a);
        bool whole = at % 4 == 0 && end - a >= 4;
        if (how & CONSTANT)
            c->constant[word] = u8(S.launched % 255 + 1);
        else if ((how & WRITES) && c->constant[word] == u8(S.launched % 255 + 1))
            fail("RACE", code, 0, 0, 0, "writes memory that this launch reads by __ldg");
        if (whole && !c->split[word]) {
            check_cell(word_cell(c, at), how, shared, a, code);
            a += 4;
            continue;
        }
        if (!c->split[word]) {
            c->split[word] = 1;
            Cell old = *word_cell(c, at);
            for (int i = 0; i < 4; i++) *byte_cell(c, word * 4 + i) = old;
        }
        check_cell(byte_cell(c, at), how, shared, a, code);
        a++;
    }
}

inline void check_state(Region* region, uintptr_t a, long size, int how, bool shared, const void* code) {
    uintptr_t at = (a - region->base) % CHUNK;
    if (at + size <= CHUNK) {
        const u8* states = region->chunk(a)->state + at;
        long i = 0;
        while (i < size && states[i] == WRITTEN) i++;
        if (i == size) return;
    }
    for (long i = 0; i < size; i++) {
        Byte s = region->state(a + i);
        if (s == WRITTEN) continue;
        if (s == FREED) fail("FREED", code, 0, 0, 0, "touches memory that was given back");
        if (s == NOWHERE)
            fail("BOUNDS", code, 0, 0, 0, "%s %ld bytes %s", how & WRITES ? "writes" : "reads", size,
                 shared ? "outside of shared memory" : "outside of what is allocated");
        if (!(how & WRITES) || (how & ATOMIC))
            fail("UNWRITTEN", code, 0, 0, 0, "reads %s memory that nobody has written", shared ? "shared" : "global");
    }
    if ((how & WRITES)) region->mark(a, size, WRITTEN);
}

inline void check_spans(uintptr_t a, long size, int how, const void* code) {
    Launch* l = S.launch;
    if (!l->span_count) return;
    for (u64 k = 0; k < l->span_count; k++) {
        Span& s = l->spans[(S.last_span + k) % l->span_count];
        if (a < s.start || a + size > s.start + s.bytes || ((how & WRITES) && !s.writes)) continue;
        S.last_span = unsigned(&s - l->spans);
        if (l->traffic) (how & WRITES ? s.bytes_written : s.bytes_read) += u64(size);
        return;
    }
    for (u64 k = 0; k < l->span_count; k++) {
        Span& s = l->spans[k];
        if (a < s.start + s.bytes && a + size > s.start)
            fail("BOUNDS", code, 0, 0, 0, "%s %ld bytes that are only partly declared: at byte %ld of %lu, %s",
                 how & WRITES ? "writes" : "reads", size, long(a - s.start), (unsigned long)s.bytes,
                 s.writes ? "which may be written" : "which may only be read");
    }
    fail("BOUNDS", code, 0, 0, 0, "%s %ld bytes outside of the memory that the launch declares",
         how & WRITES ? "writes" : "reads", size);
}

inline void touch(const void* p, long size, int how, const void* code) {
    if (!S.launch || !S.launch->checked || S.current < 0 || size <= 0) return;
    uintptr_t a = reinterpret_cast<uintptr_t>(p);
    if (a - S.stack < uintptr_t(STACK)) return;
    Launch* l = S.launch;
    Region* region = l->region;
    bool shared = false;
    if (!region->has(a)) {
        shared = true;
        if (S.fixed.has(a))
            region = &S.fixed;
        else if (S.dynamic.has(a))
            region = &S.dynamic;
        else {
            if (!(how & WRITES) && a - uintptr_t(l->library[0]) < uintptr_t(l->library[1] - l->library[0])) return;
            fail("BOUNDS", code, 0, 0, 0, "%s %ld bytes at an address that is no memory of the device",
                 how & WRITES ? "writes" : "reads", size);
        }
    }
    if (!(how & UNALIGNED) && a % uintptr_t(size))
        fail("ALIGNMENT", code, 0, 0, 0, "%s %ld bytes at an address that is a multiple of %d only",
             how & WRITES ? "writes" : "reads", size, int(a & -a));
    if (!region->has(a + size - 1)) fail("BOUNDS", code, 0, 0, 0, "touches bytes past the end of memory");
    check_state(region, a, size, how, shared, code);
    if (!shared) check_spans(a, size, how, code);
    if (l->traffic) count_access(a, size, how, shared, place(code));
    if (!shared && (how & ATOMIC)) atomic_happens(a);
    check_races(region, a, size, how, shared, code);
}

}  // namespace symc_emulator
