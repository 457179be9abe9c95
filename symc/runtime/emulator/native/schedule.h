// Runs the threads of one block: each until it waits for others or returns. A thread that never waits needs no fibre of
// its own; the next one starts where it has ended.
#pragma once
#include "order.h"

namespace symc_emulator {

inline void set_current(int fibre) {
    S.fibre = &S.fibres[fibre];
    S.current = S.fibre->thread;
    S.stack = reinterpret_cast<uintptr_t>(S.fibre->stack);
    S.launch->machine->thread.x = unsigned(S.current);
}

void body();

inline int fresh_fibre(int thread) {
    int f;
    if (S.free_count)
        f = S.free_fibres[--S.free_count];
    else {
        f = S.fibres_made++;
        S.fibres[f].stack = S.stacks + STACK * f;
    }
    prepare(S.fibres[f].context, S.fibres[f].stack, body);
    S.fibres[f].thread = thread;
    S.threads[thread].fibre = f;
    return f;
}

inline void make_ready(int thread) {
    S.threads[thread].stage = READY;
    S.ready[(S.ready_head + S.ready_count++) % MOST_THREADS] = thread;
}

// The fibre that goes on next; -1: none can.
inline int next_fibre() {
    if (S.ready_count) {
        int t = S.ready[S.ready_head];
        S.ready_head = (S.ready_head + 1) % MOST_THREADS, S.ready_count--;
        return S.threads[t].fibre;
    }
    if (S.next_new < int(S.launch->threads)) return fresh_fibre(S.order[S.next_new++]);
    return -1;
}

// Let others go on; comes back when this thread is made ready.
inline void wait() {
    Context& from = S.fibre->context;
    int f = next_fibre();
    if (f < 0) {
        go(from, S.main);
    } else {
        set_current(f);
        go(from, S.fibre->context);
    }
}

inline void thread_ends() {
    int t = S.current, warp = t / 32 * 32;
    S.threads[t].stage = DONE;
    S.live--;
    for (int i = warp; i < warp + 32 && i < int(S.launch->threads); i++)
        if (S.threads[i].stage == AT_EXCHANGE && (S.threads[i].mask >> t % 32 & 1))
            fail("WARP", nullptr, S.threads[i].line, 0, 0,
                 "an operation of the warp waits for lane %d, which has returned", t % 32);
}

inline void body() {
    for (;;) {
        S.launch->run(S.launch->arguments);
        thread_ends();
        if (!S.ready_count && S.next_new < int(S.launch->threads)) {
            int t = S.order[S.next_new++];
            S.fibre->thread = t;
            S.threads[t].fibre = int(S.fibre - S.fibres);
            set_current(int(S.fibre - S.fibres));
            continue;
        }
        S.free_fibres[S.free_count++] = int(S.fibre - S.fibres);
        Context gone;
        int f = next_fibre();
        if (f < 0) go(gone, S.main);
        set_current(f);
        go(gone, S.fibre->context);
    }
}

inline int barrier(int predicate, int line) {
    Thread& me = S.threads[S.current];
    me.line = line, me.predicate = predicate, me.stage = AT_BARRIER;
    if (++S.waiting < int(S.launch->threads)) {
        wait();
        return S.counted;
    }
    S.counted = 0;
    for (int t = 0; t < int(S.launch->threads); t++) {
        if (S.threads[t].line != line)
            fail("BARRIER", nullptr, line, 0, S.threads[t].line, "threads of one block wait at different barriers");
        S.counted += S.threads[t].predicate;
    }
    S.waiting = 0;
    S.epoch = ++S.clock;
    for (int i = 0; i < int(S.launch->threads); i++)
        if (S.order[i] != S.current) make_ready(S.order[i]);
    me.stage = READY;
    return S.counted;
}

// --- operations of warps ---------------------------------------------------------------------------------------------

inline int source_lane(const Thread& me, int lane) {
    int width = me.width, first = lane & ~(width - 1), last = first + width - 1, from = lane;
    if (me.kind == FROM_LANE) return first | (me.lane & (width - 1));
    if (me.kind == FROM_BELOW) from = lane - me.lane;
    if (me.kind == FROM_ABOVE) from = lane + me.lane;
    if (me.kind == FROM_XOR) from = lane ^ me.lane;
    bool inside = me.kind == FROM_BELOW ? from >= first : from <= last;
    return inside && from >= 0 ? from : lane;
}

inline u64 combine(int kind, bool is_signed, u64 a, u64 b) {
    switch (kind) {
        case SUM: return u32(a + b);
        case AND: return a & b;
        case OR: return a | b;
        case XOR: return a ^ b;
        case LEAST: return is_signed ? (int(a) < int(b) ? a : b) : (a < b ? a : b);
        default: return is_signed ? (int(a) > int(b) ? a : b) : (a > b ? a : b);
    }
}

inline void perform(int warp, unsigned mask) {
    Thread* t = S.threads + warp * 32;
    int first = __builtin_ctz(mask), kind = t[first].kind;
    u64 all = 0;
    if (kind == MEET) meet_lanes(warp, mask);
    if (kind == BALLOT)
        for (int i = 0; i < 32; i++) all |= (mask >> i & 1) && t[i].value ? 1ull << i : 0;
    if (kind >= SUM) {
        all = t[first].value;
        for (int i = first + 1; i < 32; i++)
            if (mask >> i & 1) all = combine(kind, t[first].bytes < 0, all, t[i].value);
    }
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1)) continue;
        t[i].result = all;
        if (kind <= FROM_XOR) {
            int from = source_lane(t[i], i);
            if (!(mask >> from & 1))
                fail("WARP", nullptr, t[i].line, 0, 0, "lane %d takes a value from lane %d, which is not in mask %#x", i,
                     from, mask);
            t[i].result = t[from].value;
        }
        if (kind == SAME)
            for (int j = 0; j < 32; j++)
                if ((mask >> j & 1) && t[j].value == t[i].value) t[i].result |= 1ull << j;
    }
}

