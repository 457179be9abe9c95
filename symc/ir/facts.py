"""Facts that the record of an op states besides meaning, derivative and lowering, one typed field a fact.

Passes, backends, checks and tools ask the record. A list of op names elsewhere is a fact that belongs here
(``tests/ir/test_facts_have_one_place.py`` finds it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from symc.ir.dim import Size
from symc.ir.ranges import Range
from symc.ir.record import dataclass
from symc.ir.value import Value


@dataclass(frozen=True)
class CustomOp:
    """Origin of an op of a user, and how its functions see attributes.

    ``attributes`` of a call, as the graph holds them; ``shown``: as the user's functions get them. ``cuda``: the kernel
    on a device, text or a ``CudaKernel``. ``reduce``: of the op, for pickle.
    """

    module: str
    line: Any
    cuda: Any
    names: Sequence[str]
    defaults: Mapping[str, Any]
    attributes: Callable[[Mapping[str, Any]], dict[str, Any]]
    shown: Callable[[Mapping[str, Any]], dict[str, Any]]
    reduce: Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Exact:
    """The real function of an op: without rounding, overflow or signed zeros.

    ``f(mp, *operands, **attrs)`` of numbers of mpmath, which is ``mp``, or the name that it has there. ``far``: of
    numbers beyond the range of every dtype too; other functions would take more digits there than are worth it.
    """

    f: Callable[..., Any] | str
    far: bool = False


@dataclass(frozen=True)
class Monotone:
    """Values of a function that grows: those of its ends, within ``image``; nan outside of ``domain``.

    ``f`` of one number, a NumPy float64. ``zero``: it is zero at zero alone.
    """

    f: Callable[[Any], Any]
    domain: tuple[float, float] = (-math.inf, math.inf)
    image: tuple[float, float] = (-math.inf, math.inf)
    zero: bool = False


@dataclass(frozen=True)
class Between:
    """Values between two numbers, and nan of nan. ``of_inf``: nan of infinities too. ``zero``: 0 may be among them."""

    low: float
    high: float
    of_inf: bool = False
    zero: bool = True


@dataclass(frozen=True)
class Routine:
    """A function of numbers in scipy.special, that kernels call by address.

    ``name``: SciPy's. ``takes``: a letter for each operand, "d" for a double, "f" for one that is finite and "l" for an
    integer, made of a float toward zero; of infinities and nan there, and of nan here, the result is nan. An "o" at the
    end: options that are left out. ``gives``: how many results it writes, 0 if it returns one; ``which``: the one that
    is meant.
    """

    name: str
    takes: str
    gives: int = 0
    which: int = 0

    @property
    def key(self) -> str:
        """Key of it in a kernel's text, from which ``of`` makes it again."""
        return f"{self.takes}{self.gives}{self.which}_{self.name}"

    @staticmethod
    def of(key: str) -> Routine:
        """The routine of a key."""
        how, _, name = key.partition("_")
        return Routine(name, how[:-2], int(how[-2]), int(how[-1]))


#: How far a result is from the exact one of the operands as they are: not at all, but that the sign of a zero is
#: computed, on short numbers not at all, by a few units in the last place, by some of the largest number of a matrix.
Rounding = Literal["none", "zeros", "short", "each", "norm"]
#: A function of its op's name in the library of scalar functions: of few instructions, one that vectorizes, or one that
#: loops or calls another for each element. Without one (""), backends spell the op themselves.
Kernel = Literal["", "cheap", "vectorized", "scalar"]


