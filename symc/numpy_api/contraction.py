"""Sums of products over named axes: the one place where einsum, matmul, tensordot and their relatives become ``dot``.

An operand is a value with a label for each axis. Axes of equal labels have equal sizes (asserted where that is not
known), or one of them has size 1 and is dropped. Products without a sum are elementwise, so they can fuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symc.errors import ShapeError
from symc.ir.dim import Size, known_equal
from symc.ir.op import lookup
from symc.ir.ops.ensure import axis_ensured, ensured
from symc.ir.ops.shape import in_order, in_shape
from symc.ir.record import dataclass
from symc.ir.size_values import number
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.numpy_api.contraction_path import contraction_path
from symc.numpy_api.promotion import rows
from symc.tensors.convert import convert
from symc.tensors.tensor import Tensor

Label = str | int


@dataclass(frozen=True)
class Labelled:
    """A value and the labels of its axes, each different."""

    value: Value
    labels: tuple[Label, ...]

    def size(self, label: Label) -> Size:
        return self.value.shape[self.labels.index(label)]

    def without(self, gone: Iterable[Label]) -> Labelled:
        """Axes of size 1 dropped."""
        gone = set(gone)
        kept = [i for i, n in enumerate(self.labels) if n not in gone]
        return (
            self
            if not gone
            else Labelled(
                in_shape(self.value, [self.value.shape[i] for i in kept]), tuple(self.labels[i] for i in kept)
            )
        )

    def summed(self, gone: Iterable[Label]) -> Labelled:
        """Axes summed over."""
        axes = tuple(i for i, n in enumerate(self.labels) if n in set(gone))
        if not axes:
            return self
        total = lookup("any" if self.value.dtype.kind == "b" else "sum")(self.value, axes=axes)
        return Labelled(total, tuple(n for i, n in enumerate(self.labels) if i not in axes))

    def ordered(self, labels: Sequence[Label]) -> Value:
        """The value with its axes in another order."""
        return in_order(self.value, [self.labels.index(n) for n in labels])


def labelled(v: Value, labels: Sequence[Label]) -> Labelled:
    """A value with labels, of which equal ones take a diagonal."""
    out = list(labels)
    for name in dict.fromkeys(labels):
        while out.count(name) > 1:
            i = out.index(name)
            j = out.index(name, i + 1)
            v = _diagonal(v, i, j)
            del out[j]
    return Labelled(v, tuple(out))


def _diagonal(v: Value, i: int, j: int) -> Value:
    """Axis j removed: only elements at which it equals axis i stay."""
    n, m = v.shape[i], v.shape[j]
    if known_equal(n, m) is False:
        raise ShapeError(f"einsum: axes with one label have sizes {n} and {m}")
    v = axis_ensured(v, j, n)
    place = lookup("iota")(shape=(n,), axis=0, dtype=DTYPES["i64"])
    out = lookup("gather")(v, place, place, axes=(i, j))  # the diagonal comes first
    return in_order(out, [*range(1, i + 1), 0, *range(i + 1, out.ndim)])


def _matched(a: Labelled, b: Labelled, name: str) -> tuple[Labelled, Labelled]:
    """Shared axes made equal: size 1 dropped where the other is wider, unknown ones asserted."""
    drop_a, drop_b, want = set(), set(), {}
    for label in a.labels:
        if label in b.labels:
            n, m = a.size(label), b.size(label)
            if n == 1 != m:
                drop_a.add(label)
            elif m == 1 != n:
                drop_b.add(label)
            elif known_equal(n, m) is False:
                raise ShapeError(
                    f"{name}: sizes differ: {n} and {m}",
                    values=rows([Tensor(a.value), Tensor(b.value)]),
                    help=f"axis {a.labels.index(label)} must equal axis {b.labels.index(label)} of the second",
                )
            elif n != m:
                want[label] = n if isinstance(n, int) or not isinstance(m, int) else m
    a, b = a.without(drop_a), b.without(drop_b)
    return _ensured(a, want), _ensured(b, want)


def _ensured(x: Labelled, want: dict[Label, Size]) -> Labelled:
    shape = [want.get(n, s) for n, s in zip(x.labels, x.value.shape, strict=True)]
    return Labelled(ensured(x.value, shape), x.labels)


def product(a: Labelled, b: Labelled, keep: Iterable[Label], name: str = "einsum") -> Labelled:
    """The product of two operands, summed over the labels that are not in ``keep``."""
    keep = set(keep)
    a, b = _matched(a, b, name)
    a = a.summed([n for n in a.labels if n not in keep and n not in b.labels])
    b = b.summed([n for n in b.labels if n not in keep and n not in a.labels])
    shared = [n for n in a.labels if n in b.labels]
    summed = [n for n in shared if n not in keep]
    batch = [n for n in shared if n in keep]
    free_a = [n for n in a.labels if n not in shared]
    free_b = [n for n in b.labels if n not in shared]
    labels = (*batch, *free_a, *free_b)
    if not summed:
        return Labelled(lookup("mul")(_placed(a, labels, b), _placed(b, labels, a)), labels)

    def axes(of: list[Label]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(a.labels.index(n) for n in of), tuple(b.labels.index(n) for n in of)

    left, right = a.value, b.value
    if left.dtype.kind == "b":  # the sum of bools is whether some product is true
        counted = lookup("dot")(
            convert(left, DTYPES["i64"]), convert(right, DTYPES["i64"]), contract=axes(summed), batch=axes(batch)
        )
        return Labelled(lookup("ne")(counted, 0), labels)
    return Labelled(lookup("dot")(left, right, contract=axes(summed), batch=axes(batch)), labels)


def _placed(x: Labelled, labels: tuple[Label, ...], other: Labelled) -> Value:
    """A value repeated over the axes that only the other operand has."""
    mine = [n for n in labels if n in x.labels]
    v = x.ordered(mine)
    if len(mine) == len(labels):
        return v
    shape = tuple(x.size(n) if n in x.labels else other.size(n) for n in labels)
    return lookup("broadcast")(v, axes=tuple(labels.index(n) for n in mine), shape=shape)


def contract(operands: Sequence[Labelled], output: Sequence[Label], name: str = "einsum") -> Value:
    """The sum of products of all operands over the labels that are not in ``output``, pair by pair."""
    work = list(operands)
    for i, j in _path(work, output):
        keep = {*output, *[n for k, x in enumerate(work) if k not in (i, j) for n in x.labels]}
        result = product(work[i], work[j], keep, name)
        work = [x for k, x in enumerate(work) if k not in (i, j)] + [result]
    last = work[0].summed([n for n in work[0].labels if n not in output])
    return last.ordered(output)


def _path(operands: Sequence[Labelled], output: Sequence[Label]) -> list[tuple[int, int]]:
    """The pairs in which operands are multiplied, as positions in a list at whose end the product goes."""
    bits: dict[Label, int] = {}
    sizes: dict[int, int] = {}
    sets = []
    for x in operands:
        own = 0
        for label, s in zip(x.labels, x.value.shape, strict=True):
            bit = bits.setdefault(label, 1 << len(bits))
            sizes[bit] = max(sizes.get(bit, 1), number(s))
            own |= bit if s != 1 else 0  # (an axis of size 1 is dropped, or is as good as none)
        sets.append(own)
    wanted = sum(bits.get(n, 0) for n in dict.fromkeys(output))
    return contraction_path(sets, wanted, sizes)
