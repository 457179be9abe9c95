"""The machine code of kernels and native functions: read from disk, or made by ``llvm_compile`` and kept there.

Both are images, or object files where llvmlite has to link them. A process that finds all of its code on disk compiles
nothing, and imports no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from symc.ir.garbage import no_collections
from symc.ir.phases import phase
from symc.runtime.cache import object_cache, version
from symc.runtime.cache.object_cache import Entry
from symc.runtime.compilers import image
from symc.runtime.compilers.image import Image

if TYPE_CHECKING:
    from symc.codegen.cpu.render import Source

_kernels: dict[str, int] = {}  # addresses by name


class Symbol(int):
    """The address of native code, and the name by which another process finds it."""

    name: str

    def __new__(cls, address: int, name: str) -> Symbol:
        self = super().__new__(cls, address)
        self.name = name
        return self


@phase("look on disk")
def compile_text(source: Source) -> Symbol:
    """The address of a kernel: ``void entry(int64 *args)``. Raises Unsupported for what LLVM's text cannot say yet."""
    from symc.codegen.kernel.user_functions import c_addresses

    dtypes = ",".join(d.str for d in source.arrays)
    name = object_cache.key([version.of_compilers(), source.text, dtypes, str(len(source.operands)), str(source.fails)])
    entry = object_cache.read(name)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import kernel_code

        entry = kernel_code(source, f"symc_{name}")
        object_cache.write(name, entry)
    return _kernel(name, entry, c_addresses(source.text))


def kept_kernel(name: str) -> Symbol:
    """A kernel whose machine code is here or on disk. Raises LookupError if it is not there any more."""
    if name in _kernels:
        return Symbol(_kernels[name], f"kernel {name}")
    entry = object_cache.read(name)
    if entry is None:
        raise LookupError(name)
    return _kernel(name, entry)


def _kernel(name: str, entry: Entry, calls: Mapping[str, int] | None = None) -> Symbol:
    if name not in _kernels:
        _kernels[name] = _loaded(entry, calls)[f"symc_{name}"]
    return Symbol(_kernels[name], f"kernel {name}")


@phase("load")
def _loaded(entry: Entry, calls: Mapping[str, int] | None = None) -> dict[str, int]:
    """The addresses of its functions. ``calls``: of functions that it calls, beside SciPy's and the C library's."""
    imports = dict(calls or {})
    if entry.scipy:
        from symc.runtime.cpu import scipy_functions

        imports |= {scipy_functions.symbol(export): scipy_functions.special(export) for export in entry.scipy}
    if isinstance(entry.code, Image):
        return image.load(entry.code, imports)
    from symc.runtime.compilers import llvm

    return llvm.load(entry.code, entry.exports, imports)


@phase("native module", lambda name, *_: name)
def load_module(
    name: str, write: Callable[[], str], level: int, calls: Mapping[str, int] | None = None
) -> Callable[[str], int]:
    """Native functions of our own: the addresses by symbol of a module. ``write`` gives its LLVM text, on a miss.

    ``name`` tells modules apart; what else decides the text are the sources of this folder. ``level``: how much LLVM
    does for it, up to 3 (the passes that vectorize loops). ``calls``: as of ``_loaded``.
    """
    key = _key_of_module(name, level)
    entry = object_cache.read(key)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import module_code

        with no_collections():
            entry = module_code(write(), level)
        object_cache.write(key, entry)
    return _loaded(entry, calls).__getitem__


def _key_of_module(name: str, level: int) -> str:
    return object_cache.key([version.of_compilers(), "module", name, str(level)])
