"""Functions of sizes that are data: ``x[mask]``, ``x[:n]``, ``arange(n)``, where ``n`` is a value.

Such a function is a chain of ordinary ones. Those in front compute sizes, and hand on what the later ones need of
their values (*handed on*: whatever is not as quickly computed again); in those behind, the sizes are sizes like any
other, those of further arguments without elements. Nothing else in the compiler knows sizes that are data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from symc.driver.build import build, output_of
from symc.driver.built import Built
from symc.driver.function import CompiledFunction
from symc.driver.several import SeveralFunctions
from symc.driver.signature import Slot, own_out, signature_of
from symc.errors import InputError, ShapeError, SymcError
from symc.ir import location
from symc.ir.dim import Measured, size_name
from symc.ir.function import measured_names, mentioned_names
from symc.ir.location import Loc
from symc.ir.ops.kernel import projection
from symc.ir.record import dataclass
from symc.ir.traverse import free_inputs, postorder, with_inner
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.tensors.callsite import caller
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.pytree import flatten, unflatten
from symc.tensors.state import SharedVariable
from symc.tensors.tensor import Tensor
from symc.transforms.substitution import pairs, substituted

#: Makes a compiled function of what was built.
Finish = Callable[[Built, Mapping[str, Any]], Any]


def compile_measured(outputs: Any, inputs: Any, updates: Any, givens: Any, donate: Any, options: Mapping[str, Any],
                     loc: Loc, finish: Finish) -> MeasuredFunction | None:
    """A function of sizes that are data; None for values that need none."""
    chain = chain_of(outputs, inputs, updates, givens, donate, options, loc, finish)
    return None if chain is None else MeasuredFunction(*chain)


def chain_of(outputs: Any, inputs: Any, updates: Any, givens: Any, donate: Any, options: Mapping[str, Any],
             loc: Loc, finish: Finish) -> tuple[Any, tuple[Stage, ...], tuple[Slot, ...]] | None:
    """The result of ``finish`` for the last function of a chain, the stages in front of it, and the arguments."""
    with location.at((loc,)):
        leaves, nest = flatten(outputs)
        targets = [t for t, _ in pairs(updates, "updates")]
        changes = [output_of(v, "") for _, v in pairs(updates, "updates")]
        roots = [*[output_of(x, p) for x, p in zip(leaves, nest.paths(), strict=True)], *changes]
        known = measured_names(roots)
        done = substituted([*roots, *[n.value for n in known]], givens)
        roots, numbers = done[:len(roots)], dict(zip(known, done[len(roots):], strict=True))
        numbers.update((n, n.value) for n in measured_names(done) if n not in numbers)
        if not numbers:
            return None
    _check_options(options, loc)
    _check_steps(numbers)
    chain = _Chain(numbers, options, loc, finish)
    chain.find_inputs(inputs, [*roots, *numbers.values()])
    while len(chain.known) < len(numbers):
        roots = chain.measure(roots)
    results = list(map(Tensor, roots))
    main = chain.compiled(unflatten(nest, results[:len(leaves)]), list(zip(targets, results[len(leaves):])), donate,
                          specialize=None if callable(options["specialize"]) else options["specialize"])
    return main, tuple(chain.stages), chain.slots


def _check_options(options: Mapping[str, Any], loc: Loc) -> None:
    for name, plain in (("max_bytes", None), ("split", ())):
        if options[name] != plain:
            raise InputError(f"{name}= needs sizes that are known before a call, and some are data", where=[loc],
                             help="leave it out, or give the sizes as numbers")


def _check_steps(numbers: Mapping[Measured, Value]) -> None:
    """Raise InputError for a size that is another in every step of a loop, or for every entry of a batch."""
    for n, v in numbers.items():
        inner = next((u for u in free_inputs([v]) if leaf_of(u).role == "body"), None)
        if inner is not None:
            raise InputError(f"a size depends on {leaf_of(inner).name}: it would be another in every step of the loop, "
                             "or for every entry of the batch", values=[Tensor(inner).describe()],
                             where=location.in_order(n.where),
                             help="sc.where(mask, x, 0) keeps the shape; sizes may depend on what is made outside")


class _Chain:
    """A chain being made. ``numbers``: the values that the sizes are; ``known``: those that some function computes."""

    def __init__(self, numbers: dict[Measured, Value], options: Mapping[str, Any], loc: Loc, finish: Finish):
        self._numbers, self._options, self._loc, self._finish = numbers, dict(options), loc, finish
        self.known: list[Measured] = []
        self.stages: list[Stage] = []
        self.slots: tuple[Slot, ...] = ()
        self._inputs: list[Tensor] = []

    def find_inputs(self, inputs: Any, every: Sequence[Value]) -> None:
        """The arguments of a call: those of a function that computes everything, given the sizes."""
        sizes = [self._size_leaf(k, n) for k, n in enumerate(self._numbers)]
        if isinstance(inputs, Mapping):
            inputs = {**inputs, **{f"?{k}": n for k, n in enumerate(sizes)}}
        elif inputs is not None:
            inputs = [*([inputs] if isinstance(inputs, Tensor) else inputs), *sizes]
        built = build(list(map(Tensor, every)), inputs, None, None, (), self._options["name"], self._loc, sizes)
        own, at, slots = {s.value for s in sizes}, 0, []
        for slot in built.slots:
            taken = built.leaves[at:at + slot.nest.count]
            at += slot.nest.count
            if not own.intersection(taken):
                slots.append(slot)
                self._inputs += map(Tensor, taken)
        self.slots = tuple(slots)

    def measure(self, roots: Sequence[Value]) -> list[Value]:
        """Add the function that computes all sizes that can be known now. The roots, with what it hands on as inputs.
        """
        ready = [n for n, v in self._numbers.items() if n not in self.known and not self._missing(v)]
        assert ready, "sizes that need each other"
        left = [n for n in self._numbers if n not in self.known and n not in ready]
        numbers = [self._numbers[n] for n in ready]
        later = [*roots, *[self._numbers[n] for n in left]]
        values = handed_on(later, numbers)
        compiled = self.compiled(list(map(Tensor, [*numbers, *values])))
        self.stages.append(Stage(compiled, len(numbers), tuple(location.in_order(n.where) for n in ready)))
        first = len(self._inputs)
        leaves = {v: register_leaf(fresh_input(v.type), Leaf(f"v{first + k}", self._loc))
                  for k, v in enumerate(values, len(ready))}
        self._inputs += [self._size_leaf(len(self.known) + k, n) for k, n in enumerate(ready)]
        self._inputs += map(Tensor, leaves.values())
        self.known += ready
        later = replace_values(later, leaves, location.move)
        self._numbers.update(zip(left, later[len(roots):], strict=True))
        return later[:len(roots)]

    def _missing(self, v: Value) -> bool:
        return any(isinstance(n, Measured) and n not in self.known for n in mentioned_names(with_inner(postorder([v]))))

    def _size_leaf(self, k: int, name: Measured) -> Tensor:
        return Tensor(register_leaf(fresh_input(TensorType("bool", (size_name(name), 0))), Leaf(f"u{k}", self._loc)))

    def compiled(self, outputs: Any, updates: Any = None, donate: Any = (), specialize: Any = None) -> Any:
        """A function of all that is known so far."""
        built = build(outputs, self._inputs, updates, None, donate, self._options["name"], self._loc)
        return self._finish(built, {**self._options, "specialize": specialize})


def handed_on(later: Sequence[Value], early: Sequence[Value]) -> list[Value]:
    """The values that ``early`` ones are made of which ``later`` ones need, too, and should not compute again."""
    made = set(postorder(early))
    again: dict[Value, bool] = {}
    for v in postorder(early):
        again[v] = not v.operands or bool({"elementwise", "movement"} & v.op.traits) and all(
            again[o] for o in v.operands)
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    pending = list(later)
    while pending:
        v = pending.pop()
        if v in seen:
            continue
        seen.add(v)
        of, _ = projection(v)
        if of in made and not again[of]:
            found[v] = None
        else:
            pending += v.operands
    return [v for v in postorder(later) if v in found]


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """A function whose first ``sizes`` results are sizes, of which ``where`` has the users' lines; it hands on the
    others."""

    function: CompiledFunction
    sizes: int
    where: tuple[Any, ...]

    def extended(self, arrays: list[Any]) -> list[Any]:
        """The arguments of the next function. Raises ShapeError for a size that is negative."""
        found = self.function(*arrays)
        for k in range(self.sizes):
            n = int(found[k])
            if n < 0:
                raise ShapeError(f"{self.function.name}: the size {n} is negative", where=self.where[k])
            found[k] = np.empty((n, 0), np.bool_)
        return arrays + found


class MeasuredFunction(SeveralFunctions):
    """The last function of a chain, called with what those in front compute. Its tools show all of them."""

    def __init__(self, main: CompiledFunction, chain: tuple[Stage, ...], slots: tuple[Slot, ...]):
        super().__init__(main)
        self.chain, self.slots = chain, slots
        count = sum(s.nest.count for s in slots)
        given = self._built.function.inputs[:count]
        self._given = type(main._signature)(main.name, slots, given, (), frozenset(), main._target)
        self._names = [s.name for s in slots]
        cells = {c for f in (*(s.function for s in chain), main) for c in f._cells} if any(
            s.function._cells for s in chain) else ()
        self._locked = sorted(cells, key=lambda c: c.serial)
        self.__call__ = self._call
        self.__signature__ = signature_of(slots)

    def extended(self, arrays: list[Any]) -> list[Any]:
        """The arguments of the last function, given the arrays of a call."""
        return self._stepped(arrays)[-1]

    def _stepped(self, arrays: list[Any]) -> list[list[Any]]:
        """The arguments of every function."""
        found = [arrays]
        for stage in self.chain:
            found.append(stage.extended(found[-1]))
        return found

    def _extended(self, args: tuple, kwargs: Mapping[str, Any]) -> list[list[Any]]:
        return self._stepped(self._given.arrays(args, kwargs))

    def _call(self, /, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and own_out(self._names, args):
            kwargs, out = {**kwargs, "out": out}, None
        try:
            with ExitStack() as held:
                for cell in self._locked:
                    cell.settle()
                for cell in self._locked:  # between the functions no state changes
                    held.enter_context(cell.lock)
                    cell.disclaim()
                arrays = self.extended(self._given.arrays(args, kwargs))
                if out is None:  # native code takes no keyword
                    return self.main(*arrays)
                return self.main(*arrays, out=out)
        except SymcError as e:
            e.attach((), (caller(),))
            raise

    @property
    def parts(self) -> Sequence[tuple[str, CompiledFunction]]:
        found, first = [], 0
        for s in self.chain:
            names = ", ".join(f"u{k}" for k in range(first, first + s.sizes))
            found.append((f"the size{'s' if s.sizes > 1 else ''} {names}", s.function))
            first += s.sizes
        return [*found, ("with these sizes", self.main)]

    @property
    def inputs(self) -> tuple:
        return self.main.inputs[:len(self._given.inputs)]

    def memory(self, /, *args: Any, **sizes: int) -> int:
        """Peak bytes of the function that takes most; what a call holds between them is given to later ones."""
        if not args:
            return self.main.memory(**sizes)
        each = zip(self.parts, self._extended(args, {}), strict=True)
        return max((f.memory(*arrays) for (_, f), arrays in each), key=int)

    def trace(self, /, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for (_, f), arrays in zip(self.parts, self._extended(args, kwargs), strict=True):
            found |= f.trace(*arrays)
        return found

    def save_repro(self, path: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A script that repeats a call of the last function, with the sizes that those in front compute."""
        return self.main.save_repro(path, *(self._extended(args, kwargs)[-1] if args or kwargs else ()))

    def profile(self, /, *args: Any, repeat: int = 5, **kwargs: Any) -> Any:
        each = zip(self.parts, self._extended(args, kwargs), strict=True)
        first, *later = [f.profile(*arrays, repeat=repeat) for (_, f), arrays in each]
        return first.followed_by(later)

    def copy(self, swap: Mapping[SharedVariable, SharedVariable] | None = None) -> MeasuredFunction:
        def own(f: CompiledFunction) -> CompiledFunction:
            return f.copy({k: v for k, v in (swap or {}).items() if f is self.main or k.cell in f._cells})
        chain = tuple(Stage(own(s.function), s.sizes, s.where) for s in self.chain)
        return MeasuredFunction(own(self.main), chain, self.slots)

    def __reduce__(self) -> Any:
        return MeasuredFunction, (self.main, self.chain, self.slots)

    def __dask_tokenize__(self) -> Any:
        return [part.__dask_tokenize__() for _, part in self.parts]

    def __repr__(self) -> str:
        return f"<compiled {self._given.arguments.usage()}, {len(self.parts)} functions of sizes that are data>"
