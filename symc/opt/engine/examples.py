"""Values that equations and the examples of rules are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.dim import Size
from symc.ir.ops.linalg import dot
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input


def leaves(count: int, dtypes: dict[int, str] | None = None, shape: tuple = ()) -> list[Value]:
    """Fresh free values for the variables of a rule."""
    return [fresh_input(TensorType((dtypes or {}).get(k, "f64"), shape)) for k in range(count)]


def leaf(*shape: Size) -> Value:
    """A free value of floats."""
    return leaves(1, {}, shape)[0]


def matrix() -> Value:
    """A free matrix of few rows and columns."""
    return leaf(3, 4)


def index(*shape: Size) -> Value:
    """A free value of integers."""
    return leaves(1, {0: "i64"}, shape)[0]


def dot_of(a: Value, b: Value, i: int = 1, j: int = 0) -> Value:
    """The sum of products along axis i of ``a`` and axis j of ``b``."""
    return dot(a, b, contract=((i,), (j,)), batch=((), ()))


def variables_of_rule(count: int, dtypes: dict[int, str]) -> list[Value]:
    """The values that a rule's equation is written down with. In which order it has its operands is up to their
    serials, so these are numbers of the rule's own."""
    return [fresh_input(TensorType(dtypes.get(k, "f64"), ()), k) for k in range(count)]


def example(f: Callable[..., Value], values: Sequence[Value]) -> Value:
    """``f`` on leaves: a left side for tests and documentation."""
    return f(*values)
