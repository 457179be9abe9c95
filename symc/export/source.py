"""A function as C11: the text of its source, its header and what builds it; ``export_c`` writes them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from symc.codegen.c.scalars import literal
from symc.codegen.plan.reuse import aligned
from symc.errors import InputError
from symc.export.files import write_files
from symc.export.interface import Array, Interface, c_type, interface_of
from symc.export.loops import control
from symc.export.prelude import SIZES
from symc.export.routines import routine
from symc.export.sizes import c_bound
from symc.export.steps import Statements
from symc.ir.dim import Dim, Size
from symc.ir.dtypes import DTYPES, RECORDS
from symc.ir.location import in_order
from symc.ir.record import dataclass
from symc.ir.types import TensorType
from symc.tensors.callsite import at_caller

#: The version of what an entry is called with: loaders look for it.
ABI = 1
#: How many numbers a constant has that stands among the code.
SHORT = 256

_TOP = """/* {name}: {usage}. Written by symc; compile as C11: cc -std=c11 -O3 -c {name}.c, and link with -lm. */
#include "{name}.h"
#include <stdlib.h>
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif
#define minus_zero {name}_minus_zero
#ifndef {NAME}_API
#define {NAME}_API
#endif
/* One function for each generation of processors, chosen when the program starts. */
#if defined(__GNUC__) && __GNUC__ >= 12 && defined(__x86_64__) && defined(__linux__) && defined(__OPTIMIZE__) && \\
    !defined({NAME}_NO_CLONES)
#define {NAME}_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define {NAME}_CLONES
#endif
/* A short loop that is made vectors of, which GCC does not do once it has written its steps one after the other. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)
#define {NAME}_AS_LOOP _Pragma("GCC unroll 1")
#else
#define {NAME}_AS_LOOP
#endif

"""

_ENTRY = """
/* Are sizes at least 0, and the numbers that are computed of them below 2^62? */
static bool are_fine({sizes}) {{
{bounds}  return true;
}}

/* Bytes behind the arena: {behind}. */
{API}size_t {name}_workspace({sizes}) {{
  if (!are_fine({size_names})) return SIZE_MAX;
  int64_t need = {arena};
{needs}  return need == 0 ? 0 : (size_t)need + 63;
}}

/* The steps in their order; 0, or the number of a message. */
static int steps({signature}, char *arena) {{
{steps}  return 0;
}}

{API}int {name}({signature}, void *workspace) {{
  if (!are_fine({size_names})) return 1;
{checks}  const size_t need = {name}_workspace({size_names});
  char *own = NULL;
  if (!workspace && need) {{
    own = malloc(need);
    if (!own) return 2;
    workspace = own;
  }}
  char *arena = workspace;
  if (need) arena += (64 - (uintptr_t)arena % 64) % 64;
{flush}  const int code = steps({names}, arena);
{restore}  free(own);
  return code;
}}

{API}const char *{name}_message(int code) {{
  static const char *const messages[] = {{
{messages}  }};
  return code < 0 || code >= {count} ? "no such message" : messages[code];
}}

{API}const char *{name}_version(void) {{ return "{version}"; }}
"""

#: Numbers below the least normal one as zeros while a call runs: before, after, and what is included.
_FLUSH = ("  const unsigned kept = _mm_getcsr();\n  _mm_setcsr(kept | 0x8040);\n", "  _mm_setcsr(kept);\n",
          "#ifndef __SSE__\n#error this was compiled with denormals='flush', for processors with SSE\n#endif\n"
          "#include <xmmintrin.h>\n\n")

_HEADER = """/* {usage}. Written by symc. */
#ifndef {NAME}_H
#define {NAME}_H
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

/* Arrays are contiguous, in C's order, and do not overlap. Half floats are their bits.
{arrays}
   Returns 0, or the number of a message; then no state has changed, and results hold nothing. workspace: as many bytes
   as {name}_workspace says, or NULL, and the call takes memory and gives it back. Calls share nothing else. */
int {name}({signature}, void *workspace);

/* Bytes of memory that a call with these sizes needs; SIZE_MAX if there cannot be as many. */
size_t {name}_workspace({sizes});

/* What a code means. */
const char *{name}_message(int code);

/* The version of this interface, and a digest of the source. */
const char *{name}_version(void);

