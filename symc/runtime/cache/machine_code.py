"""The machine code of kernels and native functions: read from disk, or made by ``llvm_compile`` and kept there.

Both are images, or object files where llvmlite has to link them. A process that finds all of its code on disk compiles
nothing, and imports no compiler.

Modules of native functions stay for good. The code of a kernel belongs to whoever has its ``Symbol``: code of plans
(``Template``), and so frames, entries, and calls that run. A thread of the pool is in a kernel only while a call waits
for it. So it is freed with the last function that launches it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from symc.ir.garbage import no_collections
from symc.ir.phases import phase
from symc.runtime.cache import object_cache, version
from symc.runtime.cache.object_cache import Entry
from symc.runtime.compilers.image import Code, Image, Loaded, for_good

if TYPE_CHECKING:
    from symc.codegen.cpu.render import Source

_kernels: weakref.WeakValueDictionary[str, Loaded] = weakref.WeakValueDictionary()  # by name


class Symbol(int):
    """The address of native code, and the name by which another process finds it. ``code``: what is to be kept for as
    long as somebody may call it."""

    name: str
    code: Any

    def __new__(cls, address: int, name: str, code: Any = None) -> Symbol:
        self = super().__new__(cls, address)
        self.name, self.code = name, code
        return self


@phase("look on disk")
def compile_text(source: Source) -> Symbol:
    """The address of a kernel: ``void entry(int64 *args)``. Raises Unsupported for what LLVM's text cannot say yet."""
    from symc.codegen.kernel.user_functions import c_addresses

    dtypes = ",".join(d.str for d in source.arrays)
    name = object_cache.key([version.of_compilers(), source.text, dtypes, str(len(source.operands)), str(source.fails)])
    if (found := _kernels.get(name)) is not None:
        return _symbol(name, found)
    entry = object_cache.read(name)
    if entry is None:
        from symc.runtime.compilers.llvm_compile import kernel_code

        entry = kernel_code(source, f"symc_{name}")
        object_cache.write(name, entry)
    return _symbol(name, _loaded(entry, c_addresses(source.text)))


def kept_kernel(name: str) -> Symbol:
    """A kernel whose machine code is here or on disk. Raises LookupError if it is not there any more."""
    found = _kernels.get(name)
    if found is None:
        entry = object_cache.read(name)
        if entry is None:
            raise LookupError(name)
        found = _loaded(entry)
    return _symbol(name, found)


def _symbol(name: str, found: Loaded) -> Symbol:
    """The symbol of a kernel, which is that of another thread if one was faster."""
    found = _kernels.setdefault(name, found)
    return Symbol(found.places[f"symc_{name}"], f"kernel {name}", found)


@phase("load")
def _loaded(entry: Entry, calls: Mapping[str, int] | None = None) -> Loaded:
    """Load the functions of an entry. ``calls``: of functions that it calls, beside SciPy's and the C library's."""
    imports = dict(calls or {})
    if entry.scipy:
        from symc.runtime.cpu import scipy_functions

        imports |= {scipy_functions.symbol(export): scipy_functions.special(export) for export in entry.scipy}
    if isinstance(entry.code, Image):
        return Code(entry.code, imports)
    from symc.runtime.compilers import llvm

    return Loaded(llvm.load(entry.code, entry.exports, imports))


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
    found = _loaded(entry, calls)
    for_good(found)
    return found.places.__getitem__


def _key_of_module(name: str, level: int) -> str:
    return object_cache.key([version.of_compilers(), "module", name, str(level)])
