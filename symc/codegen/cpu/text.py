"""Numbers, dtypes and folds as the text of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from symc.codegen.cpu.intrinsics import cast_template, kind_of, template
from symc.codegen.kernel.user_functions import PREFIX
from symc.codegen.language.syntax import Unsupported
from symc.ir.dim import Size
from symc.ir.dtypes import RECORDS, computed, foreign
from symc.ir.op import Decompose, lookup
from symc.ir.ops import reduce
from symc.ir.types import DTYPE_NAMES, TensorType
from symc.ir.value import Value, fresh_input


def number(x: np.ndarray) -> str:
    """A constant, with its dtype where Python's own would be another."""
    x = x.astype(computed(x.dtype)) if foreign(x.dtype) is not None else x
    kind = x.dtype.kind
    if kind == "b":
        return "True" if x else "False"
    if kind == "c":
        text = f"{DTYPE_NAMES[x.dtype]}(complex({float(x.real)!r}, {float(x.imag)!r}))"
        return text.replace("inf", "INF").replace("nan", "NAN")
    name = RECORDS[x.dtype].computed
    if kind in "iu":
        return str(int(x)) if name == "i64" else f"{name}({int(x)})"
    text = repr(float(x)) if x.dtype.itemsize != 4 else repr(float(str(x[()])))
    text = text.replace("inf", "INF").replace("nan", "NAN")
    return text if name == "f64" else f"{name}({text})"


def identity(kind: str, dtype: np.dtype) -> str:
    """The number that a fold starts from."""
    return number(np.asarray(reduce.identity(kind, dtype)))


#: By the kind of numbers, the folds that are functions of the language.
_IN_ANY_ORDER = {"f": ("add", "mul", "maximum", "minimum"), "c": ("add",)}


def combine(kind: str, now: str, x: str, dtype: np.dtype, exact: bool = False) -> str:
    """One step of a fold. Sums and products of floats, and sums of complex numbers, may be reassociated (so that they
    vectorize), and of zeros of either sign any may be the greatest, unless ``exact``."""
    if not exact and kind in _IN_ANY_ORDER.get(dtype.kind, ()):
        return f"fold_{kind}({now}, {x})"
    if (form := template(kind, dtype.kind)) is not None:
        return rounded(form.format(now, x), computed(dtype))
    element = TensorType(computed(dtype), ())
    names = {fresh_input(element): now, fresh_input(element): x}
    return expression(lookup(kind)(*names), names)


def expression(v: Value, names: Mapping[Value, str]) -> str:
    """One expression of a scalar of scalars that have names. An op without a spelling is what it is made of."""
    if v in names:
        return names[v]
    if v.data is not None:
        return number(v.data)
    if isinstance(v.op.lowering, Decompose) and isinstance(whole := v.op.lowering.f(v), Value):
        return expression(whole, names)
    return f"({scalar(v, [expression(o, names) for o in v.operands])})"


def scalar(v: Value, operands: Sequence[str]) -> str:
    """The scalar that the op of a value makes of scalars."""
    if "c" in {v.dtype.kind, *[o.dtype.kind for o in v.operands]} and "complex_kernel" not in v.op.traits:
        raise Unsupported(f"{v.op.name} of complex numbers")
    if v.op.name == "cast":
        form = cast_template(v.operands[0].dtype, v.dtype)
    else:
        form = template(v.op.name, kind_of(v.operands[-1].dtype))
    if form is None:
        raise Unsupported(f"{v.op.name} of {v.operands[0].dtype}")
    return rounded(form.format(*operands, **v.attrs), v.dtype)


def failing(v: Value, x: str, size: Callable[[Size], str]) -> list[str]:
    """Tests of the operand of a check, one of which is true if it fails."""
    return [f"({x} < 0)", f"({x} >= {size(v.attrs['size'])})"] if "size" in v.attrs else [f"({x} == 0)"]


def rounded(text: str, dtype: np.dtype) -> str:
    """Keep an expression in its dtype: Numba widens small integers, and half precision is computed in single."""
    form = RECORDS[dtype].rounded
    if form != "{}":
        return form.format(text)
    if text.startswith(PREFIX):
        return f"{DTYPE_NAMES[dtype]}({text})"
    if dtype == np.complex64 and text.startswith("complex("):
        return f"c64({text})"
    return f"f32({text})" if dtype == np.float32 and "math." in text else text


def loaded(text: str, dtype: np.dtype) -> str:
    """A read of memory as a value."""
    return RECORDS[dtype].loaded.format(text)


def stored(text: str, dtype: np.dtype) -> str:
    """An expression as it is written to memory."""
    return RECORDS[dtype].stored.format(text)
