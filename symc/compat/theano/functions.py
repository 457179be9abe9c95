"""``theano.tensor``: functions that NumPy has not, or that mean something else there. All others are symc's by name."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano.settings import float_dtype
from symc.compat.theano.variable import Shape, TensorType, TensorVariable, lifted, plain, tensor_of, wrap
from symc.errors import InputError
from symc.ir.op import lookup
from symc.tensors.convert import as_tensor

_LETTERS = {"b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64", "c": "complex64",
            "z": "complex128", "": "floatX"}
_PATTERNS = {"scalar": (), "vector": (False,), "matrix": (False,) * 2, "row": (True, False), "col": (False, True),
             **{f"tensor{n}": (False,) * n for n in range(3, 8)}}
_PLURAL = {"scalars": "scalar", "vectors": "vector", "matrices": "matrix", "rows": "row", "cols": "col",
           **{f"tensor{n}s": f"tensor{n}" for n in range(3, 8)}}


def constructors() -> dict[str, Any]:
    """``dmatrix`` and its like: types, which make a variable when called; ``matrix`` has the dtype ``floatX``."""
    found: dict[str, Any] = {}
    for letter, dtype in _LETTERS.items():
        for rank, pattern in _PATTERNS.items():
            found[letter + rank] = TensorType(dtype, pattern) if letter else functools.partial(_of_rank, pattern)
    for many, one in _PLURAL.items():
        for letter in _LETTERS:
            found[letter + many] = functools.partial(_several, found[letter + one])
    return found


def _of_rank(pattern: Sequence[bool], name: str | None = None, dtype: Any = None) -> TensorVariable:
    return TensorType(float_dtype(dtype), pattern)(name)


def _several(make: Callable[..., Any], *names: Any, **options: Any) -> list[TensorVariable]:
    given = names[0] if len(names) == 1 else names
    return [make(n, **options) for n in ([None] * given if isinstance(given, int) else given)]


def as_tensor_variable(x: Any, name: str | None = None, ndim: int | None = None) -> TensorVariable:
    """A number, array, list or variable as a variable, with further axes of length 1 in front for ``ndim``."""
    out = x if isinstance(x, TensorVariable) else wrap(as_tensor(plain(x)), name)
    return out if ndim is None or ndim <= out.ndim else shape_padleft(out, ndim - out.ndim)


def constant(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> TensorVariable:
    return as_tensor_variable(np.asarray(x, dtype and float_dtype(dtype)) if dtype else x, name, ndim)


def cast(x: Any, dtype: Any) -> TensorVariable:
    return wrap(sc.astype(tensor_of(x), float_dtype(dtype)))


def sizes_of(shape: Any, ndim: int | None = None) -> tuple[Any, ...]:
    """A shape: a tuple of sizes, a size, or a vector that is data, whose length must be known."""
    if isinstance(shape, TensorVariable) and not isinstance(shape, Shape) and shape.ndim == 1:
        known = shape.tensor.shape[0]
        count = ndim if ndim is not None else known if isinstance(known, int) else None
        if count is None:
            raise InputError("the length of a shape must be known", values=[shape.tensor.describe("the shape")],
                             help="give ndim=")
        return tuple(shape.tensor[i] for i in range(count))
    found = plain(shape)
    return tuple(int(n) if isinstance(n, np.integer) else n for n in found) if isinstance(found, tuple | list) else \
        (tuple(found.tolist()) if isinstance(found, np.ndarray) else (found,))


def zeros(shape: Any, dtype: Any = None) -> TensorVariable:
    return wrap(sc.zeros(sizes_of(shape), float_dtype(dtype)))


def ones(shape: Any, dtype: Any = None) -> TensorVariable:
    return wrap(sc.ones(sizes_of(shape), float_dtype(dtype)))


def eye(n: Any, m: Any = None, k: int = 0, dtype: Any = None) -> TensorVariable:
    return wrap(sc.eye(plain(n), plain(m), k, dtype=float_dtype(dtype)))


def alloc(value: Any, *shape: Any) -> TensorVariable:
    return wrap(sc.broadcast_to(tensor_of(value), tuple(plain(n) for n in shape)))


def fill(a: Any, b: Any) -> TensorVariable:
    return wrap(sc.broadcast_to(tensor_of(b), tensor_of(a).shape))


def identity_like(x: Any) -> TensorVariable:
    rows, columns = tensor_of(x).shape
    return eye(rows, columns, dtype=tensor_of(x).dtype)


def dimshuffle(x: Any, *pattern: Any) -> TensorVariable:
    """The axes by number, in another order; "x" is a new one of length 1, and one of length 1 may be left out."""
    axes = pattern[0] if len(pattern) == 1 and isinstance(pattern[0], tuple | list) else pattern
    t, kept = tensor_of(x), [a for a in axes if a != "x"]
    dropped = [a for a in range(t.ndim) if a not in kept]
    t = sc.squeeze(sc.transpose(t, [*kept, *dropped]), tuple(range(len(kept), t.ndim))) if dropped else \
        sc.transpose(t, kept) if kept else t
    new = tuple(i for i, a in enumerate(axes) if a == "x")
    return wrap(sc.expand_dims(t, new) if new else t)


def shape_padleft(x: Any, n_ones: int = 1) -> TensorVariable:
    return dimshuffle(x, *["x"] * n_ones, *range(tensor_of(x).ndim))


def shape_padright(x: Any, n_ones: int = 1) -> TensorVariable:
    return dimshuffle(x, *range(tensor_of(x).ndim), *["x"] * n_ones)


def reshape(x: Any, newshape: Any, *more: Any, ndim: int | None = None) -> TensorVariable:
    if isinstance(newshape, int) and more:  # x.reshape(2, 3)
        newshape = (newshape, *more)
    return wrap(sc.reshape(tensor_of(x), sizes_of(newshape, ndim)))


def flatten(x: Any, ndim: int = 1, outdim: int | None = None) -> TensorVariable:
    """The last axes as one, so that ``ndim`` are left."""
    t, n = tensor_of(x), outdim or ndim
    return wrap(sc.reshape(t, (*t.shape[: n - 1], -1)))


def specify_shape(x: Any, shape: Any) -> TensorVariable:
    """x, of which is known that it has these sizes; None is unknown. A call with others is an error."""
    t = tensor_of(x)
    want = tuple(n if n is not None else have for n, have in zip(sizes_of(shape), t.value.shape, strict=True))
    return wrap(sc.Tensor(lookup("ensure_shape")(t.value, shape=tuple(getattr(n, "dim", n) for n in want))))


def addbroadcast(x: Any, *axes: int) -> TensorVariable:
    """x, whose ``axes`` are declared to have length 1."""
    return specify_shape(x, [1 if a in axes else None for a in range(tensor_of(x).ndim)])


def unbroadcast(x: Any, *axes: int) -> TensorVariable:
    """x: what is known of a size is not forgotten here."""
    return as_tensor_variable(x)


def patternbroadcast(x: Any, pattern: Sequence[bool]) -> TensorVariable:
    return addbroadcast(x, *[a for a, one in enumerate(pattern) if one])


def _subtensor(y: Any, what: str, value: Any, change: str) -> TensorVariable:
    if getattr(y, "subtensor", None) is None:
        raise TypeError(f"{what}: its first argument is a part of a variable, x[index]")
    base, index = y.subtensor
    return wrap(getattr(base.tensor.at[plain(index)], change)(plain(value)))


def set_subtensor(x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> TensorVariable:
    """The variable that x is a part of, with that part replaced by y."""
    return _subtensor(x, "set_subtensor", y, "set")


def inc_subtensor(x: Any, y: Any, inplace: bool = False, set_instead_of_inc: bool = False,
                  tolerate_inplace_aliasing: bool = False) -> TensorVariable:
    """The variable that x is a part of, with y added to that part; what is indexed twice is added to twice."""
    return _subtensor(x, "inc_subtensor", y, "set" if set_instead_of_inc else "add")


def folded(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two values for any number of them."""
    return lambda *items: wrap(functools.reduce(fn, map(tensor_of, items)))


