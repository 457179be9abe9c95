"""Batching, from the registry: an op over a batch is the op on every entry, whichever operands are batched."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from symc.errors import SymcError
from symc.grad import vmap
from symc.ir.batch_control import CONTROL
from symc.ir.op import Op, all_ops, register, unregister
from symc.ir.ops import kernel, loop, store
from symc.ir.ops.batching import has_rule
from symc.ir.ops.kernel import results_of
from symc.ir.reference import run_values
from symc.ir.types import TensorType
from symc.ir.value import fresh_input

#: Families whose ops code generation makes, after any batching.
CODE = (kernel, loop, store)
#: Ops that need no batching rule: leaves, which have no operands, and those.
NONE = {"constant", "input", "param", "iota", "position", "size"} | {
    op.name for family in CODE for op in vars(family).values() if isinstance(op, Op) and not has_rule(op)}
OPS = [op for op in all_ops() if op.samples is not None and op.name not in NONE]
N = 3


def test_every_op_has_a_rule():
    known = NONE | {op.name for op in CONTROL}
    assert [op.name for op in all_ops() if op.name not in known and not has_rule(op, _attributes(op))] == []


def _attributes(op: Op) -> set[str]:
    return {name for _, attrs in (op.samples() if op.samples else ()) for name in attrs}


def cases(op: Op, limit: int = 40):
    """Samples with operands, at most a few of one dtype."""
    seen: dict[tuple, int] = {}
    for arrays, attrs in itertools.islice(op.samples(), 400):
        if arrays:
            key = (tuple(np.asarray(a).dtype.str for a in arrays))
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= 8 and np.asarray(arrays[0]).dtype.str[1:] in ("f8", "i8", "u8", "c16", "b1"):
                yield [np.asarray(a) for a in arrays], attrs
                limit -= 1
                if limit == 0:
                    return


#: Ops with a value for few matrices or patterns, or for what was promised alone.
PARTICULAR = {"cholesky", "cho_solve", "sqrtm", "logm", "check_assumption", "spmm", "spmm_across", "sddmm"}


def entries(array: np.ndarray, op: Op) -> np.ndarray:
    """A batch of arrays that hold the same numbers elsewhere, or other numbers; an index stays in bounds."""
    if op.name in PARTICULAR:
        scales = [1] * N if op.name == "check_assumption" else [1 + k for k in range(N)]
        return np.stack([array * array.dtype.type(s) if array.dtype.kind in "fc" else array for s in scales])
    if array.ndim == 0:
        other = {"i": lambda k: max(int(array) - k, 0), "u": lambda k: array, "b": lambda k: bool(array) ^ bool(k % 2)}
        return np.stack([other.get(array.dtype.kind, lambda k: array * (1 - k / 8))(k) for k in range(N)]).astype(
            array.dtype)  # fmt: skip
    return np.stack([np.roll(array, k).reshape(array.shape) for k in range(N)])


def turns(kinds, seen):
    """The operands that are batched: all of them, and for the first sample of some kinds of dtypes every other choice,
    which other samples take in turn."""
    flags = [f for f in itertools.product([True, False], repeat=len(kinds))
             if any(f) and (len(kinds) <= 3 or sum(f) in (1, len(kinds)))]
    seen[kinds] += 1
    return flags if seen[kinds] == 1 or len(flags) < 3 else [flags[0], flags[1 + seen[kinds] % (len(flags) - 1)]]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_batch_is_every_entry(op):
    compared, made_of = 0, Counter()
    for arrays, attrs in cases(op):
        leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
        try:
            out = op(*leaves, **attrs)
        except SymcError:
            continue  # samples for the reference alone
        for flags in turns(tuple(a.dtype.kind for a in arrays), made_of):
            stacked = [entries(a, op) for a in arrays]
            batches = [fresh_input(TensorType(a.dtype, (N, *a.shape))) for a in arrays]
            picked = [k for k, f in enumerate(flags) if f]
            made = vmap(results_of(out), [leaves[k] for k in picked], [batches[k] for k in picked], N)
            env = {leaves[k]: a for k, a in enumerate(arrays)} | {batches[k]: stacked[k] for k in picked}
            got = run_values(made, env, {}, check=True)
            for i in range(N):
                env = {leaf: stacked[k][i] if flags[k] else arrays[k] for k, leaf in enumerate(leaves)}
                for g, want in zip(got, run_values(results_of(out), env, {}), strict=True):
                    np.testing.assert_allclose(g[i], want, rtol=1e-12, atol=1e-12, err_msg=f"{op} {attrs} {flags}")
                    compared += 1
    assert compared


def test_what_does_not_depend_on_the_batch_is_repeated():
    x, y = (fresh_input(TensorType("f64", (2,))) for _ in range(2))
    batch = fresh_input(TensorType("f64", (N, 2)))
    (out,) = vmap([y], [x], [batch], N)
    (got,) = run_values([out], {y: np.array([1.0, 2.0])}, {})
    assert got.tolist() == [[1.0, 2.0]] * N


def test_an_op_without_a_rule_is_named():
    op = register(Op("mystery", lambda t: t, lambda x: x))
    try:
        x, batch = fresh_input(TensorType("f64", ())), fresh_input(TensorType("f64", (N,)))
        with pytest.raises(SymcError, match="mystery has no batching rule"):
            vmap([op(x)], [x], [batch], N)
    finally:
        unregister("mystery")
