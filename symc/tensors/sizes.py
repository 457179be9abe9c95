"""Sizes as users meet them: entries of ``x.shape`` that are not numbers.

A ``SymbolicSize`` is a size of the IR (``Dim``) with the manners of a Python int: arithmetic with ints and sizes gives
sizes, anything else makes it data (an i64 scalar that takes part in promotion like a Python int). Asking for a shape
never computes data.
"""

from __future__ import annotations

import operator
import re
import weakref
from collections.abc import Callable, Sequence
from numbers import Integral, Number
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError, SymbolicValueError, SymcError, of_handler
from symc.ir import location
from symc.ir.dim import Dim, Size, known_equal, known_nonnegative, measured_size, size_name
from symc.ir.dtypes import DTYPES
from symc.ir.op import lookup
from symc.ir.ranges import UNKNOWN, Range
from symc.ir.size_values import LARGEST, evaluate, names
from symc.ir.value import Value
from symc.tensors.callsite import active, caller
from symc.tensors.constants import known_array
from symc.tensors.public import API, PROTOCOLS, located


def _arithmetic(
    fn: Callable[[Size, Size], Any] | None, function: str, reflected: bool = False
) -> Callable[[Any, Any], Any]:
    """An operator: ``fn`` on sizes, else the function of that name on data."""
    def call(self: SymbolicSize, other: Any) -> Any:
        if isinstance(other, list | tuple | str):
            return NotImplemented  # as of an int: Python repeats sequences itself
        a, b = self.dim, size_of(other)
        if b is not None and fn is not None:
            return user_size(fn(b, a) if reflected else fn(a, b))
        return API[function](other, self) if reflected else API[function](self, other)
    return located(call)


#: What a comparison asks, by the function that compares data.
ASKS = {"equal": "equals", "less": "is less than", "greater_equal": "is at least", "greater": "is greater than",
        "less_equal": "is at most"}  # fmt: skip
_ANSWERS = {"equal": operator.eq, "less": operator.lt, "greater_equal": operator.ge, "greater": operator.gt,
            "less_equal": operator.le}  # fmt: skip


def _comparison(function: str, decide: Callable[[Size, Size], bool | None]) -> Callable[[Any, Any], Any]:
    def call(self: SymbolicSize, other: Any) -> Any:
        b = size_of(other)
        return API[function](self, other) if b is None else _known(self.dim, function, b, decide)
    return located(call)


def _known(a: Size, function: str, b: Size, decide: Callable[[Size, Size], bool | None]) -> bool:
    """The answer that holds for all sizes, or, in a trace, for the sizes of the call. Raises SymbolicValueError where
    it depends on them."""
    answer, scope = decide(a, b), active()
    if answer is None and scope is not None:
        compare = _ANSWERS[function]
        answer = scope.trace.ask(
            (function, a, b), lambda sizes: compare(evaluate(a, sizes), evaluate(b, sizes)),
            f"whether {a} {ASKS[function]} {b}", caller())
    if answer is None:
        raise SymbolicValueError(
            f"whether the size {a} {ASKS[function]} {b} is not known while the graph is built",
            where=[caller()],
            help=f"to choose in a call: sc.where or sc.cond on sc.{function}({a}, {b}); to know it now: declare sizes "
            "as numbers, or by one name where they are the same: sc.input(name, dtype, shape=('n', 3)); a function "
            "under sc.jit is answered for the sizes of each call",
        )
    return answer


def _integer(item: Any) -> Size | None:
    """The operand of ``==`` as a size: sizes, and numbers that are integers (True and 2.0, too)."""
    if isinstance(item, Number) and not isinstance(item, Integral):
        try:
            whole = int(item.real)  # type: ignore[attr-defined]
        except (ValueError, OverflowError):  # nan and infinities
            return None
        return whole if whole == item else None
    return int(item) if isinstance(item, bool) else size_of(item)


def _power(a: Size, b: Size) -> Any:
    if not isinstance(b, int) or b < 0:
        raise SymbolicValueError(
            f"the size {a} to the power {b} is no size", help="convert it first: sc.asarray(n) ** k"
        )
    out: Size = 1
    for _ in range(b):
        out = out * a
    return out


