"""What the generated op tests share: values of samples, evaluation, and numbers at which functions are smooth."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import symc.ir.ops
from symc.codegen.cuda.cxx import OF_SCIPY
from symc.codegen.cuda.matrices import PARTS
from symc.ir.attrs import Attrs
from symc.ir.op import Extern, Op, all_ops
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.kernel import results_of
from symc.ir.ops.matrix import adjoint, by_column, diagonal_of, product
from symc.ir.ops.shape import reshape, slice_
from symc.ir.reference import run_values
from symc.ir.types import TensorType, is_inexact
from symc.ir.value import Value, fresh_input, make
from symc.runtime.cpu.scipy_functions import IN_TEXT
from tests.ir.special_cases import smooth

#: Ops without operands of their own, with regions, or that wait for someone: other tests build those.
STRUCTURE = {
    "constant", "input", "param", "get", "fused", "generate", "fold", "load", "store", "store_running", "insert",
    "packed_concat", "store_packed", "insert_place", "bisect", "loop", "pack", "scan", "while", "cond", "checkpoint",
    "root", "call", "breakpoint",
}
_OWN = {o.name for family in symc.ir.ops.FAMILIES for o in vars(family).values() if isinstance(o, Op)}
CATALOGUE = [op for op in all_ops() if op.facts.custom is None and op.name in _OWN]
SAMPLED = [op for op in CATALOGUE if op.name not in STRUCTURE]
#: Those that a device has: SciPy's code is for CPUs, but for what CUDA's library has, too.
ON_DEVICES = [op for op in SAMPLED if (op.facts.routine is None or IN_TEXT + op.facts.routine.key in OF_SCIPY)
              and not (isinstance(op.lowering, Extern) and {"python"} == op.traits - {"factorization"}
                       and op.name not in PARTS and not op.facts.lower_batched)]


def in_groups(ops: Sequence[Op], count: int) -> list[Any]:
    """So many lists of ops, as the cases of a test that takes each at once."""
    return [pytest.param(list(ops[k::count]), id=str(k)) for k in range(count)]


def cases(op: Op) -> list[tuple[list[np.ndarray], dict]]:
    """The samples of an op, as arrays of the caller's own."""
    found = _contiguous(op)
    if found is None:
        return _made(op)
    return [([a.copy(order="K") for a in arrays], dict(attrs)) for arrays, attrs in found]


def _made(op: Op) -> list[tuple[list[np.ndarray], dict]]:
    return [([np.asarray(a) for a in arrays], attrs) for arrays, attrs in op.samples()]


@functools.cache
def _contiguous(op: Op) -> list[tuple[list[np.ndarray], dict]] | None:
    """The samples, unless a copy of one would lie in memory in another way."""
    found = _made(op)
    return found if all(a.flags.forc for arrays, _ in found for a in arrays) else None


def apply(op: Op, arrays: Sequence[np.ndarray], attrs: dict) -> tuple[Value, list[Value]]:
    """The op on free leaves of the arrays' types."""
    leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
    return make(op, leaves, Attrs(attrs)), leaves


