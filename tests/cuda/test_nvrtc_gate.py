"""Every kernel that symc writes compiles for every kind of GPU: without a warning, in registers, with no more shared
memory than a block has unasked. And in machine code the fast templates' accesses are as wide as they should be."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from symc.codegen.cuda.source import MOST_THREADS, WARP, Entry
from symc.errors import InputError
from symc.ir.dim import Size
from symc.ir.size_values import evaluate, names
from symc.runtime.cuda import nvrtc
from symc.runtime.cuda.device import Resources
from symc.runtime.cuda.library import signatures, unit
from symc.runtime.cuda.nvrtc import Cubin
from tests.covering import pairwise
from tests.cuda.corpus import Item, corpus

#: Each kernel is compiled for one of these, in turn within its template: every template meets all of them.
ARCHS = ("sm_90", "sm_75", "sm_80", "sm_100")
#: How many tests share the kernels, and how many kernels are compiled at once: reading the prelude takes longer than
#: compiling most kernels.
PARTS, TOGETHER = 6, 50
REGISTERS, SHARED = 65536, 48 * 1024
#: The compiler keeps a few values in memory by its own choice: so that more blocks fit on a multiprocessor, while a
#: function is called that is not inlined (a division of doubles, what only draws and tangents call). At most so many
#: bytes, and not for want of registers.
STACK, MOST_REGISTERS = 64, 255


@pytest.fixture(scope="module", autouse=True)
def compiler():
    try:
        return nvrtc.library()
    except InputError as e:
        pytest.skip(str(e))


def compiled(items: Sequence[Item], arch: str) -> tuple[Cubin, dict[str, tuple[Item, Entry]]]:
    """Kernels compiled together, and their entries by name."""
    sources = [item.source(f"kernel_{k}x") for k, item in enumerate(items)]
    made = nvrtc.compile_cubin(unit(sources), arch)
    made.check([s for source in sources for s in signatures(source)])
    return made, {e.name: (i, e) for i, source in zip(items, sources, strict=True) for e in source.entries}


def complaint(item: Item, entry: Entry, found: Resources) -> str:
    """What is wrong with what an entry needs."""
    if entry.block > MOST_THREADS or entry.block % WARP:
        return f"blocks of {entry.block} threads"
    registers = -(-found.registers // 8) * 8
    if registers * entry.block > REGISTERS:
        return f"{found.registers} registers for each of {entry.block} threads"
    if found.shared > SHARED:
        return f"{found.shared} bytes of shared memory"
    scarce = found.registers >= min(MOST_REGISTERS, REGISTERS // entry.block // 8 * 8)
    if found.stack > STACK or (found.spills and scarce):
        return f"{found.spills} bytes spilled, {found.stack} bytes of stack, {found.registers} registers"
    return ""


def check(items: Sequence[Item], arch: str) -> None:
    wrong = []
    for start in range(0, len(items), TOGETHER):
        made, entries = compiled(items[start : start + TOGETHER], arch)
        assert made.warnings == ""
        assert set(made.resources) == set(entries), "all entries are declared, and no others there"
        for name, (item, entry) in entries.items():
            what = complaint(item, entry, made.resources[name])
            if what:
                wrong.append(f"{item.name} {item.choice!r} on {arch}: {what}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_kernel_compiles(part):
    items = sorted(pairwise(corpus(), choices), key=template)
    for k, arch in enumerate(ARCHS):
        share = items[k :: len(ARCHS)][part::PARTS]
        assert len(share) > 10
        check(share, arch)


def template(item: Item) -> str:
    return type(item.variants).__name__


def choices(item: Item) -> tuple[str, ...]:
    """An op (or program), a template and its variant, the dtypes: kernels that agree in two of them differ little."""
    return item.name.split()[0], f"{template(item)} {item.choice}", item.dtypes


def test_the_corpus_has_every_template():
    kinds = Counter(map(template, corpus()))
    assert len(kinds) >= 5 and min(kinds.values()) >= len(ARCHS), kinds


#: Blocks along each axis, at most; sizes of which one is large, as arrays in a GPU's memory have them.
BLOCKS, LARGE = (2**31 - 1, 65535, 65535), (1000, 2**24, 2**28)


def test_grids_fit_at_large_sizes():
    families = {id(item.variants): item for item in corpus()}
    wrong = []
    for item in families.values():
        entries = item.source("kernel").entries
        given = sorted({n for e in entries for size in (*e.grid, e.shared) for n in names(size)})
        for large, name in itertools.product(LARGE, given):
            number = sizes({**dict.fromkeys(given, 3), name: large})
            for e in item.variants.source(item.variants.choose(number), "kernel").entries:
                grid = [number(size) for size in e.grid]
                if any(n > most for n, most in zip(grid, BLOCKS, strict=True)) or number(e.shared) > SHARED:
                    wrong.append(f"{item.name}, {name} = {large}: {grid} blocks, {number(e.shared)} bytes")
    assert not wrong, "\n".join(wrong)


def sizes(given: dict[str, int]) -> Callable[[Size], int]:
    return lambda size: evaluate(size, {n: given.get(n, 3) for n in names(size)})


# --- machine code -----------------------------------------------------------------------------------------------------


def disassembler() -> str | None:
    spec = importlib.util.find_spec("nvidia")
    for base in (spec.submodule_search_locations or ()) if spec else ():
        for folder in ("cu13", "cuda_nvdisasm"):
            path = os.path.join(base, folder, "bin", "nvdisasm")
            if os.path.exists(path):
                return path
    return shutil.which("nvdisasm")


def instructions(data: bytes, folder) -> dict[str, list[str]]:
    """The opcodes of each entry, without predicates."""
    tool = disassembler()
    if tool is None:
        pytest.skip("nvdisasm is not there: pip install nvidia-cuda-nvdisasm")
    path = folder / "kernel.cubin"
    path.write_bytes(data)
    text = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[str]] = {}
    for part in re.split(r"^\s*\.section\s+\.text\.", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"[\w$]+", part)[0]
        found[name] = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", part, re.MULTILINE)
    return found


#: A program, and what of its kernels' accesses to memory the machine code must have.
WIDE = {
    "chain float32": ["LDG.E.128", "STG.E.128"],
    "chain float16": ["LDG.E.128", "STG.E.128"],
    "rows_of_known_length float32": ["LDG.E.128", "STG.E.128"],
    "layernorm float16": ["LDG.E.128", "STG.E.128"],
    "turned float32": ["LDS", "STS"],
}


@pytest.mark.parametrize("name", WIDE)
def test_accesses_are_wide(name, tmp_path):
    items = [item for item in corpus() if item.name == name]
    made, _ = compiled(items, "sm_90")
    code = instructions(made.data, tmp_path)
    assert len(code) >= len(items)
    every = {op for ops in code.values() for op in ops}
    for wanted in WIDE[name]:
        assert any(op.startswith(wanted) for op in every), wanted
    assert not any(op.startswith(("LDL", "STL")) for op in every), "local memory"
