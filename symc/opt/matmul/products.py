"""Products of arrays that are no single call of BLAS: moved into its layout, or taken apart into sums."""

from __future__ import annotations

from symc.ir.dim import Size, product
from symc.ir.dtypes import RECORDS, is_narrow
from symc.ir.op import lookup
from symc.ir.ops.cast import cast
from symc.ir.ops.gemm import gemm
from symc.ir.ops.linalg import contract_first, dot, free_axes
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, in_order, transpose
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves
from symc.opt.fusion.kernel_ops import is_kernel_op, is_movement

#: Up to this many multiplications a product is faster inside a kernel than as a call; each one of a batch.
SMALL, SMALL_EACH = 64, 48
#: Up to this many numbers of one factor are multiplied with rows of the other, of up to so many numbers, inside a
#: kernel, however many rows there are.
THIN, SHORT = 24, 8


def _example(dtype: str, shapes: tuple, contract: tuple, batch: tuple = ((), ())) -> Value:
    a, b = (cast(x, dtype=DTYPES[dtype]) for x in [leaves(1, {}, s)[0] for s in shapes])
    return dot(a, b, contract=contract, batch=batch)


@rewrite(
    "dot",
    family="decompose",
    equation="dot(x, y) in f16 -> dot(x, y) in f32",
    examples=lambda: [_example("f16", ((3, 3), (3, 3)), ((1,), (0,)))],
    misses=lambda: [_example("f32", ((3, 3), (3, 3)), ((1,), (0,)))],
)
def dot_of_half(v: Value) -> Value | None:
    """The library multiplies no half precision, and a sum should not be rounded to it."""
    if not is_narrow(v.dtype):
        return None
    return cast(dot(*[cast(o, dtype=DTYPES["f32"]) for o in v.operands], **v.attrs), dtype=v.dtype)


@rewrite(
    "dot",
    kinds="iufc",
    family="decompose",
    equation="dot(x, y) -> sum(x * y) of integers, outer and inner products, where it or a factor is small, f(x) @ y",
    examples=lambda: [
        _example("i32", ((3, 4), (4, 5)), ((1,), (0,))),
        _example("i64", ((3, 4), (5, 4)), ((1,), (1,))),
        _example("f64", ((2, 3, 4), (2, 4)), ((2,), (1,)), ((0,), (0,))),
        _example("f64", ((4,), (4,)), ((0,), (0,))),
        _example("c128", ((4,), (4,)), ((0,), (0,))),
        _example("f64", ((40, 1), (1, 50)), ((1,), (0,))),
        _example("f64", ((40, 3), (3, 3)), ((1,), (0,))),
        dot(lookup("exp")(leaves(1, {}, (30, 40))[0]), leaves(1, {}, (40,))[0], contract=((1,), (0,))),
    ],
    misses=lambda: [_example("f64", ((8, 8), (8, 8)), ((1,), (0,)))],
)
def dot_as_sum(v: Value) -> Value | None:
    """A kernel does what no library does, and small products without a call, together with what is around them."""
    if is_narrow(v.dtype) or v.dtype.kind in "fc" and not any(
            holds(v) for holds in (is_small, is_outer, is_inner, is_thin, is_made_line_by_line)):
        return None
    a, b = v.operands
    (contract_a, contract_b), (batch_a, batch_b) = v.attrs["contract"], v.attrs["batch"]
    left, right = free_axes(a, contract_a, batch_a), free_axes(b, contract_b, batch_b)
    n, m, k = len(batch_a), len(left), len(contract_a)
    # axes of the space: batch, left, contracted and right, so that the innermost is the last axis of b where it can be
    across = not is_small(v) and not is_outer(v) and b.ndim - 1 in right and b.shape[-1] != 1 and v.dtype.itemsize > 2
    down = not right and bool(left) and a.ndim - 1 in left  # the columns of a are summed: read row by row
    left_at = n + k if down else n
    right_at = n + m + k if across else n + m
    contract_at = n if down else n + m if across else n + m + len(right)
    shape: dict[int, Size] = {}
    spread = []
    for x, parts in ((a, ((batch_a, 0), (left, left_at), (contract_a, contract_at))),
                     (b, ((batch_b, 0), (right, right_at), (contract_b, contract_at)))):
        place = {axis: first + i for axes, first in parts for i, axis in enumerate(axes)}
        shape.update({p: x.shape[axis] for axis, p in place.items()})
        spread.append([place[axis] for axis in range(x.ndim)])
    space = tuple(shape[p] for p in range(len(shape)))
    factors = [_spread(x, axes, space) for x, axes in zip((a, b), spread, strict=True)]
    found = factors[0] * factors[1]
    return sum_(found, axes=tuple(range(contract_at, contract_at + k))) if k else found


