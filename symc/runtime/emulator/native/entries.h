// How the runtime calls a kernel: with the addresses of its arguments, as cuLaunchKernel has them.
#pragma once

template <unsigned... i>
struct symc_places {};

template <class F>
struct symc_entry;

template <class... A>
struct symc_entry<void (*)(A...)> {
    template <unsigned... i>
    SYMC_UNWATCHED static inline void spread(void (*f)(A...), void** arguments, symc_places<i...>) {
        f(*static_cast<A*>(arguments[i])...);
    }
    SYMC_UNWATCHED static inline void call(void (*f)(A...), void** arguments) {
        spread(f, arguments, symc_places<__integer_pack(sizeof...(A))...>());
    }
    static const int* widths() {
        static const int all[] = {int(sizeof...(A)), int(sizeof(A))..., 0};
        return all;
    }
};

#define SYMC_ENTRY(name)                                                                                \
    extern "C" SYMC_UNWATCHED __attribute__((visibility("default"))) void name##__run(void** arguments) { \
        symc_entry<decltype(&name)>::call(&name, arguments);                                            \
    }                                                                                                   \
    extern "C" __attribute__((visibility("default"))) const int* name##__widths() {                     \
        return symc_entry<decltype(&name)>::widths();                                                   \
    }

// Where the library lies: all of it, and its shared memory.
extern "C" {
extern SYMC_HIDDEN char __ehdr_start, __bss_start, _end;
SYMC_UNWATCHED __attribute__((visibility("default"))) void symc_emulator_range(char** r) {
    r[0] = &__ehdr_start, r[1] = &_end, r[2] = &__bss_start, r[3] = &_end;
}
SYMC_UNWATCHED __attribute__((visibility("default"))) symc_emulator::Machine* symc_emulator_machine_of() {
    return &symc_emulator_machine;
}
}
