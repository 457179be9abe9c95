"""The machine code of kernels: read from disk, or made by ``llvm_compile`` and kept there; loaded through llvmlite.

A process that finds all of its kernels on disk imports neither Numba nor the compiler of kernel texts.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symc.codegen.cpu.render import Source
from symc.runtime import object_cache, scipy_functions

_modules: list[_Loader] = []  # for as long as the process lives


def compile_text(source: Source) -> int:
    """The address of a kernel: ``void entry(int64 *args)``. Raises Unsupported for what LLVM's text cannot say yet."""
    dtypes = ",".join(d.str for d in source.operands + source.results)
    name = object_cache.key([_generator(), source.text, dtypes, str(len(source.operands)), str(source.fails)])
    entry = object_cache.read(name)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import object_code

        entry = object_code(source, f"symc_{name}", _machine())
        object_cache.write(name, entry)
    for export in entry.exports:
        scipy_functions.add_symbol(export)
    return _loader().load(entry.code, f"symc_{name}")


def load_module(name: str, write: Callable[[], str], level: int) -> Callable[[str], int]:
    """Native functions of our own: the addresses by symbol of a module. ``write`` gives its LLVM text, on a miss.

    ``name`` tells modules apart; what else decides the text are the sources of this folder. ``level``: how much LLVM
    does for it, up to 3 (the passes that vectorize loops).
    """
    key = object_cache.key([_generator(), "module", name, str(level)])
    entry = object_cache.read(key)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import module_code

        entry = object_cache.Entry(module_code(write(), _new_machine(level), level == 3))
        object_cache.write(key, entry)
    loader = _Loader()  # of its own: symbols need not be unique
    loader.add(entry.code)
    _modules.append(loader)  # an address alone keeps nothing
    return loader.engine.get_function_address


def _new_machine(level: int = 3) -> Any:
    """This processor."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=level, jit=True)


_machine = functools.cache(_new_machine)


@functools.cache
def _generator() -> str:
    """What decides, beside a text, what its machine code is: the sources here and what helpers take constants from,
    LLVM, the processor, and the interpreter, as some modules read its objects."""
    import llvmlite
    from llvmlite import binding

    here = Path(__file__).parent
    sources = sorted([*here.rglob("*.py"), *here.parent.glob("ir/ops/*_reference.py")])
    digest = hashlib.sha256(b"\0".join(p.read_bytes() for p in sources)).hexdigest()
    versions = [str(sys.implementation.cache_tag), getattr(sys, "abiflags", ""), llvmlite.__version__]
    versions += map(str, binding.llvm_version_info)
    return "\n".join([digest, *versions, binding.get_default_triple(), binding.get_host_cpu_name(),
                      binding.get_host_cpu_features().flatten()])


class _Loader:
    """Machine code in memory, for as long as the process lives: kernels are shared by content."""

    def __init__(self) -> None:
        from llvmlite import binding

        empty = binding.parse_assembly("", binding.create_context())
        self.engine = binding.create_mcjit_compiler(empty, _new_machine())  # which the engine owns from here on

    def add(self, code: bytes) -> None:
        from llvmlite import binding

        self.engine.add_object_file(binding.object_file.ObjectFileRef.from_data(code))
        self.engine.finalize_object()

    def load(self, code: bytes, symbol: str) -> int:
        self.add(code)
        return self.engine.get_function_address(symbol)


_loader = functools.cache(_Loader)
