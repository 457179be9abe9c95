"""Kernel texts to LLVM and on to object code, through llvmlite alone: what ``llvm_function`` writes, optimized.

A kernel costs 10 to 40 ms so, against 40 to 350 through Numba's front end. What the compiler of texts does not know
(a user's functions) raises Unsupported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.codegen.cpu.render import Source
from symc.codegen.language.syntax import function
from symc.codegen.language.typed import Pointer, Scalar
from symc.ir.dtypes import RECORDS
from symc.ir.phases import phase
from symc.runtime.cache.object_cache import Entry
from symc.runtime.compilers import llvm_streams
from symc.runtime.compilers.linker import linked
from symc.runtime.compilers.llvm import (
    GRAPHS,
    SCHEDULING,
    SPLITTING,
    STRENGTH,
    VERSIONING,
    WIDENING,
    few_registers,
    llvm,
    lock,
    run_passes,
    target_machine,
    without,
)
from symc.runtime.compilers.llvm_function import IN_ORDER, Module
from symc.runtime.compilers.llvm_rarely import MARK, link_bodies
from symc.runtime.compilers.uninterrupted import uninterrupted
from symc.runtime.cpu import scipy_functions

#: What LLVM is told of every function: denormal numbers may be zeros (``denormals="flush"``) or not. Else it makes
#: comparisons with zero tests of bits.
DENORMALS = '"denormal-fp-math"="dynamic,dynamic"'


@phase("LLVM: code")
@uninterrupted
def kernel_code(source: Source, symbol: str) -> Entry:
    """The code of a kernel whose entry is called ``symbol``."""
    text = kernel_ir(source).replace("@entry(", f"@{symbol}(")
    with lock:
        machine = target_machine()
        with without(VERSIONING, WIDENING, SPLITTING, *[SCHEDULING] * (IN_ORDER in text),
                     *[STRENGTH] * few_registers()):
            module = optimized(text, machine)
            if llvm_streams.KEPT in text:
                module = _parsed(llvm_streams.past_cache(str(module)), llvm().create_context(), machine)
            code = machine.emit_object(module)
    return entry_of(code, (symbol,), scipy_functions.called_in(text))


@phase("LLVM: code")
@uninterrupted
def module_code(text: str, level: int) -> Entry:
    """The code of a module of native functions. Loops are vectorized at level 3; at level 1 variables become registers,
    and functions are inlined."""
    with lock:
        machine = target_machine(level)
        with without(*[STRENGTH, GRAPHS] * (level < 3)):
            module = optimized(text, machine) if level == 3 else _parsed(text, llvm().create_context(), machine)
            if level == 1:
                _in_registers(module, machine)
            exports = [f.name for f in module.functions
                       if not f.is_declaration and f.linkage is llvm().Linkage.external]
            code = machine.emit_object(module)
    return entry_of(code, tuple(exports))


def entry_of(code: bytes, exports: tuple[str, ...], scipy: tuple[str, ...] = ()) -> Entry:
    """The entry of an object file, linked if that can be done once and for all."""
    return Entry(linked(code, exports) or code, exports, scipy)


@phase("LLVM: text")
def kernel_ir(source: Source) -> str:
    """The LLVM text of a kernel, before it is optimized. Raises Unsupported."""
    tree = function(source.text)
    kinds: list[str | None] = [None] * source.numbers
    kinds += [_stored(d) for d in source.arrays]
    names = [a.arg for a in tree.args.args]
    operands: dict[str, Any] = {
        n: Scalar("i64", f"%{n}") if k is None else Pointer(k, f"%{n}") for n, k in zip(names, kinds, strict=True)}
    module = Module()
    module.kernel(tree, operands, _units(source, names))
    return module.text().replace(" nounwind", f" nounwind {DENORMALS}")


def _units(source: Source, names: Sequence[str]) -> str:
    """The length of a kernel's outermost loop, if that is run in chunks and is an argument or a number."""
    if source.chunks is None or isinstance(source.chunks.units, int):
        return str(source.chunks.units) if source.chunks else ""
    sizes = dict(zip(source.sizes, names[source.numbers - len(source.sizes) :], strict=False))
    return f"%{sizes[source.chunks.units]}" if source.chunks.units in sizes else ""


def _stored(dtype: np.dtype) -> str:
    return RECORDS[dtype].memory


def _in_registers(module: Any, machine: Any) -> None:
    """Inline what is to be inlined, and have variables in registers: the least that code in the language needs."""
    passes = llvm().create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    options = llvm().create_pipeline_tuning_options(speed_level=1)
    run_passes(passes, module, llvm().create_pass_builder(machine, options))


@phase("LLVM: optimize")
def optimized(text: str, machine: Any) -> Any:
    """The module of a text, after LLVM's passes."""
    binding = llvm()
    context = binding.create_context()
    first, _, bodies = text.partition(MARK)
    module = _parsed(first, context, machine)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = options.loop_unrolling = True
    passes = binding.create_pass_builder(machine, options)
    run_passes(passes.getModulePassManager(), module, passes)
    if bodies:
        link_bodies(module, bodies, context, machine)
    return module


def _parsed(text: str, context: Any, machine: Any) -> Any:
    module = llvm().parse_assembly(text, context)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module