def reduction(name: str) -> Callable[..., Any]:
    """A reduction, of all axes or of some, in Theano's order of arguments."""
    fn = getattr(sc, name)

    def call(x: Any, axis: Any = None, *more: Any, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None,
             **options: Any) -> TensorVariable:
        if more:
            dtype = more[0]
        if dtype is not None:
            options["dtype"] = float_dtype(dtype)
        return wrap(fn(tensor_of(x), tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims, **options))
    call.__name__ = name
    return call


def max_and_argmax(x: Any, axis: Any = None, keepdims: bool = False) -> list[TensorVariable]:
    t = tensor_of(x)
    return [wrap(sc.max(t, axis, keepdims=keepdims)), wrap(sc.argmax(t, axis, keepdims=keepdims))]


def norm(x: Any, L: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    t = tensor_of(x)
    if L == 0:
        return wrap(sc.sum(t != 0, axis, keepdims=keepdims))
    return wrap(sc.max(abs(t), axis, keepdims=keepdims) if np.inf == L else
                sc.sum(abs(t) ** L, axis, keepdims=keepdims) ** (1 / L))


def join(axis: int, *items: Any) -> TensorVariable:
    return wrap(sc.concatenate([tensor_of(t) for t in items], axis))


def stack(*items: Any, axis: int = 0) -> TensorVariable:
    """Values along a new axis: a list of them (and the axis), or each as an argument."""
    if items and isinstance(items[0], list | tuple):
        axis = items[1] if len(items) > 1 else axis
        items = tuple(items[0])
    return wrap(sc.stack([tensor_of(t) for t in items], axis))


def split(x: Any, splits_size: Any, n_splits: int, axis: int = 0) -> list[TensorVariable]:
    t, start, out = tensor_of(x), 0, []
    for size in sizes_of(splits_size, n_splits):
        out.append(wrap(t[(slice(None),) * (axis % t.ndim) + (slice(start, start + size),)]))
        start = start + size
    return out


def concatenate(tensor_list: Any, axis: int = 0) -> TensorVariable:
    return join(axis, *tensor_list)


def round(x: Any, mode: str | None = None) -> TensorVariable:
    t = tensor_of(x)
    return wrap(sc.sign(t) * sc.floor(abs(t) + 0.5) if mode == "half_away_from_zero" else sc.round(t))


def batched_dot(a: Any, b: Any) -> TensorVariable:
    """Products of the entries along the first axis."""
    return wrap(sc.vmap(sc.dot)(tensor_of(a), tensor_of(b)))


def diag(x: Any, k: int = 0) -> TensorVariable:
    return wrap(sc.diag(tensor_of(x), k))


def nonzero(x: Any, return_matrix: bool = False) -> Any:
    found = sc.nonzero(tensor_of(x))
    return wrap(sc.stack(found)) if return_matrix else tuple(wrap(i) for i in found)


def nonzero_values(x: Any) -> TensorVariable:
    t = tensor_of(x)
    return wrap(t[t != 0])


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> TensorVariable:
    return wrap(sc.one_hot(tensor_of(y), plain(nb_class)).astype(float_dtype(dtype)))


def fill_diagonal(a: Any, val: Any) -> TensorVariable:
    t = tensor_of(a)
    i = sc.arange(sc.minimum(*t.shape))
    return wrap(t.at[i, i].set(plain(val)))


def xlogy0(x: Any, y: Any) -> TensorVariable:
    return wrap(sc.special.xlogy(tensor_of(x), tensor_of(y)))


def solve(a: Any, b: Any, **options: Any) -> TensorVariable:
    return wrap(sc.linalg.solve(tensor_of(a), tensor_of(b)))


def smallest(*items: Any) -> TensorVariable:
    return wrap(functools.reduce(sc.minimum, map(tensor_of, items)))


def shape(x: Any) -> Shape:
    return as_tensor_variable(x).shape


#: Functions of symc by Theano's names, where those are others: ``theirs=ours``.
RENAMED = (
    "neq=not_equal eq=equal lt=less le=less_equal gt=greater ge=greater_equal and_=bitwise_and or_=bitwise_or "
    "xor=bitwise_xor switch=where sqr=square sgn=sign abs_=abs neg=negative inv=reciprocal mod=remainder pow=power "
    "int_div=floor_divide true_div=true_divide sub=subtract gamma=special.gamma psi=digamma erf=erf erfc=erfc "
    "erfinv=erfinv erfcinv=special.erfcinv erfcx=special.erfcx gammaln=gammaln matrix_inverse=linalg.inv "
    "det=linalg.det pinv=linalg.pinv eigh=linalg.eigh eig=linalg.eig svd=linalg.svd qr=linalg.qr "
    "cholesky=linalg.cholesky expm=linalg.expm matrix_power=linalg.matrix_power tensorinv=linalg.tensorinv kron=kron "
    "iround=rint").split()


_SYMC: Any = sc


def _named(path: str) -> Callable[..., Any]:
    return lifted(functools.reduce(getattr, path.split("."), _SYMC))


FUNCTIONS: dict[str, Any] = {
    **{theirs: _named(ours) for theirs, ours in (pair.split("=") for pair in RENAMED)},
    **{name: reduction(name) for name in "sum prod mean max min any all argmax argmin var std ptp".split()},
    **{name: folded(getattr(sc, fn)) for name, fn in
       [("add", "add"), ("mul", "multiply"), ("maximum", "maximum"), ("minimum", "minimum"), ("matrix_dot", "dot")]},
    **{f.__name__: f for f in (
        as_tensor_variable, constant, cast, zeros, ones, eye, alloc, fill, identity_like, dimshuffle, shape_padleft,
        shape_padright, reshape, flatten, specify_shape, addbroadcast, unbroadcast, patternbroadcast, set_subtensor,
        inc_subtensor, max_and_argmax, norm, join, stack, split, concatenate, round, batched_dot, diag, nonzero,
        nonzero_values, to_one_hot, fill_diagonal, xlogy0, solve, smallest, shape)},
    "batched_tensordot": batched_dot, "AllocDiag": lambda: diag,
    "solve_lower_triangular": lambda a, b: wrap(sc.linalg.solve_triangular(tensor_of(a), tensor_of(b), lower=True)),
    "solve_upper_triangular": lambda a, b: wrap(sc.linalg.solve_triangular(tensor_of(a), tensor_of(b))),
    "tensor_copy": as_tensor_variable, "tensordot": lambda a, b, axes=2: wrap(
        sc.tensordot(tensor_of(a), tensor_of(b), plain(axes))),
    "stacklists": as_tensor_variable, "largest": folded(sc.maximum),
    "zeros_like": lambda x, dtype=None: wrap(sc.zeros_like(tensor_of(x), dtype and float_dtype(dtype))),
    "ones_like": lambda x, dtype=None: wrap(sc.ones_like(tensor_of(x), dtype and float_dtype(dtype))),
    "flatnonzero": lambda x: nonzero(flatten(x))[0], "TensorType": TensorType, "TensorVariable": TensorVariable,
    **constructors(),
}  # fmt: skip
