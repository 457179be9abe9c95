"""Declaration of elementwise ops, and the samples that test them. The catalogue: arithmetic, compare, logic, math.

IR elementwise ops take operands of one shape and one dtype (`where` and the shifts say otherwise); the front end
broadcasts and promotes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Decompose, Derivative, Element, Elementwise, Lowering, Op, lookup, register, splat
from symc.ir.types import DTYPE_NAMES, DTYPES, TensorType, complex_dtype, real_dtype
from symc.ir.value import Value, make

KINDS = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats", "c": "complex"}

#: The highest order of a derivative, or power, that an op has in an attribute.
HIGHEST = 1000

#: What the dtype of a result is, given the operands' dtype.
RESULTS: dict[str, Callable[[np.dtype], np.dtype]] = {
    "same": lambda d: d,
    "bool": lambda d: DTYPES["bool"],
    "real": real_dtype,
    "complex": complex_dtype,
}


def check_same(name: str, types: Sequence[TensorType]) -> None:
    """Operands must have one dtype and one shape."""
    first = types[0]
    for t in types[1:]:
        if t.dtype != first.dtype:
            raise DTypeError(f"{name}: operand dtypes differ: {first} and {t}")
        if t.shape != first.shape:
            raise ShapeError(f"{name}: operand shapes differ: {first} and {t}")


def check_kind(name: str, t: TensorType, kinds: str) -> None:
    """The dtype's kind must be among ``kinds`` (letters of KINDS)."""
    if t.dtype.kind not in kinds:
        raise DTypeError(f"{name} is not defined for {DTYPE_NAMES[t.dtype]}",
                         help="it takes " + ", ".join(KINDS[k] for k in kinds))


def check_numbers(name: str, given: Mapping[str, Any], like: Mapping[str, Any]) -> None:
    """Attributes must be numbers as in ``like``; integers count something."""
    for k, x in like.items():
        if type(given[k]) not in (type(x), int) or type(x) is int and not 0 <= given[k] <= HIGHEST:
            raise TypeError(f"{name}: {k} cannot be {given[k]!r:.40}")


def check_arity(name: str, types: Sequence[TensorType], arity: int) -> None:
    """Raise unless there are ``arity`` operands."""
    if len(types) != arity:
        raise TypeError(f"{name} takes {arity} operand{'s' * (arity != 1)}, not {len(types)}")


def elementwise(name: str, arity: int, kinds: str, reference: Callable, derivative: Derivative | tuple | None = None, *,
                result: str = "same", traits: Sequence[str] = (), doc: str = "", singular: bool = False,
                identity: Any = None, numpy: np.ufunc | None = None, lowering: Lowering | None = None,
                parts: Callable[[Value], Value] | None = None,
                attrs: Sequence[Mapping[str, Any]] = ({},), facts: Facts | None = None,
                sampled: Callable[[], Iterator[tuple[tuple, dict]]] | None = None) -> Op:
    """Register an elementwise op.

    ``kinds``: dtype kinds it takes. ``result``: a key of RESULTS.
    ``derivative``: a tuple of partials (see ``Elementwise``), or a Derivative.
    ``identity``: e with op(x, e) == x, a number or a function of the dtype, for reductions.
    ``numpy``: the ufunc that gives the same results (``reference`` itself, if it is one).
    ``parts``: a value of the op in terms of others; without a function in the library that is what is computed.
    ``attrs``: attributes that the samples try; they name all that the op has.
    ``facts``: further ones. ``sampled``: samples, if not all combinations of edge values.
    """
    known = set(attrs[0])
    plain = not known and result == "same"

    def infer(*types: TensorType, **given: Any) -> TensorType:
        if plain and not given and len(types) == arity:
            first = types[0]  # nearly always the type of all, which is one object
            if types.count(first) == arity and first.dtype.kind in kinds:
                return first
        check_arity(name, types, arity)
        if set(given) != known:
            raise TypeError(f"{name} has attributes {sorted(known)}, not {sorted(given)}")
        check_numbers(name, given, attrs[0])
        check_same(name, types)
        check_kind(name, types[0], kinds)
        return types[0].with_dtype(RESULTS[result](types[0].dtype))

    def run(*arrays: np.ndarray, **given: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(reference(*arrays, **given)).astype(RESULTS[result](arrays[0].dtype), copy=False)

    if isinstance(derivative, tuple):
        derivative = Elementwise(derivative, singular)
    if "c" in kinds or result == "complex":
        traits = [*traits, "complex_kernel"]
    if identity is not None and not callable(identity):
        neutral, identity = identity, lambda dtype: dtype.type(neutral)
    if numpy is None and isinstance(reference, np.ufunc):
        numpy = reference
    facts = facts or Facts()
    facts.kinds, facts.result, facts.arity = kinds, result, arity
    facts.identity, facts.numpy, facts.parts = identity, numpy, parts
    if lowering is None:
        lowering = Decompose(parts) if parts and not facts.kernel else Element()
    return register(Op(
        name, infer, run, derivative, lowering, frozenset({"elementwise", *traits}),
        sampled or (lambda: samples(arity, kinds, attrs, result)), doc, facts,
    ))  # fmt: skip


EDGES: dict[str, list] = {
    "b": [False, True],
    "i": [-7, -2, -1, 0, 1, 2, 3, 7],
    "u": [0, 1, 2, 3, 7, 100],
    "f": [-np.inf, -30.5, -2.0, -1.0, -0.5, -1e-310, -0.0, 0.0, 1e-310, 0.25, 0.5, 1.0, 1.5, 3.0, 30.0, np.inf, np.nan],
    "c": [0, 1, 1j, -1 + 0.5j, 0.3 - 2j, 3 + 0.25j, -0.5 - 0.5j],
}


def edge_values(dtype: np.dtype) -> np.ndarray:
    """Values at which elementwise ops go wrong. For integers the ends of the range are among them."""
    values = list(EDGES[dtype.kind])
    if dtype.kind in "iu":
        values += [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)]
    with np.errstate(all="ignore"):
        return np.array(list(dict.fromkeys(values)) if dtype.kind in "iu" else values, dtype)


def samples(arity: int, kinds: str, attrs: Sequence[Mapping[str, Any]] = ({},),
            result: str = "same") -> Iterator[tuple[tuple, dict]]:
    """All combinations of edge values, for every dtype the op takes; then no elements, and 0-d."""
    for dtype in ARITHMETIC:
        if dtype.kind not in kinds or (result == "complex" and dtype == DTYPES["f16"]):
            continue
        for given in attrs:
            grid = list(itertools.product(edge_values(dtype), repeat=arity))
            yield tuple(np.array(column, dtype) for column in zip(*grid, strict=True)), dict(given)
        yield tuple(np.empty((0, 2), dtype) for _ in range(arity)), dict(attrs[0])
        yield tuple(np.array(1, dtype) for _ in range(arity)), dict(attrs[0])


def like(x: Value, number: Any) -> Value:
    """``number`` in every element of a value of x's type."""
    return splat(number, x.type)


def spread(x: Value, batched: bool, n: Size) -> Value:
    """``x`` with the batch axis in front; the same elements in every entry unless it has the axis already."""
    return x if batched else lookup("broadcast")(x, axes=tuple(range(1, x.ndim + 1)), shape=(n, *x.shape))


def batch_leading(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """One more leading axis for all operands."""
    return make(v.op, [spread(o, f, n) for o, f in zip(operands, flags, strict=True)], v.attrs)