def _spread(x: Value, axes: list[int], space: tuple[Size, ...]) -> Value:
    """``x`` with each axis at its place in a space."""
    turned = in_order(x, sorted(range(x.ndim), key=axes.__getitem__))
    return turned if turned.shape == space else broadcast(turned, axes=tuple(sorted(axes)), shape=space)


def is_small(v: Value) -> bool:
    """True if there are few multiplications for each index of the batch axes."""
    a, b = v.operands
    (_, contract_b), (batch_a, batch_b) = v.attrs["contract"], v.attrs["batch"]
    each = product([*[s for i, s in enumerate(a.shape) if i not in batch_a],
                    *[b.shape[i] for i in free_axes(b, contract_b, batch_b)]])
    return isinstance(each, int) and each <= (SMALL_EACH if batch_a else SMALL)


def is_outer(v: Value) -> bool:
    """True if there is one multiplication for each element.

    A kernel takes that in with what is around it. Alone, over the matrix it is added to, it takes as long as ``dger``
    in the cache, and up to 1.4 times that on 2048 x 2048; over another matrix it is one pass where ``dger`` needs two.
    """
    return product(v.operands[0].shape[i] for i in v.attrs["contract"][0]) == 1


def is_inner(v: Value) -> bool:
    """True if all of both factors is contracted: one number.

    A library reads what a kernel could have read for the updates beside it, and takes 1.2 to 2.3 times as long: 24 us
    for 100,000 numbers of f64 in the cache, not 20.
    """
    return all(len(axes) == o.ndim for axes, o in zip(v.attrs["contract"], v.operands, strict=True))


def is_thin(v: Value) -> bool:
    """True if rows are multiplied with few numbers, that are known by their place: with several columns, or rows that a
    kernel makes.

    Points times a matrix of 3 x 3, pixels of bytes times weights: a library takes 1.1 to 7 times as long, as it takes
    nothing else in. Of rows in memory times one column it may take longer, but not with functions around it.
    """
    def short(k: int) -> bool:
        rows, other, contracted = v.operands[k], v.operands[1 - k], v.attrs["contract"][k]
        few, length = product(other.shape), rows.shape[-1] if rows.ndim else None
        if contracted != (rows.ndim - 1,) or not isinstance(few, int) or not isinstance(length, int):
            return False
        return few <= THIN and length <= SHORT and (other.ndim > 1 or _is_made(rows))

    return not any(v.attrs["batch"]) and (short(0) or short(1))


def is_made_line_by_line(v: Value) -> bool:
    """True if a matrix that a kernel makes, row by row, is multiplied with one column.

    The matrix is never stored: exp(-(x - y)**2) @ w of 3000 numbers takes .55 of the time, two of them .2, and
    (2 * X + b) @ w .4.
    """
    def made(k: int) -> bool:
        rows, other, contracted = v.operands[k], v.operands[1 - k], v.attrs["contract"][k]
        column = product(other.shape) == product(other.shape[a] for a in v.attrs["contract"][1 - k])
        return _is_made(rows) and column and rows.ndim == 2 and contracted == (1,)

    return not any(v.attrs["batch"]) and (made(0) or made(1))


def _is_made(v: Value) -> bool:
    """True if a kernel computes a value, and does not only move it."""
    return bool(v.operands) and is_kernel_op(v) and not is_movement(v)


