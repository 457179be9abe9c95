"""Exported C, compiled strictly, called by ctypes as a program in C would call it."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from symc.export.interface import Interface, interface_of
from symc.export.library import solutions
from symc.export.source import Source, source_of
from symc.ir.size_values import evaluate

STRICT = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=fast")
#: Bytes behind a workspace, which nothing may write.
FENCE = 64


def linked(sources: Sequence[Source], folder: Path, more: Sequence[str] = ("-O0",), libraries: Sequence[str] = (),
           clones: bool = False) -> ctypes.CDLL:
    """One library of several sources. ``more``: what is given to the compiler besides; ``clones``: with code for
    several processors."""
    files: list[Path] = []
    for source in sources:
        for name, text in source.files.items():
            (folder / name).write_text(text)
        files += [folder / n for n in source.c_files]
        subprocess.run(["gcc", *STRICT, "-fsyntax-only", folder / "example.c"], check=True)
    target = folder / f"{sources[0].interface.name}.so"
    once = [] if clones else [f"-D{s.interface.name.upper()}_NO_CLONES" for s in sources]
    subprocess.run(["gcc", *STRICT, *more, *once, "-shared", "-fPIC", "-o", target, *files, *libraries, "-lm"],
                   check=True)
    return ctypes.CDLL(str(target))


class Built:
    """The function of one source in a library."""

    def __init__(self, source: Source, library: ctypes.CDLL):
        self.source, self.interface, self.library = source, source.interface, library
        name = self.interface.name
        self.entry, self.workspace = self.library[name], self.library[f"{name}_workspace"]
        self.message = self.library[f"{name}_message"]
        self.workspace.restype, self.message.restype = ctypes.c_size_t, ctypes.c_char_p

    def __call__(self, arrays: Sequence[np.ndarray], states: Sequence[np.ndarray] = (), own: bool = True
                 ) -> tuple[str, list[np.ndarray]]:
        """What the code means, and the results; states are written. ``own``: the workspace is the caller's."""
        i = self.interface
        numbers = sizes_of(i, [np.shape(a) for a in (*arrays, *states)])
        given = [np.ascontiguousarray(a).astype(x.type.dtype, copy=False).reshape(np.shape(a))
                 for a, x in zip(arrays, i.inputs, strict=True)]
        out = [np.full([evaluate(s, numbers) for s in a.type.shape], 77, a.type.dtype) for a in i.results]
        sizes = [ctypes.c_int64(numbers[n]) for n in i.sizes]
        need = self.workspace(*sizes)
        memory = np.full(need + FENCE, 170, np.uint8)
        place = ctypes.c_void_p(memory.ctypes.data) if own else None
        code = self.entry(*[ctypes.c_void_p(a.ctypes.data) for a in (*given, *out, *states)], *sizes, place)
        assert (memory[need:] == 170).all()
        return self.message(code).decode(), out


def sizes_of(i: Interface, shapes: Sequence[tuple[int, ...]]) -> Mapping[str, int]:
    """The sizes of a call by their names in the function, as a loader finds them."""
    scope: dict = {"shapes": shapes}
    for name, text in solutions(i).items():
        scope[name] = eval(text, scope)
    return {n: scope[c] for n, c in i.sizes.items()}


def built(f, folder: Path, more: Sequence[str] = ("-O0",), libraries: Sequence[str] = ()) -> Built:
    """The library of a compiled function."""
    source = source_of(interface_of(f))
    return Built(source, linked([source], folder, more, libraries))
