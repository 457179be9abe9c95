"""LLVM as ``llvmlite.binding`` gives it: this processor, for which code is made, and the linker that loads it.

Importing llvmlite takes 35 ms, so it is left to the moment when there is machine code to be made.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from symc.errors import ExecutionError
from symc.ir.garbage import no_collections
from symc.ir.locks import lost, new_lock
from symc.ir.phases import phase
from symc.runtime.compilers.image import for_good
from symc.runtime.compilers.uninterrupted import uninterrupted

#: Whether LLVM's newer linker serves: it puts a file in one piece of memory, where code reaches what it calls.
JITLINK = os.name != "nt"

#: Held while LLVM works: a fork waits for it. llvmlite has a lock of its own, which nobody gives back in a child.
lock = new_lock()

_numbers = itertools.count()


def llvm() -> Any:
    """``llvmlite.binding``, ready for this processor."""
    if lock in lost:
        raise ExecutionError("another thread was compiling when this process was forked, and LLVM cannot be used here",
                             help="fork when nothing is compiled, or start processes with multiprocessing's 'spawn'")
    return _llvmlite()


@functools.cache
@phase("import llvmlite")
def _llvmlite() -> Any:
    with no_collections(lasting=True):
        from llvmlite import binding
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


#: Loads of several places at once are not made on AMD's processors with AVX-512: to take them one by one is as fast
#: where nothing waits for them and four times as fast where something does. LLVM makes them where there is AVX-512
#: (piecewise constants among 400: 18.4 ns an element, 4.6 one by one; a table interpolated 18.9 and 10.5; Zen 5).
ONE_BY_ONE = ",+prefer-no-gather"


@functools.cache
def target_machine(level: int = 3) -> Any:
    """LLVM's machine for this processor. ``level``: how much is done for code to be fast, up to 3."""
    binding = llvm()
    known = binding.get_host_cpu_features()
    slow = known.get("avx512f", False) and binding.get_host_cpu_name().startswith("znver")
    features = known.flatten() + ONE_BY_ONE * slow
    how: dict[str, Any] = dict(reloc="pic", codemodel="small") if JITLINK else dict(jit=True)
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=level, **how)


#: Processors that lower their frequency for milliseconds, also of what runs beside, when they meet such vectors.
SLOWED = ("skylake-avx512", "cascadelake", "cooperlake", "cannonlake")


@functools.cache
def wide_vectors() -> bool:
    """True if kernels that gain from it are made with vectors of 512 bits (``llvm_function.WIDE``)."""
    binding = llvm()
    return binding.get_host_cpu_features().get("avx512f", False) and binding.get_host_cpu_name() not in SLOWED


@functools.cache
def masks_bytes() -> bool:
    """True if vectors of bytes are loaded and stored in part as fast as whole."""
    return llvm().get_host_cpu_features().get("avx512bw", False)


@functools.cache
def few_registers() -> bool:
    """True if vectors have 16 registers and constants no place in instructions: AVX2 without AVX-512."""
    features = llvm().get_host_cpu_features()
    return features.get("avx2", False) and not features.get("avx512f", False)


@functools.cache
def has_vectors() -> bool:
    """True if the processor has vectors of 256 bits or more, and stores of them that leave the cache alone
    (``llvm_streams``)."""
    return llvm().get_host_cpu_features().get("avx2", False)


@functools.cache
def fuses() -> bool:
    """True if a product and a sum are one instruction, which rounds once."""
    features = llvm().get_host_cpu_features()
    return features.get("fma", False) or "sse2" not in features


#: What LLVM does unless it is told not to: a loop is written twice, for a stride of one that it hopes for, and without
#: vectors for others; instructions are put in another order; counters of 32 bits become ones of 64.
VERSIONING, SCHEDULING, WIDENING = "enable-mem-access-versioning", "enable-misched", "indvars-widen-indvars"
#: What else it does, by the options that turn it off: addresses in loops are made of others by sums, for which it tries
#: what combinations there are (half of code generation); instructions are chosen by graphs of a block, not one by one.
STRENGTH, GRAPHS = "disable-lsr", "fast-isel"
#: How far it looks for places where a number of a long loop may leave its register. With a fifth of that the code of
#: hundreds of sines in a row takes two thirds of the time, runs as long, and that of shorter loops is the same.
SPLITTING = "grow-region-complexity-budget"
_AMOUNTS = {SPLITTING: (10_000, 2_000)}


@contextlib.contextmanager
def without(*habits: str) -> Iterator[None]:
    """Code made inside is made without these habits. They are options of the whole process: what another library
    compiles meanwhile does the same, at another speed. (GRAPHS leaves a trace: they are for code of level 0, too.)"""
    for habit in habits:
        _turn(habit, False)
    try:
        yield
    finally:
        for habit in habits:
            _turn(habit, True)


def _turn(habit: str, on: bool) -> None:
    if habit in _AMOUNTS:
        value = str(_AMOUNTS[habit][not on])
    else:
        value = str(on is not (habit in (STRENGTH, GRAPHS))).lower()
    llvm().set_option("symc", f"-{habit}={value}")


def run_passes(passes: Any, module: Any, builder: Any) -> None:
    """Run a pass manager over a module, and free it. llvmlite does not: of the classes that a manager inherits from,
    the first says that there is nothing to free, and 20 to 180 KB of every kernel stayed for good."""
    passes.run(module, builder)
    free = getattr(llvm().NewPassManager, "_dispose", None)
    if free is not None:
        free(passes)
        passes.detach()


@functools.cache
def _linker() -> Any:
    return llvm().create_lljit_compiler(use_jit_link=JITLINK)


@uninterrupted
def load(code: bytes, exports: Iterable[str], imports: Mapping[str, int]) -> dict[str, int]:
    """The addresses of functions of an object file, loaded for good. What it calls is in ``imports``, or in a library
    that the whole process sees."""
    with lock:
        library = llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in imports.items():
            library.import_symbol(name, address)
        for name in exports:
            library.export_symbol(name)
        found = library.link(_linker(), f"symc {next(_numbers)}")
        for_good(_linker())
        for_good(found)
    return {name: found[name] for name in exports}
