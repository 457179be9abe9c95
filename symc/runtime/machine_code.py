"""The machine code of kernels: read from disk, or made by ``llvm_compile`` and kept there.

Object files are linked to images where ``compilers.elf`` can do that; a process that finds all of its kernels so on
disk imports neither a compiler nor llvmlite. Elsewhere llvmlite loads the object files.
"""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from symc.ir.phases import phase
from symc.runtime import image, object_cache, scipy_functions, version
from symc.runtime.image import Symbol
from symc.runtime.object_cache import Entry

if TYPE_CHECKING:
    from symc.codegen.cpu.render import Source

#: Whether object files are linked here: what ``compilers.elf`` knows.
LINKED = sys.platform == "linux" and platform.machine() == "x86_64"

_kernels: dict[str, int] = {}  # addresses by name
_modules: list[_Loader] = []  # for as long as the process lives


@phase("look on disk")
def compile_text(source: Source) -> Symbol:
    """The address of a kernel: ``void entry(int64 *args)``. Raises Unsupported for what LLVM's text cannot say yet."""
    dtypes = ",".join(d.str for d in source.arrays)
    name = object_cache.key([version.of_compilers(), source.text, dtypes, str(len(source.operands)), str(source.fails)])
    entry = object_cache.read(name)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import object_code

        entry = _linked(object_code(source, f"symc_{name}", _machine()))
        object_cache.write(name, entry)
    return _kernel(name, entry)


def kept_kernel(name: str) -> Symbol:
    """A kernel whose machine code is here or on disk. Raises LookupError if it is not there any more."""
    if name in _kernels:
        return Symbol(_kernels[name], f"kernel {name}")
    entry = object_cache.read(name)
    if entry is None:
        raise LookupError(name)
    return _kernel(name, entry)


def _kernel(name: str, entry: Entry) -> Symbol:
    symbol = f"symc_{name}"
    if name not in _kernels:
        _kernels[name] = _loaded(entry, _loader)(symbol)
    return Symbol(_kernels[name], f"kernel {name}")


@phase("link")
def _linked(entry: Entry) -> Entry:
    """With an image in place of an object file, if that can be."""
    from symc.codegen.cpu.text import Unsupported
    from symc.runtime.compilers.elf import link

    if not LINKED:
        return entry
    try:
        return Entry(link(entry.code).encoded(), entry.exports, linked=True)
    except Unsupported:
        return entry


@phase("load")
def _loaded(entry: Entry, loader: Callable[[], _Loader]) -> Callable[[str], int]:
    """The addresses of functions by name. ``loader``: for an object file."""
    if entry.linked:
        return image.load(image.Image.decoded(entry.code), _called).__getitem__
    for export in entry.exports:
        scipy_functions.add_symbol(export)
    found = loader()
    found.add(entry.code)
    return found.engine.get_function_address


def _called(name: str) -> int:
    """The address of a function that machine code calls."""
    export = scipy_functions.export_of(name)
    if export is not None:
        return scipy_functions.special(export)
    try:
        return image.in_process(name)
    except LookupError:  # one that comes with LLVM
        from llvmlite import binding

        address = binding.address_of_symbol(name)
        assert address, name
        return address


@phase("native module", lambda name, *_: name)
def load_module(name: str, write: Callable[[], str], level: int) -> Callable[[str], int]:
    """Native functions of our own: the addresses by symbol of a module. ``write`` gives its LLVM text, on a miss.

    ``name`` tells modules apart; what else decides the text are the sources of this folder. ``level``: how much LLVM
    does for it, up to 3 (the passes that vectorize loops).
    """
    key = _key_of_module(name, level)
    entry = object_cache.read(key)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import module_code

        entry = _linked(Entry(module_code(write(), _new_machine(level), level == 3)))
        object_cache.write(key, entry)

    def loader() -> _Loader:
        _modules.append(_Loader())  # of its own: symbols need not be unique. An address alone keeps nothing
        return _modules[-1]

    return _loaded(entry, loader)


def is_kept(name: str, level: int) -> bool:
    """Whether ``load_module`` finds a module on disk."""
    return object_cache.read(_key_of_module(name, level)) is not None


def _key_of_module(name: str, level: int) -> str:
    return object_cache.key([version.of_compilers(), "module", name, str(level)])


def _new_machine(level: int = 3) -> Any:
    """This processor, for which code is made."""
    from symc.runtime.compilers.llvm import llvm

    how: dict[str, Any] = dict(reloc="pic", codemodel="small") if LINKED else dict(jit=True)
    return _this_processor(llvm(), opt=level, **how)


def _this_processor(binding: Any, **how: Any) -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, **how)


_machine = functools.cache(_new_machine)


class _Loader:
    """Machine code in memory, for as long as the process lives: kernels are shared by content."""

    def __init__(self) -> None:
        from llvmlite import binding

        empty = binding.parse_assembly("", binding.create_context())
        # the engine owns its target machine from here on
        self.engine = binding.create_mcjit_compiler(empty, _this_processor(binding, opt=3, jit=True))

    def add(self, code: bytes) -> None:
        from llvmlite import binding

        self.engine.add_object_file(binding.object_file.ObjectFileRef.from_data(code))
        self.engine.finalize_object()


_loader = functools.cache(_Loader)
