"""The graph that other systems are given, and the walk over it: every value is spelled, or taken apart until it is.

What is exported is the user's program after rewriting, before anything is fused: pure ops, loops and branches. A target
spells as few ops as it likes; the rest is what their records, or ``symc.export.parts``, say they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from symc.errors import ExportError
from symc.export.parts import parts_of
from symc.export.sizes import solved
from symc.ir import location
from symc.ir.dim import Dim, Size
from symc.ir.function import Function
from symc.ir.ops.arithmetic import pow_
from symc.ir.ops.leaf import array, constant, get
from symc.ir.record import replace
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value
from symc.opt import optimize
from symc.tensors.callsite import caller

#: Rewriting that makes programs smaller or more accurate, in ops that have names; nothing here is for a backend.
PIPELINE = ("inline,canonicalize,fold,stabilize,reverse_loops,merge_scans,last_state,dead_loop,hoist,simplify,"
            "forget_assumptions,simplify,open_blocks,canonicalize")
_COMPLEX = "complex numbers", "export the real and imaginary parts"


def pure(f: Any, what: str) -> Function:
    """The function that is exported. Raises ExportError for what is none of one graph."""
    compilation = getattr(f, "_compilation", None)
    if compilation is None or hasattr(f, "chain"):
        raise ExportError(f"{what}: {getattr(f, 'name', 'the function')} is not one graph",
                         where=[caller()], help="sizes that are data, and types that a call gives, cannot be exported; "
                                                "compile a function of inputs with dtypes and shapes")
    source: Function = compilation.source
    made = optimize(source, PIPELINE).function
    return replace(made, inputs=source.inputs, guards=source.guards)


class Walk:
    """A walk over a function. ``known`` is what values are called in the body under way.

    A target's ``spelled(walk, v)`` gives that (a list for several results) for a value whose operands are known, or
    None for an op to be taken apart.
    """

    target = ""

    def __init__(self, f: Function, spelled: Callable[..., Any]):
        self.f, self.hints, self._spelled = f, f.hints, spelled
        self.known: dict[Value, Any] = {}
        self._under: list[Value] = []
        for i in f.inputs:
            if i.type.dtype.kind == "c":
                raise self.refused(*_COMPLEX, where=[i.loc] if i.loc else ())

    def value(self, v: Value) -> Any:
        """The name of a value, spelled now if it is new."""
        for x in postorder([v], stop=self.known.__contains__):
            if x not in self.known:
                self._under.append(x)
                self.known[x] = self._new(x)
                self._under.pop()
        return self.known[v]

    def _new(self, v: Value) -> Any:
        if v.op is get:
            return self.known[v.operands[0]][v.attrs["index"]]
        if any(isinstance(o.type, TensorType) and o.dtype.kind == "c" for o in (v, *v.operands)):
            raise self.refused(*_COMPLEX)
        if isinstance(v.type, TensorType) and 0 in v.shape and v.op is not constant and all(
                isinstance(n, int) for n in v.shape):  # whatever it is computed of
            return self.value(array(np.empty(v.shape, v.dtype)))
        if v.op is pow_ and v.dtype.kind != "f":
            raise self.refused("powers of integers", help="cast to float64, or multiply")
        found = self._spelled(self, v)
        if found is not None:
            return found
        parts = parts_of(v)
        if parts is None:
            raise self.refused(f"the op {v.op.name}")
        return [self.value(p) for p in parts] if isinstance(parts, list) else self.value(parts)

    def names(self, v: Value) -> list[Any]:
        """The names of the operands."""
        return [self.known[o] for o in v.operands]

    def within(self, region: Region, called: Sequence[Any]) -> list[Any]:
        """The results of a region, spelled here."""
        with self.body(region, called):
            return [self.value(r) for r in region.results]

    def refused(self, what: str, help: str = "", where: Iterable[Any] = ()) -> ExportError:
        """The error for something that the target does not have, with the user's line."""
        where = where or next((self.hints[v] for v in self._under if self.hints.get(v)), location.NOWHERE)
        rows = [(self._under[-1].op.name, self._under[-1].type, None)] if self._under else ()
        return ExportError(f"{self.f.name} cannot be exported: {self.target} has no form of {what}", values=rows,
                           where=location.in_order(where), help=help or "docs/exporting.md says what can be exported")

    @contextmanager
    def body(self, region: Region, called: Sequence[Any]) -> Iterator[None]:
        """Within it, values are those of a region whose params are called so."""
        before = self.known, self.hints, self._under
        outer = next((h for h in (self.hints.get(v) for v in self._under) if h), location.NOWHERE)
        self.known = dict(zip(region_params(region), called, strict=True))
        self.hints = {**dict.fromkeys(region.values, outer), **self.f.inside.get(region, {})}
        self._under = []
        try:
            yield
        finally:
            self.known, self.hints, self._under = before


