"""Compiled CUDA code: what the compiler makes of a translation unit, what it says of it, and how that is kept on disk.

Nothing here needs a GPU or a compiler: logs and texts of theirs are read, and records packed and unpacked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from symc.errors import InternalError
from symc.ir.record import dataclass
from symc.runtime.cache import object_cache
from symc.runtime.cuda.device import Resources, Signature, check_signature

#: Changes where records are packed otherwise.
LAYOUT = "cubin 1"
#: How many lines are shown before and after one that does not compile, and how many of the messages.
AROUND, MESSAGES = 3, 5

_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.[busf](\d+)[^,\[]*(?:\[(\d+)\])?")
_MESSAGE = re.compile(r"^\S*?\((\d+)\): ((?:catastrophic )?error|warning)[^:]*: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Cubin:
    """Code for one kind of GPU. ``resources`` and ``parameters`` (their widths in bytes) by the name of the entry;
    ``warnings``: what the compiler remarked on the text, "" for nothing."""

    data: bytes
    resources: Mapping[str, Resources]
    parameters: Mapping[str, tuple[int, ...]]
    warnings: str = ""

    def check(self, signatures: Sequence[Signature]) -> None:
        """Raise where an entry is missing or has other parameters than it was declared with."""
        for s in signatures:
            if s.name not in self.resources:
                raise InternalError(f"the compiled CUDA code has no entry {s.name}")
            wrong = check_signature(s.name, s.widths, self.parameters[s.name])
            if wrong:
                raise InternalError(wrong)


def resources_of(log: str) -> dict[str, Resources]:
    """Resources of each entry as ptxas says them (``--ptxas-options=-v``)."""
    found = {}
    for part in re.split(r"Compiling entry function '", log)[1:]:
        name = part[: part.index("'")]
        own = re.split(r"Function properties for (\S+)", part)
        stack = spills = 0
        for function, text in zip(own[1::2], own[2::2], strict=True):
            if function == name:
                stack = _number(r"(\d+) bytes stack frame", text)
                spills = _number(r"(\d+) bytes spill stores", text) + _number(r"(\d+) bytes spill loads", text)
        stack = max(stack, _number(r"(\d+) bytes cumulative stack size", part))
        registers, shared = _number(r"Used (\d+) registers", part), _number(r"(\d+) bytes smem", part)
        found[name] = Resources(registers, spills, stack, shared)
    return found


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def parameters_of(ptx: str) -> dict[str, tuple[int, ...]]:
    """The widths of the parameters of each entry, as its PTX declares them."""
    return {name: tuple(_BYTES[bits] * int(count or 1) for bits, count in _PARAMETER.findall(inside))
            for name, inside in _ENTRY.findall(ptx)}


def warnings_of(log: str) -> str:
    """The part of a log that the front end wrote, and what ptxas warns of."""
    report = re.compile(r"ptxas|\s+\d+ bytes stack frame")
    lines = [x for x in log.split("\n") if not report.match(x) or "warning" in x.lower()]
    return "\n".join(lines).strip()


def error_of(text: str, log: str, what: str) -> InternalError:
    """The error for a text that does not compile: the messages, and the lines around the first that is meant."""
    meant = [(int(line), message) for line, kind, message in _MESSAGE.findall(log) if kind != "warning"]
    if not meant:
        return InternalError(f"{what}: {log.strip()}", text=_numbered(text, 1, len(text.split("\n"))))
    line = meant[0][0]
    rows = [(f"line {k}: {message}", None, None) for k, message in meant[:MESSAGES]]
    return InternalError(f"{what}: line {line}: {meant[0][1]}", values=rows[1:],
                         text=_numbered(text, line - AROUND, line + AROUND))


def _numbered(text: str, first: int, last: int) -> str:
    lines = text.split("\n")
    return "\n".join(f"{k:5} | {lines[k - 1]}" for k in range(max(first, 1), min(last, len(lines)) + 1))


# --- on disk ----------------------------------------------------------------------------------------------------------


def key(text: str, arch: str, flags: Sequence[str], version: str) -> str:
    """The name of what is kept."""
    return object_cache.key([LAYOUT, version, arch, *flags, text])


def read(name: str) -> Cubin | None:
    """The cubin kept under a name."""
    data = object_cache.read_data(name)
    if data is None:
        return None
    head, _, code = data.partition(b"\n")
    about = json.loads(head)
    return Cubin(code, {k: Resources(*r) for k, r in about["resources"].items()},
                 {k: tuple(p) for k, p in about["parameters"].items()}, about["warnings"])


def write(name: str, cubin: Cubin) -> None:
    """Keep it, where that is possible."""
    resources = {k: [r.registers, r.spills, r.stack, r.shared] for k, r in cubin.resources.items()}
    about = {"resources": resources, "parameters": cubin.parameters, "warnings": cubin.warnings}
    object_cache.write_data(name, json.dumps(about).encode() + b"\n" + cubin.data)
