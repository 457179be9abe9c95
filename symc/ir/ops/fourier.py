"""Discrete Fourier transforms along one axis, without a factor: element k is the sum of x[j] * exp(-2 pi i j k / n).

Factors, several axes, cropping and zeros at the end are other ops, which the front end puts around these. The transpose
of a transform is a transform: what `rfft` leaves out, as it is the conjugate of another element, counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, known_equal, known_nonnegative
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Extern, Linear, Op, register
from symc.ir.ops.compare import eq
from symc.ir.ops.cumulative import check_axis
from symc.ir.ops.elementwise import check_kind, like
from symc.ir.ops.leaf import iota, size
from symc.ir.ops.logic import or_, where
from symc.ir.ops.shape import broadcast
from symc.ir.types import DTYPES, TensorType, complex_dtype, real_dtype
from symc.ir.value import Value


def _check(name: str, t: TensorType, axis: int, kinds: str) -> None:
    check_kind(name, t, kinds)
    check_axis(name, t, axis)
    if t.dtype == np.float16:
        raise DTypeError(f"{name} is not defined for f16", help="cast it to f32")


def check_points(name: str, n: Size) -> None:
    """Raises ShapeError where it is known that there is nothing to transform."""
    if known_nonnegative(-n):
        raise ShapeError(f"{name}: a transform of {n} points: there must be at least one")


def _contiguous(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(x, dtype)


def _samples(kinds: str, name: str = "") -> Iterator[tuple[tuple, dict]]:
    """Axes of 1, 2, few, prime and 0 others; ``name``: of the attribute for the length, of half a spectrum."""
    rng = np.random.default_rng(7)
    for dtype in ARITHMETIC:
        if dtype.kind not in kinds or dtype == np.float16:
            continue
        for shape, axis in (((4,), 0), ((2, 5), 1), ((3, 2, 2), 0), ((2, 3, 7), 1), ((1, 1), 1), ((0, 3), 1)):
            parts = rng.normal(size=(2, *shape))
            x = (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)
            m = shape[axis]
            for n in (2 * m - 2, 2 * m - 1) if name else (0,):
                if n or not name:
                    yield (x,), dict(axis=axis, **({name: n} if name else {}))


# --- complex ----------------------------------------------------------------------------------------------------------


def _fft_infer(t: TensorType, axis: int, inverse: bool) -> TensorType:
    _check("fft", t, axis, "c")
    check_points("fft", t.shape[axis])
    return t


def _fft_reference(x: np.ndarray, axis: int, inverse: bool) -> np.ndarray:
    check_points("fft", x.shape[axis])
    with np.errstate(all="ignore"):
        return _contiguous(np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis), x.dtype)


def _fft_transpose(g: Value, v: Value) -> tuple[Value]:
    return (fft(g, axis=v.attrs["axis"], inverse=not v.attrs["inverse"]),)


fft = register(Op(
    "fft", _fft_infer, _fft_reference, Linear(_fft_transpose), Extern("fft"),
    samples=lambda: ((x, {**attrs, "inverse": k % 2 > 0}) for k, (x, attrs) in enumerate(_samples("c"))),
    doc="The discrete Fourier transform along `axis`; `inverse`: with the other sign in the exponent. No factor.",
    facts=Facts(kinds="c", rounding="norm", indeterminate=True),
    defaults={"inverse": False},
))  # fmt: skip

# --- real -------------------------------------------------------------------------------------------------------------


def _paired(g: Value, axis: int, n: Size, factor: float) -> Value:
    """Elements of half a spectrum, those times ``factor`` that stand for two of the whole, which has ``n``."""
    k = iota(shape=g.shape, axis=axis, dtype=DTYPES["i64"])
    whole = broadcast(size(value=n), axes=(), shape=g.shape)
    return where(or_(eq(k, like(k, 0)), eq(k + k, whole)), g, g * like(g, factor))


def _rfft_infer(t: TensorType, axis: int) -> TensorType:
    _check("rfft", t, axis, "f")
    check_points("rfft", t.shape[axis])
    return TensorType(complex_dtype(t.dtype), (*t.shape[:axis], t.shape[axis] // 2 + 1, *t.shape[axis + 1 :]))


def _rfft_reference(x: np.ndarray, axis: int) -> np.ndarray:
    check_points("rfft", x.shape[axis])
    with np.errstate(all="ignore"):
        return _contiguous(np.fft.rfft(x, axis=axis), complex_dtype(x.dtype))


def _rfft_transpose(g: Value, v: Value) -> tuple[Value]:
    axis, n = v.attrs["axis"], v.operands[0].shape[v.attrs["axis"]]
    return (irfft(_paired(g, axis, n, 0.5), axis=axis, size=n),)


rfft = register(Op(
    "rfft", _rfft_infer, _rfft_reference, Linear(_rfft_transpose), Extern("rfft"), samples=lambda: _samples("f"),
    doc="The first n // 2 + 1 elements of the Fourier transform of n real numbers along `axis`. No factor.",
    facts=Facts(kinds="f", rounding="norm", indeterminate=True),
))  # fmt: skip


def _irfft_infer(t: TensorType, axis: int, size: Size) -> TensorType:
    _check("irfft", t, axis, "c")
    check_points("irfft", size)
    if known_equal(t.shape[axis], size // 2 + 1) is False:
        raise ShapeError(f"irfft: {size} numbers have a spectrum of {size // 2 + 1} elements, not {t.shape[axis]}")
    return TensorType(real_dtype(t.dtype), (*t.shape[:axis], size, *t.shape[axis + 1 :]))


def _irfft_reference(x: np.ndarray, axis: int, size: Any) -> np.ndarray:
    check_points("irfft", size)
    with np.errstate(all="ignore"):
        return _contiguous(np.fft.irfft(x, size, axis, "forward"), real_dtype(x.dtype))


def _irfft_transpose(g: Value, v: Value) -> tuple[Value]:
    axis = v.attrs["axis"]
    return (_paired(rfft(g, axis=axis), axis, v.attrs["size"], 2.0),)


irfft = register(Op(
    "irfft", _irfft_infer, _irfft_reference, Linear(_irfft_transpose), Extern("irfft"),
    samples=lambda: _samples("c", "size"),
    doc="The `size` real numbers along `axis` of the spectrum whose first size // 2 + 1 elements are given: the sum, "
    "with the other sign in the exponent, over all elements. No factor. Imaginary parts of elements that are their own "
    "conjugate are not read.",
    facts=Facts(kinds="c", rounding="norm", indeterminate=True),
))  # fmt: skip
