"""Products of arrays: dot, matmul, einsum, tensordot and their relatives; norms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.dtypes import computed
from symc.ir.op import lookup
from symc.numpy_api.contraction import Label, Labelled, contract, labelled
from symc.numpy_api.manipulation import expanded, normal_axes
from symc.numpy_api.promotion import rows, same_dtype
from symc.tensors.convert import as_tensor, convert, inexact_dtype
from symc.tensors.public import API, public
from symc.tensors.sizes import entries, holds_entries, integer, known_number, whole
from symc.tensors.tensor import Tensor

#: What axes can be called in a subscript.
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@public(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The matrix product; leading axes broadcast, a vector is a row on the left and a column on the right."""
    a, b = same_dtype([x1, x2], "matmul")
    if not a.ndim or not b.ndim:
        raise ShapeError(
            "matmul: values without axes have no matrix product", values=rows([a, b]), help="use * to scale"
        )
    n, m = a.value.shape[-1], b.value.shape[-2 if b.ndim > 1 else 0]
    if known_equal(n, m) is False:
        raise ShapeError(
            "matmul: operand shapes differ",
            values=rows([x if isinstance(x, Tensor) else t for x, t in ((x1, a), (x2, b))]),
            help=f"axis {a.ndim - 1} of the first ({n}) must equal axis {max(b.ndim - 2, 0)} of the second ({m})",
        )
    depth = max(a.ndim, b.ndim, 2) - 2
    batch = [f"batch{i}" for i in range(depth)]
    left: list[Label] = [*batch[depth - (a.ndim - 2):], "row", "sum"] if a.ndim > 1 else ["sum"]
    right: list[Label] = [*batch[depth - (b.ndim - 2):], "sum", "column"] if b.ndim > 1 else ["sum"]
    out: list[Label] = [*batch, *(["row"] if a.ndim > 1 else []), *(["column"] if b.ndim > 1 else [])]
    one, two = Labelled(a.value, tuple(left)), Labelled(b.value, tuple(right))
    return Tensor(contract([_asserted(one, "sum", m), two], out, "matmul"))


def _asserted(x: Labelled, label: Label, m: Any) -> Labelled:
    """Size 1 against a size that is not known: no broadcast here, they must be equal."""
    n = x.size(label)
    if n == m or 1 not in (n, m):
        return x
    want = tuple(m if name == label else s for name, s in zip(x.labels, x.value.shape, strict=True))
    return Labelled(lookup("ensure_shape")(x.value, shape=want), x.labels)


@public(np.dot)
def dot(a: Any, b: Any) -> Tensor:
    """The sum of products over the last axis of a and the last but one (or only) axis of b."""
    x, y = same_dtype([a, b], "dot")
    if not x.ndim or not y.ndim:
        return API["multiply"](a, b)
    return _over(x, y, [x.ndim - 1], [max(y.ndim - 2, 0)], "dot")


