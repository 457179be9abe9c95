"""A product of products, taken apart: its factors in order, each with how it is read as a matrix."""

from __future__ import annotations

from collections.abc import Callable

from symc.ir.dim import Size, product
from symc.ir.ops.arithmetic import div, mul, neg
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.record import dataclass, field
from symc.ir.value import Value
from symc.opt.engine.terms import everywhere

Axes = tuple[int, ...]
#: An order of multiplying neighbours: the number of a factor, or two orders.
Tree = int | tuple


#: So many products are taken apart; what is left of a longer chain is a chain of its own.
MOST_PRODUCTS = 24


@dataclass(frozen=True)
class Factor:
    """A value read as a matrix, or as a vector where it has no ``rows`` or no ``columns``."""

    value: Value
    rows: Axes
    columns: Axes

    @property
    def height(self) -> Size:
        return product(self.value.shape[a] for a in self.rows)

    @property
    def width(self) -> Size:
        return product(self.value.shape[a] for a in self.columns)


@dataclass
class Chain:
    """``tree``: the order in which the program multiplies. ``products``: those inside it. ``scales``: values whose
    first operand is inside it and is negated, multiplied or divided by a number there."""

    factors: list[Factor] = field(default_factory=list)
    tree: Tree = 0
    products: list[Value] = field(default_factory=list)
    scales: list[Value] = field(default_factory=list)


def chain_of(v: Value, single: Callable[[Value], bool]) -> Chain:
    """The chain that ends in the product ``v``. ``single(x)``: whether x is used once, and may be taken apart."""
    chain = Chain()
    trees: list[Tree] = []
    rows, columns = _natural(v)
    stack: list[Factor | None] = [Factor(v, rows, columns)]
    while stack:
        f = stack.pop()
        if f is None:
            right, left = trees.pop(), trees.pop()
            trees.append((left, right))
            continue
        parts = None
        if f.value is v:
            parts = _parts(f)
        elif single(f.value) and len(chain.products) < MOST_PRODUCTS:
            x, scales = _unscaled(f.value, single)
            parts = _parts(Factor(x, f.rows, f.columns)) if is_link(x) else None
            if parts is not None:
                chain.scales += scales
                chain.products.append(x)
        if parts is None:
            trees.append(len(chain.factors))
            chain.factors.append(f)
        else:
            stack += [None, parts[1], parts[0]]
    chain.tree = trees.pop()
    return chain


def is_link(v: Value) -> bool:
    """A product that a chain can be made of: without batch axes, of floats, its contracted axes in order."""
    if v.op is not dot or v.dtype.kind not in "fc" or v.attrs["batch"] != ((), ()):
        return False
    return all(list(c) == sorted(c) for c in v.attrs["contract"])


def _natural(v: Value) -> tuple[Axes, Axes]:
    """Axes of a product that come from its left operand, and those from its right one."""
    left = len(free_axes(v.operands[0], v.attrs["contract"][0], ()))
    return tuple(range(left)), tuple(range(left, v.ndim))


def _parts(f: Factor) -> tuple[Factor, Factor] | None:
    """The operands of a product in the order in which they are multiplied when it is read like that."""
    contract = f.value.attrs["contract"]
    (a, b), (i, j) = f.value.operands, contract
    left, right = Factor(a, free_axes(a, i, ()), i), Factor(b, j, free_axes(b, j, ()))
    if (f.rows, f.columns) == _natural(f.value):
        return left, right
    if (f.columns, f.rows) == _natural(f.value):  # (A @ B).T = B.T @ A.T
        return Factor(b, right.columns, right.rows), Factor(a, left.columns, left.rows)
    return None


def _unscaled(v: Value, single: Callable[[Value], bool]) -> tuple[Value, list[Value]]:
    """``v`` without signs and scalar factors, and the values that put them on, last first."""
    scales = []
    while v.op in (neg, mul, div) and single(v.operands[0]) and (v.op is neg or scalar_of(v.operands[1]) is not None):
        scales.append(v)
        v = v.operands[0]
    return v, scales


def scalar_of(v: Value) -> Value | None:
    """The number that is repeated everywhere in ``v``, if it is one."""
    return everywhere(v) if v.shape else v


def combined(x: Factor, y: Factor) -> Factor:
    """The product of two neighbours."""
    v = dot(x.value, y.value, contract=(x.columns, y.rows), batch=((), ()))
    rows = tuple(range(len(x.rows)))
    return Factor(v, rows, tuple(range(len(rows), v.ndim)))