#ifdef __cplusplus
}}
#endif
#endif
"""

_CMAKE = """cmake_minimum_required(VERSION 3.10)
project({name} C)
set(CMAKE_C_STANDARD 11)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
option({NAME}_USE_CBLAS "Products by CBLAS instead of plain loops" OFF)
add_library({name} {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_EXTENSIONS OFF)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({name} PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast)
  target_link_libraries({name} PUBLIC m)
endif()
add_executable({name}_example EXCLUDE_FROM_ALL example.c)
target_link_libraries({name}_example {name})
if({NAME}_USE_CBLAS)
  find_package(BLAS REQUIRED)
  target_compile_definitions({name} PRIVATE {NAME}_USE_CBLAS)
  target_link_libraries({name} PUBLIC ${{BLAS_LIBRARIES}})
endif()
"""


_EXAMPLE = """/* A call of {name} on zeros: cc -std=c11 -O3 example.c {sources} -lm */
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>
{helpers}
int main(void) {{
{given}  const int code = {name}({names}, NULL);
  printf("{name}: %s\\n", code ? {name}_message(code) : "done");
{freed}  return code;
}}
"""


@dataclass(frozen=True)
class Source:
    """The files of an export by their names, what is called how, and the version that the code says."""

    interface: Interface
    files: dict[str, str]
    version: str

    @property
    def c_files(self) -> list[str]:
        return [n for n in self.files if n.endswith(".c") and n != "example.c"]


def export_c(f: Any, directory: Any) -> str:
    """Write the files; the path of the source. Raises ExportError before anything is written."""
    with at_caller():
        try:
            source = source_of(interface_of(f))
            folder = os.fspath(directory)
            if not isinstance(folder, str):
                raise InputError(f"export_c: a directory is a path, not {folder!r:.40}")
            write_files(folder, {n: t.encode() for n, t in source.files.items()})
        except TypeError as e:
            raise InputError(f"export_c: {e}") from None
    return os.path.join(folder, f"{source.interface.name}.c")


def source_of(i: Interface) -> Source:
    """The files of a function. Raises ExportError."""
    entry = Statements(i, _staged(i)[1], control, routine)
    steps = _steps(entry)
    name, own = i.name, i.name.upper()
    sizes, arrays = list(i.sizes.values()), (*i.inputs, *i.results, *i.states)
    flush, restore, head = _FLUSH if i.flush else ("", "", "")
    words = dict(
        flush=flush, restore=restore, bounds="".join(_bounds(entry)),
        name=name, NAME=own, API=f"{own}_API ", usage=usage(i), steps=steps, behind=entry.behind,
        sizes=", ".join(f"int64_t {s}" for s in sizes) or "void", size_names=", ".join(sizes),
        signature=", ".join([*map(_declared, arrays), *(f"int64_t {s}" for s in sizes)]),
        names=", ".join([*(a.name for a in arrays), *sizes]), arena=i.size(entry.behind),
        needs="".join(f"  need = size_most(need, {i.size(entry.behind + n)});\n"
                      for n in dict.fromkeys(entry.workspaces)),
        checks="".join(_checks(entry)), count=len(entry.messages),
        messages="".join(f"    {_quoted(m)},\n" for m in entry.messages))
    short, long = _constants(entry, steps)
    text = "\n".join([_TOP.format(**words) + head, entry.unit.text(), entry.prelude.text(), short])
    text += _ENTRY.format(version="@", **words)
    version = f"symc {ABI} {name} {hashlib.sha256((text + long).encode()).hexdigest()[:16]}"
    files = {f"{name}.c": text.replace('return "@"', f'return "{version}"'),
             f"{name}.h": _HEADER.format(arrays=_described(i), **words)}
    if long:
        files[f"{name}_constants.c"] = long
    words["sources"] = " ".join(n for n in files if n[-2:] == ".c")
    made = [f"  const int64_t {s} = 4;\n" for s in sizes] + [
        f"  {a.c_type} *{a.name} = calloc((size_t)({i.size(a.type.size)}) + 1, sizeof *{a.name});\n" for a in arrays]
    example = _EXAMPLE.format(given="".join(made), helpers=SIZES * any("size_" in line for line in made),
                              freed="".join(f"  free({a.name});\n" for a in arrays), **words)
    files |= {"CMakeLists.txt": _CMAKE.format(**words), "example.c": example}
    return Source(i, files, version)


def usage(i: Interface) -> str:
    """``f(x: f64[n], w: f64[n, 3]) -> f64[3]``, with the sizes that callers give."""
    given = ", ".join(f"{a.name}: {_type(i, a.type)}" for a in i.inputs)
    return f"{i.name}({given}) -> ({', '.join(_type(i, a.type) for a in i.results)})"


def _type(i: Interface, t: TensorType) -> str:
    return f"{t.dtype}[{', '.join(map(i.size, t.shape))}]"


def _declared(a: Array) -> str:
    return f"{'const ' * a.const}{a.c_type} *{a.name}"


def _described(i: Interface) -> str:
    kinds = (("argument", i.inputs), ("result", i.results), ("state", i.states))
    return "\n".join(f"     {a.name}: {kind}{', updated' * a.updated}, {_type(i, a.type)}"
                     for kind, arrays in kinds for a in arrays)


def _quoted(text: str) -> str:
    """A string of C: bytes that are no letters by their numbers."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def _bounds(entry: Statements) -> Iterator[str]:
    """Lines that look whether what is computed of sizes fits into 64 bits: bytes of arrays, counts of loops."""
    i = entry.interface
    for s in i.sizes.values():
        yield f"  if ({s} < 0 || {s} > INT64_C(1) << 40) return false;\n"
    every = [*entry.counts, *(a.type.nbytes for a in (*i.inputs, *i.results, *i.states)), _staged(i)[1], entry.behind,
             *(entry.behind + n for n in entry.workspaces), *(x for g in i.function.guards for x in (g.left, g.right))]
    large = {s: None for s in every if isinstance(s, Dim) and any(
        abs(c) > 1 << 16 or sum(power for _, power in m) > 1 for m, c in s.terms)}
    yield from (f"  if ({c_bound(s, i.sizes)} > 0x1p62) return false;\n" for s in large)


def _checks(entry: Statements) -> Iterator[str]:
    """Lines that look at sizes before anything runs."""
    i = entry.interface
    for g in i.function.guards:
        lines = f" ({', '.join(map(str, in_order(g.locs)))})" if g.locs else ""
        left, right = i.size(g.left), i.size(g.right)
        number = entry.message(f"{left} must be {'at least' if g.least else 'equal to'} {right}{lines}")
        yield f"  if ({left} {'<' if g.least else '!='} {right}) return {number};\n"
    yield from (f"{line}\n" for line in dict.fromkeys(entry.before))


# --- the steps --------------------------------------------------------------------------------------------------------


def _staged(i: Interface) -> tuple[dict[str, Size], Size]:
    """Places of what lies behind the arena (new values of states, which are copied at the end), and where that ends."""
    plan = i.plan
    outputs, at = plan.results[: len(i.results)], aligned(plan.arena)
    places: dict[str, Size] = {}
    of_states = {n for n in plan.results[len(outputs):] if plan.buffers[n].kind in ("state", "input")}
    for name, b in plan.buffers.items():
        if b.kind == "result" and name not in outputs or name in of_states:
            places[name] = at
            at = at + aligned(b.nbytes)
    return places, at


def _steps(entry: Statements) -> str:
    """All steps of the plan, then what is returned, then the states."""
    i = entry.interface
    plan, f = i.plan, i.function
    places = _staged(i)[0]
    outputs, updates = plan.results[: len(i.results)], plan.results[len(i.results):]
    given = dict(zip(plan.given, (*i.inputs, *i.states), strict=True))
    pointers = {n: f"(void *){a.name}" for n, a in given.items()}
    for name, b in plan.buffers.items():
        if b.kind == "result":
            pointers[name] = (f"(void *){i.results[outputs.index(name)].name}" if name in outputs
                              else entry.pointer(name, entry.at("arena", places[name])))
    entry.plan(plan, pointers, "arena")
    entry.line("/* results, then states */")
    for a, n, v in zip(i.results, outputs, f.outputs, strict=True):
        entry.copy(f"(void *){a.name}", pointers[n], v.type.nbytes)  # type: ignore[union-attr]
    moved = []
    for k, n, v in zip(f.updates, updates, f.update_values, strict=True):
        state = pointers[plan.given[k]]
        if pointers[n] != state:
            if plan.buffers[n].kind in ("state", "input"):  # which may be written over before it is read
                place = entry.at("arena", places[n])
                entry.copy(f"({place})", pointers[n], v.type.nbytes)  # type: ignore[union-attr]
                pointers[n] = f"({place})"
            moved.append((state, n, v.type.nbytes))  # type: ignore[union-attr]
    for state, n, nbytes in moved:
        entry.copy(state, pointers[n], nbytes)
    return "".join(f"{line}\n" for line in entry.lines)


# --- constants --------------------------------------------------------------------------------------------------------


def _constants(entry: Statements, steps: str) -> tuple[str, str]:
    """Constants that the steps read, as they stand among the code, with the declarations of others, and the file of
    these."""
    name = entry.interface.name
    short, long = "", ""
    for k, v in enumerate(entry.constants):
        if not re.search(rf"\bconstant_{k}\b", steps):  # what is copied of it has no elements
            continue
        data, t = np.ascontiguousarray(v.attrs["value"].data).ravel(), RECORDS[v.dtype].memory
        what = f"const {c_type(v.dtype)} "
        numbers = [literal(t, x) for x in data.view(DTYPES[t]).tolist()] or ["0"]
        if data.size <= SHORT:
            short += f"static {what}constant_{k}[] = {{{', '.join(numbers)}}};\n"
            continue
        own = f"{name}_constant_{k}"
        short += f"extern {what}{own}[{data.size}];\n#define constant_{k} {own}\n"
        rows = ",\n".join(", ".join(numbers[r : r + 8]) for r in range(0, len(numbers), 8))
        long += f"{what}{own}[{data.size}] = {{\n{rows}}};\n"
    if long:
        long = (f"/* Constants of {name}.c. */\n#include <complex.h>\n#include <math.h>\n#include <stdbool.h>\n"
                f"#include <stdint.h>\n{long}")
    return short, long


__all__ = ["ABI", "Source", "export_c", "source_of", "usage"]