inline unsigned long long exchange(int kind, unsigned mask, unsigned long long value, int bytes, int lane, int width,
                                   int line) {
    int warp = S.current / 32, own = S.current % 32;
    Thread* t = S.threads + warp * 32;
    Thread& me = t[own];
    me.kind = kind, me.mask = mask, me.value = value, me.bytes = bytes, me.lane = lane, me.width = width, me.line = line;
    if (!(mask >> own & 1)) fail("WARP", nullptr, line, 0, 0, "lane %d is not in its own mask %#x", own, mask);
    if (width < 1 || width > 32 || (width & (width - 1)))
        fail("WARP", nullptr, line, 0, 0, "the width %d is no power of 2 up to 32", width);
    bool complete = true;
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1) || i == own) continue;
        if (warp * 32 + i >= int(S.launch->threads) || t[i].stage == DONE)
            fail("WARP", nullptr, line, 0, 0, "mask %#x names lane %d, which %s", mask, i,
                 warp * 32 + i >= int(S.launch->threads) ? "the block does not have" : "has returned");
        if (t[i].stage != AT_EXCHANGE || t[i].mask != mask) {
            complete = false;
        } else if (t[i].line != line || t[i].kind != kind) {
            fail("WARP", nullptr, line, 0, t[i].line, "lanes %d and %d of one mask are at different operations", own, i);
        }
    }
    if (!complete) {
        me.stage = AT_EXCHANGE;
        wait();
        return me.result;
    }
    perform(warp, mask);
    for (int i = 0; i < 32; i++)
        if ((mask >> i & 1) && i != own) make_ready(warp * 32 + i);
    return me.result;
}

// --- a block ---------------------------------------------------------------------------------------------------------

inline void report_stuck() {
    int n = int(S.launch->threads), waits = -1, other = -1;
    for (int t = 0; t < n; t++)
        if (S.threads[t].stage == AT_EXCHANGE || (S.threads[t].stage == AT_BARRIER && waits < 0)) waits = t;
    for (int t = 0; t < n; t++)
        if (t != waits && (S.threads[t].stage != S.threads[waits].stage || S.threads[t].line != S.threads[waits].line))
            other = t;
    S.current = waits;
    bool at_barrier = S.threads[waits].stage == AT_BARRIER;
    if (other >= 0 && S.threads[other].stage == DONE)
        return note(at_barrier ? "BARRIER" : "WARP", nullptr, S.threads[waits].line, 0, 0,
             "waits for threads that do not come: thread %d has returned", other);
    note(at_barrier ? "BARRIER" : "WARP", nullptr, S.threads[waits].line, 0, other < 0 ? 0 : S.threads[other].line,
         "waits for threads that do not come: thread %d waits elsewhere", other);
}

inline void order_threads(u64 block) {
    int n = int(S.launch->threads);
    for (int i = 0; i < n; i++) S.order[i] = S.launch->order == 1 ? n - 1 - i : i;
    if (S.launch->order < 2) return;
    u64 x = S.launch->order * 0x9e3779b97f4a7c15ull + block;
    for (int i = n - 1; i > 0; i--) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(S.order[i], S.order[(x >> 33) % u64(i + 1)]);
    }
}

// Runs one block; whether nothing was wrong.
inline bool run_block() {
    int n = int(S.launch->threads);
    for (int t = 0; t < n; t++) S.threads[t].stage = NEW;
    S.live = n, S.waiting = 0, S.next_new = 0, S.ready_count = 0, S.failed = false;
    S.fibres_made = 0, S.free_count = 0;
    set_current(next_fibre());
    go(S.main, S.fibre->context);
    if (!S.failed && S.live) {
        report_stuck();
    }
    S.current = -1;
    return !S.failed;
}

}  // namespace symc_emulator