def _less(a: Size, b: Size) -> bool | None:
    if known_nonnegative(b - a - 1):
        return True
    return False if known_nonnegative(a - b) else None


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


class SymbolicSize:
    """A size that is not known while the graph is built.

    A comparison answers where the answer is the same for all sizes, and raises where it depends on them. So sizes are
    no keys of dicts and sets, which would say "another" of what may be equal. While a function is traced for a call,
    the sizes of the call answer, and the compiled variant is for all calls with these answers.
    """

    __slots__ = ("dim",)
    __array_priority__ = 1500

    def __init__(self, dim: Dim):
        self.dim = dim

    def __repr__(self) -> str:
        return str(self.dim)

    def __hash__(self) -> int:
        number = known_number(self.dim)
        if number is not None:
            return hash(number)
        raise SymbolicValueError(
            f"the size {self.dim} is no key: whether it equals another is not known while the graph is built",
            where=[caller()],
            help="str(n) is a key; to choose by the number in a call: sc.where or sc.cond",
        )

    def __eq__(self, other: object) -> bool:
        b = _integer(other)
        if b is None:  # data compares element by element, anything else is another thing
            return False if isinstance(other, Number) else NotImplemented
        return _known(self.dim, "equal", b, known_equal)

    def __bool__(self) -> bool:
        return not _known(self.dim, "equal", 0, known_equal)

    def __index__(self) -> int:
        number = known_number(self.dim)
        if number is None:
            raise self._unknown("the number")
        return number

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def _unknown(self, what: str) -> SymbolicValueError:
        return SymbolicValueError(
            f"{what} of the size {self.dim} is not known while the graph is built",
            where=[caller()],
            help="use the size itself in shapes and arithmetic, sc.arange(n) or sc.scan instead of range(n), "
            "and sc.where or sc.cond to choose; a function under sc.jit is traced for each number that it asks for",
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return PROTOCOLS["ufunc"](ufunc, method, inputs, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(self.__index__())

    # --- operators ----------------------------------------------------------------------------------------------------

    __add__, __radd__ = _arithmetic(operator.add, "add"), _arithmetic(operator.add, "add", reflected=True)
    __sub__, __rsub__ = _arithmetic(operator.sub, "subtract"), _arithmetic(operator.sub, "subtract", reflected=True)
    __mul__, __rmul__ = _arithmetic(operator.mul, "multiply"), _arithmetic(operator.mul, "multiply", reflected=True)
    __floordiv__, __rfloordiv__ = (
        _arithmetic(operator.floordiv, "floor_divide"),
        _arithmetic(operator.floordiv, "floor_divide", reflected=True),
    )
    __mod__, __rmod__ = _arithmetic(operator.mod, "remainder"), _arithmetic(operator.mod, "remainder", reflected=True)
    __pow__, __rpow__ = _arithmetic(_power, "power"), _arithmetic(_power, "power", reflected=True)
    __truediv__, __rtruediv__ = _arithmetic(None, "true_divide"), _arithmetic(None, "true_divide", reflected=True)
    __lt__ = _comparison("less", _less)
    __ge__ = _comparison("greater_equal", lambda a, b: _not(_less(a, b)))
    __gt__ = _comparison("greater", lambda a, b: _less(b, a))
    __le__ = _comparison("less_equal", lambda a, b: _not(_less(b, a)))

    def __neg__(self) -> Any:
        return user_size(-self.dim)

    def __pos__(self) -> SymbolicSize:
        return self


def known_number(size: Size, otherwise: Any = None) -> Any:
    """The number that a size is in the call that is traced, for which the variant is; else ``otherwise``."""
    if isinstance(size, int):
        return size
    scope = active()
    answer = None if scope is None else scope.trace.number(size, caller())
    return otherwise if answer is None else answer


def size_of(item: Any) -> Size | None:
    """The IR size that a Python or NumPy integer or a SymbolicSize is, else None."""
    if isinstance(item, SymbolicSize):
        return item.dim
    if isinstance(item, bool):
        return None
    if isinstance(item, int):
        return item
    if isinstance(item, Dim):
        return item
    try:
        return operator.index(item)
    except Exception as e:  # a tensor or anything else that is no integer says so in its own words
        if of_handler(e):
            raise
        return None


def whole(item: Any) -> int | None:
    """The number that an integer of Python or NumPy is, also in an array without axes; else None."""
    n = size_of(item)
    return n if isinstance(n, int) else None


def integer(item: Any, what: str, error: type[SymcError] = InputError) -> int:
    """The number that an integer of Python or NumPy is, or a size that is known. Raises an error for anything else."""
    try:
        if not isinstance(item, bool):
            return operator.index(item)
    except TypeError as e:
        if isinstance(e, SymcError):  # a size that is not known
            raise
    raise error(f"{what} is an int, not {item!r:.60}")


def entries(given: Any) -> tuple[Any, ...]:
    """The items of a shape or of other numbers for axes: of a sequence or vector, or one that is alone."""
    return tuple(given) if holds_entries(given) else (given,)


def holds_entries(given: Any) -> bool:
    """True of lists, tuples, ranges and arrays with axes."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes) or bool(getattr(given, "ndim", 0))


def named_size(item: Any, what: str) -> Size:
    """As ``as_size``, where a string names a size: in the shapes of inputs, which give the names their numbers.

    Raises InputError for a string that is no identifier.
    """
    if not isinstance(item, str):
        return as_size(item, what)
    if not re.fullmatch(r"[^\W\d]\w*", item):  # those that text can hold
        raise InputError(f"{what}: {item!r} cannot name a size", where=[caller()],
                         help="use a Python identifier, such as 'n'")
    return size_name(item)


def as_size(item: Any, what: str = "a size") -> Size:
    """The IR size for an int or a SymbolicSize. Raises ShapeError for anything else."""
    value = getattr(item, "value", None)
    size = size_of_value(value) if isinstance(value, Value) else size_of(item)
    if size is None:
        raise ShapeError(f"{what} must be an integer or a size, not {item!r}",
                         help="sizes come from x.shape, from the names in sc.input(name, dtype, shape=('n', 3)), or "
                         "are integer scalars: n.astype('int64')")
    if isinstance(size, int) and abs(size) > LARGEST:
        raise ShapeError(f"{what}, {size}, does not fit in 64 bits")
    return size


def size_of_value(value: Value) -> Size | None:
    """The size that an integer scalar is: a formula of sizes where it is made of them alone, else one that is data,
    the same for the same value. None for anything else."""
    if value.type.shape or value.dtype.kind not in "iu":
        return None
    known = formula_of(value)
    if known is not None:
        return known
    data = known_array(value)
    if data is not None:
        return int(data)
    name = name_ref() if (name_ref := _measured.get(value)) is not None else None
    if name is None:
        number = value if value.dtype == DTYPES["i64"] else lookup("cast")(value, dtype=DTYPES["i64"])
        size = measured_size(number, location.here())
        (name,) = names(size)
        _measured[value] = weakref.ref(name)
        return size
    return size_name(name)


#: The names of the sizes that values are.
_measured: weakref.WeakKeyDictionary[Value, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def formula_of(value: Value) -> Size | None:
    """The formula of sizes that an integer scalar is, if it is made of sizes and numbers alone."""
    if value.type.shape or value.dtype.kind not in "iu":
        return None
    low, high = _range(value)
    return low if low is not None and low == high else None


def _range(v: Value, depth: int = 8) -> Range:
    """The least and the greatest number that an integer scalar can be, as formulas of sizes."""
    if v.op.facts.range is None or v.type.shape or not depth:
        return UNKNOWN
    return v.op.facts.range(v, [_range(o, depth - 1) for o in v.operands])


def user_size(size: Size) -> int | SymbolicSize:
    """A size as an entry of ``x.shape``."""
    return SymbolicSize(size) if isinstance(size, Dim) else int(size)


def user_shape(shape: tuple[Size, ...]) -> tuple:
    """A shape as users see it."""
    return tuple(map(user_size, shape))
