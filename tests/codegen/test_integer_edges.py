"""Integers wrap around inside of kernels as between them: what an operation makes of the result of another, at the ends
of every type, for all pairs of operations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc

FORMS = {
    "neg": lambda x: -x, "abs": abs, "sub": lambda x: x - 5, "from": lambda x: 3 - x, "mul": lambda x: x * 7,
    "floordiv": lambda x: x // 7, "below": lambda x: x // -7, "mod": lambda x: x % 7, "fmod": lambda x: sc.fmod(x, 7),
    "sign": sc.sign, "max": lambda x: sc.maximum(x, -x), "shl": lambda x: x << 1, "shr": lambda x: x >> 1,
    "less": lambda x: sc.where(-x > 3, 1, 0), "real": lambda x: x / 7,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_pairs_of_operations_at_the_ends_of_a_type(dtype: str) -> None:
    info = np.iinfo(dtype)
    ends = [info.min, info.max, info.min + 1, info.max - 1, info.max // 2, 0, 1, 7, 100]
    x, a = sc.input("x", dtype, shape=("n",)), np.array(ends, dtype)
    names = [n for n in FORMS if info.min < 0 or n != "below"]
    pairs = [(g, f) for f, g in itertools.product(names, names) if f != "real"]
    made = [FORMS[g](FORMS[f](x)) for g, f in pairs]
    got = sc.compile(made, [x])(a)
    want = sc.compile(made, [x], mode="reference")(a)
    for pair, mine, right in zip(pairs, got, want, strict=True):
        np.testing.assert_array_equal(mine, right, err_msg=f"{pair[0]} of {pair[1]} of {ends}")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_every_short_number_by_many_numbers(dtype: str) -> None:
    """Quotients of short numbers are products of as few bits as hold them."""
    info = np.iinfo(dtype)
    x, a = sc.input("x", dtype, shape=("n",)), np.arange(info.min, info.max + 1).astype(dtype)
    divisors = [d for d in (2, 3, 5, 6, 7, 9, 10, 11, 13, 25, 26, 100, 101, 113, 127, 255, 641, 1000, 9973, 32767)
                if d <= info.max]
    made = [part for d in divisors for part in (x // np.array(d, dtype), x % np.array(d, dtype))]
    for d, k, got in zip(np.repeat(divisors, 2), itertools.cycle((0, 1)), sc.compile(made, [x])(a), strict=False):
        np.testing.assert_array_equal(got, np.divmod(a, np.array(d, dtype))[k], err_msg=f"{'/%'[k]} {d}")


def test_counters_by_numbers() -> None:
    """Those of a long loop too, of which remainders are found by floats."""
    x, a = sc.input("x", "uint8", shape=("n",)), np.zeros(100_003, "u1")
    n = x.shape[0]
    divisors = [3, 5, 7, 10, 48, 255, 1000, 65_537, 99_999, 2**31 - 1, 2**33 + 1, 2**45 + 3]
    made = [part for d in divisors for part in ((sc.arange(n) * 7 + 2) // d, (sc.arange(n) + 5) % d)]
    counted = np.arange(len(a))
    want = [part for d in divisors for part in ((counted * 7 + 2) // d, (counted + 5) % d)]
    for d, got, right in zip(np.repeat(divisors, 2), sc.compile(made, [x])(a), want, strict=True):
        np.testing.assert_array_equal(got, right, err_msg=str(d))
