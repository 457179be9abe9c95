"""``f.trace``: the intermediates of a call, by the names that the user's program gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symc.errors import InputError, did_you_mean
from symc.ir.function import Hints
from symc.ir.location import Loc, in_order
from symc.ir.ops.leaf import UNCOMPUTED
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.runtime.reference_program import ReferenceProgram
from symc.tensors.callsite import caller

_ASSIGNED = re.compile(r"^([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")


class Name(NamedTuple):
    """A name of a value: what its line assigns to, else the line; ``run``: the turn of the line that it is from, of
    ``runs``. ``shown``: among the keys of a trace, not only found by its path."""

    text: str
    loc: Loc
    run: int
    runs: int
    shown: bool

    @property
    def path(self) -> str:
        """The name below its scopes."""
        prefix = self.loc.path + "/" if self.loc.scopes and self.text != str(self.loc) else ""
        return prefix + self.text

    @property
    def parts(self) -> list[str]:
        """Scopes and functions around the value, from the outermost on."""
        return [name for name, _ in self.loc.frames if name]


class TraceKeyError(InputError, KeyError):
    """A name that no intermediate of a trace has, or several have."""


class Trace(dict[str, np.ndarray]):
    """Intermediates by name, in the order of the program. ``trace["encoder/layer2"]``: the last one that was made in
    these scopes or functions; ``trace["layer2/h"]``, ``trace["layer2/softmax"]``: what is called so there."""

    def __init__(self, arrays: Mapping[str, np.ndarray], names: Mapping[str, Name]):
        super().__init__({k: a for k, a in arrays.items() if k not in names or names[k].shown})
        self._arrays, self._names = dict(arrays), dict(names)

    def __missing__(self, key: str) -> np.ndarray:
        found = self._matching(key) if isinstance(key, str) else []
        if not found:
            hint = did_you_mean(str(key), {*self, *("/".join(n.parts) for n in self._names.values() if n.parts)})
            raise TraceKeyError(f"trace: nothing is called {key!r}", where=[caller()],
                                help=hint if len(hint) < 300 else f"{hint[:300]} ...: all are in its keys()")
        if len(found) > 1:
            raise TraceKeyError(f"trace: {len(found)} intermediates are called {key!r}", where=[caller()],
                                values=[(repr(k), None, self._names[k].loc) for k in found[:10]],
                                help="give more of the path, or one of these keys")
        return self._arrays[found[0]]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or isinstance(key, str) and len(self._matching(key)) == 1

    def get(self, key: str, default: Any = None) -> Any:  # type: ignore[override]
        try:
            return self[key]
        except KeyError:
            return default

    def __reduce__(self) -> tuple:
        return Trace, (self._arrays, self._names)

    def _matching(self, key: str) -> list[str]:
        """The keys of what a path means: a name at its end, else the last of the scope or function that it ends in."""
        *outer, last = [p for p in key.split("/") if p] or [""]
        names = {k: n for k, n in self._names.items() if n.run == n.runs - 1 and not n.loc.role}
        named = [k for k, n in names.items() if n.text == last and _within(outer, n.parts)]
        named = [k for k in named if names[k].shown] or named
        fewest = min((len(names[k].parts) for k in named), default=0)
        within = [k for k, n in names.items() if n.shown and _within([*outer, last], n.parts)]
        return within[-1:] or [k for k in named if len(names[k].parts) == fewest]


def _within(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """True if the parts of a path occur in it, in their order."""
    rest = iter(parts)
    return all(w in rest for w in wanted)


def trace(source: Any, arrays: Sequence[np.ndarray], sizes: Mapping[str, int]) -> Trace:
    """Named intermediates of a function on arrays."""
    found: dict[Value, np.ndarray] = dict(zip(source.params, arrays, strict=True))

    def keep(v: Value, result: Any, operands: list[Any]) -> None:
        if not isinstance(result, tuple | list):
            found[v] = np.array(result)

    inner = {id(hints): _names(postorder(region.results), hints) for region, hints in source.inside.items()}
    ran: dict[Name, list[np.ndarray]] = {n: [] for names in inner.values() for own in names.values() for n in own}

    def keep_within(v: Value, result: Any, operands: list[Any], hints: Hints | None) -> None:
        for name in inner.get(id(hints), {}).get(v, ()) if not isinstance(result, tuple | list) else ():
            ran[name].append(np.array(result))

    ReferenceProgram(source).run(arrays, sizes, observe=keep, within=keep_within)
    named, inside = _names(source.values(), source.hints), {n[:2] for n in ran}
    kept = {n: found[v] for v in source.values() if v in found for n in named.get(v, ()) if n[:2] not in inside}
    kept |= {n: np.stack(a) if len({x.shape for x in a}) == 1 else a[-1] for n, a in ran.items() if a}
    out = {i.name: found[p] for i, p in zip(source.inputs, source.params, strict=True)}
    keys: dict[str, Name] = {}
    for name, array in kept.items():
        key = next(k for k in _keys(name) if k not in out)
        out[key], keys[key] = array, name
    return Trace(out, keys)


def _keys(name: Name) -> Any:
    """Keys of a trace for a name, the plainest first: the last run of a line has that of the line."""
    key = name.path if name.run == name.runs - 1 else f"{name.path}[{name.run}]"
    yield key
    yield f"{key} ({name.loc})"
    chain = " < ".join(map(str, name.loc.stack))
    yield from (f"{key} ({chain})" + (f" [{k}]" if k else "") for k in range(len(chain) * 10_000))


def _names(values: Sequence[Value], hints: Hints) -> dict[Value, list[Name]]:
    """Names for values: those of the user's lines, and of the lines that called them, of which a value is the last.

    A line that runs again in the same place makes again what its last value is: the same op, at the same point.
    """
    made: dict[tuple[Loc, str], list[Value]] = {}
    last: dict[Loc, tuple[Loc, Value]] = {}  # of every line
    ends: dict[Loc, Value] = {}  # of every call of a public function
    for v in values:
        if v.op in UNCOMPUTED:
            continue
        for loc in in_order(hints.get(v, ())):
            made.setdefault((loc, v.op.name), []).append(v)
            if loc.called and not loc.role:
                ends[loc] = v
            for k, line in enumerate(loc.stack[: 1 if loc.role else None]):
                if line.outer is not None and (line.file, line.line) == (line.outer.file, line.outer.line):
                    continue  # a lambda on its caller's line
                scopes = tuple(s for s in loc.scopes if not k or s[1] <= len(line.stack))
                last[Loc(line.file, line.line, line.role, line.function, line.outer, scopes=scopes)] = (loc, v)
    out: dict[Value, list[Name]] = {}
    for line, (loc, v) in last.items():
        match = None if line.role else _ASSIGNED.match(line.text)
        if match or line.file == loc.file and line.line == loc.line:
            runs = [v] if line.role else made[loc, v.op.name]
            for k, u in enumerate(runs):
                out.setdefault(u, []).append(Name(match[1] if match else str(line), line, k, len(runs), True))
    for loc, v in ends.items():
        out.setdefault(v, []).append(Name(loc.called, loc, 0, 1, False))
    return out
