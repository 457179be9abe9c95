// What g++ calls from code that it compiles with -fsanitize=thread and -fsanitize=undefined. The sanitizers' own
// libraries are not linked: these functions tell the runtime, which knows threads, blocks and barriers.
#pragma once

#define SYMC_HOOK extern "C" SYMC_HIDDEN SYMC_UNWATCHED __attribute__((noinline, used))
#define SYMC_TELL(p, size, how) symc_emulator_machine.calls.touch(p, size, how, __builtin_return_address(0))

#define SYMC_ACCESS(n)                                                                                     \
    SYMC_HOOK void __tsan_read##n(void* p) { SYMC_TELL(p, n, 0); }                                         \
    SYMC_HOOK void __tsan_write##n(void* p) { SYMC_TELL(p, n, symc_emulator::WRITES); }
#define SYMC_UNALIGNED(n)                                                                                  \
    SYMC_HOOK void __tsan_unaligned_read##n(void* p) { SYMC_TELL(p, n, symc_emulator::UNALIGNED); }        \
    SYMC_HOOK void __tsan_unaligned_write##n(void* p) {                                                    \
        SYMC_TELL(p, n, symc_emulator::WRITES | symc_emulator::UNALIGNED);                                 \
    }
SYMC_ACCESS(1) SYMC_ACCESS(2) SYMC_ACCESS(4) SYMC_ACCESS(8) SYMC_ACCESS(16)
SYMC_UNALIGNED(2) SYMC_UNALIGNED(4) SYMC_UNALIGNED(8) SYMC_UNALIGNED(16)
SYMC_HOOK void __tsan_read_range(void* p, long n) { SYMC_TELL(p, n, symc_emulator::UNALIGNED); }
SYMC_HOOK void __tsan_write_range(void* p, long n) {
    SYMC_TELL(p, n, symc_emulator::WRITES | symc_emulator::UNALIGNED);
}
SYMC_HOOK void __tsan_init() {}
SYMC_HOOK void __tsan_func_entry(void*) {}
SYMC_HOOK void __tsan_func_exit(void*) {}

// Where the text does what C++ leaves undefined: the first field of what these are given is a place in the text.
struct symc_place {
    const char* file;
    unsigned line, column;
};
#define SYMC_UNDEFINED(name, text, ...)                                         \
    SYMC_HOOK void __ubsan_handle_##name(void* at, ##__VA_ARGS__) {             \
        symc_emulator_machine.calls.undefined(text, int(static_cast<symc_place*>(at)->line)); \
    }
SYMC_UNDEFINED(add_overflow, "a sum of signed integers overflows", void*, void*)
SYMC_UNDEFINED(sub_overflow, "a difference of signed integers overflows", void*, void*)
SYMC_UNDEFINED(mul_overflow, "a product of signed integers overflows", void*, void*)
SYMC_UNDEFINED(negate_overflow, "the negative of a signed integer overflows", void*)
SYMC_UNDEFINED(divrem_overflow, "a division by zero, or of the smallest integer by -1", void*, void*)
SYMC_UNDEFINED(shift_out_of_bounds, "a shift by a negative number or by more than the width, or of a sign", void*, void*)
SYMC_UNDEFINED(out_of_bounds, "an index outside of an array", void*)
SYMC_UNDEFINED(builtin_unreachable, "a function ends without a result")
SYMC_UNDEFINED(missing_return, "a function ends without a result")
