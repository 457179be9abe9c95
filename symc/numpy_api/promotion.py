"""NumPy's rules for mixing operands: dtypes (NEP 50, with weak Python numbers) and shapes (broadcasting).

IR ops take operands of one dtype and one shape; these functions make them so. Sizes that are not known to be equal are
asserted with ``ensure_shape``, which a compiled function checks once a call; sizes known to differ are an error here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError, SymbolicValueError
from symc.ir.dim import Dim, Size, known_different, known_equal
from symc.ir.dtypes import is_foreign
from symc.ir.op import lookup
from symc.ir.ops.ensure import ensured
from symc.ir.size_values import number
from symc.ir.types import DTYPE_NAMES, DTYPES, as_dtype
from symc.ir.value import Value
from symc.tensors.convert import as_operand, convert, settle
from symc.tensors.tensor import Tensor

Kind = Any  # a dtype, or the Python type int, float or complex of a weak operand
_PYTHON = {"i": int, "u": int, "f": float, "c": complex}
_EXAMPLE: dict[type, Any] = {int: 0, float: 0.0, complex: 0j}


def kind_of(t: Tensor) -> Kind:
    """Kind of an operand for promotion."""
    return _PYTHON[t.dtype.kind] if t.weak else t.dtype


def _of_numpy(kinds: Sequence[Kind]) -> tuple[tuple[Kind, ...], np.dtype | None]:
    """Kinds that NumPy knows the rules of. A dtype of storage is as float32 beside float16 and beside another one, else
    as float16: that for which a result in float16 then stands."""
    stored = {k for k in kinds if is_foreign(k)}
    alone = len(stored) == 1 and DTYPES["f16"] not in kinds
    known = tuple([DTYPES["f16" if alone else "f32"] if is_foreign(k) else k for k in kinds])
    return known, stored.pop() if alone else None


def _back(d: np.dtype, stored: np.dtype | None) -> np.dtype:
    return stored if stored is not None and d == DTYPES["f16"] else d


@cache
def promoted(kinds: tuple[Kind, ...]) -> np.dtype:
    """The dtype that operands of these kinds have in common."""
    kinds, stored = _of_numpy(kinds)
    return _back(as_dtype(np.result_type(*[_EXAMPLE.get(k, k) for k in kinds])), stored)


@cache
def _loop_types(ufunc: np.ufunc, kinds: tuple[Kind, ...], out: np.dtype | None,
                casting: Any = "same_kind") -> tuple[np.dtype, ...]:
    (*known, wanted), stored = _of_numpy((*kinds, out))
    request = (*known, *[None] * ufunc.nout)
    how: Any = {} if out is None else {"signature": (*[None] * ufunc.nin, *[wanted] * ufunc.nout)}
    return tuple(_back(as_dtype(d), stored) for d in ufunc.resolve_dtypes(request, casting=casting, **how))


def _is_double(kind: Kind) -> bool:
    return isinstance(kind, np.dtype) and kind.char in "dD"


def common_dtype(tensors: Sequence[Tensor]) -> np.dtype:
    """The dtype that NumPy promotes the operands to."""
    kinds = tuple(map(kind_of, tensors))
    return settle(promoted(kinds), any(map(_is_double, kinds)))


def loop_dtypes(ufunc: np.ufunc, tensors: Sequence[Tensor], out: np.dtype | None = None,
                casting: str = "same_kind") -> tuple[np.dtype, ...]:
    """The dtypes in which a ufunc computes: one an operand, then one a result (``out``, if given).

    Raises DTypeError if there are none.
    """
    kinds = tuple(map(kind_of, tensors))
    if all(t.weak for t in tensors):  # NumPy knows no comparison of Python numbers alone
        kinds = tuple(t.dtype for t in tensors)
    try:
        types = _loop_types(ufunc, kinds, out, casting)
    except TypeError as e:
        names = " and ".join(DTYPE_NAMES[t.dtype] for t in tensors)
        names += f" with casting={casting!r}" if casting != "same_kind" else ""
        names += "" if out is None else f" with dtype={out}"
        raise DTypeError(
            f"{ufunc.__name__} is not defined for {names}", values=rows(tensors), help=_hint(e, ufunc)
        ) from None
    strong = out is not None or any(_is_double(kind_of(t)) for t in tensors)
    return tuple(settle(d, strong) for d in types)


def _hint(e: TypeError, ufunc: np.ufunc) -> str:
    if "boolean" in str(e):
        return "use ^ (sc.logical_xor) or ~ (sc.logical_not) on bool"
    dtype = next((d for d in ("float64", "int64", "bool") if _accepts(ufunc, np.dtype(d))), None)
    advice = f"; cast first: x.astype({dtype!r})" if dtype else ""
    return f"NumPy has no {ufunc.__name__} of these dtypes either{advice}"


def _accepts(ufunc: np.ufunc, dtype: np.dtype) -> bool:
    try:
        _loop_types(ufunc, (dtype,) * ufunc.nin, None)
    except (TypeError, DTypeError):
        return False
    return True


def rows(tensors: Sequence[Tensor]) -> list[tuple[str, Any, Any]]:
    """Rows for an error message about operands."""
    return [t.describe(f"operand {i}") for i, t in enumerate(tensors)]


def no_out(out: Any, name: str) -> None:
    """Raise SymbolicValueError for a place where NumPy would put the result."""
    if out is not None:
        raise SymbolicValueError(f"{name}(out=) is not possible with symbolic values: they never change",
                                 help="use the result; f(x, out=buffer) of a compiled function writes into an array")


#: How often a function repeats what it writes down: each time makes the program longer.
MOST_TIMES = 10_000


def check_times(n: int, what: str) -> None:
    """Raise InputError for a program that would be too long to write down."""
    if n > MOST_TIMES:
        raise InputError(f"{what}, {n}, is more than {MOST_TIMES}")


def check_range(t: Tensor, dtype: np.dtype, name: str, among: Sequence[Tensor] = ()) -> None:
    """A Python integer must fit the integer dtype that it takes part in, with the operands ``among``."""
    if t.weak and dtype.kind in "iu" and t.value.data is not None and t.dtype.kind in "iu":
        number, info = int(t.value.data), np.iinfo(dtype)
        if not info.min <= number <= info.max:
            raise DTypeError(
                f"{name}: the Python integer {number} does not fit {DTYPE_NAMES[dtype]}",
                values=rows(among),
                help=f"{DTYPE_NAMES[dtype]} holds {info.min} to {info.max}; cast the other operand to a wider dtype",
            )


# --- shapes -----------------------------------------------------------------------------------------------------------


def broadcast_shape(tensors: Sequence[Tensor], name: str) -> tuple[Size, ...]:
    """The shape operands broadcast to. Raises ShapeError for sizes that are known to differ."""
    shapes = [t.value.shape for t in tensors]
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    out: list[Size] = []
    for axis in range(-max(map(len, shapes)), 0):
        sizes = [s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1]
        if any(s != sizes[0] for s in sizes):  # x[:, :1] beside x is stretched: it has a column, or a call raises
            sizes = [s for s in sizes if not at_most_one(s)] or sizes
        numbers = [s for s in sizes if isinstance(s, int)]
        target: Size = (numbers or sizes or [1])[0]
        if any(known_equal(s, target) is False for s in sizes):
            different = next(s for s in sizes if known_equal(s, target) is False)
            raise ShapeError(f"{name}: operand shapes differ", values=rows(tensors),
                             help=_shape_hint(shapes, axis, target, different))
        out.append(target)
    return tuple(out)


def at_most_one(size: Size) -> bool:
    """True for what is 0 or 1 whatever the sizes are that it is made of, as the size of ``x[:1]``; judged by a few."""
    return isinstance(size, Dim) and all(number(size, n) in (0, 1) for n in (0, 1, 2, 3, 17, 1000))


def _shape_hint(shapes: Sequence[tuple], axis: int, a: Size, b: Size) -> str:
    where = {-1: "the last axes", -2: "the last axes but one"}.get(axis, f"the axes {-axis} from the end")
    text = f"{where} are {a} and {b}; they must be equal, or one of them 1"
    if len(shapes) == 2 and len(shapes[0]) > len(shapes[1]) == 1 and shapes[0][0] == shapes[1][0]:
        text += "; did you mean x op b[:, None]?"
    elif len(shapes) == 2 and len(shapes[0]) == 2 == len(shapes[1]) and shapes[0][1] == shapes[1][0]:
        text += "; did you mean x @ y?"
    return text


def of_shape(t: Tensor, shape: Sequence[Size], what: str) -> Tensor:
    """A tensor whose sizes are to be these. Raises ShapeError for those that are known to differ."""
    have, want = t.value.shape, tuple(shape)
    if len(have) != len(want) or known_different(have, want):
        raise ShapeError(f"{what} is of shape ({', '.join(map(str, want))}), not ({', '.join(map(str, have))})",
                         values=rows([t]))
    return Tensor(ensured(t.value, want))


def stretch(v: Value, shape: tuple[Size, ...]) -> Value:
    """A value broadcast to ``shape``, which must be a legal target."""
    have = v.shape
    if have == shape:
        return v
    offset = len(shape) - len(have)
    want = shape[offset:]
    if any(h != w and h != 1 for h, w in zip(have, want, strict=True)):  # equal, or else an error in a call
        v = lookup("ensure_shape")(v, shape=tuple(
            1 if h != w and (h == 1 or at_most_one(h) and not at_most_one(w)) else w
            for h, w in zip(have, want, strict=True)))
    kept = [i for i, (h, w) in enumerate(zip(v.shape, want, strict=True)) if h == w]
    if len(kept) == len(shape):
        return v
    if len(kept) < len(have):
        v = lookup("reshape")(v, shape=tuple(want[i] for i in kept))
    return lookup("broadcast")(v, axes=tuple(i + offset for i in kept), shape=tuple(shape))


def together(items: Sequence[Any], name: str, dtype: np.dtype | None = None) -> list[Value]:
    """Operands in one shape and one dtype (the promoted one by default)."""
    tensors = [as_operand(i) for i in items]
    dtype = dtype or common_dtype(tensors)
    for t in tensors:
        check_range(t, dtype, name, tensors)
    shape = broadcast_shape(tensors, name)
    return [stretch(convert(t.value, dtype), shape) for t in tensors]


def same_dtype(items: Sequence[Any], name: str) -> list[Tensor]:
    """Operands in one dtype, in their own shapes."""
    tensors = [as_operand(i) for i in items]
    dtype = common_dtype(tensors)
    for t in tensors:
        check_range(t, dtype, name, tensors)
    return [Tensor(convert(t.value, dtype)) for t in tensors]
