"""A function with the arrays it is called on, and other functions made of its parts: what shrinking works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir import location
from symc.ir.function import Function, Hints, Input, bound_names, resized
from symc.ir.ops.leaf import GIVEN, UNCOMPUTED
from symc.ir.record import dataclass, field, replace
from symc.ir.size_values import evaluate, names, solve
from symc.ir.traverse import every_value, postorder
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value, param
from symc.tools.debugging.observe import sizes_of


@dataclass(frozen=True)
class Sample:
    """A function, arrays for its inputs, and which of them a call may overwrite."""

    function: Function
    arrays: tuple[np.ndarray, ...]
    donated: frozenset[int] = field(default_factory=frozenset)

    @property
    def size(self) -> tuple[int, ...]:
        """Measures that shrinking makes less: values, inputs, results, elements, size names, digits."""
        f = self.function
        digits = sum(len(repr(x)) for a in self.arrays for x in a.ravel()[:64].tolist())
        return (computed(f.body), len(f.inputs), len(f.body.results), len(f.updates) + len(self.donated),
                sum(a.size for a in self.arrays), len(bound_names(i.type for i in f.inputs)), digits)

    def with_results(self, results: Sequence[Value], extra: Mapping[Value, np.ndarray] | None = None) -> Sample:
        """Other results, made of the params and of free leaves with the arrays in ``extra``; without updates.

        Inputs that are not used any more are dropped; sizes that no input has any more become numbers.
        """
        f = self.function
        extra = extra or {}
        used = set(postorder(results))
        inputs = [(p, i, a) for p, i, a in zip(f.params, f.inputs, self.arrays, strict=True) if p in used]
        taken = {i.name for i in f.inputs}
        for leaf, a in extra.items():
            if leaf in used:
                name = next(f"v{k}" for k in range(len(taken) + 1) if f"v{k}" not in taken)
                taken.add(name)
                inputs.append((leaf, Input(name, leaf.type), np.asarray(a)))
        interface = [replace(i, role="arg", declared=None) for _, i, _ in inputs]
        body, hints = _close([p for p, _, _ in inputs], results, f.hints)
        g = Function(f.name, tuple(interface), body, (), hints, (), f.inside)
        kept = [f.inputs.index(i) if i in f.inputs else -1 for _, i, _ in inputs]
        donated = frozenset(k for k, old in enumerate(kept) if old in self.donated)
        return Sample(_with_numbers(g, sizes_of(f, self.arrays)), tuple(a for _, _, a in inputs), donated)

    def as_plain(self) -> Sample:
        """Without updates and donation: new states are results like any other."""
        return replace(self.with_results(self.function.body.results), donated=frozenset())

    def in_numbers(self, sizes: Mapping[str, int]) -> Sample:
        """Size names become numbers."""
        return replace(self, function=with_sizes(self.function, sizes))


def computed(region: Region) -> int:
    """The number of values that a body computes, those in loops and branches included; numbers and leaves are free."""
    return sum(v.op not in UNCOMPUTED and not _is_splat(v) for v in every_value(region))


def _is_splat(v: Value) -> bool:
    return v.op.name == "broadcast" and v.operands[0].op.name == "constant"


def _close(leaves: Sequence[Value], results: Sequence[Value], hints: Hints) -> tuple[Region, Hints]:
    """A region over leaves, and the lines of its values."""
    params = [param(k, v.type) for k, v in enumerate(leaves)]
    lines: Hints = {}
    carry = location.carrying(hints, lines)
    for v, p in zip(leaves, params, strict=True):
        carry(v, p)
    made = replace_values(results, dict(zip(leaves, params, strict=True)), carry)
    for v in postorder(made):
        if v in hints and v not in lines and v.op.name != "param":
            lines[v] = hints[v]
    return Region([v.type for v in leaves], made), lines


def _with_numbers(f: Function, sizes: Mapping[str, int]) -> Function:
    """Sizes that no input has, or only one that does not say what they are (``floordiv(n, 2)``), are numbers."""
    bound = {n for i in f.inputs for s in i.type.shape if not isinstance(s, int) and len(names(s)) == 1
             for n in names(s) if isinstance(solve(s, evaluate(s, sizes), n), int)}
    missing = {n: k for n, k in sizes.items() if n not in bound}
    return with_sizes(f, missing) if missing else f


def with_sizes(f: Function, sizes: Mapping[str, Any]) -> Function:
    """A function with size names replaced, by numbers or other sizes."""
    out = resized(f, sizes)
    return replace(out, inputs=tuple(replace(i, declared=None) for i in out.inputs))


def tensors_below(v: Value) -> list[Value]:
    """The arrays that a value is made of directly; of a part of a tuple those that the tuple is made of."""
    if v.op.name == "get":
        return tensors_below(v.operands[0])
    return [o for o in dict.fromkeys(v.operands) if isinstance(o.type, TensorType)]


def tensors(f: Function) -> list[Value]:
    """The values of the body that are arrays and are computed, operands first."""
    return [v for v in f.values() if not isinstance(v.type, TupleType) and v.op not in GIVEN
            and not _is_splat(v)]


def body_sample(region: Region, arrays: Sequence[np.ndarray], lines: Hints, inside: location.Inside,
                sizes: Mapping[str, int]) -> Sample:
    """A body as a function of its own, with numbers for the sizes that are known outside."""
    inputs = tuple(Input(f"p{k}", t) for k, t in enumerate(region.params))  # type: ignore[arg-type]
    f = with_sizes(Function("body", inputs, region, (), dict(lines), (), inside), sizes)
    return Sample(f, tuple(np.asarray(a) for a in arrays)).as_plain()


Fails = Callable[[Sample], bool]


def walk_down(s: Sample, fails: Fails) -> Sample:
    """The first value that fails, looking from the results down: it fails, and nothing that it is made of does."""
    for r in dict.fromkeys(s.function.body.results):
        one = s.with_results([r])
        if fails(one):
            return _down(one, fails)
    return s


def _down(s: Sample, fails: Fails) -> Sample:
    seen: set[bytes] = set()
    while True:
        for o in tensors_below(s.function.body.results[0]):
            if o.op in GIVEN or _is_splat(o) or o.fingerprint in seen:
                continue
            seen.add(o.fingerprint)
            below = s.with_results([o])
            if fails(below):
                s = below
                break
        else:
            return s

