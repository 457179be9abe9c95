"""Signature of a compiled function: from the arguments of a call to arrays of the right dtype and layout, and sizes.

The quick path looks at types only. Anything unusual (keywords, lists, other dtypes or layouts) takes the slow path,
where every error message is made. Code for the CPU finds sizes itself (``symc.runtime.cpu.accept``): here it is said
why they do not agree.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver.labelled import in_order, is_labelled
from symc.driver.target import HOST, Target
from symc.errors import IndexingError, InputError, ShapeError, SymcError, did_you_mean
from symc.ir import location
from symc.ir.dim import Dim, Size
from symc.ir.function import Function, Guard, Input
from symc.ir.record import dataclass, replace
from symc.ir.size_extremes import maximum
from symc.ir.size_values import evaluate, names, solve, substitute
from symc.ir.types import TensorType
from symc.tensors.pytree import LEAF, Nest, match
from symc.tensors.state import concrete, converted

#: How many tuples of shapes are remembered as accepted, of functions that run elsewhere than on the CPU.
REMEMBERED = 256
#: What is wrong where a size is less than a guard asks for, by what for (see ``Guard``).
_TOO_SMALL = {"index": "an index is out of bounds", "length": "a length is negative", "window": "a window does not fit",
              "elements": "there are too few elements", "variant": "a variant serves these sizes"}


@dataclass(frozen=True)
class Slot:
    """One argument: its name (empty if it has none), the structure of arrays it is, and perhaps a default value."""

    name: str
    nest: Nest = LEAF
    default: Any = None


def default_text(default: Any) -> str:
    """A number as it is written, another value by its type."""
    return str(default) if np.ndim(default) == 0 and not isinstance(default, dict) else "..."


def signature_of(slots: Sequence[Slot]) -> inspect.Signature:
    """The parameters of a call, for those who ask Python; ``(*args, out=None, **kwargs)`` where arguments have no names
    that Python takes."""
    kinds, plain = inspect.Parameter, True
    own = [s.name for s in slots]
    if len(set(own)) < len(own) or not all(n.isidentifier() and not keyword.iskeyword(n) for n in own) or "out" in own:
        return inspect.Signature([kinds("args", kinds.VAR_POSITIONAL), kinds("out", kinds.KEYWORD_ONLY, default=None),
                                  kinds("kwargs", kinds.VAR_KEYWORD)])
    found: list[inspect.Parameter] = []
    for s in slots:  # what has no default after what has one can be given by name only if that is left out
        late = bool(found) and (found[-1].kind is kinds.KEYWORD_ONLY or s.default is None and not plain)
        plain = plain and s.default is None
        found.append(kinds(s.name, kinds.KEYWORD_ONLY if late else kinds.POSITIONAL_OR_KEYWORD,
                           default=kinds.empty if s.default is None else _shown(s.default)))
    return inspect.Signature([*found, kinds("out", kinds.KEYWORD_ONLY, default=None)])


def _shown(default: Any) -> Any:
    return default[()] if isinstance(default, np.ndarray) else default


def own_out(names: Sequence[str], args: tuple) -> bool:
    """True if ``out=`` in a call gives an input of that name, as that is not given by position; else the buffers."""
    return "out" in names[len(args):]


class Arguments:
    """The names of the arguments of a function; ``rows`` describes every array in them for error messages."""

    def __init__(self, function: str, slots: Sequence[Slot], rows: Sequence[tuple[str, Any, Any]]):
        self.function, self.slots, self._rows = function, tuple(slots), list(rows)

    def bind(self, args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
        """One item a slot. Names and values may come as one dict, too, where the first argument is none itself."""
        alone = args[0] if len(args) == 1 and not kwargs and self.slots else None
        if isinstance(alone, Mapping) and self.slots[0].nest.kind != "dict":
            args, kwargs = (), alone
        if len(args) > len(self.slots):
            raise self._wrong(f" takes {_count(len(self.slots), 'input')}, {len(args)} were given")
        bound: list[Any] = [*args, *[_MISSING] * (len(self.slots) - len(args))]
        known = [s.name for s in self.slots]
        for name, item in kwargs.items():
            places = [k for k, n in enumerate(known) if n == name]
            if not places:
                raise self._wrong(f" has no input {name!r}", help=did_you_mean(name, [n for n in known if n]))
            if len(places) > 1:
                raise self._wrong(f" has {len(places)} inputs called {name!r}", help="give them by position")
            if bound[places[0]] is not _MISSING:
                raise self._wrong(f": input {name!r} is given twice, by position and by name", places)
            bound[places[0]] = item
        bound = [s.default if item is _MISSING and s.default is not None else item
                 for s, item in zip(self.slots, bound, strict=True)]
        missing = [k for k, item in enumerate(bound) if item is _MISSING]
        if missing:
            said = ", ".join(repr(known[k] or f"argument {k}") for k in missing)
            raise self._wrong(f": missing input{'s' if len(missing) > 1 else ''} {said}", missing)
        return bound

    def _wrong(self, what: str, slots: Sequence[int] | None = None, help: str | None = None) -> InputError:
        return InputError(self.function + what, values=self.rows(slots),
                          help=f"call it as {self.usage()}" if help is None else help)

    def usage(self) -> str:
        """``name(x, y, lr=0.1)``"""
        said = [(s.name or f"<argument {k}>") + (f"={default_text(s.default)}" if s.default is not None else "")
                for k, s in enumerate(self.slots)]
        return f"{self.function}({', '.join(said)})"

    def rows(self, slots: Sequence[int] | None = None) -> list[tuple[str, Any, Any]]:
        """Rows for the arrays of some arguments (all by default)."""
        out, at = [], 0
        for k, slot in enumerate(self.slots):
            if slots is None or k in slots:
                out += self._rows[at : at + slot.nest.count]
            at += slot.nest.count
        return out


def _example(t: TensorType) -> str:
    """An array of a type, in which sizes that have a name are 2."""
    sizes = [str(evaluate(s, dict.fromkeys(names(s), 2))) for s in t.shape]
    shape = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    return f'np.ones({shape}, "{t.dtype}")' if sizes else f"{np.ones((), t.dtype).item()}"


_MISSING = object()


class Signature:
    """The interface of one function. ``inputs``: those given in a call, then the states."""

    def __init__(
        self,
        function: str,
        slots: Sequence[Slot],
        inputs: Sequence[Input],
        guards: Sequence[Guard] = (),
        donated: frozenset[int] = frozenset(),
        target: Target = HOST,
    ):
        self.function, self.slots, self.inputs, self.guards = function, tuple(slots), tuple(inputs), tuple(guards)
        self.donated = donated
        self.count = sum(s.nest.count for s in self.slots)
        self._dtypes = [i.type.dtype for i in self.inputs[: self.count]]
        self._types = [i.declared or i.type for i in self.inputs]
        self.simple = all(s.nest.kind == "leaf" for s in self.slots)
        self._sizes: dict[tuple, dict[str, int]] = {}
        self.arguments = Arguments(function, slots, [self._row(k) for k in range(self.count)])

    def documentation(self, f: Function) -> str:
        """Text for ``help``: arguments, results, states, and a call with arrays of some sizes."""
        rows = [f"    {i.name}: {t}" for i, t in zip(self.inputs[: self.count], self._types)]
        out = [self.arguments.usage(), "", "Arguments:", *(rows or ["    none"]), "Returns:"]
        out += [f"    {v.type}" for v in f.outputs] or ["    nothing"]
        if f.updates:
            out.append(f"Updates: {', '.join(f.inputs[k].name for k in f.updates)}")
        if self.simple:
            given = [_example(t) for s, t in zip(self.slots, self._types) if s.default is None]
            out += ["", "Example:", f"    {self.function}({', '.join(given)})"]
        return "\n".join(out)

    # --- arrays -------------------------------------------------------------------------------------------------------

    def arrays(self, args: tuple, kwargs: Mapping[str, Any]) -> list[np.ndarray]:
        """The arrays of a call, in input order: contiguous, aligned, of the declared dtypes. The caller's own are kept
        where they are so already; they are never written unless donated."""
        if not kwargs and self.simple and len(args) == self.count:
            for a, d in zip(args, self._dtypes):
                if type(a) is not np.ndarray or a.dtype is not d or not a.flags.carray:
                    break
            else:
                return list(args) if not self.donated else self._protect(list(args))
        return self.any_arrays(args, kwargs)

    def any_arrays(self, args: tuple, kwargs: Mapping[str, Any]) -> list[np.ndarray]:
        """The same of whatever was given."""
        given = self.arguments.bind(args, kwargs)
        if not self.simple:
            given = [
                leaf
                for k, (slot, item) in enumerate(zip(self.slots, given, strict=True))
                for leaf in match(slot.nest, item, f"{self.function}: {slot.name or f'argument {k}'}")
            ]
        out = [self._array(k, item) for k, item in enumerate(given)]
        return out if not self.donated else self._protect(out)

    def _array(self, k: int, item: Any) -> np.ndarray:
        declared = self.inputs[k]
        label = f"{self.function}: {declared.name}"
        try:
            if is_labelled(item):
                item = in_order(item, declared.dims, label)
            array = converted(concrete(item, label), declared.type.dtype, label, listed=isinstance(item, list | tuple))
        except SymcError as e:
            e.attach([self._row(k)], ())
            raise
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned) or (k in self.donated and not flags.writeable):
            array = np.array(array, order="C", copy=True, subok=False)
        return array

    def _protect(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """A donated array that is also another argument is copied: only its own slot may be overwritten."""
        for k in self.donated:
            if any(k != j and np.may_share_memory(arrays[k], a) for j, a in enumerate(arrays)):
                arrays[k] = arrays[k].copy()
        return arrays

    # --- sizes --------------------------------------------------------------------------------------------------------

    def sizes(self, arrays: Sequence[np.ndarray]) -> dict[str, int]:
        """Numbers for the size names. Raises ShapeError when ranks, sizes or guards do not hold."""
        key = tuple([a.shape for a in arrays])
        found = self._sizes.get(key)
        if found is None:
            found = self._check(key)
            if len(self._sizes) >= REMEMBERED:
                self._sizes.clear()
            self._sizes[key] = found
        return found

    def all_sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """As ``sizes``, also for shapes that a variant serves."""
        own = object.__new__(type(self))
        own.__dict__.update(self.__dict__)
        own.guards = tuple(g for g in self.guards if g.least != "variant")
        return own._check(tuple(shapes))

    def _check(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        sizes, source = self._agreed(shapes)
        for guard in self.guards:
            self._check_guard(guard, sizes, shapes, source)
        return sizes

    def _agreed(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
        """Size names from shapes that fit the declared types, and which axis each is of."""
        for k, (t, shape) in enumerate(zip(self._types, shapes, strict=True)):
            if len(shape) != t.ndim:
                raise ShapeError(
                    f"{self.function}: {self.inputs[k].name} has {_count(t.ndim, 'axis', 'axes')}, "
                    f"an array with {len(shape)} was given",
                    values=[self._row(k, shape)],
                    help=_rank_help(t, shape),
                )
        sizes, source = self._solve(shapes)
        for k, (t, shape) in enumerate(zip(self._types, shapes, strict=True)):
            for axis, (s, have) in enumerate(zip(t.shape, shape, strict=True)):
                want = evaluate(s, sizes)
                if want != have:
                    raise self._mismatch(k, axis, s, want, shapes, source)
        return sizes, source

    def _solve(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
        """Size names from shapes, each by the first axis that determines it; and which axis that was."""
        sizes: dict[str, int] = {}
        source: dict[str, tuple[int, int]] = {}
        waiting = [
            (k, axis, s) for k, t in enumerate(self._types) for axis, s in enumerate(t.shape) if isinstance(s, Dim)
        ]
        while waiting:
            later = []
            for k, axis, s in waiting:
                unknown = sorted(names(s) - sizes.keys())
                if len(unknown) > 1:
                    later.append((k, axis, s))
                elif unknown:
                    number = solve(substitute(s, sizes), shapes[k][axis], unknown[0])
                    if not isinstance(number, int) or number < 0:
                        raise ShapeError(
                            f"{self.function}: {self._axis(k, axis, shapes)} is not {s} for any {unknown[0]}",
                            values=[self._row(k, shapes[k])],
                        )
                    sizes[unknown[0]], source[unknown[0]] = number, (k, axis)
            if len(later) == len(waiting):
                k, axis, s = later[0]
                raise ShapeError(
                    f"{self.function}: the sizes in {s} cannot be told from the arguments",
                    values=[self._row(k, shapes[k])],
                    help="declare an input that has one of them as an axis of its own",
                )
            waiting = later
        return sizes, source

    def _mismatch(
        self, k: int, axis: int, s: Size, want: int, shapes: tuple, source: Mapping[str, tuple[int, int]]
    ) -> ShapeError:
        others = list(dict.fromkeys(source[n][0] for n in sorted(names(s))))
        rows = [self._row(j, shapes[j]) for j in sorted({k, *others})]
        if not others:
            return ShapeError(
                f"{self.function}: {self._axis(k, axis, shapes)} must equal {s}",
                values=rows,
                help=f"{self.inputs[k].name} is declared {self._types[k]}",
            )
        if str(s) in source:
            other = self._axis(*source[str(s)], shapes)
            return ShapeError(
                f"{self.function}: {self._axis(k, axis, shapes)} must equal {other}",
                values=rows,
                help=f"both are declared to have the size {s}",
            )
        return ShapeError(f"{self.function}: {self._axis(k, axis, shapes)} must equal {s} = {want}", values=rows)

    def _check_guard(
        self, guard: Guard, sizes: Mapping[str, int], shapes: tuple, source: Mapping[str, tuple[int, int]]
    ) -> None:
        left, right = evaluate(guard.left, sizes), evaluate(guard.right, sizes)
        if left >= right if guard.least else left == right:
            return
        if not guard.least and guard.right == maximum(guard.left, right):
            guard = replace(guard, least="elements")
        sides = [(guard.left, left), (guard.right, right)]
        sides.sort(key=lambda side: source.get(str(side[0]), (len(shapes), 0)))
        said = [self._axis(*source[str(s)], shapes) if str(s) in source else f"{s} = {n}" if isinstance(s, Dim)
                else str(n) for s, n in sides]
        involved = sorted({source[n][0] for s, _ in sides for n in names(s)})
        kind, what, help = self._too_small(guard, left, right, source, shapes) if guard.least else (
            ShapeError, f"{said[0]} must equal {said[1]}", _help_of_unequal(sides))
        raise kind(f"{self.function}: {what}", values=[self._row(k, shapes[k]) for k in involved],
                   where=location.in_order(guard.locs), help=help)

    def _too_small(self, guard: Guard, left: int, right: int, source: Mapping[str, tuple[int, int]],
                   shapes: tuple) -> tuple[type[SymcError], str, str | None]:
        """Kind of error and text for a size that is below what a guard asks for."""
        known = source.get(str(guard.left))
        size = self._axis(*known, shapes) if known else f"{guard.left} = {left}"
        kind: type[SymcError] = IndexingError if guard.least == "index" else ShapeError
        return kind, f"{size} must be at least {right}; {_TOO_SMALL[guard.least]}", None

    # --- words --------------------------------------------------------------------------------------------------------

    def _axis(self, k: int, axis: int, shapes: Sequence[tuple[int, ...]]) -> str:
        return f"{self.inputs[k].name}.shape[{axis}] = {shapes[k][axis]}"

    def _row(self, k: int, shape: tuple[int, ...] | None = None) -> tuple[str, Any, Any]:
        i = self.inputs[k]
        what = f"argument {k}, %{i.name}" if i.role == "arg" else f"state %{i.name}"
        given = f", given {_shape(shape)}" if shape is not None else ""
        return what, f"{self._types[k]}{given}", i.loc


def _help_of_unequal(sides: Sequence[tuple[Size, int]]) -> str | None:
    if 1 in [n for _, n in sides]:
        return "a size of 1 is broadcast only where it is declared: shape=(1, ...)"
    if not all(isinstance(s, Dim) for s, _ in sides):
        return "shared variables, constants and declared sizes have fixed the other side"
    return None


def _rank_help(t: TensorType, shape: tuple[int, ...]) -> str:
    if len(shape) + 1 == t.ndim:
        return "add the missing axis: a[None] or a[..., None]"
    if len(shape) == t.ndim + 1 and 1 in shape:
        return f"drop the axis of size 1: a.squeeze({shape.index(1)})"
    return (
        f"the function was compiled for {t}; compile another one for other ranks, or use sc.jit, which does so itself"
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