def evaluate(roots: Sequence[Value], leaves: Sequence[Value], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The roots as arrays; every op on the way must give what it infers."""
    with np.errstate(all="ignore"):
        return run_values(list(roots), dict(zip(leaves, arrays, strict=True)), {}, check=True)


def results(out: Any) -> tuple[np.ndarray, ...]:
    """What a reference gives, as a tuple."""
    return out if isinstance(out, tuple) else (out,)


#: Of what is determined up to factors of size 1 (eigenvectors, singular vectors): what does not depend on them.
OBSERVED = {
    "eigh": lambda v: [v[0], phaseless(v[1])],
    "eig": lambda v: [v[0], phaseless(v[1])],
    "schur": lambda v: [phaseless(v[1]), diagonal_of(v[0]), product(product(v[1], v[0]), v[1], right="c")]
    if not v.attrs["real"] else results_of(v),
    "svd": lambda v: [phaseless(v[0]), v[1], phaseless(adjoint(v[2])), product(v[0], v[2])]
    if v[0].shape[-1] == v[2].shape[-2] else [v[1]],
}


#: Operands of ops at which these are not smooth: tolerances.
HELD = {"pinv": (1,)}


def phaseless(x: Value) -> Value:
    """Columns times the conjugate of an element of theirs."""
    if x.shape[-2] == 0:
        return x
    first = slice_(x, start=(0,) * x.ndim, size=(*x.shape[:-2], 1, x.shape[-1]), step=(1,) * x.ndim)
    return x * conjugate(by_column(reshape(first, shape=(*x.shape[:-2], x.shape[-1])), x.shape))


def observed(v: Value) -> list[Value]:
    """The results of a value that can be compared."""
    return OBSERVED[v.op.name](v) if v.op.name in OBSERVED else results_of(v)


def assert_same(got: np.ndarray, want: np.ndarray, ulps: float = 0, message: str = "") -> None:
    """Equal dtype, shape and values, nan where nan; ``ulps`` units of the dtype's precision may differ."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape), message
    if want.dtype.kind in "fc" and ulps:
        eps = float(np.finfo(want.dtype).eps)
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        tiny = float(np.finfo(want.dtype).smallest_normal)
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=ulps * eps,
                                   atol=ulps * max(tiny, eps * eps),
                                   err_msg=message)
    else:
        np.testing.assert_array_equal(got, want, err_msg=message)


def smooth_points(op: Op, dtype: np.dtype, rng: np.random.Generator) -> list[tuple[list[np.ndarray], dict]]:
    """Operands with which a derivative can be compared: for elementwise ops random numbers of several ranges; for
    others the samples of this dtype, moved a little so that no two elements are equal."""
    if "elementwise" in op.traits and op.facts.kinds and op.name != "where":
        if dtype.kind not in op.facts.kinds:
            return []
        own = smooth(op, 48, rng)
        if own is not None:
            return [([x.astype(dtype) for x in own], {})]
        arity = len(next(iter(op.samples()))[0])
        attrs = {str(sorted(a.items())): a for _, a in cases(op)}
        return [([_random(dtype, 48, rng) for _ in range(arity)], a) for a in attrs.values()]
    out = []
    for arrays, attrs in cases(op):
        inexact = [a for a in arrays if is_inexact(a.dtype)]
        small = all(a.dtype == dtype and np.isfinite(a).all() and np.abs(a).max(initial=0) < 1e3 for a in inexact)
        if inexact and small:
            held = HELD.get(op.name, ())
            out.append(([np.asarray(a + _noise(a, rng)) if is_inexact(a.dtype) and k not in held else a
                         for k, a in enumerate(arrays)], attrs))
    return out


def _random(dtype: np.dtype, n: int, rng: np.random.Generator) -> np.ndarray:
    parts = [rng.uniform(*ends, n // 3) for ends in ((-3, 3), (0.05, 0.95), (1.05, 4))]
    x = np.concatenate(parts)
    if dtype.kind == "c":
        x = x + 1j * rng.permutation(x) * 0.5
    rng.shuffle(x)
    return x.astype(dtype)


def _noise(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = rng.uniform(-0.2, 0.2, a.shape)
    return (noise + 1j * rng.uniform(-0.2, 0.2, a.shape) if a.dtype.kind == "c" else noise).astype(a.dtype)


def tangents_for(arrays: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Random directions, one for each array."""
    out = []
    for a in arrays:
        t = rng.uniform(0.5, 1, a.shape) * rng.choice([-1, 1], a.shape)
        out.append(np.asarray(t + 1j * rng.uniform(-1, 1, a.shape) if a.dtype.kind == "c" else t).astype(a.dtype))
    return out


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """The real inner product, also of complex arrays."""
    return float(np.sum(np.real(np.conj(a) * b)))
