"""Random numbers: bits that are a function of a key and a place, and what is made of bits.

A key is two u64 words: the key of a Philox4x32-10 cipher, and the upper half of its counters. `random_bits` and
`derive_key` alone read keys. Everything else is elementwise on bits, so it fuses, batches and moves like arithmetic,
and the same key gives the same numbers in every backend: `philox*` and `unit_*` to the last bit. Bits are integers, so
they have no derivative. `gamma_draw` and `log_gamma_draw` have that of implicit reparameterisation: along it the
distribution function of the draw stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, product
from symc.ir.facts import Exact, Facts, Kernel, Rounding
from symc.ir.op import Decompose, Derivative, Element, Elementwise, Op, register
from symc.ir.ops import draw_reference as draws
from symc.ir.ops import random_reference as reference
from symc.ir.ops.arithmetic import neg
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import gt
from symc.ir.ops.elementwise import batch_leading, check_arity, check_same, elementwise, like
from symc.ir.ops.leaf import scalar, size
from symc.ir.ops.logic import and_, shl, shr, where
from symc.ir.ops.math import digamma, erfcx, exp, log, sqrt, trigamma
from symc.ir.ops.shape import broadcast, reshape, slice_along
from symc.ir.types import DTYPE_NAMES, DTYPES, TensorType
from symc.ir.value import Value

U64, U32 = DTYPES["u64"], DTYPES["u32"]

#: What a derived key is for: keys derived from one key for different purposes are independent. The numbers are those of
#: elements far beyond any array's end: no bits of the key itself.
PURPOSES = {"seed": 8 << 60, "split": 9 << 60, "fold_in": 10 << 60, "advance": 11 << 60}
#: The number a key is derived for counts elements up to here, and the rest of it is added to the upper counter.
LOW = 48


# --- places -----------------------------------------------------------------------------------------------------------


def _position_element(v: Value, index: Sequence[Value], at: Callable) -> Value:
    shape = v.attrs["shape"]
    place: Value | None = None
    for a, i in enumerate(index):
        stride = product(shape[a + 1 :])
        part = i if stride == 1 else i * (stride if isinstance(stride, int) else size(value=stride))
        place = part if place is None else place + part
    return scalar(0, U64) if place is None else cast(place, dtype=U64)


def _position_infer(shape: tuple[Size, ...]) -> TensorType:
    return TensorType(U64, shape)


position = register(Op(
    "position", _position_infer,
    lambda shape: np.arange(int(np.prod(shape, dtype=np.int64)), dtype=U64).reshape(shape),
    lowering=Element(_position_element), traits=frozenset({"row_major"}),
    samples=lambda: iter([((), dict(shape=s)) for s in ((), (4,), (2, 3), (0, 2))]),
    doc="The number of every element of `shape`, counted row by row, as u64.", facts=Facts(bits=True),
))  # fmt: skip


# --- keys -------------------------------------------------------------------------------------------------------------


def _check_key(name: str, key: TensorType) -> None:
    if key.dtype != U64 or not key.ndim or key.shape[-1] != 2:
        raise DTypeError(f"{name}: {key} is no key", help="a key is u64[2]")


def _bits_infer(key: TensorType, shape: tuple[Size, ...], dtype: np.dtype) -> TensorType:
    _check_key("random_bits", key)
    if dtype not in (U64, U32):
        raise DTypeError(f"random_bits: {DTYPE_NAMES[dtype]} is not u32 or u64")
    return TensorType(dtype, (*key.shape[:-1], *shape))


def _bits_reference(key: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    lead = key.shape[:-1]
    place = position.reference(shape)
    k, s = (np.broadcast_to(key[..., w].reshape(lead + (1,) * len(shape)), lead + tuple(shape)) for w in (0, 1))
    run = reference.philox64 if dtype == U64 else reference.philox32
    return np.array(run(k, s, np.broadcast_to(place, k.shape)))


def _word(key: Value, w: int) -> Value:
    """One word of a key, or of every key in an array of them."""
    return reshape(slice_along(key, key.ndim - 1, w, 1), shape=key.shape[:-1])


def spread(x: Value, first: int, shape: tuple[Size, ...]) -> Value:
    """``x`` repeated so that its axes are those of ``shape`` from ``first`` on."""
    axes = tuple(range(first, first + x.ndim))
    return x if len(axes) == len(shape) else broadcast(x, axes=axes, shape=shape)


def _bits_parts(v: Value) -> Value:
    (key,), shape, lead = v.operands, v.shape, v.operands[0].ndim - 1
    run = philox64 if v.dtype == U64 else philox32
    place = position(shape=v.attrs["shape"]) if v.attrs["shape"] else scalar(0, U64)
    return run(spread(_word(key, 0), 0, shape), spread(_word(key, 1), 0, shape), spread(place, lead, shape))


def _bits_samples() -> Iterator[tuple[tuple, dict]]:
    key = np.array([3, 2**63 + 5], U64)
    for dtype in (U64, U32):
        for shape in ((5,), (2, 3), (), (0, 2)):
            yield (key,), dict(shape=shape, dtype=dtype)
        yield (np.stack([key, key + key, key]),), dict(shape=(3, 2), dtype=dtype)


random_bits = register(Op(
    "random_bits", _bits_infer, _bits_reference, None, Decompose(_bits_parts), samples=_bits_samples,
    doc="Independent bits of `dtype` (u32 or u64) in `shape`: element i is a function of the key and i.",
    facts=Facts(kinds="u", batch=batch_leading, rounding="none", bits=True),
))  # fmt: skip


def _derive_infer(key: TensorType, data: TensorType, purpose: str) -> TensorType:
    _check_key("derive_key", key)
    lead = key.shape[:-1]
    if data.dtype != U64 or data.shape[: len(lead)] != lead:
        raise ShapeError(f"derive_key: the data are {data}, not u64 with the leading axes of {key}")
    if purpose not in PURPOSES:
        raise ShapeError(f"derive_key: {purpose!r} is none of {sorted(PURPOSES)}")
    return TensorType(U64, (*data.shape, 2))


def _derive_reference(key: np.ndarray, data: np.ndarray, purpose: str) -> np.ndarray:
    shape = (*data.shape, 2)
    rest = (1,) * (len(shape) - key.ndim + 1)
    k, s = (key[..., w].reshape(key.shape[:-1] + rest) for w in (0, 1))
    low = (data & U64.type(2**LOW - 1))[..., None] * U64.type(2)
    with np.errstate(over="ignore"):
        s = s + (data >> U64.type(LOW))[..., None]
    place = U64.type(PURPOSES[purpose]) + low + np.arange(2, dtype=U64)
    return reference.philox64(*(np.ascontiguousarray(np.broadcast_to(x, shape)) for x in (k, s, place)))


def _derive_parts(v: Value) -> Value:
    (key, data), shape = v.operands, v.shape
    low, high = shl(and_(data, 2**LOW - 1), 1), shr(data, LOW)
    s = spread(_word(key, 1), 0, shape) + spread(high, 0, shape)
    place = spread(position(shape=(2,)), len(shape) - 1, shape) + PURPOSES[v.attrs["purpose"]] + spread(low, 0, shape)
    return philox64(spread(_word(key, 0), 0, shape), s, place)


def _derive_samples() -> Iterator[tuple[tuple, dict]]:
    key = np.array([[3, 2**63 + 5], [2**64 - 1, 2**64 - 1]], U64)
    for purpose in PURPOSES:
        yield (key[0], np.array([0, 1, 2**64 - 1], U64)), dict(purpose=purpose)
        yield (key[1], np.array(7, U64)), dict(purpose=purpose)
    yield (key, np.array([[1, 2, 3], [1, 2, 3]], U64)), dict(purpose="split")
    yield (key, np.array([4, 5], U64)), dict(purpose="split")


derive_key = register(Op(
    "derive_key", _derive_infer, _derive_reference, None, Decompose(_derive_parts), samples=_derive_samples,
    doc="A new key for every number in the second operand (u64): the same for the same key, number and `purpose`.",
    facts=Facts(kinds="u", batch=batch_leading),
))  # fmt: skip


def _split_infer(key: TensorType, shape: tuple[Size, ...]) -> TensorType:
    _check_key("split_key", key)
    return TensorType(U64, (*key.shape[:-1], *shape, 2))


def _split_reference(key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    data = position.reference(shape)
    return _derive_reference(key, np.broadcast_to(data, key.shape[:-1] + data.shape), "split")


def _split_parts(v: Value) -> Value:
    """As derive_key of the positions, whose places are those of the words in the result."""
    (key,), shape, lead = v.operands, v.shape, v.operands[0].ndim - 1
    place = position(shape=(*v.attrs["shape"], 2)) + PURPOSES["split"]
    return philox64(spread(_word(key, 0), 0, shape), spread(_word(key, 1), 0, shape), spread(place, lead, shape))


def _split_samples() -> Iterator[tuple[tuple, dict]]:
    key = np.array([[3, 2**63 + 5], [2**64 - 1, 2**64 - 1]], U64)
    for shape in ((3,), (2, 2), (), (0,)):
        yield (key[0],), dict(shape=shape)
    yield (key,), dict(shape=(3,))


split_key = register(Op(
    "split_key", _split_infer, _split_reference, None, Decompose(_split_parts), samples=_split_samples,
    doc="New keys in `shape`, independent of each other and of all other uses of the key but `derive_key` for split.",
    facts=Facts(kinds="u", batch=batch_leading),
))  # fmt: skip


# --- elementwise on bits ----------------------------------------------------------------------------------------------


def _on_bits(name: str, operands: Sequence[str], result: Callable[[Sequence[TensorType]], np.dtype],
             run: Callable[..., np.ndarray], samples: Callable[[], Iterator[tuple]], doc: str,
             derivative: Derivative | None = None, traits: Sequence[str] = (), kernel: Kernel = "cheap",
             rounding: Rounding = "each") -> Op:
    """Register an op elementwise in operands whose dtypes differ. ``operands``: "u64", "bits" (u32 or u64) or "float",
    one an operand; all floats have one dtype."""

    def infer(*types: TensorType) -> TensorType:
        check_arity(name, types, len(operands))
        for t, kind in zip(types, operands, strict=True):
            legal = t.dtype.kind == "f" if kind == "float" else t.dtype in ((U64,) if kind == "u64" else (U64, U32))
            if not legal:
                raise DTypeError(f"{name} is not defined for {DTYPE_NAMES[t.dtype]}", help=f"it takes {kind} here")
            if t.shape != types[0].shape:
                raise ShapeError(f"{name}: operand shapes differ: {types[0]} and {t}")
        check_same(name, [t for t in types if t.dtype.kind == "f"] or types[:1])
        return types[0].with_dtype(result(types))

    def compute(*arrays: np.ndarray) -> np.ndarray:
        arrays = tuple(np.ascontiguousarray(a).reshape(np.shape(a)) for a in arrays)
        with np.errstate(all="ignore"):
            dtype = result([TensorType(a.dtype, a.shape) for a in arrays])
            return np.asarray(run(*arrays)).astype(dtype, copy=False).reshape(arrays[0].shape)

    return register(Op(name, infer, compute, derivative, Element(), frozenset({"elementwise", *traits}),
                       lambda: (((*arrays,), {}) for arrays in samples()), doc,
                       Facts(arity=len(operands), kernel=kernel, rounding=rounding)))  # fmt: skip


def _some_bits(n: int, dtype: np.dtype = U64) -> np.ndarray:
    """Bits, the first four of which are the extremes."""
    place = np.arange(n, dtype=U64)
    run = reference.philox64 if dtype == U64 else reference.philox32
    bits = run(place * 0 + U64.type(11), place * 0, place)
    top = 1 << (8 * dtype.itemsize - 1)
    return np.concatenate([np.array([0, 2 * top - 1, top, top - 1], dtype), bits])[:n]


def _block_samples() -> Iterator[tuple]:
    words = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1], U64)
    yield tuple(np.stack(np.meshgrid(words, words, np.append(words, np.array([2, 3, 5], U64)))).reshape(3, -1).copy())


def _unit_samples() -> Iterator[tuple]:
    for dtype in (U64, U32):
        yield (_some_bits(60, dtype),)
    yield (np.array(5, U64),)
    yield (np.empty((0, 2), U64),)


def _float_width(types: Sequence[TensorType]) -> np.dtype:
    return DTYPES["f64"] if types[0].dtype == U64 else DTYPES["f32"]


def _as(dtype: np.dtype) -> Callable[[Sequence[TensorType]], np.dtype]:
    return lambda types: dtype


philox64 = _on_bits("philox64", ["u64"] * 3, _as(U64), reference.philox64, _block_samples,
                    "64 bits: half z % 2 of the Philox4x32-10 block with key x and counter (z // 2, y).")
philox32 = _on_bits("philox32", ["u64"] * 3, _as(U32), reference.philox32, _block_samples,
                    "32 bits: word z % 4 of the Philox4x32-10 block with key x and counter (z // 4, y).")
unit_uniform = _on_bits("unit_uniform", ["bits"], _float_width, reference.unit_uniform, _unit_samples,
                        "Bits as a number in [0, 1): 53 of 64 bits as f64, 24 of 32 as f32.", rounding="none")
unit_normal = _on_bits("unit_normal", ["bits"], _float_width, reference.unit_normal, _unit_samples,
                       "Bits as a standard normal number, increasing in them: u64 gives f64, u32 gives f32.")
unit_exponential = _on_bits("unit_exponential", ["bits"], _float_width, reference.unit_exponential, _unit_samples,
                            "Bits as an exponential number, increasing in them: u64 gives f64, u32 gives f32.")
unit_gumbel = _on_bits("unit_gumbel", ["bits"], _float_width, reference.unit_gumbel, _unit_samples,
                       "Bits as a Gumbel number, decreasing in them: u64 gives f64, u32 gives f32.")
below = _on_bits("below", ["u64", "u64"], _as(U64), reference.below,
                 lambda: iter([(_some_bits(60), np.resize(np.array([1, 2, 3, 10, 2**32 + 1, 2**63 + 3, 2**64 - 1, 0],
                                                                   U64), 60))]),
                 "An integer from 0 up to, not including, y, each equally likely; y = 0 stands for 2**64.")


# --- draws that may need several attempts -----------------------------------------------------------------------------


def _shape_samples(numbers: Sequence[float]) -> Callable[[], Iterator[tuple]]:
    def samples() -> Iterator[tuple]:
        for dtype in ("f64", "f32", "f16"):
            yield _some_bits(60), np.resize(np.array(numbers), 60).astype(DTYPES[dtype])
        yield np.array(7, U64), np.array(2.5)
        yield np.empty((0, 2), U64), np.empty((0, 2))

    return samples


def _trial_samples() -> Iterator[tuple]:
    for dtype in ("f64", "f32"):
        n = np.array([0, 1, 10, 10, 40, 100, 1000, 100000, -1, 2.5, np.nan, 10, 10, 10])
        p = np.array([0.5, 0.3, 0, 1, 0.5, 0.05, 0.97, 0.25, 0.5, 0.5, 0.5, -0.1, 1.5, np.nan])
        yield _some_bits(56), np.resize(n, 56).astype(DTYPES[dtype]), np.resize(p, 56).astype(DTYPES[dtype])


def _float_type(types: Sequence[TensorType]) -> np.dtype:
    return types[1].dtype


def _log_partial(out: Value, bits: Value, alpha: Value) -> Value:
    return gamma_slope(alpha, out)


def _gamma_partial(out: Value, bits: Value, alpha: Value) -> Value:
    some = gt(out, 0)  # small shapes give numbers that are too small
    return where(some, out * gamma_slope(alpha, log(where(some, out, like(out, 1)))), like(out, 0))


_ALPHAS = (0.3, 0.9, 1.0, 2.5, 40.0, 1e4, 0.0, -1.0, np.nan, np.inf)
log_gamma_draw = _on_bits(
    "log_gamma_draw", ["u64", "float"], _float_type, partial(draws.gamma_draw, log=True), _shape_samples(_ALPHAS),
    "The logarithm of a gamma number with shape y and scale 1, from the stream of bits whose key is x.",
    Elementwise((None, _log_partial), singular=True), ["implicit", "costly"], "scalar")  # fmt: skip
gamma_draw = _on_bits(
    "gamma_draw", ["u64", "float"], _float_type, draws.gamma_draw, _shape_samples(_ALPHAS),
    "A gamma number with shape y and scale 1, from the stream of bits whose key is x; `log_gamma_draw` does not "
    "underflow for small y.",
    Elementwise((None, _gamma_partial), singular=True), ["implicit", "costly"], "scalar")  # fmt: skip
poisson_draw = _on_bits(
    "poisson_draw", ["u64", "float"], _as(DTYPES["i64"]), draws.poisson_draw,
    _shape_samples((0.0, 0.1, 3.0, 9.9, 10.0, 25.0, 1000.0, 6e4, -1.0, np.nan)),
    "A Poisson count of mean y, from the stream of bits whose key is x; -1 where there is no such distribution.",
    traits=["costly"], kernel="scalar")  # fmt: skip
binomial_draw = _on_bits(
    "binomial_draw", ["u64", "float", "float"], _as(DTYPES["i64"]), draws.binomial_draw, _trial_samples,
    "The successes in y trials of probability z, from the stream of bits whose key is x; -1 where there is no such "
    "distribution.", traits=["costly"], kernel="scalar")  # fmt: skip


def _wald_over_mean(out: Value, bits: Value, mean: Value, scale: Value) -> Value:
    return 2 / mean / mean * sqrt(scale * out) * out * _mills(out, mean, scale)


def _wald_over_scale(out: Value, bits: Value, mean: Value, scale: Value) -> Value:
    return out / scale - 2 / mean * sqrt(out / scale) * out * _mills(out, mean, scale)


def _mills(x: Value, mean: Value, scale: Value) -> Value:
    """P(Z > b) / p(b) for the normal density p at b = sqrt(scale / x) (x / mean + 1)."""
    return (np.pi / 2) ** 0.5 * erfcx(0.5**0.5 * (sqrt(scale / x) * (x / mean + 1)))


def _wald_samples() -> Iterator[tuple]:
    for dtype in ("f64", "f32"):
        mean, scale = (np.resize(np.array(x), 60).astype(DTYPES[dtype])
                       for x in ((0.1, 1.0, 30.0, 1.0, -1.0, 1.0, 1.0), (1.0, 0.1, 2.0, 0.0, 1.0, -1.0, np.nan)))
        yield _some_bits(60), mean, scale


wald_draw = _on_bits(
    "wald_draw", ["u64", "float", "float"], _float_type, draws.wald_draw, _wald_samples,
    "A number of the inverse Gaussian distribution with mean y and scale z, from the stream of bits whose key is x.",
    Elementwise((None, _wald_over_mean, _wald_over_scale), singular=True), ["implicit"], "scalar")  # fmt: skip


# --- functions of distributions ---------------------------------------------------------------------------------------


def _over_alpha(out: Value, alpha: Value, y: Value) -> Value:
    return gamma_moment(alpha, y, power=out.attrs["power"] + 1)


def _over_y(out: Value, alpha: Value, y: Value) -> Value:
    k = out.attrs["power"]
    d = neg((alpha - exp(y)) * out)
    return d + 1 if k == 0 else d - float(k) * gamma_moment(alpha, y, power=k - 1)


def _slope_over_alpha(out: Value, alpha: Value, y: Value) -> Value:
    zero, one, two = (gamma_moment(alpha, y, power=k) for k in range(3))
    return neg(two + (y - digamma(alpha)) * one - trigamma(alpha) * zero)


def _slope_over_y(out: Value, alpha: Value, y: Value) -> Value:
    return neg((alpha - exp(y)) * out) - (y - digamma(alpha))


gamma_moment: Op = elementwise(
    "gamma_moment", 2, "f", draws.gamma_moment, (_over_alpha, _over_y), traits=["costly"],
    attrs=({"power": 0}, {"power": 1}, {"power": 2}),
    doc="The integral of log(t / exp(y))**power p(t) / (p(exp(y)) exp(y)) over t from 0 to exp(y), where p is the "
        "gamma density of shape x; for exp(y) above x and 1, minus the integral from exp(y) on.",
    facts=Facts(kernel="scalar"))  # fmt: skip
gamma_slope: Op = elementwise(
    "gamma_slope", 2, "f", draws.gamma_slope, (_slope_over_alpha, _slope_over_y), traits=["costly"],
    doc="dy / dx along which the distribution function of the logarithm y of a gamma number of shape x stays the same.",
    facts=Facts(kernel="scalar"))
normal_inverse: Op = elementwise(
    "normal_inverse", 1, "f", reference.normal_inverse,
    (lambda out, p: (2 * np.pi) ** 0.5 * exp(0.5 * out * out),), singular=True,
    doc="z such that a standard normal number is at most z with probability x; accurate for small x.",
    facts=Facts(exact=Exact(lambda mp, p: mp.sqrt(2) * mp.erfinv(2 * p - 1)), poles=True, kernel="cheap"))  # fmt: skip
