"""Forms that many rules ask for, recognised in one place: index arrays that count, masks of diagonals, unit matrices.

Each function looks at a bounded number of values below the one it is given and says what it is, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.ir.dim import Size, known_equal, known_nonnegative, product
from symc.ir.ops.shape import broadcast, reshape, transpose
from symc.ir.ranges import wrapped_index
from symc.ir.record import dataclass
from symc.ir.size_extremes import if_any
from symc.ir.text import splat_of
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value

#: How deep a form may be hidden below movements and sums.
DEPTH = 8
#: Constant arrays up to this many elements are looked into.
MOST_ELEMENTS = 4096


# --- counting ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """An i64 array whose element is ``start + step * i``, i the index along ``axis``; everywhere ``start`` without."""

    axis: int | None
    start: Size
    step: int

    def ends(self, n: Size) -> tuple[Size, Size]:
        """The least and the greatest of the numbers, if there are n > 0 along the axis."""
        last = self.start + (if_any(n) - 1) * self.step if self.axis is not None else self.start
        return (self.start, last) if self.step >= 0 else (last, self.start)

    def within(self, n: Size, size: Size) -> bool:
        """True if the numbers, n along the axis, are known to be in [0, size)."""
        low, high = self.ends(n)
        return known_nonnegative(low) and known_nonnegative(size - 1 - high)


def steps_of(v: Value, depth: int = DEPTH) -> Steps | None:
    """``v`` as a count: an iota (also a part, a multiple, moved), an evenly spaced constant, a size."""
    if not isinstance(v.type, TensorType) or v.dtype != DTYPES["i64"] or depth == 0:
        return None
    name = v.op.name
    if name == "iota":
        return Steps(v.attrs["axis"], 0, 1)
    if name == "size":
        return Steps(None, v.attrs["value"], 0)
    if name == "constant":
        return _constant_steps(v)
    if name in ("check_index", "bounded", "neg", "broadcast", "transpose", "slice", "reshape"):
        inner = steps_of(v.operands[0], depth - 1)
        return None if inner is None else _moved(v, inner)
    if name in ("add", "sub", "mul"):
        x, y = (steps_of(o, depth - 1) for o in v.operands)
        return None if x is None or y is None else _combined(name, x, y)
    return None


def _constant_steps(v: Value) -> Steps | None:
    data = v.attrs["value"].data
    if data.ndim == 0:
        return Steps(None, int(data), 0)
    if data.ndim != 1 or not 0 < data.size <= MOST_ELEMENTS:
        return None
    step = int(data[1] - data[0]) if data.size > 1 else 0
    if np.any(np.diff(data) != step):
        return None
    return Steps(0 if step else None, int(data[0]), step)


def _moved(v: Value, s: Steps) -> Steps | None:
    """The count after one movement or sign."""
    name, a = v.op.name, s.axis
    if name == "neg":
        return Steps(a, -1 * s.start, -s.step)
    if a is None or name in ("check_index", "bounded"):
        return s
    if name == "broadcast":
        return Steps(v.attrs["axes"][a], s.start, s.step)
    if name == "transpose":
        return Steps(v.attrs["perm"].index(a), s.start, s.step)
    if name == "slice":
        return Steps(a, s.start + v.attrs["start"][a] * s.step, s.step * v.attrs["step"][a])
    place = unit_axes(v)
    if place is None or v.operands[0].shape[a] == 1:
        return Steps(None, s.start, 0) if v.operands[0].shape[a] == 1 else None
    return Steps(place[a], s.start, s.step)


def _combined(name: str, x: Steps, y: Steps) -> Steps | None:
    if name == "mul":
        for s, factor in ((x, y), (y, x)):
            if factor.axis is None and isinstance(factor.start, int):
                k = factor.start
                return Steps(s.axis if k else None, s.start * k, s.step * k)
        return None
    if x.axis is not None and y.axis is not None and x.axis != y.axis:
        return None
    sign = 1 if name == "add" else -1
    step = x.step + sign * y.step
    axis = x.axis if x.axis is not None else y.axis
    return Steps(axis if step else None, x.start + sign * y.start, step)


def turned_steps(v: Value, n: Size | None = None) -> Steps | None:
    """The count by single steps, on either side, of which ``v`` is the remainder by the size ``n`` (None: any), as
    neighbours on a ring are named; the start of one by nearly n is that of one from the other end."""
    inside = wrapped_index(v)
    v = v if inside is None else inside
    if v.op is broadcast or v.op is transpose or v.op is reshape:
        inner = turned_steps(v.operands[0], n)
        return None if inner is None else _moved(v, inner)
    if v.data is not None and v.ndim == 1 and (n is None or known_equal(v.shape[0], n)):
        return _turned_constant(v.data)
    if v.op.name != "mod":
        return None
    steps, over = (steps_of(o) for o in v.operands)
    if steps is None or over is None or steps.axis is None or over.axis is not None or abs(steps.step) != 1:
        return None
    if not known_equal(v.shape[steps.axis], over.start) or n is not None and not known_equal(over.start, n):
        return None
    near = (steps.start - k * over.start for k in (0, 1, -1))
    return Steps(steps.axis, next((s for s in near if isinstance(s, int)), steps.start), steps.step)


def _turned_constant(data: np.ndarray) -> Steps | None:
    if data.dtype.kind in "iu" and 1 < data.size <= MOST_ELEMENTS:
        for step in (1, -1):
            if np.array_equal(data, (int(data[0]) + step * np.arange(data.size)) % data.size):
                return Steps(0, int(data[0]), step)
    return None


def unit_axes(v: Value) -> dict[int, int] | None:
    """For a reshape that only inserts or drops axes of size 1, the axis that each wide axis of the operand becomes."""
    source, target = v.operands[0].shape, v.shape
    from_, to = ([a for a, s in enumerate(shape) if s != 1] for shape in (source, target))
    if [source[a] for a in from_] != [target[a] for a in to]:
        return None
    return dict(zip(from_, to, strict=True))


def common_axes(source: Sequence[Size], target: Sequence[Size]) -> dict[int, int]:
    """The axes that two shapes begin and end with: axis of the target, axis of the source. None where what is between
    them has other sizes, which is so of arrays without elements only."""
    out: dict[int, int] = {}
    k = 0
    while k < min(len(source), len(target)) and source[k] == target[k]:
        out[k] = k
        k += 1
    j = 1
    while j <= min(len(source), len(target)) - k and source[-j] == target[-j]:
        out[len(target) - j] = len(source) - j
        j += 1
    return out if product(source[k : len(source) - j + 1]) == product(target[k : len(target) - j + 1]) else {}


# --- diagonals --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """A mask over two axes: where ``column - row`` stands in ``relation`` (eq, ne, lt, le, gt, ge) to ``offset``.

    eq 0 is the main diagonal, le 0 the lower triangle, ge 0 the upper one.
    """

    row: int
    column: int
    relation: str
    offset: Size


def band_of(v: Value) -> Band | None:
    """A comparison of the counts along two axes: what eye, diag, tril and triu select by."""
    if v.op is broadcast:
        inner = band_of(v.operands[0])
        places = v.attrs["axes"]
        return inner and Band(places[inner.row], places[inner.column], inner.relation, inner.offset)
    if not v.op.facts.mirror:
        return None
    x, y = (steps_of(o) for o in v.operands)
    if x is None or y is None or x.axis is None or y.axis is None or x.axis == y.axis or x.step != 1 or y.step != 1:
        return None
    relation = v.op.name
    if x.axis < y.axis:
        x, y, relation = y, x, v.op.facts.mirror
    assert x.axis is not None and y.axis is not None
    return Band(y.axis, x.axis, relation, y.start - x.start)


def on_diagonal(mask: Value) -> bool:
    """True if a mask is true on the main diagonal of its last two axes alone."""
    if mask.data is not None and mask.ndim == 2 and mask.dtype.kind == "b":
        return is_eye(mask)
    b = band_of(mask)
    return b is not None and (b.relation, b.offset, b.row, b.column) == ("eq", 0, mask.ndim - 2, mask.ndim - 1)


def is_eye(v: Value) -> bool:
    """True if ``v`` has ones on the main diagonal of its last two axes and zeros elsewhere; it need not be square."""
    if not isinstance(v.type, TensorType) or v.ndim < 2:
        return False
    if v.op.name == "cast" and v.operands[0].dtype.kind == "b":
        return on_diagonal(v.operands[0])
    if v.op.name == "where":
        ones, zeros = (splat_of(o) for o in v.operands[1:])
        return on_diagonal(v.operands[0]) and ones is not None and zeros is not None and ones == 1 and zeros == 0
    if v.op is broadcast and v.attrs["axes"][-2:] == (v.ndim - 2, v.ndim - 1):
        return is_eye(v.operands[0])
    data = v.data
    if data is not None and v.ndim == 2:
        return bool(data.size <= MOST_ELEMENTS and np.array_equal(data, np.eye(*data.shape, dtype=data.dtype)))
    return False


def diagonal_of(v: Value) -> Value | None:
    """The line ``d`` of a square matrix that is ``diag(d)``: by ``diag``, or by a product with a unit matrix.

    The product has nan beside an infinite or nan element of d; ``diag`` has zeros.
    """
    if not isinstance(v.type, TensorType) or v.ndim < 2 or v.shape[-1] != v.shape[-2]:
        return None
    if v.op.name == "where" and on_diagonal(v.operands[0]):
        zeros = splat_of(v.operands[2])
        return _line(v.operands[1]) if zeros is not None and zeros == 0 else None
    if v.op.name == "mul":
        for x, y in (v.operands, v.operands[::-1]):
            if is_eye(x):
                return _line(y)
    return None


def _line(v: Value) -> Value | None:
    """The values on the diagonal of a matrix whose rows, or whose columns, are all the same line."""
    if v.op is not broadcast:
        return None
    (x,), axes = v.operands, v.attrs["axes"]
    rows, columns = v.ndim - 2, v.ndim - 1
    if rows in axes and columns in axes or axes != tuple(range(v.ndim))[: len(axes) - 1] + axes[-1:]:
        return None
    if axes and axes[-1] in (rows, columns) and len(axes) == v.ndim - 1:
        return x
    return None
