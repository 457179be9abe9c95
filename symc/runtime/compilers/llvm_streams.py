"""Stores of a large result past the cache.

A store brings its line into the cache before it changes it: a kernel that writes 80 MB reads 80 MB that nobody asked
for. A result that is larger than what the cache can keep is written with stores that do not (x86's non-temporal ones).
How large it is, and whether it lies in the memory of an operand (its lines are there then), is known when a kernel is
called; whether an address is a line's, in the loop. So a vectorized loop has both, and a test before them:

    vectors of a result ── address & %streams == 0 ?  ── yes: stores past the cache
                                                      └─ no: stores

``%streams`` is 63, a line's bytes but one, or -1, with which no address will do. LLVM vectorizes no loop with such
stores, as it asks too early whether addresses are aligned; so they are written into its text afterwards, where a group
of accesses marks what may be one. Only loops that take whole lines in a step have them: a line that is written in both
ways takes sixty times as long.

Kernels that call functions wait for arithmetic, and keep to the usual stores. So do those that write several large
results: of two streams one that was up to 512 bytes before an operand, counted in their pages, took ten times as long
(measured on Zen 3; one stream never did).
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from symc.codegen.language.syntax import every
from symc.codegen.language.typed import PARTS, Pointer, Value, width
from symc.runtime.cpu.large_results import LARGE, LINE

#: Results of fewer bytes stay in the cache: a part of the last one, as for glibc's ``memcpy``, between these.
PART, MOST = 4, 32 << 20
#: What a kernel that has such results is given more, and calls, so that it is still there when LLVM has optimized.
STREAMS, KEPT = "i64 %streams", "@streams.kept"
DECLARED = (f"declare void {KEPT}(i64) nounwind willreturn memory(inaccessiblemem: readwrite)",
            "declare void @llvm.x86.sse.sfence()")
_STORE = re.compile(r"(?P<store>  store <(?P<count>\d+) x (?P<type>\w+)> .*, ptr (?P<place>%[\w.]+)), "
                    r"align \d+, !llvm\.access\.group !\d+$")
_BITS = {"float": 32, "double": 64, "half": 16}
_PLACE = re.compile(r"  (%[\w.]+) = getelementptr (?:inbounds )?(?:nuw )?i8, ptr (%[\w.]+), i64 (-?\d+)$")
_KEPT = re.compile(rf"call void {KEPT}\(i64 ([^)]*)\)")
_BLOCK = re.compile(r"([\w.]+):")


@functools.cache
def large() -> int:
    """From how many bytes on a result is written past the cache."""
    try:
        sizes = [p.read_text() for p in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
        cache = max(int(s.strip().removesuffix("K")) << 10 for s in sizes)
    except (OSError, ValueError):
        cache = 0
    return min(max(cache // PART, LARGE), MOST)


# -- which results

class Stream(NamedTuple):
    """A result that may be written past the cache, and the lengths of the loops that write it."""

    name: str
    lengths: Sequence[str]


def stream(tree: ast.FunctionDef, units: str, operands: Mapping[str, Value]) -> Stream | None:
    """The one result of a kernel that its innermost loops write, and never read, if their lengths are arguments or
    large numbers. ``units``: the length of a loop that is run in chunks."""
    found: dict[str, list[str]] = {}
    _stores(tree.body, [], units, found)
    deepest = max(map(len, found.values()), default=0)
    (name, lengths), *others = [x for x in found.items() if len(x[1]) == deepest] or [("", [])]
    read = any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and ast.unparse(n.value) == name
               for n in every(tree))
    if others or read or not lengths or "" in lengths or name[0] != "o":
        return None
    known = all(n.isdigit() for n in lengths) and math.prod(map(int, lengths)) * size(operands[name]) < large()
    return None if known else Stream(name, lengths)


def size(pointer: Pointer) -> int:
    """The bytes of an element."""
    t = pointer.element
    return 2 * width(PARTS[t]) // 8 if t in PARTS else -(-width(t) // 8)


def _stores(body: Sequence[ast.stmt], loops: list[str], units: str, found: dict[str, list[str]]) -> None:
    for s in body:
        if isinstance(s, ast.For):
            part = isinstance(s.iter, ast.Call) and isinstance(s.iter.args[-1], ast.Call)  # of the loop around it
            _stores(s.body, [*loops, *[_length(s, units)] * (not part)], units, found)
        elif isinstance(s, ast.If | ast.While):
            _stores([*s.body, *s.orelse], [*loops, *[""] * isinstance(s, ast.While)], units, found)
        elif isinstance(s, ast.Assign | ast.AugAssign):
            target = s.targets[0] if isinstance(s, ast.Assign) else s.target
            if isinstance(target, ast.Subscript):
                name = ast.unparse(target.value)
                found[name] = [*loops, ""] if name in found or isinstance(s, ast.AugAssign) else loops


def _length(s: ast.For, units: str) -> str:
    """Number of steps of a loop; empty if that is no argument and no number."""
    assert isinstance(s.iter, ast.Call)
    start, stop = s.iter.args[:2] if len(s.iter.args) > 1 else (ast.Constant(0), s.iter.args[0])
    if isinstance(start, ast.Name):
        return units
    if isinstance(stop, ast.Name):
        return f"%{stop.id}"
    return str(stop.value) if isinstance(stop, ast.Constant) else ""


def entry(operands: Mapping[str, Value], result: Stream | None) -> str:
    """The function that takes the arguments of a kernel as 64-bit words, at an address. ``result``: what may be written
    past the cache."""
    lines, given = [], []
    for k, (name, v) in enumerate(operands.items()):
        given.append(f"{'ptr' if isinstance(v, Pointer) else 'i64'} %{name}")
        lines.append(f"%p{k} = getelementptr i64, ptr %given, i64 {k}")
        lines.append(f"%{name} = load {given[-1].split()[0]}, ptr %p{k}")
    if result is None:
        lines += [f"call void @kernel({', '.join(given)})", "ret void"]
    else:
        lines += [*_decided(operands, result), f"call void @kernel({', '.join([*given, STREAMS])})"]
        lines += ["br i1 %past, label %fence, label %left", "fence:", "call void @llvm.x86.sse.sfence()",
                  "br label %left", "left:", "ret void"]
    return "\n".join(["define void @entry(ptr %given) nounwind {", *lines, "}\n"])


def _decided(operands: Mapping[str, Value], result: Stream) -> list[str]:
    """Instructions that decide: ``%past``, and the argument of the kernel."""
    *outer, row = result.lengths
    lines = [f"%bytes0 = mul i64 {row}, {size(operands[result.name])}"]
    for k, n in enumerate(outer):
        lines.append(f"%bytes{k + 1} = mul i64 %bytes{k}, {n}")
    lines += [f"%enough = icmp uge i64 %bytes{len(outer)}, {large()}",  # and rows that share no line
              f"%shared = and i64 %bytes0, {LINE - 1 if outer else 0}", "%apart = icmp eq i64 %shared, 0",
              "%past0 = and i1 %enough, %apart"]
    others = [n for n, v in operands.items() if isinstance(v, Pointer) and n != result.name]
    for k, n in enumerate(others):
        lines += [f"%other{k} = icmp ne ptr %{result.name}, %{n}", f"%past{k + 1} = and i1 %past{k}, %other{k}"]
    lines.append(f"%past = and i1 %past{len(others)}, true")
    return [*lines, f"%streams = select i1 %past, i64 {LINE - 1}, i64 -1"]


# -- the text that LLVM has optimized

def past_cache(text: str) -> str:
    """The text with stores past the cache beside those of vectors that are marked."""
    number = 1 + max(map(int, re.findall(r"^!(\d+) =", text, re.M)), default=-1)
    editor = _Editor(f"!nontemporal !{number}")
    for line in text.splitlines():
        editor.read(line)
    return "\n".join([*editor.edited(), f"!{number} = !{{i32 1}}", ""])


class _Editor:
    """Reads the lines of an optimized module. ``_run``: stores one after the other, with addresses between."""

    def __init__(self, note: str):
        self._note = note
        self._lines: list[str] = []
        self._streams = "-1"
        self._block, self._count = "", 0
        self._run: list[re.Match[str]] = []
        self._moved: dict[str, tuple[str, int]] = {}  # an address that is so many bytes behind another
        self._last: dict[str, str] = {}  # of a block that was divided: the part where it ends

    def read(self, line: str) -> None:
        if (m := _STORE.match(line)) and _vector(m) >= 16:
            self._run.append(m)
            return
        if m := _PLACE.match(line):
            base, before = self._moved.get(m[2], (m[2], 0))
            self._moved[m[1]] = base, before + int(m[3])
        elif " = getelementptr " not in line:
            self._divide()
        if m := _BLOCK.match(line):
            self._block = m[1]
        if KEPT not in line:
            self._lines.append(line)
        elif m := _KEPT.search(line):
            self._streams = m[1]

    def _divide(self) -> None:
        """End the block with a test, and its stores in either way."""
        run, self._run = self._run, []
        if self._streams == "-1" or not run or sum(map(_vector, run)) % LINE:
            self._lines += [m[0] for m in run]
            return
        self._count += 1
        k, bases, past = self._count, dict[str, None](), []
        for m in run:
            base, before = self._moved.get(m["place"], (m["place"], 0))
            bases[m["place"] if before % _vector(m) else base] = None
            past.append(f"{m['store']}, align {_vector(m)}, {self._note}")
        on = f"  br label %on{k}"
        self._lines += [*self._test(k, list(bases)), f"past{k}:", *past, on, f"usual{k}:", *(m[0] for m in run), on,
                        f"on{k}:"]
        self._last[self._block] = f"on{k}"

    def _test(self, k: int, places: list[str]) -> list[str]:
        lines = [f"  %any{k}.0 = ptrtoint ptr {places[0]} to i64"]
        for j, p in enumerate(places[1:], 1):
            lines += [f"  %at{k}.{j} = ptrtoint ptr {p} to i64", f"  %any{k}.{j} = or i64 %any{k}.{j - 1}, %at{k}.{j}"]
        return [*lines, f"  %low{k} = and i64 %any{k}.{len(places) - 1}, {self._streams}",
                f"  %yes{k} = icmp eq i64 %low{k}, 0", f"  br i1 %yes{k}, label %past{k}, label %usual{k}"]

    def edited(self) -> list[str]:
        if not self._last:
            return self._lines
        divided = re.compile(r", %(" + "|".join(map(re.escape, self._last)) + r") \]")
        return [divided.sub(lambda m: f", %{self._last[m[1]]} ]", x) if " = phi " in x else x for x in self._lines]


def _vector(store: re.Match[str]) -> int:
    """The bytes of the vector that is stored, or a line's."""
    bits = _BITS.get(store["type"]) or int(store["type"][1:])
    return min(int(store["count"]) * bits // 8, LINE)
