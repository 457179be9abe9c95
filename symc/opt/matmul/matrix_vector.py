"""fuse_matvec: products of a matrix with vectors that one reading of the matrix is enough for.

The gradient of a loss of ``z = X @ w`` is ``X.T @ r``, where element i of r is made of element i of z. A library reads
X twice, which is all that such products cost where X is large. As a kernel they are folds over one space: z along its
rows, the gradient down its columns, and every row is still in the cache when r is known. So both become sums, and
``fuse`` makes one kernel of them (``symc.opt.fusion.column_folds``).

Where r needs all of z (a normalization, say) nothing is gained, and the library keeps both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symc.ir.function import Function
from symc.ir.ops.linalg import dot
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.fusion.column_folds import MOST
from symc.opt.fusion.kernel_ops import is_fold, is_kernel_op, is_movement, reads_in_place
from symc.opt.loops.edit import Edit

#: A row shorter than this does not fill the registers of a loop.
LEAST = 16
#: How many ops may lie between the two products: they share a kernel.
NEAR = 40


@dataclass(frozen=True)
class Product:
    """A product of a matrix and a vector, which runs along ``axis`` of the matrix."""

    value: Value
    matrix: Value
    vector: Value
    axis: int


@standard_pass(
    after=("small_loops",),
    why="blas would add to the products that it takes; loops that are one kernel read small matrices only; one core "
        "goes through a matrix row by row",
    bodies="inner", on=("dot",), reasons="of_fuse_matvec", target="cpu", for_kernels=True,
)
def fuse_matvec(provenance: Provenance, f: Function) -> Function:
    """Products of one matrix and vectors that need one reading of it become sums."""
    chosen = {p.value: p for pair in pairs(f) for p in pair}
    if not chosen:
        return f
    edit = Edit(f, provenance, "fuse_matvec")
    return edit.each(lambda v, _: _as_sum(chosen[v], edit) if v in chosen else None)


def _as_sum(p: Product, edit: Edit) -> Value:
    matrix, vector = edit.done[p.matrix], edit.done[p.vector]
    return sum_(matrix * broadcast(vector, axes=(p.axis,), shape=matrix.shape), axes=(p.axis,))


def pairs(f: Function) -> Iterator[tuple[Product, Product]]:
    """A product along the rows of a matrix, and one down its columns with what is made of it element by element."""
    values = f.values()
    products = {v: p for v in values if (p := as_product(v)) is not None}
    along = {v: p for v, p in products.items() if p.axis == 1}
    if len(along) in (0, len(products)):
        return
    bit = {v: 1 << k for k, v in enumerate(along)}
    reach: dict[Value, int] = {}  # which products along rows a value is made of, itself too, as bits
    for v in values:
        reach[v] = bit.get(v, 0)
        for o in v.operands:
            reach[v] |= reach[o]
    for p in products.values():
        for z in _made_of(p, along, bit, reach) if p.axis == 0 else ():
            yield along[z], p


def as_product(v: Value) -> Product | None:
    """``v`` as a product of a matrix that lies in memory, and is worth it, and a vector."""
    if v.op is not dot or v.ndim != 1 or v.dtype.kind != "f" or v.attrs["batch"] != ((), ()):
        return None
    k = 0 if v.operands[0].ndim == 2 else 1
    matrix, vector, axes = v.operands[k], v.operands[1 - k], v.attrs["contract"][k]
    width = matrix.shape[-1]
    fits = not isinstance(width, int) or LEAST <= width <= MOST
    alone = is_movement(matrix) or not is_kernel_op(matrix)
    return Product(v, matrix, vector, axes[0]) if len(axes) == 1 and vector.ndim == 1 and fits and alone else None


def _made_of(p: Product, along: Mapping[Value, Product], bit: Mapping[Value, int], reach: Mapping[Value, int],
             ) -> list[Value]:
    """The products along rows of the same matrix that the vector of ``p`` is made of, if it is made of them element by
    element and not in another way too."""
    seen = {p.vector: None}
    stack, ends, others = [p.vector], [], []
    while stack:
        v = stack.pop()
        if v in along and along[v].matrix is p.matrix:
            ends.append(v)
        elif is_kernel_op(v) and reads_in_place(v) and not is_fold(v) and len(seen) < NEAR:
            new = [o for o in v.operands if o not in seen]
            seen.update(dict.fromkeys(new))
            stack += new
        else:
            others.append(v)
    mask = sum(bit[z] for z in ends)
    complete = [*others, *[o for z in ends for o in z.operands]]  # what must be there before any of them is made
    return ends if not any(reach[v] & mask for v in complete) else []