@dataclass(eq=False)
class Facts:
    """Facts that a record states besides meaning, derivative and lowering: what passes, checks and tools ask for.

    What an op does not state is None, empty or false.

    * ``kinds``: the dtype kinds it takes. ``result``: how the dtype of the result follows (see ``ops.elementwise``).
    * ``identity(dtype)``: e with op(x, e) == x. ``numpy``: the NumPy function that gives the same.
    * ``nonempty``: it has no value for no elements. ``indices``: the first operand that is an index.
    * ``requires(v)``: what must hold for sizes, as (margin, count), see ``symc.ir.requires``; ``fits(v)``: the sizes
      that windows need, as (size, least). ``least(v)``: sizes that a call checks before, as (size, least, what for),
      see ``Guard``.
    * ``parts``, ``lower_batched``, ``lower_argmax``: ``f(v)`` is the value by other ops: for a backend that has no such
      function, for a device, for processors with vectors; None where it should stay.
    * ``element``: how a view is computed element by element, if it must be.
    * ``meets``: of a product of two operands, the elements of the result that operand k has a part in. ``f(v, k)``
      gives the axes of the operand and those of the result that correspond; ``f(v, k, places)``, where the other
      operand is zero but at these places (an array of indices an axis), positions in the result and in the operand.
    * ``batch``: one more leading axis (see ``ops.batching``). ``jvp``, ``vjp``: derivatives that the floor of
      derivatives puts in, as they are those of regions.
    * ``same``: the result is the first operand, whatever it is for otherwise.
    * ``range(v, ranges of the operands)``: the least and the greatest integer (see ``symc.ir.ranges``). ``values``: of
      floats. ``picks``: so many of the first operands have all elements of the result (a movement: the first).
      ``fact``: what else is known of the result (see ``symc.opt.facts.analysis``).
    * ``custom``: where an op of a user comes from.

    What is known of its numbers:

    * ``exact``: the real function. ``rounding``: how far from it results are. ``absolute``: up to rounding of 1, as in
      a log of a sum that is at least 1. ``bits``: it sees the bits of numbers, so wider ones are others.
    * ``keeps_zero``: f(0) is 0, of 0 for every operand; ``keeps_one``: f(1) is 1. ``poles``: its infinities are poles,
      no overflow; ``divisor``: the operand that has one at 0. ``underflow``: a zero may be underflow, of operands that
      are not zero or of any.
    * ``indeterminate``: a nan may come of two infinities, two zeros or one of each, with no nan in the operands.
    * ``in_logs``: the op that is to logs of numbers what this is to numbers. ``cubes``: its operations on a matrix are
      about so many times the third power of its size.
    * ``shifted``: it subtracts the greatest number from each. ``vectors``: which results are columns, and which rows,
      that have no sign of their own.
    * ``wild``: of numbers at random mostly nan, too large or an error.

    How it is written:

    * ``arity``: operands of an elementwise op. ``kernel``: its function in the library; ``routine``: SciPy's, if it is
      that. ``symbol``: its sign in Python.
    * ``public``: it is ``sc.NAME`` (of a reduction with ``axis``), with the record's ``doc``; NumPy has none.
    * ``part_of``: the name of the op that has this one's result as its k-th, and k.
    * ``mirror``: the comparison with its operands swapped.
    """

    kinds: str = ""
    result: str = ""
    identity: Callable[[np.dtype], Any] | None = None
    numpy: Callable[..., Any] | None = None
    nonempty: bool = False
    indices: int | None = None
    requires: Callable[[Value], Sequence[tuple[Size, Size]]] | None = None
    fits: Callable[[Value], Sequence[tuple[Size, Size]]] | None = None
    least: Callable[[Value], Iterable[tuple[Size, Size, str]]] | None = None
    parts: Callable[[Value], Value] | None = None
    lower_batched: Callable[[Value], Value | None] | None = None
    lower_argmax: Callable[[Value], Value | None] | None = None
    element: Callable[..., Value] | None = None
    meets: Callable[..., tuple[Any, Any]] | None = None
    batch: Callable[[Value, Sequence[Value], Sequence[bool], Size], Value] | None = None
    jvp: Callable[[Any, Value], Any] | None = None
    vjp: Callable[[Any, Value], Any] | None = None
    same: bool = False
    range: Callable[[Value, Sequence[Range]], Range] | None = None
    values: Monotone | Between | None = None
    picks: int = 0
    fact: Callable[..., Any] | None = None
    custom: CustomOp | None = None
    exact: Exact | None = None
    rounding: Rounding = "each"
    absolute: bool = False
    bits: bool = False
    keeps_zero: bool = False
    keeps_one: bool = False
    poles: bool = False
    divisor: int | None = None
    underflow: Literal["", "nonzero", "always"] = ""
    indeterminate: bool = False
    in_logs: Callable[..., Value] | None = None
    cubes: float = 0.0
    shifted: bool = False
    vectors: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    wild: bool = False
    arity: int = 0
    kernel: Kernel = ""
    routine: Routine | None = None
    symbol: str = ""
    public: bool = False
    part_of: tuple[str, int] | None = None
    mirror: str = ""
