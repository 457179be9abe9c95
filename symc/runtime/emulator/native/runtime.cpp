// The runtime of the emulator: everything that is not the text of a kernel. Compiled once. Python's lock is held over
// every call, so state is global.
#include <cstdarg>
#include <cstdio>

#include "checks.h"
#include "schedule.h"

namespace symc_emulator {

State S;

static const uintptr_t DYNAMIC = 1 << 18;

static void vnote(const char* kind, const void* code, int line, u64 other_code, int other_line, const char* format,
                  va_list list) {
    Failure& f = *S.launch->failure;
    snprintf(f.kind, sizeof f.kind, "%s", kind);
    vsnprintf(f.text, sizeof f.text, format, list);
    f.code = code ? u64(place(code)) : 0, f.other_code = other_code;
    f.line = line, f.other_line = other_line, f.block = S.block, f.thread = S.current;
    S.failed = true;
}

void note(const char* kind, const void* code, int line, u64 other_code, int other_line, const char* format, ...) {
    va_list list;
    va_start(list, format);
    vnote(kind, code, line, other_code, other_line, format, list);
    va_end(list);
}

void fail(const char* kind, const void* code, int line, u64 other_code, int other_line, const char* format, ...) {
    va_list list;
    va_start(list, format);
    vnote(kind, code, line, other_code, other_line, format, list);
    va_end(list);
    Context gone;
    go(gone, S.main);
    abort();
}

static void undefined(const char* text, int line) { fail("UNDEFINED", nullptr, line, 0, 0, "%s", text); }
static void trap(int line) { fail("TRAP", nullptr, line, 0, 0, "the kernel gives up"); }

static bool make_memory() {
    if (S.stacks) return true;
    S.stacks = new_stacks();
    void* p = mmap(nullptr, DYNAMIC, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!S.stacks || p == MAP_FAILED) return false;
    S.dynamic_bytes = static_cast<char*>(p);
    S.dynamic.make(reinterpret_cast<uintptr_t>(p), DYNAMIC);
    for (int i = 0; i < MOST_THREADS; i++) mprotect(S.stacks + STACK * i, GUARD, PROT_NONE);
    return true;
}

// Nothing is known of what lies in shared memory when a block starts; a number that nobody wrote is a nan.
static void forget_shared(const Launch& l) {
    uintptr_t from = uintptr_t(l.library[2]), bytes = uintptr_t(l.library[3]) - from;
    memset(l.library[2], 0xff, bytes);
    memset(S.dynamic_bytes, 0xff, l.shared_bytes);
    S.fixed.mark(from, bytes, UNWRITTEN);
    S.dynamic.mark(S.dynamic.base, l.shared_bytes, UNWRITTEN);
}

static void forget_results(const Launch& l) {
    for (u64 i = 0; i < l.span_count; i++) {
        const Span& s = l.spans[i];
        bool read = s.reads;
        for (u64 j = 0; j < l.span_count; j++)
            read = read || (l.spans[j].reads && l.spans[j].start < s.start + s.bytes &&
                            s.start < l.spans[j].start + l.spans[j].bytes);
        if (!read) l.region->mark(s.start, s.bytes, UNWRITTEN);
    }
}

static void begin(Launch* l) {
    S.launch = l;
    S.launched = ++S.clock;
    S.told.clear(), S.released.clear();
    S.last_span = 0;
    Machine& m = *l->machine;
    m.threads = {l->threads, 1, 1};
    m.blocks = {l->grid[0], l->grid[1], l->grid[2]};
    m.shared = S.dynamic_bytes;
    m.calls = {touch, barrier, exchange, fence, undefined, trap};
    if (!l->checked) return;
    uintptr_t from = uintptr_t(l->library[2]) & ~63ull, size = uintptr_t(l->library[3]) - from;
    if (S.fixed.base != from || S.fixed.size != size) S.fixed.make(from, size);
    S.dynamic.mark(S.dynamic.base, DYNAMIC, NOWHERE);
    forget_results(*l);
}

// The blocks that run; none named: all, as they are numbered. Of a sample the first and the last are.
static std::vector<u32> order_blocks(const Launch& l, u64 count) {
    std::vector<u32> all;
    if (l.sample && l.sample < count) {
        for (u64 i = 0; i < l.sample; i++) all.push_back(u32(i * (count - 1) / std::max<u64>(1, l.sample - 1)));
        return all;
    }
    if (l.order < 2 || count > 65536) return all;
    for (u64 i = 0; i < count; i++) all.push_back(u32(i));
    u64 x = l.order * 0x9e3779b97f4a7c15ull;
    for (u64 i = count - 1; i > 0; i--) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(all[i], all[(x >> 33) % (i + 1)]);
    }
    return all;
}

}  // namespace symc_emulator

using namespace symc_emulator;

#pragma GCC visibility push(default)
extern "C" {

// Address space for the memory of a device; 0 where there is none.
u64 symc_reserve(u64 bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? 0 : reinterpret_cast<u64>(p);
}
void symc_unreserve(u64 at, u64 bytes) { munmap(reinterpret_cast<void*>(at), bytes); }
// Gives pages to the system until they are touched again.
void symc_empty(u64 at, u64 bytes) {
    u64 from = (at + 4095) & ~4095ull, to = (at + bytes) & ~4095ull;
    if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

Region* symc_region_new(u64 base, u64 size) {
    Region* r = new Region();
    r->make(base, size);
    return r;
}
void symc_region_delete(Region* r) {
    r->make(0, 0);
    delete r;
}
void symc_region_mark(Region* r, u64 a, u64 n, int state) { r->mark(a, n, Byte(state)); }
u64 symc_region_unwritten(Region* r, u64 a, u64 n) { return r->unwritten(a, n); }
void symc_region_copy(Region* r, u64 to, u64 from, u64 n) {
    while (n) {
        u64 part = r->run(from, n);
        r->mark(to, part, r->state(from));
        from += part, to += part, n -= part;
    }
}

// Runs a kernel; 0 where nothing was wrong.
int symc_launch(Launch* l) {
    if (!make_memory()) {
        snprintf(l->failure->kind, sizeof l->failure->kind, "MEMORY");
        snprintf(l->failure->text, sizeof l->failure->text, "no memory for the stacks of threads");
        return 1;
    }
    begin(l);
    u64 count = u64(l->grid[0]) * l->grid[1] * l->grid[2];
    std::vector<u32> numbers = order_blocks(*l, count);
    u64 runs = numbers.empty() ? count : numbers.size();
    bool good = true;
    for (u64 i = 0; i < runs && good; i++) {
        u64 at = l->order == 1 ? runs - 1 - i : i, b = numbers.empty() ? at : numbers[at];
        S.block = u32(b);
        l->machine->block = {u32(b % l->grid[0]), u32(b / l->grid[0] % l->grid[1]), u32(b / l->grid[0] / l->grid[1])};
        S.epoch = ++S.clock;
        S.acquired.clear();
        S.fenced = false;
        if (l->checked) {
            memset(S.last_fence, 0, sizeof S.last_fence), memset(S.last_fence_epoch, 0, sizeof S.last_fence_epoch);
            forget_shared(*l);
        }
        if (i == 0 || l->order > 1) order_threads(b);
        good = run_block();
        if (l->traffic) end_block();
    }
    S.launch = nullptr;
    return !good;
}
}
#pragma GCC visibility pop
