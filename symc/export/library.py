"""A function as a shared library: the source of ``export_c`` compiled by a C compiler, and a module that calls it.

symc itself needs no C compiler; without one there is no library, as nothing else here links one.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import numpy as np

from symc.errors import ExportError, InputError
from symc.export import loader
from symc.export.files import write_files
from symc.export.interface import Array, Interface, identifier, interface_of
from symc.export.sizes import python_size, solved
from symc.export.source import Source, source_of, usage
from symc.ir.dim import in_order
from symc.ir.dtypes import described
from symc.runtime.cpu.commit import snapshot
from symc.tensors.callsite import at_caller
from symc.tensors.pytree import Nest

#: Compilers in the order in which they are tried, after what the variable CC says.
COMPILERS = ("cc", "gcc", "clang")
#: Nothing here changes a number that is computed. Code of a library is asked for what is shared.
FLAGS = ("-std=c11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fPIC", "-shared")
SUFFIXES = (".so", ".dylib", ".dll")


def export_library(f: Any, path: Any) -> str:
    """Write the library, its header, the module and, where there are states, their arrays; the path of the module."""
    with at_caller():
        folder, library, module = _names(f, path)
        compiler = _compiler()
        source = source_of(interface_of(f))
        data = _compiled(source, compiler)
        i, files = source.interface, {library: data, f"{module}.h": source.files[f"{source.interface.name}.h"].encode()}
        if i.states:
            files[f"{module}_states.npz"] = _states(f, i)
        files[f"{module}.py"] = _module(f, source, library, module, data).encode()
        write_files(folder, files)
    return os.path.join(folder, f"{module}.py")


def _names(f: Any, path: Any) -> tuple[str, str, str]:
    """The folder, the name of the library and that of the module. A path without a suffix names the module."""
    try:
        path = os.fspath(path)
        if not isinstance(path, str) or not path or "\0" in path:
            raise TypeError(f"not a path: {path!r:.40}")
    except TypeError as e:
        raise InputError(f"export_library: {e}") from None
    if os.path.isdir(path) or path.endswith(os.sep):
        path = os.path.join(path, identifier(f.name, set()))
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)
    if suffix not in SUFFIXES:
        module = identifier(name, set())
        return folder or ".", f"lib{module}.so", module
    module = identifier(stem.removeprefix("lib"), set())
    if module == stem and suffix in EXTENSION_SUFFIXES:  # Python would take the library for a module of its own
        module += "_loader"
    return folder or ".", name, module


def _compiler() -> list[str]:
    """The command of a C compiler. Raises ExportError."""
    given = shlex.split(os.environ.get("CC", ""))
    for command in ([given] if given else [[c] for c in COMPILERS]):
        if shutil.which(command[0]):
            return command
    looked = f"{given[0]}, which the variable CC names, is not there" if given else (
        f"there is none of {', '.join(COMPILERS)}")
    raise ExportError(f"export_library needs a C compiler: {looked}",
                      help="install one or set CC; f.export_c(directory) writes the source, to be compiled elsewhere")


def _compiled(source: Source, compiler: Sequence[str]) -> bytes:
    """The bytes of the library."""
    own = source.interface.name.upper()
    wide = ["-mprefer-vector-width=512"] * (platform.machine() in ("x86_64", "AMD64"))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in source.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        target = os.path.join(folder, "library")
        command = [*compiler, *FLAGS, *wide, f"-D{own}_BLAS_AT_RUN_TIME", "-o", target,
                   *[os.path.join(folder, n) for n in source.c_files], "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ExportError(f"{compiler[0]} failed: {done.stderr.strip()[-2000:]}", help=" ".join(command))
        with open(target, "rb") as built:
            return built.read()


def _states(f: Any, i: Interface) -> bytes:
    out = io.BytesIO()
    arrays = map(described, snapshot(f._cells))
    np.savez(out, **dict(zip([a.name for a in i.states], arrays, strict=True)))  # type: ignore[arg-type]
    return out.getvalue()


# --- the module -------------------------------------------------------------------------------------------------------


def _module(f: Any, source: Source, library: str, module: str, data: bytes) -> str:
    """The text of the module."""
    i = source.interface
    given = (*i.inputs, *i.states)
    found = solutions(i)
    names = list(found)
    rows = {
        "name": i.name, "usage": usage(i), "library": library, "data": f"{module}_states.npz",
        "version": source.version, "sha256": hashlib.sha256(data).hexdigest(),
        "machine": f"{platform.system()} {platform.machine()}", "products": f"{i.name}_use_blas" in source.files[
            f"{i.name}.c"], "sizes": list(i.sizes.values()),
        "arguments": _arguments(f), "outputs": _nest(f._built.outputs),
        **{kind: [_row(i, a) for a in arrays] for kind, arrays in (
            ("inputs", i.inputs), ("states", i.states), ("results", i.results))}}
    with open(loader.__file__, encoding="utf-8") as file:
        mark, same = file.read().partition("\n# --- the same for every function")[1:]
    text = [f'"""{usage(i)}: a function of {library}. Written by symc; needs NumPy alone."""\n\n'
            "from typing import Any\n\nINTERFACE = {"]
    text += [f"    {k!r}: {v!r}," for k, v in rows.items()]
    text += ["}\n\n\ndef sizes_of(shapes):", *[f"    {n} = {text}" for n, text in found.items()],
             f"    return {{{', '.join(f'{n!r}: {n}' for n in names)}}}\n\n",
             f"def shapes_of({', '.join(names)}):", "    return ["]
    text += [f"        ({''.join(f'{python_size(s, i.sizes)}, ' for s in a.type.shape).rstrip()}),  # {a.name}"
             for a in (*given, *i.results)]
    text += ["    ]\n", mark + same, f"\n{i.name} = Exported()\n__all__ = [{i.name!r}]\n"]
    return "\n".join(text)


def solutions(i: Interface) -> dict[str, str]:
    """For each size, as C calls it, the expression that finds it from ``shapes[k][axis]`` and those before."""
    found = {}
    for n, (k, axis, a, b) in solved([x.type.shape for x in (*i.inputs, *i.states)]).items():
        place = f"shapes[{k}][{axis}]"
        place = place if b == 0 else f"({place} - {python_size(b, i.sizes)})"
        found[i.sizes[n]] = place if a == 1 else f"{place} // {python_size(a, i.sizes)}"
    missing = in_order(n for n, c in i.sizes.items() if c not in found)
    if missing:
        raise ExportError(f"the size {missing[0]} cannot be told from the shapes of arguments",
                          help="declare an input that has it as an axis of its own")
    return found


def _row(i: Interface, a: Array) -> dict[str, Any]:
    return {"name": a.name, "dtype": str(a.type.dtype), "shape": [i.size(s) for s in a.type.shape]}


def _arguments(f: Any) -> list[dict[str, Any]]:
    """The arguments of a call as those of the function: names, nests, default values. Of a jitted one as it was called,
    with what was static as ``fixed``, by its place in the nest; objects that are no literals are left out."""
    if f._called is not None:
        rows = [{"name": n, "nest": _nest(nest), "default": None, "fixed": {k: x for k, x in enumerate(leaves) if x}}
                for n, (nest, leaves) in f._called.items() if not leaves or leaves != [(...,)] * len(leaves)]
    else:
        rows = [{"name": s.name or f"arg{k}", "nest": _nest(s.nest), "fixed": {}, "default": s.default.tolist()
                 if isinstance(s.default, np.ndarray | np.generic) else s.default}
                for k, s in enumerate(f._built.slots)]
    try:
        ast.literal_eval(repr(rows))
    except (ValueError, SyntaxError):
        raise ExportError(f"{f.name}: a default value is no number or list of numbers") from None
    return rows


def _nest(nest: Nest) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
    if nest.kind == "around" or any(not isinstance(k, str | int) for k in nest.keys):
        raise ExportError(f"a nest of {nest} has no form outside of symc",
                          help="compile a function of tuples, lists and dicts of arrays")
    return nest.kind, nest.keys, tuple(map(_nest, nest.children))