@rewrite(
    "dot",
    kinds="fc",
    family="decompose",
    equation="dot(x, y) -> gemm(x, y) for every matrix of y, if y has free axes before and after the contracted ones",
    examples=lambda: [
        _example("f64", ((9, 8), (4, 8, 7)), ((1,), (1,))),
        _example("f64", ((4, 8, 7), (8, 9)), ((1,), (0,))),
        _example("f64", ((3, 4, 5, 6, 7), (9, 4, 5)), ((1, 2), (1, 2))),
    ],
    misses=lambda: [
        _example("f64", ((9, 8), (4, 8)), ((1,), (1,))),
        _example("f64", ((4, 5, 6), (6, 4, 7)), ((0, 2), (1, 0))),
    ],
)
def dot_of_each(v: Value) -> Value | None:
    """Nothing is moved: the other operand is multiplied with one matrix after another, where they lie."""
    if not RECORDS[v.dtype].blas or _in_order(v) or any(v.attrs["batch"]):
        return None
    for k in (0, 1):
        pairs = sorted(zip(*v.attrs["contract"], strict=True), key=lambda p: p[k])
        contract = (tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
        own, x, other = contract[k], v.operands[k], v.operands[1 - k]
        first, after = own[0] if own else 0, own[-1] + 1 if own else 0
        inside = own == tuple(range(first, after)) and first > 0 and after < x.ndim
        if not inside or contract_first(other, contract[1 - k], ()) is None:
            continue
        lead = tuple(range(first))
        batch = ((), lead) if k else (lead, ())
        made = gemm(*v.operands, contract=contract, batch=batch, alpha=1.0, beta=0.0, times=())
        n = first + other.ndim - len(own)
        return transpose(made, perm=(*range(first, n), *lead, *range(n, made.ndim))) if k else made
    return None


@rewrite(
    "dot",
    kinds="fc",
    family="decompose",
    equation="dot(x, y) -> dot(transpose(x), transpose(y)) where contracted, free and batch axes are mixed",
    examples=lambda: [
        _example("f64", ((4, 5, 3, 6), (4, 7, 3, 6)), ((3,), (3,)), ((0, 2), (0, 2))),
        _example("f64", ((4, 5, 6), (6, 4, 7)), ((0, 2), (1, 0))),
    ],
    misses=lambda: [_example("f64", ((4, 5, 6), (4, 6, 7)), ((2,), (1,)), ((0,), (0,)))],
)
def dot_in_order(v: Value) -> Value | None:
    """One copy of an operand, and the product is a call of BLAS."""
    if not RECORDS[v.dtype].blas or _in_order(v):
        return None
    (contract_a, contract_b), batch = v.attrs["contract"], v.attrs["batch"]
    for k in (0, 1):  # the order in which contracted axes are listed is free
        pairs = sorted(zip(contract_a, contract_b, strict=True), key=lambda p: p[k])
        listed = (tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
        same = dot(*v.operands, contract=listed, batch=batch)
        if _in_order(same):
            return same
    moved = [_moved(o, c, b) for o, c, b in zip(v.operands, v.attrs["contract"], batch, strict=True)]
    lead = tuple(range(len(batch[0])))
    return dot(*[x for x, _ in moved], contract=(moved[0][1], moved[1][1]), batch=(lead, lead))


def _moved(x: Value, contract: tuple[int, ...], batch: tuple[int, ...]) -> tuple[Value, tuple[int, ...]]:
    """``x`` with batch axes first, and then contracted axes all before or all after the free ones; where they are."""
    free = free_axes(x, contract, batch)
    for perm in ((*batch, *contract, *free), (*batch, *free, *contract)):
        if perm == tuple(range(x.ndim)):
            return x, contract
    perm = (*batch, *free, *contract)
    first = len(batch) + len(free)
    return transpose(x, perm=perm), tuple(range(first, first + len(contract)))


def _in_order(v: Value) -> bool:
    batch = v.attrs["batch"]
    lead = tuple(range(len(batch[0])))
    return batch == (lead, lead) and all(
        contract_first(o, c, b) is not None for o, c, b in zip(v.operands, v.attrs["contract"], batch, strict=True))
