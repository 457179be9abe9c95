// Stacks that take turns on one thread of the operating system: one for each thread of a block that waits.
#pragma once
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#if !defined(__x86_64__) || defined(SYMC_UCONTEXT)
#include <ucontext.h>
#endif

namespace symc_emulator {

const long STACK = 128 * 1024, GUARD = 4096, MOST_THREADS = 1024;

#if defined(__x86_64__) && !defined(SYMC_UCONTEXT)
typedef void* Context;

// Saves what a function call keeps, and goes on where another fibre did that.
extern "C" __attribute__((visibility("hidden"))) void symc_emulator_switch(void** from, void* to);
asm(R"(
.text
.hidden symc_emulator_switch
.globl symc_emulator_switch
.type symc_emulator_switch, @function
symc_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size symc_emulator_switch, .-symc_emulator_switch
)");

inline void prepare(Context& c, char* stack, void (*start)()) {
    void** top = reinterpret_cast<void**>(stack + STACK - 64);  // a multiple of 16: at `start` it is 8 less, as in a call
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(start);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    c = top;
}
inline void go(Context& from, Context& to) { symc_emulator_switch(&from, to); }
#else
typedef ucontext_t Context;

inline void prepare(Context& c, char* stack, void (*start)()) {
    getcontext(&c);
    c.uc_stack.ss_sp = stack;
    c.uc_stack.ss_size = STACK;
    c.uc_link = nullptr;
    makecontext(&c, start, 0);
}
inline void go(Context& from, Context& to) { swapcontext(&from, &to); }
#endif

struct Fibre {
    Context context;
    char* stack;
    int thread;  // of the block, which it runs
};

// Memory of all stacks, made at the first launch; what no kernel uses costs nothing.
inline char* new_stacks() {
    void* p = mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

}  // namespace symc_emulator
