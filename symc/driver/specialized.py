"""Variants of a function for some sizes (``compile(specialize=)``): in each, these sizes are constants.

Which one serves a call is told from its shapes. In native code nobody chooses: every variant, and the function for all
other sizes, refuses shapes that are not its own, and hands the call to the next (``symc.runtime.cpu.entry``).
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver.built import Built
from symc.driver.call_path import CallPath
from symc.driver.compilation import Saved
from symc.driver.function import CompiledFunction
from symc.driver.several import SeveralFunctions
from symc.driver.signature import own_out
from symc.errors import InputError, ShapeError, SymcError, did_you_mean
from symc.ir import location
from symc.ir.dim import known_equal, size_name
from symc.ir.function import Function, Guard, bound_names, resized
from symc.ir.locks import new_lock
from symc.ir.record import replace
from symc.ir.size_values import names, substitute
from symc.tensors.pytree import match
from symc.tensors.sizes import whole

#: The most variants that one function has; the sizes of a variant; makes a function of what was built.
MOST = 32
Sizes = Mapping[str, int]
Finish = Callable[..., CompiledFunction]
_HELP = 'write specialize={"n": [32, 1024]}, or a list of sizes that go together: specialize=[{"n": 32, "m": 4}]'


def read_specialize(given: Any) -> Any:
    """The option as data: the sizes of each variant. Raises InputError for what is none."""
    if not given or callable(given):  # ``short_rows``
        return given or None
    if isinstance(given, Mapping):
        choices = {name: _numbers(n if isinstance(n, Sequence) else [n], name) for name, n in given.items()}
        found = [dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())]
    elif isinstance(given, Sequence) and all(isinstance(sizes, Mapping) and sizes for sizes in given):
        found = [dict(zip(sizes, _numbers(list(sizes.values()), ""), strict=True)) for sizes in given]
    else:
        raise InputError(f"specialize must be a dict of sizes, not {given!r:.60}", help=_HELP)
    if any(not isinstance(name, str) for sizes in found for name in sizes):
        raise InputError(f"specialize: sizes are given by their names, not {next(iter(found[0]))!r}", help=_HELP)
    if len({tuple(sizes) for sizes in found}) > 1:
        raise InputError("specialize: every variant must give the same sizes", help=_HELP)
    found = [dict(items) for items in dict.fromkeys(tuple(sizes.items()) for sizes in found)]
    if len(found) > MOST:
        raise InputError(f"specialize: {len(found)} variants, of which each is compiled, are more than {MOST}",
                         help='list those that are needed: specialize=[{"n": 32, "m": 4}, ...]')
    return found


def _numbers(given: Sequence[Any], name: str) -> list[int]:
    for n in given:
        if not 0 < (whole(n) or 0) < 2**31:
            raise InputError(f"specialize: a size{f' of {name}' if name else ''} must be a positive int, not {n!r}",
                             help=_HELP)
    return [int(n) for n in given]


def specialized(built: Built, options: Mapping[str, Any], finish: Finish, saved: Saved | None,
                unasked: bool = False) -> SpecializedFunction:
    """A function with its variants. ``finish`` compiles each; ``saved`` is of the one for all other sizes, which waits
    for a call with such sizes where the variants are for those of the first call, ``unasked`` for. (One with states
    may have a prologue, and does not.)"""
    every: list[dict[str, int]] = options["specialize"]
    plain = {**options, "specialize": None}
    f = built.function
    _check(f, options)
    own = tuple(g for g in f.guards if g.least != "variant")
    variants = []
    for sizes in every:
        limit = options["max_bytes"] and [options["max_bytes"][0],
                                          {k: n for k, n in options["max_bytes"][1].items() if k not in sizes}]
        g = at_sizes(replace(f, guards=own), sizes)
        variants.append(finish(replace(built, function=g, changed=None, leaves=()), {**plain, "max_bytes": limit}))
    apart = [Guard(sum(((size_name(k) - n) * (size_name(k) - n) for k, n in sizes.items()), start=0), 1,
                   least="variant") for sizes in every]
    later = unasked and not built.cells
    generic = finish(replace(built, function=replace(f, guards=(*own, *apart))), plain, saved, later)
    return SpecializedFunction(generic, variants, options)


def _check(f: Function, options: Mapping[str, Any]) -> None:
    if options["split"]:
        raise InputError("specialize= is for one device: split= divides sizes among several")
    known = bound_names(i.declared or i.type for i in f.inputs)
    for name in options["specialize"][0]:
        if name not in known:
            raise InputError(f"specialize: {f.name} has no size {name!r}",
                             values=[(f"%{i.name}", i.declared or i.type, i.loc) for i in f.inputs],
                             help=did_you_mean(name, known))
        if name not in _places(f):
            raise InputError(f"specialize: no input has an axis of the size {name} alone",
                             values=[(f"%{i.name}", i.declared or i.type, i.loc) for i in f.inputs])


def _places(f: Function) -> dict[str, tuple[int, int]]:
    """The first axis of each size: of which input, and which."""
    found: dict[str, tuple[int, int]] = {}
    for k, i in enumerate(f.inputs):
        for axis, s in enumerate((i.declared or i.type).shape):
            found.setdefault(str(s), (k, axis))
    return found


def at_sizes(f: Function, sizes: Sizes) -> Function:
    """The function for calls with these sizes. Raises ShapeError if there are none."""
    return resized(f, sizes, _guards(f, sizes))


def _guards(f: Function, sizes: Sizes) -> tuple[Guard, ...]:
    found = []
    for g in f.guards:
        left, right = substitute(g.left, sizes), substitute(g.right, sizes)
        if isinstance(left, int) and isinstance(right, int):
            if not (left >= right if g.least else left == right):
                said = ", ".join(f"{k} = {n}" for k, n in sizes.items() if k in names(g.left) | names(g.right))
                raise ShapeError(f"specialize: with {said} no call can succeed: {g} does not hold",
                                 where=location.in_order(g.locs))
        elif g.least or known_equal(left, right) is not True:
            found.append(replace(g, left=left, right=right))
    return tuple(found)


# --- calls ------------------------------------------------------------------------------------------------------------


class SpecializedFunction(SeveralFunctions):
    """A function for all sizes with variants for some; its texts, kernels and counts are those of all.

    ``variants``: the compiled function of each, by a text such as "n = 32".
    """

    def __init__(self, generic: CompiledFunction, variants: Sequence[CompiledFunction], options: Mapping[str, Any]):
        super().__init__(generic)
        self._options = dict(options)
        every: list[dict[str, int]] = options["specialize"]
        self.variants = {_title(sizes): f for sizes, f in zip(every, variants, strict=True)}
        f = generic._built.function
        self._choice = _Choice(generic._call_path, [_places(f)[name] for name in every[0]],
                               {tuple(s.values()): v._call_path for s, v in zip(every, variants, strict=True)})
        self.__call__ = self._choice.call
        me, lock = weakref.ref(self), new_lock()

        def install(entry: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
            found = me()
            if found is not None:
                with lock:  # what is put in front hands on what it refuses
                    found.__call__ = entry(found.__call__)

        for part in (generic, *variants):
            part._call_path.install = install

    @property
    def parts(self) -> Sequence[tuple[str, CompiledFunction]]:
        return [("other sizes", self.main), *self.variants.items()]

    def _serving(self, args: tuple, kwargs: Mapping[str, Any]) -> CompiledFunction:
        calling = self._choice.chosen(args, kwargs)
        return next(f for _, f in self.parts if f._call_path is calling)

    def memory(self, /, *args: Any, **sizes: int) -> int:
        if args:
            return self._serving(args, {}).memory(*args, **sizes)
        every = self._options["specialize"]
        fit = [f for f, own in zip(self.variants.values(), every, strict=True) if own.items() <= sizes.items()]
        return fit[0].memory(**{k: n for k, n in sizes.items() if k not in every[0]}) if fit else (
            self.main.memory(**sizes))

    def profile(self, /, *args: Any, repeat: int = 5, **kwargs: Any) -> Any:
        return self._serving(args, kwargs).profile(*args, repeat=repeat, **kwargs)

    def trace(self, /, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        return self._serving(args, kwargs).trace(*args, **kwargs)

    def copy(self, swap: Any = None) -> SpecializedFunction:
        return SpecializedFunction(self.main.copy(swap), [f.copy(swap) for f in self.variants.values()], self._options)

    def __repr__(self) -> str:
        return f"{self.main!r}"[:-1] + f", variants for {', '.join(self.variants)}>"


def _title(sizes: Sizes) -> str:
    return ", ".join(f"{name} = {n}" for name, n in sizes.items())


class _Choice:
    """Choice of the function that serves a call. ``places``: inputs and axes that have the sizes in the keys of
    ``variants``."""

    def __init__(self, generic: CallPath, places: Sequence[tuple[int, int]], variants: Mapping[tuple, CallPath]):
        self.generic, self.places, self.variants = generic, tuple(places), dict(variants)
        self._arguments = generic._signature.arguments
        self._count = generic._signature.count

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.chosen(args, kwargs).call(*args, **kwargs)

    def chosen(self, args: tuple, kwargs: Mapping[str, Any]) -> CallPath:
        """Variant by the shapes alone; the one for all sizes, which says why, for what has none."""
        if "out" in kwargs and not own_out([s.name for s in self._arguments.slots], args):
            kwargs = {k: a for k, a in kwargs.items() if k != "out"}
        try:
            given = self._arguments.bind(args, kwargs)
            leaves = [leaf for slot, item in zip(self._arguments.slots, given, strict=True)
                      for leaf in (match(slot.nest, item, "") if slot.nest.kind != "leaf" else [item])]
            sizes = tuple([self._shape(leaves, k)[axis] for k, axis in self.places])
        except (SymcError, IndexError, ValueError, TypeError):
            return self.generic
        return self.variants.get(sizes, self.generic)

    def _shape(self, leaves: Sequence[Any], k: int) -> tuple[int, ...]:
        return np.shape(leaves[k] if k < self._count else self.generic._cells[k - self._count].array)