@public(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest operations for the sizes known."""
    if len(arrays) < 2:
        raise ShapeError(f"multi_dot: at least two arrays are needed, there are {len(arrays)}")
    parts = same_dtype(arrays, "multi_dot")
    for t, u in pairwise(parts):
        least = 1 if t is parts[0] else 2
        if not least <= t.ndim <= 2 or known_equal(t.value.shape[-1], u.value.shape[0] if u.ndim else 0) is False:
            raise ShapeError("multi_dot: operand shapes differ", values=rows([t, u]),
                             help="matrices, the first and last perhaps vectors, with inner axes of equal size")
    names = LETTERS
    labels = [list(names[i : i + t.ndim]) for i, t in enumerate(parts)]
    if parts[0].ndim == 1:
        labels = [[names[0]], *[list(names[i : i + t.ndim]) for i, t in enumerate(parts[1:])]]
    counts = [n for ls in labels for n in ls]
    return Tensor(contract([labelled(t.value, ls) for t, ls in zip(parts, labels, strict=True)],
                           [n for n in dict.fromkeys(counts) if counts.count(n) == 1], "multi_dot"))


def _over(x: Tensor, y: Tensor, axes_x: Sequence[int], axes_y: Sequence[int], name: str) -> Tensor:
    """Sum of products over pairs of axes; the axes that stay come in order, x's first. Size 1 does not stretch."""
    for i, j in zip(axes_x, axes_y, strict=True):
        n, m = x.value.shape[i], y.value.shape[j]
        if known_equal(n, m) is False:
            help = f"axis {i} of the first ({n}) must equal axis {j} of the second ({m})"
            raise ShapeError(f"{name}: operand shapes differ", values=rows([x, y]), help=help)
    lx: list[Label] = [f"x{i}" for i in range(x.ndim)]
    ly: list[Label] = [f"y{j}" for j in range(y.ndim)]
    for i, j in zip(axes_x, axes_y, strict=True):
        ly[j] = lx[i]
    out = [n for i, n in enumerate(lx) if i not in axes_x] + [n for j, n in enumerate(ly) if j not in axes_y]
    one = Labelled(x.value, tuple(lx))
    for i, j in zip(axes_x, axes_y, strict=True):
        one = _asserted(one, lx[i], y.value.shape[j])
    return Tensor(contract([one, Labelled(y.value, tuple(ly))], out, name))


@public(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum of products over the last ``axes`` of a and first of b, or over the pairs of axes given."""
    x, y = same_dtype([a, b], "tensordot")
    if (count := whole(axes)) is not None:
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot: {axes} axes cannot be summed", values=rows([x, y]))
        return _over(x, y, range(x.ndim - count, x.ndim), range(count), "tensordot")
    if not holds_entries(axes) or len(axes) != 2:
        raise ShapeError(f"tensordot: axes are a number or two lists, not {axes!r}", values=rows([x, y]))
    left, right = map(entries, axes)
    if len(left) != len(right):
        raise ShapeError(f"tensordot: {len(left)} axes of the first, {len(right)} of the second", values=rows([x, y]))
    return _over(
        x, y, normal_axes(left, x.ndim, "tensordot", x), normal_axes(right, y.ndim, "tensordot", y), "tensordot"
    )


@public(np.inner)
def inner(a: Any, b: Any) -> Tensor:
    """The sum of products over the last axes."""
    x, y = same_dtype([a, b], "inner")
    if not x.ndim or not y.ndim:
        return API["multiply"](a, b)
    return _over(x, y, [x.ndim - 1], [y.ndim - 1], "inner")


@public(np.outer, np.linalg.outer)
def outer(a: Any, b: Any) -> Tensor:
    """All products of elements of the raveled values."""
    return API["multiply"](API["expand_dims"](API["ravel"](a), 1), API["ravel"](b))


@public(np.vdot)
def vdot(a: Any, b: Any) -> Tensor:
    """The sum of products of the raveled values, the first conjugated."""
    return dot(conjugated(API["ravel"](a)), API["ravel"](b))


def conjugated(x: Any) -> Tensor:
    """A factor of a product, conjugated. What is not complex stays as it is: np.conjugate makes an int8 of a bool."""
    t = as_tensor(x)
    return API["conjugate"](t) if t.dtype.kind == "c" else t


@public(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis, the first conjugated; other axes broadcast."""
    x, y = same_dtype([x1, x2], "vecdot")
    x, y = API["moveaxis"](conjugated(x), axis, -1), API["moveaxis"](y, axis, -1)
    return API["squeeze"](matmul(API["expand_dims"](x, -2), API["expand_dims"](y, -1)), (-2, -1))


@public()
def matvec(x1: Any, x2: Any, /) -> Tensor:
    """The product of matrices and vectors, with leading axes that broadcast."""
    return API["squeeze"](matmul(_matrices(x1, "matvec"), API["expand_dims"](x2, -1)), -1)


@public()
def vecmat(x1: Any, x2: Any, /) -> Tensor:
    """The product of conjugated vectors and matrices, with leading axes that broadcast."""
    return API["squeeze"](matmul(API["expand_dims"](conjugated(x1), -2), _matrices(x2, "vecmat")), -2)


def _matrices(x: Any, name: str) -> Tensor:
    t = as_tensor(x)
    if t.ndim < 2:
        raise ShapeError(f"{name}: a matrix has two axes, or more, not {t.ndim}", values=rows([t]), help="x @ y")
    return t


@public(np.kron)
def kron(a: Any, b: Any) -> Tensor:
    """The Kronecker product."""
    x, y = as_tensor(a), as_tensor(b)
    n = max(x.ndim, y.ndim)
    x, y = (API["reshape"](t, (1,) * (n - t.ndim) + t.shape) for t in (x, y))
    out = API["multiply"](
        API["expand_dims"](x, tuple(range(1, 2 * n, 2))), API["expand_dims"](y, tuple(range(0, 2 * n, 2)))
    )
    return API["reshape"](out, tuple(i * j for i, j in zip(x.shape, y.shape, strict=True)))


@public(np.cross, np.linalg.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """The cross product of vectors of 3 (or 2) elements along an axis; other axes broadcast."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_tensor(a), as_tensor(b)
    if not x.ndim or not y.ndim:
        raise ShapeError("cross: vectors are needed", values=rows([x, y]))
    x, y = API["moveaxis"](x, axisa, 0), API["moveaxis"](y, axisb, 0)
    n, m = (known_number(t.value.shape[0], t.value.shape[0]) for t in (x, y))
    if n not in (2, 3) or m not in (2, 3):
        raise ShapeError(f"cross: vectors have 2 or 3 elements, not {n} and {m}", values=rows([x, y]))
    p, q = list(x), list(y)

    def minor(i: int, j: int) -> Tensor:
        terms = [API["multiply"](p[k], q[r]) if k < len(p) and r < len(q) else None for k, r in ((i, j), (j, i))]
        first, second = terms
        if first is None:
            return API["negative"](second) if second is not None else API["zeros_like"](API["multiply"](p[0], q[0]))
        return first if second is None else API["subtract"](first, second)

    if n == m == 2:
        return minor(0, 1)
    out = API["stack"](API["broadcast_arrays"](minor(1, 2), minor(2, 0), minor(0, 1)))
    return API["moveaxis"](out, 0, axisc)


@public(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum of a diagonal."""
    return API["sum"](API["diagonal"](a, offset, axis1, axis2), -1, dtype)


@public(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Tensor:
    """A square matrix to a whole power, by repeated squaring; of its inverse, for a negative one."""
    t = as_tensor(a)
    power = integer(n, "matrix_power: the power")
    if power < 0:
        return matrix_power(API["linalg.inv"](t), -power)
    if t.ndim < 2 or known_equal(t.value.shape[-1], t.value.shape[-2]) is False:
        raise ShapeError("matrix_power: a square matrix is needed", values=rows([t]))
    out, square = None, t
    while power:
        if power & 1:
            out = square if out is None else matmul(out, square)
        power >>= 1
        square = matmul(square, square) if power else square
    return API["broadcast_to"](API["eye"](t.shape[-1], dtype=t.dtype), t.shape) if out is None else out


# --- einsum -----------------------------------------------------------------------------------------------------------


@public(np.einsum, memory="einsum")
def einsum(subscripts: Any, *operands: Any, optimize: Any = True, dtype: Any = None) -> Tensor:
    """A sum of products in Einstein's notation: ``einsum("ij,jk->ik", a, b)``, ``einsum(a, [0, 1], b, [1], [0])``."""
    if isinstance(subscripts, str):
        inputs, output = _from_text(subscripts)
        items = list(operands)
    else:
        items, inputs, output = _from_lists([subscripts, *operands])
    if len(items) != len(inputs):
        raise ShapeError(f"einsum: the subscripts name {len(inputs)} operands, there are {len(items)}")
    tensors = same_dtype(items, "einsum")
    if dtype is not None:
        tensors = [API["astype"](t, dtype) for t in tensors]
    depth = max((t.ndim - (len(ls) - 1) for t, ls in zip(tensors, inputs, strict=True) if Ellipsis in ls), default=0)
    filled = [_filled(ls, t, depth) for t, ls in zip(tensors, inputs, strict=True)]
    if output is None:
        flat = [n for ls in inputs for n in ls if n is not Ellipsis]
        output = [Ellipsis, *sorted(n for n in set(flat) if flat.count(n) == 1)]
        output = output if any(Ellipsis in ls for ls in inputs) else output[1:]
    out = [n for label in output for n in (_dots(depth) if label is Ellipsis else [label])]
    known = {n for ls in filled for n in ls}
    for n in out:
        if n not in known or out.count(n) > 1:
            raise ShapeError(f"einsum: the output label {n!r} must occur once, and in an operand")
    dtype = tensors[0].dtype
    wide = computed(dtype) if len(tensors) > 2 else dtype  # rounded once, as in NumPy, and not between the products
    parts = [labelled(convert(t.value, wide), ls) for t, ls in zip(tensors, filled, strict=True)]
    return Tensor(convert(contract(parts, out), dtype))


def _dots(depth: int) -> list[Label]:
    return [f"...{i}" for i in range(depth)]


def _filled(labels: Sequence[Any], t: Tensor, depth: int) -> list[Label]:
    """Labels with the ellipsis spelled out."""
    plain = [n for n in labels if n is not Ellipsis]
    mine = t.ndim - len(plain)
    if mine < 0 or (mine and Ellipsis not in labels):
        raise ShapeError(
            f"einsum: {len(plain)} labels for {t.ndim} axes",
            values=rows([t]),
            help="every axis needs a label, or use ...",
        )
    return [n for label in labels for n in (_dots(depth)[depth - mine:] if label is Ellipsis else [label])]


def _from_text(text: str) -> tuple[list[list[Any]], list[Any] | None]:
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")

    def read(part: str) -> list[Any]:
        out: list[Any] = []
        while part:
            if part.startswith("..."):
                out.append(Ellipsis)
                part = part[3:]
            elif part[0] in LETTERS:
                out.append(part[0])
                part = part[1:]
            else:
                raise ShapeError(f"einsum: {part[0]!r} in {text!r} is no label", help='for example "ij,jk->ik"')
        if out.count(Ellipsis) > 1:
            raise ShapeError(f"einsum: two ellipses for one operand in {text!r}")
        return out

    return [read(p) for p in left.split(",")], read(right) if arrow else None


def _from_lists(args: list[Any]) -> tuple[list[Any], list[list[Any]], list[Any] | None]:
    output = None
    if len(args) % 2:
        *args, output = args
    return args[::2], [list(ls) for ls in args[1::2]], None if output is None else list(output)


# --- norms ------------------------------------------------------------------------------------------------------------


@public(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices, as ``numpy.linalg.norm``. The 2-norm cannot overflow; its gradient at 0 is 0."""
    t = as_tensor(x)
    if axis is None and ord is not None and t.ndim not in (1, 2):
        raise ShapeError("norm: with an order, one or two axes are needed; give axis", values=rows([t]))
    axes = normal_axes(axis, t.ndim, "norm", t)
    if ord is None or (len(axes) == 1 and ord == 2) or (len(axes) == 2 and ord in ("fro", "f")):
        axes = tuple(sorted(axes))
        out = lookup("norm")(convert(t.value, inexact_dtype(t.dtype)), axes=axes)
        return Tensor(expanded(out, axes) if keepdims else out)
    if len(axes) == 2 and ord in (2, -2, "nuc"):
        return _spectral_norm(t, ord, axes, keepdims)
    size = API["absolute"](Tensor(convert(t.value, inexact_dtype(t.dtype))))
    if len(axes) == 1:
        return _vector_norm(size, ord, axes[0], keepdims)
    if len(axes) != 2 or ord not in (1, -1, np.inf, -np.inf):
        raise InputError(
            f"norm: order {ord!r} is not available for matrices",
            values=rows([t]),
            help="orders: None, 'fro', 'nuc', 1, -1, 2, -2, inf, -inf",
        )
    summed, best = axes if ord in (1, -1) else axes[::-1]
    total = API["sum"](size, summed, keepdims=True)
    out = API["max" if ord > 0 else "min"](total, best, keepdims=True)
    return out if keepdims else API["squeeze"](out, axes)


def _spectral_norm(t: Tensor, ord: Any, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Largest, least, or sum of the singular values."""
    s = API["linalg.svdvals"](API["moveaxis"](t, axes, (-2, -1)))
    out = API["sum" if ord == "nuc" else "max" if ord == 2 else "min"](s, -1)
    return Tensor(expanded(out.value, axes)) if keepdims else out


def _vector_norm(size: Tensor, ord: Any, axis: int, keepdims: bool) -> Tensor:
    if ord in (np.inf, -np.inf):
        return API["max" if ord > 0 else "min"](size, axis, keepdims)
    if ord == 0:
        return API["astype"](API["sum"](API["not_equal"](size, 0), axis, keepdims=keepdims), size.dtype)
    if ord == 1:
        return API["sum"](size, axis, keepdims=keepdims)
    return API["power"](API["sum"](API["power"](size, ord), axis, keepdims=keepdims), 1.0 / ord)


@public(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm of all elements along the axes, taken as one vector."""
    t = as_tensor(x)
    axes = normal_axes(axis, t.ndim, "vector_norm", t)
    if ord == 2:
        return norm(t, None, axes, keepdims)
    rest = [a for a in range(t.ndim) if a not in axes]
    flat = API["reshape"](API["transpose"](t, (*rest, *axes)), (*[t.shape[a] for a in rest], -1))
    out = norm(flat, ord, -1)
    return API["expand_dims"](out, tuple(sorted(axes))) if keepdims else out


@public(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)

