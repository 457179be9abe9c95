"""A product of arrays, scaled, plus another array, scaled: ``alpha * dot(a, b) + beta * c`` in one op.

The pass `blas` makes it of sums of products; nobody writes it. It means what the sum means: a nan in ``c`` stays one
even where beta is 0. But a product that adds up nothing is 0, whatever alpha is. Only one of ``a`` and ``b`` may have
batch axes: the other is then the same for every entry.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, register, splat
from symc.ir.ops.arithmetic import add, mul
from symc.ir.ops.linalg import PRODUCT, Axes, dot, dot_reference, dot_type
from symc.ir.ops.shape import broadcast
from symc.ir.types import TensorType
from symc.ir.value import Value

#: Which of the two numbers are multiplied by an operand of rank 0, in the order of these operands.
Times = tuple[str, ...]
TIMES: tuple[Times, ...] = ((), ("alpha",), ("beta",), ("alpha", "beta"))


def _infer(*types: TensorType, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes], alpha: float, beta: float,
           times: Times) -> TensorType:
    if len(types) != 2 + bool(beta) + len(times) or times not in TIMES or ("beta" in times and not beta):
        raise ShapeError(f"gemm: {len(types)} operands with beta = {beta} and times = {times}")
    out = _product_type(types[0], types[1], contract, batch)
    wanted = [out] * bool(beta) + [TensorType(out.dtype, ())] * len(times)
    for given, want in zip(types[2:], wanted, strict=True):
        if given.dtype != want.dtype:
            raise DTypeError(f"gemm: operand dtypes differ: {given} and {want}")
        if given.shape != want.shape:
            raise ShapeError(f"gemm: an operand is {given}, but must be {want}")
    return out


def shared(batch: tuple[Axes, Axes]) -> int | None:
    """Number of the operand that is the same for every entry of the batch, if one is."""
    return None if bool(batch[0]) == bool(batch[1]) else int(bool(batch[0]))


def _product_type(a: TensorType, b: TensorType, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]) -> TensorType:
    k = shared(batch)
    if k is not None:
        own, other = batch[1 - k], (a, b)[1 - k]
        lead = tuple(other.shape[i] for i in own)
        a, b = [t.with_shape((*lead, *t.shape)) if i == k else t for i, t in enumerate((a, b))]
        contract, batch = _spread_axes(contract, batch, k)
    return dot_type(a, b, contract, batch)


def _spread_axes(contract: tuple[Axes, Axes], batch: tuple[Axes, Axes], k: int) -> tuple:
    """The axes when operand k has the batch axes in front."""
    n = len(batch[1 - k])
    moved = tuple(c + n for c in contract[k]), tuple(range(n))
    return tuple(tuple(moved[j] if i == k else axes[i] for i in (0, 1)) for j, axes in enumerate((contract, batch)))


def spread_attrs(v: Value) -> dict:
    """``contract`` and ``batch`` of the product of a gemm when both operands have the batch axes."""
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    k = shared(batch)
    if k is not None:
        contract, batch = _spread_axes(contract, batch, k)
    return {"contract": contract, "batch": batch}


def parts(v: Value, items: Sequence | None = None) -> dict:
    """The operands of a gemm (or what there is one of for each) by what they are: a, b, c, alpha, beta."""
    names = ["a", "b", *["c"] * bool(v.attrs["beta"]), *v.attrs["times"]]
    return dict(zip(names, v.operands if items is None else items, strict=True))


def product_of(v: Value, a: Value | None = None, b: Value | None = None) -> Value:
    """The product alone, of other operands if they are given."""
    pair = [v.operands[0] if a is None else a, v.operands[1] if b is None else b]
    k = shared(v.attrs["batch"])
    if k is not None:
        lead = tuple(pair[1 - k].shape[i] for i in v.attrs["batch"][1 - k])
        n, x = len(lead), pair[k]
        pair[k] = broadcast(x, axes=tuple(range(n, n + x.ndim)), shape=(*lead, *x.shape))
    return dot(*pair, **spread_attrs(v))


def scale(x: Value, number: float, by: Value | None = None) -> Value:
    """``number * by * x``; ``by`` has the first axes of ``x``, most often none."""
    if by is not None:
        x = mul(x, broadcast(by, axes=tuple(range(by.ndim)), shape=x.shape))
    return x if number == 1 else mul(x, splat(number, x.type))


def combine(v: Value, product: Value, given: dict[str, Value]) -> Value:
    """The sum that a gemm is, of this product and these ``parts``."""
    out = scale(product, v.attrs["alpha"], given.get("alpha"))
    return add(out, scale(given["c"], v.attrs["beta"], given.get("beta"))) if v.attrs["beta"] else out


def _reference(*arrays, contract, batch, alpha, beta, times):
    factors = dict(zip(times, arrays[len(arrays) - len(times):], strict=True))
    pair, k = list(arrays[:2]), shared(batch)
    if k is not None:
        pair[k] = np.broadcast_to(pair[k], (*(pair[1 - k].shape[i] for i in batch[1 - k]), *pair[k].shape))
        contract, batch = _spread_axes(contract, batch, k)
    product = dot_reference(pair[0], pair[1], contract, batch)
    nothing = not all(pair[0].shape[i] for i in contract[0])

    def scaled(x, number, by):
        x = x if by is None else x * by
        return x if number == 1 else x * product.dtype.type(number)

    out = product if nothing else scaled(product, alpha, factors.get("alpha"))
    if beta:
        out = out + scaled(arrays[2], beta, factors.get("beta"))
    return np.asarray(out, dtype=product.dtype)


def _jvp(tangents: Sequence[Value | None], v: Value) -> Value | None:
    """A sum with a term for each operand that varies: the op is linear in each, but for what is added."""
    p, product = parts(v), product_of(v)
    alpha, beta = [(v.attrs[name], p.get(name)) for name in ("alpha", "beta")]
    term = {
        "a": lambda t: scale(product_of(v, a=t), *alpha),
        "b": lambda t: scale(product_of(v, b=t), *alpha),
        "c": lambda t: scale(t, *beta),
        "alpha": lambda t: scale(product, alpha[0], t),
        "beta": lambda t: scale(p["c"], beta[0], t),
    }
    found = [term[name](t) for name, t in parts(v, tangents).items() if t is not None]
    return functools.reduce(add, found) if found else None


def _samples() -> Iterator[tuple[tuple, dict]]:
    rng = np.random.default_rng(0)
    plain = dict(contract=((1,), (0,)), batch=((), ()))
    a, b, c = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    for dtype in ("f4", "f8", "c16"):
        x, y, z = (t.astype(dtype) for t in (a, b, c))
        s, t = np.asarray(0.5, dtype), np.asarray(-1.5, dtype)
        yield (x, y), dict(plain, alpha=-2.0, beta=0.0, times=())
        yield (x, y, z), dict(plain, alpha=1.0, beta=1.0, times=())
        yield (x, y, z, s, t), dict(plain, alpha=-1.0, beta=3.0, times=("alpha", "beta"))
    yield (a, b[:, 0], c[:, 0], np.asarray(2.0)), dict(plain, alpha=1.0, beta=0.5, times=("beta",))
    yield ((rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 3, 5)), np.asarray(2.0)),
           dict(contract=((2,), (2,)), batch=((0,), (0,)), alpha=1.0, beta=1.0, times=("alpha",)))
    yield ((a, rng.normal(size=(2, 4, 5)), rng.normal(size=(2, 3, 5))),
           dict(contract=((1,), (1,)), batch=((), (0,)), alpha=2.0, beta=1.0, times=()))
    yield ((rng.normal(size=(2, 4, 3)), rng.normal(size=(5, 4))),
           dict(contract=((1,), (1,)), batch=((0,), ()), alpha=-1.0, beta=0.0, times=()))
    yield (np.ones((2, 0)), np.ones((0, 3)), np.ones((2, 3))), dict(plain, alpha=1.0, beta=2.0, times=())


gemm = register(Op(
    "gemm", _infer, _reference, Custom(_jvp), Extern("gemm"), frozenset({"contraction"}), _samples,
    "alpha * dot(a, b) + beta * c, without c if beta is 0; an operand multiplies each number named in `times`.",
    facts=Facts(indeterminate=True),
    defaults={**PRODUCT, "alpha": 1.0, "beta": 1.0, "times": ()},
))  # fmt: skip