class Sized(Walk):
    """A walk in which sizes are computed too: from those of inputs, before everything else, where every body sees them.

    A target says how: ``ints``, ``int_op``, ``axis_size`` and ``joined``, of i64 with one axis.
    """

    def __init__(self, f: Function, spelled: Callable[..., Any]):
        super().__init__(f, spelled)
        self.nodes: list[Any] = []  # of the body under way
        self.first: list[Any] = []  # of the outermost graph, before all others
        self._sizes: dict[Any, str] = {}
        self._where = solved([i.type.shape for i in f.inputs])

    def ints(self, *numbers: int) -> str:
        """Numbers."""
        raise NotImplementedError

    def int_op(self, fn: str, a: str, b: str) -> str:
        """A sum, difference, product, quotient (toward zero), remainder (of the divisor's sign) or extreme."""
        raise NotImplementedError

    def axis_size(self, k: int, axis: int) -> str:
        """The size of an axis of an input."""
        raise NotImplementedError

    def joined(self, parts: Sequence[str]) -> str:
        """Numbers one after another."""
        raise NotImplementedError

    def dim(self, s: Size) -> str:
        """A size."""
        return self._once(s, lambda: self._polynomial(s)) if isinstance(s, Dim) else self.ints(s)

    def shape(self, sizes: Sequence[Size]) -> str:
        """Sizes, one after another."""
        if all(isinstance(s, int) for s in sizes):
            return self.ints(*sizes)  # type: ignore[arg-type]
        return self.dim(sizes[0]) if len(sizes) == 1 else (
            self._once(tuple(sizes), lambda: self.joined([self.dim(s) for s in sizes])))

    def _once(self, key: Any, make: Callable[[], str]) -> str:
        if key not in self._sizes:
            before, self.nodes = self.nodes, self.first
            try:
                self._sizes[key] = make()
            finally:
                self.nodes = before
        return self._sizes[key]

    def _polynomial(self, s: Dim) -> str:
        terms = []
        for monomial, c in s.terms:
            factors = [self._once(("atom", atom), lambda: self._atom(atom))  # noqa: B023 - it is called at once
                       for atom, power in monomial for _ in range(power)]
            factors += [self.ints(c)] if c != 1 or not factors else []
            terms.append(reduce(lambda a, b: self.int_op("mul", a, b), factors))
        return reduce(lambda a, b: self.int_op("add", a, b), terms)

    def _atom(self, atom: Any) -> str:
        if not isinstance(atom, str):
            a, b = map(self.dim, atom.args)
            return self.int_op(atom.fn, a, b) if atom.fn != "floordiv" else (
                self.int_op("div", self.int_op("sub", a, self.int_op("mod", a, b)), b))
        if atom not in self._where:
            raise self.refused(f"the size {atom}, which no axis of an input has by itself")
        k, axis, factor, rest = self._where[atom]
        found = self.axis_size(k, axis)
        found = found if rest == 0 else self.int_op("sub", found, self.dim(rest))
        return found if factor == 1 else self.int_op("div", found, self.dim(factor))


__all__ = ["PIPELINE", "Sized", "Walk", "pure"]
